"""Each hazard of the synthetic web, crawled over real sockets with short deadlines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from barkspider import Statistics, crawl, load_settings
from barkspider.lab.synthweb import HAZARDS, LoggedRequest, RunningWeb, WebSpec, read_log, running_web
from tests.engine.warcs import archived, check_warcs

SPEC = WebSpec(
    seed=4, pages=200, page_bytes=2_000, slow_delay=0.1, hang=3.0, retry_after=1, hazards=frozenset(HAZARDS)
)
SHORT = [
    "politeness.host_delay=1ms",
    "politeness.server_delay=0s",
    "politeness.slow_factor=0",
    "politeness.retry_delay=200ms",
    "politeness.park_time=100ms",
    "politeness.max_retry_after=2s",
    "fetch.timeout=800ms",
    "fetch.header_timeout=500ms",
    "fetch.connect_timeout=500ms",
    "dns.timeout=200ms",
    "dns.tries=1",
    "limits.grace=0s",
    "limits.time=20s",
    "seed=9",
    "memory=64MB",
    "archive.recent_digests=1000",
]


@dataclass(frozen=True)
class Found:
    statistics: Statistics
    urls: list[str]  # archived, in order
    requests: list[LoggedRequest]
    names: list[str]  # the hazard's domains


Crawler = Callable[..., Found]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    with running_web(SPEC, https=True, log_path=tmp_path_factory.mktemp("web") / "requests.log") as web:
        yield web


@pytest.fixture
def crawler(served: RunningWeb, tmp_path: Path) -> Crawler:
    def run(hazard: str, *options: str) -> Found:
        found = served.web.hazards[hazard]
        settings = [f"{name}={value}" for name, value in served.settings().items()]
        assert served.log_path is not None
        before = len(read_log(served.log_path))
        job = tmp_path / hazard
        statistics = crawl(found.entries(), job, load_settings(options=[*settings, *SHORT, *options]))
        check_warcs(job)
        one = statistics
        ends = one.pages + one.redirects + one.queued + one.deferred + one.in_flight + one.dropped
        assert one.discovered == ends + sum(one.refused.values()) + sum(one.failed.values())
        return Found(statistics, archived(job, "pages"), read_log(served.log_path)[before:], found.names)

    return run


@pytest.mark.parametrize("frontier", ["sydney", "irlbot"])
def test_every_redirect_leads_to_its_page(crawler: Crawler, frontier: str) -> None:
    found = crawler("redirects", f"frontier={frontier}")
    home, index, bare, session, cookie = found.names
    for name in (index, bare, session, cookie):  # the four that normalising would lose
        assert {f"http://{name}/page-{number}.html" for number in range(1, 6)} <= set(found.urls)
    targets = {f"http://www.{home}/target-{number}.html" for number in range(1, 7)}
    assert targets <= set(found.urls)
    assert f"https://www.{home}/secure" in found.urls
    assert f"http://www.{home}/chain-0" in found.urls
    assert f"http://www.{home}/chain-19" not in found.urls  # the long chain was given up
    # Over http and, from /secure on, over https. /self is a loop in any case; /loop-a and /loop-b, which are linked to
    # both, are one only if the one is fetched after the other has led to it.
    failed = found.statistics.failed
    assert failed.keys() == {"redirect_loop", "too_many_redirects"}
    assert (2 <= failed["redirect_loop"] <= 4, failed["too_many_redirects"]) == (True, 2)
    assert found.statistics.stopped_by == "done"


def test_busy_servers_are_asked_again_when_they_said(crawler: Crawler) -> None:
    found = crawler("throttled", "limits.time=6s")
    refused: dict[tuple[str, str], float] = {}
    waits = []
    for entry in found.requests:
        if entry.status in (429, 503):
            refused[entry.host, entry.path] = entry.time
        elif entry.path != "/robots.txt":
            waits.append(entry.time - refused[entry.host, entry.path])
    assert len(waits) > 8
    assert min(waits) >= 1.0  # all four ways of saying it, one of them absurd and one nonsense
    assert {entry.host for entry in found.requests} == {f"www.{name}" for name in found.names}
    assert found.statistics.failed == {}


def test_types_are_judged_by_content(crawler: Crawler) -> None:
    found = crawler("wrong_types")
    (name,) = found.names
    assert {f"http://www.{name}/doc-{number}.html" for number in (10, 11, 12, 13)} <= set(found.urls)
    assert f"http://www.{name}/image.html" in found.urls
    assert f"http://www.{name}/ghost.html" not in found.urls  # a link inside of a picture


def test_dead_servers_cost_only_their_own_pages(crawler: Crawler) -> None:
    found = crawler("dead")
    assert found.statistics.stopped_by == "done"
    assert found.statistics.failed == {"dns_no_name": 1, "dns_failure": 1}
    # Robots.txt of the two servers that refuse or hang up could not be had, so their pages are not asked for.
    assert found.statistics.refused == {"robots_unreachable": 2}
    cut = [url for url in found.urls if url.startswith(f"http://www.{found.names[4]}/")]
    assert cut  # what came before the connection broke is kept
    assert found.statistics.pages == len(cut)


def test_slow_servers_end_by_deadline(crawler: Crawler) -> None:
    found = crawler("slow", "limits.time=4s")
    hosts = Counter(url.split("/")[2] for url in found.urls)
    waits, headers, bodies = (f"www.{name}" for name in found.names)
    assert hosts[waits] > 1
    assert hosts[headers] == 0
    assert hosts[bodies] > 0  # cut off and kept
    assert set(found.statistics.failed) <= {"timeout_headers"}


def test_no_page_is_fetched_where_robots_txt_is_broken(crawler: Crawler) -> None:
    found = crawler("broken_robots")
    assert found.urls == []
    assert found.statistics.refused == {"robots_unreachable": 4}
    assert all(entry.path == "/robots.txt" for entry in found.requests)


def test_session_ids_do_not_multiply_pages(crawler: Crawler) -> None:
    found = crawler("session_ids")
    assert found.statistics.stopped_by == "done"
    assert len(found.urls) == len(set(found.urls)) == found.statistics.pages
    assert not any("PHPSESSID" in url for url in found.urls)


def test_listings_are_fetched_in_one_order_only(crawler: Crawler) -> None:
    found = crawler("listings")
    assert found.statistics.stopped_by == "done"
    assert not any("?" in url for url in found.urls)


def test_growing_paths_end_by_length(crawler: Crawler) -> None:
    found = crawler("growing_paths", "url.max_length=70")
    assert found.statistics.stopped_by == "done"
    assert found.statistics.out_of_scope["too_long"] > 0
    assert max(map(len, found.urls)) <= 70


@pytest.mark.parametrize("frontier", ["sydney", "irlbot"])
@pytest.mark.parametrize("hazard", ["spam_farm", "calendar", "wildcard_dns", "mirrors", "soft_404"])
def test_endless_and_duplicate_places_are_crawled_within_limits(
    crawler: Crawler, hazard: str, frontier: str
) -> None:
    found = crawler(hazard, "limits.pages=60", f"frontier={frontier}")
    assert found.statistics.pages == 60 or found.statistics.stopped_by == "done"
    assert len(found.urls) == len(set(found.urls))
    assert set(found.statistics.failed) <= {"http_404"}


def test_a_site_limit_ends_a_trap(crawler: Crawler) -> None:
    found = crawler("calendar", "limits.site_urls=25")
    assert found.statistics.stopped_by == "done"
    assert found.statistics.pages <= 25
    assert found.statistics.refused["site_limit"] >= 1
