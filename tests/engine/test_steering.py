"""What may be changed of a crawl that runs, and what stays changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from barkspider import load_settings, open_job
from barkspider.engine import Crawl, Job, Statistics, resume
from barkspider.engine.control import ask
from barkspider.engine.folder import events
from barkspider.engine.rules import about_stopped, rule_stopped
from barkspider.engine.trust import read_settings
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from barkspider.storage.env import Env

SPEC = WebSpec(seed=3, pages=400, domains=30, page_bytes=2_000)


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(SPEC) as web:
        yield web


def settings_of(served: RunningWeb, *more: str):
    chosen = served.settings() | {
        "politeness.host_delay": "20ms",
        "politeness.server_delay": "0s",
        "scope.level": "web",
        "memory": "64MB",
    }
    return load_settings(options=[*(f"{name}={value}" for name, value in chosen.items()), *more])


def steered(
    served: RunningWeb, path: Path, steer: Callable[[Path], Awaitable[None]], *more: str
) -> Statistics:
    """Crawl; when it has its first pages, whoever `steer` is may speak to it."""

    async def run() -> Statistics:
        job = Job.create(path, settings_of(served, *more), served.web.seeds(6), Env())
        try:
            crawl = Crawl.open(job)
            running = asyncio.create_task(crawl.run())
            await until(lambda: crawl.statistics().pages >= 5 or running.done())
            await steer(path)
            return await asyncio.wait_for(running, 60)
        finally:
            job.close()

    return asyncio.run(run())


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def until_none_in_flight(path: Path) -> None:
    while (await told(path, "status"))["in_flight"]:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def told(path: Path, command: str, **details: object) -> dict[str, object]:
    found = await asyncio.to_thread(ask, path, command, **details)
    assert found is not None
    return found


def test_a_limit_that_is_changed_counts_now_and_after_a_resume(served: RunningWeb, tmp_path: Path) -> None:
    async def steer(path: Path) -> None:
        await told(path, "change", settings=["limits.pages=40"])
        with pytest.raises(Exception, match="cannot be changed"):
            await told(path, "change", settings=["seed=3"])
        with pytest.raises(Exception, match="refuses"):
            await told(path, "change", settings=["limits.pages=many"])

    found = steered(served, tmp_path / "job", steer)
    assert (found.pages, found.stopped_by) == (40, "pages")
    again = resume(tmp_path / "job")
    assert (again.pages, again.stopped_by) == (40, "pages")
    stored = read_settings(Env(), tmp_path / "job")
    assert (stored.limits.pages, stored.memory) == (40, 64_000_000)
    assert [e["settings"] for e in events(tmp_path / "job") if e["event"] == "changed"] == [
        ["limits.pages=40"]
    ]


def test_a_limit_of_time_may_come_while_the_crawl_runs(served: RunningWeb, tmp_path: Path) -> None:
    async def steer(path: Path) -> None:
        await told(path, "change", settings=["limits.time=10ms"])

    assert steered(served, tmp_path / "job", steer).stopped_by == "time"


def test_a_blocked_domain_is_left_alone(served: RunningWeb, tmp_path: Path) -> None:
    blocked: list[str] = []

    async def steer(path: Path) -> None:
        await told(path, "pause")
        await told(path, "write_tables")
        await until_none_in_flight(path)
        await told(path, "write_tables")
        rows = await asyncio.to_thread(
            open_job(path).query,
            "SELECT target_domain AS domain FROM links WHERE target_domain NOT IN "
            "(SELECT url_host_registered_domain FROM pages) GROUP BY ALL ORDER BY count(*) DESC LIMIT 1",
        )
        domain = rows["domain"][0].as_py()
        ruled = await told(path, "rule", changes=[("block", domain)], why="a test")
        assert ruled == {"rules": [f"domain:{domain}"], "known": True}
        blocked.append(domain)
        with pytest.raises(Exception, match="no rule of a list"):
            await told(path, "rule", changes=[("block", "a/b")])
        assert not (await told(path, "rule", changes=[("unblock", "other.example")]))["known"]
        await told(path, "go_on")

    found = steered(served, tmp_path / "job", steer)
    assert found.stopped_by == "done"
    assert found.pages > 50
    assert found.refused["blocked"] > 0
    of_it = open_job(tmp_path / "job").query(
        f"SELECT count(*) AS n FROM pages WHERE url_host_registered_domain = '{blocked[0]}'"
    )
    assert of_it["n"][0].as_py() == 0
    assert about_stopped(tmp_path / "job")["blocked"] == {f"domain:{blocked[0]}": found.refused["blocked"]}
    # Taken back while nothing runs: what waits comes up again.
    assert rule_stopped(tmp_path / "job", [("unblock", blocked[0])])
    assert not rule_stopped(tmp_path / "job", [("unblock", blocked[0])])
    again = resume(tmp_path / "job")
    assert (again.refused["blocked"], again.stopped_by) == (0, "done")
    assert again.pages + again.refused["robots"] == SPEC.pages
    assert all(url.split("/")[2].endswith(blocked[0]) for url in urls_after(tmp_path / "job", found.pages))


def urls_after(path: Path, count: int) -> list[str]:
    """What was fetched after so many pages."""
    rows = open_job(path).query("SELECT url FROM pages ORDER BY fetch_time")["url"].to_pylist()
    return rows[count:]


def test_a_list_that_is_watched(served: RunningWeb, tmp_path: Path) -> None:
    """In force when it changes; one that becomes bad is told once, with its line, and the old one stays."""
    file = tmp_path / "bad.txt"
    file.write_text("# nobody yet\n")

    def said(path: Path, event: str) -> list[dict[str, object]]:
        return [each for each in events(path) if each["event"] == event]

    async def steer(path: Path) -> None:
        await told(path, "pause")
        file.write_text("re:^http\n")
        await until(lambda: len(said(path, "list_read")) == 1)
        file.write_text("re:^http\n10.0.0.0/99\n")
        await until(lambda: len(said(path, "list_refused")) == 1)
        await told(path, "go_on")

    found = steered(served, tmp_path / "job", steer, f"lists.block={file}")
    assert found.refused["blocked"] > 0
    (refused,) = said(tmp_path / "job", "list_refused")
    assert (
        refused["error"]
        == f"{file}:2: '10.0.0.0/99' is neither an address nor a network; write it like 192.0.2.0/24"
    )
    assert about_stopped(tmp_path / "job")["blocked"] == {str(file): found.refused["blocked"]}
    # The next run keeps the list that it had.
    again = resume(tmp_path / "job")
    assert (again.pages, again.refused["blocked"]) == (found.pages, found.refused["blocked"])
    file.write_text("")
    last = resume(tmp_path / "job")
    assert last.pages + last.refused["robots"] == SPEC.pages
    with pytest.raises(Exception, match="cannot read"):
        Job.create(
            tmp_path / "other", settings_of(served, "lists.allow=/nowhere.txt"), served.web.seeds(1), Env()
        )


def test_a_checkpoint_can_be_asked_for(served: RunningWeb, tmp_path: Path) -> None:
    async def steer(path: Path) -> None:
        await told(path, "checkpoint")
        await until(lambda: any(event["event"] == "checkpoint" for event in events(path)))
        await told(path, "stop")

    assert steered(served, tmp_path / "job", steer, "checkpoint=1h").stopped_by == "request"
