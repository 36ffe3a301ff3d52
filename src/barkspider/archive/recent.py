"""Payloads that were stored not long ago, in bounded memory.

A digest is remembered by 64 of its bits, with one number: where its record lies. Whoever finds one looks
there for the rest, so that bits that happen to agree do no harm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


class RecentDigests:
    """At least the last half of `most` digests, at most `most`. One thread.

    Two generations of open addressing, each at most half full, with 16 bytes a slot, key and number side by
    side: 32 bytes for each of `most`, which the system gives only as they are used. When one generation is
    full the older is emptied and filled next.

    >>> recent = RecentDigests(1000)
    >>> recent.find(77), recent.put(77, 12), recent.find(77)
    (-1, None, 12)
    """

    def __init__(self, most: int) -> None:
        self._most = max(most // 2, 1)
        size = 1 << (2 * self._most - 1).bit_length()
        self._young, self._old = np.zeros((size, 2), np.uint64), np.zeros((size, 2), np.uint64)
        self._count = 0
        self._turned = False  # whether there ever was an older generation

    def find(self, key: int) -> int:
        """The number that was put with this key, or -1."""
        found = int(_find(self._young, key | 1))
        return int(_find(self._old, key | 1)) if found < 0 and self._turned else found

    def put(self, key: int, number: int) -> None:
        """Remember a number, not negative; one that the key had before is forgotten."""
        if self._count >= self._most:
            self._young, self._old = self._old, self._young
            self._young[:] = 0
            self._count, self._turned = 0, True
        self._count += int(_put(self._young, key | 1, number))

    def validate(self) -> None:
        """Check the invariants."""
        assert self._count == np.count_nonzero(self._young[:, 0]) <= self._most


@njit("int64(uint64[:, ::1], uint64)", nogil=True, cache=True)
def _find(slots: Any, key: Any) -> Any:
    mask = np.uint64(len(slots) - 1)
    slot = (key >> np.uint64(1)) & mask
    while slots[slot, 0] != 0:
        if slots[slot, 0] == key:
            return np.int64(slots[slot, 1])
        slot = (slot + np.uint64(1)) & mask
    return -1


@njit("boolean(uint64[:, ::1], uint64, uint64)", nogil=True, cache=True)
def _put(slots: Any, key: Any, number: Any) -> Any:
    """Whether the key is new."""
    mask = np.uint64(len(slots) - 1)
    slot = (key >> np.uint64(1)) & mask
    while slots[slot, 0] != 0 and slots[slot, 0] != key:
        slot = (slot + np.uint64(1)) & mask
    fresh = slots[slot, 0] == 0
    slots[slot, 0] = key
    slots[slot, 1] = number
    return fresh
