"""A disk that is nearly full makes a crawl pause; one that refuses ends it, and nothing is lost."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import uvloop

from barkspider import load_settings
from barkspider.engine import Crawl, Job, every_second, resume
from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web
from barkspider.storage.calls import Calls
from barkspider.storage.env import Env
from tests.cli.program import run
from tests.engine.warcs import archived, check_warcs


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    spec = WebSpec(seed=6, pages=80, domains=16, page_bytes=2_000, crawl_delay=0.02)
    with running_web(spec, log_path=tmp_path_factory.mktemp("web") / "requests.log") as web:
        yield web


def options(served: RunningWeb) -> list[str]:
    chosen = served.settings() | {
        "politeness.host_delay": "20ms",
        "politeness.server_delay": "0s",
        "scope.level": "web",
        "seed": "5",
        "memory": "64MB",
        "archive.recent_digests": "1000",
        "checkpoint": "150ms",
    }
    return [f"{name}={value}" for name, value in chosen.items()]


def is_complete(served: RunningWeb, job: Path) -> bool:
    found = archived(job, "pages")
    return len(found) == len(set(found)) and set(found) == served.web.reachable_urls(served.web.seeds(1))


class Shared(Calls):
    """A disk that others fill and empty."""

    free = 1 << 40

    def free_space(self, folder: Path) -> int:
        return self.free


async def _until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  (what is waited for happens in another process)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("frontier", ["irlbot", "sydney"])
def test_a_crawl_pauses_while_there_is_no_room_and_goes_on_by_itself(
    served: RunningWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frontier: str
) -> None:
    monkeypatch.setattr(every_second, "_TICK", 0.02)
    assert served.log_path is not None
    log = served.log_path
    settings = load_settings(options=[*options(served), f"frontier={frontier}"])
    disk = Shared()

    async def main() -> None:
        job = Job.create(tmp_path / "job", settings, served.web.seeds(1), Env(disk))
        crawl = Crawl.open(job)
        before = len(read_log(log))
        running = asyncio.create_task(crawl.run())
        await _until(lambda: len(read_log(log)) > before + 10)
        disk.free = settings.limits.free_space - 1
        await _until(lambda: crawl.state() == "paused (disk)" and not crawl._under_way)
        asked = len(read_log(log))
        await asyncio.sleep(0.3)  # fifteen times the pause of a host
        assert len(read_log(log)) == asked
        crawl.pause(True)  # somebody pauses it too: room alone is not enough
        disk.free = settings.limits.free_space
        await _until(lambda: crawl.state() == "paused (request)")
        crawl.pause(False)
        assert (await running).stopped_by == "done"
        job.close()

    uvloop.run(main())
    assert is_complete(served, tmp_path / "job")
    events = [json.loads(line) for line in (tmp_path / "job" / "log.jsonl").read_text().splitlines()]
    told = {event["event"]: event for event in events}
    assert told["disk_full"]["free"] == settings.limits.free_space - 1
    assert told["disk_full"]["wanted"] == settings.limits.free_space
    assert told["disk_has_room"]["free"] == settings.limits.free_space


class Full(Calls):
    """A disk that has room for so many bytes."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, descriptor: int, views: Sequence[bytes | memoryview]) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        data = b"".join(views)[: self.room]
        self.room -= len(data)
        return super().write(descriptor, [memoryview(data)])


@pytest.mark.parametrize(
    ("frontier", "room"),
    [("irlbot", 15_000), ("irlbot", 40_000), ("irlbot", 100_000), ("sydney", 20_000), ("sydney", 70_000)],
)
def test_a_disk_that_refuses_ends_the_crawl_with_one_line_and_resuming_loses_nothing(
    served: RunningWeb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    frontier: str,
    room: int,
) -> None:
    job, disk = tmp_path / "job", Full(room)
    chosen = [part for option in options(served) for part in ("--set", option)]
    with monkeypatch.context() as patched:
        patched.setattr("barkspider.cli.run.Env", lambda: Env(disk))
        code = run(
            patched,
            *("crawl", served.web.seeds(1)[0], "--json", "--job", str(job)),
            *(*chosen, "--set", f"frontier={frontier}"),
        )
    told = capsys.readouterr()
    assert code == 1
    assert disk.room <= 0
    assert told.err.count("\n") == 1
    assert told.err.startswith("barkspider: disk full: cannot ")
    assert told.err.endswith("; make room and try again\n")
    assert json.loads(told.out)["stopped_by"] == "disk"
    assert run(monkeypatch, "verify", str(job)) == 0
    capsys.readouterr()
    assert resume(job).stopped_by == "done"
    assert is_complete(served, job)
    check_warcs(job)
