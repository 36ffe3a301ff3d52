"""Rows of whole numbers on disk, added at the end and never taken out; see docs/formats/log.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.storage.env import Env
from barkspider.storage.format import (
    BLOCK_HEAD_SIZE,
    HEADER_SIZE,
    block_head,
    check_block,
    check_header,
    header,
    read_block_head,
)

Rows: TypeAlias = npt.NDArray[np.uint64]

_MAGIC, _VERSION = b"BARKlogs", 1
_BLOCK = 1 << 18  # bytes that gather before they are written, so that who reads all has little work a block


class Log:
    """See the module. One thread owns it; any thread may `read` up to an `end` that the owner gave it.

    It is a structure of a store: what was appended after the last commit is cut off when it is opened again.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Log(Env(), Path(folder), "edges", columns=2)
    ...     log.append(np.array([[1, 2], [3, 4]], np.uint64))
    ...     [rows.tolist() for rows in log.read(log.end())], len(log), log.close()
    ([[[1, 2], [3, 4]]], 2, None)
    """

    def __init__(
        self, env: Env, folder: Path, name: str, columns: int, state: Mapping[str, Any] | None = None
    ) -> None:
        """A new, empty log, or with `state` the one that `prepare` described."""
        self.name = name
        self._env, self._columns = env, columns
        self._path = folder / name / "rows.log"
        env.make_folder(self._path.parent)
        if state is None:
            env.remove(self._path)
            self._written = 0
        else:
            env.truncate(self._path, state["files"][f"{name}/rows.log"])
            self._written = int(state["rows"])
        self._file = env.append(self._path)
        if state is None:
            self._file.write(header(_MAGIC, _VERSION))
        self._waiting: list[Rows] = []
        self._count = 0  # rows that wait

    def __len__(self) -> int:
        return self._written + self._count

    def append(self, rows: Rows) -> None:
        """Add rows of as many numbers as there are columns; they are kept, not copied."""
        self._waiting.append(rows)
        self._count += len(rows)
        if self._count * self._columns * 8 >= _BLOCK:
            self._write()

    def end(self) -> int:
        """Up to where `read` finds all rows appended so far."""
        self._write()
        self._file.flush()
        return self._file.size

    def read(self, end: int) -> Iterator[Rows]:
        """The rows before `end` in the order in which they came; every checksum is compared."""
        place, number = HEADER_SIZE, 0
        with self._env.open(self._path) as file:
            check_header(file.pread(0, HEADER_SIZE), _MAGIC, _VERSION, self._path)
            while place < end:
                head_bytes = file.pread(place, BLOCK_HEAD_SIZE)
                head = read_block_head(head_bytes, self._path, place)
                data = file.pread(place + BLOCK_HEAD_SIZE, head.stored)
                check_block(head_bytes, data, self._path, place)
                if head.first != number or head.stored != head.items * self._columns * 8:
                    raise StorageError(f"{self._path} has another block than expected at byte {place}")
                yield np.frombuffer(data, "<u8").reshape(-1, self._columns)
                place, number = place + BLOCK_HEAD_SIZE + head.stored, number + head.items

    def prepare(self) -> Prepared:
        """See `core.events.Structure`; what it describes is needed to come back to this moment."""
        self._write()
        sync, rows, size = self._file.syncing(), self._written, self._file.size

        def describe() -> dict[str, Any]:
            sync()
            return {"rows": rows, "files": {f"{self.name}/rows.log": size}}

        return describe

    def committed(self) -> None:
        """Nothing is ever removed."""

    def close(self) -> None:
        """Close the file; what was committed stays."""
        self._file.discard()

    def validate(self) -> None:
        """Check the invariants."""
        assert self._count == sum(map(len, self._waiting))
        assert all(rows.shape[1:] == (self._columns,) for rows in self._waiting)

    def _write(self) -> None:
        if not self._count:
            return
        data = np.ascontiguousarray(np.concatenate(self._waiting), "<u8")
        self._file.write(block_head(0, data.nbytes, len(data), self._written, data), data)
        self._written += len(data)
        self._waiting, self._count = [], 0
