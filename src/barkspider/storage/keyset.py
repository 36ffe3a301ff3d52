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


@nb.njit(nb.uint8[::1](nb.uint64[::1], _KEYS, nb.uint8, nb.boolean), nogil=True, cache=True)
def _probe(table, keys, shift, insert):  # type: ignore[no-untyped-def]
    """Mark the keys that the table does not hold; with `insert` put them in. 0 marks an empty slot."""
    absent = np.zeros(len(keys), np.uint8)
    mask = np.uint64(len(table) - 1)
    for i in range(len(keys)):
        slot = (keys[i] * _SPREAD) >> shift
        while table[slot] != 0 and table[slot] != keys[i]:
            slot = (slot + np.uint64(1)) & mask
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
        while (self._count + len(keys)) * 8 > len(self._table) * 5:
            old = self._table
            self._table = np.zeros(len(old) * 2, np.uint64)
            _probe(self._table, old[old != 0], self._shift(), True)
        mask = self._run(keys, insert=True)
        self._count += int(mask.sum())
        zeros = np.flatnonzero(keys == 0)
        if len(zeros) and not self._has_zero:
            self._has_zero = True
            mask[zeros[0]] = True
        return mask

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
