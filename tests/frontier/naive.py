"""The naive way to enforce budgets (IRLbot, section 6.2), and a crawl that shows what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.records import UrlBatch
from barkspider.frontier.beast import Moved
from barkspider.frontier.placement import FAILED, Placement
from barkspider.frontier.rows import pack, unpack
from barkspider.storage.columns import Texts
from barkspider.storage.env import Env
from barkspider.storage.queue import DiskQueue


class Naive:
    """Two queues: Q has what is within budget, Q_F the rest. When Q is empty all of Q_F is split again."""

    def __init__(self, env: Env, folder: Path) -> None:
        self.moved = Moved()
        self._queue, self._failed = DiskQueue(env, folder, "Q"), DiskQueue(env, folder, "Q_F")
        self._placement = Placement(1 << 24)
        self._pass = 1
        self._left = 0

    def put(self, batch: UrlBatch, budgets: npt.NDArray[np.uint32]) -> None:
        """Queue URLs: the first B_x of a domain in a pass go into Q."""
        here = self._pass
        turns = self._placement.place(
            batch.pld_key, budgets, np.zeros(len(batch), np.bool_), here, here, here
        )
        rows = pack(batch)
        for queue, chosen in ((self._queue, turns != FAILED), (self._failed, turns == FAILED)):
            queue.append_batch(rows.take(np.flatnonzero(chosen)).to_arrow())
        self.moved.written += int(rows.lengths().sum()) + 4 * len(rows)

    def take(self, most: int) -> UrlBatch:
        """Take URLs from Q; when it is empty, a pass over Q_F is due."""
        found = self._queue.pop_batch(most)
        if not len(found) and not self._left and len(self._failed):
            self._left = len(self._failed)
            self._pass += 1
            self.moved.rescans += 1
        return self._unpacked(found)

    def rescanned(self) -> Iterator[UrlBatch]:
        """All of Q_F."""
        while self._left:
            found = self._failed.pop_batch(self._left)
            self._left -= len(found)
            yield self._unpacked(found)

    def close(self) -> None:
        """Close the files."""
        self._queue.close()
        self._failed.close()

    def _unpacked(self, found: pa.BinaryArray) -> UrlBatch:
        rows = Texts.from_arrow(found)
        self.moved.read += int(rows.lengths().sum()) + 4 * len(rows)
        return unpack(rows)


class Queues(Protocol):
    """What both ways to enforce budgets have in common."""

    moved: Moved

    def put(self, batch: UrlBatch, budgets: npt.NDArray[np.uint32]) -> None:
        """Queue URLs."""

    def take(self, most: int) -> UrlBatch:
        """Take URLs."""
        ...

    def rescanned(self) -> Iterator[UrlBatch]:
        """Take what failed."""
        ...


def batch_of(plds: npt.NDArray[np.uint64]) -> UrlBatch:
    """URLs of these domains, of 60 bytes each."""
    count = len(plds)
    keys, bytes_ = np.arange(count, dtype=np.uint64), np.zeros(count, np.uint8)
    ends, text = np.arange(count + 1, dtype=np.int32) * 60, np.full(60 * count, ord("u"), np.uint8)
    url = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(text)])
    depth, found = np.zeros(count, np.uint16), np.zeros(count, np.uint32)
    return UrlBatch(keys, plds, plds, depth, bytes_, bytes_, bytes_, url, keys, found)


def crawl(queues: Queues, domains: int, budget: int, links: int, rescans: int) -> list[tuple[int, int]]:
    """Crawl a web of endless domains, in which each page has `links` new URLs of its own domain.

    Returns the pages crawled and the bytes read and written until each re-scan of Q_F begins.
    """

    def put(batch: UrlBatch) -> None:
        queues.put(batch, np.full(len(batch), budget, np.uint32))

    put(batch_of(np.arange(1, domains + 1, dtype=np.uint64)))
    pages, marks = 0, list[tuple[int, int]]()
    while len(marks) < rescans:
        before = pages, queues.moved.read + queues.moved.written
        taken = queues.take(1 << 20)
        if queues.moved.rescans > len(marks):
            marks.append(before)
            for failed in queues.rescanned():
                put(failed)
        if len(taken):
            pages += len(taken)
            put(batch_of(np.repeat(taken.pld_key, links)))
    return marks
