"""URLs with all their columns as byte strings, one each: what lies in the disk stages of a frontier.

A row is a head of 41 bytes, always the same, and the URL; see docs/formats/rows.md. Whole batches are packed
and unpacked at once, a row in some 20 ns.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.errors import StorageError
from barkspider.core.records import UrlBatch, UrlRow
from barkspider.storage.columns import Texts
from barkspider.storage.kernels import copy

HEAD = np.dtype(
    [
        ("key", "<u8"),
        ("host_key", "<u8"),
        ("pld_key", "<u8"),
        ("parent", "<u8"),
        ("found", "<u4"),
        ("depth", "<u2"),
        ("hops", "u1"),
        ("tries", "u1"),
        ("flags", "u1"),
    ]
)
_WIDTH: int = HEAD.itemsize  # a constant, so that copying a head is a few instructions and no call
assert set(HEAD.names or ()) | {"url"} == set(UrlRow._fields)

# `copy` is compiled into these kernels: numba's cache does not see when it changes, but it is only memcpy.
nb: Any = numba
_BYTES = nb.types.Array(nb.uint8, 1, "C", readonly=True)
_PLACES = nb.types.Array(nb.int64, 1, "C", readonly=True)


def pack(batch: UrlBatch) -> Texts:
    """The rows of a batch.

    >>> packed = pack(UrlBatch.from_rows([UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/", parent=9)]))
    >>> packed.lengths().tolist(), unpack(packed).rows()[0].parent
    ([58], 9)
    """
    heads = heads_of(batch)
    urls = Texts.from_arrow(batch.url)
    offsets = urls.offsets - urls.offsets[0] + np.arange(len(batch) + 1) * _WIDTH
    packed = np.empty(offsets[-1], np.uint8)
    _attach(heads.view(np.uint8), urls.data, urls.offsets, packed)
    return Texts(offsets, packed)


def unpack(rows: Texts) -> UrlBatch:
    """The batch that `pack` was given; StorageError where a row cannot be one."""
    count = len(rows)
    heads = np.empty(count, HEAD)
    size = int(rows.offsets[-1] - rows.offsets[0]) - count * _WIDTH
    if not 0 <= size < 1 << 31:
        raise StorageError("rows of URLs are damaged: their lengths do not add up")
    text, ends = np.empty(size, np.uint8), np.empty(count + 1, np.int32)
    damaged = _detach(rows.data, rows.offsets, heads.view(np.uint8), text, ends)
    if damaged >= 0:
        raise StorageError(f"rows of URLs are damaged: row {damaged} of {count} is not one")
    return batch_of(heads, ends, text)


def heads_of(batch: UrlBatch) -> npt.NDArray[Any]:
    """All columns but the URL, as they lie in rows."""
    heads = np.empty(len(batch), HEAD)
    for name in HEAD.names or ():
        heads[name] = getattr(batch, name)
    return heads


def batch_of(heads: npt.NDArray[Any], ends: npt.NDArray[np.int32], text: npt.NDArray[np.uint8]) -> UrlBatch:
    """The batch with these heads, and the URLs between these ends in `text`."""
    url = pa.Array.from_buffers(pa.binary(), len(heads), [None, pa.py_buffer(ends), pa.py_buffer(text)])
    columns: dict[str, Any] = {name: np.ascontiguousarray(heads[name]) for name in HEAD.names or ()}
    return UrlBatch(**columns, url=url)


@nb.njit(nb.void(_BYTES, _BYTES, _PLACES, nb.uint8[::1]), nogil=True, cache=True)
def _attach(heads, urls, offsets, packed):  # type: ignore[no-untyped-def]
    place = 0
    for row in range(len(offsets) - 1):
        size = offsets[row + 1] - offsets[row]
        copy(packed, place, heads, row * _WIDTH, _WIDTH)
        copy(packed, place + _WIDTH, urls, offsets[row], size)
        place += _WIDTH + size


@nb.njit(nb.int64(_BYTES, _PLACES, nb.uint8[::1], nb.uint8[::1], nb.int32[::1]), nogil=True, cache=True)
def _detach(packed, offsets, heads, urls, ends):  # type: ignore[no-untyped-def]
    """The first row that cannot be one, or -1. No byte outside of `packed` is read, whatever the offsets."""
    place = 0
    ends[0] = 0
    for row in range(len(offsets) - 1):
        start, end = offsets[row], offsets[row + 1]
        if start < 0 or end > len(packed) or end - start < _WIDTH:
            return row
        size = end - start - _WIDTH
        if place + size > len(urls):  # offsets that go up and down
            return row
        copy(heads, row * _WIDTH, packed, start, _WIDTH)
        copy(urls, place, packed, start + _WIDTH, size)
        place += size
        ends[row + 1] = place
    return -1
