"""Strategies replayed: against plain Python, against the paper on a real web, and twice the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import UsageError
from barkspider.frontier import sampling, sydney
from barkspider.lab.simulate import kernels
from barkspider.lab.simulate.farms import FarmSpec, make_web
from barkspider.lab.simulate.order import Replay, Strategy, run, share_above, simulate_order
from barkspider.lab.simulate.quality import scores
from barkspider.lab.simulate.repeats import choose_seeds
from barkspider.lab.webgraph import WebGraph, load_web
from tests.lab.simulate.reference import by_backlinks, depth_first, figure_2

CNR = Path(__file__).parents[4] / "shared" / "data" / "graphs" / "cnr-2000.npz"
LIMITS = (0.03, 0.05, 0.07)

node_lists = st.integers(1, 25).flatmap(
    lambda nodes: st.lists(st.lists(st.integers(0, nodes - 1), max_size=12), min_size=nodes, max_size=nodes)
)


@settings(max_examples=150, deadline=None)
@given(
    links=node_lists,
    t=st.integers(0, 6),
    seed=st.integers(0, 2**63),
    limit=st.integers(1, 30),
    data=st.data(),
)
def test_replays_are_figure_2_line_by_line(
    links: list[list[int]], t: int, seed: int, limit: int, data: st.DataObject
) -> None:
    web = WebGraph.of(links)
    seeds = data.draw(st.lists(st.integers(0, len(links) - 1), min_size=1, max_size=5))
    begin = np.array(seeds, np.int32)
    most = limit if data.draw(st.booleans()) else 2**62
    keeps = data.draw(st.booleans())
    order, primary, secondary = (np.zeros(web.nodes, np.int32) for _ in range(3))
    pages, visits, again, largest, followed, dropped = kernels.replay(
        web.indptr, web.indices, begin, False, t, keeps, most, 0, np.zeros(0, np.bool_),
        np.array([seed], np.uint64), order, primary, secondary,
    )  # fmt: skip
    expected, expected_visits, revisited, expected_largest, lost = figure_2(web, seeds, t, seed, most, keeps)
    assert order[:pages].tolist() == expected
    assert (visits, again, largest, dropped) == (expected_visits, len(revisited), expected_largest, lost)
    assert followed >= sum(len(links[page]) for page in expected)
    assert (primary + secondary).max() <= largest


@settings(max_examples=100, deadline=None)
@given(links=node_lists, data=st.data())
def test_depth_first_and_backlink_order_are_as_in_plain_python(
    links: list[list[int]], data: st.DataObject
) -> None:
    web = WebGraph.of([list(dict.fromkeys(targets)) for targets in links])
    seeds = data.draw(st.lists(st.integers(0, len(links) - 1), min_size=1, max_size=5, unique=True))
    begin = np.array(seeds, np.int32)
    assert run(web, Strategy("dfs"), begin).order.tolist() == depth_first(web, seeds)
    found = run(web, Strategy("backlink"), begin)
    assert found.order.tolist() == by_backlinks(web, seeds)
    assert len(found.order) == len(run(web, Strategy("bfs"), begin).order)


def test_a_page_with_more_links_than_lists_were_made_for_comes_first() -> None:
    links = [[page + 1, 201] for page in range(200)] + [[], []]
    order = run(WebGraph.of(links), Strategy("backlink"), np.array([0], np.int32)).order.tolist()
    assert order == [0, 1, 201, *range(2, 201)]
    hub = WebGraph.of([[1, 2, 3]] + [[page % 3 + 1 for page in range(300)]] * 3)
    assert len(run(hub, Strategy("backlink"), np.array([0], np.int32)).order) == 4


def test_what_goes_where_is_said_by_the_kernels_of_the_live_crawl() -> None:
    assert kernels.place is sampling.place
    assert sydney.place_all is sampling.place_all


def test_every_strategy_without_loss_covers_what_breadth_first_covers() -> None:
    web = make_web(FarmSpec(domains=40, largest=500))
    names = [
        Strategy("bfs"),
        Strategy("dfs"),
        Strategy("backlink"),
        Strategy("sydney", 1),
        Strategy("sydney", 3),
    ]
    results = simulate_order(web, names, seeds=5, repeat=2)
    assert [result.summary.mean["coverage"] for result in results] == [1.0] * 5
    assert results[0].summary.mean["max_queue_to_bfs"] == 1.0
    assert results[0].summary.spread["reachable"] == 0.0
    for result in results:
        for measure in ("pagerank", "in_degree", "home_pages"):
            assert result.curves[measure] == sorted(result.curves[measure])
            assert result.curves[measure][-1] == pytest.approx(1)
    alone, limited = simulate_order(
        web, [Strategy("random", 3), Strategy("sydney", 3, 0.02)], seeds=5, repeat=2
    )
    assert 0.1 < alone.summary.mean["coverage"] < 1
    assert alone.summary.mean["pagerank"] > alone.summary.mean["coverage"]
    assert limited.summary.mean["max_queue_fraction"] <= 0.02
    assert limited.summary.mean["links_dropped"] > 0
    assert len(alone.curves["primary"]) == int(100 * min_coverage(web, Strategy("random", 3)))


def min_coverage(web: WebGraph, strategy: Strategy) -> float:
    found = [run(web, strategy, choose_seeds(web, 5, seed), web.nodes, seed) for seed in (1, 2)]
    return min(len(each.order) for each in found) / web.nodes


def test_directories_are_sampled_only_near_the_root() -> None:
    urls = (
        ["http://a.example/"]
        + [f"http://a.example/d/e/{page}" for page in range(40)]
        + ["http://a.example/z"]
    )
    links = [list(range(1, 11)), [*range(11, 41)], *([[]] * 39), []]
    web = WebGraph.of(links, urls=urls)
    (half,) = simulate_order(web, [Strategy("directory", levels=1, share=0.5)], seeds=1, repeat=1, seed=1)
    (bfs,) = simulate_order(web, [Strategy("bfs")], seeds=1, repeat=1, seed=1)
    seed = int(choose_seeds(web, 1, 1)[0])
    reach = 41 if seed == 0 else 31
    assert bfs.summary.mean["reachable"] == reach
    found = [
        run(web, Strategy("directory", levels=1, share=0.5), np.array([0], np.int32), seed=seed,
            shallow=np.array([True] + [False] * 40 + [True]))
        for seed in range(20)
    ]  # fmt: skip
    assert {len(each.order) for each in found} == {
        6,
        36,
    }  # page 1, and so all of its links, among 5 of 10 or not
    assert half.summary.mean["coverage"] in (6 / 41, 36 / 41, 1)
    with pytest.raises(UsageError, match="directory needs the URLs"):
        simulate_order(WebGraph.of(links), [Strategy("directory", levels=1, share=0.5)], seeds=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Strategy("best"), "'best' is no strategy; there are bfs, dfs"),
        (lambda: Strategy("sydney"), "t is 0"),
        (lambda: Strategy("sydney", 8, 1.5), "the queue limit is 1.5"),
        (lambda: Strategy("directory"), "1 level or more"),
        (
            lambda: simulate_order(WebGraph.of([[1], [0]]), [Strategy("bfs")], seeds=3),
            "3 seeds; 2 pages have links",
        ),
        (lambda: simulate_order(WebGraph.of([[1], [0]]), [Strategy("bfs")], repeat=0), "0 repetitions"),
    ],
)
def test_what_cannot_be_simulated_is_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=message):
        make()


def test_the_same_seed_gives_the_same_result_on_any_machine() -> None:
    web = make_web(FarmSpec(domains=20, largest=1000), seed=3)
    assert (web.nodes, web.arcs, int(web.indices.astype(np.int64) @ np.arange(web.arcs) % 10**9)) == GENERATED
    found = run(web, Strategy("sydney", 4, 0.05), choose_seeds(web, 10, 7), web.nodes, seed=7)
    assert digest(found) == REPLAYED
    results = [simulate_order(web, [Strategy("sydney", 4)], seeds=10, seed=9)[0].as_dict() for _ in range(2)]
    assert results[0] == results[1]


def digest(found: Replay) -> tuple[int, int, int, int]:
    weighted = int(found.order.astype(np.int64) @ np.arange(len(found.order)))
    return len(found.order), found.visits, found.largest, weighted


GENERATED = (3590, 17_930, 894_353_059)
REPLAYED = (3383, 4110, 179, 9_299_937_425)


@pytest.fixture(scope="module")
def cnr() -> WebGraph:
    if not CNR.is_file():
        pytest.skip(f"{CNR} is missing")
    return load_web(CNR)


def replays(web: WebGraph, strategy: Strategy) -> list[Replay]:
    return [run(web, strategy, choose_seeds(web, 100, seed), web.nodes, seed) for seed in (1, 2, 3)]


def test_on_a_real_web_sydney_covers_all_with_half_the_queue_as_in_table_1(cnr: WebGraph) -> None:
    full = replays(cnr, Strategy("bfs"))
    assert {len(found.order) for found in full} == {cnr.nodes}
    largest = [np.mean([found.largest for found in full])]
    revisited = []
    for t in (64, 32, 16, 8):
        found = replays(cnr, Strategy("sydney", t))
        assert {len(each.order) for each in found} == {cnr.nodes}
        assert all(mine.largest < whole.largest for mine, whole in zip(found, full, strict=True))
        largest.append(np.mean([each.largest for each in found]))
        revisited.append(np.mean([each.revisited for each in found]) / cnr.nodes)
    assert largest == sorted(largest, reverse=True)
    assert largest[-1] < 0.5 * largest[0]
    for ours, printed in zip(revisited, (0.001, 0.004, 0.010, 0.022), strict=True):
        assert 0.9 < ours / printed < 1.6


def test_on_a_real_web_coverage_grows_with_the_limit_and_falls_with_t_as_in_table_2(cnr: WebGraph) -> None:
    covered = {
        t: [
            np.mean([len(each.order) for each in replays(cnr, Strategy("sydney", t, limit))])
            for limit in LIMITS
        ]
        for t in (8, 16)
    }
    for row in covered.values():
        assert row == sorted(row)
    assert all(few > many for few, many in zip(covered[8], covered[16], strict=True))


def test_a_real_web_has_the_out_degrees_it_has(cnr: WebGraph) -> None:
    assert (cnr.nodes, cnr.arcs) == (325_557, 3_216_152)
    assert share_above(cnr, 8) == pytest.approx(0.3233, abs=1e-4)
    assert (
        0.04
        < (cnr.site[np.repeat(np.arange(cnr.nodes), np.diff(cnr.indptr))] != cnr.site[cnr.indices]).mean()
        < 0.1
    )


def test_quality_adds_up(tmp_path: Path) -> None:
    web = make_web(FarmSpec(domains=10, largest=100))
    worth = scores(web)
    assert worth["pagerank"].sum() == pytest.approx(1)
    assert worth["in_degree"].sum() == web.arcs
    assert worth["home_pages"].sum() == web.sites
