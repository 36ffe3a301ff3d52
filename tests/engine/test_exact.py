"""A whole crawl over real sockets against the truth: exactly the pages that are reachable and allowed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from barkspider import Statistics, crawl, load_settings
from barkspider.lab.synthweb import LoggedRequest, RunningWeb, WebSpec, read_log, running_web
from tests.engine.warcs import archived, check_warcs

# Short texts, because the links are what matters here; short delays, because nobody is harmed.
SPECS = {
    name: WebSpec(seed=11, pages=pages, page_bytes=8_000, crawl_delay=0.1, https_share=0.05)
    for name, pages in (("sydney", 1_000), ("irlbot", 4_000))
}
HOST_DELAY, SERVER_DELAY = 0.004, 0.001


@dataclass(frozen=True)
class Run:
    statistics: Statistics
    requests: list[LoggedRequest]
    job: Path


FRONTIERS = {
    "sydney": ["frontier=sydney", "sydney.sample=16"],
    "irlbot": ["frontier=irlbot", "budget.base=3"],
}


@pytest.fixture(scope="module")
def webs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningWeb]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                running_web(spec, https=True, log_path=tmp_path_factory.mktemp("web") / "requests.log")
            )
            for name, spec in SPECS.items()
        }


@pytest.fixture(scope="module")
def runs(webs: dict[str, RunningWeb], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A crawl in every order."""
    found = {}
    for name, chosen in FRONTIERS.items():
        served = webs[name]
        options = [f"{setting}={value}" for setting, value in served.settings().items()]
        options += ["scope.level=web", "seed=5", "memory=64MB", "archive.recent_digests=10000", *chosen]
        options += [
            f"politeness.host_delay={HOST_DELAY * 1000:g}ms",
            f"politeness.server_delay={SERVER_DELAY * 1000:g}ms",
            "politeness.slow_factor=0",
        ]
        job = tmp_path_factory.mktemp("crawl") / "job"
        statistics = crawl(served.web.seeds(1), job, load_settings(options=options))
        assert served.log_path is not None
        found[name] = Run(statistics, read_log(served.log_path), job)
    return found


@pytest.mark.parametrize("name", FRONTIERS)
def test_exactly_the_reachable_and_allowed_pages_are_fetched(
    webs: dict[str, RunningWeb], runs: dict[str, Run], name: str
) -> None:
    served = webs[name]
    run, truth = runs[name], served.web.reachable_urls(served.web.seeds(1))
    assert len(truth) > SPECS[name].pages * 3 / 4
    pages = Counter(archived(run.job, "pages"))
    assert set(pages) == truth
    assert max(pages.values()) == 1
    assert run.statistics.pages == len(truth)
    assert run.statistics.stopped_by == "done"
    assert run.statistics.failed == {}
    phases = run.statistics.phases
    assert all(
        phases[name] > 0 for name in ("sockets", "read", "links", "warc", "journal", "frontier", "close")
    )
    assert sum(phases.values()) <= run.statistics.cpu_seconds + 0.001  # to which they are rounded


@pytest.mark.parametrize("name", FRONTIERS)
def test_the_servers_saw_nothing_else_and_nothing_disallowed(
    webs: dict[str, RunningWeb], runs: dict[str, Run], name: str
) -> None:
    requests = runs[name].requests
    pages = Counter((entry.host, entry.path) for entry in requests if not _is_robots(entry))
    assert len(pages) == runs[name].statistics.pages
    assert max(pages.values()) == 1
    assert all(entry.status == 200 for entry in requests if not _is_robots(entry))
    asked = Counter(entry.host for entry in requests if entry.path == "/robots.txt")
    assert set(asked) == {entry.host for entry in requests}
    assert max(asked.values()) == 1


@pytest.mark.parametrize("name", FRONTIERS)
def test_no_host_and_no_server_was_asked_too_soon(
    webs: dict[str, RunningWeb], runs: dict[str, Run], name: str
) -> None:
    last_host: dict[str, float] = {}
    last_server: dict[str, float] = {}
    shortest_host = shortest_server = math.inf
    for entry in runs[name].requests:
        delay = max(HOST_DELAY, webs[name].web.crawl_delay(entry.host) or 0.0)
        # Before its robots.txt arrived nobody could know of a Crawl-delay; after it, it holds.
        shortest_host = min(shortest_host, (entry.time - last_host.get(entry.host, -math.inf)) / delay)
        shortest_server = min(shortest_server, entry.time - last_server.get(entry.address, -math.inf))
        last_host[entry.host] = last_server[entry.address] = entry.time
    assert shortest_host >= 1.0
    assert shortest_server >= SERVER_DELAY


def test_the_counters_add_up(runs: dict[str, Run]) -> None:
    for run in runs.values():
        one = run.statistics
        ends = one.pages + one.redirects + one.queued + one.deferred + one.in_flight + one.dropped
        assert one.discovered == ends + sum(one.refused.values()) + sum(one.failed.values())
        assert one.unique_urls == one.discovered
        assert one.refused["robots"] > 0


def test_every_warc_is_sound(runs: dict[str, Run]) -> None:
    for run in runs.values():
        assert check_warcs(run.job) >= 2 * run.statistics.pages


def _is_robots(entry: LoggedRequest) -> bool:
    return "robots" in entry.path
