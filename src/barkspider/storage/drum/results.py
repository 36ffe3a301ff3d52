"""What comes out of merges, in files until it is taken: part of a DRUM's state like everything else."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError
from barkspider.core.texts import NO_BYTES, Bytes, Texts
from barkspider.storage.columns import Column, Keys, Kind, pack, part, unpack
from barkspider.storage.drum.blocks import Block, BlockReader
from barkspider.storage.drum.counters import DrumCounters
from barkspider.storage.env import AppendFile, Env
from barkspider.storage.format import HEADER_SIZE, check_header, write_header

MAGIC, VERSION = b"BARKdrmr", 1
_PART = 1 << 22  # values of 4 MiB make a block; a larger one has a block of its own


@dataclass(frozen=True, slots=True)
class Results:
    """Rows that were checked, in order of arrival within a bucket.

    `unique` tells which keys were not there when their row's turn came. `values` are those stored at that
    moment, blank where `unique`; `aux` is what came with the row. None where the DRUM has none.
    """

    keys: Keys
    unique: npt.NDArray[np.bool_]
    values: Column | None
    aux: Texts | None

    def __len__(self) -> int:
        return len(self.keys)


class ResultWriter:
    """Writes the results of one merge. The thread of the merge."""

    def __init__(self, env: Env, path: Path, counters: DrumCounters) -> None:
        self._env, self._path, self._counters = env, path, counters
        self._file: AppendFile | None = None

    def append(self, keys: Keys, known: Bytes, values: Column | None, aux: Texts | None) -> None:
        """Rows of a bucket; `known` is empty when all are unique."""
        start = 0
        for stop in _cuts(values, len(keys)):
            self._write(
                keys[start:stop],
                known[start:stop],
                None if values is None else part(values, start, stop),
                None if aux is None else aux.slice(start, stop),
            )
            start = stop

    def finish(self) -> tuple[str, int] | None:
        """Name and length of the file, synced; None when there was no result."""
        if self._file is None:
            return None
        self._file.sync()
        self._file.close()
        return self._file.path.name, self._file.size

    def abandon(self) -> None:
        """Remove the file."""
        if self._file is not None:
            with suppress(StorageError):  # it may be what failed
                self._file.close()
            self._env.remove(self._path)

    def _write(self, keys: Keys, known: Bytes, values: Column | None, aux: Texts | None) -> None:
        if self._file is None:
            self._file = self._env.append(self._path)
            write_header(self._file, MAGIC, VERSION)
        before = self._file.size
        value_sections = (NO_BYTES, NO_BYTES) if values is None else pack(values)
        aux_sections = (NO_BYTES, NO_BYTES) if aux is None else pack(aux)
        for piece in Block(len(keys), 0, 0, 0, keys, known, *value_sections, *aux_sections).pieces():
            self._file.write(piece)
        self._counters.results_written += self._file.size - before
        self._counters.rows_given += len(keys)


def _cuts(values: Column | None, rows: int) -> list[int]:
    """Where to cut rows so that the values of a part stay below `_PART` bytes."""
    if not isinstance(values, Texts) or values.offsets[-1] - values.offsets[0] <= _PART:
        return [rows] if rows else []
    ends = values.offsets[1:] - values.offsets[0]
    cuts, start = [], 0
    while start < rows:
        taken = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, taken + _PART, "right")))
        cuts.append(stop)
        start = stop
    return cuts


@dataclass(slots=True)
class ResultFile:
    """A file of results, and how far it has been taken. The owner of the DRUM."""

    name: str
    size: int
    place: int = HEADER_SIZE

    def next(
        self, env: Env, folder: Path, kind: Kind, has_aux: bool, counters: DrumCounters
    ) -> Results | None:
        """The next block, or None at the end."""
        if self.place >= self.size:
            return None
        path = folder / self.name
        with env.open(path) as file:
            check_header(file.pread(0, HEADER_SIZE), MAGIC, VERSION, path)
            # A reader of its own: what is returned belongs to the caller.
            block, after = BlockReader().read(file, self.place)
        where = f"{path} is damaged at byte {self.place}"
        if len(block.keys) != block.rows or after > self.size:
            raise StorageError(where)
        values = None if kind is None else unpack(kind, block.rows, block.value_lengths, block.values, where)
        aux = unpack(bytes, block.rows, block.aux_lengths, block.aux, where) if has_aux else None
        assert aux is None or isinstance(aux, Texts)
        counters.results_read += after - self.place
        self.place = after
        unique = block.ops == 0 if len(block.ops) else np.ones(block.rows, np.bool_)
        return Results(block.keys, unique, values, aux)
