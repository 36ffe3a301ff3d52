"""The URLs of one origin as one byte string: what a check of robots.txt carries.

The answer to a check is a whole set of rules, written once for each row that asked. So the URLs of a batch are
put together by origin first, and a row is an origin. See docs/formats/robots.md; a URL takes some 100 ns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import WIDTH, UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.texts import BYTES, PLACES, Rows, Texts, copy, ends, nb
from barkspider.url import KeyMaker, origin

Trips = npt.NDArray[np.uint8]

_LENGTH = 24  # bits of a row's length; the others count its trips
_MOST_BYTES = 1 << _LENGTH

u64: Any = np.uint64
u8: Any = np.uint8
_KEYS = nb.types.Array(nb.uint64, 1, "C", readonly=True)


def group(batch: UrlBatch, trips: Trips, keys: KeyMaker) -> tuple[npt.NDArray[np.uint64], Texts]:
    """The key of each origin in a batch, in order of appearance, and its URLs, in their order.

    >>> from barkspider.core.records import UrlRow
    >>> urls = [b"http://a.example/1", b"http://b.example/", b"http://me@a.example/2"]
    >>> batch = UrlBatch.from_rows([UrlRow(1, 2, 3, 0, 0, 0, 0, url) for url in urls])
    >>> found, groups = group(batch, np.zeros(3, np.uint8), KeyMaker(7))
    >>> found.tolist() == [KeyMaker(7).of("http://a.example"), KeyMaker(7).of("http://b.example")]
    True
    >>> ungroup(groups)[1].tolist()
    [2, 1]
    """
    rows = batch.packed
    lengths = rows.lengths()
    if len(lengths) and lengths.max() >= _MOST_BYTES:
        raise ValueError(f"a URL of {lengths.max() - WIDTH} bytes is too long")
    numbers, places = np.empty(len(batch), np.int64), np.empty((len(batch), 4), np.int64)
    count = _sort_out(rows.data, rows.offsets, batch.host_key, numbers, places)
    names = ends(places[:count, 1] - places[:count, 0] + places[:count, 3] - places[:count, 2])
    name = np.empty(names[-1], np.uint8)
    counts, sizes = np.zeros(count, np.int64), np.zeros(count, np.int64)
    _name(rows.data, places[:count], name)
    _measure(numbers, lengths, counts, sizes)
    offsets = ends(4 + 4 * counts + sizes)
    packed = np.empty(offsets[-1], np.uint8)
    _put_together(rows.data, rows.offsets, numbers, trips, counts, offsets, packed)
    return keys.column(Texts(names, name).tolist()), Texts(offsets, packed)


def ungroup(groups: Texts) -> tuple[UrlBatch, Rows, Trips]:
    """All URLs of some groups, how many each group has, and the trips of each URL."""
    counts = np.zeros(len(groups), np.int64)
    count = _count(groups.data, groups.offsets, counts)
    # Beside its row each URL has a length of 4 bytes, and each group a count.
    size = groups.size() - 4 * count - 4 * len(groups)
    if count < 0 or size < 0:
        raise StorageError("groups of URLs are damaged: their lengths do not add up")
    rows, offsets, trips = np.empty(size, np.uint8), np.empty(count + 1, np.int64), np.empty(count, np.uint8)
    if not _take_apart(groups.data, groups.offsets, counts, rows, offsets, trips):
        raise StorageError("groups of URLs are damaged: their lengths do not add up")
    return UrlBatch(Texts(offsets, rows)), counts, trips


def first(item: bytes) -> tuple[str, int]:
    """The origin of a group, and the trips of its first URL.

    >>> from barkspider.core.records import UrlRow
    >>> batch = UrlBatch.from_rows([UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/1")])
    >>> first(group(batch, np.full(1, 9, np.uint8), KeyMaker(7))[1].tolist()[0])
    ('http://a.example', 9)
    """
    rows = 4 + 4 * int.from_bytes(item[:4], "little")
    length = int.from_bytes(item[4:8], "little")
    row = item[rows : rows + (length & (_MOST_BYTES - 1))]
    return origin(row[WIDTH:].decode()), length >> _LENGTH


@nb.njit(nb.int64(BYTES, PLACES, _KEYS, nb.int64[::1], nb.int64[:, ::1]), nogil=True, cache=True)
def _sort_out(data, offsets, hosts, numbers, places):  # type: ignore[no-untyped-def]
    """Give each URL the number of its origin; how many there are.

    `places` are where the two pieces of each origin's text begin and end: the scheme, and what follows a userinfo
    up to the slash. They are found by the host's key, which is secret, so that no batch can be made to collide,
    and by the end of the text, where the port is.
    """
    size = 16
    while size < 2 * len(numbers):
        size *= 2
    table = np.full(size, -1, np.int32)
    count = 0
    one, mask = u64(1), u64(size - 1)
    for row in range(len(numbers)):
        # Places without a sign: for others numba asks at each byte whether to count from the end.
        start, stop = u64(offsets[row] + WIDTH), u64(offsets[row + 1])
        authority = min(start + u64(7), stop)  # http://
        if authority < stop and data[authority] == 47:
            authority += one  # https://
        host, end = authority, authority
        while end < stop and data[end] != 47:
            if data[end] == 64:
                host = end + one
            end += one
        mixed = hosts[row] + authority - start
        byte = end - min(end - host, u64(6))
        while byte < end:
            mixed = (mixed ^ u64(data[byte])) * u64(0x100000001B3)
            byte += one
        place = (mixed ^ (mixed >> u64(32))) & mask
        while True:
            number = table[place]
            if number < 0:
                table[place] = number = count
                places[count, 0], places[count, 1] = start, authority
                places[count, 2], places[count, 3] = host, end
                count += 1
                break
            other, there = u64(places[number, 2]), host
            if (
                u64(places[number, 3]) - other == end - host
                and u64(places[number, 1] - places[number, 0]) == authority - start
            ):
                while there < end and data[other] == data[there]:
                    other, there = other + one, there + one
                if there == end:
                    break
            place = (place + one) & mask
        numbers[row] = number
    return count


@nb.njit(nb.void(BYTES, nb.int64[:, ::1], nb.uint8[::1]), nogil=True, cache=True)
def _name(data, places, texts):  # type: ignore[no-untyped-def]
    """The text of each origin, one behind the other."""
    end = 0
    for number in range(len(places)):
        for piece in range(0, 4, 2):
            size = places[number, piece + 1] - places[number, piece]
            copy(texts, end, data, places[number, piece], size)
            end += size


@nb.njit(nb.void(PLACES, PLACES, nb.int64[::1], nb.int64[::1]), nogil=True, cache=True)
def _measure(numbers, lengths, counts, sizes):  # type: ignore[no-untyped-def]
    for row in range(len(numbers)):
        counts[numbers[row]] += 1
        sizes[numbers[row]] += lengths[row]


@nb.njit(nb.uint32(BYTES, nb.int64), nogil=True, cache=True)
def _read(data, at):  # type: ignore[no-untyped-def]
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24


@nb.njit(nb.void(nb.uint8[::1], nb.int64, nb.int64), nogil=True, cache=True)
def _write(data, at, number):  # type: ignore[no-untyped-def]
    for byte in range(4):
        data[at + byte] = u8((number >> (8 * byte)) & 255)


@nb.njit(nb.void(BYTES, PLACES, PLACES, BYTES, PLACES, PLACES, nb.uint8[::1]), nogil=True, cache=True)
def _put_together(rows, offsets, numbers, trips, counts, starts, packed):  # type: ignore[no-untyped-def]
    lengths, bodies = np.empty(len(counts), np.int64), np.empty(len(counts), np.int64)
    for number in range(len(counts)):
        _write(packed, starts[number], counts[number])
        lengths[number] = starts[number] + 4
        bodies[number] = lengths[number] + 4 * counts[number]
    for row in range(len(numbers)):
        number, size = numbers[row], offsets[row + 1] - offsets[row]
        body = bodies[number]
        _write(packed, lengths[number], size | nb.int64(trips[row]) << _LENGTH)
        copy(packed, body, rows, offsets[row], size)
        lengths[number] += 4
        bodies[number] = body + size


@nb.njit(nb.int64(BYTES, PLACES, nb.int64[::1]), nogil=True, cache=True)
def _count(data, offsets, counts):  # type: ignore[no-untyped-def]
    """The URLs of all groups, or -1 when one cannot have as many as it says."""
    total = 0
    for number in range(len(counts)):
        start, end = offsets[number], offsets[number + 1]
        if start < 0 or end > len(data) or end - start < 4:
            return -1
        counts[number] = _read(data, start)
        if counts[number] > (end - start) // 4:
            return -1
        total += counts[number]
    return total


@nb.njit(
    nb.boolean(BYTES, PLACES, PLACES, nb.uint8[::1], nb.int64[::1], nb.uint8[::1]), nogil=True, cache=True
)
def _take_apart(data, offsets, counts, rows, row_offsets, trips):  # type: ignore[no-untyped-def]
    """Whether all lengths add up. No byte outside of `data` is read, whatever they say."""
    place, row = 0, 0
    row_offsets[0] = 0
    for number in range(len(counts)):
        length, stop = offsets[number] + 4, offsets[number + 1]
        body = length + 4 * counts[number]
        for _ in range(counts[number]):
            word = nb.int64(_read(data, length))
            size = word & (_MOST_BYTES - 1)
            if size < WIDTH or body + size > stop or place + size > len(rows):
                return False
            copy(rows, place, data, body, size)
            trips[row] = u8(word >> _LENGTH)
            place, body, length, row = place + size, body + size, length + 4, row + 1
            row_offsets[row] = place
        if body != stop:
            return False
    return place == len(rows)
