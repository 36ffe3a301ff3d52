"""One array of numbers in one file: written from front to back, read in order or mapped; see docs/formats.

Checksums are kept for each piece of 128 KiB, so that a reader in order need not read twice.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError
from barkspider.storage.env import Env
from barkspider.storage.format import HEADER_SIZE, check_header, checksum, header
from barkspider.storage.raw import as_bytes

Array: TypeAlias = npt.NDArray[Any]

_MAGIC, _VERSION = b"BARKarry", 1
_TAIL = struct.Struct("<8sQQ")  # type of an item, number of items, checksum of all before it but the items
KEYS = "<u8"  # the kind of an array of keys of domains
PIECE = 1 << 17  # bytes; a multiple of every item's size


@dataclass(slots=True)
class Traffic:
    """Bytes that went from and to files of arrays."""

    read: int = 0
    written: int = 0


class ArrayWriter:
    """Appends items to a new file, which gets its name when it is whole: a crash leaves `NAME.new`.

    One thread. Leaving the `with` block finishes the file, or drops it when an error passes. A file that is
    not to outlive the process need not be `durable`.
    """

    def __init__(
        self, env: Env, path: Path, kind: str, traffic: Traffic | None = None, durable: bool = True
    ) -> None:
        self._env, self._path, self._kind, self._durable = env, path, np.dtype(kind), durable
        self._traffic = traffic if traffic is not None else Traffic()
        self._sums: list[int] = []
        self._piece = bytearray()
        self._new = path.with_name(path.name + ".new") if durable else path
        env.remove(self._new)
        self._file = env.append(self._new)
        self._file.write(header(_MAGIC, _VERSION))
        self.items = 0

    def write(self, items: Array) -> None:
        """Append items; they are converted to the type of the file."""
        data = as_bytes(np.ascontiguousarray(items, dtype=self._kind))
        self.items += len(items)
        while len(data):
            room = PIECE - len(self._piece)
            self._piece += data[:room]
            data = data[room:]
            if len(self._piece) == PIECE:
                self._write_piece()

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._file.discard()
            self._env.remove(self._new)
            return
        if self._piece:
            self._write_piece()
        sums = np.array(self._sums, "<u8").tobytes()
        tail = _TAIL.pack(self._kind.str.encode(), self.items, 0)[:-8]
        self._file.write(sums, tail, checksum(sums + tail).to_bytes(8, "little"))
        self._traffic.written += len(sums)
        if self._durable:
            self._file.sync()
        self._file.close()
        if self._durable:
            self._env.rename(self._new, self._path)

    def _write_piece(self) -> None:
        self._sums.append(checksum(self._piece))
        self._file.write(self._piece)
        self._traffic.written += len(self._piece)
        self._piece = bytearray()


class ArrayFile:
    """A finished file of items. Any thread may map it; each `stream` belongs to one."""

    def __init__(self, env: Env, path: Path, kind: str) -> None:
        self.path, self._env, self._kind = path, env, np.dtype(kind)
        with env.open(path) as file:
            check_header(file.pread(0, HEADER_SIZE), _MAGIC, _VERSION, path)
            size = file.size
            place = size - _TAIL.size
            tail = file.pread(max(place, 0), _TAIL.size)
            found, items, digest = _TAIL.unpack(tail.ljust(_TAIL.size, b"\0"))
            length = items * self._kind.itemsize
            pieces = -(-length // PIECE)
            if place != HEADER_SIZE + length + 8 * pieces:
                raise StorageError(f"{path} is cut off or damaged: its last bytes do not fit its length")
            sums = file.pread(HEADER_SIZE + length, 8 * pieces)
        if checksum(sums + tail[:-8]) != digest:
            raise StorageError(f"{path} is damaged at byte {HEADER_SIZE + length}")
        if found.rstrip(b"\0") != self._kind.str.encode():
            raise StorageError(f"{path} does not hold items of type {kind}")
        self._sums: list[int] = np.frombuffer(sums, "<u8").tolist()
        self.items: int = items
        self.bytes: int = length

    def map(self) -> Array:
        """All items as memory that the system reads when it is touched; every checksum is compared first."""
        with self._env.open(self.path) as file:
            whole = file.map()
        data = whole[HEADER_SIZE : HEADER_SIZE + self.bytes]
        for number, known in enumerate(self._sums):
            self._compare(data[number * PIECE : (number + 1) * PIECE], number, known)
        return np.frombuffer(data, self._kind)

    def stream(self, traffic: Traffic, begin: int = 0) -> ArrayStream:
        """The items in order from the one numbered `begin`, read piece by piece."""
        skipped, within = divmod(begin * self._kind.itemsize, PIECE)
        stream = ArrayStream(self.pieces(traffic, skipped), self._kind)
        stream.take(within // self._kind.itemsize)
        return stream

    def pieces(self, traffic: Traffic, skipped: int = 0) -> Iterator[Array]:
        """The items in order, some at a time, in a buffer that is used again for the next."""
        buffer = np.empty(min(PIECE, self.bytes), np.uint8)
        with self._env.open(self.path) as file:
            for number, known in enumerate(self._sums[skipped:], skipped):
                part = buffer[: min(PIECE, self.bytes - number * PIECE)]
                if file.pread_into(HEADER_SIZE + number * PIECE, part) < len(part):
                    raise StorageError(f"{self.path} is cut off at byte {HEADER_SIZE + number * PIECE}")
                self._compare(part.data, number, known)
                traffic.read += len(part)
                yield part.view(self._kind)

    def _compare(self, data: memoryview, number: int, known: int) -> None:
        if checksum(data) != known:
            raise StorageError(f"{self.path} is damaged at byte {HEADER_SIZE + number * PIECE}")


class ArrayStream:
    """Takes any number of items at a time from pieces of any size. One thread."""

    def __init__(self, pieces: Iterator[Array], kind: np.dtype[Any]) -> None:
        self._pieces = pieces
        self._kind = kind
        self._rest: Array = np.empty(0, kind)

    def take(self, count: int) -> Array:
        """The next items, a copy; fewer only at the end."""
        out, filled = np.empty(count, self._kind), 0
        while filled < count:
            if not len(self._rest):
                following = next(self._pieces, None)
                if following is None:
                    break
                self._rest = following
            part = self._rest[: count - filled]
            out[filled : filled + len(part)] = part
            filled += len(part)
            self._rest = self._rest[len(part) :]
        return out[:filled]
