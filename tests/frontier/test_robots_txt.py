"""robots.txt in the frontier: how long it is trusted, and what holds when it cannot be had."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from barkspider.core.events import (
    FetchPage,
    HostResolved,
    PageFetched,
    ResolveHost,
    RobotsFetched,
)
from barkspider.core.settings import Politeness, Settings, Trace
from barkspider.frontier import Driver
from barkspider.frontier.decisions import Decisions
from barkspider.frontier.politeness.hosts import Origin
from barkspider.frontier.ready import Ready
from barkspider.frontier.robots.rules import learn, miss, rules_of
from barkspider.url import DISALLOW_ALL, RobotsRules
from tests.frontier.virtual import VirtualWeb, batch, row

HOUR, DAY = 3600.0, 86_400.0
SITE = "http://a.example"
Make = Callable[..., Driver]


def chain(length: int, **pages: Any) -> dict[str, Any]:
    """Pages of one site that must be fetched one after the other."""
    return {f"{SITE}/{n}": [f"{SITE}/{n + 1}"] if n + 1 < length else [] for n in range(length)} | pages


def test_robots_txt_is_asked_first_and_obeyed(sydney: Make) -> None:
    pages = {"http://a.example/": ["http://a.example/no/1", "http://a.example/yes", "http://b.example/"]}
    web = VirtualWeb(pages, robots={"http://a.example": b"User-agent: *\nDisallow: /no"})
    frontier = sydney()
    web.run(frontier, batch("http://a.example/"))
    assert web.requests[0][3] == "http://a.example/robots.txt"
    assert "http://a.example/no/1" not in web.fetched()
    assert frontier.counters.refused == {"robots": 1}
    assert web.times("http://a.example/robots.txt") == web.times("http://b.example/robots.txt") == 1


def test_crawl_delay_is_kept_and_too_long_a_one_ends_the_host(sydney: Make) -> None:
    pages = {f"http://a.example/{n}": [f"http://a.example/{n + 1}"] for n in range(5)}
    web = VirtualWeb(pages, robots={"http://a.example": b"User-agent: *\nCrawl-delay: 7"})
    web.run(sydney(), batch("http://a.example/0"))
    assert web.closest(by=1) >= 7
    web = VirtualWeb(pages, robots={"http://a.example": b"User-agent: *\nCrawl-delay: 3600"})
    frontier = sydney()
    web.run(frontier, batch("http://a.example/0"))
    assert web.fetched() == []
    assert frontier.counters.refused == {"crawl_delay": 1}


def test_robots_txt_of_a_redirect_counts_for_the_first_origin(sydney: Make) -> None:
    pages = {"http://a.example/": ["http://a.example/no", "http://b.example/no"], "http://b.example/no": []}
    robots = {
        "http://a.example": "http://b.example/rules.txt",
        "http://b.example/rules.txt": b"User-agent: *\nDisallow: /no",
    }
    web = VirtualWeb(pages, robots=robots)
    frontier = sydney()
    web.run(frontier, batch("http://a.example/"))
    assert "http://a.example/no" not in web.fetched()
    assert "http://b.example/no" in web.fetched()
    assert web.closest(by=1) >= 2.0


@pytest.mark.parametrize(
    "robots",
    [
        {"http://a.example": "http://gone.example/robots.txt"},
        {"http://a.example": "http://a.example/robots.txt"},
    ],
)
def test_a_robots_txt_that_leads_nowhere_is_as_good_as_none(sydney: Make, robots: dict[str, str]) -> None:
    web = VirtualWeb({"http://a.example/": []}, robots=robots, servers={"gone.example": "dns_no_name"})
    web.run(sydney(), batch("http://a.example/"))
    assert web.fetched() == ["http://a.example/"]
    assert web.times("http://a.example/robots.txt") <= 6


def test_an_unreachable_robots_txt_disallows_after_some_tries(sydney: Make) -> None:
    web = VirtualWeb({"http://a.example/": []}, robots={"http://a.example": 503})
    frontier = sydney(politeness__retries=2, politeness__retry_delay="10s")
    took = web.run(frontier, batch("http://a.example/"))
    assert web.fetched() == []
    assert web.times("http://a.example/robots.txt") == 3
    assert took >= 10 + 20
    assert frontier.counters.refused == {"robots_unreachable": 1}


def test_robots_txt_is_asked_again_when_it_is_old(sydney: Make) -> None:
    pages = {f"http://a.example/{n}": [f"http://a.example/{n + 1}"] for n in range(20)}
    web = VirtualWeb(pages)
    web.run(sydney(politeness__robots_expiry="15s"), batch("http://a.example/0"))
    assert web.times("http://a.example/robots.txt") == 3


@pytest.mark.parametrize(
    ("max_age", "kept"),
    [(None, DAY), (0.0, HOUR), (60.0, HOUR), (2 * HOUR, 2 * HOUR), (7 * DAY, DAY), (math.inf, DAY)],
)
def test_cache_control_is_honoured_between_an_hour_and_a_day(max_age: float | None, kept: float) -> None:
    origin = Origin(SITE)
    learn(origin, DISALLOW_ALL, max_age, Politeness(), now=5.0)
    assert origin.until == 5.0 + kept


def test_a_crawl_asks_again_when_the_answer_said_so(sydney: Make) -> None:
    frontier = sydney(politeness__host_delay="10m")
    web = VirtualWeb(chain(20), robots={SITE: b"User-agent: *\nDisallow: /x"}, ages={SITE: 2 * HOUR})
    web.run(frontier, batch(f"{SITE}/0"))
    times = [time for time, *_, url in web.requests if url.endswith("robots.txt")]
    assert len(times) == 2
    assert 2 * HOUR <= times[1] - times[0] < 2 * HOUR + 601


@pytest.mark.parametrize(
    ("status", "allowed"),
    [(200, False), (206, False), (302, True), (404, True), (410, True), (451, True)],
)
def test_an_answer_gives_rules(status: int, allowed: bool) -> None:
    rules = rules_of(status, b"User-agent: *\nDisallow: /x\n", "barkspider", SITE)
    assert rules is not None
    assert rules.allows("/x") == allowed


def test_a_disallow_of_another_origin_says_nothing_of_this_one(sydney: Make) -> None:
    body = b"User-agent: *\nDisallow: https://other.example/\nDisallow: http://a.example/x\n"
    pages = {"http://a.example/": ["http://a.example/x", "http://a.example/y"], "http://a.example/y": []}
    web = VirtualWeb(pages, robots={"http://a.example": body})
    web.run(sydney(), batch("http://a.example/"))
    assert sorted(web.fetched()) == ["http://a.example/", "http://a.example/y"]


@pytest.mark.parametrize("status", [0, 429, 500, 503, 599])
def test_trouble_gives_none(status: int) -> None:
    assert rules_of(status, b"User-agent: *\nDisallow: /x\n", "barkspider", SITE) is None


def test_old_rules_are_used_for_a_bounded_time_when_no_new_ones_can_be_had() -> None:
    origin, politeness = Origin(SITE), Politeness(park_time=600.0, robots_stale=7 * DAY, retries=2)
    rules = RobotsRules([(False, "/x")])
    learn(origin, rules, None, politeness, now=0.0)
    for now in (DAY, 2 * DAY, 7 * DAY - 1):
        assert miss(origin, politeness, now, turn=now + 30) == 0.0
        assert (origin.rules, origin.refusal, origin.until) == (rules, "robots", now + 30 + 600)
    assert miss(origin, politeness, 7 * DAY, 7 * DAY) == 60.0
    assert miss(origin, politeness, 7 * DAY + 60, 7 * DAY) == 120.0
    assert miss(origin, politeness, 7 * DAY + 180, 7 * DAY) == 0.0
    assert (origin.rules, origin.refusal) == (DISALLOW_ALL, "robots_unreachable")
    assert miss(origin, politeness, 8 * DAY, 8 * DAY) == 60.0  # what was made up here is no old copy
    learn(origin, rules, None, politeness, 9 * DAY)
    assert (origin.rules, origin.refusal, origin.failures) == (rules, "robots", 0)


def test_a_crawl_goes_on_by_the_old_rules(sydney: Make) -> None:
    pages = chain(10) | {f"{SITE}/3": [f"{SITE}/4", f"{SITE}/x"]}
    web = VirtualWeb(pages, robots={SITE: [b"User-agent: *\nDisallow: /x", 503]})
    frontier = sydney(politeness__robots_expiry="5s", politeness__park_time="5s")
    web.run(frontier, batch(f"{SITE}/0"))
    assert web.times(f"{SITE}/robots.txt") > 2
    assert web.fetched() == [f"{SITE}/{n}" for n in range(10)]
    assert frontier.counters.refused == {"robots": 1}


def test_who_answers_429_for_robots_txt_is_left_alone(sydney: Make) -> None:
    web = VirtualWeb(chain(3), robots={SITE: 429})
    frontier = sydney()
    web.run(frontier, batch(f"{SITE}/0"))
    assert web.fetched() == []
    assert frontier.counters.refused == {"robots_unreachable": 1}


def test_a_site_that_puts_us_off_for_ever_does_not_keep_the_crawl_from_ending(sydney: Make) -> None:
    web = VirtualWeb(chain(3), robots={SITE: 503})
    answer = web.answer

    def put_off(now: float, instruction: Any) -> Any:
        outcome = answer(now, instruction)
        if isinstance(outcome, RobotsFetched):
            return RobotsFetched(outcome.asked, 503, retry_after=1e9)
        return outcome

    web.answer = put_off  # type: ignore[method-assign]
    frontier = sydney(politeness__park_time="1s")
    took = web.run(frontier, batch(f"{SITE}/0"))
    assert 3 * DAY <= took < 4 * DAY
    assert web.times(f"{SITE}/robots.txt") == 3
    assert frontier.counters.refused == {"robots_unreachable": 1}


def test_trouble_with_robots_txt_slows_its_host_down(sydney: Make) -> None:
    web = VirtualWeb(chain(4), robots={SITE: [503, 503, b""]})
    web.run(sydney(politeness__retry_delay="1s"), batch(f"{SITE}/0"))
    times = [time for time, *_ in web.requests]
    pauses = [later - sooner for sooner, later in pairwise(times)]
    assert pauses == pytest.approx([4, 8, 4, 2, 2, 2], abs=0.1)


def test_a_new_robots_txt_may_ask_for_less(sydney: Make) -> None:
    asks = [b"User-agent: *\nCrawl-delay: 20", b"User-agent: *\nCrawl-delay: 5"]
    web = VirtualWeb(chain(8), robots={SITE: [*asks]})
    web.run(sydney(politeness__robots_expiry="50s"), batch(f"{SITE}/0"))
    times = [time for time, *_ in web.requests]
    pauses = [round(later - sooner) for sooner, later in pairwise(times)]
    assert pauses == [20, 20, 20, 20, 5, 5, 5, 5, 5]  # the fourth ends with the new file


@pytest.mark.parametrize(("hops", "obeyed"), [(5, True), (6, False)])
def test_five_redirects_are_followed(sydney: Make, hops: int, obeyed: bool) -> None:
    robots: dict[str, Any] = {SITE: f"{SITE}/r1"}
    robots |= {f"{SITE}/r{n}": f"{SITE}/r{n + 1}" for n in range(1, hops)}
    robots[f"{SITE}/r{hops}"] = b"User-agent: *\nDisallow: /"
    web = VirtualWeb(chain(1), robots=robots)
    web.run(sydney(), batch(f"{SITE}/0"))
    assert (f"{SITE}/0" not in web.fetched()) == obeyed
    assert web.closest(by=1) >= 2.0


def test_a_parked_host_comes_back_and_is_crawled_to_the_end(sydney: Make) -> None:
    pages: dict[str, Any] = chain(12)
    web = VirtualWeb(pages)
    answer = web.page

    def page(asked: Any, url: str) -> PageFetched:
        if 5 <= len(web.fetched()) <= 12:
            return PageFetched(asked, failure="connect_failed", temporary=True)
        return answer(asked, url)

    web.page = page  # type: ignore[method-assign]
    frontier = sydney(politeness__retries=20, politeness__retry_delay="1s")
    web.run(frontier, batch(f"{SITE}/0"))
    assert set(web.fetched()) == set(pages)
    assert frontier.counters.failed == {}
    times = [time for time, *_, url in web.requests if not url.endswith("robots.txt")]
    pauses = [round(later - sooner) for sooner, later in pairwise(times)]
    assert pauses[4:12] == [4, 8, 16, 32, 600, 1200, 2400, 4800]
    assert pauses[12:] == [256, 128, 64, 32, 16, 8, 4]


def test_a_redirect_back_to_another_host_lets_go_of_the_one_that_sent_it(sydney: Make) -> None:
    pages: dict[str, Any] = {
        "http://x.example/": "http://www.x.example/",
        "http://www.x.example/": "http://x.example/",
        "http://www.x.example/1": [],
        "http://y.example/": ["http://www.x.example/1"],
    }
    web = VirtualWeb(pages, slow={"http://y.example/": 60.0})
    frontier = sydney()
    web.run(frontier, batch("http://x.example/", "http://y.example/"))
    assert "http://www.x.example/1" in web.fetched()
    assert frontier.counters.failed == {"redirect_loop": 1}


def test_a_crawl_delay_learned_while_a_host_waits_for_its_server_is_kept() -> None:
    """robots.txt of a.example redirects to b.example, whose answer comes when a.example is next on its server."""
    put_off: list[Any] = []
    ready = Ready(Settings(seed=1), Decisions(Trace()), 100, lambda *what: put_off.append(what))
    addresses = {"a.example": "127.0.0.1", "b.example": "127.0.0.2", "c.example": "127.0.0.1"}

    def take(now: float) -> list[Any]:
        found = ready.take(now, 10)
        for instruction in found:
            if isinstance(instruction, ResolveHost):
                ready.resolved(HostResolved(instruction, (addresses[instruction.host],)), now)
        ready.validate()
        return [each for each in found if not isinstance(each, ResolveHost)]

    ready.put(row("http://a.example/"), 0.0)
    ready.put(row("http://c.example/"), 0.0)
    assert take(0.0) == []
    (robots_of_a,) = take(0.0)
    ready.robots(RobotsFetched(robots_of_a, 301, redirect="http://b.example/robots.txt"), 0.0)
    assert take(0.0) == []
    (robots_at_b,) = take(0.0)
    (robots_of_c,) = take(1.0)
    assert take(2.0) == []  # a.example is due, its server is busy
    ready.robots(RobotsFetched(robots_at_b, 200, b"User-agent: *\nCrawl-delay: 30"), 3.0)
    ready.robots(RobotsFetched(robots_of_c, 404), 5.0)
    assert take(6.0) == []
    assert [each.row.url for each in take(7.0)] == [b"http://c.example/"]
    assert take(32.9) == []
    ready.page_fetched(PageFetched(FetchPage(row("http://c.example/"), "127.0.0.1"), 200), 32.0)
    assert [each.row.url for each in take(33.0)] == [b"http://a.example/"]
    assert not put_off
