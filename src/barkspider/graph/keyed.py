"""A graph whose nodes are keys of 64 bits: they are numbered on disk, then it is built like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from barkspider.graph.arrays import KEYS, ArrayFile, ArrayWriter, Traffic
from barkspider.graph.build import build_graph
from barkspider.graph.sorting import Sorter
from barkspider.graph.store import Graph
from barkspider.storage.columns import Keys
from barkspider.storage.env import Env

Scan: TypeAlias = Callable[[], Iterator[tuple[Keys, Any]]]

NUMBERS = "<u4"
_ROWS = 1 << 16  # edges at a time


def build_keyed(
    env: Env,
    folder: Path,
    scan: Scan,
    memory: int,
    watch: Callable[[], None] = lambda: None,
    numbers: ArrayFile | None = None,
    names: Iterable[bytes] | None = None,
    built: Path | None = None,
    traffic: Traffic | None = None,
) -> tuple[Graph, ArrayFile]:
    """The graph of edges (keys of sources, keys of targets), and the keys of its nodes, ascending.

    `scan` begins to read all edges again each time it is called: once for the keys, then once for as many of
    them as fit in half of the memory, which is once in all unless there are very many domains; sources and
    targets are numbered one after the other, so that the cost does not grow with the square. `watch` is
    called now and then, and may raise to stop. `numbers` has another number for each key, by ascending
    keys; `names` are those of the nodes, read once, after all edges. The graph is `built` in the folder "graph" of this
    one unless another is named. `traffic` counts all but what `scan` reads.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     edges = np.array([7, 7, 900], np.uint64), np.array([900, 8, 7], np.uint64)
    ...     graph, keys = build_keyed(Env(), Path(place), lambda: iter([edges]), 1 << 20)
    ...     keys.map().tolist(), graph.out.offsets.tolist(), graph.out.neighbours.tolist()
    ([7, 8, 900], [0, 2, 2, 3], [1, 2, 0])
    """
    env.make_folder(folder)
    traffic = traffic if traffic is not None else Traffic()
    keys = _unique(env, folder, scan, memory, watch, traffic)
    paths = folder / "half.numbers", folder / "half.keys"
    with ExitStack() as stack:
        kinds = zip(paths, (NUMBERS, KEYS), strict=True)
        writers = [
            stack.enter_context(ArrayWriter(env, path, kind, traffic, durable=False)) for path, kind in kinds
        ]
        for sources, targets in _numbered(scan, keys, numbers, memory, watch, traffic):
            writers[0].write(sources)
            writers[1].write(targets)

    def halves() -> Iterator[tuple[Keys, Any]]:
        sources = ArrayFile(env, paths[0], NUMBERS).stream(traffic)
        targets = ArrayFile(env, paths[1], KEYS).stream(traffic)
        while len(some := targets.take(_ROWS)):
            yield some, sources.take(_ROWS)

    edges = (
        (sources, targets) for targets, sources in _numbered(halves, keys, numbers, memory, watch, traffic)
    )
    place = built or folder / "graph"
    graph = build_graph(env, place, edges, names, keys.items, memory // 2, traffic=traffic, watch=watch)
    for path in paths:
        env.remove(path)
    return graph, keys


def _unique(
    env: Env, folder: Path, scan: Scan, memory: int, watch: Callable[[], None], traffic: Traffic
) -> ArrayFile:
    sorter = Sorter(env, folder, memory, traffic, "keys")
    for ends in scan():
        watch()
        for keys in ends:
            sorter.add(keys)
    with ArrayWriter(env, folder / "keys", KEYS, traffic, durable=False) as writer:
        for block in sorter.merged():
            watch()
            writer.write(block)
    return ArrayFile(env, folder / "keys", KEYS)


def _numbered(
    scan: Scan,
    keys: ArrayFile,
    numbers: ArrayFile | None,
    memory: int,
    watch: Callable[[], None],
    traffic: Traffic,
) -> Iterator[tuple[Any, Any]]:
    """Rows (number of the key, what came with it), in another order; some of the keys are in RAM at a time."""
    window = max(1024, memory // 2 // 12)
    for begin in range(0, keys.items, window):
        known = keys.stream(traffic, begin).take(window)
        if numbers is None:
            own = np.arange(begin, begin + len(known), dtype=np.uint32)
        else:
            own = numbers.stream(traffic, begin).take(window)
        for wanted, others in scan():
            watch()
            here = (wanted >= known[0]) & (wanted <= known[-1])
            if here.all():
                yield own[np.searchsorted(known, wanted)], others
            elif here.any():
                yield own[np.searchsorted(known, wanted[here])], others[here]
