"""robots.txt on disk: which URLs may go on, which wait, and whom we ask."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.records import UrlRow
from barkspider.frontier.robots.permit import Permit
from barkspider.frontier.robots.permits import Permits
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.store.manifest import Store
from barkspider.url import ALLOW_ALL, DISALLOW_ALL, KeyMaker, RobotsRules
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")
KEYS = KeyMaker(7)
SMALL = Sizing(2, 4096, 1000, 1 << 20)
LARGE = Sizing(1, 1 << 20, 1 << 24, 1 << 28)


def opened(env: FaultyEnv, sizing: Sizing = SMALL, **changes: Any) -> tuple[Store, Permits]:
    store = Store.open(env, FOLDER)
    permits = Permits(
        env,
        FOLDER,
        KEYS,
        sizing=sizing,
        requested_sizing=sizing,
        background=False,
        state=store.state,
        **changes,
    )
    for structure in permits.structures:
        store.add(structure)
    return store, permits


def site(number: int) -> str:
    return f"http://{number}.example"


def urls(sites: list[int], start: int = 0) -> UrlBatch:
    rows = [
        UrlRow(start + place, number, 3, place % 7, 1, 0, 4, f"{site(number)}/{start + place}".encode(), 9, 8)
        for place, number in enumerate(sites)
    ]
    return UrlBatch.from_rows(rows)


def taken(permits: Permits, now: float) -> dict[int, Permit]:
    """The permit of each URL that comes out, by its key; each only once, and with its own columns."""
    found: dict[int, Permit] = {}
    for block in permits.permitted(now):
        rows = 0
        for name, permit, group_rows in block:
            assert permit.until > now
            for row in group_rows:
                assert row.url == f"{name}/{row.key}".encode()
                assert name == site(row.host_key)
                assert row.parent == 9
                assert row.key not in found
                found[row.key] = permit
                rows += 1
        assert rows == len(block)
    permits.validate()
    return found


def round_trip(permits: Permits, now: float) -> dict[int, Permit]:
    """One merge of each DRUM, and what it lets through."""
    permits.merge()
    found = taken(permits, now)
    permits.merge()
    return found


def allowed(now: float, life: float = 100.0) -> Permit:
    return Permit.of(ALLOW_ALL, now, now + life)


def test_urls_of_an_unknown_origin_come_out_when_its_answer_is_known() -> None:
    _, permits = opened(FaultyEnv())
    permits.check(urls([1, 2, 1]))
    assert (permits.waiting, permits.pending) == (3, 2)
    assert round_trip(permits, 10.0) == {}
    assert sorted(permits.asks(10)) == [site(1), site(2)]
    assert (permits.asked, permits.waiting, permits.asks(10)) == (2, 3, [])
    rules = RobotsRules([(False, "/x"), (True, "/x/*.html$")], crawl_delay=3.0)
    permits.learn(site(1), Permit.of(rules, 11.9, 50.0))
    permits.learn(site(2), Permit.of(DISALLOW_ALL, 12.0, 60.0, unreachable=True))
    assert round_trip(permits, 13.0) == {}
    found = round_trip(permits, 13.0)
    assert sorted(found) == [0, 1, 2]
    assert found[0] == found[2] == Permit.of(rules, 11, 50)
    assert (found[0].rules.allows("/x/a"), found[0].rules.crawl_delay) == (False, 3.0)
    assert (found[1].rules, found[1].unreachable, found[1].learned) == (DISALLOW_ALL, True, 12)
    assert (permits.asked, permits.waiting, permits.pending, permits.origins) == (0, 0, 0, 2)
    assert permits.gauges()["one_trip"] == 3


def test_rules_expire_and_are_asked_for_again() -> None:
    _, permits = opened(FaultyEnv())
    permits.learn(site(1), allowed(0.0))
    permits.check(urls([1]))
    assert sorted(round_trip(permits, 99.0)) == [0]
    permits.check(urls([1], 1))
    assert round_trip(permits, 100.0) == {}
    assert permits.asks(10) == [site(1)]
    permits.learn(site(1), allowed(101.0))
    round_trip(permits, 101.0)
    assert round_trip(permits, 101.0) == {1: allowed(101.0)}
    # The answer to the last ask is what is outdated now: no need to wait until that ask expires.
    permits.check(urls([1], 2))
    assert round_trip(permits, 201.0) == {}
    assert permits.asks(10) == [site(1)]


def test_an_ask_without_an_answer_is_made_once_until_it_expires() -> None:
    _, permits = opened(FaultyEnv(), expiry=1000.0)
    asked = []
    for now in (0.0, 500.0, 999.0, 1000.0, 1001.0, 1999.0, 2000.0):
        permits.check(urls([1], int(now)))
        round_trip(permits, now)
        found = permits.asks(10)
        asked += [now] * len(found)
        for name in found:
            permits.put_off(name)
    assert asked == [0.0, 1000.0, 2000.0]
    assert permits.waiting == 7


def test_an_ask_that_is_under_way_is_not_handed_out_twice() -> None:
    _, permits = opened(FaultyEnv(), expiry=1000.0)
    for now in (0.0, 1000.0):
        permits.check(urls([1], int(now)))
        round_trip(permits, now)
    assert permits.asks(10) == [site(1)]
    assert (permits.asked, permits.gauges()["to_ask"]) == (1, 0)


def test_asks_that_are_not_settled_are_handed_out_again_after_a_crash() -> None:
    env = FaultyEnv()
    store, permits = opened(env)
    permits.check(urls([1, 2, 3, 4]))
    round_trip(permits, 0.0)
    asked = permits.asks(3)
    permits.learn(asked[1], allowed(1.0))
    store.commit()
    permits.learn(asked[0], allowed(2.0))
    permits.asks(1)
    permits.close()
    _, permits = opened(env.crash("drop", Random(1)))
    permits.validate()
    assert permits.asked == 2
    again = permits.asks(10)
    assert again[:2] == [asked[0], asked[2]]
    assert sorted([*again, asked[1]]) == [site(number) for number in (1, 2, 3, 4)]
    for name in again:
        permits.learn(name, allowed(3.0))
    round_trip(permits, 4.0)
    assert sorted(round_trip(permits, 4.0)) == [0, 1, 2, 3]
    assert permits.gauges()["one_trip"] == 4


def test_an_answer_that_came_before_a_crash_is_not_asked_for_after_it() -> None:
    """The checkpoint has URLs that are to be checked; the ask and its answer came later, and are replayed."""
    env = FaultyEnv()
    store, permits = opened(env)
    permits.check(urls([1, 2]))
    store.commit()
    store, permits = opened(env)
    permits.learn(site(1), allowed(1.0), again=True)
    store.commit()
    store, permits = opened(env)  # a second crash: nothing in RAM knows of the answer
    round_trip(permits, 2.0)
    permits.merge()
    assert permits.asks(10, 3.0) == [site(2)]
    permits.learn(site(2), allowed(3.0))
    found = round_trip(permits, 4.0) | round_trip(permits, 5.0)
    assert (set(found), permits.asks(10, 6.0)) == ({0, 1}, [])


def test_a_clock_that_was_put_back_asks_nobody_again() -> None:
    _, permits = opened(FaultyEnv(), expiry=1000.0)
    permits.check(urls([1]))
    round_trip(permits, 5000.0)
    assert permits.asks(10) == [site(1)]
    permits.check(urls([1], 1))
    round_trip(permits, 4000.0)
    assert permits.asks(10) == []


def test_urls_that_were_checked_before_an_answer_and_sorted_out_after_it_ask_nobody_again() -> None:
    _, permits = opened(FaultyEnv())
    permits.check(urls([1]))
    round_trip(permits, 0.0)
    assert permits.asks(10) == [site(1)]
    permits.check(urls([1], 1))
    permits.merge()
    permits.learn(site(1), allowed(1.0))
    found: dict[int, Permit] = {}
    for _ in range(4):
        found |= round_trip(permits, 2.0)
    assert sorted(found) == [0, 1]
    assert permits.asks(10) == []
    assert permits.gauges()["one_trip"] == 2


def test_in_steady_state_a_url_makes_one_trip_at_most() -> None:
    """New sites all the time, each answered within a few seconds."""
    _, permits = opened(FaultyEnv(), LARGE)
    random, put, out = Random(1), 0, 0
    under_way: list[tuple[float, str]] = []
    for now in range(200):
        if now < 150:
            permits.check(urls([random.randrange(5 + now) for _ in range(50)], put))
            put += 50
        permits.merge()
        out += len(taken(permits, float(now)))
        under_way += [(now + random.uniform(0.5, 5.0), name) for name in permits.asks(100)]
        for time, name in [answer for answer in under_way if answer[0] <= now + 1]:
            permits.learn(name, allowed(time, 10_000.0))
        under_way = [answer for answer in under_way if answer[0] > now + 1]
    gauges = permits.gauges()
    assert out == put == gauges["no_trip"] + gauges["one_trip"]
    assert gauges["one_trip"] > 100
    assert gauges["rounds"] == gauges["waiting"] == 0


def test_what_takes_long_holds_up_nobody_else_and_is_tried_now_and_then() -> None:
    _, permits = opened(FaultyEnv(), patience=30.0)
    permits.check(urls([1, 2]))
    round_trip(permits, 0.0)
    assert len(permits.asks(10)) == 2
    permits.learn(site(2), allowed(1.0, 10_000.0))
    assert round_trip(permits, 2.0) == round_trip(permits, 2.0) == {}  # site 1 is still under way
    permits.put_off(site(1))
    round_trip(permits, 3.0)
    assert list(round_trip(permits, 3.0)) == [1]
    rows = asdict(permits.structures[1].counters)["rows"]
    for now in range(4, 33):
        assert round_trip(permits, float(now)) == {}
    assert asdict(permits.structures[1].counters)["rows"] == rows
    assert permits.next_time() == 33.0
    permits.learn(site(1), allowed(32.0))
    round_trip(permits, 33.0)
    assert list(round_trip(permits, 33.0)) == [0]
    assert permits.gauges()["two_trips"] == 1
    assert permits.next_time() == float("inf")


def test_patience_ends_with_a_round_whose_asks_are_never_settled() -> None:
    _, permits = opened(FaultyEnv(), patience=5.0)
    permits.check(urls([1]))
    round_trip(permits, 0.0)
    assert len(permits.asks(10)) == 1
    for now in range(1, 40):
        round_trip(permits, float(now))
    assert permits.waiting == 1
    permits.learn(site(1), allowed(40.0))
    for now in range(40, 50):
        round_trip(permits, float(now))
    gauges = permits.gauges()
    assert (gauges["waiting"], gauges["more_trips"], gauges["rounds"]) == (0, 1, 0)


def test_a_batch_gives_one_row_for_each_origin() -> None:
    _, permits = opened(FaultyEnv(), LARGE)
    permits.check(urls([number % 20 for number in range(1000)]))
    assert permits.pending == 20


def test_a_large_robots_txt_is_not_written_once_for_each_url() -> None:
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % number for number in range(27_000))
    rules = RobotsRules.parse(body, "barkspider")
    permit = Permit.of(rules, 0.0, 1000.0)
    _, permits = opened(FaultyEnv(), LARGE)
    permits.learn(site(1), permit)
    permits.check(urls([1] * 10_000))
    found = round_trip(permits, 1.0)
    assert len(found) == 10_000
    assert found[9_999] == permit
    moved = permits.structures[1].counters.moved()
    assert moved < 6 * len(permit.encoded) + 4 * 10_000 * 100


def test_a_state_that_is_damaged_is_refused() -> None:
    env = FaultyEnv()
    store, permits = opened(env)
    permits.check(urls([1]))
    round_trip(permits, 0.0)
    store.commit()
    state = store.state("robots/rounds")
    assert state is not None
    permits.close()
    for change in (
        {"made": 7},
        {"first": {}},
        {"asked": [["x", 9]]},
        {"first": state["first"] | {"rounds": []}},
    ):
        damaged = state | change
        with pytest.raises(StorageError, match="damaged"):
            Permits(
                env,
                FOLDER,
                KEYS,
                background=False,
                state=lambda name, damaged=damaged: damaged if name == "robots/rounds" else store.state(name),  # type: ignore[misc]
            )


def test_what_nobody_will_use_is_dropped_once_a_day() -> None:
    store, permits = opened(FaultyEnv(), stale=1000.0)
    permits.check(urls(list(range(40))))
    round_trip(permits, 1.0)
    for name in permits.asks(40):
        permits.learn(name, allowed(1.0))
    round_trip(permits, 2.0)
    permits.learn(site(98), Permit.of(ALLOW_ALL, 1.0, 90_000.0))  # still good
    permits.learn(site(99), Permit.of(ALLOW_ALL, 86_000.0, 86_100.0))  # used if no newer one can be had
    permits.learn(site(97), Permit.of(DISALLOW_ALL, -1.0, 86_100.0, unreachable=True))
    assert sorted(round_trip(permits, 2.0)) == list(range(40))
    store.commit()
    taken(permits, 86_000.0)
    assert permits.origins == 43  # it has not been a day
    taken(permits, 86_402.0)
    _, cache, requested = permits.structures
    assert (permits.origins, len(requested)) == (2, 0)
    assert sorted(key for keys, _ in cache.items() for key in keys.tolist()) == sorted(
        KEYS.of(site(number)) for number in (98, 99)
    )


def test_outdated_rules_come_along_for_the_case_that_there_are_no_newer_ones() -> None:
    _, permits = opened(FaultyEnv())
    before = Permit.of(RobotsRules([(False, "/x")]), 0.0, 100.0, address="127.0.0.9", address_until=50.0)
    permits.learn(site(1), before)
    permits.check(urls([1, 2]))
    permits.merge()
    (block,) = permits.permitted(200.0)
    assert (len(block), block.outdated) == (0, [(site(1), before)])
