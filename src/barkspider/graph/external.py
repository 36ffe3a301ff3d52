"""Ranking a graph that does not fit in RAM: it is read from disk in order, and bytes are counted (Table III).

Every function yields (number of the first node, scores of nodes in a row), in order, so that not even the
scores need fit; what it took is added to a `Work`. The numbers are those of `methods`, exactly. Beside what a
formula allows, buffers take at most 24 MB (`exact` has the largest) unless a node has millions of neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError
from barkspider.graph import kernels
from barkspider.graph.arrays import Traffic
from barkspider.graph.methods import BitCounter, check_depth, sample_limit
from barkspider.graph.store import Graph

Scores: TypeAlias = Iterator[tuple[int, npt.NDArray[Any]]]
_BLOCK = 1 << 18  # scores that are handed out at a time


@dataclass(slots=True)
class Work:
    """What a ranking took: bytes from and to disk, accesses to memory, operations, rounds."""

    traffic: Traffic = field(default_factory=Traffic)
    hits: int = 0
    operations: int = 0
    rounds: int = 1


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
