"""Parallel crawls over a stored web: the modes, the metrics, and what the paper found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from barkspider.core.errors import UsageError
from barkspider.frontier.modes import MODES
from barkspider.lab.simulate import parallel
from barkspider.lab.simulate.parallel import Crawl, Setup, Simulation, choose_seeds
from barkspider.lab.webgraph import WebGraph, load_web
from tests.lab.simulate import parallel_reference
from tests.lab.simulate.parallel_web import between_sites, small_web

CNR = Path(__file__).parents[4] / "shared/data/graphs/cnr-2000.npz"

# Figure 2 of Parallel Crawlers: sites {a, b, c, d, e} and {f, g, h, i}, as section 3 describes them.
NAMES = "abcdefghi"
EDGES = ["ab", "ac", "ag", "cg", "de", "fg", "fi", "gh", "hd"]


@pytest.fixture(scope="module")
def web() -> WebGraph:
    return small_web()


@pytest.fixture(scope="module")
def simulation(web: WebGraph) -> Simulation:
    return Simulation(web)


def mean(simulation: Simulation, figure: str, repeat: int = 3, **setup: object) -> float:
    return float(np.mean([getattr(simulation.run(Setup(**setup), seed), figure) for seed in range(repeat)]))  # type: ignore[arg-type]


def figure_2(mode: str, **more: int) -> Crawl:
    links = [[NAMES.index(edge[1]) for edge in EDGES if edge[0] == name] for name in NAMES]
    site = [0] * 5 + [1] * 4
    simulation = Simulation(WebGraph.of(links, site=site))
    seeds = [np.array([NAMES.index(root)], np.int32) for root in "af"]
    return simulation.crawl(Setup(mode, processes=2, **more), np.array(site, np.uint16), seeds)  # type: ignore[arg-type]


def times(crawl: Crawl) -> Mapping[str, int]:
    return dict(zip(NAMES, crawl.times.tolist(), strict=True))


def test_in_figure_2_the_firewall_covers_seven_of_nine_pages() -> None:
    crawl = figure_2("firewall")
    assert crawl.coverage == 7 / 9
    assert [name for name, count in times(crawl).items() if count == 0] == ["d", "e"]
    assert (crawl.overlap, crawl.sent) == (0, 0)


def test_in_figure_2_cross_over_covers_all_and_fetches_g_and_h_twice() -> None:
    crawl = figure_2("cross-over")
    assert crawl.coverage == 1
    # The first process comes back for d and e. So does the second, once it has run out of pages itself and goes
    # after h -> d: it cannot know that they were fetched.
    assert times(crawl) == {name: 2 if name in "ghde" else 1 for name in NAMES}
    assert crawl.overlap == pytest.approx(4 / 9)
    assert crawl.strayed == 3, "a, b and c come first"
    assert crawl.coverage_without_overlap == 6 / 9, "a, b, c and f, g, i"


def test_in_figure_2_exchange_covers_all_without_overlap() -> None:
    at_once, in_batches = figure_2("exchange"), figure_2("exchange", batch=3)
    assert (at_once.coverage, at_once.overlap) == (in_batches.coverage, in_batches.overlap) == (1, 0)
    assert at_once.sent == 3, "g after a and again after c, d after h"
    assert in_batches.sent == 2, "g once"


def test_in_figure_2_independent_processes_fetch_what_both_reach_twice() -> None:
    crawl = figure_2("independent")
    assert times(crawl) == {name: 1 if name in "abcfi" else 2 for name in NAMES}


CASES = [
    Setup("independent", 3),
    Setup("firewall", 3),
    Setup("cross-over", 3),
    Setup("exchange", 3),
    Setup("exchange", 3, batch=4),
    Setup("exchange", 3, replicated=5),
    *(Setup(mode, 3, order="backlinks") for mode in ("independent", "firewall", "cross-over", "exchange")),
    Setup("exchange", 3, order="backlinks", batch=5, replicated=3),
    *(Setup(mode, 3, order="backlinks", pages=25) for mode in ("independent", "cross-over", "exchange")),
    *(Setup("exchange", 3, order="backlinks", pages=40, exchanges=times) for times in (0, 1, 4, 100)),
]


@pytest.mark.parametrize("setup", CASES, ids=str)
def test_the_kernel_does_what_sets_and_dictionaries_do(setup: Setup) -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        links = [random.integers(0, 60, random.integers(0, 4)).tolist() for _ in range(60)]
        simulation = Simulation(WebGraph.of(links, site=random.integers(0, 12, 60).tolist()))
        owners = simulation.divider.owners("site", 3, seed)
        seeds = choose_seeds(owners, 3, 2, seed)
        crawl = simulation.crawl(setup, owners, seeds)
        popular = np.argsort(-simulation.backlinks, kind="stable")[: setup.replicated].tolist()
        all_seeds = [
            sorted({*some.tolist(), *(page for page in popular if owners[page] == process)})
            if popular
            else some.tolist()
            for process, some in enumerate(seeds)
        ]
        found = parallel_reference.crawl(links, setup, owners.tolist(), all_seeds, set(popular))
        assert crawl.times.tolist() == [found.times[page] for page in range(60)]
        assert {page: int(crawl.first[page]) for page in found.first} == found.first
        assert [count for count in crawl.by_tick.tolist() if count] == [n for n in found.by_tick if n]
        assert crawl.sent == found.sent


def test_the_compiled_loop_decides_as_frontier_modes_does_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba keeps a compiled loop until its own file changes. If only this test fails, remove __pycache__."""
    links = [[(7 * page + 3 * turn * turn + 1) % 97 for turn in range(page % 4)] for page in range(97)]
    simulation = Simulation(WebGraph.of(links, site=[page // 5 for page in range(97)]))
    setups = [
        *(Setup(mode, 3) for mode in MODES),
        Setup("exchange", 3, order="backlinks", batch=7, replicated=4),
    ]
    compiled = [simulation.run(setup, seed=1) for setup in setups]
    monkeypatch.setattr(parallel, "crawl", parallel.crawl.py_func)
    for setup, was in zip(setups, compiled, strict=True):
        now = simulation.run(setup, seed=1)
        assert (now.first == was.first).all(), setup
        assert (now.sent, now.sendings, now.strayed) == (was.sent, was.sendings, was.strayed), setup


def test_firewall_coverage_falls_with_processes_and_rises_with_seeds(simulation: Simulation) -> None:
    by_processes = [
        mean(simulation, "coverage", mode="firewall", processes=n, seeds=64 // n) for n in (1, 4, 16, 64)
    ]
    assert by_processes == sorted(by_processes, reverse=True)
    assert by_processes[0] > 1.5 * by_processes[-1]
    by_seeds = [mean(simulation, "coverage", mode="firewall", processes=64, seeds=n) for n in (1, 2, 5, 16)]
    assert by_seeds == sorted(by_seeds)
    assert by_seeds[-1] > 2 * by_seeds[0]


def test_cross_over_has_no_overlap_until_the_first_process_runs_out(simulation: Simulation) -> None:
    crawl = simulation.run(Setup("cross-over", 8), seed=1)
    coverage, overlap = crawl.curve()
    assert crawl.strayed > 0
    assert (overlap[: crawl.strayed] == 0).all()
    assert coverage[crawl.strayed - 1] == crawl.coverage_without_overlap > 0
    assert crawl.overlap == overlap[-1] > 1
    alone = simulation.run(Setup("independent", 8), seed=1)
    assert np.interp(0.5, *alone.curve()) > np.interp(0.5, coverage, overlap), "which is why it keeps apart"


@pytest.mark.parametrize("more", [{}, {"batch": 50}, {"batch": 10_000}, {"order": "backlinks"}], ids=str)
def test_exchange_has_no_overlap_and_covers_what_one_process_would(
    simulation: Simulation, more: dict[str, int]
) -> None:
    owners = simulation.divider.owners("site", 16, 1)
    seeds = choose_seeds(owners, 16, 1, 1)
    crawl = simulation.crawl(Setup("exchange", 16, **more), owners, seeds)  # type: ignore[arg-type]
    assert crawl.overlap == 0
    assert crawl.coverage == simulation.reachable(seeds) > 0.9


def test_site_hash_exchanges_the_share_of_links_between_sites_of_what_url_hash_does(
    web: WebGraph, simulation: Simulation
) -> None:
    for processes in (2, 16):
        by_site, by_url = (
            mean(simulation, "exchanged_per_page", processes=processes, partition=name)
            for name in ("site", "url")
        )
        assert by_site / by_url == pytest.approx(between_sites(web), rel=0.1)


def test_replicated_urls_cut_the_exchange_each_by_less(simulation: Simulation) -> None:
    sent = [mean(simulation, "exchanged_per_page", processes=64, replicated=n) for n in (0, 3, 25, 50)]
    few, many, most = (1 - value / sent[0] for value in sent[1:])
    assert few > 0.25, "0.025%"
    assert few + 0.1 < many < few + 0.4, "0.25%"
    assert many < most < many + 0.1, "0.5%"
    everything = mean(simulation, "coverage", processes=64)
    assert mean(simulation, "coverage", processes=64, replicated=25) == everything > 0.99


def test_larger_batches_send_fewer_urls(simulation: Simulation) -> None:
    sent = [simulation.run(Setup("exchange", 8, batch=size), seed=1).sent for size in (1, 10, 100, 1000)]
    assert sent == sorted(sent, reverse=True)
    assert sent[0] > 1.5 * sent[-1]


@pytest.mark.parametrize("share", [0.012, 0.05, 0.2])
def test_quality_needs_exchanges_but_fewer_than_a_hundred(simulation: Simulation, share: float) -> None:
    pages = round(share * simulation.web.nodes)

    def quality(processes: int, exchanges: int) -> float:
        setup = Setup("exchange", processes, order="backlinks", pages=pages, exchanges=exchanges)
        runs = [simulation.run(setup, seed) for seed in range(3)]
        return float(np.mean([run.quality(simulation.backlinks, pages) for run in runs]))

    for processes in (4, 16):
        never, some, always = (quality(processes, times) for times in (0, 99, pages))
        assert never < 0.97 * always
        assert some > 0.97 * always
    if share < 0.2:
        assert quality(64, 0) < quality(2, 0), "each knows less of the whole"


def test_pages_on_the_last_place_of_the_top_list_count_by_chance() -> None:
    backlinks = np.array([9, 5, 5, 5, 1])
    got = Crawl(np.array([1, 1, 0, 0, 1], np.int32), np.zeros(5, np.int32), np.array([3]), 0, 0, -1)
    assert got.quality(backlinks, 1) == 1
    assert got.quality(backlinks, 2) == pytest.approx((1 + 1 / 3) / 2)
    assert got.quality(backlinks, 5) == 3 / 5


def test_the_same_seed_gives_the_same_crawl_on_any_machine() -> None:
    links = [[(7 * page + 3 * turn * turn + 1) % 997 for turn in range(page % 6)] for page in range(997)]
    simulation = Simulation(WebGraph.of(links, site=[page // 20 for page in range(997)]))
    numbers = []
    for setup in (Setup("exchange", 4), Setup("cross-over", 4, order="backlinks"), Setup("firewall", 4)):
        crawl = simulation.run(setup, seed=11)
        checked = int((crawl.first.astype(np.int64) * np.arange(997) % 65_521).sum())
        numbers.append((crawl.pages, int((crawl.times > 0).sum()), crawl.sent, checked))
    assert numbers == [(997, 997, 1818, 26_952_768), (3988, 997, 0, 27_943_161), (78, 78, 0, 30_075_707)]


def test_more_seeds_include_fewer_and_belong_to_their_process() -> None:
    owners = (np.arange(100) % 3).astype(np.uint16)
    few, many = choose_seeds(owners, 3, 2, seed=5), choose_seeds(owners, 3, 5, seed=5)
    for process in range(3):
        assert set(few[process]) < set(many[process])
        assert (owners[many[process]] == process).all()
    assert [len(some) for some in choose_seeds(owners, 4, 2, seed=5)] == [2, 2, 2, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mode": "walls"}, "no mode"),
        ({"order": "depth"}, "no order"),
        ({"processes": 0}, "1 to 4096"),
        ({"seeds": 0}, "1 or more"),
        ({"mode": "firewall", "batch": 5}, "exchange mode"),
        ({"exchanges": 3}, "known number of pages"),
    ],
)
def test_a_wrong_setup_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Setup(**wrong)  # type: ignore[arg-type]


@pytest.mark.skipif(not CNR.exists(), reason="needs ../shared/data/graphs/cnr-2000.npz")
def test_on_a_real_web_the_trends_are_those_of_the_paper() -> None:
    web = load_web(CNR)
    simulation = Simulation(web)
    by_processes = [
        mean(simulation, "coverage", mode="firewall", processes=n, seeds=64 // n) for n in (1, 8, 64)
    ]
    assert by_processes == sorted(by_processes, reverse=True)
    by_seeds = [mean(simulation, "coverage", mode="firewall", processes=64, seeds=n) for n in (1, 16)]
    assert by_seeds == sorted(by_seeds)
    by_site, by_url = (
        mean(simulation, "exchanged_per_page", processes=64, partition=name) for name in ("site", "url")
    )
    assert by_site / by_url == pytest.approx(between_sites(web), rel=0.1)
    assert mean(simulation, "exchanged_per_page", processes=64, replicated=81) < 0.6 * by_site
