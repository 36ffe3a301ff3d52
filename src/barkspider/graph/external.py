"""Ranking a graph that does not fit in RAM: it is read from disk in order, and bytes are counted (Table III).

Every function yields (number of the first node, scores of nodes in a row), in order, so that not even the scores need
fit; what it took is added to a `Work`. The numbers are those of `methods`, exactly; of PageRank all but the last
digits, since sums over all nodes depend on how these are divided among threads. Beside what a formula allows, buffers
take at most 24 MB (`exact` has the largest) unless a node has millions of neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError
from barkspider.graph import kernels
from barkspider.graph.arrays import Traffic
from barkspider.graph.methods import ALPHA, MOST_ROUNDS, TOLERANCE, BitCounter, check_depth, sample_limit
from barkspider.graph.store import Graph, Side

Scores: TypeAlias = Iterator[tuple[int, npt.NDArray[Any]]]
_BLOCK = 1 << 18  # scores that are handed out at a time


@dataclass(slots=True)
class Work:
    """What a ranking took: bytes from and to disk, accesses to memory, operations, rounds."""

    traffic: Traffic = field(default_factory=Traffic)
    hits: int = 0
    operations: int = 0
    rounds: int = 1


def in_degree(graph: Graph, memory: int, work: Work) -> Scores:  # noqa: ARG001
    """IN: reads the offsets of the in-graph once, 8n bytes; keeps nothing."""
    for first, offsets in _offsets(graph.into, work):
        work.operations += len(offsets) - 1
        yield first, np.diff(offsets)


def weighted_in_degree(graph: Graph, memory: int, work: Work) -> Scores:
    """WIN: reads the offsets of the out-graph and the in-graph once, D = F + 8n; keeps a share of each node, 8n."""
    need_memory(memory, 8 * graph.nodes, "the shares of all nodes")
    shares = _inverse_degrees(graph, work)
    for first, offsets, neighbours in graph.into.scan(work.traffic):
        scores = np.empty(len(offsets) - 1)
        kernels.gather_shares(offsets, neighbours, shares, 0, len(scores), scores)
        work.hits += len(neighbours)
        work.operations += len(neighbours)
        yield first, scores


def pagerank(graph: Graph, memory: int, work: Work) -> Scores:
    """PageRank: reads the in-graph once in each of r iterations, D = rF + 8n; keeps four numbers a node, 32n."""
    nodes = graph.nodes
    need_memory(memory, 32 * nodes, "four numbers of every node")
    inverse, ranks = _inverse_degrees(graph, work), np.full(nodes, 1 / nodes)
    shares, following = ranks * inverse, np.empty(nodes)
    dangling = float(ranks[inverse == 0].sum())
    work.rounds, error = 0, math.inf
    while error > TOLERANCE and work.rounds < MOST_ROUNDS:
        base, change, left = (ALPHA * dangling + 1 - ALPHA) / nodes, 0.0, 0.0
        for first, offsets, neighbours in graph.into.scan(work.traffic):
            here = slice(first, first + len(offsets) - 1)
            moved, stuck = kernels.pagerank_step(
                offsets,
                neighbours,
                shares,
                inverse[here],
                ALPHA,
                base,
                0,
                len(offsets) - 1,
                ranks[here],
                following[here],
            )
            change, left = change + moved, left + stuck
            work.hits += len(neighbours)
            work.operations += len(neighbours)
        dangling, error = left, change * ALPHA / (1 - ALPHA)
        shares, following = following, shares
        work.rounds += 1
    for begin in range(0, nodes, _BLOCK):
        yield begin, ranks[begin : begin + _BLOCK]


def quick_visit(graph: Graph, memory: int, work: Work) -> Scores:
    """QVS: reads the in-graph twice, D = 2F; keeps the in-degrees, 4n bytes of the paper's 2(h + m)n."""
    need_memory(memory, 4 * graph.nodes, "the in-degrees of all nodes")
    degrees = np.empty(graph.nodes, np.uint32)
    for first, offsets, _ in graph.into.scan(work.traffic):
        degrees[first : first + len(offsets) - 1] = np.diff(offsets)
    for first, offsets, neighbours in graph.into.scan(work.traffic):
        scores = np.empty(len(offsets) - 1, np.int64)
        kernels.quick_visits(offsets, neighbours, degrees, 0, len(scores), scores)
        work.hits += len(neighbours)
        work.operations += len(neighbours)
        yield first, scores


