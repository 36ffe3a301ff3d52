"""Hazard 13: hosts that never answer cost a crawl their own places, and nothing else."""

from __future__ import annotations

from pathlib import Path

from barkspider import Statistics, crawl, load_settings
from tests.engine.warcs import archived
from tests.hostile.crawls import page
from tests.hostile.hazard import site
from tests.hostile.server import hostile_server
from tests.hostile.silent import mute

_SILENT = [f"127.77.0.{number}" for number in range(1, 201)]
_GOOD = [f"127.66.1.{number}" for number in range(1, 21)]
_PAGES = 10


NAMES = {f"silent-{number}.example": [[address]] for number, address in enumerate(_SILENT)}
GOOD = {f"good-{number}.example": [[address]] for number, address in enumerate(_GOOD)}


def _crawl(job: Path, *options: str) -> Statistics:
    """Crawl from all of them."""
    paths = [f"/{number}" for number in range(1, _PAGES)]
    serve = site({"/": page(*paths), **{path: page() for path in paths}})
    with (
        hostile_server(dict.fromkeys(GOOD, serve), {**NAMES, **GOOD}, _GOOD) as server,
        mute(_SILENT) as port,
    ):
        found = [
            "network.allow=127.66.1.0/24,127.77.0.0/24",
            f"network.ports=127.66.1.0/24:80={server.http_port},127.77.0.0/24:80={port}",
            f"dns.servers=127.0.0.1:{server.dns_port}",
            *("fetch.in_flight=300", "politeness.host_delay=1ms", "politeness.server_delay=0s"),
            *("politeness.retries=0", "limits.time=20s", "limits.grace=0s", "memory=64MB"),
        ]
        seeds = [f"http://{name}/" for name in (*NAMES, *GOOD)]
        return crawl(seeds, job, load_settings(options=[*found, *options]))


def test_good_hosts_do_not_wait_for_silent_ones(tmp_path: Path) -> None:
    # Long deadlines, and an end when the good pages are there: had anything waited, there would be failures.
    wanted = len(_GOOD) * _PAGES
    deadlines = ("fetch.connect_timeout=30s", "fetch.header_timeout=30s")
    statistics = _crawl(tmp_path / "job", *deadlines, f"limits.pages={wanted}")
    assert (statistics.stopped_by, statistics.pages) == ("pages", wanted)
    assert {url.split("/")[2] for url in archived(tmp_path / "job", "pages")} == set(GOOD)
    assert (statistics.failed, statistics.robots_failed, statistics.refused) == ({}, {}, {})
    assert statistics.gauges["hosts"] == len(_SILENT) + len(_GOOD)


def test_silent_hosts_end_by_their_deadlines(tmp_path: Path) -> None:
    deadlines = ("fetch.connect_timeout=2s", "fetch.header_timeout=2s")
    statistics = _crawl(tmp_path / "job", *deadlines)
    half = len(_SILENT) // 2
    assert statistics.robots_failed == {"timeout_connect": half, "timeout_headers": half}
    assert statistics.refused == {"robots_unreachable": len(_SILENT)}
    assert (statistics.stopped_by, statistics.pages) == ("done", len(_GOOD) * _PAGES)
