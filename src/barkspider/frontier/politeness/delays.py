"""URLs that wait for a time: Q_W, a queue on disk in order of time.

    gate: retries, URLs of parked hosts, what overflows a full host queue ─► put ─► Q_W ─► take ─► gate, and so to a source

A hierarchical timing wheel. Counted from the present slice of 16 s, a row goes into one of the 64 slices of 16 s to
come, or of the 64 of 64 · 16 s (17 minutes), or of the 64 of 64² · 16 s (18 hours), or, after 48 days, into the one
slice for all that is later. A slice is a `DiskQueue` and has no order. The slice with the earliest row is read
when nothing earlier is left: its rows of the present 16 s are sorted in RAM (`_Near`), the others move to finer
slices. So a row is written once for each level that it passes, and once more at a commit while it is in RAM.

RAM holds at most 2 · `near` bytes of rows in order. When there are more, the later half goes back to the disk, into
the slice of the present, which is then read again for each `near` bytes that it has. A slice that was written to
since the last commit has at most 0.3 MiB in buffers, an open file for writing and one for reading; of the 193
few are in use at a time, unless times are spread over weeks. See docs/formats/delays.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.core.texts import Texts
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import DiskQueue

_WIDTH = 16  # seconds: 100,000 rows, 13 MB, at 6,000 a second; a power of two, so that dividing is exact
_BITS = 6  # 64 slices a level
_SLICES = 1 << _BITS
_LEVELS = 3
_LATER = _LEVELS * _SLICES  # the slot of all that is later
_NEAR = -1  # stands for RAM where slots are chosen
_END = 2.0**50  # seconds: every number of a slice before it is exact
NEAR_BYTES = 1 << 23
_BLOCK = 1 << 15  # bytes that each slice gathers in RAM
_SEGMENT = 1 << 22  # bytes: what a slice that has been read keeps of the disk until the next commit
_DRAINED = 1 << 14  # URLs drained at a time
_PREFIX = "Q_W-"
_TIME = np.dtype("<f8")

Times: TypeAlias = npt.NDArray[np.float64]


class _Near:
    """Rows in order of time: sorted runs, each less than half as long as the one before it, so that a row is
    moved log n times and not n times. Rows of the same time are in the order in which they came."""

    def __init__(self) -> None:
        self.runs: list[tuple[Times, Texts]] = []

    def __len__(self) -> int:
        return sum(len(times) for times, _ in self.runs)

    def size(self) -> int:
        """Bytes of the rows, with 16 each for time and place."""
        return sum(rows.size() + 16 * len(rows) for _, rows in self.runs)

    def first(self) -> float:
        """The earliest time; inf when there is none."""
        return min((float(times[0]) for times, _ in self.runs), default=math.inf)

    def add(self, times: Times, rows: Texts) -> None:
        """Rows in any order; they are copied."""
        order = np.argsort(times, kind="stable")
        self.runs.append((times[order], rows.take(order)))
        while len(self.runs) > 1 and 2 * len(self.runs[-1][0]) >= len(self.runs[-2][0]):
            times, rows = _joined(self.runs[-2:])
            order = np.argsort(times, kind="stable")
            self.runs[-2:] = [(times[order], rows.take(order))]

    def take(self, now: float, most: int) -> tuple[Times, Texts]:
        """Up to so many rows of this time and before, the earliest first."""
        counts = [min(int(np.searchsorted(times, now, "right")), most) for times, _ in self.runs]
        heads = [
            (times[:count], rows.slice(0, count))
            for (times, rows), count in zip(self.runs, counts, strict=True)
        ]
        times, rows = _joined(heads)
        order = np.argsort(times, kind="stable")[:most]
        taken = np.bincount(np.repeat(np.arange(len(counts)), counts)[order], minlength=len(counts)).tolist()
        self.runs = [
            (times[start:], rows.slice(start, len(rows)))
            for (times, rows), start in zip(self.runs, taken, strict=True)
            if start < len(times)
        ]
        return times[order], rows.take(order)


@dataclass(slots=True)
class _Slice:
    queue: DiskQueue
    earliest: float = math.inf


class Delays:
    """See the module. Filled and emptied by `gate`; one thread owns it.

    Invariants: times in RAM are at most `_horizon`, those on disk at least. `_present` is the number of the slice of
    16 s that was read last; a row from before it is on disk in the slice of the present only. It is a `Structure`;
    its files are in folders beside each other, `queues/Q_W-000` to `queues/Q_W-192`, because a store removes
    from the folder of a structure all that no commit names. A commit that fails may be made again; after any other
    StorageError only the last commit counts.

    >>> import tempfile
    >>> from barkspider.core.records import UrlRow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     delays = Delays(Env(), Path(folder))
    ...     rows = [UrlRow(key, 1, 1, 0, 0, 0, 0, b"http://a.example/%d" % key) for key in range(3)]
    ...     delays.put(np.array([5000.0, 7.5, 7.25]), UrlBatch.from_rows(rows))
    ...     print(delays.next_time(), [row.key for row in delays.take(100, 10).rows()], delays.next_time())
    ...     len(delays.take(4999, 10)), len(delays), delays.close()
    7.25 [2, 1] 5000.0
    (0, 1, None)
    """

    name = "queues/Q_W"

    def __init__(
        self, env: Env, folder: Path, *, near: int = NEAR_BYTES, state: dict[str, Any] | None = None
    ) -> None:
        """A new one, or the one whose last `state` the store has; `near` bytes of rows are kept in RAM."""
        self._env, self._folder, self._near_bytes = env, folder, near
        self._near = _Near()
        self._horizon = -math.inf
        self._present = 0
        self._slices: dict[int, _Slice] = {}
        self._prepared: set[int] = set()  # slots that the last `prepare` named
        if state is not None:
            self._restore(state)
        kept = {self._path(slot) for slot in self._slices}
        for name in env.list(folder / "queues"):
            if name.startswith(_PREFIX) and folder / "queues" / name not in kept:
                self._clean(folder / "queues" / name)

    def __len__(self) -> int:
        return len(self._near) + sum(len(each.queue) for each in self._slices.values())

    def next_time(self) -> float:
        """When the next is due; inf when there is none."""
        if len(self._near):
            return self._near.first()
        return min((each.earliest for each in self._slices.values()), default=math.inf)

    def put(self, times: Times, batch: UrlBatch) -> None:
        """Keep URLs until these times, in seconds of a clock that goes on after a restart."""
        if len(times) != len(batch):
            raise ValueError(f"{len(batch)} URLs with {len(times)} times")
        if not (np.abs(times) < _END).all():  # not a number fails as well
            raise ValueError(f"a time that is not within {_END:.0f} seconds")
        self._place(times, _with_times(times, batch.packed))

    def take(self, now: float, most: int) -> UrlBatch:
        """Take up to so many URLs that are due, the earliest first."""
        found = []
        while most > 0 and self.next_time() <= min(now, _END):
            if not len(self._near):
                self._read_earliest()
            _, rows = self._near.take(now, most)
            found.append(rows)
            most -= len(rows)
        if not found:
            return NO_URLS
        return UrlBatch.checked(_without_times(Texts.join(found)))

    def drain(self) -> Iterator[tuple[Times, UrlBatch]]:
        """Take all URLs, with their times."""
        while len(self):
            if not len(self._near):
                self._read_earliest()
            times, rows = self._near.take(math.inf, _DRAINED)
            yield times, UrlBatch.checked(_without_times(rows))

    def prepare(self) -> Prepared:
        """See `core.events.Structure`. Rows in RAM go to the disk, to be read again when they are due."""
        times, rows = self._near.take(math.inf, len(self._near))
        horizon, self._horizon = self._horizon, -math.inf
        try:
            self._place(times, rows)
        except StorageError:  # all were for the same slice, so none is there
            self._near.add(times, rows)
            self._horizon = horizon
            raise
        kept = {slot: each for slot, each in self._slices.items() if len(each.queue)}
        prepared = [(slot, each.earliest, each.queue.prepare()) for slot, each in sorted(kept.items())]
        self._prepared, present = set(kept), self._present

        def describe() -> dict[str, Any]:
            slices = [(slot, earliest, queue()) for slot, earliest, queue in prepared]
            files = {file: size for _, _, state in slices for file, size in state["files"].items()}
            return {"present": present, "slices": slices, "files": files}

        return describe

    def committed(self) -> None:
        """See `core.events.Structure`."""
        for slot, each in [*self._slices.items()]:
            if slot in self._prepared:
                each.queue.committed()
            elif not len(each.queue):
                del self._slices[slot]
                each.queue.close()
                self._clean(self._path(slot))

    def validate(self) -> None:
        """Check the invariants."""
        assert self._near.size() <= 2 * self._near_bytes or len(self._near) == 1
        for times, rows in self._near.runs:
            assert len(times) == len(rows) > 0
            assert (np.diff(times) >= 0).all()
            assert times[-1] <= self._horizon
        for slot, each in self._slices.items():
            each.queue.validate()
            assert math.isfinite(each.earliest) == (len(each.queue) > 0)
            assert each.earliest >= self._horizon
            first = math.floor(min(each.earliest, _END) / _WIDTH)
            assert first >= self._present or slot == self._present % _SLICES

    def close(self) -> None:
        """Close the files; what was committed stays."""
        for each in self._slices.values():
            each.queue.close()

    def _place(self, times: Times, rows: Texts) -> None:
        """Put rows where they belong, as seen from the present slice."""
        if not len(times):
            return
        slots = self._slots(times)
        order = np.argsort(slots, kind="stable")
        times, rows = times[order], rows.take(order)
        found, starts = np.unique(slots[order], return_index=True)
        for slot, (start, stop) in zip(found.tolist(), pairwise([*starts.tolist(), len(times)]), strict=True):
            part = rows.slice(start, stop)
            if slot == _NEAR:
                self._near.add(times[start:stop], part)
                continue
            if slot not in self._slices:
                self._slices[slot] = _Slice(self._open(slot))
            there = self._slices[slot]
            there.queue.append_batch(part.to_arrow())
            there.earliest = min(there.earliest, float(times[start:stop].min()))
        if self._near.size() > 2 * self._near_bytes:
            self._put_back()

    def _slots(self, times: Times) -> npt.NDArray[np.int64]:
        numbers = np.maximum(np.floor(times / _WIDTH).astype(np.int64), self._present)
        slots = np.full(len(times), _LATER, np.int64)
        for level in reversed(range(_LEVELS)):
            # Of 64 numbers in a row no two have the same slot.
            coarse = numbers >> (_BITS * level)
            fits = coarse - (self._present >> (_BITS * level)) < _SLICES
            slots[fits] = level * _SLICES + coarse[fits] % _SLICES
        slots[times < self._horizon] = _NEAR
        return slots

    def _read_earliest(self) -> None:
        """Read the slice that has the earliest row, and those that have others of the same 16 s."""
        self._present = max(self._present, math.floor(self.next_time() / _WIDTH))
        self._horizon = end = (self._present + 1.0) * _WIDTH
        for there in [each for each in self._slices.values() if each.earliest < end]:
            there.earliest, left = math.inf, len(there.queue)
            while left:  # what is placed meanwhile may go behind it in the same queue
                rows = Texts.from_arrow(there.queue.pop_batch(left))
                left -= len(rows)
                self._place(_times(rows), rows)

    def _put_back(self) -> None:
        """Keep the earliest rows, `near` bytes of them."""
        times, rows = self._near.take(math.inf, len(self._near))
        ends = rows.offsets[1:] - rows.offsets[0] + 16 * np.arange(1, len(rows) + 1)
        kept = max(1, int(np.searchsorted(ends, self._near_bytes, "right")))
        self._near.add(times[:kept], rows.slice(0, kept))
        if kept < len(times):
            self._horizon = float(times[kept])
            self._place(times[kept:], rows.slice(kept, len(rows)))

    def _path(self, slot: int) -> Path:
        return self._folder / "queues" / f"{_PREFIX}{slot:03d}"

    def _open(self, slot: int, state: dict[str, Any] | None = None) -> DiskQueue:
        name = f"queues/{self._path(slot).name}"
        return DiskQueue(self._env, self._folder, name, block=_BLOCK, segment=_SEGMENT, state=state)

    def _clean(self, path: Path) -> None:
        for name in self._env.list(path):
            self._env.remove(path / name)

    def _restore(self, state: dict[str, Any]) -> None:
        try:
            self._present = int(state["present"])
            for slot, earliest, kept in state["slices"]:
                if not 0 <= slot <= _LATER or slot in self._slices:
                    raise ValueError(f"slot {slot}")
                self._slices[slot] = _Slice(self._open(slot, kept), float(earliest))
            self.validate()
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise StorageError("the state of Q_W is damaged") from error
        self._prepared = set(self._slices)


def _with_times(times: Times, rows: Texts) -> Texts:
    """Rows as they lie in a slice: 8 bytes of time in front of each."""
    count = len(rows)
    heads = Texts(np.arange(count + 1) * 8, times.astype(_TIME).view(np.uint8))
    in_turn = Texts.join([heads, rows]).take(np.arange(2 * count).reshape(2, count).T.reshape(-1))
    return Texts(np.ascontiguousarray(in_turn.offsets[::2]), in_turn.data)


def _times(rows: Texts) -> Times:
    if len(rows) and rows.lengths().min() < _TIME.itemsize:
        raise StorageError("rows of Q_W are damaged: one is too short for its time")
    places = rows.offsets[:-1, np.newaxis] + np.arange(_TIME.itemsize)
    times: Times = rows.data[places].view(_TIME).reshape(-1).astype(np.float64, copy=False)
    return times


def _without_times(rows: Texts) -> Texts:
    bounds = np.stack([rows.offsets[:-1], rows.offsets[:-1] + _TIME.itemsize], axis=1).reshape(-1)
    return Texts(np.append(bounds, rows.offsets[-1]), rows.data).take(np.arange(1, 2 * len(rows), 2))


def _joined(runs: list[tuple[Times, Texts]]) -> tuple[Times, Texts]:
    return np.concatenate([np.empty(0), *(times for times, _ in runs)]), Texts.join(
        [rows for _, rows in runs]
    )
