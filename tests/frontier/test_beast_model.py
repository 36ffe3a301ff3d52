"""Budgets enforced with queues on disk: random operations, commits, reopenings and crashes against sets."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barkspider.core.batch import UrlBatch
from barkspider.core.records import UrlRow
from barkspider.core.settings import Budget
from tests.frontier.test_beast import opened, row
from tests.storage.faulty import FaultyEnv


class Machine(RuleBasedStateMachine):
    """`inside` are the URLs that the beast has, `away` those that it handed out of Q_F, `out` those taken."""

    @initialize(max_queues=st.sampled_from([2, 3, 4, 64]), table=st.sampled_from([1024, 1 << 16]))
    def begin(self, max_queues: int, table: int) -> None:
        self.budget = Budget(max_queues=max_queues, table=table)
        self.env = FaultyEnv()
        self.store, self.beast = opened(self.env, self.budget)
        self.inside, self.away, self.out = set[int](), list[UrlRow](), list[int]()
        self.number, self.widest = 0, 1
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
        self.widest = max(self.widest, self.beast.gauges().share)
        assert len(found) <= most
        if not found:
            assert self.beast.awaited or not self.inside
        for taken in found:
            assert taken == row(taken.key, taken.pld_key)
            self.inside.remove(taken.key)
            self.out.append(taken.key)
            place = (self.beast._turn, taken.pld_key)
            self.per_turn[place] += 1
            # A re-scan adds s times the budget, the one before it may reach into the same round.
            widest = self.widest if self.beast.gauges().queues == self.budget.max_queues else 0
            assert self.per_turn[place] <= (1 + 2 * widest) * (1 + taken.pld_key % 3)

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
