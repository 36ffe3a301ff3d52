"""Exact supporters at distance two from disk: SUPP2-A and SUPP2-B of section VI-D."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError
from barkspider.graph import kernels
from barkspider.graph.build import Numbers
from barkspider.graph.external import Scores, Work
from barkspider.graph.sorting import Sorter
from barkspider.graph.store import Graph
from barkspider.storage.env import Env

_INDEX = 1 << 20  # edges of the nodes in Q, at least one node's; 8 bytes each
_STAGED = 1 << 18  # pairs that wait to be put into their sets, at least one node's; 8 bytes each
_ROWS = 1 << 14  # nodes of both graphs that SUPP2-B holds at a time


def supporters_a(graph: Graph, memory: int, work: Work) -> Scores:
    """SUPP2-A: for as many nodes x as fit, read the whole in-graph for in-neighbours of their in-neighbours.

    Equation (4): D = F² (E[d_in] + E[SUPP2]) / (E[d_in] Ω). Nobody knows how many supporters the nodes in Q
    will turn out to have, so Q begins with too many. When memory is full the last of them are let go and
    come again in the next Q. A set holds x, its in-neighbours and what is found: the formula's 4 bytes each.
    """
    room = memory // 4
    feed, most = _Feed(graph, work), graph.nodes
    while len(feed.degrees):
        queue = _Queue(feed, room, most)
        queue.search(graph, work)
        scores = queue.scores()
        yield feed.start, scores
        feed.drop(len(scores))
        most = 2 * len(scores)  # what the last one held is a fair guess; searching for too many takes time


class _Feed:
    """In-neighbours of the nodes whose turn comes next, read once; what Q lets go stays here. One thread."""

    def __init__(self, graph: Graph, work: Work) -> None:
        self._chunks = graph.into.scan(work.traffic)
        self.start = 0
        self.degrees = np.empty(0, np.int64)
        self.neighbours = np.empty(0, np.uint32)
        self._fill()

    def drop(self, rows: int) -> None:
        """Go on behind so many nodes."""
        self.neighbours = self.neighbours[self.degrees[:rows].sum() :]
        self.degrees = self.degrees[rows:]
        self.start += rows
        self._fill()

    def _fill(self) -> None:
        while len(self.neighbours) < _INDEX and (chunk := next(self._chunks, None)):
            self.degrees = np.concatenate([self.degrees, np.diff(chunk.offsets)])
            self.neighbours = np.concatenate([self.neighbours, chunk.neighbours])


class _Queue:
    """Q: nodes in a row, each with a sorted set in `_kept[_ends[row - 1] : _ends[row]]`. One thread.

    Invariant: sets of rows below `_live` hold everything found for them so far; other rows are let go.
    """

    def __init__(self, feed: _Feed, room: int, most: int) -> None:
        self._start, self._room = feed.start, room
        ends = np.cumsum(feed.degrees + 1)  # of the sets to begin with: a node and its in-neighbours
        self._live = rows = max(1, min(most, int(np.searchsorted(ends, room, "right"))))
        self._ends, self._degrees = ends[:rows], feed.degrees[:rows]
        owner = np.repeat(np.arange(rows), self._degrees)
        neighbours = feed.neighbours[: len(owner)]
        self._index = _pairs(neighbours, owner)
        self._index.sort()
        sets = np.concatenate(
            [_pairs(owner, neighbours), _pairs(np.arange(rows), np.arange(rows) + feed.start)]
        )
        sets.sort()
        self._kept = np.empty(max(room, len(sets)), np.uint32)
        self._kept[: len(sets)] = sets.astype(np.uint32)  # the lower half: the node
        self._let_go(self._index[:0])

    def search(self, graph: Graph, work: Work) -> None:
        """One reading of the in-graph."""
        staged, count = np.empty(_STAGED, np.uint64), 0
        place = np.zeros(2, np.int64)
        for first, offsets, neighbours in graph.into.scan(work.traffic):
            if len(neighbours) > len(staged):
                staged = np.concatenate([staged[:count], np.empty(len(neighbours), np.uint64)])
            while True:
                before = count
                count = kernels.list_supporters(
                    offsets, neighbours, first, self._index, self._live, place, staged, count
                )
                work.hits += count - before
                if place[1]:
                    break
                self._insert(staged[:count])
                count = 0
        self._insert(staged[:count])
        work.operations += int(self._ends[self._live - 1])

    def scores(self) -> npt.NDArray[np.int64]:
        """What was found for each node that was not let go, without itself and its neighbours."""
        sizes = np.diff(self._ends[: self._live], prepend=0)
        return sizes - 1 - self._degrees[: self._live]

    def _insert(self, pairs: npt.NDArray[np.uint64]) -> None:
        pairs.sort()
        count = kernels.drop_repeated(pairs)
        count = kernels.select_new(self._ends, self._live, self._kept, pairs[:count])
        pairs = self._let_go(pairs[:count])
        kernels.insert_pairs(self._ends, self._live, self._kept, pairs)

    def _let_go(self, pairs: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Give up rows from the back until their sets and the new pairs fit; the pairs that are left."""
        if int(self._ends[self._live - 1]) + len(pairs) > self._room:
            limits = np.arange(1, self._live + 1, dtype=np.uint64) << np.uint64(32)
            sizes = self._ends[: self._live] + np.searchsorted(pairs, limits)
            self._live = int(np.searchsorted(sizes, self._room, "right"))
            if self._live == 0:
                raise UsageError(
                    f"node {self._start} has more supporters than {4 * self._room:,} bytes of --memory hold: "
                    "give more"
                )
        return pairs[: int(np.searchsorted(pairs, np.uint64(self._live << 32)))]


