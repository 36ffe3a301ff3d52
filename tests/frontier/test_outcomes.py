"""What every frontier makes of failures and redirects, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barkspider.core.events import HostResolved, Instruction, Outcome, PageFetched, ResolveHost
from barkspider.frontier import Driver
from tests.frontier.virtual import Failure, VirtualWeb, batch

Make = Callable[..., Driver]


def test_temporary_failures_are_tried_again_with_growing_pauses(sydney: Make) -> None:
    pages: dict[str, Any] = {
        "http://a.example/": Failure("timeout_headers", times=2),
        "http://b.example/": Failure("x"),
    }
    web = VirtualWeb(pages)
    frontier = sydney(politeness__retries=2, politeness__retry_delay="10s")
    web.run(frontier, batch("http://a.example/", "http://b.example/"))
    times = [time for time, _, _, url in web.requests if url == "http://a.example/"]
    assert [
        later - sooner >= pause for sooner, later, pause in zip(times, times[1:], (10, 20), strict=False)
    ] == [True] * 2
    assert (frontier.counters.pages, frontier.counters.failed) == (1, {"x": 1})
    assert web.times("http://b.example/") == 3


def test_retry_after_is_kept(sydney: Make) -> None:
    pages: dict[str, Any] = {
        "http://a.example/1": Failure("http_429", times=1, retry_after=100.0),
        "http://a.example/2": [],
    }
    web = VirtualWeb(pages)
    web.run(sydney(), batch("http://a.example/1", "http://a.example/2"))
    first, second, *_ = (time for time, _, _, url in web.requests if not url.endswith("robots.txt"))
    assert second - first >= 100


def test_a_failing_host_is_left_alone_for_a_while(sydney: Make) -> None:
    pages: dict[str, Any] = {f"http://a.example/{n}": Failure("connect_failed") for n in range(6)}
    web = VirtualWeb(pages)
    frontier = sydney(politeness__retries=0, politeness__park_after=5, politeness__park_time="10m")
    web.run(frontier, batch(*pages))
    times = [time for time, *_, url in web.requests if not url.endswith("robots.txt")]
    assert times[4] < 90  # pauses of 4, 8, 16 and 32 s
    assert times[5] - times[4] >= 600
    assert frontier.counters.failed == {"connect_failed": 6}


def test_when_nobody_is_there_the_next_address_is_tried(sydney: Make) -> None:
    class TwoAddresses(VirtualWeb):
        """A name whose addresses take turns; nobody is at the first."""

        lookups = 0

        def answer(self, now: float, instruction: Instruction) -> Outcome:
            if isinstance(instruction, ResolveHost):
                self.lookups += 1
                return HostResolved(instruction, ("127.0.0.1",) if self.lookups % 2 else ("127.0.0.2",))
            found = super().answer(now, instruction)
            if isinstance(found, PageFetched) and found.asked.address == "127.0.0.1":
                return PageFetched(found.asked, failure="connect_failed", temporary=True)
            return found

    web = TwoAddresses({"http://a.example/": []})
    frontier = sydney(politeness__obey_robots=False)
    web.run(frontier, batch("http://a.example/"))
    assert frontier.counters.pages == 1
    assert [address for _, _, address, _ in web.requests] == ["127.0.0.1", "127.0.0.2"]


@pytest.mark.parametrize("error", ["dns_no_name", "dns_failure"])
def test_a_name_that_does_not_resolve_fails_its_urls(sydney: Make, error: str) -> None:
    web = VirtualWeb({}, servers={"a.example": error})
    frontier = sydney()
    web.run(frontier, batch("http://a.example/1", "http://a.example/2"))
    assert frontier.counters.failed == {error: 2}


def test_a_dead_connection_costs_another_turn_and_nothing_else(sydney: Make) -> None:
    pages = {"http://a.example/": ["http://a.example/1"], "http://a.example/1": []}
    web = VirtualWeb(pages, stale={"http://a.example/", "http://a.example/robots.txt"})
    frontier = sydney()
    web.run(frontier, batch("http://a.example/"))
    assert web.times("http://a.example/") == web.times("http://a.example/robots.txt") == 2
    assert web.closest(by=1) >= 2.0
    assert (frontier.counters.pages, frontier.counters.failed) == (2, {})


def test_redirects_are_links_and_chains_end(sydney: Make) -> None:
    pages: dict[str, Any] = {"http://a.example/0": ["http://a.example/end"], "http://a.example/end": []}
    pages |= {f"http://a.example/{n}": f"http://a.example/{n + 1}" for n in range(1, 30)}
    web = VirtualWeb(pages)
    frontier = sydney(limits__redirects=10, politeness__host_delay="0s")
    web.run(frontier, batch("http://a.example/0", "http://a.example/1"))
    assert "http://a.example/11" in web.fetched()
    assert "http://a.example/12" not in web.fetched()
    assert frontier.counters.failed == {"too_many_redirects": 1}


def test_a_redirect_to_its_own_source_is_fetched_once_more_as_written(sydney: Make) -> None:
    pages: dict[str, Any] = {
        "http://a.example/": "http://a.example/index.html",
        "http://a.example/index.html": ["http://a.example/in"],
        "http://a.example/in": [],
        "http://b.example/": "http://b.example/index.html",
        "http://b.example/index.html": "http://b.example/index.html",
    }
    web = VirtualWeb(pages)
    frontier = sydney()
    web.run(frontier, batch("http://a.example/", "http://b.example/"))
    assert web.fetched().count("http://a.example/index.html") == 1
    assert "http://a.example/in" in web.fetched()
    assert web.fetched().count("http://b.example/index.html") == 1
    assert frontier.counters.failed == {"redirect_loop": 1}


def test_a_redirect_back_along_its_chain_is_fetched_once_more(sydney: Make) -> None:
    web = VirtualWeb(
        {"http://x.example/": "http://www.x.example/", "http://www.x.example/": "http://x.example/"}
    )
    frontier = sydney()
    web.run(frontier, batch("http://x.example/"))
    assert web.fetched() == ["http://x.example/", "http://www.x.example/", "http://x.example/"]
    assert frontier.counters.failed == {"redirect_loop": 1}
