"""A first-in, first-out queue of byte strings on disk.

Filled and emptied by one owner. Items gather in RAM into a block; a full block is compressed and
appended to the last segment file; the reader takes whole blocks from the first segment and removes a
segment when it is read to the end. RAM holds one block being written and one being read.

A block is (little-endian): magic u32, compressed length u32, raw length u32, items u32, xxh3_64 of the
compressed bytes u64, then the compressed bytes (LZ4 frame) of: item lengths u32 each, items.
"""

from __future__ import annotations

import struct
from collections import deque
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

from barkspider.core.errors import StorageError
from barkspider.storage.env import AppendFile, Env

_HEAD = struct.Struct("<IIIIQ")
_MAGIC = 0x51534B42  # "BKSQ"
_BLOCK = 1 << 16  # large enough to compress well, small enough to read in a millisecond
_SEGMENT = 1 << 24  # disk space behind the reader is freed in steps of 16 MiB


class DiskQueue:
    """See the module. The files live as long as the queue object: `close` removes them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     queue = DiskQueue(Env(), Path(folder), "demo")
    ...     queue.append(b"first"); queue.append(b"second")
    ...     queue.pop(), len(queue), queue.close()
    (b'first', 1, None)
    """

    def __init__(self, env: Env, folder: Path, name: str) -> None:
        self._env, self._folder, self._name = env, folder, name
        self._first = self._last = 0  # numbers of the segments being read and being written
        self._place = 0  # where the next block to read begins in the first segment
        self._blocks = 0  # blocks on disk and not yet read
        self._file: AppendFile | None = None
        self._reading: deque[bytes] = deque()
        self._writing: list[bytes] = []
        self._writing_size = 0
        self._count = 0
        env.make_folder(folder)
        for stale in env.list(folder):
            if stale.startswith(f"{name}-"):
                env.remove(folder / stale)

    def __len__(self) -> int:
        return self._count

    def append(self, item: bytes) -> None:
        """Put an item at the end."""
        self._writing.append(item)
        self._writing_size += len(item)
        self._count += 1
        if self._writing_size >= _BLOCK:
            self._write_block()

    def pop(self) -> bytes:
        """Take the first item; IndexError when there is none."""
        if not self._reading:
            if self._blocks:
                self._read_block()
            else:
                self._reading.extend(self._writing)
                self._writing, self._writing_size = [], 0
        item = self._reading.popleft()
        self._count -= 1
        return item

    def close(self) -> None:
        """Remove the files and forget the items."""
        if self._file is not None:
            self._file.close()
            self._file = None
        for number in range(self._first, self._last + 1):
            self._env.remove(self._segment(number))
        self._reading.clear()
        self._writing, self._writing_size, self._blocks, self._count = [], 0, 0, 0

    def validate(self) -> None:
        """Check the invariants."""
        assert self._first <= self._last
        assert self._count >= len(self._reading) + len(self._writing)
        assert self._blocks > 0 or self._count == len(self._reading) + len(self._writing)

    def _segment(self, number: int) -> Path:
        return self._folder / f"{self._name}-{number:08d}.queue"

    def _write_block(self) -> None:
        lengths = np.fromiter(map(len, self._writing), "<u4", len(self._writing))
        raw = lengths.tobytes() + b"".join(self._writing)
        packed = pa.compress(raw, codec="lz4", asbytes=True)
        head = _HEAD.pack(_MAGIC, len(packed), len(raw), len(lengths), xxhash.xxh3_64_intdigest(packed))
        if self._file is not None and self._file.size >= _SEGMENT:
            self._file.close()
            self._file, self._last = None, self._last + 1
        if self._file is None:
            self._file = self._env.append(self._segment(self._last))
        self._file.write(head + packed)
        self._blocks += 1
        self._writing, self._writing_size = [], 0

    def _read_block(self) -> None:
        if self._first == self._last and self._file is not None:
            self._file.flush()
        path = self._segment(self._first)
        head = self._env.read(path, self._place, _HEAD.size)
        if not head and self._first < self._last:
            self._env.remove(path)
            self._first, self._place = self._first + 1, 0
            return self._read_block()
        if len(head) < _HEAD.size:
            raise StorageError(f"{path} is cut off at byte {self._place}")
        magic, packed_size, raw_size, count, digest = _HEAD.unpack(head)
        packed = self._env.read(path, self._place + _HEAD.size, packed_size) if magic == _MAGIC else b""
        if len(packed) != packed_size or xxhash.xxh3_64_intdigest(packed) != digest:
            raise StorageError(f"{path} is damaged at byte {self._place}")
        raw = pa.decompress(packed, raw_size, codec="lz4", asbytes=True)
        ends = np.cumsum(np.frombuffer(raw, "<u4", count), dtype=np.int64) + 4 * count
        start = 4 * count
        for end in ends.tolist():
            self._reading.append(raw[start:end])
            start = end
        self._place += _HEAD.size + packed_size
        self._blocks -= 1
        return None
