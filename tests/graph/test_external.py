"""Ranking from disk gives what ranking in RAM gives, moves the bytes that the formulas say, and stays small."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import UsageError
from barkspider.graph import costs, exact, external, methods
from barkspider.graph.build import build_graph
from barkspider.graph.external import Scores, Work
from barkspider.graph.rank import METHODS, Choice, rank
from barkspider.graph.store import Graph
from barkspider.lab.generate import domain_edges
from barkspider.storage.env import Env
from tests.graph import reference


def joined(scores: Scores, nodes: int) -> np.ndarray:
    """All scores, after a look that blocks are in order and complete."""
    parts, place = [], 0
    for first, block in scores:
        assert first == place
        place += len(block)
        parts.append(block)
    assert place == nodes
    return np.concatenate(parts)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("graph") / "domains"
    return build_graph(Env(), folder, domain_edges(5_000, 50_000), nodes=5_000)


@pytest.fixture(params=[exact.supporters_a, exact.supporters_b])
def search(request: pytest.FixtureRequest) -> Callable[..., Scores]:
    found: Callable[..., Scores] = request.param
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=150))
def test_both_exact_methods_equal_a_search_on_any_graph(nodes: int, edges: list[tuple[int, int]]) -> None:
    inside = [(0, 1), *((source % nodes, target % nodes) for source, target in edges)]
    wanted = reference.supporters(reference.linked_from(nodes, inside), 2)
    with tempfile.TemporaryDirectory() as folder:
        built = reference.made(Path(folder), nodes, inside)
        for memory in (4 * nodes + 8, 1 << 16):
            assert joined(exact.supporters_a(built, memory, Work()), nodes).tolist() == wanted
            assert joined(exact.supporters_b(built, memory, Work()), nodes).tolist() == wanted


def test_supporters_are_those_of_ram_however_little_memory(
    graph: Graph, search: Callable[..., Scores]
) -> None:
    wanted = methods.supporters(graph).scores
    for memory in (120_000, 1_000_000, 50_000_000):
        assert joined(search(graph, memory, Work()), graph.nodes).tolist() == wanted.tolist()


def test_estimates_are_those_of_ram_to_the_last_bit(graph: Graph) -> None:
    nodes, memory = graph.nodes, 1_000_000
    for top in (0, 50):
        work = Work()
        found = joined(external.bit_vector(graph, memory, work, top=top, seed=3), nodes)
        wanted = methods.bit_vector(graph, top=top, seed=3)
        assert found.tolist() == wanted.scores.tolist()
        assert (work.hits, work.operations, work.rounds) == (wanted.hits, wanted.operations, wanted.rounds)
    for p in (0.001, 0.05, 1.0):
        found = joined(external.top_supporters(graph, memory, Work(), p, seed=3), nodes)
        assert found.tolist() == methods.top_supporters(graph, p, seed=3).scores.tolist()
    found = joined(external.quick_visit(graph, memory, Work()), nodes)
    assert found.tolist() == methods.quick_visit(graph).scores.tolist()


def test_degrees_and_pagerank_are_those_of_ram(graph: Graph) -> None:
    nodes, memory = graph.nodes, 1_000_000
    found = joined(external.in_degree(graph, 0, Work()), nodes)
    assert found.tolist() == methods.in_degree(graph).scores.tolist()
    found = joined(external.weighted_in_degree(graph, memory, Work()), nodes)
    assert found.tolist() == methods.weighted_in_degree(graph).scores.tolist()
    work = Work()
    found = joined(external.pagerank(graph, memory, work), nodes)
    wanted = methods.pagerank(graph)
    assert found == pytest.approx(wanted.scores, rel=1e-12)
    assert (work.rounds, work.hits) == (wanted.rounds, wanted.hits)


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_supporters_at_any_distance_are_those_of_ram(graph: Graph, depth: int) -> None:
    wanted = methods.supporters(graph, depth).scores
    for memory in (1_000_000, 8_000_000):
        found = joined(external.distant_supporters(graph, memory, Work(), depth), graph.nodes)
        assert found.tolist() == wanted.tolist()
    for p in (0.001, 0.05):
        found = joined(external.distant_supporters(graph, 1_000_000, Work(), depth, p, seed=3), graph.nodes)
        assert found.tolist() == methods.top_supporters(graph, p, depth, seed=3).scores.tolist()


def test_every_method_ranks_from_disk_as_in_ram(graph: Graph) -> None:
    for method in METHODS:
        for depth in (2, 3):
            choice = Choice(method, p=0.02, depth=depth, top=20)
            tops = [rank(graph, replace(choice, memory=memory)).top for memory in (None, 2_000_000)]
            assert [node for node, _ in tops[0]] == [node for node, _ in tops[1]]


def test_bytes_moved_are_those_of_the_formulas(graph: Graph) -> None:
    size, nodes = graph.into.bytes, graph.nodes
    works = {name: Work() for name in ("qvs", "bv", "tse", "a")}
    joined(external.quick_visit(graph, 1 << 20, works["qvs"]), nodes)
    joined(external.bit_vector(graph, 1 << 20, works["bv"], top=100), nodes)
    joined(external.top_supporters(graph, 1 << 20, works["tse"], 0.05), nodes)
    assert works["qvs"].traffic.read == pytest.approx(costs.quick_visit_bytes(size), rel=0.001)
    assert works["bv"].traffic.read == pytest.approx(
        costs.bit_vector_bytes(size, works["bv"].rounds), rel=0.001
    )
    assert works["tse"].traffic.read == pytest.approx(costs.top_supporters_bytes(size), rel=0.001)
    works |= {name: Work() for name in ("in", "win", "pagerank", "supp3")}
    joined(external.in_degree(graph, 0, works["in"]), nodes)
    joined(external.weighted_in_degree(graph, 1 << 20, works["win"]), nodes)
    joined(external.pagerank(graph, 1 << 20, works["pagerank"]), nodes)
    joined(external.distant_supporters(graph, 1 << 20, works["supp3"], 3), nodes)
    for name, foretold in {
        "in": costs.in_degree_bytes(nodes),
        "win": costs.pagerank_bytes(size, nodes),
        "pagerank": costs.pagerank_bytes(size, nodes, works["pagerank"].rounds),
        "supp3": costs.distant_supporters_bytes(size, nodes, nodes, 3, 1 << 20),
    }.items():
        assert works[name].traffic.read == pytest.approx(foretold, rel=0.001)
    assert all(work.traffic.written == 0 for work in works.values())

    found = methods.supporters(graph).scores
    memory = 400_000
    joined(exact.supporters_a(graph, memory, works["a"]), nodes)
    foretold = costs.supporters_a_bytes(size, nodes, graph.edges, int(found.sum()), memory)
    assert works["a"].traffic.read == pytest.approx(foretold, rel=0.05)
    assert works["a"].traffic.written == 0


def test_sorting_pairs_moves_what_the_formula_says_in_one_phase_and_less_in_several(tmp_path: Path) -> None:
    graph = build_graph(Env(), tmp_path / "graph", domain_edges(30_000, 125_000), nodes=30_000)
    paths = int(methods.quick_visit(graph).scores.sum())
    once, often = Work(), Work()
    joined(exact.supporters_b(graph, 4_000_000, once), graph.nodes)
    read, written, phases = costs.supporters_b_bytes(graph.into.bytes, paths, 4_000_000)
    assert phases == 1
    assert once.traffic.written == pytest.approx(written, rel=0.05)
    assert once.traffic.read == pytest.approx(read, rel=0.05)
    # Repeated pairs are gone early, and not every block goes through each phase.
    joined(exact.supporters_b(graph, 2_000_000, often), graph.nodes)
    read, written, phases = costs.supporters_b_bytes(graph.into.bytes, paths, 2_000_000)
    assert phases == 2
    assert once.traffic.written < often.traffic.written < written
    assert once.traffic.read < often.traffic.read < read


def test_too_little_memory_is_refused_before_or_when_it_shows(graph: Graph) -> None:
    for scores in (
        external.weighted_in_degree(graph, 1000, Work()),
        external.pagerank(graph, 1000, Work()),
        external.distant_supporters(graph, 1000, Work(), 3),
        external.quick_visit(graph, 1000, Work()),
        external.bit_vector(graph, 1000, Work()),
        external.top_supporters(graph, 1000, Work(), 0.5),
        exact.supporters_a(graph, 1000, Work()),
    ):
        with pytest.raises(UsageError, match="give more"):
            list(scores)


_METHODS = (
    "in_degree",
    "weighted_in_degree",
    "pagerank",
    "quick_visit",
    "bit_vector",
    "top_supporters",
    "supporters_a",
    "supporters_b",
)
_CHILD = """
import os
import sys
from pathlib import Path
from barkspider.graph import exact, external
from barkspider.graph.external import Work
from barkspider.graph.rank import peak_rss
from barkspider.graph.store import Graph
from barkspider.storage.env import Env

graph, memory = Graph(Env(), Path(sys.argv[1])), int(sys.argv[2])
for name in sys.argv[3:]:
    if os.fork():
        os.wait()
        continue
    before = peak_rss()
    for _ in getattr(exact if name.startswith("supporters") else external, name)(graph, memory, Work()):
        pass
    print(name, peak_rss() - before, flush=True)
    os._exit(0)
"""
_MEMORY = 4_000_000


@pytest.fixture(scope="module")
def grown(graph: Graph) -> dict[str, int]:
    """How far each method made the memory of a process grow that did nothing else."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(graph.folder), str(_MEMORY), *_METHODS],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return {name: int(size) for name, size in map(str.split, done.stdout.splitlines())}


@pytest.mark.parametrize("name", _METHODS)
def test_memory_stays_within_what_was_given_and_64_mb(grown: dict[str, int], name: str) -> None:
    assert 0 < grown[name] <= _MEMORY + 64_000_000
