"""Fingerprints of texts, and an index that finds those that differ in few bits.

`simhash` (Charikar, 2002): every run of three words votes with the bits of its hash, and each of the 64 bits
of the fingerprint goes with the majority. Texts that share most of their words differ in few bits; Manku, Jain
and Das Sarma (2007) take two pages for the same when they differ in at most 3 of 64.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

nb: Any = numba

_SHINGLE = 3  # words
_BLOCKS = 4  # of 16 bits: with 3 bits changed, one of four is the same
_LONGEST_CHAIN = 4096  # entries looked at in one chain, so that a flood of one fingerprint stays cheap
_BYTES = nb.types.Array(nb.uint8, 1, "C", readonly=True)
_KEYS = nb.types.Array(nb.uint64, 1, "C", readonly=True)


@nb.njit(nb.void(nb.int64[::1], nb.uint64[::1], nb.int64, nb.int64), nogil=True, cache=True)
def _vote(votes, recent, words, count):  # type: ignore[no-untyped-def]
    """Let the last `count` words vote together, in their order."""
    mixed = np.uint64(0)
    for k in range(words - count, words):
        mixed = (mixed ^ recent[k % _SHINGLE]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    # Mixed once more, so that no bit depends on another.
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    for bit in range(64):
        votes[bit] += 2 * np.int64((mixed >> np.uint64(bit)) & np.uint64(1)) - 1


@nb.njit(nb.uint64(_BYTES), nogil=True, cache=True)
def _simhash(text):  # type: ignore[no-untyped-def]
    votes = np.zeros(64, np.int64)
    recent = np.zeros(_SHINGLE, np.uint64)
    words = 0
    i, n = 0, len(text)
    while i < n:
        value = np.uint64(0xCBF29CE484222325)
        start = i
        while i < n:
            c = text[i]
            if c < 0x80 and not (0x30 <= c <= 0x39 or 0x41 <= c <= 0x5A or 0x61 <= c <= 0x7A):
                break
            eastern = 0xE3 <= c <= 0xED  # begins a letter of East Asia: each is a word
            if eastern and i > start:
                break
            value = (value ^ np.uint64(c)) * np.uint64(0x100000001B3)
            i += 1
            if eastern:
                while i < n and text[i] & 0xC0 == 0x80:
                    value = (value ^ np.uint64(text[i])) * np.uint64(0x100000001B3)
                    i += 1
                break
        if i == start:
            i += 1
            continue
        recent[words % _SHINGLE] = value
        words += 1
        if words >= _SHINGLE:
            _vote(votes, recent, words, _SHINGLE)
    if 0 < words < _SHINGLE:
        _vote(votes, recent, words, words)
    result = np.uint64(0)
    for bit in range(64):
        if votes[bit] > 0:
            result |= np.uint64(1) << np.uint64(bit)
    return result


def simhash(text: str) -> int:
    """The 64-bit fingerprint of a text; 0 for one without words.

    >>> one = simhash("the quick brown fox jumps over the lazy dog " * 20 + "and sleeps")
    >>> two = simhash("The quick brown fox jumps over the lazy dog. " * 20 + "And sleeps!")
    >>> one == two, simhash(" - ")
    (True, 0)
    """
    kernel: Any = _simhash
    return int(kernel(np.frombuffer(text.casefold().encode("utf-8", "replace"), np.uint8)))


@nb.njit(nb.int64(nb.uint64), nogil=True, cache=True)
def _ones(value):  # type: ignore[no-untyped-def]
    value -= (value >> np.uint64(1)) & np.uint64(0x5555555555555555)
    value = (value & np.uint64(0x3333333333333333)) + (
        (value >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    value = (value + (value >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((value * np.uint64(0x0101010101010101)) >> np.uint64(56))


@nb.njit(
    nb.void(
        _KEYS,
        nb.int64,
        nb.int64,
        nb.uint64[::1],
        nb.int64[:, ::1],
        nb.int64[:, ::1],
        nb.int64[::1],
        nb.int64[::1],
    ),
    nogil=True,
    cache=True,
)
def _find(asked, count, distance, marks, heads, nexts, places, bits):  # type: ignore[no-untyped-def]
    capacity = len(marks)
    oldest = max(0, count - capacity)
    for row in range(len(asked)):
        places[row] = -1
        bits[row] = -1
        for block in range(_BLOCKS):
            entry = heads[block, (asked[row] >> np.uint64(16 * block)) & np.uint64(0xFFFF)]
            steps = 0
            # Entries are numbered as they came; a chain goes to ever older ones, until one that was overwritten.
            while entry >= oldest and steps < _LONGEST_CHAIN and bits[row] != 0:
                ones = _ones(marks[entry % capacity] ^ asked[row])
                if ones <= distance and (bits[row] < 0 or ones < bits[row]):
                    bits[row] = ones
                    places[row] = entry % capacity
                entry = nexts[block, entry % capacity]
                steps += 1


@nb.njit(nb.void(_KEYS, nb.int64, nb.uint64[::1], nb.int64[:, ::1], nb.int64[:, ::1]), nogil=True, cache=True)
def _add(added, count, marks, heads, nexts):  # type: ignore[no-untyped-def]
    capacity = len(marks)
    for row in range(len(added)):
        entry = count + row
        marks[entry % capacity] = added[row]
        for block in range(_BLOCKS):
            head = (added[row] >> np.uint64(16 * block)) & np.uint64(0xFFFF)
            nexts[block, entry % capacity] = heads[block, head]
            heads[block, head] = entry


class NearDuplicates:
    """The most recent fingerprints, up to `capacity`, with a name (a key) for each. One thread at a time.

    It takes 48 bytes an entry and 2 MiB. For each of four blocks of 16 bits a chain joins the entries that share
    the block, newest first. When the index is full the oldest entry gives its place to the next.

    >>> index = NearDuplicates(capacity=1000)
    >>> index.add(np.array([0b1111], np.uint64), np.array([7], np.uint64))
    >>> index.find(np.array([0b1000, 0, 0b111], np.uint64))
    (array([7, 0, 7], dtype=uint64), array([ 3, -1,  1]))
    """

    def __init__(self, capacity: int = 1_000_000, distance: int = 3) -> None:
        if not 0 <= distance < _BLOCKS:
            raise ValueError(f"distance is 0 to {_BLOCKS - 1}: beyond that no block need be the same")
        self._distance = distance
        self._count = 0
        self._marks = np.zeros(capacity, np.uint64)
        self._names = np.zeros(capacity, np.uint64)
        self._heads = np.full((_BLOCKS, 1 << 16), -1, np.int64)
        self._nexts = np.full((_BLOCKS, capacity), -1, np.int64)

    def __len__(self) -> int:
        return min(self._count, len(self._marks))

    def add(self, fingerprints: npt.NDArray[np.uint64], names: npt.NDArray[np.uint64]) -> None:
        """Take fingerprints in, with the names to give when they are found."""
        places = (self._count + np.arange(len(names))) % len(self._names)
        self._names[places] = names
        kernel: Any = _add
        kernel(fingerprints, self._count, self._marks, self._heads, self._nexts)
        self._count += len(fingerprints)

    def find(
        self, fingerprints: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """For each the name of a nearest entry and in how many bits they differ; 0 and -1 where none is near."""
        places, bits = np.empty(len(fingerprints), np.int64), np.empty(len(fingerprints), np.int64)
        kernel: Any = _find
        kernel(fingerprints, self._count, self._distance, self._marks, self._heads, self._nexts, places, bits)
        return np.where(places < 0, np.uint64(0), self._names[places]), bits

    def validate(self) -> None:
        """Check that every entry is in its four chains; raises AssertionError."""
        entries = np.arange(max(0, self._count - len(self._marks)), self._count)
        found, bits = self.find(self._marks[entries % len(self._marks)])
        assert len(found) == len(self)
        assert not bits.any(), "an entry is not found by its own fingerprint"
