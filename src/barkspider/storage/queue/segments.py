"""Numbered files of blocks, written at the end of the last and read from anywhere: what a queue lies in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from barkspider.core.errors import StorageError
from barkspider.storage.env import AppendFile, Env, ReadFile
from barkspider.storage.format import (
    BLOCK_HEAD_SIZE,
    HEADER_SIZE,
    block_head,
    check_block,
    check_header,
    header,
    read_block_head,
)
from barkspider.storage.queue.items import Lengths, pack, unpack

MAGIC, VERSION = b"BARKqueu", 1
_RESERVE = 1 << 22  # bytes: a segment that grows beyond takes disk blocks in advance: a fifth less work
_NAME = re.compile(r"\d{8,}\.queue")


class Position(NamedTuple):
    """Where an item is: the segment, the offset of its block, its number within the block."""

    segment: int
    offset: int = HEADER_SIZE
    item: int = 0


class Segments:
    """The segment files of one queue. One thread.

    Invariants: `lengths` has every segment file and how many of its bytes count, all of them whole blocks;
    `last` is the segment that is written, or will be, and no number is larger. A call that raises has
    changed nothing; after a failed sync nothing can be written or synced any more.
    """

    def __init__(self, env: Env, folder: Path, size: int) -> None:
        """`size` is how many bytes a segment may reach before the next is begun."""
        self.lengths: dict[int, int] = {}
        self.last = 0
        self._env, self._folder, self._size = env, folder, size
        self._writer: AppendFile | None = None
        self._reserved = 0  # up to where the one that is written has disk blocks
        self._reader: ReadFile | None = None
        self._reader_number = -1
        self._synced: dict[int, int] = {}  # segments whose names are safe, and how many of their bytes
        self._failure = ""
        # Queues begin while a crawl runs, which must not wait for the disk; nobody misses the folder of one without files.
        env.make_folder(folder, durable=False)

    def path(self, number: int) -> Path:
        """The file of a segment."""
        return self._folder / f"{number:08d}.queue"

    def begin_with(self, lengths: Mapping[int, int]) -> None:
        """Begin with these segments, cut to these lengths; remove all others."""
        for number, length in lengths.items():
            self._env.truncate(self.path(number), length)
        self.lengths, self._synced = dict(lengths), dict(lengths)
        for name in self._env.list(self._folder):
            if _NAME.fullmatch(name) and int(name.partition(".")[0]) not in self.lengths:
                self._env.remove(self._folder / name)

    def append(self, lengths: Lengths, data: memoryview, number: int, compress: bool) -> Position:
        """Write a block of items at the end; `number` is that of its first item."""
        self._check()
        codec, pieces = pack(lengths, data, compress)
        head = block_head(codec, 4 * len(lengths) + len(data), len(lengths), number, *pieces)
        if self.lengths.get(self.last, 0) >= self._size:
            if self._writer is not None:
                self._writer.flush()  # first, because what `close` cannot flush is lost
                self._writer.close()
                self._writer = None
            self.last += 1
        if self._writer is None:
            self._writer, self._reserved = self._env.append(self.path(self.last)), _RESERVE
        offset = self._writer.size
        if offset != self.lengths.get(self.last, 0):
            raise StorageError(f"{self._writer.path} was changed by another process")
        begin = [header(MAGIC, VERSION)] if offset == 0 else []
        self._writer.write(*begin, head, *pieces)
        self.lengths[self.last] = size = self._writer.size
        if self._reserved <= size < self._size:
            more = min(size, self._size - size)  # as much again, so that a short queue takes little
            self._writer.preallocate(more)
            self._reserved = size + more
        return Position(self.last, offset or HEADER_SIZE)

    def cut(self, last: int, length: int) -> None:
        """Take back what was appended since segment `last` was the last one and so long."""
        if self._writer is not None and self.last == last:
            self._writer.cut(length)
        else:
            self._drop_writer()
            for number in range(last + 1, self.last + 1):
                self._env.remove(self.path(number))
                self.lengths.pop(number, None)
            if last in self.lengths:
                self._env.truncate(self.path(last), length)
            self.last = last
        if length:
            self.lengths[last] = length
        else:
            self.lengths.pop(last, None)

    def read(self, position: Position, number: int) -> tuple[pa.BinaryArray, Position]:
        """The items of the block at `position`, whose first is item `number`, and where the next one begins."""
        segment, offset = position.segment, position.offset
        file = self._file(segment)
        head_bytes = file.pread(offset, BLOCK_HEAD_SIZE)
        head = read_block_head(head_bytes, file.path, offset)
        end = offset + BLOCK_HEAD_SIZE + head.stored
        if end > self.lengths[segment]:
            raise StorageError(f"{file.path} is damaged at byte {offset}")
        stored = pa.allocate_buffer(head.stored)
        if file.pread_into(offset + BLOCK_HEAD_SIZE, stored) < head.stored:
            raise StorageError(f"{file.path} is cut off in the block at byte {offset}")
        check_block(head_bytes, stored, file.path, offset)
        if head.first != number or not head.items:
            raise StorageError(f"{file.path} has another block than expected at byte {offset}")
        try:
            return unpack(head.codec, stored, head.raw, head.items), Position(segment, end)
        except ValueError as error:
            raise StorageError(f"{file.path} is damaged at byte {offset}") from error

    def syncing(self, numbers: Collection[int]) -> Callable[[], None]:
        """What makes these segments and their names survive a power loss as they are now; see `AppendFile.syncing`."""
        self._check()
        lengths = {number: self.lengths[number] for number in sorted(numbers)}
        syncs = {}
        for number, length in lengths.items():
            if self._synced.get(number) == length:
                continue
            if number == self.last and self._writer is not None:
                syncs[number] = self._writer.syncing()
            else:
                with self._env.append(self.path(number)) as file:
                    syncs[number] = file.syncing()
        named = not (syncs.keys() - self._synced.keys())

        def sync() -> None:
            try:
                for each in syncs.values():
                    each()
                if not named:
                    self._env.sync_folder(self._folder)
                    if not self._synced:
                        self._env.sync_folder(self._folder.parent)
            except StorageError as error:
                # Nobody knows what the disk holds now, and a second sync may not tell.
                self._failure = str(error)
                raise
            self._synced |= {number: lengths[number] for number in syncs}

        return sync

    def remove(self, number: int) -> None:
        """Delete a segment before the last."""
        if number == self._reader_number:
            self._drop_reader()
        self._env.remove(self.path(number))
        del self.lengths[number]
        self._synced.pop(number, None)

    def close(self) -> None:
        """Close the files; what was not synced may be lost. Nothing can be written after that."""
        self._failure = f"{self._folder} is closed"
        self._drop_reader()
        self._drop_writer()
        if self.last not in self.lengths:  # created, and then there was no room to write to it
            self._env.remove(self.path(self.last))

    def _check(self) -> None:
        if self._failure:
            raise StorageError(self._failure)

    def _file(self, number: int) -> ReadFile:
        if number == self.last and self._writer is not None:
            self._writer.flush()
        if self._reader is None or self._reader_number != number:
            self._drop_reader()
            file = self._env.open(self.path(number))
            try:
                check_header(file.pread(0, HEADER_SIZE), MAGIC, VERSION, file.path)
            except StorageError:
                file.close()
                raise
            self._reader, self._reader_number = file, number
        return self._reader

    def _drop_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader, self._reader_number = None, -1

    def _drop_writer(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.discard()
