"""Blocks of columns: what the files of a DRUM consist of; see docs/formats/drum.md.

A block is the common head (see `format`), a table that says how long its sections are, and the sections:
keys, operations, values (lengths, data), aux (lengths, data), each padded to 8 bytes. One checksum covers
all of it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from barkspider.core.errors import StorageError
from barkspider.core.texts import NO_BYTES, Bytes
from barkspider.storage.columns import NO_KEYS, Keys
from barkspider.storage.env import ReadFile
from barkspider.storage.format import BLOCK_HEAD_SIZE, block_head, check_block, read_block_head

_TABLE = struct.Struct("<QI6I4x")  # number, operation, lengths of the six sections
HEAD_SIZE = BLOCK_HEAD_SIZE + _TABLE.size
_CODEC = 16  # columns, not compressed: a number that no queue block has


@dataclass(frozen=True, slots=True)
class Block:
    """The sections of a block. What a section means depends on the file; absent ones are empty.

    `tag` is a bucket, `number` an offset in another file, `op` the operation of all rows when `ops` is empty.
    """

    rows: int
    tag: int = 0
    number: int = 0
    op: int = 0
    keys: Keys = field(default_factory=lambda: NO_KEYS)
    ops: Bytes = field(default_factory=lambda: NO_BYTES)
    value_lengths: Bytes = field(default_factory=lambda: NO_BYTES)
    values: Bytes = field(default_factory=lambda: NO_BYTES)
    aux_lengths: Bytes = field(default_factory=lambda: NO_BYTES)
    aux: Bytes = field(default_factory=lambda: NO_BYTES)

    def pieces(self) -> list[memoryview | bytes]:
        """The block as it goes into a file, in pieces that are not copied."""
        keys = self.keys.view(np.uint8)
        sections = (keys, self.ops, self.value_lengths, self.values, self.aux_lengths, self.aux)
        payload: list[memoryview | bytes] = [_TABLE.pack(self.number, self.op, *map(len, sections))]
        size = _TABLE.size
        for section in sections:
            if len(section):
                payload.append(section.data)
                size += len(section)
                if len(section) % 8:
                    payload.append(bytes(-len(section) % 8))
                    size += -len(section) % 8
        return [block_head(_CODEC, size, self.rows, self.tag, *payload), *payload]


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """Where a block lies, and what its head says: not to be believed before the block was read."""

    offset: int
    size: int
    rows: int
    tag: int
    number: int
    value_bytes: int


def scan(file: ReadFile, start: int, end: int) -> list[BlockSpan]:
    """All blocks between two offsets of a file, by their heads alone."""
    spans = []
    while start < end:
        raw = file.pread(start, HEAD_SIZE)
        if len(raw) < HEAD_SIZE:
            raise StorageError(f"{file.path} is cut off at byte {start}")
        head = read_block_head(raw, file.path, start)
        number, _, *lengths = _TABLE.unpack_from(raw, BLOCK_HEAD_SIZE)
        size = BLOCK_HEAD_SIZE + head.stored
        if head.codec != _CODEC or start + size > end:
            raise StorageError(f"{file.path} is damaged at byte {start}")
        spans.append(BlockSpan(start, size, head.items, head.first, number, lengths[3]))
        start += size
    return spans


class BlockReader:
    """Reads blocks into one buffer that is used again: a block is valid until the next is read.

    One thread at a time.
    """

    def __init__(self) -> None:
        self._buffer = np.empty(1 << 16, np.uint8)

    def read(self, file: ReadFile, offset: int, size: int = 0) -> tuple[Block, int]:
        """The block at `offset`, and where the next begins. `size` saves a look at the head if known."""
        if not size:
            head = file.pread(offset, BLOCK_HEAD_SIZE)
            size = BLOCK_HEAD_SIZE + read_block_head(head, file.path, offset).stored
        if size > len(self._buffer):
            if offset + size > file.size:
                raise StorageError(f"{file.path} is cut off at byte {offset}")
            self._buffer = np.empty(size + size // 4, np.uint8)
        raw = self._buffer[:size]
        if file.pread_into(offset, raw) < size:
            raise StorageError(f"{file.path} is cut off at byte {offset}")
        return _parse(raw, file.path, offset), offset + size


def _parse(raw: Bytes, path: Path, offset: int) -> Block:
    head = read_block_head(raw, path, offset)
    if head.codec != _CODEC or head.stored + BLOCK_HEAD_SIZE != len(raw) or head.stored < _TABLE.size:
        raise StorageError(f"{path} is damaged at byte {offset}")
    check_block(raw[:BLOCK_HEAD_SIZE], raw[BLOCK_HEAD_SIZE:], path, offset)
    number, op, *lengths = _TABLE.unpack_from(raw.data, BLOCK_HEAD_SIZE)
    sections, start = [], HEAD_SIZE
    for length in lengths:
        sections.append(raw[start : start + length])
        start += length + -length % 8
    keys, ops, value_lengths, values, aux_lengths, aux = sections
    if start != len(raw) or len(keys) not in (0, 8 * head.items) or len(ops) not in (0, head.items):
        raise StorageError(f"{path} is damaged at byte {offset}")
    return Block(
        head.items,
        head.first,
        number,
        op,
        keys.view("<u8"),
        ops,
        value_lengths,
        values,
        aux_lengths,
        aux,
    )
