"""When a URL gets its turn: BEAST, budgets enforced without losing a URL (IRLbot, section 6.2, figure 4).

    star ─► put ─► Q_1 … Q_j ─► take ─► robots
             └───► Q_F ─ after Q_j: rescanned ─► star ─► put

Of a domain x with budget B_x the first B_x URLs go into the queue after the current one, the next B_x into the
one after that, and so on, past Q_j to Q_1 and up to the one before the current; the others go to Q_F. After
Q_j has been emptied, Q_F is read and split over j further queues, so j doubles, and Q_1 is current again.
Doubling is what keeps the cost down. With L new URLs a page, b bytes each, the bytes read and written for a
page that is crawled are

    naive, j always 1     2b(L-1)·α                        (8), α = N / (E[B_x]·V), so it grows with the crawl
    here                  2b[2α/(1+α)·(L-1) + 1] < 2b(2L-1)                                           (10)

What the paper leaves open is decided like this:

- j begins with 2. With 1, as the paper also allows, there is no queue beside the current one, and all that
  arrives in the first round would fail.
- What fails in the round in which Q_F is read goes behind it in the same queue, and is not read again
  in that round. A re-scan takes what is there when it begins.
- j doubles only if there is anything in Q_F: the URLs within budget need no further queues. When it has reached
  `max_queues`, what is re-scanned is placed like new URLs, from the queue after the current one on. Everything
  still gets its turn, but from there on the cost grows with the crawl, as that of the naive way, j times slower.
- URLs out of Q_F go into the new queues only, and those of the same domain that arrive later go behind
  them: that is what one pair of left-over budget a domain (`placement`) means here. The array of the paper
  would let them fill what the domain left free in Q_2 … Q_j.
- A budget that changes counts from the next queue on that a domain begins.
- URLs out of Q_F are away for a while, in `star`. Meanwhile Q_1 to the old Q_j go on; no new queue is begun
  before all are back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.records import Flag
from barkspider.core.settings import Budget
from barkspider.core.texts import Texts
from barkspider.frontier.budget.placement import FAILED, Placement
from barkspider.storage.drum.blocks import Reader
from barkspider.storage.drum.counters import Counters
from barkspider.storage.drum.known import Segment, Writer, read_blocks
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import DiskQueue

_FIRST = 2  # queues to begin with
_BLOCK = 1 << 18  # bytes: what each queue gathers in RAM; 64 KiB would double the cost of taking URLs
_DEFERRED = np.uint8(Flag.DEFERRED)
_PAIR = np.dtype("<u8")


@dataclasses.dataclass(slots=True)
class Moved:
    """What went into queues and came out of them since the beginning. Bytes are those of rows before they
    are compressed, with 4 bytes each for their length: λ of equations (8) to (10) is `read` + `written`."""

    placed: int = 0  # rows put into Q_1 … Q_j
    failed: int = 0  # rows put into Q_F
    taken: int = 0  # rows taken out of Q_1 … Q_j
    rescanned: int = 0  # rows taken out of Q_F
    rescans: int = 0
    written: int = 0  # bytes
    read: int = 0  # bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Gauges:
    """How things stand: `current` is a number from 1 to `queues`, `away` counts URLs of Q_F that `put` has not
    seen again yet, `domains` the entries of the table of left-over budgets."""

    queues: int
    current: int
    queued: int
    failed: int
    away: int
    domains: int


class Beast:
    """See the module. Filled by `star` with `put`, emptied into `robots` with `take`; one thread owns it.

    Invariants: no URL is lost, and none comes out twice; a domain has at most B_x URLs in a queue, with the B_x
    that counted when it began that queue. Depth, parent and time travel with each URL. It is a `Structure`:
    its table is in the folder `beast`, its queues are in `queues`. After a StorageError only the last commit
    counts.

    >>> import tempfile
    >>> from barkspider.core.records import UrlRow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     beast = Beast(Env(), Path(folder), Budget())
    ...     rows = [UrlRow(key, 1, 1, 0, 0, 0, 0, b"http://a.example/%d" % key) for key in range(3)]
    ...     beast.put(UrlBatch.from_rows(rows), np.full(3, 2, np.uint32))
    ...     print([row.key for row in beast.take(10).rows()], beast.gauges().failed, len(beast.take(10)))
    ...     for failed in beast.rescanned():
    ...         beast.put(failed, np.full(len(failed), 2, np.uint32))
    ...     [row.key for row in beast.take(10).rows()], beast.gauges().queues, beast.close()
    [0, 1] 1 0
    ([2], 4, None)
    """

    name = "beast"

    def __init__(
        self, env: Env, folder: Path, settings: Budget, *, state: dict[str, Any] | None = None
    ) -> None:
        """A new one, or the one whose last `state` the store has."""
        self.moved = Moved()
        self._env, self._folder, self._most_queues = env, folder, settings.max_queues
        self._placement = Placement(settings.table)
        # Round after round, the turns `_start` to `_start` + j - 1 belong to Q_1 … Q_j; `_turn` is current.
        self._start = self._turn = 0
        self._split = 0  # the first turn for what comes from Q_F
        self._barrier = 0  # no turn from here on is begun while a re-scan goes on
        self._left = 0  # rows of Q_F that the re-scan has still to hand out
        self._away = 0  # rows handed out that are not back
        self._number = 1  # of the next file of the table
        self._tables: set[str] = set()  # files of the table on disk
        self._prepared: set[str] = set()  # those that the last `prepare` named
        env.make_folder(folder / self.name)
        if state is None:
            self._queues = [self._open(number) for number in range(1, _FIRST + 1)]
            self._failed = DiskQueue(env, folder, "queues/Q_F")
        else:
            self._queues = [self._open(number, kept) for number, kept in enumerate(state["queues"], 1)]
            self._failed = DiskQueue(env, folder, "queues/Q_F", state=state["failed"])
            self._restore(state)

    def __len__(self) -> int:
        """URLs in all queues, without those that are away."""
        return sum(map(len, self._queues)) + len(self._failed)

    @property
    def awaited(self) -> int:
        """URLs of Q_F that must be given to `put` before a new queue is begun: those that `rescanned` has
        to hand out and those that are away."""
        return self._left + self._away

    @property
    def at_end(self) -> bool:
        """Whether the current queue is empty, so that the next `take` moves on to another."""
        return not len(self._queues[self._turn - self._start])

    def gauges(self) -> Gauges:
        """How things stand."""
        return Gauges(
            len(self._queues),
            self._turn - self._start + 1,
            sum(map(len, self._queues)),
            len(self._failed),
            self._away,
            len(self._placement),
        )

    def put(self, batch: UrlBatch, budgets: npt.NDArray[np.uint32]) -> None:
        """Queue URLs, new ones and those that `rescanned` gave out, with the budgets of their domains."""
        if not len(batch):
            return
        queues, first = len(self._queues), self._turn + 1
        flags = batch.flags
        deferred = (flags & _DEFERRED) != 0
        turns = self._placement.place(
            batch.pld_key, budgets, deferred, first, max(first, self._split), self._turn + queues - 1
        )
        fails = turns == FAILED
        numbers = ((turns - self._start) % queues).astype(np.uint16)
        numbers[fails] = queues
        marked = batch.with_flags(np.where(fails, flags | _DEFERRED, flags & ~_DEFERRED)).packed
        ordered = marked.take(np.argsort(numbers, kind="stable"))
        ends = np.cumsum(np.bincount(numbers, minlength=queues + 1)).tolist()
        start = 0
        for queue, stop in zip([*self._queues, self._failed], ends, strict=True):
            if stop > start:
                queue.append_batch(ordered.slice(start, stop).to_arrow())
            start = stop
        failed = int(np.count_nonzero(fails))
        self._away -= int(np.count_nonzero(deferred))
        self.moved.failed += failed
        self.moved.placed += len(batch) - failed
        self.moved.written += _bytes(batch.packed)

    def take(self, most: int) -> UrlBatch:
        """Take up to so many URLs from the current queue, and move on to the next when it is empty.

        An empty batch means that there are none, or that those of Q_F are needed first: see `awaited`.
        """
        while True:
            found = self._queues[self._turn - self._start].pop_batch(most)
            if len(found):
                self.moved.taken += len(found)
                return self._unpacked(found)
            if not self._move_on():
                return NO_URLS

    def rescanned(self) -> Iterator[UrlBatch]:
        """Take what a re-scan of Q_F has to hand out; `put` wants all of it back, with new budgets."""
        while self._left:
            found = self._failed.pop_batch(self._left)
            self._left -= len(found)
            self._away += len(found)
            self.moved.rescanned += len(found)
            yield self._unpacked(found)

    def prepare(self) -> dict[str, Any]:
        """See `core.events.Structure`. All entries of the table are written: 16 bytes a domain."""
        queues, failed = [queue.prepare() for queue in self._queues], self._failed.prepare()
        table = self._write_table()
        self._prepared = {segment.name for segment in table}
        files = {f"{self.name}/{segment.name}": segment.size for segment in table}
        for kept in (*queues, failed):
            files |= kept["files"]
        return {
            "queues": queues,
            "failed": failed,
            "table": [dataclasses.astuple(segment) for segment in table],
            "number": self._number,
            "start": self._start,
            "turn": self._turn,
            "split": self._split,
            "barrier": self._barrier,
            "left": self._left,
            "away": self._away,
            "moved": dataclasses.asdict(self.moved),
            "files": files,
        }

    def committed(self) -> None:
        """See `core.events.Structure`."""
        for queue in (*self._queues, self._failed):
            queue.committed()
        for name in sorted(self._tables - self._prepared):
            self._env.remove(self._folder / self.name / name)
        self._tables = set(self._prepared)

    def validate(self) -> None:
        """Check the invariants."""
        assert 0 <= self._start <= self._turn < self._start + len(self._queues)
        assert 0 <= self._left <= len(self._failed)
        assert self._away >= 0
        assert not self.awaited or self._turn < self._barrier <= self._start + len(self._queues)
        moved = self.moved
        assert moved.placed - moved.taken == sum(map(len, self._queues))
        assert moved.failed - moved.rescanned == len(self._failed)
        for queue in (*self._queues, self._failed):
            queue.validate()

    def close(self) -> None:
        """Close the files; what was committed stays."""
        for queue in (*self._queues, self._failed):
            queue.close()

    def _move_on(self) -> bool:
        """Make the next queue current; False when none can be, as things are."""
        if not any(map(len, self._queues)):
            if self.awaited or not len(self._failed):
                return False
            self._begin_round()
        elif self.awaited and self._turn + 1 == self._barrier:
            return False
        elif self._turn + 1 < self._start + len(self._queues):
            self._turn += 1
        else:
            self._begin_round()
        return True

    def _begin_round(self) -> None:
        """Q_1 is current again; what is in Q_F is to be read, and to be split over further queues."""
        queues = len(self._queues)
        growth = min(queues, self._most_queues - queues) if len(self._failed) else 0
        self._queues += [self._open(queues + number) for number in range(1, growth + 1)]
        self._start = self._turn = self._start + queues
        self._barrier = self._start + queues
        self._split = self._barrier if growth > 0 else self._start
        self._left = len(self._failed)
        self.moved.rescans += self._left > 0

    def _unpacked(self, found: pa.BinaryArray) -> UrlBatch:
        rows = Texts.from_arrow(found)
        self.moved.read += _bytes(rows)
        return UrlBatch.checked(rows)

    def _open(self, number: int, state: dict[str, Any] | None = None) -> DiskQueue:
        return DiskQueue(self._env, self._folder, f"queues/Q_{number}", block=_BLOCK, state=state)

    def _write_table(self) -> list[Segment]:
        writer = Writer(self._env, self._folder / self.name, self._number, Counters())
        self._number += 1
        try:
            for entries in self._placement.entries(self._turn + 1):
                writer.append(np.ascontiguousarray(entries[:, 0]), entries[:, 1].astype(_PAIR))
            writer.finish()
        except BaseException:
            writer.abandon()
            raise
        self._tables |= {segment.name for segment in writer.segments}
        return writer.segments

    def _restore(self, state: dict[str, Any]) -> None:
        try:
            table = [Segment(*fields) for fields in state["table"]]
            self.moved = Moved(**state["moved"])
            numbers = [int(state[name]) for name in ("number", "start", "turn", "split", "barrier", "left")]
            self._number, self._start, self._turn, self._split, self._barrier, self._left = numbers
            self._away = int(state["away"])
            self.validate()
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise StorageError("the state of beast is damaged") from error
        parts = [np.empty((0, 2), np.uint64)]
        for segment in table:
            folder, reader = self._folder / self.name, Reader()
            for keys, pairs in read_blocks(self._env, folder, segment, _PAIR, reader, Counters()):
                parts.append(np.stack([keys, np.asarray(pairs)], axis=1))
        self._placement.load(np.concatenate(parts))
        self._tables = self._prepared = {segment.name for segment in table}


def _bytes(rows: Texts) -> int:
    return rows.size() + 4 * len(rows)
