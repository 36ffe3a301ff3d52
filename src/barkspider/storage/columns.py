"""Columns of values: fixed-size ones are numpy arrays, texts of any length are `core.texts.Texts`.

The functions here do the same for both: choose rows, join, and turn into bytes for a block and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.errors import StorageError
from barkspider.core.texts import NO_BYTES, Bytes, Rows, Texts, ends

Keys: TypeAlias = npt.NDArray[np.uint64]
NO_ROWS: Rows = np.empty(0, np.int64)
NO_KEYS: Keys = np.empty(0, np.uint64)


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
    return Texts.join(texts)


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
    offsets = ends(lengths.view(f"<u{width}")) if rows else np.zeros(1, np.int64)
    if offsets[-1] != len(data):
        raise StorageError(f"{where}: texts of {offsets[-1]} bytes in {len(data)}")
    return Texts(offsets, data)
