"""A system that allows few open files: fewer connections, and no end of the crawl."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from barkspider import crawl, load_settings
from barkspider.core.errors import UsageError
from barkspider.core.settings import Fetch, Settings
from barkspider.engine.preflight import fit_open_files
from barkspider.engine.spare import SPARE, SpareFiles
from barkspider.lab.synthweb import WebSpec, running_web
from barkspider.storage.env import Env
from tests.hostile.crawls import page
from tests.hostile.hazard import site
from tests.hostile.server import hostile_server
from tests.hostile.silent import mute


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The limits of a system: what is in force, and the most that may be asked for."""
    values = [1024, 1024]

    def change(_: int, given: tuple[int, int]) -> None:
        assert given[0] <= values[1]
        values[:] = given

    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(values))
    monkeypatch.setattr(resource, "setrlimit", change)
    return values


def test_connections_are_as_many_as_files_leave_room_for(limits: list[int]) -> None:
    settings = Settings()
    assert settings.fetch.in_flight + settings.fetch.idle_connections == 1500
    fitted = fit_open_files(settings)
    assert (fitted.fetch.in_flight, fitted.fetch.idle_connections) == (500, 412)
    assert replace(fitted, fetch=settings.fetch) == settings
    for limit, in_flight, idle in ((256, 108, 36), (400, 216, 72), (512, 300, 100)):
        limits[:] = [limit, limit]
        fitted = fit_open_files(settings)
        assert (fitted.fetch.in_flight, fitted.fetch.idle_connections) == (in_flight, idle)
    few = replace(settings, fetch=Fetch(in_flight=50, idle_connections=60))
    assert fit_open_files(few) is few


def test_as_many_as_are_wanted_are_asked_for(limits: list[int]) -> None:
    limits[1] = 100_000
    settings = Settings()
    assert fit_open_files(settings) is settings
    assert limits == [112 + 2 * settings.budget.max_queues + 1500, 100_000]
    limits[:] = [resource.RLIM_INFINITY] * 2
    assert fit_open_files(settings) is settings


def test_too_few_are_one_clear_line(limits: list[int]) -> None:
    limits[:] = [128, 128]
    with pytest.raises(UsageError, match=r"allows 128 open files, and a crawl needs 144 at least.*ulimit -n"):
        fit_open_files(Settings())


def test_a_crawl_with_few_files_gets_every_page(tmp_path: Path) -> None:
    spec = WebSpec(seed=8, pages=160, domains=40, page_bytes=2_000)
    with running_web(spec) as web:
        chosen = web.settings() | {
            "politeness.host_delay": "5ms",
            "politeness.server_delay": "0s",
            "scope.level": "web",
            "seed": "5",
            "memory": "64MB",
            "archive.recent_digests": "1000",
            "budget.max_queues": "4",
        }
        settings = load_settings(options=[f"{name}={value}" for name, value in chosen.items()])
        child = os.fork()
        if not child:
            code = 1
            try:
                os.closerange(3, 1 << 16)  # what other tests of this process hold open
                resource.setrlimit(resource.RLIMIT_NOFILE, (158, 158))
                code = crawl(web.web.seeds(1), tmp_path / "job", settings).stopped_by != "done"
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        expected = len(web.web.reachable_urls(web.web.seeds(1)))
    events = [json.loads(line) for line in (tmp_path / "job" / "log.jsonl").read_text().splitlines()]
    assert [event["in_flight"] for event in events if event["event"] == "few_open_files"] == [34]
    assert events[-1]["pages"] == expected


_SILENT = [f"127.77.{number // 250 + 1}.{number % 250 + 1}" for number in range(700)]
_HOSTS = {f"silent-{number}.example": [[address]] for number, address in enumerate(_SILENT)}
_GOOD = {f"good-{number}.example": [[f"127.66.1.{number + 1}"]] for number in range(10)}
_PROGRAM = """
import json, resource, sys
from pathlib import Path
from barkspider import crawl, load_settings
from barkspider.engine import loop
limit, fits, seeds, job, options = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
if not fits:
    loop.fit_open_files = lambda settings: settings
print(crawl(seeds, Path(job), load_settings(options=options)).stopped_by)
"""


@pytest.mark.parametrize(("limit", "fits"), [(256, True), (256, False)])
def test_silent_hosts_take_no_file_from_the_disk(tmp_path: Path, limit: int, fits: bool) -> None:
    """Unless it `fits`, as many connections as ever are opened: the disk must get its files all the same."""
    paths = [f"/{number}" for number in range(1, 20)]
    serve = site({"/": page(*paths), **{path: page() for path in paths}})
    good = [address for ((address,),) in _GOOD.values()]
    with (
        hostile_server(dict.fromkeys(_GOOD, serve), {**_HOSTS, **_GOOD}, good) as server,
        mute(_SILENT) as port,
    ):
        chosen = [
            "network.allow=127.66.0.0/16,127.77.0.0/16",
            f"network.ports=127.66.0.0/16:80={server.http_port},127.77.0.0/16:80={port}",
            f"dns.servers=127.0.0.1:{server.dns_port}",
            *("politeness.host_delay=50ms", "politeness.server_delay=0s", "scope.level=web", "seed=5"),
            *("fetch.connect_timeout=500ms", "fetch.header_timeout=500ms", "politeness.retries=0"),
            *("memory=64MB", "archive.recent_digests=1000", "checkpoint=200ms", "limits.pages=100"),
            *("limits.grace=0s", "limits.time=40s"),
        ]
        seeds = [f"http://{name}/" for name in (*_HOSTS, *_GOOD)]
        order = json.dumps([limit, fits, seeds, str(tmp_path / "job"), chosen])
        # A process of its own: this one has the sockets of all silent hosts.
        done = subprocess.run([sys.executable, "-c", _PROGRAM], input=order, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("pages\n", "")
    events = [json.loads(line) for line in (tmp_path / "job" / "log.jsonl").read_text().splitlines()]
    assert events[-1]["pages"] == 100
    assert "no_file_handles" not in events[-1]["failed"]


def test_files_come_before_connections(tmp_path: Path) -> None:
    used = len([*Path("/proc/self/fd").iterdir()]) + SPARE

    async def run() -> tuple[list[int], int]:
        shed: list[int] = []
        taken: list[int] = []

        def give_back(count: int) -> None:
            shed.append(count)
            for _ in range(count):
                os.close(taken.pop())

        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        env = Env()
        spare = SpareFiles(env, give_back)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + 50, before[1]))
            with suppress(OSError):
                while True:
                    taken.append(os.open(os.devnull, os.O_RDONLY))
            files = [env.append(tmp_path / str(number)) for number in range(3)]
            files.append(await asyncio.to_thread(env.append, tmp_path / "3"))
            await asyncio.sleep(0.01)
            held = len(spare._held)
            for file in files:
                file.close()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            spare.close()
            for descriptor in taken:
                os.close(descriptor)
        return shed, held

    shed, held = asyncio.run(run())
    assert (sum(shed), held) == (4, SPARE)
