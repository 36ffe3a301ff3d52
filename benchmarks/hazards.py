"""What hazards cost a crawl, with and without the detection of traps: by what they are, and at whose expense.

One web with all hazards of the synthetic web, twice: so large that fetches end first, and so small that its regular pages run
out. Each is crawled with detection, without it, and without hazards. Fetches are counted, not timed: pages are rendered, read,
and their links resolved as in a crawl, by the frontier of a crawl on a virtual clock; every answer is there at once and no
host needs a pause, so that budgets alone divide fetches. HAZARDS_SEED in the environment is what the webs are made of: those
of development had 1.

HAZARDS_DOCUMENTS names folders of real sites, with a colon between, such as documentation that was unpacked from packages
(`apt-get download python3.11-doc`, `dpkg -x`): each is crawled from its index.html as a site of its own, and none may have a trap.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from barkspider.core.events import (
    FetchPage,
    FetchRobots,
    HostResolved,
    Instruction,
    Outcome,
    PageFetched,
    Redirect,
    ResolveHost,
    RobotsFetched,
    Seeds,
    is_temporary,
)
from barkspider.core.load import load_settings
from barkspider.core.settings import Settings
from barkspider.engine.links import LinkMaker
from barkspider.frontier import open_frontier
from barkspider.lab.synthweb import Web, WebSpec
from barkspider.lab.synthweb.answer import NOT_FOUND, Answer, Manner, Request
from barkspider.lab.synthweb.spec import HAZARDS
from barkspider.page import Bounds, PageReader
from barkspider.page.gist import gist
from barkspider.storage.env import Env
from barkspider.url import Domains, split

# What has no end by itself; the others are finite, and their pages are not each other's. A shop whose links carry sessions has
# this many pages that are worth a fetch.
_ITEMS = 201
ENDLESS = ("spam_farm", "calendar", "session_ids", "growing_paths", "wildcard_dns")
_SETTINGS = {
    "seed": 7,
    "scope.level": "web",
    "politeness.host_delay": "0s",
    "politeness.server_delay": "0s",
    "politeness.retries": 1,
    "politeness.obey_robots": False,  # another subject: and most of what a frontier does on disk for names without end
    "page.max_parse": "64KB",
}
_MEMORY = Path("/dev/shm")  # merges are synced: of a real disk, that would be all the time it takes
_LIMIT_OF_SMALL = 3  # times the regular pages: a crawl that is not over by then does not end


class Folder:
    """A site that lies in a folder, as far as `Crawl` asks: every file that is linked to."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def seeds(self, count: int) -> list[str]:  # noqa: ARG002
        """Its home."""
        return ["http://site.example/index.html"]

    def site(self, name: str) -> None:
        """No host of a hazard."""

    def server(self, host: str) -> str | None:
        """It is the only host."""
        return "127.0.0.1" if host == "site.example" else None

    def robots_txt(self, host: str) -> tuple[int, bytes]:  # noqa: ARG002
        """It has none."""
        return 404, b""

    def answer(self, request: Request) -> Answer:
        """A file, if there is one."""
        file = (self._root / unquote(request.path).lstrip("/")).resolve()
        if not file.is_relative_to(self._root) or not file.is_file():
            return NOT_FOUND
        return Answer(200, file.read_bytes() if file.suffix == ".html" else b"", "text/html")


class Crawl:
    """One crawl of a web on a virtual clock; `fetched` counts by hazard, "" for regular pages."""

    def __init__(self, web: Web | Folder, settings: Settings) -> None:
        self._web, self._settings = web, settings
        self._links = LinkMaker(settings, web.seeds(20))
        bounds = Bounds(settings.limits.page_links, settings.url.max_length)
        self._pages = PageReader(settings.page, settings.agent.name, bounds)
        self._domains, self._cookies = Domains(), dict[str, str]()
        self.fetched = Counter[str]()
        self.good = set[str]()
        self.ended = False
        self.traps = list[dict[str, Any]]()

    def run(self, fetches: int) -> None:
        """Crawl until so many pages were fetched, or nothing is left."""
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
            frontier = open_frontier(self._settings, Env(), Path(folder), background=False)
            now, idle, outcomes = 0.0, 1.0, list[Outcome]([Seeds(self._links.seeds())])
            while self.fetched.total() < fetches and not self.ended:
                instructions, wake = frontier.step(now, outcomes)
                outcomes = [self._answer(each) for each in instructions]
                self.ended = frontier.finished() and not outcomes
                # What is left may wait for hours, for hosts that are parked: nobody else does.
                idle = 1.0 if outcomes else min(2 * idle, 600.0)
                now = now + 0.01 if outcomes else max(wake, now + idle)
            frontier.validate()
            self.traps = frontier.about_traps()
            frontier.close()

    def hazard(self, host: str) -> str:
        """The hazard that a host belongs to, "" for a regular one."""
        site = self._web.site(host)
        return site.hazard.name if site is not None and site.hazard is not None else ""

    def false_traps(self) -> list[str]:
        """Those on regular sites, or on sites of hazards that have an end."""
        return [
            trap["pattern"]
            for trap in self.traps
            if self.hazard(trap["site"].removeprefix("*.")) not in ENDLESS
        ]

    def _answer(self, asked: Instruction) -> Outcome:
        if isinstance(asked, ResolveHost):
            address = self._web.server(asked.host)
            return HostResolved(asked, (address,) if address else (), "" if address else "dns_no_name")
        if isinstance(asked, FetchRobots):
            status, body = self._web.robots_txt(split(asked.url).host)
            return RobotsFetched(asked, status, body)
        assert isinstance(asked, FetchPage)
        return self._page(asked)

    def _page(self, asked: FetchPage) -> PageFetched:
        url = asked.row.url.decode()
        parts = split(url)
        domain = self._domains.pay_level(parts.host)
        kind = self.hazard(parts.host)
        self.fetched[kind] += 1
        cookie = self._cookies.get(domain, "")
        answer = self._web.answer(Request(parts.host, parts.target, parts.scheme, cookie))
        for name, value in answer.headers:
            if name == "Set-Cookie":
                self._cookies[domain] = value.partition(";")[0]
        if answer.manner is Manner.CLOSED:
            return PageFetched(asked, failure="closed_early", temporary=True)
        if 300 <= answer.status < 400:
            made = self._links.redirect(dict(answer.headers).get("Location", ""), asked.row)
            return PageFetched(asked, answer.status, redirect=None if made is None else Redirect(*made))
        if answer.status != 200:
            failure, temporary = f"http_{answer.status}", is_temporary(answer.status)
            return PageFetched(asked, answer.status, failure=failure, temporary=temporary)
        if not kind:
            self.good.add(url)
        page = self._pages.read(answer.body, answer.content_type, url, None, None)
        links = self._links.batch(self._links.links(page.hrefs, page.base, asked.row))
        said = gist(answer.body) if self._settings.traps.detect else 0
        return PageFetched(asked, 200, links=links, gist=said)


