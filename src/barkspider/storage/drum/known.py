"""The sorted cache Z: immutable segment files of blocks of sorted keys with their values.

Segments are in order of their keys and do not overlap, so a merge reads them one after the other and may keep
one as it is when nothing falls into its range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError
from barkspider.core.texts import NO_BYTES
from barkspider.storage.columns import Column, Keys, Kind, join, pack, part, sizes, unpack
from barkspider.storage.drum.blocks import Block, BlockReader
from barkspider.storage.drum.counters import DrumCounters
from barkspider.storage.env import AppendFile, Env
from barkspider.storage.format import HEADER_SIZE, check_header, write_header

MAGIC, VERSION = b"BARKdrmz", 1
SEGMENT = 1 << 26  # 64 MiB: few enough files for a billion keys, small enough that keeping one saves work
BLOCK = 1 << 20  # 1 MiB: the work in Python for a block is small beside that of the kernels


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of Z: its name, length, number of keys, first and last key."""

    name: str
    size: int
    rows: int
    first: int
    last: int


def read_blocks(
    env: Env, folder: Path, segment: Segment, kind: Kind, reader: BlockReader, counters: DrumCounters
) -> Iterator[tuple[Keys, Column | None]]:
    """The blocks of a segment in order; each is valid until the next is asked for."""
    path = folder / segment.name
    with env.open(path) as file:
        check_header(file.pread(0, HEADER_SIZE), MAGIC, VERSION, path)
        offset, rows, last = HEADER_SIZE, 0, -1
        while offset < segment.size:
            block, after = reader.read(file, offset)
            counters.known_read += after - offset
            counters.keys_read += block.rows
            keys = block.keys
            if len(keys) == 0 or int(keys[0]) <= last:
                raise StorageError(f"{path} is damaged at byte {offset}: its keys are out of order")
            values = None
            if kind is not None:
                where = f"{path} is damaged at byte {offset}"
                values = unpack(kind, block.rows, block.value_lengths, block.values, where)
            offset, rows, last = after, rows + block.rows, int(keys[-1])
            yield keys, values
        if (offset, rows, last) != (segment.size, segment.rows, segment.last):
            raise StorageError(f"{path} is not the file that the manifest names: {rows} keys up to {last}")


def read_all(
    env: Env, folder: Path, segments: Sequence[Segment], kind: Kind
) -> Iterator[tuple[Keys, Column | None]]:
    """The blocks of all of Z in order; each is valid until the next is asked for."""
    reader, counters = BlockReader(), DrumCounters()
    for segment in segments:
        yield from read_blocks(env, folder, segment, kind, reader, counters)


class Cursor:
    """Reads all of Z once, run by run, up to bounds that only grow. One thread."""

    def __init__(
        self, env: Env, folder: Path, segments: Sequence[Segment], kind: Kind, counters: DrumCounters
    ) -> None:
        self._env, self._folder, self._kind, self._counters = env, folder, kind, counters
        self._waiting = list(reversed(segments))
        self._blocks: Iterator[tuple[Keys, Column | None]] = iter(())
        self._rest: tuple[Keys, Column | None] | None = None
        self._reader = BlockReader()

    def whole_segment(self, bound: int) -> Segment | None:
        """The next segment, if none of it was read yet and all its keys are at most `bound`."""
        if self._current() is not None or not self._waiting or self._waiting[-1].last > bound:
            return None
        return self._waiting[-1]

    def skip(self) -> None:
        """Go past the segment that `whole_segment` gave."""
        self._waiting.pop()

    def run(self, bound: int) -> tuple[Keys, Column | None] | None:
        """The next keys and values that are at most `bound`; valid until the next call of anything."""
        current = self._current()
        if current is None:
            if not self._waiting or self._waiting[-1].first > bound:
                return None
            self._blocks = read_blocks(
                self._env, self._folder, self._waiting.pop(), self._kind, self._reader, self._counters
            )
            current = self._current()
            assert current is not None
        keys, values = current
        self._rest = None
        if int(keys[-1]) <= bound:
            return current
        cut = int(np.searchsorted(keys, np.uint64(bound), "right"))
        self._rest = keys[cut:], None if values is None else part(values, cut, len(keys))
        return (keys[:cut], None if values is None else part(values, 0, cut)) if cut else None

    def _current(self) -> tuple[Keys, Column | None] | None:
        if self._rest is None:
            self._rest = next(self._blocks, None)
        return self._rest