def bit_vector(graph: Graph, memory: int, work: Work, depth: int = 2, top: int = 0, seed: int = 1) -> Scores:
    """BV: reads the in-graph D times in each of r rounds, 2rF; keeps (2b + m)n bytes, b = m = 8."""
    check_depth(depth)
    nodes = graph.nodes
    need_memory(memory, 24 * nodes, "two words and a sum of every node")
    counter = BitCounter(nodes, top)
    words, others = np.empty(nodes, np.uint64), np.empty(nodes, np.uint64)
    for halvings in counter.rounds():
        work.operations += kernels.random_bits(seed, halvings, 0, nodes, words)
        for _ in range(depth):
            for first, offsets, neighbours in graph.into.scan(work.traffic):
                kernels.gather_bits(offsets, neighbours, words, first, 0, len(offsets) - 1, others)
                work.hits += len(neighbours)
                work.operations += len(neighbours)
            words, others = others, words
        counter.add(others, words)
    del words, others
    work.rounds = counter.done
    for begin in range(0, nodes, _BLOCK):
        yield begin, counter.estimates(begin, begin + _BLOCK)


def top_supporters(graph: Graph, memory: int, work: Work, p: float = 0.01, seed: int = 1) -> Scores:
    """TSE: reads the out-graph once and the in-graph once, D = 2F; keeps the sample, which grows as pF.

    Of each edge of the sample the target and the source are kept, sorted by target, in 8 bytes, and about as
    much again while they are sorted and for the table that finds them: 3 to 4 times pF in all.
    """
    names, targets, sources = _sample(graph, memory, work, sample_limit(p), seed, p)
    shift = 0
    while graph.nodes >> shift > len(targets):
        shift += 1
    steps = np.arange((graph.nodes >> shift) + 2, dtype=np.int64) << shift
    starts = np.searchsorted(targets, np.minimum(steps, 2**32 - 1).astype(np.uint32)).astype(np.uint32)
    stamps, stamp = np.zeros(len(names), np.uint32), np.zeros(1, np.int64)
    for first, offsets, neighbours in graph.into.scan(work.traffic):
        counts = np.empty(len(offsets) - 1, np.int64)
        looked, met = kernels.join_sample(
            offsets, neighbours, first, targets, sources, names, starts, shift, stamps, stamp, counts
        )
        work.hits += len(neighbours) + looked
        work.operations += met
        yield first, counts / p


