"""One ranking by the name of its method, in RAM or from disk, and what it took."""

from __future__ import annotations

import heapq
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError
from barkspider.graph import costs, exact, external, methods
from barkspider.graph.arrays import Traffic
from barkspider.graph.external import Scores, Work
from barkspider.graph.methods import Ranking
from barkspider.graph.store import Graph

Take = Callable[[int, npt.NDArray[Any]], None]
_SCANS: dict[str, Callable[[Graph, int, Work], Scores]] = {
    "in": external.in_degree,
    "win": external.weighted_in_degree,
    "pagerank": external.pagerank,
    "qvs": external.quick_visit,
}
_SEARCHES: dict[str, Callable[[Graph, int, Work], Scores]] = {
    "supp-a": exact.supporters_a,
    "supp-b": exact.supporters_b,
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which ranking: `memory` None is in RAM; `whole` wants good scores of all nodes, not of the top only."""

    method: str = "tse"
    p: float = 0.01
    depth: int = 2
    top: int = 1000
    memory: int | None = None
    seed: int = 1
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What `barkspider rank --json` prints."""

    method: str
    nodes: int
    edges: int
    seconds: float
    cpu_seconds: float
    ram_hits: int
    operations: int
    bytes_read: int
    bytes_written: int
    peak_rss: int
    top: list[tuple[int, float]]


_IN_RAM: dict[str, Callable[[Graph, Choice], Ranking]] = {
    "in": lambda graph, _: methods.in_degree(graph),
    "win": lambda graph, _: methods.weighted_in_degree(graph),
    "pagerank": lambda graph, _: methods.pagerank(graph),
    "supp": lambda graph, choice: methods.supporters(graph, choice.depth),
    "qvs": lambda graph, _: methods.quick_visit(graph),
    "bv": lambda graph, choice: methods.bit_vector(
        graph, choice.depth, 0 if choice.whole else choice.top, choice.seed
    ),
    "tse": lambda graph, choice: methods.top_supporters(graph, choice.p, choice.depth, choice.seed),
}
METHODS, VARIANTS = tuple(_IN_RAM), tuple(_SEARCHES)


def rank(graph: Graph, choice: Choice, take: Take = lambda *_: None) -> Result:
    """Rank the nodes; `take` is given (first node, scores of nodes in a row) until all are given.

    >>> from barkspider.lab.generate import example
    >>> with example() as graph:
    ...     rank(graph, Choice("supp", top=2)).top
    [(2, 1.0), (3, 1.0)]
    """
    wall, cpu, work = time.perf_counter(), time.process_time(), Work()
    best: list[tuple[float, int]] = []
    for first, scores in _scores(graph, choice, work):
        take(first, scores)
        found = methods.top_nodes(scores, choice.top)
        fresh = zip(scores[found].tolist(), (-found - first).tolist(), strict=True)
        best = heapq.nlargest(choice.top, [*best, *fresh])
    return Result(
        method=choice.method,
        nodes=graph.nodes,
        edges=graph.edges,
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        ram_hits=work.hits,
        operations=work.operations,
        bytes_read=work.traffic.read,
        bytes_written=work.traffic.written,
        peak_rss=peak_rss(),
        top=[(-node, float(score)) for score, node in best],
    )


def peak_rss() -> int:
    """The most bytes of RAM that this process has held so far."""
    try:
        # What getrusage tells begins with the peak of the process that started this one.
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _scores(graph: Graph, choice: Choice, work: Work) -> Scores:
    if choice.method not in METHODS + VARIANTS:
        raise UsageError(f"{choice.method!r} is no method; the methods are {', '.join(METHODS + VARIANTS)}")
    if choice.top < 1:
        raise UsageError(f"the top list has {choice.top} nodes; give 1 or more")
    if choice.memory is not None:
        return _from_disk(graph, choice, choice.memory, work)
    if choice.method in VARIANTS:
        raise UsageError(
            f"{choice.method} reads the graph from disk: say with --memory how much RAM it may use"
        )
    found = _IN_RAM[choice.method](graph, choice)
    work.hits, work.operations, work.rounds = found.hits, found.operations, found.rounds
    return iter([(0, found.scores)])


def _from_disk(graph: Graph, choice: Choice, memory: int, work: Work) -> Scores:
    method = choice.method
    if method in _SCANS:
        return _SCANS[method](graph, memory, work)
    if method == "bv":
        top = 0 if choice.whole else choice.top
        return external.bit_vector(graph, memory, work, choice.depth, top, choice.seed)
    if choice.depth != 2 and method in ("supp", "tse"):
        p = choice.p if method == "tse" else None
        return external.distant_supporters(graph, memory, work, choice.depth, p, choice.seed)
    if choice.depth != 2:
        raise UsageError(f"{method} counts at distance two only: leave out --depth, or take --method supp")
    if method == "tse":
        return external.top_supporters(graph, memory, work, choice.p, choice.seed)
    if method == "supp":
        method = _cheaper(graph, memory, work.traffic)
    return _SEARCHES[method](graph, memory, work)


def _cheaper(graph: Graph, memory: int, traffic: Traffic) -> str:
    """Which of SUPP2-A and -B moves less; paths stand for the supporters, whom nobody has counted yet."""
    size = graph.into.bytes
    into, out = graph.into.offset_file.stream(traffic), graph.out.offset_file.stream(traffic)
    paths, before = 0, (into.take(1), out.take(1))
    while len(ahead := into.take(1 << 16)):
        back = out.take(1 << 16)
        paths += int((np.diff(ahead, prepend=before[0]) * np.diff(back, prepend=before[1])).sum())
        before = ahead[-1:], back[-1:]
    read, written, _ = costs.supporters_b_bytes(size, paths, memory)
    reread = costs.supporters_a_bytes(size, graph.nodes, graph.edges, paths, memory)
    # A set of SUPP2-A has to fit, and one node may have all others as supporters.
    return "supp-a" if reread < read + written and memory >= 4 * graph.nodes else "supp-b"
