"""A process that gets no more memory: the crawl ends with one line, and resuming loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barkspider.engine import resume
from tests.cli.program import run
from tests.engine.warcs import archived, check_warcs
from tests.hostile.crawls import page
from tests.hostile.server import Line, Request, hostile_server, ok

_HOSTS = {f"www.host-{number}.example": [[f"127.66.1.{number + 1}"]] for number in range(60)}
# After so many pages the process may have so many megabytes more of address space.
_PROGRAM = """
import re, resource, sys
from pathlib import Path
import barkspider.cli.app, barkspider.cli.run
from barkspider.engine import loop
pages, more = int(sys.argv.pop(1)), int(sys.argv.pop(1)) * 10**6
bring_in = loop.Crawl._bring_in
def limit():
    size = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (size + more, size + more))
def limited(crawl):
    if pages and crawl.statistics().pages >= pages:
        limit()
        loop.Crawl._bring_in = bring_in
    return bring_in(crawl)
loop.Crawl._bring_in = limited
if not pages:
    limit()
barkspider.cli.main()
"""


async def _serve(line: Line, request: Request) -> None:
    """Some pages, and then large ones that have no end."""
    if request.target == "/robots.txt":
        return await line.send(ok(b"", kind="text/plain"))
    number = int(request.target[1:] or 0)
    if number < 3:
        return await line.send(page(f"/{number + 1}"))
    await line.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2000000\r\n\r\n")
    await line.send(bytes(1_900_000))
    while True:
        await line.send(b"x" * 100)
        await asyncio.sleep(0.1)


@pytest.mark.parametrize(("pages", "more"), [(0, 60), (100, 0)])
def test_memory_that_runs_out_ends_the_crawl_with_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pages: int,
    more: int,
) -> None:
    job = tmp_path / "job"
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}  # or threads keep address space that others may use
    with hostile_server(
        dict.fromkeys(_HOSTS, _serve), _HOSTS, [address for ((address,),) in _HOSTS.values()]
    ) as server:
        options = [
            "network.allow=127.66.0.0/16",
            f"network.ports=127.66.0.0/16:80={server.http_port}",
            f"dns.servers=127.0.0.1:{server.dns_port}",
            *("politeness.host_delay=10ms", "politeness.server_delay=0s", "scope.level=web", "seed=3"),
            *("checkpoint=200ms", "limits.time=60s", "limits.grace=0s"),
            # A request that failed for want of memory is tried again within the time that there is.
            *("politeness.retry_delay=1s", "politeness.park_time=1s"),
        ]
        command = [
            sys.executable,
            "-c",
            _PROGRAM,
            str(pages),
            str(more),
            "crawl",
            "--json",
            "--job",
            str(job),
        ]
        command += [part for option in options for part in ("--set", option)]
        done = subprocess.run(
            [*command, *(f"http://{host}/" for host in _HOSTS)],
            capture_output=True,
            text=True,
            env=environment,
        )
        assert done.returncode == 1, done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("barkspider: memory has run out")
        assert not done.stdout or json.loads(done.stdout)["stopped_by"] == "memory"
        assert done.stdout or not pages
        assert run(monkeypatch, "verify", str(job)) == 0
        assert resume(job, ["limits.pages=180"]).stopped_by == "pages"
    assert run(monkeypatch, "verify", str(job)) == 0
    assert capsys.readouterr().out.count("sound") == 2
    check_warcs(job)
    assert len(set(archived(job, "pages"))) == 180