def distant_supporters(
    graph: Graph, memory: int, work: Work, depth: int, p: float | None = None, seed: int = 1
) -> Scores:
    """SUPP_D, or TSE with a `p`, at any distance D: 64 nodes at a time search along their links, a bit each in a word of
    every node, or some times 64 as far as the memory goes.

    Keeps two words a node for each 64 and a count, so with Ω bytes W = (Ω - 4n) / 16n of these: reads the in-graph
    D ⌈pn / 64W⌉ times. At distance two `exact` and `top_supporters` move less.
    """
    check_depth(depth)
    nodes = graph.nodes
    need_memory(memory, 20 * nodes, "two words and a count of every node")
    most = math.ceil(nodes * (p or 1.0) / 64)
    count = max(1, min((memory - 4 * nodes) // (16 * nodes), most))
    inner, outer = (np.empty((count, nodes), np.uint64) for _ in range(2))
    found = np.zeros(nodes, np.uint32)
    work.rounds = 0
    for sources in _groups(nodes, seed, sample_limit(p or 1.0), 64 * count):
        outer[:] = 0
        for number, group in enumerate(np.split(sources, range(64, len(sources), 64))):
            outer[number, group] = np.uint64(1) << np.arange(len(group), dtype=np.uint64)
        for _ in range(depth):
            inner, outer = outer, inner
            for first, offsets, neighbours in graph.into.scan(work.traffic):
                for word, reached in zip(inner, outer, strict=True):
                    kernels.gather_bits(offsets, neighbours, word, first, 0, len(offsets) - 1, reached)
                work.hits += count * len(neighbours)
                work.operations += count * len(neighbours)
        for begin in range(0, nodes, _BLOCK):
            here = slice(begin, begin + _BLOCK)
            for word, reached in zip(inner, outer, strict=True):
                found[here] += np.bitwise_count(reached[here] & ~word[here])
        work.rounds += 1
    for begin in range(0, nodes, _BLOCK):
        counts = found[begin : begin + _BLOCK].astype(np.int64)
        yield begin, counts if p is None else counts / p


def _groups(nodes: int, seed: int, below: int, size: int) -> Iterator[npt.NDArray[np.uint32]]:
    """The nodes of a sample in order, so many at a time, at the end fewer."""
    waiting = np.empty(0, np.uint32)
    for begin in range(0, nodes, _BLOCK):
        chosen = kernels.sampled(begin, min(_BLOCK, nodes - begin), seed, below)
        waiting = np.concatenate([waiting, chosen])
        while len(waiting) >= size:
            yield waiting[:size]
            waiting = waiting[size:]
    if len(waiting):
        yield waiting


def _offsets(side: Side, work: Work) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Where the neighbours of nodes begin: (first node, offsets of nodes in a row and the end of the last)."""
    places, first = side.offset_file.stream(work.traffic), 0
    last = places.take(1)
    while len(block := places.take(_BLOCK)):
        yield first, np.concatenate([last, block])
        first, last = first + len(block), block[-1:]


def _inverse_degrees(graph: Graph, work: Work) -> npt.NDArray[np.float64]:
    """The share that each node gives to every node that it links to; 0 where it links to none."""
    shares = np.zeros(graph.nodes)
    for first, offsets in _offsets(graph.out, work):
        degrees = np.diff(offsets)
        np.divide(1.0, degrees, out=shares[first : first + len(degrees)], where=degrees > 0)
    return shares


def _sample(
    graph: Graph, memory: int, work: Work, below: int, seed: int, p: float
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """The sampled nodes, and their edges sorted by target: targets, and which of the nodes is the source."""
    names: list[npt.NDArray[np.uint32]] = []
    parts: list[npt.NDArray[np.uint64]] = []
    found, kept = 0, 0
    for first, offsets, neighbours in graph.out.scan(work.traffic):
        chosen = kernels.sampled(first, len(offsets) - 1, seed, below)
        rows = chosen.astype(np.int64) - first
        degrees = offsets[rows + 1] - offsets[rows]
        owner = np.repeat(np.arange(len(rows)), degrees)
        begins = offsets[rows] - (np.cumsum(degrees) - degrees)
        targets = neighbours[begins[owner] + np.arange(len(owner))]
        parts.append((targets.astype(np.uint64) << np.uint64(32)) | (owner + found).astype(np.uint64))
        names.append(chosen)
        found, kept = found + len(chosen), kept + len(targets)
        if 16 * kept > memory:
            raise UsageError(
                f"the sample of p = {p:g} takes more than {memory:,} bytes: give more memory or a smaller p"
            )
    keys = np.concatenate(parts)
    parts.clear()
    keys.sort()
    return np.concatenate(names), (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)


def need_memory(memory: int, needed: int, what: str) -> None:
    """Refuse to start where the memory cannot suffice."""
    if memory < needed:
        raise UsageError(f"{what} take {needed:,} bytes, more than the {memory:,} of --memory: give more")