def supporters_b(graph: Graph, memory: int, work: Work, scratch: Path | None = None) -> Scores:
    """SUPP2-B: write all pairs (x, z) with z -> y -> x, sort them on disk, count each once.

    Both graphs are read side by side, 2F, for the paths through each y. Pairs take 2h = 8 bytes each,
    2 n h E[QVS] in all, written and read once for each of ⌈log_k m⌉ merge phases, with m = D / Ω sorted
    blocks and k = Ω / 256 KB. Repeated pairs are dropped in the last merge only, so that this is what it takes. That
    one runs along the in-graph, F, to leave out pairs that are links. Files lie in `scratch`, or in a temporary folder.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        sorter = Sorter(Env(), Path(folder), memory, work.traffic, "pairs", early=False)
        _write_paths(graph, sorter, work)
        links = graph.into.scan(work.traffic)
        waiting = np.empty(0, np.uint64)
        begin, counts = 0, np.zeros(1, np.int64)  # the last node's count may go on in the next block
        for block in sorter.merged():
            while len(waiting) == 0 or waiting[-1] < block[-1]:
                following = next(links, None)
                if following is None:
                    break
                first, offsets, neighbours = following
                owner = np.repeat(np.arange(first, first + len(offsets) - 1), np.diff(offsets))
                waiting = np.concatenate([waiting, _pairs(owner, neighbours)])
            last = int(block[-1] >> np.uint64(32))
            counts = np.concatenate([counts, np.zeros(last - begin, np.int64)])
            waiting = waiting[kernels.count_pairs(block, waiting, begin, counts) :]
            work.operations += len(block)
            yield begin, counts[:-1]
            begin, counts = last, counts[-1:]
        for _ in links:  # so that every piece of the in-graph is checked, whatever the pairs were
            pass
        yield begin, np.concatenate([counts, np.zeros(graph.nodes - begin - 1, np.int64)])


def _write_paths(graph: Graph, sorter: Sorter, work: Work) -> None:
    into, out = graph.into.reader(work.traffic), graph.out.reader(work.traffic)
    pairs = np.empty(_STAGED, np.uint64)
    while len((back := into.chunk(_ROWS)).offsets) > 1:
        ahead = out.take(len(back.offsets) - 1)
        if len(back.neighbours) > len(pairs):
            pairs = np.empty(len(back.neighbours), np.uint64)
        place = np.zeros(2, np.int64)
        while place[0] < len(back.offsets) - 1:
            count = kernels.list_paths(
                back.offsets, back.neighbours, ahead.offsets, ahead.neighbours, place, pairs
            )
            work.hits += count
            sorter.add(pairs[:count])


def _pairs(high: Numbers, low: Numbers) -> npt.NDArray[np.uint64]:
    return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
