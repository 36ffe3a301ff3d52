"""Where each payload of a job was stored first: on disk, but for those of the last file.

A digest is remembered by 64 of its bits, with one number: where its record lies. A find is checked
there, so no harm is done by bits that agree by chance, nor by entries whose record was cut off after a crash.

    put ─► a table in memory ─ full, or the WARC file is complete ─► a run: sorted keys, then their places

Runs are immutable and mapped; two of similar size become one, so there are few. A file of them is named by the numbers
of the runs that it holds, and one whose numbers lie within another's does not count, as with files of tables. What a crash
takes, the table in memory, comes back from the indexes of the WARC files behind the last place that a run has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from barkspider.core.errors import StorageError
from barkspider.graph.arrays import KEYS, ArrayFile, ArrayWriter
from barkspider.storage.env import Env

FOLDER = "payloads"
_NAME = re.compile(r"(\w+)-(\d{6,})-(\d{6,})\.run")
_LARGEST = 1 << 24  # entries of a run that is merged: a second's work, 256 MB
_AT_ONCE = 1 << 20  # entries sorted at a time: 40 MB

_Numbers = npt.NDArray[np.uint64]


class _Run(NamedTuple):
    first: int
    last: int
    keys: _Numbers
    places: _Numbers


class Payloads:
    """See the module. One thread; at most `most` digests in memory, 32 bytes each.

    >>> import tempfile
    >>> payloads = Payloads(Env(), Path(tempfile.mkdtemp()), "pages", most=1000)
    >>> payloads.find(77), payloads.put(77, 12), payloads.find(77), payloads.spill(), payloads.find(77), payloads.until
    (-1, None, 12, None, 12, 12)
    """

    def __init__(self, env: Env, folder: Path, prefix: str, most: int) -> None:
        self._env, self._folder, self._prefix = env, folder / FOLDER, prefix
        self._most = max(most, 1)
        self._table, self._count = _slots(1), 0
        self._runs = list(self._read_runs())

    @property
    def until(self) -> int:
        """The last place that is on disk, -1 when there is none; all before it are too."""
        return max((int(run.places.max()) for run in self._runs), default=-1)

    def find(self, key: int) -> int:
        """The place that was put with this key, or -1."""
        wanted = np.uint64(key | 1)
        found = int(_find(self._table, wanted))
        for run in reversed(self._runs):
            if found >= 0:
                break
            number = int(np.searchsorted(run.keys, wanted))
            if number < len(run.keys) and run.keys[number] == wanted:
                found = int(run.places[number])
        return found

    def put(self, key: int, place: int) -> None:
        """Remember a place, not negative and behind those before it; one that the key had is forgotten."""
        if self._count >= self._most:
            self.spill()
        elif 2 * self._count >= len(self._table):
            grown = _slots(self._count + 1)
            _move(self._table, grown)
            self._table = grown
        self._count += int(_put(self._table, key | 1, place))

    def spill(self) -> None:
        """Write what is in memory to disk."""
        if not self._count:
            return
        entries = self._table[self._table[:, 0] != 0]
        entries = entries[np.argsort(entries[:, 0])]
        self._env.make_folder(self._folder)
        number = self._runs[-1].last + 1 if self._runs else 0
        self._runs.append(self._write(number, number, lambda: iter([(entries[:, 0], entries[:, 1])])))
        self._table, self._count = _slots(1), 0
        while len(self._runs) > 1:
            one, other = self._runs[-2:]
            if len(one.keys) > 2 * len(other.keys) or len(one.keys) + len(other.keys) > _LARGEST:
                break
            merged = self._write(one.first, other.last, partial(_merged, one, other))
            self._runs[-2:] = [merged]
            self._env.sync_folder(self._folder)
            for run in (one, other):
                self._env.remove(self._path(run.first, run.last))

    def _path(self, first: int, last: int) -> Path:
        return self._folder / f"{self._prefix}-{first:06d}-{last:06d}.run"

    def _write(self, first: int, last: int, parts: Callable[[], Iterator[tuple[_Numbers, _Numbers]]]) -> _Run:
        """`parts` gives the entries, some at a time: once for their keys, once for their places."""
        path = self._path(first, last)
        with ArrayWriter(self._env, path, KEYS) as file:
            for keys, _ in parts():
                file.write(keys)
            for _, places in parts():
                file.write(places)
        return self._open(path, first, last)

    def _open(self, path: Path, first: int, last: int) -> _Run:
        both = ArrayFile(self._env, path, KEYS).map()
        half = len(both) // 2
        return _Run(first, last, both[:half], both[half:])

    def _read_runs(self) -> Iterator[_Run]:
        """Those that count, in order, up to the first that is damaged: what it had is put once more."""
        names = self._env.list(self._folder)
        found = [match for name in names if (match := _NAME.fullmatch(name)) and match[1] == self._prefix]
        spans = sorted((int(match[2]), -int(match[3])) for match in found)
        next_number = 0
        for first, negative in spans:
            path = self._path(first, -negative)
            if first < next_number:
                self._env.remove(path)  # within one that was merged
            elif first == next_number:
                try:
                    run = self._open(path, first, -negative)
                except StorageError:
                    return
                yield run
                next_number = -negative + 1


def damaged_runs(env: Env, folder: Path) -> Iterator[tuple[str, str]]:
    """The runs of an archive that cannot be read, and why; the next writer puts what they had once more."""
    for name in env.list(folder / FOLDER):
        if _NAME.fullmatch(name):
            try:
                ArrayFile(env, folder / FOLDER / name, KEYS).map()
            except StorageError as error:
                yield name, str(error)


def _merged(one: _Run, other: _Run) -> Iterator[tuple[_Numbers, _Numbers]]:
    """Entries of two runs, sorted; of equal keys, which are few, both stay and that of the newer is found."""
    total = len(one.keys) + len(other.keys)
    pieces = -(-total // _AT_ONCE)
    cuts = np.array([number * ((1 << 64) // pieces) for number in range(1, pieces)], np.uint64)
    bounds = [[0, *np.searchsorted(run.keys, cuts).tolist(), len(run.keys)] for run in (other, one)]
    for number in range(pieces):
        slices = [slice(each[number], each[number + 1]) for each in bounds]
        keys = np.concatenate([run.keys[part] for run, part in zip((other, one), slices, strict=True)])
        places = np.concatenate([run.places[part] for run, part in zip((other, one), slices, strict=True)])
        order = np.argsort(keys, kind="stable")
        yield keys[order], places[order]


def _slots(digests: int) -> npt.NDArray[np.uint64]:
    """Room for twice as many digests, at least a kilobyte; key and place side by side, so that one look is enough."""
    return np.zeros((max(64, 1 << (2 * digests - 1).bit_length()), 2), np.uint64)


@njit("int64(uint64[:, ::1], uint64)", nogil=True, cache=True)
def _find(slots: Any, key: Any) -> Any:
    mask = np.uint64(len(slots) - 1)
    slot = (key >> np.uint64(1)) & mask
    while slots[slot, 0] != 0:
        if slots[slot, 0] == key:
            return np.int64(slots[slot, 1])
        slot = (slot + np.uint64(1)) & mask
    return -1


@njit("boolean(uint64[:, ::1], uint64, uint64)", nogil=True, cache=True)
def _put(slots: Any, key: Any, number: Any) -> Any:
    """Whether the key is new."""
    mask = np.uint64(len(slots) - 1)
    slot = (key >> np.uint64(1)) & mask
    while slots[slot, 0] != 0 and slots[slot, 0] != key:
        slot = (slot + np.uint64(1)) & mask
    fresh = slots[slot, 0] == 0
    slots[slot, 0] = key
    slots[slot, 1] = number
    return fresh


@njit("void(uint64[:, ::1], uint64[:, ::1])", nogil=True, cache=True)
def _move(slots: Any, larger: Any) -> None:
    for slot in range(len(slots)):
        if slots[slot, 0] != 0:
            _put(larger, slots[slot, 0], slots[slot, 1])
