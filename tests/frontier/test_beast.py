"""Budgets enforced with queues on disk."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barkspider.core.errors import StorageError
from barkspider.core.records import Flag, UrlBatch, UrlRow
from barkspider.core.settings import Budget
from barkspider.frontier.beast import Beast
from barkspider.frontier.placement import FAILED, Placement
from barkspider.frontier.rows import HEAD
from barkspider.simulate.queues import Naive
from barkspider.storage.env import Env
from barkspider.storage.manifest import Store
from tests.frontier.naive import crawl
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


# The order, on small examples: the paper's text word by word.


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


# The kernel against a slow twin, and the limit of its table.


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.booleans()), max_size=60),
    st.integers(1, 4),
    st.integers(0, 5),
    st.integers(0, 8),
    st.integers(1, 5),
)
def test_placing_is_like_counting_by_hand(
    rows: list[tuple[int, int, bool]], first: int, more: int, width: int, size: int
) -> None:
    placement, held = Placement(1 << 16), dict[int, tuple[int, int]]()
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        split, last = first + more, first + width
        expected = []
        for domain, budget, deferred in part:
            turn, left = held.get(domain, (0, 0))
            earliest = split if deferred else first
            if turn < earliest:
                turn, left = earliest, budget
            elif not left:
                turn, left = turn + 1, budget
            expected.append(turn if turn <= last and left else FAILED)
            if expected[-1] != FAILED:
                held[domain] = turn, left - 1
        domains, budgets, marks = zip(*part, strict=True)
        found = placement.place(
            np.array(domains, np.uint64),
            np.array(budgets, np.uint32),
            np.array(marks, np.bool_),
            first,
            split,
            last,
        )
        assert found.tolist() == expected
        first += 1


def test_domains_beyond_the_limit_of_the_table_fail_until_there_is_room() -> None:
    placement = Placement(1024)  # 64 slots, 40 of them for use
    domains = np.arange(1, 101, dtype=np.uint64)
    budgets, ordinary = np.full(100, 3, np.uint32), np.zeros(100, np.bool_)
    turns = placement.place(domains, budgets, ordinary, 1, 1, 4)
    assert (turns[:40] == 1).all()
    assert (turns[40:] == FAILED).all()
    again = placement.place(domains, budgets, ordinary, 1, 1, 4)
    assert (again == turns).all()
    later = placement.place(domains[::-1].copy(), budgets, ordinary, 2, 2, 4)
    assert (later != FAILED).sum() == 40  # those of turn 1 made room


def test_urls_without_a_budget_each_are_refused() -> None:
    _, beast = opened(FaultyEnv())
    with pytest.raises(ValueError, match="2 URLs with 1 budgets"):
        beast.put(UrlBatch.from_rows([row(1, 1), row(2, 1)]), np.ones(1, np.uint32))
    assert len(beast) == 0


# Random operations, commits, reopenings and crashes against sets.


class Machine(RuleBasedStateMachine):
    """`inside` are the URLs that the beast has, `away` those that it handed out of Q_F, `out` those taken."""

    @initialize(max_queues=st.sampled_from([2, 3, 4, 64]), table=st.sampled_from([1024, 1 << 16]))
    def begin(self, max_queues: int, table: int) -> None:
        self.budget = Budget(max_queues=max_queues, table=table)
        self.env = FaultyEnv()
        self.store, self.beast = opened(self.env, self.budget)
        self.inside, self.away, self.out = set[int](), list[UrlRow](), list[int]()
        self.number = 0
        self.per_turn = Counter[tuple[int, int]]()
        self.keep()

    def keep(self) -> None:
        self.safe = set(self.inside), list(self.away), list(self.out), self.number, self.per_turn.copy()

    def budgets(self, rows: list[UrlRow]) -> np.ndarray:
        return np.array([1 + taken.pld_key % 3 for taken in rows], np.uint32)

    @rule(domains=st.lists(st.integers(0, 80), min_size=1, max_size=60))
    def arrive(self, domains: list[int]) -> None:
        rows = [row(self.number + place, domain) for place, domain in enumerate(domains)]
        self.number += len(rows)
        self.beast.put(UrlBatch.from_rows(rows), self.budgets(rows))
        self.inside |= {new.key for new in rows}

    @rule(most=st.integers(1, 40))
    def take(self, most: int) -> None:
        found = self.beast.take(most).rows()
        assert len(found) <= most
        if not found:
            assert self.beast.awaited or not self.inside
        for taken in found:
            assert taken == row(taken.key, taken.pld_key)
            self.inside.remove(taken.key)
            self.out.append(taken.key)
            place = (self.beast._turn, taken.pld_key)
            self.per_turn[place] += 1
            assert self.per_turn[place] <= 1 + taken.pld_key % 3

    @rule(parts=st.integers(1, 3))
    def rescan(self, parts: int) -> None:
        for _, batch in zip(range(parts), self.beast.rescanned(), strict=False):
            self.away += batch.rows()
            self.inside -= set(batch.key.tolist())

    @rule(most=st.integers(1, 100))
    def come_back(self, most: int) -> None:
        rows, self.away = self.away[:most], self.away[most:]
        self.beast.put(UrlBatch.from_rows(rows), self.budgets(rows))
        self.inside |= {back.key for back in rows}

    @rule()
    def commit(self) -> None:
        self.store.commit()
        self.keep()

    @rule(how=st.sampled_from(["reopen", "drop", "keep", "random"]), seed=st.integers(0, 100))
    def crash(self, how: str, seed: int) -> None:
        if how == "reopen":
            self.beast.close()
        else:
            self.env = self.env.crash(how, Random(seed))
        self.store, self.beast = opened(self.env, self.budget)
        inside, away, out, self.number, per_turn = self.safe
        self.inside, self.away, self.out, self.per_turn = set(inside), list(away), list(out), per_turn.copy()

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "beast"):
            self.beast.validate()
            assert len(self.beast) == len(self.inside)
            assert self.beast.gauges().away == len(self.away)

    def teardown(self) -> None:
        if not hasattr(self, "beast"):
            return
        for _ in range(10_000):
            self.take(1000)
            self.rescan(1000)
            self.come_back(1000)
            if not self.inside and not self.away:
                break
        assert sorted(self.out) == list(range(self.number))


def test_every_url_comes_out_once_and_no_queue_exceeds_a_budget() -> None:
    case = Machine.TestCase
    case.settings = settings(
        max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
    case().runTest()


# The cost, on a web whose domains are all endless.

DOMAINS, BUDGET, LINKS = 100, 5, 4
ROW = HEAD.itemsize + 60 + 4


def costs(marks: list[tuple[int, int]]) -> list[float]:
    """Bytes read and written for each page, in rows, from the start of a re-scan to that of the next."""
    return [(b[1] - a[1]) / (b[0] - a[0]) / ROW for a, b in pairwise(marks)]


def test_the_cost_of_a_page_stays_below_the_bound_of_theorem_5_while_queues_double(tmp_path: Path) -> None:
    beast = Beast(Env(), tmp_path, Budget())
    marks = crawl(beast, DOMAINS, BUDGET, LINKS, rescans=5)
    assert beast.gauges().queues == 2 * 2**5
    assert max(costs(marks)) < 2 * (2 * LINKS - 1)
    beast.validate()
    beast.close()


def test_the_naive_way_costs_what_theorem_4_says_and_soon_exceeds_that_bound(tmp_path: Path) -> None:
    naive = Naive(Env(), tmp_path)
    marks = crawl(naive, DOMAINS, BUDGET, LINKS, rescans=20)
    for (pages, _), cost in zip(marks[5:], costs(marks)[5:], strict=False):
        alpha = pages / (BUDGET * DOMAINS)
        assert cost == pytest.approx(2 * (LINKS - 1) * alpha, rel=0.25)
    assert costs(marks)[-1] > 5 * 2 * (2 * LINKS - 1)
    naive.close()
