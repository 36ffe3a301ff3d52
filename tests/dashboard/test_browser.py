"""The dashboard in a real browser: Debian's Chromium, without a screen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

from barkspider import load_settings
from barkspider.core.load import dump_settings
from barkspider.engine.folder import events
from barkspider.engine.trust import read_settings
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from barkspider.storage.env import Env
from tests.cli.small_job import make_small_job
from tests.dashboard.hostile import STRINGS, make_hostile

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
AXE = files("axe_playwright_python") / "axe.min.js"
PAGES = ("/", "/domains", "/hosts", "/why", "/errors", "/events", "/settings", "/query", "/controls")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
)


@pytest.fixture(scope="module")
def browser(job: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """After the job was made: a crawl and this need a loop each, and a thread has one."""
    with sync_playwright() as playwright:
        # A folder of its own, new and empty: what it is asked, it fetches.
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("chromium")),
            executable_path=CHROMIUM,
            args=list(FLAGS),
            headless=True,
        )
        yield context
        context.close()


class Visitor:
    """A tab that notes what goes wrong, and where requests go."""

    def __init__(self, browser: Any) -> None:
        self.page = browser.new_page()
        self.errors: list[str] = []
        self.places: set[str] = set()
        self.asked: list[str] = []
        self.page.on(
            "console", lambda message: self.errors.append(message.text) if message.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.places.add(urlsplit(request.url).netloc))
        self.page.on("dialog", self._answer)

    def _answer(self, dialog: Any) -> None:
        self.asked.append(dialog.message)
        dialog.accept()

    def check(self, place: str) -> None:
        """Nothing went wrong, and nothing went elsewhere."""
        assert self.errors == []
        assert self.places == {place}


@pytest.fixture
def visitor(browser: Any) -> Iterator[Visitor]:
    found = Visitor(browser)
    yield found
    found.page.close()


Shown = Callable[[Path], str]


@pytest.fixture
def shown() -> Iterator[Shown]:
    """Begins the dashboard of a job; its address."""
    begun: list[subprocess.Popen[str]] = []

    def start(job: Path) -> str:
        command = [sys.executable, "-m", "barkspider.cli", "dashboard", str(job)]
        begun.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert begun[-1].stdout is not None
        return begun[-1].stdout.readline().removeprefix("Dashboard: ").strip()

    yield start
    for process in begun:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_job(tmp_path_factory.mktemp("browser") / "job")


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(WebSpec(seed=2, pages=20_000, page_bytes=2_000)) as web:
        yield web


def test_the_overview_changes_while_a_crawl_runs_and_every_control_works(
    served: RunningWeb, visitor: Visitor, browser: Any, tmp_path: Path
) -> None:
    watching = browser.new_page()
    chosen = served.settings() | {"politeness.host_delay": "100ms", "scope.level": "web", "memory": "64MB"}
    settings = load_settings(options=[f"{name}={value}" for name, value in chosen.items()])
    (tmp_path / "own.toml").write_text(dump_settings(settings))
    job = tmp_path / "job"
    command = [
        "crawl",
        *served.web.seeds(20),
        "--config",
        str(tmp_path / "own.toml"),
        "--job",
        str(job),
        "--dashboard",
    ]
    crawl = subprocess.Popen(
        [sys.executable, "-m", "barkspider.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert crawl.stdout is not None
        address = crawl.stdout.readline().removeprefix("Dashboard: ").strip()
        place, page = urlsplit(address).netloc, visitor.page
        page.goto(address)
        assert page.url == f"http://{place}/"  # the token is in the address no more
        page.locator("#main[data-updates]").wait_for(timeout=60_000)
        pages = page.locator("dl.cards dd").first
        expect(pages).not_to_have_text(pages.inner_text(), timeout=60_000)
        assert "running" in page.locator("#state").inner_text()
        assert page.locator("svg.chart").count() > 8

        def press(button: str, **fields: str) -> str:
            page.goto(f"http://{place}/controls")
            form = page.locator("form", has=page.get_by_role("button", name=button, exact=True))
            if "limit" in fields:
                form = page.locator("form", has=page.get_by_label(fields["limit"]))
            if "value" in fields:
                form.locator("input[type=text], input[type=url]").fill(fields["value"])
            with page.expect_navigation():
                form.get_by_role("button").click()
            return str(page.locator(".notice").first.inner_text())

        assert press("Pause") == "the crawl pauses"
        page.goto(f"http://{place}/")
        assert "paused" in page.locator("#state").inner_text()
        assert press("Go on") == "the crawl goes on"
        assert press("Checkpoint now") == "a checkpoint is made"
        assert press("Change", limit="limits.pages", value="1000000") == "changed: limits.pages=1000000"
        assert "refuses" in press("Change", limit="limits.time", value="soon")
        assert press("Block", value="blocked.example") == "blocked: blocked.example"
        assert press("Add", value=served.web.seeds(21)[-1]).startswith("added: http")
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate(
            "document.documentElement.scrollWidth <= innerWidth"
        )  # nothing sticks out on a phone
        page.goto(f"http://{place}/domains")
        assert page.locator("tbody tr td.n").count() > 50  # though the crawl has not ended
        page.goto(f"http://{place}/hosts")
        assert page.locator("thead th").last.inner_text() == "waits for"
        watching.goto(f"http://{place}/")
        watching.locator("#main[data-updates]").wait_for(timeout=60_000)
        assert press("Stop") == "the crawl stops"
        assert len(visitor.asked) == 8
        assert crawl.wait(60) == 0
        expect(watching.locator("#ended")).to_contain_text("has ended", timeout=60_000)
        assert "running" not in watching.locator("#state").inner_text()
        visitor.check(place)
    finally:
        watching.close()
        crawl.kill()
        crawl.communicate()
    stored = read_settings(Env(), job)
    assert stored.limits.pages == 1_000_000
    logged = {event["event"]: event for event in events(job)}
    assert {"asked", "checkpoint", "changed", "ended"} <= set(logged)
    assert logged["ruled"]["changes"] == [["block", "domain:blocked.example"]]


def test_five_hundred_hostile_strings_stay_inert(
    job: Path, tmp_path: Path, visitor: Visitor, shown: Shown
) -> None:
    address = shown(make_hostile(job, tmp_path))
    place, page = urlsplit(address).netloc, visitor.page
    page.goto(address)
    for path in (
        *PAGES,
        "/hosts?sort=host&down=no",
        *(f"/host?name={quote(each)}" for each in STRINGS[::100]),
    ):
        page.goto(f"http://{place}{path}")
        _is_calm(page)
    page.goto(f"http://{place}/query")
    page.locator("textarea").fill("SELECT url, url_host_name, title, outcome FROM pages WHERE key < 500")
    with page.expect_navigation():
        page.get_by_role("button", name="Ask").click()
    assert page.locator("tbody tr").count() == 500
    _is_calm(page)
    assert visitor.asked == []
    visitor.check(place)


def _is_calm(page: Any) -> None:
    """No text of others has become anything else."""
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.scripts.length") == 1
    assert (
        page.evaluate(
            "document.querySelectorAll('img, iframe, object, embed, base, style, video, math, details').length"
        )
        == 0
    )
    assert (
        page.evaluate(
            "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).filter(a => a.name.startsWith('on')).length"
        )
        == 0
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_fault_of_accessibility(job: Path, visitor: Visitor, shown: Shown, scheme: str) -> None:
    address = shown(job)
    place, page = urlsplit(address).netloc, visitor.page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390 if scheme == "dark" else 1280, "height": 900})
    page.goto(address)
    for path in PAGES:
        page.goto(f"http://{place}{path}")
        # No script may run but ours: that of the test comes by the debugger.
        found = page.evaluate(f"{AXE.read_text()};axe.run()")
        serious = [
            (each["id"], each["impact"], each["nodes"][0]["html"][:200])
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path  # nothing sticks out
    visitor.check(place)


def test_the_report_opens_without_a_network(job: Path, tmp_path: Path, visitor: Visitor) -> None:
    from barkspider.report import write_report

    write_report(make_hostile(job, tmp_path), tmp_path / "report.html")
    page = visitor.page
    page.goto((tmp_path / "report.html").as_uri())
    assert page.locator("svg.chart").count() > 15
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.scripts.length") == 0
    assert visitor.errors == []
    assert visitor.places == {""}
