"""Buckets: rows on their way to a merge, spread by key prefix, in RAM buffers and then in two files.

All buckets of a *generation* share two append-only files, one for keys, operations and values and one for
aux, as blocks of one bucket each, so that a commit syncs two files however many buckets there are (2,000
small ones cost ten times as much). The aux of a block is written first and the block of keys says where it
lies: what a refused write leaves in the aux file is never looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from barkspider.core.texts import NO_BYTES, Bytes, Rows, Texts
from barkspider.storage.columns import NO_ROWS, Column, Keys, Kind, as_column, blank, narrow, pack, part
from barkspider.storage.drum.blocks import Block, BlockReader, BlockSpan, scan
from barkspider.storage.drum.counters import DrumCounters
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.env import AppendFile, Env
from barkspider.storage.format import HEADER_SIZE, check_header, write_header
from barkspider.storage.kernels import Room, scatter

PAIRS_MAGIC, AUX_MAGIC, VERSION = b"BARKdrmk", b"BARKdrma", 1

CHECK, UPDATE, CHECK_UPDATE = 1, 2, 3
_AHEAD = 1 << 24  # disk space is asked for in steps of 16 MiB, so that a small DRUM stays small
_NONE = np.empty((0, 0), np.uint32)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to feed: one operation for all, or one each in `ops`; `rows` are those to take, none for all."""

    keys: Keys
    op: int
    ops: Bytes = field(default_factory=lambda: NO_BYTES)
    values: Column | None = None
    aux: Texts | None = None
    rows: Rows = field(default_factory=lambda: NO_ROWS)

    def __len__(self) -> int:
        return len(self.rows) if len(self.rows) else len(self.keys)

    @classmethod
    def of(cls, kind: Kind, has_aux: bool, op: Any, keys: Any, values: Any, aux: Any) -> Batch:
        """What a caller gave, checked; values and aux that are not given are blank."""
        keys = np.ascontiguousarray(keys, np.uint64)
        one, ops = (
            (0, np.ascontiguousarray(op, np.uint8)) if isinstance(op, np.ndarray) else (int(op), NO_BYTES)
        )
        if not (one in (CHECK, UPDATE, CHECK_UPDATE) or (one == 0 and bool(((ops > 0) & (ops < 4)).all()))):
            raise ValueError("an operation is CHECK, UPDATE or CHECK_UPDATE")
        if (kind is None and values is not None) or (not has_aux and aux is not None):
            raise ValueError("this DRUM keeps no such values or aux")
        column: Column | None = None
        if kind is not None:
            column = blank(kind, len(keys)) if values is None else as_column(kind, values)
        texts: Any = None
        if has_aux:
            texts = blank(bytes, len(keys)) if aux is None else as_column(bytes, aux)
        for other in (ops if one == 0 else None, column, texts):
            if other is not None and len(other) != len(keys):
                raise ValueError(f"{len(keys)} keys came with {len(other)} operations, values or aux")
        return cls(keys, one, ops, column, texts)


