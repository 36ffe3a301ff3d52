"""Ranking in RAM against slow twins, other libraries and statistics."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import UsageError
from barkspider.graph import kernels, methods
from barkspider.graph.importing import read_graph
from barkspider.graph.store import Graph
from barkspider.model.ranking import sampling_error
from barkspider.storage.env import Env
from tests.graph import reference
from tests.graph.reference import DATA, Links


@st.composite
def small_graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    nodes = draw(st.integers(2, 12))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=40))
    return nodes, [(0, 1), *edges]


@settings(max_examples=100, deadline=None)
@given(small_graphs(), st.integers(1, 4))
def test_every_exact_method_equals_its_twin_on_any_graph(
    graph: tuple[int, list[tuple[int, int]]], depth: int
) -> None:
    nodes, edges = graph
    links = reference.linked_from(nodes, edges)
    with tempfile.TemporaryDirectory() as folder:
        built = reference.made(Path(folder), nodes, edges)
        assert methods.in_degree(built).scores.tolist() == [len(sources) for sources in links]
        assert methods.supporters(built, depth).scores.tolist() == reference.supporters(links, depth)
        assert methods.quick_visit(built).scores.tolist() == reference.quick_visits(links)
        assert methods.weighted_in_degree(built).scores == pytest.approx(reference.weighted_in_degree(links))
        whole = methods.top_supporters(built, p=1.0, depth=depth)
        assert whole.scores.tolist() == reference.supporters(links, depth)
        exact = reference.pagerank(links, 0.85)
        assert np.abs(methods.pagerank(built, tolerance=1e-9).scores - exact).sum() <= 1e-9


def test_pagerank_stops_on_the_bound_that_it_promises(web: tuple[Graph, Links]) -> None:
    graph, links = web
    exact = reference.pagerank(links, 0.85)
    for tolerance in (1e-2, 1e-5, 1e-10):
        found = methods.pagerank(graph, tolerance=tolerance)
        assert np.abs(found.scores - exact).sum() <= tolerance
        assert found.scores.sum() == pytest.approx(1)
        assert found.hits == found.rounds * graph.edges
    assert methods.pagerank(graph, most=3).rounds == 3


def test_win_is_one_iteration_of_pagerank_from_ones(web: tuple[Graph, Links]) -> None:
    graph, _ = web
    degrees = graph.out.degrees()
    once = methods.pagerank(graph, alpha=1 - 1e-12, most=1).scores * graph.nodes
    once -= (degrees == 0).mean()  # what the nodes that link nowhere give to all
    assert methods.weighted_in_degree(graph).scores == pytest.approx(once, abs=1e-9)


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared test data is not there")
def test_a_real_domain_graph_has_the_supporters_that_a_search_finds_and_the_ranks_that_igraph_finds() -> None:
    import igraph

    data = np.load(DATA / "ukwa-1996-pld.npz")
    sources = np.repeat(np.arange(len(data["indptr"]) - 1), np.diff(data["indptr"]))
    links = reference.linked_from(
        len(data["indptr"]) - 1, zip(sources.tolist(), data["indices"].tolist(), strict=True)
    )
    with tempfile.TemporaryDirectory() as folder:
        graph = read_graph(Env(), DATA / "ukwa-1996-pld.npz", Path(folder) / "graph")
        assert (graph.nodes, graph.edges) == (33_641, 126_218)
        assert methods.supporters(graph).scores.tolist() == reference.supporters(links, 2)
        ranks = methods.pagerank(graph).scores
        top = [graph.name(node) for node in methods.supporters(graph).top(3)]
        assert set(top) == {"ibm.com", "microsoft.com", "netscape.com"}
    peer = igraph.Graph(
        n=len(links), edges=np.column_stack([sources, data["indices"]]), directed=True
    ).pagerank(damping=0.85)
    assert np.abs(ranks - np.array(peer)).sum() < 1e-6


def test_tse_is_unbiased_and_as_precise_as_sampling_can_be(web: tuple[Graph, Links]) -> None:
    graph, _ = web
    exact = methods.supporters(graph).scores
    p, runs = 0.2, 400
    found = np.array([methods.top_supporters(graph, p, seed=seed).scores for seed in range(runs)])
    deviation = np.sqrt(exact * (1 - p) / p)
    away = np.abs(found.mean(axis=0) - exact) / np.maximum(deviation / math.sqrt(runs), 1e-9)
    assert away.max() < 5  # of 400 nodes; a biased count is hundreds of deviations away
    spread = found.std(axis=0)[exact > 20] / deviation[exact > 20]
    assert 0.9 < spread.mean() < 1.1
    top = methods.supporters(graph).top(50)
    error = (np.abs(found[:, top] - exact[top]) / exact[top]).mean()
    foretold = np.mean([sampling_error(p, size) for size in exact[top]])
    assert error == pytest.approx(foretold, rel=0.2)


def test_bits_of_one_seed_tell_nothing_of_those_of_the_next() -> None:
    """One more halving with the seed before it had once cleared bits of the very same words."""
    first, second = np.empty(1000, np.uint64), np.empty(1000, np.uint64)
    kernels.random_bits(7, 4, 0, 1000, first)
    kernels.random_bits(8, 3, 0, 1000, second)
    shared = np.bitwise_count(first & second).sum() / np.bitwise_count(first).sum()
    assert shared == pytest.approx(1 / 8, rel=0.2)


# At distance three most bits are set by closer nodes already, and tell nothing.
@pytest.mark.parametrize(("depth", "most"), [(1, 0.12), (2, 0.12), (3, 0.25)])
def test_bit_vector_is_right_on_average_within_its_error(
    web: tuple[Graph, Links], depth: int, most: float
) -> None:
    graph, _ = web
    exact = methods.supporters(graph, depth).scores
    found = np.array([methods.bit_vector(graph, depth, seed=seed).scores for seed in range(150)])
    many = exact >= 8
    assert many.sum() > 40
    ratio = found.mean(axis=0)[many] / exact[many]
    assert 0.93 < ratio.mean() < 1.07
    error = np.abs(found[:, many] / exact[many] - 1).mean()
    assert 0.04 < error < most
    assert found[:, exact == 0].max() == 0


def test_bit_vector_for_the_top_ends_early_and_agrees_on_the_top(web: tuple[Graph, Links]) -> None:
    graph, _ = web
    whole, short = methods.bit_vector(graph), methods.bit_vector(graph, top=10)
    assert short.rounds < whole.rounds
    assert short.hits == short.rounds * 2 * graph.edges
    exact = methods.supporters(graph).scores
    top = methods.top_nodes(exact, 10)
    assert np.abs(short.scores[top] / exact[top] - 1).mean() < 0.3


def test_tse_costs_its_share_of_the_exact_search(web: tuple[Graph, Links]) -> None:
    graph, _ = web
    whole = methods.supporters(graph).hits
    shares = [methods.top_supporters(graph, 0.1, seed=seed).hits / whole for seed in range(200)]
    assert 0.07 < np.mean(shares) < 0.13


def test_senseless_numbers_are_refused(web: tuple[Graph, Links]) -> None:
    graph, _ = web
    for p in (0, -0.1, 1.5, math.nan):
        with pytest.raises(UsageError, match="above 0 and at most 1"):
            methods.top_supporters(graph, p)
    with pytest.raises(UsageError, match="distance 1 or more"):
        methods.supporters(graph, 0)