def crawl(spec: WebSpec, fetches: int, detect: bool) -> Crawl:
    """A crawl of a web, with or without the detection of traps."""
    made = Crawl(Web(spec), load_settings(overrides=_SETTINGS | {"traps.detect": detect}))
    made.run(fetches)
    return made


def run(quick: bool) -> dict[str, Any]:
    """200,000 fetches of a web of 400,000 pages, and a web of 20,000 to its end; when `quick` 4,000 of 20,000, and 1,500."""
    seed = int(os.environ.get("HAZARDS_SEED", "1"))
    figures: dict[str, Any] = {"seed": seed}
    sizes = ((20_000, 4_000), (1_500, 0)) if quick else ((400_000, 200_000), (20_000, 0))
    targets = []
    for name, (pages, fetches) in zip(("large", "small"), sizes, strict=True):
        most = fetches or _LIMIT_OF_SMALL * pages
        with_hazards = WebSpec(seed, pages, page_bytes=2_000, links_per_page=20, hazards=frozenset(HAZARDS))
        on, off = crawl(with_hazards, most, True), crawl(with_hazards, most, False)
        alone = crawl(replace(with_hazards, hazards=frozenset()), most, True)
        figures |= dict(_figures(name, on, off, alone))
        goal = 0.10 if not fetches else 0.05
        targets.append(_most(f"{name}: share of endless hazards", _wasted(on), goal))
        targets.append(
            _most(f"{name}: good sites or patterns cut", len(on.false_traps()) + len(alone.traps), 0)
        )
        covered = len(on.good) / max(len(alone.good), 1)
        targets.append(
            {
                "name": f"{name}: good pages by those without hazards",
                "value": round(covered, 4),
                "target": 0.98,
                "holds": covered >= 0.98,
            }
        )
        if not fetches:
            targets.append({"name": "small: it ends", "value": on.ended, "target": True, "holds": on.ended})
    for folder in filter(None, os.environ.get("HAZARDS_DOCUMENTS", "").split(":")):
        found, without = (_documents(Path(folder), detect) for detect in (True, False))
        figures[f"{Path(folder).name}_pages"] = [len(found.good), len(without.good)]
        targets.append(_most(f"{folder}: traps", len(found.traps), 0))
        targets.append(_most(f"{folder}: pages not fetched", len(without.good) - len(found.good), 0))
    return {"figures": figures, "targets": targets}


def _documents(folder: Path, detect: bool) -> Crawl:
    """A crawl of a folder to its end."""
    scope = {"scope.level": "site", "traps.detect": detect}
    made = Crawl(Folder(folder), load_settings(overrides=_SETTINGS | scope))
    made.run(1_000_000)
    return made


def _figures(name: str, on: Crawl, off: Crawl, alone: Crawl) -> Iterator[tuple[str, Any]]:
    for which, made in (("on", on), ("off", off), ("alone", alone)):
        yield f"{name}_{which}_fetches", made.fetched.total()
        yield f"{name}_{which}_good", len(made.good)
        yield f"{name}_{which}_by_hazard", {kind: n for kind, n in made.fetched.most_common() if kind}
        yield f"{name}_{which}_endless_share", round(_wasted(made), 4)
        yield f"{name}_{which}_hazard_share", round(1 - made.fetched[""] / made.fetched.total(), 4)
        yield f"{name}_{which}_ended", made.ended
        yield (
            f"{name}_{which}_traps",
            [
                f"{trap['pattern']} ({trap['repeated']} of {trap['pages']}, {trap['held']} held)"
                for trap in made.traps
            ],
        )


def _wasted(made: Crawl) -> float:
    fetched = made.fetched
    endless = sum(fetched[kind] for kind in ENDLESS) - min(fetched["session_ids"], _ITEMS)
    return endless / fetched.total()


def _most(name: str, value: float, goal: float) -> dict[str, Any]:
    return {"name": name, "value": round(value, 4), "target": goal, "holds": value <= goal}
