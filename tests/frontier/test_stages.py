"""seen, star and beast, one after the other, in one store."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barkspider.core.batch import UrlBatch
from barkspider.core.load import load_settings
from barkspider.core.records import UrlRow
from barkspider.core.settings import Budget
from barkspider.frontier import stages as disk
from barkspider.frontier.budget.beast import Beast
from barkspider.frontier.budget.seen import Seen
from barkspider.frontier.budget.star import Star
from barkspider.frontier.stages import Space
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")
SMALL = Sizing(2, 4096, 1000, 1 << 20)
BUDGETS = [Budget(base=2, max_queues=8, reputation=by) for by in ("indegree", "supporters")]


def row(number: int) -> UrlRow:
    return UrlRow(number << 12, 1, number % 5, 1, 0, 0, 0, b"http://%d/" % number, number // 2 << 12, 7)


class Stages:
    """The disk part of a frontier: links in, URLs out."""

    def __init__(self, env: FaultyEnv, budget: Budget) -> None:
        self.env, self.budget, self.store = env, budget, Store.open(env, FOLDER)
        self.seen = Seen(env, FOLDER, sizing=SMALL, background=False, state=self.store.state("seen"))
        self.star = Star(
            env,
            FOLDER,
            budget,
            sizing=SMALL,
            edge_sizing=SMALL,
            ranking_memory=1 << 16,
            first_ranking=1,
            background=False,
            state=self.store.state,
        )
        self.beast = Beast(env, FOLDER, budget, state=self.store.state("beast"))
        for structure in (self.seen, *self.star.structures, self.beast):
            self.store.add(structure)

    def feed(self, numbers: list[int]) -> None:
        """Links, each from a page of the domain before its own."""
        batch = UrlBatch.from_rows([row(number) for number in numbers])
        self.star.add_edges(batch.pld_key - batch.pld_key % 2, batch.pld_key)
        self.seen.feed(batch)

    def move(self) -> None:
        """Hand on what came out of each stage."""
        for batch in self.seen.unique():
            self.star.check(batch)
        for batch in self.beast.rescanned():
            self.star.check(batch)
        for batch, budgets in self.star.budgeted():
            self.beast.put(batch, budgets)

    def take(self, most: int) -> list[UrlRow]:
        return self.beast.take(most).rows()

    def drain(self) -> list[UrlRow]:
        """Everything, whatever merges it takes."""
        found, idle = list[UrlRow](), 0
        while idle < 3:
            self.seen.merge()
            self.move()
            self.star.merge()
            self.move()
            taken = self.take(1000)
            found += taken
            idle = 0 if taken else idle + 1
        return found


events = st.one_of(
    st.lists(st.integers(0, 80), min_size=1, max_size=60),
    st.sampled_from(["seen", "star", "move", "take", "take", "commit", "drop", "keep", "random"]),
)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(events, max_size=25), st.sampled_from(BUDGETS))
def test_every_url_comes_out_once_whatever_happens(script: list[Any], budget: Budget) -> None:
    stages, fed, out = Stages(FaultyEnv(), budget), set[int](), list[UrlRow]()
    safe: tuple[set[int], list[UrlRow]] = (set(), [])
    for event in script:
        if isinstance(event, list):
            stages.feed(event)
            fed |= set(event)
        elif event == "seen":
            stages.seen.merge()
        elif event == "star":
            stages.star.merge()
        elif event == "move":
            stages.move()
        elif event == "take":
            out += stages.take(20)
        elif event == "commit":
            stages.store.commit()
            safe = set(fed), list(out)
        else:
            stages = Stages(stages.env.crash(event, Random(1)), budget)
            fed, out = set(safe[0]), list(safe[1])
    out += stages.drain()
    assert sorted(out) == [row(number) for number in sorted(fed)]
    assert len(stages.seen) == len(fed)
    assert len(stages.beast) == stages.beast.awaited == 0


def test_the_drums_of_a_job_share_its_disk_space_two_generations_of_each_at_a_time() -> None:
    env = FaultyEnv()
    for reputation in ("indegree", "supporters"):
        names = {"disk": "13GB", "memory": "64MB", "budget.reputation": reputation}
        chosen = load_settings(overrides=names)
        space = Space(chosen, env, FOLDER)
        drums = [space.seen, space.scores, space.edges, space.robots, space.requested]
        drums += [space.scores] if reputation == "supporters" else []
        assert sum(2 * drum.disk() for drum in drums) == pytest.approx(13e9)
    env.room = 10**9
    given = Space(load_settings(overrides={"memory": "64MB"}), env, FOLDER).seen.disk
    quarter = given()
    env.room = 4 * 10**9
    assert given() == pytest.approx(4 * quarter)
    assert quarter == pytest.approx(10**9 / 4 * 8 / 13 / 2)


def test_fetchers_that_are_idle_wait_neither_for_a_batch_nor_for_a_merge_that_ended_unnoticed(
    tmp_path: Path,
) -> None:
    stages = disk.Stages(load_settings(options=["memory=64MB"]), Env(), tmp_path)
    stages.permits.check(UrlBatch.from_rows([row(1)]))
    assert stages.hurry(1.0)
    stages.permits.structures[1]._thread.join()
    assert not stages.permits.undecided
    assert stages.hurry(2.0)  # it is to be looked at: nothing else would call us
    assert sum(map(len, stages.permits.permitted(3.0))) == 0
    assert stages.permits.undecided  # whether it has to be asked
    assert stages.hurry(3.5, patience=3.0)  # there is enough to do meanwhile
    assert not stages.permits.merging
    stages.hurry(4.5, patience=3.0)
    assert stages.permits.merging
    stages.close()
