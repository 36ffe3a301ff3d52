"""From batches of edges to the folder of a graph, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError
from barkspider.graph.arrays import ArrayWriter, Traffic
from barkspider.graph.sorting import Sorter
from barkspider.graph.store import MOST_NODES, NEIGHBOURS, OFFSETS, TEXT, Graph
from barkspider.storage.env import Env

Numbers: TypeAlias = npt.NDArray[np.integer[Any]]
Edges: TypeAlias = tuple[Numbers, Numbers]
_NAMES, _OFFSETS = 10_000, 100_000  # written at a time; a name is an object of some 60 bytes
_MEMORY = 256_000_000
# One edge that names node 4,000,000,000 would cost 64 GB of offsets; real graphs have more edges than nodes.
_MOST_GAPS, _SPARE = 1000, 1 << 20


def build_graph(
    env: Env,
    folder: Path,
    batches: Iterable[Edges],
    names: Iterable[bytes] | None = None,
    nodes: int = 0,
    memory: int = _MEMORY,
    traffic: Traffic | None = None,
    watch: Callable[[], None] = lambda: None,
) -> Graph:
    """Write the unweighted graph of all edges (source numbers, target numbers), without self-loops.

    Edges are sorted on disk by source, each is kept once, and the result is sorted again by target: the
    in-graph is made from the out-graph without ever being in RAM as a whole. There are as many nodes as the
    highest number, the names or `nodes` say. `names` is read once, after all batches. `watch` is called now
    and then. The folder must be empty or missing; when a batch is refused or `watch` raises it is left empty.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     edges = np.array([0, 0, 2, 1, 0]), np.array([1, 1, 0, 1, 2])
    ...     graph = build_graph(Env(), Path(place), [edges])
    ...     graph.nodes, graph.edges, graph.into.offsets.tolist(), graph.into.neighbours.tolist()
    (3, 3, [0, 1, 2, 3], [2, 0, 0])
    """
    if env.list(folder):
        raise UsageError(f"{folder} is not empty; give the graph a folder of its own")
    env.make_folder(folder)
    traffic = traffic if traffic is not None else Traffic()
    try:
        _build(env, folder, batches, names, nodes, memory, traffic, watch)
    except BaseException:
        for name in env.list(folder):
            env.remove(folder / name)
        raise
    return Graph(env, folder)


def _build(
    env: Env,
    folder: Path,
    batches: Iterable[Edges],
    names: Iterable[bytes] | None,
    nodes: int,
    memory: int,
    traffic: Traffic,
    watch: Callable[[], None],
) -> None:
    sorter = Sorter(env, folder, memory // 2, traffic, "by-source")
    highest, given = -1, 0
    for sources, targets in batches:
        given += len(sources)
        highest = max(highest, _highest(sources), _highest(targets))
        apart = sources != targets
        sorter.add(_keys(sources[apart], targets[apart]))
    found = _write_names(env, folder, names) if names is not None else 0
    if found and highest >= found:
        raise UsageError(f"an edge names node {highest}, but there are names for 0 to {found - 1} only")
    nodes = max(nodes, found, highest + 1)
    if nodes == 0:
        raise UsageError("the graph is empty: it has neither nodes nor edges")
    if nodes == 1:
        raise UsageError("the graph has one node: there is nothing to rank")
    if not found and nodes > _MOST_GAPS * given + _SPARE:
        raise UsageError(
            f"{given:,} edges name node {highest}: number the nodes from 0 without large gaps, or give names"
        )
    back = Sorter(env, folder, memory // 2, traffic, "by-target")
    edges = _write_side(env, folder, "out", _watched(sorter.merged(), watch), nodes, back, traffic)
    if edges == 0:
        raise UsageError("the graph has no edge between two different nodes: there is nothing to rank")
    _write_side(env, folder, "in", _watched(back.merged(), watch), nodes, None, traffic)


def _watched(
    blocks: Iterator[npt.NDArray[np.uint64]], watch: Callable[[], None]
) -> Iterator[npt.NDArray[np.uint64]]:
    for block in blocks:
        watch()
        yield block


def _highest(numbers: Numbers) -> int:
    if len(numbers) == 0:
        return -1
    lowest, highest = int(numbers.min()), int(numbers.max())
    if lowest < 0 or highest >= MOST_NODES:
        wrong = lowest if lowest < 0 else highest
        raise UsageError(f"an edge names node {wrong}; numbers go from 0 to {MOST_NODES - 1}")
    return highest


def _keys(first: Numbers, second: Numbers) -> npt.NDArray[np.uint64]:
    return (first.astype(np.uint64) << np.uint64(32)) | second.astype(np.uint64)


def _write_side(
    env: Env,
    folder: Path,
    name: str,
    blocks: Iterator[npt.NDArray[np.uint64]],
    nodes: int,
    back: Sorter | None,
    traffic: Traffic,
) -> int:
    """Write sorted keys (node, neighbour) as offsets and neighbours, and hand them on turned around."""
    edges, written = 0, 1
    with ExitStack() as stack:
        places = stack.enter_context(ArrayWriter(env, folder / f"{name}.offsets", OFFSETS, traffic))
        neighbours = stack.enter_context(ArrayWriter(env, folder / f"{name}.neighbours", NEIGHBOURS, traffic))
        places.write(np.zeros(1, np.int64))
        for keys in blocks:
            first, second = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)
            neighbours.write(second)
            # Offsets up to that of the last node begun here; its own end is not known yet.
            last = int(first[-1])
            _write_offsets(places, first, written, last + 1, edges)
            edges, written = edges + len(keys), last + 1
            if back is not None:
                back.add(_keys(second, first))
        _write_offsets(places, np.empty(0, np.uint64), written, nodes + 1, edges)
    return edges


def _write_offsets(
    places: ArrayWriter, first: npt.NDArray[np.uint64], begin: int, end: int, base: int
) -> None:
    for start in range(begin, end, _OFFSETS):
        nodes = np.arange(start, min(end, start + _OFFSETS), dtype=np.uint64)
        places.write(np.searchsorted(first, nodes) + base)


def _write_names(env: Env, folder: Path, names: Iterable[bytes]) -> int:
    count, end = 0, 0
    waiting: list[bytes] = []
    with ExitStack() as stack:
        places = stack.enter_context(ArrayWriter(env, folder / "names.offsets", OFFSETS))
        text = stack.enter_context(ArrayWriter(env, folder / "names.text", TEXT))
        places.write(np.zeros(1, np.int64))

        def write() -> int:
            ends = end + np.cumsum(np.fromiter(map(len, waiting), np.int64, len(waiting)))
            places.write(ends)
            text.write(np.frombuffer(b"".join(waiting), np.uint8))
            return int(ends[-1])

        for name in names:
            waiting.append(name)
            if len(waiting) == _NAMES:
                count, end = count + len(waiting), write()
                waiting.clear()
        if waiting:
            count, end = count + len(waiting), write()
    return count
