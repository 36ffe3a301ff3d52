"""The shape of a URL on its way through the crawler: one row, or a batch of columns.

| column | type | meaning |
| --- | --- | --- |
| key, host_key, pld_key | u64 | xxh3_64 of the URL, its host, its pay-level domain, seeded per job |
| depth | u16 | links from where depth is counted |
| hops | u8 | redirects in a row that led here |
| tries | u8 | failed attempts so far |
| flags | u8 | see `Flag` |
| url | bytes | the normalised URL, ASCII as WHATWG serialises it |
| parent | u64 | key of the page that linked to it, 0 for seeds |
| found | u32 | when it was discovered, in seconds since 1970, 0 when unknown |
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.errors import StorageError


class Flag(IntFlag):
    """How a URL came to be where it is."""

    SEED = 1
    REDIRECT = 2
    RETRY = 4
    REQUISITE = 8
    EXACT = 16  # fetched once more exactly as a redirect wrote it, past seen
    REVISIT = 32  # fetched again for links that were left over
    AGAIN = 128  # fetched once more because the page stored is old: only if it has changed
    DEFERRED = 64  # exceeded its domain's budget: waits in Q_F, or is on its way to be budgeted again


class UrlRow(NamedTuple):
    """One URL while it is handled on its own, which is only while it is being fetched."""

    key: int
    host_key: int
    pld_key: int
    depth: int
    hops: int
    tries: int
    flags: int
    url: bytes
    parent: int = 0
    found: int = 0


_NUMBERS: tuple[tuple[str, np.dtype[Any]], ...] = (
    ("key", np.dtype("<u8")),
    ("host_key", np.dtype("<u8")),
    ("pld_key", np.dtype("<u8")),
    ("depth", np.dtype("<u2")),
    ("hops", np.dtype("u1")),
    ("tries", np.dtype("u1")),
    ("flags", np.dtype("u1")),
    ("parent", np.dtype("<u8")),
    ("found", np.dtype("<u4")),
)
_HEAD = struct.Struct("<II")  # rows, bytes of text


@dataclass(frozen=True, slots=True, eq=False)
class UrlBatch:
    """Columns of equal length. Never changed after it is made, so threads may share it.

    >>> batch = UrlBatch.from_rows([UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/")])
    >>> len(batch), batch.rows()[0].url
    (1, b'http://a.example/')
    """

    key: npt.NDArray[np.uint64]
    host_key: npt.NDArray[np.uint64]
    pld_key: npt.NDArray[np.uint64]
    depth: npt.NDArray[np.uint16]
    hops: npt.NDArray[np.uint8]
    tries: npt.NDArray[np.uint8]
    flags: npt.NDArray[np.uint8]
    url: pa.BinaryArray
    parent: npt.NDArray[np.uint64]
    found: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def from_rows(cls, rows: Sequence[UrlRow]) -> UrlBatch:
        """Columns from rows."""
        listed = zip(*rows, strict=True) if rows else [()] * len(UrlRow._fields)
        columns = dict(zip(UrlRow._fields, listed, strict=True))
        numbers = {name: np.array(columns[name], dtype) for name, dtype in _NUMBERS}
        return cls(**numbers, url=pa.array(columns["url"], pa.binary()))

    @classmethod
    def fresh(
        cls,
        urls: list[bytes],
        keys: npt.NDArray[np.uint64],
        host_keys: list[int],
        pld_keys: list[int],
        depths: list[int],
        hops: int,
        flags: int,
        parent: int = 0,
        found: int = 0,
    ) -> UrlBatch:
        """URLs that were just found: never tried, all from the same page at the same time."""
        count = len(urls)
        return cls(
            keys,
            np.array(host_keys, np.uint64),
            np.array(pld_keys, np.uint64),
            np.array(depths, np.uint16),
            np.full(count, hops, np.uint8),
            np.zeros(count, np.uint8),
            np.full(count, flags, np.uint8),
            pa.array(urls, pa.binary()),
            np.full(count, parent, np.uint64),
            np.full(count, found, np.uint32),
        )

    @classmethod
    def join(cls, batches: Sequence[UrlBatch]) -> UrlBatch:
        """One batch of several, in their order."""
        numbers = {name: np.concatenate([getattr(each, name) for each in batches]) for name, _ in _NUMBERS}
        return cls(**numbers, url=pa.concat_arrays([each.url for each in batches]))

    def rows(self) -> list[UrlRow]:
        """Rows from columns."""
        columns = [getattr(self, name) for name in UrlRow._fields]
        return list(map(UrlRow, *(column.tolist() for column in columns)))

    def take(self, chosen: npt.NDArray[Any]) -> UrlBatch:
        """The rows at these positions, in this order."""
        numbers = {name: getattr(self, name)[chosen] for name, _ in _NUMBERS}
        return UrlBatch(**numbers, url=self.url.take(pa.array(chosen)))

    def where(self, mask: npt.NDArray[np.bool_]) -> UrlBatch:
        """The rows that the mask marks; the batch itself when that is all of them."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def encode(self) -> bytes:
        """One block of bytes: counts, columns, ends of the texts, texts. `decode` reads it back."""
        offsets = np.frombuffer(self.url.buffers()[1], "<i4")[
            self.url.offset : self.url.offset + len(self) + 1
        ]
        text = self.url.buffers()[2]
        data: bytes = (
            text.slice(offsets[0], offsets[-1] - offsets[0]).to_pybytes() if text is not None else b""
        )
        numbers: bytes = b"".join(getattr(self, name).tobytes() for name, _ in _NUMBERS)
        ends: bytes = (offsets - offsets[0]).tobytes()
        return _HEAD.pack(len(self), len(data)) + numbers + ends + data

    @classmethod
    def decode(cls, block: bytes) -> UrlBatch:
        """The batch that `encode` wrote; a block of another size is refused as damaged."""
        count, size = _HEAD.unpack_from(block) if len(block) >= _HEAD.size else (0, -1)
        widths = sum(dtype.itemsize for _, dtype in _NUMBERS)
        if size < 0 or len(block) != _HEAD.size + count * widths + (count + 1) * 4 + size:
            raise StorageError("a block of URLs is damaged: its length is not what its head says")
        numbers: dict[str, Any] = {}
        place = _HEAD.size
        for name, dtype in _NUMBERS:
            numbers[name] = np.frombuffer(block, dtype, count, place)
            place += count * dtype.itemsize
        url = pa.Array.from_buffers(
            pa.binary(),
            count,
            [
                None,
                pa.py_buffer(block[place : place + (count + 1) * 4]),
                pa.py_buffer(block[place + (count + 1) * 4 :]),
            ],
        )
        url.validate(full=True)
        return cls(**numbers, url=url)
