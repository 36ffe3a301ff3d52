"""Supporters in place of in-degrees: the graph of the crawl, its ranking, and coming back from a crash."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barkspider.core.errors import SettingsError
from barkspider.core.settings import Budget
from barkspider.frontier.budget import reputation
from barkspider.frontier.budget.reputation import Reputation
from barkspider.frontier.budget.star import Star
from barkspider.lab.generate import exchange_edges
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.frontier.test_star import FOLDER, SMALL, add, budgets, urls
from tests.graph.reference import ends, linked_from, supporters
from tests.storage.faulty import FaultyEnv

BY_SUPPORTERS = Budget(function="tests.frontier.test_star:degree_plus_one", reputation="supporters")
LARGE = Sizing(1, 1 << 20, 1 << 24, 1 << 26)
MERGED = replace(BY_SUPPORTERS, merge_redirects=True)
EVERYONE = list(range(1, 13))


def opened(env: FaultyEnv, first: int = 1, budget: Budget = BY_SUPPORTERS) -> tuple[Store, Star]:
    store = Store.open(env, FOLDER)
    star = Star(
        env,
        FOLDER,
        budget,
        sizing=SMALL,
        edge_sizing=SMALL,
        front=0,
        ranking_memory=1 << 16,
        first_ranking=first,
        background=False,
        state=store.state,
    )
    for structure in star.structures:
        store.add(structure)
    return store, star


def known(star: Star) -> dict[int, int]:
    """What the DRUM of supporters holds."""
    drum = star.drums["star/supporters"]
    return {
        int(key): int(value)
        for keys, values in drum.items()
        for key, value in zip(keys, values, strict=True)  # type: ignore[arg-type]
    }


def wanted(edges: set[tuple[int, int]]) -> dict[int, int]:
    counts = supporters(linked_from(13, edges), 2)
    return {node: counts[node] for node in {end for edge in edges for end in edge}}


def stands_for(answers: set[tuple[int, int]]) -> dict[int, int]:
    """What domains stand for that only redirect to one other; 0 is a page of their own."""
    said: dict[int, set[int]] = {}
    for source, target in answers:
        said.setdefault(source, set()).add(target)
    return ends(
        {source: min(targets) for source, targets in said.items() if len(targets - {0}) == len(targets) == 1}
    )


def redirect(star: Star, answers: Iterable[tuple[int, int]]) -> None:
    for source, target in answers:
        star.add_answer(source, target)


def chain(length: int, first: int = 1) -> list[tuple[int, int]]:
    """A graph in which nobody has more than one supporter."""
    return [(node, node + 1) for node in range(first, first + length)]


def test_supporters_come_in_force_when_none_has_a_fifth_of_all() -> None:
    _, star = opened(FaultyEnv())
    add(star, [(1, 2), (2, 3)])
    star.merge()
    [(name, details)] = star.notices()
    moved = details.pop("read"), details.pop("written")
    assert (name, details) == (
        "ranked",
        {"edges": 2, "domains": 3, "sampled": 1.0, "largest": 1, "in_force": "indegree"},
    )
    assert star.ranking_traffic() == {
        "rankings": 1,
        "read": moved[0],
        "written": moved[1],
        "edges": 2,
        "ranked": 2,
    }
    star.check(urls([3, 2]))
    star.merge()
    assert budgets(star) == {0: 2, 1: 2}  # in-degrees
    add(star, [*chain(8, first=3), (20, 11), (21, 11)])
    star.merge()
    [(_, details)] = star.notices()
    assert (details["in_force"], details["domains"], details["largest"]) == ("supporters", 13, 1)
    star.check(urls([1, 2, 3, 11, 99]))
    star.merge()
    assert budgets(star) == {0: 1, 1: 1, 2: 2, 3: 2, 4: 1}  # supporters; 11 has three links
    assert star.distribution().degrees.tolist() == [0, 1]
    assert star.notices() == []
    star.validate()


def test_urls_that_wait_keep_the_ranking_they_were_checked_against() -> None:
    _, star = opened(FaultyEnv(), first=9)
    add(star, [*chain(6), (20, 9), (21, 9)])
    star.merge()
    star.check(urls([9]))
    add(star, [(7, 8), (8, 9)])
    star.merge()
    assert star.notices()[0][1]["in_force"] == "supporters"
    star.check(urls([9], first=1))
    star.merge()
    assert budgets(star) == {0: 3, 1: 2}  # an in-degree of 2 then, one supporter now


def test_the_graph_is_ranked_again_when_it_has_grown_by_half() -> None:
    _, star = opened(FaultyEnv(), first=8)
    ranked = []
    for edge in chain(30):
        add(star, [edge])
        star.merge()
        ranked += [details["edges"] for name, details in star.notices() if name == "ranked"]
    assert ranked == [8, 12, 18, 27]


def test_many_keys_in_little_memory_are_ranked_as_all_in_ram(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    names = random.integers(0, 2**63, 5_000).astype(np.uint64)
    edges = random.integers(0, 5_000, (20_000, 2))
    found: dict[int, int] = {}
    for memory in (40_000, 10_000_000):
        graph = Reputation(Env(), tmp_path / str(memory), memory=memory, first=1, background=False)
        for part in np.array_split(edges[edges[:, 0] != edges[:, 1]], 9):
            graph.append(names[part[:, 0]], names[part[:, 1]])
        if memory == 40_000:  # too little for all: only a sample fits
            share = reputation.sample_share(5_000, 20_000, memory)
            assert share < 0.1
        scored: dict[int, int] = {}

        def take(keys: np.ndarray, counts: np.ndarray, scored: dict[int, int] = scored) -> None:
            scored.update(zip(keys.tolist(), counts.tolist(), strict=True))

        graph.follow(take, wait=True)
        assert [details["in_force"] for _, details in graph.notices()] == ["supporters"]
        found, few = scored, found
        graph.close()
    exact = supporters(linked_from(5_000, edges.tolist()), 2)
    used = np.unique(edges).tolist()
    assert found == {int(names[node]): exact[node] for node in used}
    assert few.keys() == found.keys()
    assert sum(few.values()) == pytest.approx(sum(found.values()), rel=0.2)


def test_a_ranking_that_fails_is_told_and_made_when_there_are_more_edges() -> None:
    env = FaultyEnv()
    _, star = opened(env)
    add(star, chain(10))
    env.kinds["rename"] = "ENOSPC"  # only files of a graph are renamed
    star.merge()
    [(name, details)] = star.notices()
    assert (name, details["edges"]) == ("ranking_failed", 10)
    assert "cannot rename" in details["why"]
    env.kinds.clear()
    star.merge()
    assert star.notices() == []
    add(star, chain(5, first=20))
    star.merge()
    assert [name for name, _ in star.notices()] == ["ranked"]
    assert len(known(star)) == 17


def test_the_reputation_of_a_crawl_cannot_be_changed_later() -> None:
    by_degree = Budget()
    for before, after in (
        (by_degree, BY_SUPPORTERS),
        (BY_SUPPORTERS, by_degree),
        (BY_SUPPORTERS, MERGED),
        (MERGED, BY_SUPPORTERS),
    ):
        env = FaultyEnv()
        store, star = opened(env, budget=before)
        store.commit()
        star.close()
        with pytest.raises(SettingsError, match="was another when this crawl began"):
            opened(env, budget=after)


def test_a_ranking_in_the_background_ends_with_what_was_found_or_when_it_is_closed(tmp_path: Path) -> None:
    ends = np.arange(1, 20_001, dtype=np.uint64)
    star = Star(Env(), tmp_path / "a", BY_SUPPORTERS, first_ranking=100)
    star.add_edges(ends, ends + np.uint64(1))
    star.merge(wait=True)
    assert [details["largest"] for _, details in star.notices()] == [1]
    assert len(star.drums["star/supporters"]) == 20_001
    star.close()
    star = Star(Env(), tmp_path / "b", BY_SUPPORTERS, first_ranking=100)
    star.add_edges(ends, ends + np.uint64(1))
    star.merge(wait=False)
    star.drums["star/edges"].wait()
    list(star.budgeted())  # begins a ranking, which nobody waits for
    star.close()
    assert Env().list(tmp_path / "b" / "star" / "ranking") in ([], ["graph"])


def test_a_ranking_is_in_force_when_all_of_it_is_handed_over_and_made_again_after_a_crash_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reputation, "_ROWS", 4)
    env, given_ = FaultyEnv(), list[int]()

    def take(keys: np.ndarray, _: np.ndarray) -> None:
        given_.extend(keys.tolist())

    graph = Reputation(env, FOLDER, memory=1 << 16, first=9, background=False)
    graph.append(*np.array(chain(9), np.uint64).T)
    graph.follow(take, wait=False)
    assert (given_, graph.in_force) == ([1, 2, 3, 4], False)
    state = graph.prepare()()
    env.sync_folder(FOLDER / "star" / "graph")
    graph = Reputation(
        env.crash("drop", Random(1)), FOLDER, memory=1 << 16, first=9, background=False, state=state
    )
    given_.clear()
    for steps in (4, 8, 10):
        graph.follow(take, wait=False)
        assert (given_, graph.in_force) == (list(range(1, steps + 1)), False)
    graph.follow(take, wait=False)
    assert graph.in_force
    assert len(graph.notices()) == 1
    graph.follow(take, wait=True)
    assert len(given_) == 10
    graph.close()


pairs = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=30)
events = st.one_of(
    pairs,
    st.lists(st.integers(1, 12), min_size=1, max_size=10),
    st.tuples(st.integers(1, 12), st.integers(0, 12)),
    st.sampled_from(["merge", "later", "take", "commit", "reopen", "drop", "keep", "random"]),
)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(events, max_size=20), st.sampled_from([BY_SUPPORTERS, MERGED]))
def test_edges_redirects_and_supporters_come_back_as_committed_whatever_happens(
    script: list[Any], budget: Budget
) -> None:
    env = FaultyEnv()
    store, star = opened(env, budget=budget)
    edges, answers, asked, out = set[tuple[int, int]](), set[tuple[int, int]](), 0, list[int]()
    safe: Any = (set(), set(), 0, [], {})
    for event in script:
        if isinstance(event, list) and isinstance(event[0], tuple):
            add(star, event)
            edges |= {(source, target) for source, target in event if source != target}
        elif isinstance(event, list):
            star.check(urls(event, first=asked))
            asked += len(event)
        elif isinstance(event, tuple):
            redirect(star, [event])
            answers |= {event} if event[0] != event[1] else set()
        elif event in ("merge", "later"):
            star.merge(wait=event == "merge")
        elif event == "take":
            out += budgets(star)
        elif event == "commit":
            store.commit()
            safe = set(edges), set(answers), asked, list(out), known(star)
        else:
            star.close()
            if event != "reopen":
                env = env.crash(event, Random(1))
            store, star = opened(env, budget=budget)
            edges, answers, asked, out = set(safe[0]), set(safe[1]), safe[2], list(safe[3])
            assert known(star) == safe[4]
        star.validate()
    star.merge()
    out += budgets(star)
    assert sorted(out) == list(range(asked))
    assert star.edges == len(edges)
    # Twelve domains far from the others keep the rest below a fifth; so many edges are due for a ranking.
    far = chain(60 + 2 * len(edges), first=100)
    star.notices()
    add(star, far)
    star.merge()
    assert [details["in_force"] for _, details in star.notices()] == ["supporters"]
    found = known(star)
    merged = stands_for(answers) if budget.merge_redirects else {}
    counts = wanted({(merged.get(source, source), merged.get(target, target)) for source, target in edges})
    assert {domain: found.get(domain, 0) for domain in EVERYONE} == {
        domain: counts.get(domain, 0) for domain in EVERYONE
    }
    star.close()


def test_supporters_keep_a_link_exchange_out_of_the_top_where_in_degree_lets_it_in(tmp_path: Path) -> None:
    """Section V-A: hundreds of domains that link to each other have many links, but few stand behind them."""
    web, members, length = 80_000, 300, 300
    edges = list(exchange_edges(web, 160_000, members))
    links = np.bincount(np.concatenate([targets for _, targets in edges]))
    asked = np.flatnonzero(links >= 10).tolist()  # more would only push members further down
    tops = {}
    for by in ("indegree", "supporters"):
        star = Star(
            Env(),
            tmp_path / by,
            Budget(function="tests.frontier.test_star:degree_plus_one", reputation=by),
            sizing=LARGE,
            edge_sizing=LARGE,
            background=False,
        )
        for sources, targets in edges:
            star.add_edges(sources.astype(np.uint64), targets.astype(np.uint64))
        star.merge()
        assert [details["in_force"] for _, details in star.notices()] == ["supporters"] * (by == "supporters")
        star.check(urls(asked))
        star.merge()
        found = budgets(star)
        best = sorted(found, key=found.__getitem__, reverse=True)[:length]
        tops[by] = [asked[number] for number in best]
        star.close()
    bought = {by: sum(domain >= web for domain in top) for by, top in tops.items()}
    assert bought["indegree"] > length // 2
    assert bought["supporters"] == 0