class Writer:
    """Writes a new Z. One thread. When anything fails, `abandon` removes what it wrote.

    Files are synced as they are finished, by the thread that merges, so that a commit need not wait.
    """

    def __init__(
        self,
        env: Env,
        folder: Path,
        number: int,
        counters: DrumCounters,
        segment: int = SEGMENT,
        block: int = BLOCK,
    ) -> None:
        self._env, self._folder, self._number, self._counters = env, folder, number, counters
        self._segment_bytes = segment
        self._block_bytes = min(block, segment)
        self._file: AppendFile | None = None
        self._rows, self._first, self._last = 0, 0, 0
        self._held: list[tuple[Keys, Column | None]] = []
        self._held_bytes = 0
        self._created: list[str] = []
        self.segments: list[Segment] = []

    def append(self, keys: Keys, values: Column | None) -> None:
        """Keys above all before them, with their values; they may be used again by the caller."""
        if len(keys) == 0:
            return
        size = _bytes(keys, values)
        if self._held_bytes + size < self._block_bytes // 2:
            self._held.append((keys.copy(), None if values is None else _copy(values)))
            self._held_bytes += size
            return
        if self._held:
            self._held.append((keys, values))
            keys, values = _joined(self._held)
            size += self._held_bytes
            self._held, self._held_bytes = [], 0
        self._cut(keys, values, size)

    def carry_over(self, segment: Segment) -> None:
        """A segment of the old Z that stays as it is."""
        self.finish()
        self.segments.append(segment)

    def finish(self) -> None:
        """Write what is held back and close the segment."""
        if self._held:
            keys, values = _joined(self._held)
            self._held, self._held_bytes = [], 0
            self._cut(keys, values, _bytes(keys, values))
        if self._file is not None:
            self._file.sync()
            self._file.close()
            name = self._file.path.name
            self.segments.append(Segment(name, self._file.size, self._rows, self._first, self._last))
            self._file, self._rows = None, 0

    def abandon(self) -> None:
        """Remove every file that was created."""
        if self._file is not None:
            with suppress(StorageError):  # it may be what failed
                self._file.close()
        for name in self._created:
            self._env.remove(self._folder / name)

    def _cut(self, keys: Keys, values: Column | None, size: int) -> None:
        """Write keys as blocks of the wanted size; a single larger pair is a block of its own."""
        if size <= self._block_bytes or len(keys) == 1:
            self._write(keys, values)
            return
        pieces = -(-size // self._block_bytes)
        if values is None:
            places = [len(keys) * index // pieces for index in range(pieces + 1)]
        else:
            ends = np.cumsum(sizes(values) + 8)
            marks = np.searchsorted(ends, np.arange(1, pieces) * int(ends[-1]) // pieces) + 1
            places = [0, *np.unique(np.minimum(marks, len(keys))).tolist(), len(keys)]
        for start, stop in pairwise(places):
            if stop > start:
                self._write(keys[start:stop], None if values is None else part(values, start, stop))

    def _write(self, keys: Keys, values: Column | None) -> None:
        if self._file is not None and self._file.size >= self._segment_bytes:
            self.finish()
        if self._file is None:
            name = f"{self._number:08d}-{len(self._created):05d}.known"
            self._created.append(name)
            self._file = self._env.append(self._folder / name)
            write_header(self._file, MAGIC, VERSION)
            self._first = int(keys[0])
        lengths, data = (NO_BYTES, NO_BYTES) if values is None else pack(values)
        before = self._file.size
        for piece in Block(len(keys), keys=keys, value_lengths=lengths, values=data).pieces():
            self._file.write(piece)
        self._counters.known_written += self._file.size - before
        self._counters.keys_written += len(keys)
        self._rows += len(keys)
        self._last = int(keys[-1])


def write_all(
    env: Env,
    folder: Path,
    number: int,
    batches: Iterable[tuple[npt.ArrayLike, Column | None]],
    counters: DrumCounters,
    segment: int = SEGMENT,
) -> list[Segment]:
    """A Z of (keys, values) that ascend strictly over all batches; `ValueError` when they do not."""
    writer = Writer(env, folder, number, counters, segment)
    last = -1
    try:
        for given, values in batches:
            keys = np.ascontiguousarray(given, np.uint64)
            if len(keys) and (int(keys[0]) <= last or not (keys[1:] > keys[:-1]).all()):
                raise ValueError("keys to load are not strictly ascending")
            writer.append(keys, values)
            last = int(keys[-1]) if len(keys) else last
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return writer.segments


def _bytes(keys: Keys, values: Column | None) -> int:
    return 8 * len(keys) + (0 if values is None else int(sizes(values).sum()))


def _copy(values: Column) -> Column:
    return join([values, part(values, 0, 0)])


def _joined(held: list[tuple[Keys, Column | None]]) -> tuple[Keys, Column | None]:
    columns: list[Any] = [values for _, values in held]
    return np.concatenate([keys for keys, _ in held]), None if columns[0] is None else join(columns)
