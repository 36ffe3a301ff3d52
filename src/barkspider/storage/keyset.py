"""A set of 64-bit keys in RAM: open addressing over one numpy array, batches in, masks out.

Costs 8 bytes a slot at a load of at most 5/8, against some 60 bytes for a key in a Python set.
"""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

# Fibonacci hashing: the keys are hashes already, but a caller may pass small numbers too.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


_KEYS = nb.types.Array(nb.uint64, 1, "C", readonly=True)  # a batch read from disk is read-only


@nb.njit(nb.uint64(nb.uint64[::1], nb.uint64, nb.uint8), nogil=True, cache=True)
def find_slot(table, key, shift):  # type: ignore[no-untyped-def]
    """Where a key, not 0, is in a table, or the empty slot that it would get: that one has a 0. For kernels."""
    mask = np.uint64(len(table) - 1)
    slot = (key * _SPREAD) >> shift
    while table[slot] != 0 and table[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@nb.njit(nb.uint8[::1](nb.uint64[::1], _KEYS, nb.uint8, nb.boolean), nogil=True, cache=True)
def _probe(table, keys, shift, insert):  # type: ignore[no-untyped-def]
    """Mark the keys that the table does not hold; with `insert` put them in. 0 marks an empty slot."""
    absent = np.zeros(len(keys), np.uint8)
    for i in range(len(keys)):
        slot = find_slot(table, keys[i], shift)
        if table[slot] == 0:
            absent[i] = 1
            if insert:
                table[slot] = keys[i]
    return absent


class KeySet:
    """Keys seen so far. One thread at a time.

    >>> seen = KeySet()
    >>> seen.add(np.array([7, 7, 0], np.uint64)).tolist()
    [True, False, True]
    >>> seen.missing(np.array([0, 1], np.uint64)).tolist(), len(seen)
    ([False, True], 2)
    """

    def __init__(self) -> None:
        self._table = np.zeros(1024, np.uint64)
        self._count = 0
        self._has_zero = False  # 0 marks an empty slot, so the key 0 is kept beside the table

    def __len__(self) -> int:
        return self._count + self._has_zero

    def missing(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Which of the keys are not in the set."""
        mask = self._run(keys, insert=False)
        if not self._has_zero:
            mask |= keys == 0
        return mask

    def add(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Put the keys in; which of them were new. Of equal keys in one call the first is new."""
        self.lend(len(keys))
        mask = self._run(keys, insert=True)
        self._count += int(mask.sum())
        zeros = np.flatnonzero(keys == 0)
        if len(zeros) and not self._has_zero:
            self._has_zero = True
            mask[zeros[0]] = True
        return mask

    def lend(self, count: int) -> tuple[npt.NDArray[np.uint64], int]:
        """The table and its shift, for a kernel that puts in at most `count` keys, none of them 0, by `find_slot`; it then
        says in `returned` how many."""
        while (self._count + count) * 8 > len(self._table) * 5:
            old = self._table
            self._table = np.zeros(len(old) * 2, np.uint64)
            _probe(self._table, old[old != 0], self._shift(), True)
        return self._table, self._shift()

    def returned(self, count: int) -> None:
        """So many keys were put into the table that was lent."""
        self._count += count

    def keys(self) -> npt.NDArray[np.uint64]:
        """All keys, in no order."""
        zero = np.zeros(int(self._has_zero), np.uint64)
        return np.concatenate([zero, self._table[self._table != 0]])

    def _run(self, keys: npt.NDArray[np.uint64], insert: bool) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = _probe(
            self._table, np.ascontiguousarray(keys), self._shift(), insert
        ).view(np.bool_)
        mask[keys == 0] = False
        return mask

    def _shift(self) -> int:
        return 65 - len(self._table).bit_length()


class RecentKeys:
    """The last keys that were added: at least `most`, at most twice as many, whatever went before. One thread at a time.

    >>> recent = RecentKeys(2)
    >>> [recent.add(key) for key in (1, 2, 1, 3, 4, 5)], recent.add(1)
    ([True, True, False, True, True, True], True)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._young, self._old = KeySet(), KeySet()

    def add(self, key: int) -> bool:
        """Put a key in; whether it is new, as far as is remembered."""
        return bool(self.add_all(np.array([key], np.uint64))[0])

    def add_all(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Put keys in; which of them are new, as far as is remembered. Of equal keys the first is new."""
        if len(self._young) >= self._most:
            self._young, self._old = KeySet(), self._young
        new = self._old.missing(keys)
        new &= self._young.add(keys)
        return new

    def keys(self) -> npt.NDArray[np.uint64]:
        """All that is remembered, in no order."""
        return np.union1d(self._old.keys(), self._young.keys())
