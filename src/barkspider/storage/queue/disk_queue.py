"""A first-in, first-out queue of byte strings on disk.

Items gather in RAM into a block. A full block is packed and appended to the last segment, a file; the
reader takes whole blocks from the first. When nothing is left on disk the reader takes what has gathered
in RAM, so a queue that stays short costs no I/O. RAM holds one block being written and one being read,
however long the queue. The format is in docs/formats/queue.md.

A commit is `prepare`, then a manifest with what it returned, then `committed`. `DiskQueue.open` goes back
to such a state exactly: what was appended or popped since is undone. So a segment that a manifest names
is deleted only when a later one no longer does; a segment that none names goes as soon as it is read.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.storage.env import Env
from barkspider.storage.format import HEADER_SIZE, MOST_BYTES
from barkspider.storage.queue.items import Lengths, column, parts
from barkspider.storage.queue.segments import Position, Segments

BLOCK = 1 << 19  # bytes: little work per block, still in the processor's cache, read in 0.1 ms
_SEGMENT = 1 << 26  # bytes: disk space behind the reader is freed in steps of 64 MiB
_LARGEST = MOST_BYTES // 2  # an item and the block it comes to stay below what a block may have
_NO_ITEMS = pa.array([], pa.binary())


class DiskQueue:
    """See the module. Filled and emptied by one owner, in one thread.

    Invariants: the items are, in order, the rest of `_front`, the blocks from `_next` to the end of the
    segments, and what gathers in `_data` and `_sizes`. `_popped` and `_stored` count items since the queue
    was made: those taken out, and those that no longer gather. A call that raises `StorageError` has
    changed nothing and may be made again, say when there is room; after a failed sync only `open` helps.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> queue = DiskQueue(Env(), Path(folder.name), "demo")
    >>> queue.append(b"first"); queue.append_batch(pa.array([b"second", b"third"]))
    >>> queue.pop(), len(queue)
    (b'first', 2)
    >>> state = queue.prepare()(); queue.committed()
    >>> queue.pop_batch(100).to_pylist()
    [b'second', b'third']
    >>> queue.close()
    >>> again = DiskQueue.open(Env(), Path(folder.name), "demo", state)
    >>> again.pop(), len(again)
    (b'second', 1)
    >>> again.close(); folder.cleanup()
    """

    def __init__(
        self,
        env: Env,
        folder: Path,
        name: str,
        *,
        compress: bool = True,
        block: int = BLOCK,
        segment: int = _SEGMENT,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """A new, empty queue, or with `state` see `open`. Its files are in the folder `name` of `folder`;
        others that an earlier queue left there are removed."""
        self.name = name
        self._compress, self._block = compress, block
        self._segments = Segments(env, folder / name, segment)
        self._next = Position(0)  # the next block to read, and the first item of it that counts
        self._front, self._read = _NO_ITEMS, 0  # a block, and how many of its items were taken
        self._front_position: Position | None = None  # where it lies, None when it never was on disk
        self._singles: tuple[list[int], memoryview] | None = None  # its parts, once `pop` needs them
        self._data, self._sizes = bytearray(), array("I")
        self._popped = self._stored = 0
        self._named: set[int] = set()  # segments that a manifest names, or may name
        self._prepared: set[int] = set()  # those that the last `prepare` returned
        self._segments.begin_with(self._restore(state) if state is not None else {})

    @classmethod
    def open(cls, env: Env, folder: Path, name: str, state: Mapping[str, Any], **settings: Any) -> Self:
        """The queue as it was when what `prepare` gave described it as `state`; `settings` are those of a new one."""
        return cls(env, folder, name, state=state, **settings)

    def __len__(self) -> int:
        return self._stored + len(self._sizes) - self._popped

    def append(self, item: bytes) -> None:
        """Put an item at the end."""
        if len(item) > _LARGEST:
            raise ValueError(f"an item of {len(item)} bytes is too large")
        self._data += item
        self._sizes.append(len(item))
        if self._is_full():
            try:
                self._write_gathered()
            except StorageError:
                del self._data[len(self._data) - len(item) :]
                self._sizes.pop()
                raise

    def append_batch(self, items: pa.Array) -> None:
        """Put the items of a binary or text column at the end; the column is not kept."""
        offsets, data = parts(items)
        lengths = (offsets[1:] - offsets[:-1]).astype(np.uint32)
        if len(lengths) and lengths.max() > _LARGEST:
            raise ValueError(f"an item of {lengths.max()} bytes is too large")
        last = self._segments.last
        before = (last, self._segments.lengths.get(last, 0), self._stored, self._next)
        gathered = (self._data, len(self._data), self._sizes, len(self._sizes))
        reading = (self._front, self._read, self._front_position, self._singles)
        try:
            self._add(lengths, offsets, data)
        except StorageError:
            self._segments.cut(*before[:2])
            self._stored, self._next = before[2:]
            self._data, self._sizes = gathered[0][: gathered[1]], gathered[2][: gathered[3]]
            self._front, self._read, self._front_position, self._singles = reading
            raise

    def pop(self) -> bytes:
        """Take the first item; IndexError when there is none."""
        if self._read == len(self._front) and not self._read_on():
            raise IndexError(f"the queue {self.name} is empty")
        if self._singles is None:
            offsets, data = parts(self._front)
            self._singles = offsets.tolist(), data
        starts, data = self._singles
        number = self._read
        self._read = number + 1
        self._popped += 1
        return bytes(data[starts[number] : starts[number + 1]])

    def pop_batch(self, most: int) -> pa.BinaryArray:
        """Take items from the front, at most so many: those of one block, none when the queue is empty."""
        if self._read == len(self._front) and not self._read_on():
            return _NO_ITEMS
        taken = self._front.slice(self._read, most)
        self._read += len(taken)
        self._popped += len(taken)
        return taken

    def prepare(self) -> Prepared:
        """See `core.events.Structure`; what it describes is what `open` needs to come back to this moment."""
        self._store_front()
        if self._sizes:
            self._write_gathered()
        if self._read < len(self._front):
            assert self._front_position is not None
            position = self._front_position._replace(item=self._read)
        else:
            self._find_block()
            position = self._next
        lengths = self._segments.lengths
        self._prepared = {number for number in lengths if number >= position.segment}
        self._named |= self._prepared
        sync = self._segments.syncing(self._prepared)
        state = {
            "files": {self._file_name(number): lengths[number] for number in sorted(self._prepared)},
            "read": list(position),
            "last": self._segments.last,
            "popped": self._popped,
            "appended": self._stored,
        }

        def describe() -> dict[str, Any]:
            sync()
            return state

        return describe

    def committed(self) -> None:
        """A manifest with what `prepare` returned last is safe: delete what only older ones named."""
        self._named = set(self._prepared)
        self._free()

    def close(self) -> None:
        """Forget the items; on disk stays what a manifest names and nothing else. Then only `open` helps."""
        self._segments.close()
        self._next = Position(self._segments.last + 1)
        self._free()
        self._front, self._read, self._front_position, self._singles = _NO_ITEMS, 0, None, None
        self._data, self._sizes = bytearray(), array("I")
        self._popped = self._stored

    def verify(self) -> None:
        """Read every block that is still to be read; StorageError names the first that is damaged."""
        position, number = self._next, self._popped + len(self._front) - self._read - self._next.item
        lengths = self._segments.lengths
        while position.segment in lengths:
            if position.offset >= lengths[position.segment]:
                position = Position(position.segment + 1)
                continue
            items, position = self._segments.read(position, number)
            number += len(items)
        if number != self._stored:
            raise StorageError(f"the queue {self.name} has lost {self._stored - number} items")

    def validate(self) -> None:
        """Check the invariants."""
        lengths, last = self._segments.lengths, self._segments.last
        assert 0 <= self._popped <= self._stored + len(self._sizes)
        assert 0 <= self._read <= len(self._front)
        assert sum(self._sizes) == len(self._data)
        assert self._named <= set(lengths)
        assert all(number in lengths for number in range(self._next.segment, last))
        if self._next.segment == last and self._next.offset >= lengths.get(last, 0):
            assert self._stored - self._popped == len(self._front) - self._read

    def _restore(self, state: Mapping[str, Any]) -> dict[int, int]:
        """Take over a state; the segments it names with their lengths."""
        try:
            segment, offset, item = state["read"]
            position = Position(int(segment), int(offset), int(item))
            last, popped, appended = (int(state[field]) for field in ("last", "popped", "appended"))
            files = dict(state["files"])
            numbers = range(position.segment, min(last, position.segment + len(files)) + 1)
            lengths = {n: int(files[name]) for n in numbers if (name := self._file_name(n)) in files}
            sound = (
                len(lengths) == len(files)
                and last == numbers[-1]
                and [*lengths] in ([*numbers], [*numbers[:-1]])  # the last may not have been begun
                and HEADER_SIZE <= position.offset <= lengths.get(position.segment, HEADER_SIZE)
                and 0 <= position.item <= popped <= appended
            )
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise StorageError(f"the state of the queue {self.name} is damaged") from error
        if not sound:
            raise StorageError(f"the state of the queue {self.name} is damaged")
        self._next, self._popped, self._stored, self._segments.last = position, popped, appended, last
        self._named, self._prepared = set(lengths), set(lengths)
        return lengths

    def _file_name(self, number: int) -> str:
        return f"{self.name}/{self._segments.path(number).name}"

    def _free(self) -> None:
        for number in [*self._segments.lengths]:
            if number < self._next.segment and number not in self._named:
                self._segments.remove(number)

    def _is_full(self) -> bool:
        return len(self._data) + 4 * len(self._sizes) >= self._block

    def _add(self, lengths: Lengths, offsets: npt.NDArray[np.signedinteger[Any]], data: memoryview) -> None:
        size = int(offsets[-1] - offsets[0]) + 4 * len(lengths)
        if size * 2 < self._block:
            self._data += data[offsets[0] : offsets[-1]]
            self._sizes.frombytes(lengths.tobytes())
            if self._is_full():
                self._write_gathered()
            return
        if self._sizes:
            self._write_gathered()
        # Blocks of equal size, so that none of the batch is left to be copied; an item is not divided.
        ends = (offsets[1:] - offsets[0]).astype(np.int64) + 4 * np.arange(1, len(lengths) + 1)
        count = -(-size // self._block)
        cuts = np.searchsorted(ends, np.arange(1, count) * (size // count)) + 1
        bounds = [0, *np.unique(np.minimum(cuts, len(lengths))).tolist(), len(lengths)]
        for begin, end in pairwise(bounds):
            if begin < end:
                self._write(lengths[begin:end], data[offsets[begin] : offsets[end]])

    def _write_gathered(self) -> None:
        try:
            self._write(np.array(self._sizes, np.uint32), memoryview(self._data))
        except StorageError:
            # The error's frames keep views of the old one, and what is viewed cannot grow or shrink.
            self._data = self._data[:]
            raise
        self._data, self._sizes = bytearray(), array("I")

    def _write(self, lengths: Lengths, data: memoryview) -> None:
        self._store_front()
        self._segments.append(lengths, data, self._stored, self._compress)
        self._stored += len(lengths)

    def _store_front(self) -> None:
        """Write down the rest of a block that never was on disk, before anything behind it is."""
        if self._front_position is not None or self._read == len(self._front):
            return
        rest = self._front.slice(self._read)
        offsets, data = parts(rest)
        lengths = (offsets[1:] - offsets[:-1]).astype(np.uint32)
        position = self._segments.append(
            lengths, data[offsets[0] : offsets[-1]], self._popped, self._compress
        )
        self._front, self._read, self._front_position, self._singles = rest, 0, position, None
        self._next = Position(position.segment, self._segments.lengths[position.segment])

    def _find_block(self) -> bool:
        """Move on to the segment that has the next block; whether there is one."""
        lengths = self._segments.lengths
        while self._next.offset >= lengths.get(self._next.segment, 0):
            if self._next.segment >= self._segments.last:
                return False
            self._next = Position(self._next.segment + 1)
            self._free()
        return True

    def _read_on(self) -> bool:
        """Take the next block from disk, or what gathers in RAM; whether there was anything."""
        if self._find_block():
            position = self._next
            items, after = self._segments.read(position, self._popped - position.item)
            if position.item >= len(items):
                raise StorageError(f"the state of the queue {self.name} is damaged")
            self._next = after
            self._front, self._read, self._front_position = items, position.item, position._replace(item=0)
        elif self._sizes:
            self._front, self._read = column(np.array(self._sizes, np.uint32), self._data), 0
            self._front_position = None
            self._stored += len(self._sizes)
            self._data, self._sizes = bytearray(), array("I")
        else:
            return False
        self._singles = None
        return True
