"""What BEAST is measured against: the two queues that IRLbot began with, and one queue without budgets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.batch import UrlBatch
from barkspider.core.texts import Texts
from barkspider.frontier.budget.beast import Moved
from barkspider.frontier.budget.placement import FAILED, Placement
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import DiskQueue

_TABLE = 1 << 28  # bytes for left-over budgets, as many as the live crawl has


class Queues(Protocol):
    """What all ways to queue URLs have in common, `frontier.budget.beast.Beast` among them. One thread."""

    moved: Moved

    def put(self, batch: UrlBatch, budgets: npt.NDArray[np.uint32]) -> object:
        """Queue URLs with the budgets of their domains."""

    def take(self, most: int) -> UrlBatch:
        """Take URLs."""
        ...

    def rescanned(self) -> Iterator[UrlBatch]:
        """Take what a re-scan has to hand out; `put` wants it back."""
        ...

    def close(self) -> None:
        """Close the files."""


class Naive:
    """Q has what is within budget, Q_F the rest; when Q is empty all of Q_F is split again (section 6.2)."""

    def __init__(self, env: Env, folder: Path) -> None:
        self.moved = Moved()
        self._queue, self._failed = DiskQueue(env, folder, "Q"), DiskQueue(env, folder, "Q_F")
        self._placement = Placement(_TABLE)
        self._pass = 1
        self._left = 0

    def put(self, batch: UrlBatch, budgets: npt.NDArray[np.uint32]) -> None:
        """The first B_x URLs of a domain in a pass go into Q."""
        here = self._pass
        turns = self._placement.place(
            batch.pld_key, budgets, np.zeros(len(batch), np.bool_), here, here, here
        )
        rows = batch.packed
        for queue, chosen in ((self._queue, turns != FAILED), (self._failed, turns == FAILED)):
            queue.append_batch(rows.take(np.flatnonzero(chosen)).to_arrow())
        self.moved.written += _bytes(rows)

    def take(self, most: int) -> UrlBatch:
        """Take URLs from Q; when it is empty, a pass over Q_F is due."""
        found = self._queue.pop_batch(most)
        if not len(found) and not self._left and len(self._failed):
            self._left = len(self._failed)
            self._pass += 1
            self.moved.rescans += 1
        return _unpacked(found, self.moved)

    def rescanned(self) -> Iterator[UrlBatch]:
        """All of Q_F."""
        while self._left:
            found = self._failed.pop_batch(self._left)
            self._left -= len(found)
            yield _unpacked(found, self.moved)

    def close(self) -> None:
        """Close the files."""
        self._queue.close()
        self._failed.close()


class Plain:
    """One queue, first come, first served: BFS."""

    def __init__(self, env: Env, folder: Path) -> None:
        self.moved = Moved()
        self._queue = DiskQueue(env, folder, "Q")

    def put(self, batch: UrlBatch, budgets: npt.NDArray[np.uint32]) -> None:  # noqa: ARG002
        """Queue URLs, whatever the budgets."""
        rows = batch.packed
        self._queue.append_batch(rows.to_arrow())
        self.moved.written += _bytes(rows)

    def take(self, most: int) -> UrlBatch:
        """Take the oldest URLs."""
        return _unpacked(self._queue.pop_batch(most), self.moved)

    def rescanned(self) -> Iterator[UrlBatch]:
        """Nothing ever fails."""
        return iter(())

    def close(self) -> None:
        """Close the files."""
        self._queue.close()


def _unpacked(found: pa.BinaryArray, moved: Moved) -> UrlBatch:
    rows = Texts.from_arrow(found)
    moved.read += _bytes(rows)
    return UrlBatch.checked(rows)


def _bytes(rows: Texts) -> int:
    return rows.size() + 4 * len(rows)
