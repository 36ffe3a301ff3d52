"""In-degrees of domains, and the budgets that follow."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barkspider.core.batch import UrlBatch
from barkspider.core.records import UrlRow
from barkspider.core.settings import Budget
from barkspider.frontier.budget.star import Star, edge_keys
from barkspider.model.budgets import Degrees, Distribution
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.store.manifest import Store
from barkspider.url.partition import slots
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")
SMALL = Sizing(2, 4096, 400, 1 << 20)


def degree_plus_one(degrees: Degrees, known: Distribution, settings: Budget) -> npt.NDArray[Any]:
    """Makes in-degrees visible from outside."""
    return degrees.astype(np.int64) + 1


PLAIN = Budget(function="tests.frontier.test_star:degree_plus_one")


def opened(
    env: FaultyEnv, budget: Budget = PLAIN, sizing: Sizing = SMALL, front: int = 0
) -> tuple[Store, Star]:
    store = Store.open(env, FOLDER)
    star = Star(
        env,
        FOLDER,
        budget,
        sizing=sizing,
        edge_sizing=sizing,
        front=front,
        background=False,
        state=store.state,
    )
    for structure in star.structures:
        store.add(structure)
    return store, star


def add(star: Star, edges: list[tuple[int, int]]) -> None:
    sources, targets = np.array(edges, np.uint64).reshape(-1, 2).T
    star.add_edges(sources, targets)


def urls(domains: list[int], first: int = 0) -> UrlBatch:
    rows = [
        UrlRow(first + number, 1, domain, number % 5, 0, 0, 0, b"http://%d/" % domain, 77, first)
        for number, domain in enumerate(domains)
    ]
    return UrlBatch.from_rows(rows)


def budgets(star: Star) -> dict[int, int]:
    """The budget of each URL that came out, by its key; each only once."""
    found: dict[int, int] = {}
    for batch, given_ in star.budgeted():
        for row, budget in zip(batch.rows(), given_.tolist(), strict=True):
            assert row.key not in found
            assert (row.parent, row.depth, row.url) == (77, row.depth, b"http://%d/" % row.pld_key)
            found[row.key] = budget
    return found


def in_degrees(star: Star, domains: list[int]) -> list[int]:
    """What the DRUM knows after all merges."""
    star.merge()
    budgets(star)
    star.check(urls(domains))
    star.merge()
    found = budgets(star)
    return [found[number] - 1 for number in range(len(domains))]


def test_an_edge_counts_once_and_self_loops_do_not() -> None:
    _, star = opened(FaultyEnv())
    assert len(star.distribution()) == 0
    add(star, [(1, 2), (1, 2), (3, 2), (2, 2), (2, 1)])
    star.merge()
    assert star.distribution().degrees.tolist() == [1, 2]
    add(star, [(1, 2), (4, 2), (2, 3)])
    assert in_degrees(star, [1, 2, 3, 4]) == [1, 3, 1, 0]
    assert (star.edges, star.domains) == (5, 3)
    star.validate()


def test_keys_of_edges_are_all_different() -> None:
    side = np.arange(300, dtype=np.uint64)
    sources, targets = np.repeat(side, 300), np.tile(side, 300)
    assert len(np.unique(edge_keys(sources, targets))) == 300 * 300


def test_an_edge_is_in_the_slot_of_its_target() -> None:
    _, star = opened(FaultyEnv())
    sources, targets = np.random.default_rng(1).integers(0, 2**64, (2, 5_000), dtype=np.uint64)
    assert (slots(edge_keys(sources, targets)) == slots(targets)).all()
    star.add_edges(sources, targets)
    star.merge()
    stored = np.concatenate([keys for keys, _ in star.drums["star/edges"].items()])
    assert sorted(slots(stored).tolist()) == sorted(slots(targets).tolist())


def test_urls_come_out_only_after_a_merge_with_what_came_with_them() -> None:
    _, star = opened(FaultyEnv())
    star.check(urls([5, 6, 5]))
    assert star.pending == 3
    assert budgets(star) == {}
    star.merge()
    assert budgets(star) == {0: 1, 1: 1, 2: 1}
    assert budgets(star) == {}


def test_edges_count_for_urls_that_come_after_the_merge() -> None:
    _, star = opened(FaultyEnv())
    add(star, [(1, 2), (3, 2)])
    star.check(urls([2]))
    star.merge()
    assert budgets(star) == {0: 1}
    star.check(urls([2], first=1))
    star.merge()
    assert budgets(star) == {1: 3}


def test_urls_can_be_budgeted_while_edges_go_on_waiting() -> None:
    _, star = opened(FaultyEnv())
    add(star, [(1, 2)])
    star.check(urls([2]))
    star.merge(edges=False)
    assert budgets(star) == {0: 1}
    assert (star.edges, star.pending) == (0, 1)
    assert in_degrees(star, [2]) == [1]


def test_the_best_linked_domains_get_the_largest_budgets() -> None:
    large = Sizing(1, 1 << 20, 1 << 24, 1 << 26)
    _, star = opened(FaultyEnv(), Budget(base=10, top=1000), large)
    everyone = np.arange(1, 10_001, dtype=np.uint64)
    star.add_edges(everyone + np.uint64(20_000), everyone)  # an in-degree of 1 for all
    for domain, fans in ((1, 300), (2, 200), (3, 100)):
        star.add_edges(everyone[-fans:], np.full(fans, domain, np.uint64))
    star.merge()
    star.check(urls([1, 2, 3, 4, 99_999]))
    star.merge()
    assert list(budgets(star).values()) == [1000, 505, 10, 10, 10]
    assert star.expected() == pytest.approx(10 + (990 + 495) / 10_000, abs=0.001)
    assert star.distribution() is star.distribution()


pairs = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=30)
events = st.one_of(
    pairs,
    st.lists(st.integers(1, 12), min_size=1, max_size=10),
    st.sampled_from(["merge", "later", "take", "commit", "reopen", "drop", "keep", "random"]),
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(events, max_size=20), st.sampled_from([0, 256]))
def test_edges_count_once_and_no_url_is_lost_whatever_happens(script: list[Any], front: int) -> None:
    env = FaultyEnv()
    store, star = opened(env, front=front)
    edges, asked, out = set[tuple[int, int]](), 0, list[int]()
    safe: tuple[set[tuple[int, int]], int, list[int]] = (set(), 0, [])
    for event in script:
        if isinstance(event, list) and isinstance(event[0], tuple):
            add(star, event)
            edges |= {(source, target) for source, target in event if source != target}
        elif isinstance(event, list):
            star.check(urls(event, first=asked))
            asked += len(event)
        elif event in ("merge", "later"):
            star.merge(wait=event == "merge")
        elif event == "take":
            out += budgets(star)
        elif event == "commit":
            store.commit()
            safe = set(edges), asked, list(out)
        else:
            star.close()
            if event != "reopen":
                env = env.crash(event, Random(1))
            store, star = opened(env, front=front)
            edges, asked, out = set(safe[0]), safe[1], list(safe[2])
        star.validate()
    star.merge()
    out += budgets(star)
    assert sorted(out) == list(range(asked))
    count = Counter(target for _, target in edges)
    assert in_degrees(star, list(range(1, 13))) == [count[domain] for domain in range(1, 13)]
    assert star.edges == len(edges)
    star.close()
