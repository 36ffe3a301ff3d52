"""When a URL gets its turn: BEAST, budgets enforced without losing a URL (IRLbot, section 6.2, figure 4).

    star ─► put ─► Q_1 … Q_j ─► take ─► permits
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
- Q_F is read after Q_j only when twice as many URLs have been taken as at the last time, or when all queues are empty.
  While every domain has enough URLs to fill its budgets, that is after each round, as in the paper.
- j doubles when Q_F is read, so not while all URLs are within budget. When all queues are empty it grows at once by as
  many as half of Q_F needs; how many that are, the last re-scan has counted.
- At `max_queues` there are none to split Q_F over: what comes back has s·B_x a queue in place of B_x, beside what is
  there. s is a power of two: enough for the turns that have passed since the last time, but no more than half of Q_F
  needs; if all queues are empty, enough for that half. So the cost stays bounded however few the domains are
  (docs/decisions/0022).
- URLs out of Q_F go into the new queues only, and those of the same domain that arrive later go behind
  them: that is what one pair of left-over budget a domain (`placement`) means here. The array of the paper
  would let them fill what the domain left free in Q_2 … Q_j.
- A budget that changes counts from the next queue on that a domain begins.
- URLs out of Q_F are away for a while, in `star`. Meanwhile Q_1 to the old Q_j go on; no new queue is begun
  before all are back.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.core.records import Flag
from barkspider.core.settings import Budget
from barkspider.core.texts import Texts
from barkspider.frontier.budget.left_over import read_table, write_table
from barkspider.frontier.budget.placement import FAILED, LEVELS, Placement
from barkspider.storage.drum.known import Segment
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import BLOCK, DiskQueue

_FIRST = 2  # queues to begin with
_BLOCK = 1 << 18  # bytes: the most that a queue gathers in RAM; 64 KiB double the cost of taking URLs
_DRAINED = 1 << 14  # URLs drained at a time
_DEFERRED = np.uint8(Flag.DEFERRED)
_LARGEST = 2**32 - 1  # a budget
_NAMED = 16  # queues whose lengths are told one by one


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
    """How things stand. `current` is a number from 1 to `queues`; `away` counts URLs of Q_F that `put` has not
    seen again yet; `domains` is the size of the table of left-over budgets; `share` is s of the last re-scan."""

    queues: int
    current: int
    queued: int
    failed: int
    away: int
    domains: int
    share: int


class Beast:
    """See the module. Filled by `star` with `put`, emptied by `irlbot`, into `permits`, with `take`; one thread owns it.

    Invariants: no URL is lost, and none comes out twice; a domain has at most B_x URLs in a queue, with the B_x that
    counted when it began that queue, and s times that of what a re-scan has placed. Depth, parent and time travel with
    each URL. It is a `Structure`: its table is in the folder `beast`, its queues are in `queues`. After a StorageError
    only the last commit counts.

    >>> import tempfile
    >>> from barkspider.core.records import UrlRow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     beast = Beast(Env(), Path(folder), Budget())
    ...     rows = [UrlRow(key, 1, 1, 0, 0, 0, 0, b"http://a.example/%d" % key) for key in range(3)]
    ...     print(beast.put(UrlBatch.from_rows(rows), np.full(3, 2, np.uint32)))
    ...     print([row.key for row in beast.take(10).rows()], beast.gauges().failed, len(beast.take(10)))
    ...     for failed in beast.rescanned():
    ...         back = beast.put(failed, np.full(len(failed), 2, np.uint32))
    ...     [row.key for row in beast.take(10).rows()], beast.gauges().queues, beast.close()
    [False False  True]
    [0, 1] 1 0
    ([2], 4, None)
    """

    name = "beast"

    def __init__(
        self,
        env: Env,
        folder: Path,
        settings: Budget,
        *,
        block: int = BLOCK,
        state: dict[str, Any] | None = None,
    ) -> None:
        """A new one, or the one whose last `state` the store has. Q_F gathers so many bytes in RAM, each other queue no
        more."""
        self.moved = Moved()
        self._env, self._folder, self._most_queues = env, folder, settings.max_queues
        self._block = min(block, _BLOCK)
        self._placement = Placement(settings.table)
        # Round after round, the turns `_start` to `_start` + j - 1 belong to Q_1 … Q_j; `_turn` is current.
        self._start = self._turn = 0
        self._split = 0  # the first turn for what comes from Q_F
        self._barrier = 0  # no turn from here on is begun while a re-scan goes on
        self._left = 0  # rows of Q_F that the re-scan has still to hand out
        self._away = 0  # rows handed out that are not back
        self._share = 1  # s: what the rows of the last re-scan have for each B_x
        self._scanned_turn = self._scanned_taken = (
            0  # where the last re-scan began, and what was taken by then
        )
        self._number = 1  # of the next file of the table
        self._tables: set[str] = set()  # files of the table on disk
        self._prepared: set[str] = set()  # those that the last `prepare` named
        env.make_folder(folder / self.name)
        if state is None:
            self._queues = [self._open(number) for number in range(1, _FIRST + 1)]
            self._failed = DiskQueue(env, folder, "queues/Q_F", block=block)
        else:
            self._queues = [self._open(number, kept) for number, kept in enumerate(state["queues"], 1)]
            self._failed = DiskQueue(env, folder, "queues/Q_F", block=block, state=state["failed"])
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
            self._share,
        )

    def queues(self) -> dict[str, int]:
        """URLs in Q_1 … Q_j, the current one first, and in Q_F; the last of many queues are one number."""
        lengths = [len(queue) for queue in self._queues]
        turn = self._turn - self._start
        lengths = lengths[turn:] + lengths[:turn]
        named = {f"Q_{number}": length for number, length in enumerate(lengths[:_NAMED], 1)}
        if len(lengths) > _NAMED:
            named[f"Q_{_NAMED + 1}…"] = sum(lengths[_NAMED:])
        return {**named, "Q_F": len(self._failed)}

    def put(self, batch: UrlBatch, budgets: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Queue URLs, new ones and those that `rescanned` gave out, with the budgets of their domains. Which of them are
        beyond these, so that they wait in Q_F."""
        if not len(batch):
            return np.zeros(0, np.bool_)
        queues, first = len(self._queues), self._turn + 1
        flags = batch.flags
        deferred = (flags & _DEFERRED) != 0
        last = self._turn + queues - 1
        if self._share > 1:
            budgets = np.where(deferred, _times(budgets, self._share), budgets)
        turns = self._placement.place(batch.pld_key, budgets, deferred, first, max(first, self._split), last)
        fails: npt.NDArray[np.bool_] = turns == FAILED
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
        back = int(np.count_nonzero(deferred))
        self._away -= back
        if back and not self.awaited:
            self._placement.close(last)
        self.moved.failed += failed
        self.moved.placed += len(batch) - failed
        self.moved.written += _bytes(batch.packed)
        return fails

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

    # ── for a crawl that is divided anew ───────────────────────────────────────────────────────

    def drain(self) -> Iterator[tuple[int, UrlBatch]]:
        """Take all URLs, with how many turns there are until theirs, or FAILED for those of Q_F; while none is away."""
        assert not self.awaited
        current = self._turn - self._start
        for ahead in range(len(self._queues)):
            queue = self._queues[(current + ahead) % len(self._queues)]
            while len(queue):
                yield ahead, self._unpacked(queue.pop_batch(_DRAINED))
        while len(self._failed):
            yield FAILED, self._unpacked(self._failed.pop_batch(_DRAINED))

    def left_over(self) -> tuple[int, npt.NDArray[np.uint64]]:
        """How many queues there are, and the domains with URLs behind the current one: keys, and pairs as in `placement`,
        their turns counted from the current one."""
        entries = self._placement.entries(self._turn + 1)
        entries[:, 1] -= np.uint64(self._turn << 32)
        return len(self._queues), entries

    def adopt(self, ahead: int, batch: UrlBatch) -> None:
        """Queue what another one's `drain` gave; before anything else is done here."""
        if ahead == FAILED:
            self._failed.append_batch(batch.packed.to_arrow())
            self.moved.failed += len(batch)
        else:
            self._grow(ahead + 1)
            self._queues[ahead].append_batch(batch.packed.to_arrow())
            self.moved.placed += len(batch)

    def adopt_left_over(self, queues: int, entries: npt.NDArray[np.uint64]) -> None:
        """Take what another one's `left_over` gave. Of a domain that several have URLs of, whose turn is last counts."""
        self._grow(queues)
        known = np.concatenate([self._placement.entries(1), entries])
        known = known[np.lexsort((known[:, 1], known[:, 0]))]
        last = np.append(known[1:, 0] != known[:-1, 0], True)[: len(known)]
        self._placement.load(known[last])

    def _grow(self, queues: int) -> None:
        while len(self._queues) < queues:
            self._queues.append(self._open(len(self._queues) + 1))

    def prepare(self) -> Prepared:
        """See `core.events.Structure`. All entries of the table are written: 16 bytes a domain."""
        prepared, failed = [queue.prepare() for queue in self._queues], self._failed.prepare()
        entries, number = self._placement.entries(self._turn + 1), self._number
        self._number += 1
        state = {
            "number": self._number,
            "start": self._start,
            "turn": self._turn,
            "split": self._split,
            "barrier": self._barrier,
            "left": self._left,
            "away": self._away,
            "share": self._share,
            "levels": self._placement.levels.tolist(),
            "scanned_turn": self._scanned_turn,
            "scanned_taken": self._scanned_taken,
            "moved": dataclasses.asdict(self.moved),
        }

        def describe() -> dict[str, Any]:
            table = write_table(self._env, self._folder / self.name, number, entries)
            self._prepared = {segment.name for segment in table}
            self._tables |= self._prepared
            files = {f"{self.name}/{segment.name}": segment.size for segment in table}
            queues = [queue() for queue in (*prepared, failed)]
            for kept in queues:
                files |= kept["files"]
            parts = [dataclasses.astuple(segment) for segment in table]
            return {"queues": queues[:-1], "failed": queues[-1], "table": parts, **state, "files": files}

        return describe

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
        assert self._share >= 1
        assert self._placement.levels.shape == (LEVELS,)
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
            self._begin_round(dry=True)
        elif self.awaited and self._turn + 1 == self._barrier:
            return False
        elif self._turn + 1 < self._start + len(self._queues):
            self._turn += 1
        else:
            self._begin_round(dry=False)
        return True

    def _begin_round(self, dry: bool) -> None:
        """Q_1 is current again. If it is time, what is in Q_F is to be read; `dry` says that all queues are empty."""
        self._start = self._turn = self._start + len(self._queues)
        self._split = self._start
        if len(self._failed) and (dry or self.moved.taken >= 2 * self._scanned_taken):
            self._begin_rescan(dry)

    def _begin_rescan(self, dry: bool) -> None:
        """Let all of Q_F be read, and be split over further queues; where there may be none, over all but the current
        one, beside what is there."""
        queues = len(self._queues)
        half = _turns_for_half(self._placement.levels) * self._share
        growth = min(max(queues, half) if dry else queues, self._most_queues - queues)
        self._barrier = self._start + queues
        if growth:
            self._queues += [self._open(queues + number) for number in range(1, growth + 1)]
            self._split = self._barrier
            turns = half if dry else growth
        else:
            self._placement.clear()
            turns = half if dry else min(half, self._turn - self._scanned_turn)
        self._share = _power_of_two(turns / (growth or queues - 1))
        self._placement.levels[:] = 0
        self._left = len(self._failed)
        self._scanned_turn, self._scanned_taken = self._turn, self.moved.taken
        self.moved.rescans += 1

    def _unpacked(self, found: pa.BinaryArray) -> UrlBatch:
        rows = Texts.from_arrow(found)
        self.moved.read += _bytes(rows)
        return UrlBatch.checked(rows)

    def _open(self, number: int, state: dict[str, Any] | None = None) -> DiskQueue:
        return DiskQueue(self._env, self._folder, f"queues/Q_{number}", block=self._block, state=state)

    def _restore(self, state: dict[str, Any]) -> None:
        try:
            table = [Segment(*fields) for fields in state["table"]]
            self.moved = Moved(**state["moved"])
            numbers = [int(state[name]) for name in ("number", "start", "turn", "split", "barrier", "left")]
            self._number, self._start, self._turn, self._split, self._barrier, self._left = numbers
            self._away = int(state["away"])
            # Crawls that began before there was such a thing as s go on as if no re-scan had been.
            self._share = int(state.get("share", 1))
            self._scanned_turn = int(state.get("scanned_turn", 0))
            self._scanned_taken = int(state.get("scanned_taken", 0))
            self._placement.levels = np.array(state.get("levels", [0] * LEVELS), np.int64)
            self.validate()
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise StorageError("the state of beast is damaged") from error
        self._placement.load(read_table(self._env, self._folder / self.name, table))
        self._tables = self._prepared = {segment.name for segment in table}


def _bytes(rows: Texts) -> int:
    return rows.size() + 4 * len(rows)


def _times(budgets: npt.NDArray[np.uint32], share: int) -> npt.NDArray[np.uint32]:
    product: npt.NDArray[np.uint64] = budgets.astype(np.uint64) * np.uint64(share)
    return np.clip(product, 1, _LARGEST).astype(np.uint32)


def _turns_for_half(levels: npt.NDArray[np.int64]) -> int:
    """The least power of two of turns in which half of the URLs fit that a re-scan has counted; 0 for none.

    >>> _turns_for_half(np.array([10, 0, 20, 12])), _turns_for_half(np.zeros(3))
    (4, 0)
    """
    counts = np.cumsum(levels)
    return 1 << int(np.searchsorted(2 * counts, counts[-1])) if counts[-1] else 0


def _power_of_two(value: float) -> int:
    """The least power of two that is not below.

    >>> [_power_of_two(value) for value in (0.3, 1, 1.5, 2, 127 / 3)]
    [1, 1, 2, 2, 64]
    """
    return 1 << max(0, math.ceil(value) - 1).bit_length()
