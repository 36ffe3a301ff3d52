"""The folder of a graph: its out-graph, its in-graph, its names; see docs/formats/graph.md.

GRAPH/
  out.offsets, out.neighbours    node x links to neighbours[offsets[x] : offsets[x + 1]], ascending
  in.offsets, in.neighbours      the same edges by target: who links to x
  names.offsets, names.text      the name of each node, where there are names
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError, UsageError
from barkspider.graph.arrays import Array, ArrayFile, Traffic
from barkspider.storage.env import Env

OFFSETS, NEIGHBOURS, TEXT = "<i8", "<u4", "|u1"
MOST_NODES = 2**32 - 1  # a node is a number of four bytes
_CHUNK = 1 << 18  # neighbours that a scan hands out at a time, at least one node's


class Chunk(NamedTuple):
    """Some nodes in a row: node first + i has the neighbours neighbours[offsets[i] : offsets[i + 1]]."""

    first: int
    offsets: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Side:
    """One direction of a graph: files that can be mapped or read in order."""

    offset_file: ArrayFile
    neighbour_file: ArrayFile

    @property
    def bytes(self) -> int:
        """The papers' F: what one reading of this direction takes."""
        return self.offset_file.bytes + self.neighbour_file.bytes

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each node's neighbours begin; one more than there are nodes."""
        offsets = self.offset_file.map()
        _check(offsets, 0, self.neighbour_file.items, self.offset_file.path)
        return offsets

    @cached_property
    def neighbours(self) -> npt.NDArray[np.uint32]:
        """The neighbours of all nodes, one node after the other."""
        neighbours = self.neighbour_file.map()
        if len(neighbours) and int(neighbours.max()) >= self.offset_file.items - 1:
            raise StorageError(f"{self.neighbour_file.path} is damaged: it names a node that does not exist")
        return neighbours

    def degrees(self) -> npt.NDArray[np.int64]:
        """How many neighbours each node has."""
        return np.diff(self.offsets)

    def reader(self, traffic: Traffic, begin: int = 0) -> SideReader:
        """Reads nodes in order from `begin` on."""
        return SideReader(self, traffic, begin)

    def scan(self, traffic: Traffic, begin: int = 0, rows: int = _CHUNK) -> Iterator[Chunk]:
        """Every node from `begin` on with its neighbours, in order, from disk; at most `rows` at a time."""
        reader = self.reader(traffic, begin)
        while len((chunk := reader.chunk(rows)).offsets) > 1:
            yield chunk


class SideReader:
    """Reads one direction of a graph from front to back, in bounded memory. One thread."""

    def __init__(self, side: Side, traffic: Traffic, begin: int) -> None:
        self._places = side.offset_file.stream(traffic, begin)
        self._waiting = self._places.take(1)
        self._edges = side.neighbour_file.stream(traffic, int(self._waiting[0]))
        self._next = begin
        self._nodes = side.offset_file.items - 1
        self._side = side

    def chunk(self, rows: int) -> Chunk:
        """The next nodes, one at least unless all are read: at most `rows` with not too many neighbours."""
        self._fill(rows)
        near = np.searchsorted(self._waiting, self._waiting[0] + _CHUNK, "right")
        return self.take(min(rows, max(1, int(near) - 1)))

    def take(self, rows: int) -> Chunk:
        """The next so many nodes; fewer only at the end."""
        self._fill(rows)
        offsets, side = self._waiting[: rows + 1], self._side
        _check(offsets, int(offsets[0]), side.neighbour_file.items, side.offset_file.path, whole=False)
        neighbours = self._edges.take(int(offsets[-1] - offsets[0]))
        if len(neighbours) and int(neighbours.max()) >= self._nodes:
            raise StorageError(f"{side.neighbour_file.path} is damaged: it names a node that does not exist")
        chunk = Chunk(self._next, offsets - offsets[0], neighbours)
        self._next += len(offsets) - 1
        self._waiting = self._waiting[len(offsets) - 1 :]
        return chunk

    def _fill(self, rows: int) -> None:
        missing = min(rows, self._nodes - self._next) + 1 - len(self._waiting)
        if missing > 0:
            self._waiting = np.concatenate([self._waiting, self._places.take(missing)])


def _check(offsets: Array, begin: int, end: int, path: Path, whole: bool = True) -> None:
    fits = offsets[0] == begin and bool((np.diff(offsets) >= 0).all())
    if not fits or offsets[-1] > end or (whole and offsets[-1] != end):
        raise StorageError(f"{path} is damaged: its offsets do not fit the neighbours")


class Graph:
    """A graph on disk, open for reading. Any thread.

    `out` and `into` are its two directions; `names` tells a node's name, or its number as text.
    """

    def __init__(self, env: Env, folder: Path) -> None:
        if "in.offsets" not in env.list(folder):
            raise UsageError(f"{folder} is not a graph: it has no file in.offsets")
        self.out = _side(env, folder, "out")
        self.into = _side(env, folder, "in")
        self.folder = folder
        self.nodes = self.out.offset_file.items - 1
        self.edges = self.out.neighbour_file.items
        if self.into.offset_file.items - 1 != self.nodes or self.into.neighbour_file.items != self.edges:
            raise StorageError(f"{folder} is damaged: its two directions are not of the same graph")
        self._texts: tuple[Array, Array] | None = None
        if "names.offsets" in env.list(folder):
            offsets = ArrayFile(env, folder / "names.offsets", OFFSETS).map()
            text = ArrayFile(env, folder / "names.text", TEXT).map()
            _check(offsets, 0, len(text), folder / "names.offsets")
            if len(offsets) != self.nodes + 1:
                raise StorageError(f"{folder} is damaged: {len(offsets) - 1} names of {self.nodes} nodes")
            self._texts = offsets, text

    @property
    def named(self) -> bool:
        """Whether nodes have names."""
        return self._texts is not None

    def name(self, node: int) -> str:
        """The name of a node, or its number as text."""
        if self._texts is None:
            return str(node)
        offsets, text = self._texts
        return bytes(text[offsets[node] : offsets[node + 1]]).decode("utf-8", "replace")


def _side(env: Env, folder: Path, name: str) -> Side:
    return Side(
        ArrayFile(env, folder / f"{name}.offsets", OFFSETS),
        ArrayFile(env, folder / f"{name}.neighbours", NEIGHBOURS),
    )
