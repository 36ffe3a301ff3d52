"""Columns of values: fixed-size ones are numpy arrays, texts of any length are `Texts`.

The functions here do the same for both: choose rows, join, and turn into bytes for a block and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.errors import StorageError
from barkspider.storage.kernels import gather

Keys: TypeAlias = npt.NDArray[np.uint64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Rows: TypeAlias = npt.NDArray[np.int64]

NO_BYTES: Bytes = np.empty(0, np.uint8)
NO_ROWS: Rows = np.empty(0, np.int64)
NO_KEYS: Keys = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Texts:
    """Byte strings one after the other: text i is `data[offsets[i] : offsets[i + 1]]`. Never changed.

    >>> texts = Texts.of([b"one", b"", b"three"])
    >>> texts.take(np.array([2, 0])).tolist(), len(texts)
    ([b'three', b'one'], 3)
    """

    offsets: Rows
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, items: Iterable[bytes]) -> Texts:
        """From Python bytes."""
        listed = list(items)
        lengths = np.fromiter(map(len, listed), np.int64, len(listed))
        return cls(_ends(lengths), np.frombuffer(b"".join(listed), np.uint8))

    @classmethod
    def from_arrow(cls, array: Any) -> Texts:
        """The same memory as an Arrow array of binary or string values; nulls are empty texts.

        >>> Texts.from_arrow(pa.array([b"a", b"bc"], pa.binary()).slice(1)).tolist()
        [b'bc']
        """
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
        if not large and not (pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
            raise TypeError(f"an Arrow array of {array.type} has no bytes; give binary or string")
        _, places, data = array.buffers()
        if len(array) == 0 or places is None:
            return cls(np.zeros(len(array) + 1, np.int64), NO_BYTES)
        stored: npt.NDArray[Any] = np.frombuffer(places, np.int64 if large else np.int32)
        stored = stored[array.offset : array.offset + len(array) + 1]
        return cls(
            stored.astype(np.int64, copy=False), NO_BYTES if data is None else np.frombuffer(data, np.uint8)
        )

    def to_arrow(self) -> Any:
        """An Arrow array of binary values over the same data."""
        kind = (pa.binary(), np.int32) if len(self.data) < 1 << 31 else (pa.large_binary(), np.int64)
        buffers = [None, pa.py_buffer(self.offsets.astype(kind[1])), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(kind[0], len(self), buffers)

    def take(self, rows: npt.NDArray[Any]) -> Texts:
        """A copy of some of the texts, in the order given."""
        rows = rows.astype(np.int64, copy=False)
        offsets = _ends(self.offsets[rows + 1] - self.offsets[rows])
        out = np.empty(offsets[-1], np.uint8)
        gather(self.data, self.offsets, rows, out, offsets)
        return Texts(offsets, out)

    def slice(self, start: int, stop: int) -> Texts:
        """Some of the texts in a row, without a copy."""
        return Texts(self.offsets[start : stop + 1], self.data)

    def lengths(self) -> Rows:
        """The length of each."""
        return np.diff(self.offsets)

    def tolist(self) -> list[bytes]:
        """As Python bytes."""
        whole, places = self.data.tobytes(), self.offsets.tolist()
        return [whole[start:stop] for start, stop in pairwise(places)]


Column: TypeAlias = "npt.NDArray[Any] | Texts"
# What values a structure keeps: none, arrays of one dtype, or texts.
Kind: TypeAlias = "np.dtype[Any] | type[bytes] | None"


def kind_name(kind: Kind) -> str:
    """How a kind is written in a manifest.

    >>> kind_name(np.dtype("<u2")), kind_name(bytes), kind_name(None)
    ("'<u2'", 'bytes', 'none')
    """
    if kind is None:
        return "none"
    return repr(np.lib.format.dtype_to_descr(kind)) if isinstance(kind, np.dtype) else "bytes"


def as_column(kind: np.dtype[Any] | type[bytes], given: Any) -> Column:
    """What a caller gave as values or aux: arrays, Arrow arrays, `Texts`, sequences of bytes."""
    if isinstance(kind, np.dtype):
        return np.ascontiguousarray(given, dtype=kind)
    if isinstance(given, Texts):
        return given
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        return Texts.from_arrow(given)
    return Texts.of(given)


def blank(kind: np.dtype[Any] | type[bytes], count: int) -> Column:
    """Zeros, or empty texts."""
    if isinstance(kind, np.dtype):
        return np.zeros(count, kind)
    return Texts(np.zeros(count + 1, np.int64), NO_BYTES)


def take(column: Column, rows: npt.NDArray[Any]) -> Column:
    """Some of the rows, in the order given."""
    return column.take(rows) if isinstance(column, Texts) else column[rows]


def part(column: Column, start: int, stop: int) -> Column:
    """Rows from `start` to `stop`, without a copy."""
    return column.slice(start, stop) if isinstance(column, Texts) else column[start:stop]


def join(columns: Sequence[Column]) -> Column:
    """One column after the other.

    >>> join([Texts.of([b"a"]), Texts.of([b"", b"b"])]).tolist()
    [b'a', b'', b'b']
    """
    if len(columns) == 1:
        return columns[0]
    texts = [column for column in columns if isinstance(column, Texts)]
    if not texts:
        return np.concatenate([np.asarray(column) for column in columns])
    data = np.concatenate([column.data[column.offsets[0] : column.offsets[-1]] for column in texts])
    return Texts(_ends(np.concatenate([column.lengths() for column in texts])), data)


def sizes(column: Column) -> Rows:
    """The bytes of each row."""
    if isinstance(column, Texts):
        return column.lengths()
    return np.full(len(column), column.dtype.itemsize, np.int64)


def pack(column: Column) -> tuple[Bytes, Bytes]:
    """A column as two sections of bytes: the lengths of its texts, and its data.

    Lengths take 1, 2 or 4 bytes each, whatever the longest text needs; fixed values have none.
    """
    if not isinstance(column, Texts):
        return NO_BYTES, np.ascontiguousarray(column).reshape(-1).view(np.uint8)
    lengths = column.lengths()
    return narrow(lengths), column.data[column.offsets[0] : column.offsets[-1]]


def narrow(lengths: npt.NDArray[Any]) -> Bytes:
    """Lengths in as few bytes each as the largest needs."""
    longest = int(lengths.max()) if len(lengths) else 0
    width = "<u1" if longest < 1 << 8 else "<u2" if longest < 1 << 16 else "<u4"
    return lengths.astype(width).view(np.uint8)


def unpack(kind: np.dtype[Any] | type[bytes], rows: int, lengths: Bytes, data: Bytes, where: str) -> Column:
    """The column that `pack` made; what does not fit is a `StorageError` that says `where`."""
    if isinstance(kind, np.dtype):
        if len(lengths) or len(data) != rows * kind.itemsize:
            raise StorageError(f"{where}: not {rows} values of {kind.itemsize} bytes")
        return data.view(kind)
    width = len(lengths) // rows if rows else 0
    if rows and (width not in (1, 2, 4) or len(lengths) != width * rows):
        raise StorageError(f"{where}: not the lengths of {rows} texts")
    offsets = _ends(lengths.view(f"<u{width}")) if rows else np.zeros(1, np.int64)
    if offsets[-1] != len(data):
        raise StorageError(f"{where}: texts of {offsets[-1]} bytes in {len(data)}")
    return Texts(offsets, data)


def _ends(lengths: npt.NDArray[Any]) -> Rows:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
