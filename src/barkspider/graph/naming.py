"""A graph whose nodes have names: these are numbered on disk in the order in which they come up, in bounded memory.

    edges of names ─► edges of keys ──────────────────────────────────────────────────► `keyed` ─► graph
          └─► (key, place, name), sorted by key: each once ─► places ─► the number of each key ──┘   ▲
                                                └─► (place, name), sorted by place ─► names ─────────┘

A key is a hash of 64 bits. Should two names share one, which 90 million names do with a chance of 1 in 4,500, that is
found out, and refused. A place tells when a name came up; one that is met again has several, of which the first counts.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barkspider.core.errors import UsageError
from barkspider.graph.arrays import KEYS, ArrayFile, ArrayWriter, Traffic
from barkspider.graph.keyed import NUMBERS, build_keyed
from barkspider.graph.sorting import Sorter
from barkspider.graph.store import Graph
from barkspider.storage.env import Env
from barkspider.url import KeyMaker

Column: TypeAlias = Any  # of texts or bytes, without nulls, as Arrow has it
_Record: TypeAlias = tuple[int, int, bytes]

LACKING = "an edge lacks its source or its target"
_HALF = np.uint64(32)  # bits: a place and a number share a key of the sorter
_RECORD = 200  # bytes of a record in RAM beside its text: the objects it consists of
_WAYS = 16  # runs that are merged at a time; what is read of each takes up to 0.6 MB
_PARTS = {".first": KEYS, ".second": KEYS, ".lengths": "<u4", ".text": "|u1"}  # the files of a run
_CHUNK = 512  # records of a run that are read or written at a time
_ROWS = 1 << 16  # edges at a time


def build_named(env: Env, folder: Path, edges: Iterable[tuple[Column, Column]], memory: int) -> Graph:
    """The graph of edges (names of sources, names of targets), with its names. Blanks around a name are no part of it.

    The folder must be empty or missing; beside it there is another one for the time being.

    >>> with tempfile.TemporaryDirectory() as place:
    ...     edges = [(pa.array(["c.org", "b.org"]), pa.array(["b.org", "a.org"]))]
    ...     graph = build_named(Env(), Path(place) / "graph", edges, 1 << 20)
    ...     [graph.name(node) for node in range(graph.nodes)], graph.out.neighbours.tolist()
    (['c.org', 'b.org', 'a.org'], [1, 2])
    """
    if env.list(folder):
        raise UsageError(f"{folder} is not empty; give the graph a folder of its own")
    env.make_folder(folder)
    with tempfile.TemporaryDirectory(prefix=".numbering-", dir=folder.parent) as place:
        scratch = Path(place)
        names = _Names(env, scratch, memory // 4)
        paths = scratch / "sources.keys", scratch / "targets.keys"
        with ExitStack() as files:
            writers = [files.enter_context(ArrayWriter(env, path, KEYS, durable=False)) for path in paths]
            for sources, targets in edges:
                for writer, keys in zip(writers, _keyed(names, sources, targets), strict=True):
                    writer.write(keys)

        def scan() -> Iterator[tuple[npt.NDArray[np.uint64], Any]]:
            sources, targets = (ArrayFile(env, path, KEYS).stream(Traffic()) for path in paths)
            while len(some := sources.take(_ROWS)):
                yield some, targets.take(_ROWS)

        numbers = names.numbers()
        graph, _ = build_keyed(
            env, scratch / "keyed", scan, memory // 2, numbers=numbers, names=names.in_order(), built=folder
        )
    return graph


def _keyed(names: _Names, sources: Column, targets: Column) -> tuple[npt.NDArray[np.uint64], Any]:
    """The keys of both ends of edges, each pair once: a site repeats its links on every page."""
    (from_keys, from_places), (to_keys, to_places) = names.keys(sources), names.keys(targets)
    width = max(1, len(to_keys))
    pairs = np.unique(from_places.astype(np.int64) * width + to_places)
    return from_keys[pairs // width], to_keys[pairs % width]


class _Names:
    """Names that were met. Filled by `keys`; then `numbers`, then `in_order`, once each. One thread."""

    def __init__(self, env: Env, folder: Path, memory: int) -> None:
        self._env, self._folder, self._memory = env, folder, memory
        self._hash = KeyMaker(0)
        self._met = _Runs(env, folder / "met", memory // 2)
        self._ordered = _Runs(env, folder / "ordered", memory // 2)
        self._recent: set[bytes] = set()  # most names come again soon, and need not be written again
        self._place = 0

    def keys(self, column: Column) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
        """The keys of the different names in a column, and which of them each row has."""
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        encoded = pc.dictionary_encode(whole)
        found = [text.strip() for text in encoded.dictionary.cast(pa.binary()).to_pylist()]
        if b"" in found:
            raise UsageError(LACKING)
        keys = self._hash.column(found)
        if _RECORD * len(self._recent) > self._memory // 2:
            self._recent.clear()
        records = zip(keys.tolist(), range(self._place, self._place + len(found)), found, strict=True)
        self._met.add(record for record in records if record[2] not in self._recent)
        self._place += len(found)
        self._recent.update(found)
        return keys, encoded.indices.to_numpy()

    def numbers(self) -> ArrayFile:
        """The numbers of all names, by ascending keys."""
        places = Sorter(self._env, self._folder, self._memory, Traffic(), "by-place")
        records, rank = _first_of_each(self._met.merged()), 0
        while some := list(islice(records, _CHUNK)):
            self._ordered.add((place, 0, name) for _, place, name in some)
            first = np.fromiter((place for _, place, _ in some), np.uint64, len(some))
            places.add(first << _HALF | np.arange(rank, rank + len(some), dtype=np.uint64))
            rank += len(some)
        ranks, number = Sorter(self._env, self._folder, self._memory, Traffic(), "by-rank"), 0
        for block in places.merged():
            ranks.add(block << _HALF | np.arange(number, number + len(block), dtype=np.uint64))
            number += len(block)
        path = self._folder / "numbers"
        with ArrayWriter(self._env, path, NUMBERS, durable=False) as writer:
            for block in ranks.merged():
                writer.write(block & np.uint64(0xFFFFFFFF))
        return ArrayFile(self._env, path, NUMBERS)

    def in_order(self) -> Iterator[bytes]:
        """The names by ascending numbers."""
        for _, _, name in self._ordered.merged():
            yield name


class _Runs:
    """Sorts records (number, number, text) in about `memory` bytes of RAM and the rest on disk. One thread."""

    def __init__(self, env: Env, path: Path, memory: int) -> None:
        self._env, self._path, self._memory = env, path, memory
        self._gathered: list[_Record] = []
        # Those of the first list are merged into one of the second, and so on.
        self._runs: list[list[Path]] = []
        self._bytes = self._number = 0

    def add(self, records: Iterable[_Record]) -> None:
        """Take records in."""
        for record in records:
            self._gathered.append(record)
            self._bytes += _RECORD + len(record[2])
            if self._bytes > self._memory:
                self._write(iter(sorted(self._gathered)), 0)
                self._gathered, self._bytes = [], 0

    def merged(self) -> Iterator[_Record]:
        """All records, ascending."""
        runs = [self._read(run) for level in self._runs for run in level]
        yield from heapq.merge(*runs, sorted(self._gathered))

    def _write(self, records: Iterator[_Record], level: int) -> None:
        run = self._path.with_name(f"{self._path.name}-{self._number:08}")
        self._number += 1
        with ExitStack() as files:
            first, second, lengths, text = (
                files.enter_context(ArrayWriter(self._env, run.with_suffix(part), kind, durable=False))
                for part, kind in _PARTS.items()
            )
            while some := list(islice(records, _CHUNK)):
                first.write(np.fromiter((record[0] for record in some), np.uint64, len(some)))
                second.write(np.fromiter((record[1] for record in some), np.uint64, len(some)))
                lengths.write(np.fromiter((len(record[2]) for record in some), np.uint32, len(some)))
                text.write(np.frombuffer(b"".join(record[2] for record in some), np.uint8))
        if level == len(self._runs):
            self._runs.append([])
        self._runs[level].append(run)
        if len(self._runs[level]) == _WAYS:
            runs, self._runs[level] = self._runs[level], []
            self._write(heapq.merge(*map(self._read, runs)), level + 1)

    def _read(self, run: Path) -> Iterator[_Record]:
        """The records of a run, which is removed then."""
        paths = [run.with_suffix(part) for part in _PARTS]
        first, second, lengths, text = (
            ArrayFile(self._env, path, kind).stream(Traffic())
            for path, kind in zip(paths, _PARTS.values(), strict=True)
        )
        while len(some := first.take(_CHUNK)):
            ends = np.cumsum(lengths.take(_CHUNK), dtype=np.int64)
            names, begin = text.take(int(ends[-1])).tobytes(), 0
            rows = zip(some.tolist(), second.take(_CHUNK).tolist(), ends.tolist(), strict=True)
            for one, other, end in rows:
                yield one, other, names[begin:end]
                begin = end
        for path in paths:
            self._env.remove(path)


def _first_of_each(records: Iterator[_Record]) -> Iterator[_Record]:
    """Of records (key, place, name), sorted, the first of each key."""
    last, known = -1, b""
    for key, place, name in records:
        if key != last:
            yield key, place, name
        elif name != known:
            shown = f"{known.decode('utf-8', 'replace')} and {name.decode('utf-8', 'replace')}"
            raise UsageError(f"{shown} have the same hash: call one of them another name")
        last, known = key, name