class Generation:
    """The files of one generation of buckets, and where in them each bucket's blocks are.

    Invariant: the blocks of a bucket are in order of arrival. The owner of the DRUM writes until the
    generation is sealed; then a merge reads.
    """

    def __init__(self, env: Env, folder: Path, number: int, sizing: Sizing, has_aux: bool) -> None:
        self.number, self.sizing = number, sizing
        self.buckets = buckets = sizing.buckets
        self.spans: list[list[BlockSpan]] = [[] for _ in range(buckets)]
        self.rows = np.zeros(buckets, np.int64)
        self.pair_bytes = np.zeros(buckets, np.int64)  # of keys and values: what a merge reads into RAM
        self.pairs_path = folder / f"{number:08d}.pairs"
        self.aux_path = folder / f"{number:08d}.aux" if has_aux else None
        self._env = env
        self._ahead = [0, 0]  # bytes of the two files up to which space was asked for
        self._pairs: AppendFile | None = None
        self._aux: AppendFile | None = None
        self._synced = (0, 0)

    @property
    def size(self) -> int:
        """The length of both files."""
        return sum(file.size for file in (self._pairs, self._aux) if file is not None)

    def files(self) -> dict[str, int]:
        """The names of the files within the folder, with their lengths."""
        return {file.path.name: file.size for file in (self._pairs, self._aux) if file is not None}

    def open(self) -> None:
        """Open the files, which may be new; what they hold already is found by its heads."""
        self._pairs = self._begin(self.pairs_path, PAIRS_MAGIC)
        if self.aux_path is not None:
            self._aux = self._begin(self.aux_path, AUX_MAGIC)
        if self._pairs.size > HEADER_SIZE:
            with self._env.open(self.pairs_path) as file:
                for span in scan(file, HEADER_SIZE, self._pairs.size):
                    self._note(span)
            self._synced = self._sizes()

    def write(self, bucket: int, block: Block, aux: Block | None, counters: DrumCounters) -> None:
        """Append rows of one bucket."""
        assert self._pairs is not None
        number = 0
        if aux is not None:
            assert self._aux is not None
            number = self._aux.size
            self._reserve(1, self._aux)
            for piece in aux.pieces():
                self._aux.write(piece)
            counters.aux_written += self._aux.size - number
        offset = self._pairs.size
        self._reserve(0, self._pairs)
        # In one call: a piece of a block followed by another block could not be read again.
        self._pairs.write(
            b"".join(
                Block(
                    block.rows,
                    bucket,
                    number,
                    block.op,
                    block.keys,
                    block.ops,
                    block.value_lengths,
                    block.values,
                ).pieces()
            )
        )
        counters.pairs_written += self._pairs.size - offset
        counters.rows_written += block.rows
        self._note(
            BlockSpan(offset, self._pairs.size - offset, block.rows, bucket, number, len(block.values))
        )

    def flush(self) -> None:
        """Hand all to the operating system, so that a merge can read it."""
        for file in (self._aux, self._pairs):
            if file is not None:
                file.flush()

    def syncing(self) -> Callable[[], None]:
        """What makes all of it survive a power loss: see `AppendFile.syncing`."""
        sizes = self._sizes()
        files = () if self._synced == sizes else (self._aux, self._pairs)
        syncs = [file.syncing() for file in files if file is not None]

        def sync() -> None:
            for each in syncs:
                each()
            self._synced = sizes

        return sync

    def verify(self) -> None:
        """Read every block and compare its checksum."""
        self.flush()
        reader = BlockReader()
        with self._env.open(self.pairs_path) as pairs:
            spans = scan(pairs, HEADER_SIZE, pairs.size)
            for span in spans:
                reader.read(pairs, span.offset, span.size)
        if self.aux_path is not None:
            with self._env.open(self.aux_path) as aux:
                for span in spans:
                    reader.read(aux, span.number)

    def validate(self) -> None:
        """Check that every block is counted."""
        assert len(self.spans) == self.buckets
        assert [sum(span.rows for span in spans) for spans in self.spans] == list(self.rows)

    def close(self) -> None:
        """Close the files; they stay on disk."""
        for file in (self._aux, self._pairs):
            if file is not None:
                file.close()

    def _begin(self, path: Path, magic: bytes) -> AppendFile:
        file = self._env.append(path)
        if file.size == 0:
            write_header(file, magic, VERSION)
        else:
            check_header(self._env.read(path, 0, HEADER_SIZE), magic, VERSION, path)
        return file

    def _note(self, span: BlockSpan) -> None:
        self.spans[min(span.tag, self.buckets - 1)].append(span)
        self.rows[min(span.tag, self.buckets - 1)] += span.rows
        self.pair_bytes[min(span.tag, self.buckets - 1)] += 8 * span.rows + span.value_bytes

    def _reserve(self, which: int, file: AppendFile) -> None:
        if file.size + _AHEAD // 2 > self._ahead[which] and file.size > _AHEAD // 4:
            file.preallocate(_AHEAD)
            self._ahead[which] = file.size + _AHEAD

    def _sizes(self) -> tuple[int, int]:
        return (self._pairs.size if self._pairs else 0, self._aux.size if self._aux else 0)


