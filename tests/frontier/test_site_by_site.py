"""Site by site, on a virtual clock: what is fetched, in which order, by whom."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.events import CheckIn, FetchPage, LeaseLost, Outcome, Ruled, Seeds
from barkspider.core.records import Flag
from barkspider.frontier import Driver
from barkspider.sites import Registry, State
from barkspider.sites.database import Sqlite
from tests.frontier.conftest import make_frontier
from tests.frontier.test_rulings import run
from tests.frontier.virtual import Failure, VirtualWeb, batch, random_web, row

Start = Callable[..., Driver]


@pytest.fixture
def start(tmp_path: Path) -> Any:
    """Makes frontiers that go by sites, with changed settings."""
    made: list[Driver] = []

    def make(**changes: Any) -> Driver:
        made.append(make_frontier(tmp_path / f"frontier {len(made)}", frontier="site", **changes))
        return made[-1]

    yield make
    for frontier in made:
        frontier.close()


@pytest.fixture
def registry(tmp_path: Path) -> Any:
    made = Registry(Sqlite(tmp_path / "sites.db"), lease=1e9, tries=3)
    yield made
    made.close()


@pytest.mark.parametrize("at_once", [1, 4, 500])
def test_every_page_is_fetched_once_however_many_sites_there_are_at_once(
    start: Start, registry: Registry, at_once: int
) -> None:
    pages = random_web(hosts=20, pages=300, links=12, seed=at_once)
    web = VirtualWeb(pages, registry=registry)
    frontier = start(site__at_once=at_once)
    most = 0
    step = frontier.step

    def watched(now: float, outcomes: Any) -> Any:
        nonlocal most
        found = step(now, outcomes)
        most = max(most, frontier.gauges()["sites"])
        return found

    frontier.step = watched  # type: ignore[method-assign]
    web.run(frontier, batch("http://h0.example/0", flags=Flag.SEED))
    assert sorted(web.fetched()) == sorted(pages)
    assert registry.counts() == {"crawled": 20}
    assert most <= at_once
    assert sum(site["pages"] for site in registry.sites()) == frontier.counters.pages == 300


def test_a_site_is_crawled_breadth_first(start: Start, registry: Registry) -> None:
    home = "http://a.example/"
    pages = {home: [f"{home}{each}" for each in "abc"]}
    pages |= {f"{home}{each}": [f"{home}{each}/{deeper}" for deeper in "xy"] for each in "abc"}
    pages |= {f"{home}{each}/{deeper}": [] for each in "abc" for deeper in "xy"}
    web = VirtualWeb(pages, registry=registry)
    web.run(start(), batch(home, flags=Flag.SEED))
    assert [url.count("/") for url in web.fetched()] == [3] * 4 + [4] * 6


def test_sites_of_seeds_come_before_those_that_were_found(start: Start, registry: Registry) -> None:
    seeds = [f"http://seed{number}.example/" for number in range(6)]
    found = [f"http://found{number}.example/" for number in range(6)]
    web = VirtualWeb(dict.fromkeys(seeds, found) | dict.fromkeys(found, ()), registry=registry)
    web.run(start(site__at_once=2), batch(*seeds, flags=Flag.SEED))
    order = web.fetched()
    assert set(order[:6]) == set(seeds)
    assert set(order[6:]) == set(found)


def test_a_site_has_no_more_urls_than_it_may(start: Start, registry: Registry) -> None:
    home = "http://a.example/"
    pages = {home: [f"{home}{each}" for each in range(30)], **{f"{home}{each}": [] for each in range(30)}}
    web = VirtualWeb(pages, registry=registry)
    frontier = start(limits__site_urls=8)
    web.run(frontier, batch(home, flags=Flag.SEED))
    assert len(web.fetched()) == 8
    assert frontier.counters.refused == {"site_limit": 23}


def test_a_site_that_does_not_answer_is_tried_again_behind_all_others_and_then_left(
    start: Start, registry: Registry
) -> None:
    sites = [f"http://a{number}.example/" for number in range(5)]
    web = VirtualWeb({**dict.fromkeys(sites, ()), "http://lost.example/": []}, registry=registry)
    web.servers = {"lost.example": "dns_no_name"}
    frontier = start(site__at_once=1)
    web.run(frontier, batch("http://lost.example/", *sites, flags=Flag.SEED))
    assert frontier.counters.failed == {"dns_no_name": 3}
    (left,) = registry.sites([State.LEFT])
    assert (left["name"], left["reason"], left["visits"], left["tries"]) == (
        "lost.example",
        "dns_no_name",
        3,
        3,
    )
    assert registry.counts() == {"crawled": 5, "left": 1}


def test_what_is_missing_on_a_site_that_answers_is_no_failure_of_the_site(
    start: Start, registry: Registry
) -> None:
    web = VirtualWeb({"http://a.example/": Failure("http_404", temporary=False)}, registry=registry)
    web.run(start(), batch("http://a.example/", flags=Flag.SEED))
    assert registry.counts() == {"crawled": 1}
    assert web.fetched() == ["http://a.example/"]


@pytest.mark.parametrize("blocked", [True, False])
def test_a_site_that_may_not_be_crawled_is_no_failure_either(
    start: Start, registry: Registry, blocked: bool
) -> None:
    web = VirtualWeb({"http://a.example/": []}, registry=registry)
    web.robots = {} if blocked else {"http://a.example": b"User-agent: *\nDisallow: /"}
    frontier = start()
    ruled: dict[float, Any] = {0.0: Ruled((("block", "a.example"),))} if blocked else {}
    run(web, frontier, ruled | {0.1: Seeds(batch("http://a.example/", flags=Flag.SEED))})
    (site,) = registry.sites()
    assert (site["state"], site["visits"], site["refused"], site["failed"]) == ("crawled", 1, 1, 0)
    assert frontier.counters.refused == ({"blocked": 1} if blocked else {"robots": 1})


def test_what_a_rule_has_held_is_fetched_while_its_site_is_here(start: Start, registry: Registry) -> None:
    links = [f"http://a.example/{number}" for number in range(6)]
    web = VirtualWeb({"http://a.example/": links} | {link: [] for link in links}, registry=registry)
    frontier = start(politeness__host_delay="2s")
    rule = "http://a.example/1"
    seeds = Seeds(batch("http://a.example/", flags=Flag.SEED))
    run(web, frontier, {0.0: Ruled((("block", rule),)), 0.1: seeds, 9.0: Ruled((("unblock", rule),))})
    assert sorted(web.fetched()) == ["http://a.example/", *links]
    assert web.fetched()[-1] == rule
    (site,) = registry.sites()
    assert (site["state"], site["visits"], site["pages"], site["refused"]) == ("crawled", 1, 7, 0)


def test_a_link_that_is_found_after_its_site_was_crawled_is_followed(
    start: Start, registry: Registry
) -> None:
    pages = {
        "http://a.example/": ["http://b.example/"],
        "http://b.example/": ["http://a.example/orphan", "http://a.example/"],
        "http://a.example/orphan": ["http://a.example/deeper"],
        "http://a.example/deeper": [],
    }
    web = VirtualWeb(pages, registry=registry)
    web.run(start(site__at_once=1), batch("http://a.example/", flags=Flag.SEED))
    assert web.fetched() == [*pages]
    assert {site["name"]: site["visits"] for site in registry.sites()} == {"a.example": 2, "b.example": 1}


def test_a_lost_site_is_dropped_and_its_pages_count_where_it_is_crawled(
    start: Start, registry: Registry
) -> None:
    """Its lease is over in the middle of the visit, and somebody else has got it."""
    home = "http://a.example/"
    pages = {home: [f"{home}{each}" for each in range(9)], **{f"{home}{each}": [] for each in range(9)}}
    web = VirtualWeb(pages, registry=registry)
    frontier, key = start(), row(home).host_key
    web.run(frontier, batch(home, flags=Flag.SEED), until=9.0)
    assert frontier.leases is not None
    fence = frontier.leases[key]
    assert registry.free("a.example") == 1
    (site,), _ = registry.check_out("another", 1)
    frontier.step(10.0, [LeaseLost(((key, fence),))])
    frontier.validate()
    assert frontier.leases == {}
    now, late = 10.0, list[Outcome]()
    for _ in range(20):  # the request that was under way ends, and nothing more is asked for
        instructions, wake = frontier.step(now, late)
        frontier.validate()
        assert not any(isinstance(each, FetchPage) for each in instructions)
        late = [web.answer(now, each) for each in instructions]
        now = now + 0.1 if late else min(wake, now + 1)
    assert registry.sites()[0]["pages"] == 0
    assert site.fence > fence
    assert frontier.counters.refused["lease_lost"] + len(web.fetched()) == 10


def test_what_a_process_checks_in_too_late_does_not_count(start: Start, registry: Registry) -> None:
    web = VirtualWeb({"http://a.example/": []}, registry=registry)
    frontier = start()
    answer = web.answer

    def taken_before(now: float, instruction: Any) -> Any:
        if isinstance(instruction, CheckIn) and instruction.key:
            registry.free("a.example")
            registry.check_out("another", 1)
        return answer(now, instruction)

    web.answer = taken_before  # type: ignore[method-assign]
    web.run(frontier, batch("http://a.example/", flags=Flag.SEED), until=30.0)
    assert frontier.gauges()["sites_lost"] == 1
    assert frontier.gauges()["sites_checked_in"] == registry.sites()[0]["pages"] == 0


def test_a_process_that_begins_before_there_are_sites_gets_some_later(
    start: Start, registry: Registry
) -> None:
    web = VirtualWeb({"http://a.example/": []}, registry=registry)
    early = start(parallel__processes=2, parallel__mode="independent")
    instructions, _ = early.step(0.0, [])
    _, wake = early.step(0.1, [web.answer(0.0, each) for each in instructions])
    assert early.finished()
    assert wake <= 1.2
    web.answer(0.5, CheckIn(0, 1, batch("http://a.example/", flags=Flag.SEED)))
    instructions, _ = early.step(wake, [])
    early.step(wake + 0.1, [web.answer(wake, each) for each in instructions])
    assert len(early.leases or ()) == 1
    assert not early.finished()


@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_never_have_a_site_at_once(
    start: Start, registry: Registry, processes: int
) -> None:
    pages = random_web(hosts=20, pages=300, links=12, seed=processes)
    webs = [VirtualWeb(pages, registry=registry, owner=f"process {number}") for number in range(processes)]
    frontiers = [start(site__at_once=3) for _ in range(processes)]
    order, now = count(), 0.0
    seeds: Outcome = Seeds(batch("http://h0.example/0", flags=Flag.SEED))
    coming: list[tuple[float, int, int, Outcome]] = [(0.0, next(order), 0, seeds)]
    wakes = [0.0] * processes
    while not all(frontier.finished() for frontier in frontiers):
        for number, frontier in enumerate(frontiers):
            mine = [each for each in coming if each[0] <= now and each[2] == number]
            coming = [each for each in coming if each not in mine]
            instructions, wakes[number] = frontier.step(now, [outcome for *_, outcome in sorted(mine)])
            for each in instructions:
                answer = webs[number].answer(now, each)
                heapq.heappush(coming, (now + 0.01, next(order), number, answer))
        held = Counter(key for frontier in frontiers for key in frontier.leases or ())
        assert max(held.values(), default=1) == 1
        now = max(now, min([*wakes, *(each[0] for each in coming)]))
    fetched = [url for web in webs for url in web.fetched()]
    assert sorted(fetched) == sorted(pages)
    assert all(web.fetched() for web in webs)
    assert registry.counts() == {"crawled": 20}
