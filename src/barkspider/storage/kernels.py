"""The compiled loops of the disk engine: sort, compare, merge and scatter. All run without the GIL.

All kernels are in this one file, because numba's cache goes by the file in which a kernel stands and not by
what it calls. Each has its signature, so that importing compiles once and loads from the cache later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from barkspider.core.texts import copy

# Without static types: within a kernel a number is a number, and what a type checker knows about numpy's
# scalars is not what the compiler does with them.
nb: Any = numba
u64: Any = np.uint64
i64: Any = np.int64

_KEYS = nb.types.Array(nb.uint64, 1, "C", readonly=True)
_BYTES = nb.types.Array(nb.uint8, 1, "C", readonly=True)
_PLACES = nb.types.Array(nb.int64, 1, "C", readonly=True)

_INSERTION = 24  # rows; below this insertion beats another pass of counting


@nb.njit(nb.void(nb.uint64[::1], nb.uint32[::1], nb.int64, nb.int64), nogil=True, cache=True)
def _insertion_sort(keys, order, low, high):  # type: ignore[no-untyped-def]
    for i in range(low + 1, high):
        key, row, j = keys[i], order[i], i
        while j > low and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            order[j] = order[j - 1]
            j -= 1
        keys[j] = key
        order[j] = row


@nb.njit(
    nb.void(nb.uint64[::1], nb.uint32[::1], nb.int64, nb.int64, nb.uint64[::1], nb.uint32[::1]),
    nogil=True,
    cache=True,
)
def _merge_sort(keys, order, low, high, keys2, order2):  # type: ignore[no-untyped-def]
    """Stable, for the rare runs whose keys have most bits in common; the scratch begins at 0."""
    for i in range(low, high, _INSERTION):
        _insertion_sort(keys, order, i, min(high, i + _INSERTION))
    width = _INSERTION
    while width < high - low:
        for start in range(low, high, 2 * width):
            middle = min(start + width, high)
            end = min(start + 2 * width, high)
            if middle >= end or keys[middle - 1] <= keys[middle]:
                continue
            left = middle - start
            for i in range(left):
                keys2[i] = keys[start + i]
                order2[i] = order[start + i]
            i, j, out = 0, middle, start
            while i < left:
                if j < end and keys[j] < keys2[i]:
                    keys[out] = keys[j]
                    order[out] = order[j]
                    j += 1
                else:
                    keys[out] = keys2[i]
                    order[out] = order2[i]
                    i += 1
                out += 1
        width *= 2


@nb.njit(nb.int64(_KEYS, nb.int64, nb.int64), nogil=True, cache=True)
def _varying_bits(keys, low, high):  # type: ignore[no-untyped-def]
    """How many of the low bits are not the same in all keys."""
    difference = u64(0)
    for i in range(low, high):
        difference |= keys[i] ^ keys[low]
    bits = 0
    while difference != u64(0):
        difference >>= u64(1)
        bits += 1
    return bits


@nb.njit(
    nb.void(
        nb.uint64[::1], nb.uint32[::1], nb.int64, nb.int64, nb.uint64[::1], nb.uint32[::1], nb.int64[::1]
    ),
    nogil=True,
    cache=True,
)
def _sort_run(keys, order, low, high, keys2, order2, ends):  # type: ignore[no-untyped-def]
    n = high - low
    if n <= _INSERTION:
        _insertion_sort(keys, order, low, high)
        return
    bits = _varying_bits(keys, low, high)
    if bits == 0:
        return
    second = 1
    while second < 11 and (n >> second) > 4:
        second += 1
    second = min(second, bits)
    shift = u64(bits - second)
    mask = u64((1 << second) - 1)
    ends[: (1 << second) + 1] = 0
    for i in range(low, high):
        ends[i64((keys[i] >> shift) & mask) + 1] += 1
    for b in range(1 << second):
        ends[b + 1] += ends[b]
    for i in range(low, high):
        b = i64((keys[i] >> shift) & mask)
        keys2[ends[b]] = keys[i]
        order2[ends[b]] = order[i]
        ends[b] += 1
    copy(keys, low, keys2, 0, n)
    copy(order, low, order2, 0, n)
    start = 0
    for b in range(1 << second):
        end = ends[b]
        if end - start > _INSERTION:
            _merge_sort(keys, order, low + start, low + end, keys2, order2)
        elif end - start > 1:
            _insertion_sort(keys, order, low + start, low + end)
        start = end


@nb.njit(nb.void(_KEYS, nb.uint64[::1], nb.uint32[::1]), nogil=True, cache=True)
def sort_rows(keys, sorted_keys, order):  # type: ignore[no-untyped-def]
    """Sort keys; `order` tells the row each came from, and rows of equal keys keep their order.

    Two levels of counting by the highest bits that differ, the second within the processor's cache, leave
    runs of a few rows for insertion: 24 to 27 ns a row. A radix sort from the lowest digit takes as long and
    needs a second copy of everything.
    """
    n = len(keys)
    if n == 0:
        return
    bits = _varying_bits(keys, 0, n)
    first = 0
    while first < 11 and (n >> first) > 4096:
        first += 1
    shift = u64(max(bits - first, 0))
    mask = u64((1 << first) - 1)
    ends = np.zeros((1 << first) + 1, np.int64)
    for i in range(n):
        ends[i64((keys[i] >> shift) & mask) + 1] += 1
    largest = 0
    for b in range(1 << first):
        largest = max(largest, ends[b + 1])
        ends[b + 1] += ends[b]
    for i in range(n):
        b = i64((keys[i] >> shift) & mask)
        sorted_keys[ends[b]] = keys[i]
        order[ends[b]] = np.uint32(i)
        ends[b] += 1
    keys2 = np.empty(largest, np.uint64)
    order2 = np.empty(largest, np.uint32)
    inner = np.empty(2049, np.int64)
    low = 0
    for b in range(1 << first):
        high = ends[b]
        _sort_run(sorted_keys, order, low, high, keys2, order2, inner)
        low = high


@nb.njit(
    nb.int64(
        _KEYS,
        _KEYS,
        nb.types.Array(nb.uint32, 1, "C", readonly=True),
        _BYTES,
        nb.uint8,
        nb.uint8[::1],
        nb.uint64[::1],
        nb.int64[::1],
    ),
    nogil=True,
    cache=True,
)
def probe(known, keys, order, ops, op, unique, new_keys, new_places):  # type: ignore[no-untyped-def]
    """Compare sorted rows with a sorted run of known keys, as if row by row in order of arrival.

    Marks in `unique` the rows whose key was not there, and collects keys to insert with their place in
    `known`; returns how many. `ops` is empty when all rows have the same `op`.
    """
    i, j, found, size, rows = 0, 0, 0, len(known), len(keys)
    mixed = len(ops) > 0
    while j < rows:
        key = keys[j]
        while i + 8 <= size and known[i + 7] < key:
            i += 8
        while i < size and known[i] < key:
            i += 1
        stored = i < size and known[i] == key
        present = stored
        while j < rows and keys[j] == key:
            row = order[j]
            if not present:
                unique[row] = 1
                present = ((ops[row] if mixed else op) & 2) != 0
            j += 1
        if present and not stored:
            new_keys[found] = key
            new_places[found] = i
            found += 1
    return found


@nb.njit(nb.void(_KEYS, _KEYS, _PLACES, nb.uint64[::1]), nogil=True, cache=True)
def insert_keys(known, new_keys, new_places, merged):  # type: ignore[no-untyped-def]
    """`known` with each new key before its place."""
    start = 0
    for j in range(len(new_keys)):
        place = new_places[j]
        copy(merged, start + j, known, start, place - start)
        merged[place + j] = new_keys[j]
        start = place
    copy(merged, start + len(new_keys), known, start, len(known) - start)


class Room(NamedTuple):
    """The buffers of all buckets, a row of each array for a bucket; the bytes of values and aux lie one behind the other.

    `value_size` is the bytes of a fixed value, 0 for none, -1 for texts; `value_bytes` and `aux_bytes` are what a bucket
    has room for, 0 of aux for none. `fill` has rows, bytes of values and bytes of aux of each bucket.
    """

    shift: int  # a bucket is a key without so many of its lowest bits
    keys: npt.NDArray[np.uint64]
    ops: npt.NDArray[np.uint8]
    value_size: int
    value_bytes: int
    value_lengths: npt.NDArray[np.uint32]
    values: npt.NDArray[np.uint8]
    aux_bytes: int
    aux_lengths: npt.NDArray[np.uint32]
    aux: npt.NDArray[np.uint8]
    fill: npt.NDArray[np.int64]


_LENGTHS = nb.uint32[:, ::1]
_ROOM = nb.types.NamedTuple(
    (
        nb.int64,
        nb.uint64[:, ::1],
        nb.uint8[:, ::1],
        *(nb.int64, nb.int64, _LENGTHS, nb.uint8[::1]),
        *(nb.int64, _LENGTHS, nb.uint8[::1]),
        nb.int64[:, ::1],
    ),
    Room,
)


@nb.njit(
    nb.int64(_KEYS, _PLACES, nb.int64, _BYTES, nb.uint8, _BYTES, _PLACES, _BYTES, _PLACES, _ROOM),
    nogil=True,
    cache=True,
)
def scatter(keys, rows, begin, ops, op, values, value_offsets, aux, aux_offsets, room):  # type: ignore[no-untyped-def]
    """Put rows into the buffers of their buckets; stop at the first that does not fit, and return its place.

    `rows` are the rows to take, in order, or empty for all; `op` is for all of them if `ops` is empty.
    """
    count = len(rows) if len(rows) > 0 else len(keys)
    size, fill = room.value_size, room.fill
    has_aux = room.aux_bytes > 0
    mixed = len(ops) > 0
    for i in range(begin, count):
        row = rows[i] if len(rows) > 0 else i
        bucket = i64(keys[row] >> u64(room.shift)) if room.shift < 64 else 0
        at = fill[bucket, 0]
        value_from, value_count, aux_from, aux_count = 0, size, 0, 0
        if size > 0:
            value_from = row * size
        elif size < 0:
            value_from = value_offsets[row]
            value_count = value_offsets[row + 1] - value_from
        if has_aux:
            aux_from = aux_offsets[row]
            aux_count = aux_offsets[row + 1] - aux_from
        fits = (
            fill[bucket, 1] + value_count <= room.value_bytes
            and fill[bucket, 2] + aux_count <= room.aux_bytes
        )
        if at == room.keys.shape[1] or not fits:
            return i
        room.keys[bucket, at] = keys[row]
        room.ops[bucket, at] = ops[row] if mixed else op
        if value_count > 0:
            copy(room.values, bucket * room.value_bytes + fill[bucket, 1], values, value_from, value_count)
        if size < 0:
            room.value_lengths[bucket, at] = np.uint32(value_count)
        if has_aux:
            copy(room.aux, bucket * room.aux_bytes + fill[bucket, 2], aux, aux_from, aux_count)
            room.aux_lengths[bucket, at] = np.uint32(aux_count)
        fill[bucket, 0] = at + 1
        fill[bucket, 1] += value_count
        fill[bucket, 2] += aux_count
    return count


@nb.njit(nb.int64(nb.uint64[:, ::1], _KEYS, nb.uint8, nb.int64[::1]), nogil=True, cache=True)
def sift(table, keys, shift, passed):  # type: ignore[no-untyped-def]
    """Note in `passed` the rows whose key is not in the table of recent keys, and put those keys in.

    A line of the table is one cache line of 8 keys, the most recent first; 0 marks an empty place, so the
    key 0 always passes.
    """
    count = 0
    for i in range(len(keys)):
        key = keys[i]
        line = i64((key * u64(0x9E3779B97F4A7C15)) >> u64(shift))
        place = 0
        while place < 7 and table[line, place] != key:
            place += 1
        if table[line, place] != key or key == u64(0):
            passed[count] = i
            count += 1
        while place > 0:
            table[line, place] = table[line, place - 1]
            place -= 1
        table[line, 0] = key
    return count