class Buffers:
    """The RAM buffers of k buckets: two of M bytes for each. The owner of the DRUM only.

    Invariant: `fill[i]` rows, bytes of values and bytes of aux wait for bucket i, in order of arrival.
    """

    def __init__(self, buckets: int, size: int, kind: Kind, has_aux: bool) -> None:
        self.shape = buckets, size
        self._kind = kind
        self._has_aux = has_aux
        value_size = kind.itemsize if isinstance(kind, np.dtype) else 0 if kind is None else -1
        row = 8 + 1 + 4 * has_aux + (4 if kind is bytes else value_size)
        # A row of bytes shares its buffer with the lengths; a fixed value is part of the row.
        rows = max(1, size // (2 * row if kind is bytes else row))
        value_bytes = rows * value_size if value_size >= 0 else max(1, size // 2)
        aux_bytes = size if has_aux else 0
        self._room = Room(
            shift=64 - (buckets.bit_length() - 1),
            keys=np.empty((buckets, rows), np.uint64),
            ops=np.empty((buckets, rows), np.uint8),
            value_size=value_size,
            value_bytes=value_bytes,
            value_lengths=np.empty((buckets, rows), np.uint32) if kind is bytes else _NONE,
            values=np.empty(buckets * value_bytes, np.uint8),
            aux_bytes=aux_bytes,
            aux_lengths=np.empty((buckets, rows), np.uint32) if has_aux else _NONE,
            aux=np.empty(buckets * aux_bytes, np.uint8),
            fill=np.zeros((buckets, 3), np.int64),
        )
        self.fill = self._room.fill

    def put(self, batch: Batch, begin: int) -> int:
        """Take rows of a batch from the `begin`-th on; the place of the first that did not fit."""
        values, value_offsets = NO_BYTES, NO_ROWS
        if isinstance(batch.values, Texts):
            values, value_offsets = batch.values.data, batch.values.offsets
        elif batch.values is not None:
            values = batch.values.reshape(-1).view(np.uint8)
        aux = batch.aux
        done: int = scatter(
            batch.keys,
            batch.rows,
            begin,
            batch.ops,
            batch.op,
            values,
            value_offsets,
            NO_BYTES if aux is None else aux.data,
            NO_ROWS if aux is None else aux.offsets,
            self._room,
        )
        return done

    def bucket_of(self, key: int) -> int:
        """The bucket of a key: its highest bits."""
        return key >> self._room.shift

    def spill(self, bucket: int, generation: Generation, counters: DrumCounters) -> None:
        """Move what waits for a bucket into the files. When that fails, it still waits."""
        rows, value_bytes, aux_bytes = (int(number) for number in self.fill[bucket])
        if rows == 0:
            return
        room = self._room
        values = room.values[bucket * room.value_bytes :][:value_bytes]
        lengths = narrow(room.value_lengths[bucket, :rows]) if self._kind is bytes else NO_BYTES
        block = pairs_block(room.keys[bucket, :rows], room.ops[bucket, :rows], lengths, values)
        aux = None
        if self._has_aux:
            texts = room.aux[bucket * room.aux_bytes :][:aux_bytes]
            aux = Block(rows, bucket, aux_lengths=narrow(room.aux_lengths[bucket, :rows]), aux=texts)
        generation.write(bucket, block, aux, counters)
        self.fill[bucket] = 0


def pairs_block(keys: Keys, ops: Bytes, value_lengths: Bytes, values: Bytes) -> Block:
    """Rows of a bucket; operations are left out when all are the same."""
    first = int(ops[0])
    same = bool((ops == first).all())
    return Block(
        len(keys),
        op=first if same else 0,
        keys=keys,
        ops=NO_BYTES if same else ops,
        value_lengths=value_lengths,
        values=values,
    )


def lone_row(batch: Batch, at: int) -> tuple[Block, Block | None]:
    """A row too large for any buffer, as blocks of its own."""
    row = int(batch.rows[at]) if len(batch.rows) else at
    ops = batch.ops[row : row + 1] if len(batch.ops) else np.array([batch.op], np.uint8)
    lengths, values = NO_BYTES, NO_BYTES
    if batch.values is not None:
        lengths, values = pack(part(batch.values, row, row + 1))
    block = pairs_block(batch.keys[row : row + 1], ops, lengths, values)
    if batch.aux is None:
        return block, None
    aux_lengths, aux = pack(batch.aux.slice(row, row + 1))
    return block, Block(1, aux_lengths=aux_lengths, aux=aux)


def describe(generation: Generation) -> dict[str, Any]:
    """What a manifest keeps of a generation beside its files."""
    sizing = generation.sizing
    return {
        "number": generation.number,
        "buckets": sizing.buckets,
        "buffer": sizing.buffer,
        "bucket_bytes": sizing.bucket_bytes,
        "disk": sizing.disk,
    }
