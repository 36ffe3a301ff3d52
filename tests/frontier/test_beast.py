"""Budgets enforced with queues on disk: the order on small examples, the paper's text word by word, and commits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Budget
from barkspider.frontier.budget.beast import Beast
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")


def row(number: int, domain: int) -> UrlRow:
    url = b"http://%d.example/%d" % (domain, number)
    return UrlRow(number, domain, domain, number % 9, 1, 2, int(Flag.SEED), url, number + 5, number % 11)


def put(beast: Beast, text: str, budget: int, first: int = 0) -> None:
    """URLs of domains named by letters, numbered from `first` on."""
    rows = [row(first + number, ord(letter)) for number, letter in enumerate(text)]
    beast.put(UrlBatch.from_rows(rows), np.full(len(rows), budget, np.uint32))


def put_back(beast: Beast, budget: int) -> None:
    for batch in beast.rescanned():
        beast.put(batch, np.full(len(batch), budget, np.uint32))


def current(beast: Beast) -> str:
    """Empty the queue that is current, or the next that is not empty; the domains in it."""
    found = beast.take(1)
    turn = beast.gauges().current
    text = "".join(chr(taken.pld_key) for taken in found.rows())
    while len(beast._queues[turn - 1]):
        text += "".join(chr(taken.pld_key) for taken in beast.take(1000).rows())
    return text


def opened(env: Env, budget: Budget | None = None) -> tuple[Store, Beast]:
    store = Store.open(env, FOLDER)
    beast = Beast(env, FOLDER, budget or Budget(), state=store.state("beast"))
    store.add(beast)
    return store, beast


def test_the_first_urls_go_into_the_queue_after_the_current_one_and_the_rest_fails() -> None:
    _, beast = opened(FaultyEnv())
    put(beast, "aaaaab", budget=2)
    assert [len(queue) for queue in beast._queues] == [0, 3]
    assert beast.gauges().failed == 3
    assert current(beast) == "aab"
    assert beast.gauges().current == 2


def test_after_the_last_queue_q_f_is_split_over_as_many_further_queues() -> None:
    _, beast = opened(FaultyEnv())
    put(beast, "a" * 9 + "b", budget=2)
    assert current(beast) == "aab"
    assert len(beast.take(9)) == 0
    assert beast.awaited == 7
    assert beast.gauges().queues == 4
    put_back(beast, budget=2)
    assert [len(queue) for queue in beast._queues] == [0, 0, 2, 2]
    assert beast.gauges().failed == 3
    assert [current(beast), current(beast)] == ["aa", "aa"]
    assert len(beast.take(9)) == 0
    assert beast.gauges().queues == 8
    put_back(beast, budget=2)
    assert [len(queue) for queue in beast._queues] == [0, 0, 0, 0, 2, 1, 0, 0]
    assert [current(beast), current(beast), current(beast)] == ["aa", "a", ""]
    assert beast.gauges().queues == 8  # nothing failed, so nothing is to be split


def test_new_urls_go_round_past_the_last_queue_to_the_first() -> None:
    _, beast = opened(FaultyEnv())
    put(beast, "aaab", budget=1)
    assert current(beast) == "ab"
    beast.take(9)
    put_back(beast, budget=1)  # four queues from now on, the third and the fourth have an a each
    assert [len(queue) for queue in beast._queues] == [0, 0, 1, 1]
    assert current(beast) == "a"
    put(beast, "ccccc", budget=1, first=10)  # Q_3 is current: Q_4, Q_1, Q_2, and two for Q_F
    assert [len(queue) for queue in beast._queues] == [1, 1, 0, 2]
    assert beast.gauges().failed == 2
    assert [current(beast), current(beast), current(beast)] == ["ac", "c", "c"]


def test_a_domain_fills_up_what_is_left_of_its_budget_first() -> None:
    _, beast = opened(FaultyEnv())
    for first in range(3):
        put(beast, "a", budget=2, first=first)
    assert [len(queue) for queue in beast._queues] == [0, 2]
    assert beast.gauges().failed == 1


def test_a_budget_that_changed_counts_from_the_next_queue_on() -> None:
    _, beast = opened(FaultyEnv())
    put(beast, "a" * 20, budget=1)
    assert current(beast) == "a"
    beast.take(9)
    put_back(beast, budget=3)
    assert [len(queue) for queue in beast._queues] == [0, 0, 3, 3]


def test_what_is_rescanned_waits_behind_what_was_queued_before_it() -> None:
    _, beast = opened(FaultyEnv())
    put(beast, "aaa", budget=1)
    assert current(beast) == "a"
    put(beast, "b", budget=1, first=10)
    assert current(beast) == "b"  # Q_1: it goes on while Q_F is to be re-scanned
    assert beast.awaited == 2
    assert len(beast.take(9)) == 0  # Q_2 is empty, and Q_3 is not begun before they are back
    put_back(beast, budget=1)
    assert beast.awaited == 0
    assert [current(beast), current(beast)] == ["a", "a"]


def test_no_new_queue_is_begun_while_urls_of_q_f_are_away() -> None:
    _, beast = opened(FaultyEnv())
    put(beast, "aaa", budget=1)
    assert current(beast) == "a"
    assert len(beast.take(9)) == 0
    put(beast, "ccc", budget=1, first=10)  # one each for Q_2, Q_3 and Q_4
    away = list(beast.rescanned())
    assert current(beast) == "c"
    assert len(beast.take(9)) == 0
    assert (beast.gauges().current, beast.gauges().away) == (2, 2)
    for batch in away:
        beast.put(batch, np.ones(len(batch), np.uint32))
    assert [current(beast), current(beast)] == ["ca", "ca"]


def test_when_there_may_be_no_more_queues_everything_still_gets_its_turn() -> None:
    _, beast = opened(FaultyEnv(), Budget(max_queues=3))
    put(beast, "a" * 40, budget=1)
    found = ""
    while len(beast) or beast.awaited:
        found += current(beast)
        put_back(beast, budget=1)
        beast.validate()
    assert found == "a" * 40
    assert beast.gauges().queues == 3


def test_what_failed_first_gets_its_turn_although_its_domain_has_new_urls_all_the_time() -> None:
    _, beast = opened(FaultyEnv(), Budget(max_queues=4))
    put(beast, "a" * 100, budget=2)
    new, taken = 100, set[int]()
    while not taken >= set(range(100)):
        found = beast.take(10).rows()
        taken |= {out.key for out in found}
        put(beast, "aa" * len(found), budget=2, first=new)
        new += 2 * len(found)
        put_back(beast, budget=2)
        assert len(taken) < 2000


def test_a_resumed_beast_goes_on_in_the_same_order() -> None:
    def order(resumed: bool) -> tuple[list[int], int]:
        env = FaultyEnv()
        store, beast = opened(env, Budget(max_queues=4))
        put(beast, "aaab" * 100, budget=1)
        keys, shares = list[int](), 1
        while len(beast) or beast.awaited:
            keys += [out.key for out in beast.take(5).rows()]
            away = [failed for batch in beast.rescanned() for failed in batch.rows()]
            for start in range(0, len(away), 50):
                part = UrlBatch.from_rows(away[start : start + 50])
                beast.put(part, np.ones(len(part), np.uint32))
                if resumed:
                    store.commit()
                    store, beast = opened(env, Budget(max_queues=4))
            shares = max(shares, beast.gauges().share)
        return keys, shares

    expected, shares = order(resumed=False)
    assert shares > 4
    assert order(resumed=True) == (expected, shares)
    assert sorted(expected) == list(range(400))


def test_a_state_from_before_shares_is_gone_on_with() -> None:
    env = FaultyEnv()
    store, beast = opened(env, Budget(max_queues=2))
    put(beast, "a" * 100, budget=1)
    store.commit()
    state = store.state("beast")
    assert state is not None
    news = ("share", "levels", "scanned_turn", "scanned_taken")
    older = {name: value for name, value in state.items() if name not in news}
    beast = Beast(env, FOLDER, Budget(max_queues=2), state=older)
    keys = set[int]()
    while len(beast) or beast.awaited:
        keys |= {out.key for out in beast.take(9).rows()}
        put_back(beast, budget=1)
    assert keys == set(range(100))


def test_columns_travel_with_their_url_through_q_f_and_commits() -> None:
    env = FaultyEnv()
    store, beast = opened(env)
    put(beast, "aaa", budget=1)
    store.commit()
    _, beast = opened(env)
    found = beast.take(9).rows()
    assert len(beast.take(9)) == 0
    put_back(beast, budget=1)
    found += [taken for _ in range(2) for taken in beast.take(9).rows()]
    assert found == [row(number, ord("a")) for number in range(3)]


def test_left_over_budgets_survive_a_commit_of_many_domains() -> None:
    env = FaultyEnv()
    store, beast = opened(env)
    domains = np.arange(1, 5001, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    rows = UrlBatch.from_rows([row(number, domain) for number, domain in enumerate(domains.tolist())])
    beast.put(rows, np.full(5000, 2, np.uint32))
    store.commit()
    store.commit()  # the second commit removes the table of the first
    assert len(env.list(FOLDER / "beast")) == 1
    store, beast = opened(env)
    beast.put(rows, np.full(5000, 2, np.uint32))
    assert (beast.gauges().queued, beast.gauges().failed) == (10_000, 0)
    beast.put(rows, np.full(5000, 2, np.uint32))
    assert (beast.gauges().queued, beast.gauges().failed) == (10_000, 5000)


def test_a_damaged_state_or_table_is_refused() -> None:
    env = FaultyEnv()
    store, beast = opened(env)
    put(beast, "aab", budget=1)
    store.commit()
    state = store.state("beast")
    assert state is not None
    for damage in ({"turn": 7}, {"left": 5}, {"moved": {"placed": 1}}, {"number": None}):
        with pytest.raises(StorageError, match="damaged"):
            Beast(env, FOLDER, Budget(), state=state | damage)
    name = env.list(FOLDER / "beast")[0]
    env.disk.data(env.disk.find(FOLDER / "beast" / name))[-20] ^= 1
    with pytest.raises(StorageError, match="damaged"):
        opened(env)


def test_a_crash_at_any_moment_leaves_the_last_commit() -> None:
    env = FaultyEnv()
    store, beast = opened(env)
    held = {0: set[int]()}
    taken = set[int]()
    for number in range(1, 4):
        put(beast, "aaaaabbbccd" * 3, budget=2, first=100 * number)
        for _ in range(4):
            taken |= {out.key for out in beast.take(2).rows()}
            put_back(beast, budget=3)
        store.commit()
        held[number] = {100 * n + place for n in range(1, number + 1) for place in range(33)} - taken
    put(beast, "aaaa", budget=1, first=1000)
    checked = Counter[int]()
    for moment, (_, disk) in enumerate(env.crashes()):
        how = ("drop", "keep", "random")[moment % 3]
        found, again = opened(FaultyEnv(disk.after_power_loss(how, Random(moment))))
        again.validate()
        out = set[int]()
        while len(again) or again.awaited:
            out |= {row.key for row in again.take(1000).rows()}
            put_back(again, budget=5)
        assert out == held[found.number]
        checked[found.number] += 1
    assert set(checked) == {0, 1, 2, 3}


def test_urls_without_a_budget_each_are_refused() -> None:
    _, beast = opened(FaultyEnv())
    with pytest.raises(ValueError, match="2 URLs with 1 budgets"):
        beast.put(UrlBatch.from_rows([row(1, 1), row(2, 1)]), np.ones(1, np.uint32))
    assert len(beast) == 0
