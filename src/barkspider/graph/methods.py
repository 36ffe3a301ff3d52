"""Ranking with the graph in RAM, on all processors.

Every function takes an open `Graph` and gives a `Ranking`: one score a node, and what it took. `hits` are
accesses to memory that no prefetcher foresees, `operations` additions, ORs and random words: what Table II
has, but counted while it happens.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError
from barkspider.graph import kernels
from barkspider.graph.store import Graph, Side

Task: TypeAlias = Callable[[int, int], Any]

ALPHA = 0.85
TOLERANCE, MOST_ROUNDS = 1e-8, 1000  # of PageRank: how near to its solution it ends, and when at the latest
# Ranges for each thread: where edges tell the work, a few even out what other processes take; a search may
# take a thousand times another's work, and no thread should wait long for the last.
_EVEN, _UNEVEN = 4, 64
_SMALL = 4096  # nodes and edges; handing out less would cost more than doing it
CERTAIN = 0.1  # share of bits still 0 below which further rounds of Bit Vector tell nothing more of a node


@dataclass(frozen=True, slots=True)
class Ranking:
    """One score a node, the higher the better; `rounds` are iterations of methods that iterate."""

    scores: npt.NDArray[Any]
    hits: int
    operations: int
    rounds: int = 1

    def top(self, count: int) -> npt.NDArray[np.int64]:
        """The best nodes, best first; of equal ones the lower number."""
        return top_nodes(self.scores, count)


def top_nodes(scores: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """Places of the highest scores, highest first; of equal ones the first.

    >>> top_nodes(np.array([1, 5, 3, 5]), 3).tolist()
    [1, 3, 2]
    """
    if count < len(scores):
        lowest = np.partition(scores, len(scores) - count)[len(scores) - count]
        chosen = (scores >= lowest).nonzero()[0]
    else:
        chosen = np.arange(len(scores))
    best: npt.NDArray[np.int64] = chosen[np.argsort(-scores[chosen], kind="stable")][:count]
    return best


def in_degree(graph: Graph) -> Ranking:
    """IN: equation (1) with D = 1. O(n), in order.

    >>> from barkspider.lab.generate import example
    >>> with example() as graph:  # 0 -> 1 -> 2 -> 3 and 1 -> 3
    ...     in_degree(graph).scores.tolist()
    [0, 1, 1, 2]
    """
    return Ranking(graph.into.degrees(), 0, graph.nodes)


def weighted_in_degree(graph: Graph) -> Ranking:
    """WIN: equation (2) once, with α = 1 and every π = 1: each node splits one vote. |E| hits.

    >>> from barkspider.lab.generate import example
    >>> with example() as graph:
    ...     weighted_in_degree(graph).scores.tolist()
    [0.0, 1.0, 0.5, 1.5]
    """
    into, shares, scores = graph.into, _inverse_degrees(graph.out), np.empty(graph.nodes)
    with _threads(into.offsets) as run:
        run(
            lambda begin, end: kernels.gather_shares(
                into.offsets, into.neighbours, shares, begin, end, scores
            )
        )
    return Ranking(scores, graph.edges, graph.edges)


def pagerank(
    graph: Graph, alpha: float = ALPHA, tolerance: float = TOLERANCE, most: int = MOST_ROUNDS
) -> Ranking:
    """PageRank: equation (2), iterated; nodes that link nowhere give their rank to all alike.

    An iteration shrinks differences to α of what they were, in L1, so the ranks are within α / (1 - α) times
    the last change of the solution: it stops when that is at most `tolerance`, or after `most` iterations.
    |E| hits each.
    """
    into, nodes, inverse = graph.into, graph.nodes, _inverse_degrees(graph.out)
    ranks = np.full(nodes, 1 / nodes)
    shares, following = ranks * inverse, np.empty(nodes)
    dangling = float(ranks[inverse == 0].sum())
    rounds, error = 0, math.inf
    with _threads(into.offsets) as run:
        while error > tolerance and rounds < most:
            base = (alpha * dangling + 1 - alpha) / nodes

            def step(
                begin: int,
                end: int,
                base: float = base,
                shares: npt.NDArray[np.float64] = shares,
                following: npt.NDArray[np.float64] = following,
            ) -> Any:
                return kernels.pagerank_step(
                    into.offsets, into.neighbours, shares, inverse, alpha, base, begin, end, ranks, following
                )

            done = run(step)
            change, dangling = (sum(part) for part in zip(*done, strict=True))
            error = change * alpha / (1 - alpha)
            shares, following = following, shares
            rounds += 1
    return Ranking(ranks, rounds * graph.edges, rounds * graph.edges, rounds)


def supporters(graph: Graph, depth: int = 2) -> Ranking:
    """SUPP_D: equation (1) by a breadth-first search against the links from every node.

    n (E[QVS] + E[SUPP_2]) hits for D = 2: each link followed marks a bit, each node met clears it. A bit a
    node and a queue for every thread.

    >>> from barkspider.lab.generate import example
    >>> with example() as graph:
    ...     supporters(graph).scores.tolist(), supporters(graph, 3).scores.tolist()
    ([0, 0, 1, 1], [0, 0, 0, 0])
    """
    check_depth(depth)
    into, scores = graph.into, np.empty(graph.nodes, np.int64)
    spare: list[Any] = []

    def search(begin: int, end: int) -> Any:
        seen, queue = spare.pop() if spare else _search_space(graph.nodes)
        done = kernels.count_supporters(into.offsets, into.neighbours, depth, begin, end, seen, queue, scores)
        spare.append((seen, queue))
        return done

    with _threads(into.offsets, _UNEVEN) as run:
        followed, met = (sum(part) for part in zip(*run(search), strict=True))
    return Ranking(scores, followed + met, met)


def quick_visit(graph: Graph) -> Ranking:
    """QVS: equation (3), the links that the search of SUPP_2 would follow. |E| hits.

    >>> from barkspider.lab.generate import example
    >>> with example() as graph:
    ...     quick_visit(graph).scores.tolist()
    [0, 0, 1, 2]
    """
    into, scores = graph.into, np.empty(graph.nodes, np.int64)
    degrees = into.degrees().astype(np.uint32)
    with _threads(into.offsets) as run:
        run(
            lambda begin, end: kernels.quick_visits(
                into.offsets, into.neighbours, degrees, begin, end, scores
            )
        )
    return Ranking(scores, graph.edges, graph.edges)


def bit_vector(graph: Graph, depth: int = 2, top: int = 0, seed: int = 1) -> Ranking:
    """BV: supporters estimated from 64 random bits a node that spread along links (Becchetti et al., [2]).

    In a round each bit is 1 with probability ε; after D times OR over in-neighbours a bit is still 0 with
    probability (1 - ε)^S, when S supporters could have set it and no closer node has: bits of closer nodes
    are taken out. ε is doubled from round to round, from about 1 / n; the adaptive rule of [2] then reads S
    off the one round that suits the node, which by calculation leaves an error of 13 to 16%. Here the shares
    of zeros of all rounds are added up and S is what makes their expectation that sum: √(2/π) ln 2 / √64, or 7%.

    With `top`, it ends when that many nodes have nearly all bits set: they have the most supporters, and
    later rounds are about the others. D r |E| hits in r rounds, as many ORs, and at most 64 r n random bits.
    """
    check_depth(depth)
    into, nodes = graph.into, graph.nodes
    counter = BitCounter(nodes, top)
    words, others = np.empty(nodes, np.uint64), np.empty(nodes, np.uint64)
    drawn = 0
    with _threads(into.offsets) as run:
        for halvings in counter.rounds():
            fill = words
            drawn += sum(run(lambda b, e: kernels.random_bits(seed, halvings, b, e, fill)))  # noqa: B023
            for _ in range(depth):
                gather = partial(kernels.gather_bits, into.offsets, into.neighbours, words, 0)
                run(lambda b, e: gather(b, e, others))  # noqa: B023
                words, others = others, words
            counter.add(others, words)
    moved = counter.done * depth * graph.edges
    return Ranking(counter.estimates(), moved, moved + drawn, counter.done)


def top_supporters(graph: Graph, p: float = 0.01, depth: int = 2, seed: int = 1) -> Ranking:
    """TSE: supporters counted among a p-sample of all nodes, and scaled by 1 / p (section VI-B).

    A node is in the sample with probability p, by a hash of its number and the seed. In RAM the sampled ones
    search forward, so only they cost anything: p of the hits of SUPP_D. Unbiased; see
    `model.ranking.sampling_error`.
    """
    check_depth(depth)
    out, nodes = graph.out, graph.nodes
    chosen = kernels.sampled(0, nodes, seed, sample_limit(p))
    spare: list[Any] = []

    def spread(begin: int, end: int) -> Any:
        space = spare.pop() if spare else (*_search_space(nodes), np.zeros(nodes, np.uint32))
        done = kernels.spread_support(out.offsets, out.neighbours, depth, chosen[begin:end], *space)
        spare.append(space)
        return done

    with _threads(np.arange(len(chosen) + 1), _UNEVEN) as run:
        followed, met = (sum(part) for part in zip((0, 0), *run(spread), strict=True))
    counts = sum((space[2] for space in spare), np.zeros(nodes, np.int64))
    return Ranking(counts / p, followed + met, met)


def sample_limit(p: float) -> int:
    """The largest of 2^64 random numbers that is still within the p-sample."""
    if not 0 < p <= 1:
        raise UsageError(f"p is {p:g}; the share of nodes to sample is above 0 and at most 1")
    return min(int(p * 2.0**64), 2**64 - 1)


def check_depth(depth: int) -> None:
    """Refuse a distance at which nobody can support anybody."""
    if depth < 1:
        raise UsageError(f"depth is {depth}; supporters are at distance 1 or more")


class BitCounter:
    """The sums behind Bit Vector: 8 bytes a node beside the two words that the caller keeps. One thread."""

    def __init__(self, nodes: int, top: int) -> None:
        self._nodes, self._top = nodes, top
        self._missed, self._last = np.zeros(nodes, np.float32), np.ones(nodes, np.float32)
        self._certain = 0
        self.done = 0

    def rounds(self) -> Iterator[int]:
        """How often 1 is to be halved for the ε of each round; ends early when the top list is certain."""
        for halvings in range(max(1, math.ceil(math.log2(self._nodes))), 0, -1):
            if self._top and self._certain >= self._top:
                return
            yield halvings
            self.done += 1

    def add(self, inner: npt.NDArray[np.uint64], outer: npt.NDArray[np.uint64]) -> None:
        """Count a round: the words of all within distance D - 1, and within D."""
        self._certain = kernels.tally_bits(inner, outer, self._missed, self._last, CERTAIN)

    def estimates(self, begin: int = 0, end: int | None = None) -> npt.NDArray[np.float64]:
        """The number of supporters that each node most likely has."""
        supporters = np.concatenate([[0.0], np.geomspace(0.1, max(1.0, self._nodes), 4000)])
        first = max(1, math.ceil(math.log2(self._nodes)))
        chances = 0.5 ** np.arange(first, first - self.done, -1.0)
        expected = np.exp(np.outer(supporters, np.log1p(-chances))).sum(axis=1)
        found: npt.NDArray[np.float64] = np.interp(
            -self._missed[begin:end].astype(np.float64), -expected, supporters
        )
        return found


def _inverse_degrees(side: Side) -> npt.NDArray[np.float64]:
    degrees = side.degrees()
    shares = np.zeros(len(degrees))
    np.divide(1.0, degrees, out=shares, where=degrees > 0)
    return shares


def _search_space(nodes: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    return np.zeros(nodes // 64 + 1, np.uint64), np.empty(nodes + 1, np.uint32)


@contextmanager
def _threads(
    offsets: npt.NDArray[np.int64], ranges_each: int = _EVEN
) -> Iterator[Callable[[Task], list[Any]]]:
    """Run tasks on ranges of nodes with about equally many edges; results come in the order of nodes."""
    threads, nodes = len(os.sched_getaffinity(0)), len(offsets) - 1
    weights = offsets + np.arange(nodes + 1)  # an edge and a node cost about the same
    count = min(threads * ranges_each, int(weights[-1]) // _SMALL + 1)
    cuts = np.searchsorted(weights, np.linspace(0, weights[-1], count + 1))
    ranges = list(pairwise(np.unique(np.append(cuts, [0, nodes])).tolist()))
    with ThreadPoolExecutor(threads) as pool:
        yield lambda task: list(pool.map(lambda part: task(*part), ranges))
