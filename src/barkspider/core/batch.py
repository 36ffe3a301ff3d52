"""Many URLs at once, in the one form that they have everywhere: in memory, in queues, in DRUMs, in the journal.

A row is the head of `core.records` and the URL behind it; the rows lie one behind the other. They are packed when a
page's links are found, and from then on whole rows are copied, chosen and sorted; a stage that needs a column of them
(`key`, `pld_key`) reads just that one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError
from barkspider.core.records import HEAD, UrlRow
from barkspider.core.texts import BYTES, NO_TEXTS, PLACES, Texts, copy, ends, nb

WIDTH: int = HEAD.itemsize  # a constant, so that copying a head is a few instructions and no call
_FIELDS = {name: HEAD.fields[name][:2] for name in HEAD.names or ()} if HEAD.fields else {}
_SIZES = struct.Struct("<II")  # rows, and bytes of all of them
_LENGTH = np.dtype("<u4")
_HTTP, _SLASHES = tuple(b"http"), tuple(b"://")


@dataclass(frozen=True, slots=True, eq=False)
class UrlBatch:
    """Packed rows. Never changed after it is made, so threads may share it.

    >>> batch = UrlBatch.from_rows([UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/", parent=9)])
    >>> len(batch), batch.rows()[0].url, batch.parent.tolist(), batch.packed.lengths().tolist()
    (1, b'http://a.example/', [9], [58])
    """

    packed: Texts

    def __len__(self) -> int:
        return len(self.packed)

    @classmethod
    def of(cls, urls: Sequence[bytes] | Texts, **columns: npt.ArrayLike) -> UrlBatch:
        """URLs with their columns, each an array or one value for all; those not given are 0.

        >>> UrlBatch.of([b"http://a.example/", b"http://b.example/"], key=[1, 2], depth=3).depth.tolist()
        [3, 3]
        """
        heads = np.zeros(len(urls), HEAD)
        for name, values in columns.items():
            heads[name] = values
        texts = urls if isinstance(urls, Texts) else Texts.of(urls)
        offsets = texts.offsets - texts.offsets[0] + np.arange(len(urls) + 1) * WIDTH
        packed = np.empty(offsets[-1], np.uint8)
        _attach(heads.view(np.uint8), texts.data, texts.offsets, packed)
        return cls(Texts(offsets, packed))

    @classmethod
    def from_rows(cls, rows: Sequence[UrlRow]) -> UrlBatch:
        """A batch of single rows."""
        if not rows:
            return NO_URLS
        columns: dict[str, Any] = dict(zip(UrlRow._fields, zip(*rows, strict=True), strict=True))
        return cls.of(columns.pop("url"), **columns)

    @classmethod
    def checked(cls, packed: Texts) -> UrlBatch:
        """Rows as they came from a disk; StorageError where one cannot be a row."""
        offsets = packed.offsets
        lengths = np.diff(offsets)
        if len(lengths) and (lengths.min() < WIDTH or offsets[0] < 0 or offsets[-1] > len(packed.data)):
            raise StorageError(f"rows of URLs are damaged: one has {lengths.min()} bytes, or lies nowhere")
        return cls(packed)

    @classmethod
    def join(cls, batches: Sequence[UrlBatch]) -> UrlBatch:
        """One batch of several, in their order."""
        return cls(Texts.join([each.packed for each in batches]))

    @property
    def key(self) -> npt.NDArray[np.uint64]:
        return self._column("key")

    @property
    def host_key(self) -> npt.NDArray[np.uint64]:
        return self._column("host_key")

    @property
    def pld_key(self) -> npt.NDArray[np.uint64]:
        return self._column("pld_key")

    @property
    def parent(self) -> npt.NDArray[np.uint64]:
        return self._column("parent")

    @property
    def depth(self) -> npt.NDArray[np.uint16]:
        return self._column("depth")

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        return self._column("flags")

    @property
    def url(self) -> Texts:
        """The URLs."""
        offsets = ends(self.packed.lengths() - WIDTH)
        out = np.empty(offsets[-1], np.uint8)
        _detach(self.packed.data, self.packed.offsets, out, offsets)
        return Texts(offsets, out)

    def rows(self) -> list[UrlRow]:
        """As single rows, which is when they begin to be used as URLs; StorageError where one has none.

        Whoever forges a file could else put the end of a line, and headers behind it, into a request.
        """
        wrong = _not_a_url(self.packed.data, self.packed.offsets)
        if wrong >= 0:
            raise StorageError(f"rows of URLs are damaged: row {wrong} has no URL")
        heads = np.empty(len(self), HEAD)
        _copy_heads(self.packed.data, self.packed.offsets, heads.view(np.uint8))
        columns = [self.url.tolist() if name == "url" else heads[name].tolist() for name in UrlRow._fields]
        return list(map(UrlRow, *columns))

    def take(self, chosen: npt.NDArray[Any]) -> UrlBatch:
        """The rows at these positions, in this order."""
        return UrlBatch(self.packed.take(chosen))

    def where(self, mask: npt.NDArray[np.bool_]) -> UrlBatch:
        """The rows that the mask marks; the batch itself when that is all of them."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def slice(self, start: int, stop: int) -> UrlBatch:
        """Some of the rows, one behind the other, without a copy."""
        return UrlBatch(self.packed.slice(start, stop))

    def with_flags(self, flags: npt.NDArray[np.uint8]) -> UrlBatch:
        """The same rows with other flags."""
        offsets = self.packed.offsets - self.packed.offsets[0]
        data = self.packed.data[self.packed.offsets[0] : self.packed.offsets[-1]].copy()
        data[offsets[:-1] + _FIELDS["flags"][1]] = flags
        return UrlBatch(Texts(offsets, data))

    def encode(self) -> bytes:
        """One block of bytes: how many rows, how many bytes, the length of each, the rows. `decode` reads it back."""
        packed = self.packed
        rows = packed.data[packed.offsets[0] : packed.offsets[-1]]
        lengths = packed.lengths().astype(_LENGTH)
        return _SIZES.pack(len(self), len(rows)) + lengths.tobytes() + rows.tobytes()

    @classmethod
    def decode(cls, block: bytes) -> UrlBatch:
        """The batch that `encode` wrote; a block of another size is refused as damaged."""
        count, size = _SIZES.unpack_from(block) if len(block) >= _SIZES.size else (0, -1)
        start = _SIZES.size + count * _LENGTH.itemsize
        if size < 0 or len(block) != start + size:
            raise StorageError("a block of URLs is damaged: its length is not what its head says")
        offsets = ends(np.frombuffer(block, _LENGTH, count, _SIZES.size))
        if offsets[-1] != size:
            raise StorageError("a block of URLs is damaged: the lengths of its rows do not add up")
        return cls.checked(Texts(offsets, np.frombuffer(block, np.uint8, size, start)))

    def _column(self, name: str) -> npt.NDArray[Any]:
        kind, place = _FIELDS[name]
        out = np.empty(len(self), kind)
        _read(self.packed.data, self.packed.offsets, place, kind.itemsize, out.view(np.uint8))
        return out


NO_URLS = UrlBatch(NO_TEXTS)


@nb.njit(nb.int64(BYTES, PLACES), nogil=True, cache=True)
def _not_a_url(packed, offsets):  # type: ignore[no-untyped-def]
    """The first row whose URL is not http or https, a host, perhaps a port, a slash, all in printable ASCII; or -1."""
    for row in range(len(offsets) - 1):
        place, end = offsets[row] + WIDTH, offsets[row + 1]
        for i in range(place, end):
            if not 0x21 <= packed[i] <= 0x7E:
                return row
        for i in range(4):
            if place + i >= end or packed[place + i] != _HTTP[i]:
                return row
        place += 4
        if place < end and packed[place] == 0x73:  # s
            place += 1
        for i in range(3):
            if place + i >= end or packed[place + i] != _SLASHES[i]:
                return row
        place += 3
        begin = digits = place
        number = 0
        while place < end and packed[place] != 0x2F:  # /
            if packed[place] == 0x3A or packed[place] == 0x40:  # : and @
                digits, number = place + 1, 0
            elif 0x30 <= packed[place] <= 0x39:
                number = min(10 * number + packed[place] - 0x30, 65536)
            else:
                number = 65536  # no port
            place += 1
        has_port = digits > begin and packed[digits - 1] == 0x3A and packed[place - 1] != 0x5D  # ]
        if place in (begin, end) or (has_port and (number > 65535 or digits == place)):
            return row
    return -1


@nb.njit(nb.void(BYTES, BYTES, PLACES, nb.uint8[::1]), nogil=True, cache=True)
def _attach(heads, urls, offsets, packed):  # type: ignore[no-untyped-def]
    place = 0
    for row in range(len(offsets) - 1):
        size = offsets[row + 1] - offsets[row]
        copy(packed, place, heads, row * WIDTH, WIDTH)
        copy(packed, place + WIDTH, urls, offsets[row], size)
        place += WIDTH + size


@nb.njit(nb.void(BYTES, PLACES, nb.uint8[::1], PLACES), nogil=True, cache=True)
def _detach(packed, offsets, urls, url_offsets):  # type: ignore[no-untyped-def]
    for row in range(len(offsets) - 1):
        size = url_offsets[row + 1] - url_offsets[row]
        copy(urls, url_offsets[row], packed, offsets[row] + WIDTH, size)


@nb.njit(nb.void(BYTES, PLACES, nb.uint8[::1]), nogil=True, cache=True)
def _copy_heads(packed, offsets, heads):  # type: ignore[no-untyped-def]
    for row in range(len(offsets) - 1):
        copy(heads, row * WIDTH, packed, offsets[row], WIDTH)


@nb.njit(nb.void(BYTES, PLACES, nb.int64, nb.int64, nb.uint8[::1]), nogil=True, cache=True)
def _read(packed, offsets, place, width, out):  # type: ignore[no-untyped-def]
    """One column. A length that the compiler knows is a move, any other a call."""
    for row in range(len(offsets) - 1):
        start = offsets[row] + place
        if width == 8:
            copy(out, row * 8, packed, start, 8)
        else:
            for byte in range(width):
                out[row * width + byte] = packed[start + byte]
