"""Graphs that are made up: a tiny one for examples, and one with the shape of a real domain graph."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from barkspider.graph.build import build_graph
from barkspider.graph.store import Graph
from barkspider.storage.env import Env

_BATCH = 1 << 21
# So that 2 million nodes with 40 million edges look like the paper's 89 million with 1.8 billion; the figures of
# both are in docs/ranking.md.
_IN_EXPONENT, _IN_SHIFT = 0.88, 17.0
_OUT_EXPONENT, _OUT_SHIFT = 0.76, 15.0
# 34% link at all in the paper. Of 2 million that would be 680,000, and if each of them supported a node, TSE
# at p = 0.01 would still have a mean error of 0.97% for it: too near to 1% to tell whether it stays below.
_LINKING = 0.38
_EXCHANGED, _BOUGHT = 0.95, 3  # share of the other members that a member links to; links bought by each
_NOISE = 1.2  # deviation of the logarithm of the rank by out-degree from that by in-degree


@contextmanager
def example() -> Iterator[Graph]:
    """0 -> 1 -> 2 -> 3 and 1 -> 3.

    >>> with example() as graph:
    ...     graph.nodes, graph.edges
    (4, 4)
    """
    with tempfile.TemporaryDirectory() as folder:
        yield build_graph(Env(), Path(folder), [(np.array([0, 1, 2, 1]), np.array([1, 2, 3, 3]))])


def domain_edges(
    nodes: int, edges: int, seed: int = 1
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Batches of edges of a random graph with heavy tails; some are repeated, which `build_graph` drops.

    The expected in-degree of the node at rank i falls as (i + 17)^-0.88, the out-degree as (i + 15)^-0.76 of
    another rank that follows the first loosely: who is linked to a lot links a lot. Numbers are shuffled.

    >>> sum(len(sources) for sources, _ in domain_edges(1000, 20_000))
    20000
    """
    random = np.random.default_rng(seed)
    numbers = random.permutation(nodes)
    loose = np.log(np.arange(1, nodes + 1)) + random.normal(0, _NOISE, nodes)
    linking = numbers[np.argsort(loose)[: max(1, int(_LINKING * nodes))]]
    for begin in range(0, edges, _BATCH):
        count = min(_BATCH, edges - begin)
        yield (
            linking[_ranks(random.random(count), len(linking), _OUT_EXPONENT, _OUT_SHIFT)],
            numbers[_ranks(random.random(count), nodes, _IN_EXPONENT, _IN_SHIFT)],
        )


def exchange_edges(
    nodes: int, edges: int, members: int, seed: int = 1
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """`domain_edges`, and after these nodes as many members of a link exchange (section V-A, worldnews.com).

    Members link to each other in a nearly complete graph; each has bought links from a few other domains, of
    which anybody can have some: the less known a domain is the more willing, and most are not known at all.

    >>> batches = list(exchange_edges(1000, 5000, 200))
    >>> targets = np.concatenate([targets for _, targets in batches])
    >>> bool(np.bincount(targets)[1000:].min() > 180)
    True
    """
    yield from domain_edges(nodes, edges, seed)
    random = np.random.default_rng(seed + 1)
    sources, targets = np.nonzero(random.random((members, members)) < _EXCHANGED)
    yield sources + nodes, targets + nodes
    yield random.integers(0, nodes, _BOUGHT * members), np.tile(np.arange(members) + nodes, _BOUGHT)


def _ranks(
    uniform: npt.NDArray[np.float64], nodes: int, exponent: float, shift: float
) -> npt.NDArray[np.int64]:
    """Ranks with density (rank + shift)^-exponent, by the inverse of its integral."""
    power = 1 - exponent
    low, high = shift**power, (nodes + shift) ** power
    ranks = (low + uniform * (high - low)) ** (1 / power) - shift
    numbers: npt.NDArray[np.int64] = np.minimum(ranks.astype(np.int64), nodes - 1)
    return numbers
