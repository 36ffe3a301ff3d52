"""Slow twins of every method, straight from the equations, and graphs to try them on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from barkspider.graph.build import build_graph
from barkspider.graph.store import Graph
from barkspider.storage.env import Env

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "graphs"

Links = list[set[int]]


def made(folder: Path, nodes: int, edges: Iterable[tuple[int, int]], memory: int = 1 << 20) -> Graph:
    """The graph of these edges, built on disk."""
    pairs = np.array(list(edges), np.int64).reshape(-1, 2)
    return build_graph(Env(), folder, [(pairs[:, 0], pairs[:, 1])], nodes=nodes, memory=memory)


def scale_free(nodes: int, edges: int, seed: int = 1) -> list[tuple[int, int]]:
    """Edges with heavy tails on both sides, with repeated ones and self-loops."""
    random = np.random.default_rng(seed)
    sources = (random.pareto(1.0, edges) * nodes / 20).astype(np.int64) % nodes
    targets = (random.pareto(0.8, edges) * 3).astype(np.int64) % nodes
    return list(zip(sources.tolist(), targets.tolist(), strict=True))


def linked_from(nodes: int, edges: Iterable[tuple[int, int]]) -> Links:
    """Who links to each node."""
    links: Links = [set() for _ in range(nodes)]
    for source, target in edges:
        if source != target:
            links[target].add(source)
    return links


def supporters(links: Links, depth: int) -> list[int]:
    """Equation (1): breadth-first search with sets."""
    found = []
    for node in range(len(links)):
        seen, level = {node}, {node}
        for _ in range(depth):
            level = {source for each in level for source in links[each]} - seen
            seen |= level
        found.append(len(level))
    return found


def ends(leads: dict[int, int]) -> dict[int, int]:
    """Where each leads in the end, a step at a time; those in a circle are left out."""
    circling = set()
    for node in leads:
        place = leads[node]
        for _ in leads:
            if place == node:
                circling.add(node)
            place = leads.get(place, place)
    found = {node: target for node, target in leads.items() if node not in circling}
    for node in found:
        while found[node] in leads.keys() - circling:
            found[node] = leads[found[node]]
    return found


def quick_visits(links: Links) -> list[int]:
    """Equation (3)."""
    return [sum(len(links[source]) for source in sources) for sources in links]


def weighted_in_degree(links: Links) -> list[float]:
    """One iteration of equation (2) with α = 1 from ones."""
    out = out_degrees(links)
    return [sum(1 / out[source] for source in sources) for sources in links]


def pagerank(links: Links, alpha: float) -> np.ndarray:
    """Equation (2) with the whole matrix, solved directly."""
    nodes, out = len(links), out_degrees(links)
    matrix = np.zeros((nodes, nodes))
    for target, sources in enumerate(links):
        for source in sources:
            matrix[target, source] = 1 / out[source]
    matrix[:, [degree == 0 for degree in out]] = 1 / nodes
    return np.linalg.solve(np.eye(nodes) - alpha * matrix, np.full(nodes, (1 - alpha) / nodes))


def out_degrees(links: Links) -> list[int]:
    """How many nodes each links to."""
    degrees = [0] * len(links)
    for sources in links:
        for source in sources:
            degrees[source] += 1
    return degrees


@pytest.fixture(scope="session")
def web(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Links]:
    """A graph with the paper's shape, small enough for the twins."""
    edges = scale_free(400, 4000)
    folder = tmp_path_factory.mktemp("graph") / "web"
    return made(folder, 400, edges), linked_from(400, edges)
