"""Byte strings by the thousand: as an Arrow column, and packed into a block of a file.

The raw form of a block is the length of every item as u32, then the items. It is stored as it is (codec
0), or lengths and items are packed by LZ4, each on its own, so that neither has to be moved first (codec 1:
the packed size of the lengths as u32, the packed lengths, the packed items).
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.storage.raw import Data, as_bytes

PLAIN, LZ4 = 0, 1
_LZ4 = pa.Codec("lz4_raw")
_SIZE = struct.Struct("<I")
_MOST_EXPANSION = 256  # LZ4 cannot pack tighter, so more is not believed

Lengths = npt.NDArray[np.uint32]


def column(lengths: npt.NDArray[Any], data: Data) -> pa.BinaryArray:
    """The items of these lengths that lie in `data` one after the other; `data` is not copied.

    >>> column(np.array([1, 0, 2]), b"abc").to_pylist()
    [b'a', b'', b'bc']
    """
    size = int(lengths.sum(dtype=np.int64))
    if size != len(as_bytes(data)) or size > np.iinfo(np.int32).max or (size and lengths.min() < 0):
        raise ValueError("the lengths of the items do not add up to the length of their bytes")
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.add.accumulate(lengths.astype(np.int32, copy=False), out=offsets[1:])
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def parts(items: pa.Array) -> tuple[npt.NDArray[np.signedinteger[Any]], memoryview]:
    """The offsets and the bytes of a binary or text column, not copied; offset 0 is the first byte of all.

    >>> offsets, data = parts(pa.array(["never", "a", "bcd"])[1:])
    >>> [bytes(data[a:b]) for a, b in zip(offsets, offsets[1:])]
    [b'a', b'bcd']
    """
    kind = items.type
    if kind in (pa.binary(), pa.string()):
        width: type[np.signedinteger[Any]] = np.int32
    elif kind in (pa.large_binary(), pa.large_string()):
        width = np.int64
    else:
        raise ValueError(f"items are byte strings, not {kind}")
    if items.null_count:
        raise ValueError("an item is null")
    _, offsets, data = items.buffers()
    if offsets is None or not len(items):
        return np.zeros(1, np.int32), memoryview(b"")
    starts = np.frombuffer(offsets, width)[items.offset : items.offset + len(items) + 1]
    return starts, as_bytes(data if data is not None else b"")


def pack(lengths: Lengths, data: memoryview, compress: bool) -> tuple[int, list[Data]]:
    """Codec and stored bytes of a block, in pieces; what LZ4 does not make smaller is stored as it is."""
    pieces: list[Data] = [lengths.astype("<u4", copy=False), data]
    if compress:
        # Sliced, because the buffer itself shows its memory as long as it was before it was filled.
        packed = [_LZ4.compress(as_bytes(piece)).slice(0) for piece in pieces]
        if 4 + packed[0].size + packed[1].size < 4 * len(lengths) + len(data):
            return LZ4, [_SIZE.pack(packed[0].size), *packed]
    return PLAIN, pieces


def unpack(codec: int, stored: pa.Buffer, raw: int, count: int) -> pa.BinaryArray:
    """The items of a block; ValueError when the numbers do not fit each other.

    >>> codec, pieces = pack(np.array([3, 2], np.uint32), memoryview(b"abcde"), compress=False)
    >>> unpack(codec, pa.py_buffer(b"".join(pieces)), 13, 2).to_pylist()
    [b'abc', b'de']
    """
    if raw < 4 * count:
        raise ValueError("more items than bytes")
    if codec == LZ4 and stored.size >= 4 and raw <= stored.size * _MOST_EXPANSION:
        middle = 4 + _SIZE.unpack_from(stored)[0]
        lengths = _unpacked(stored.slice(4, max(0, middle - 4)), 4 * count)
        data = _unpacked(stored.slice(min(middle, stored.size)), raw - 4 * count)
    elif codec == PLAIN and stored.size == raw:
        lengths, data = stored, stored.slice(4 * count)
    else:
        raise ValueError("a codec that is not known, or another length")
    return column(np.frombuffer(lengths, "<i4", count), data)


def _unpacked(packed: pa.Buffer, size: int) -> pa.Buffer:
    try:
        return _LZ4.decompress(packed, size) if size else packed.slice(0, 0)
    except OSError as error:
        raise ValueError("no LZ4 block") from error
