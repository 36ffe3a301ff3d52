"""A bounded set of recent keys in RAM, in front of a DRUM: what it holds need not go to the disk again."""

from __future__ import annotations

import numpy as np

from barkspider.core.texts import Rows
from barkspider.storage.columns import Keys
from barkspider.storage.kernels import sift


class FrontSet:
    """Remembers the keys that passed lately. One thread.

    Lines of 8 keys, one cache line each, hold the most recently used of the keys that hash to them: a key
    that comes again and again stays. It forgets, but never invents: a key that does not pass was given
    before.

    >>> front = FrontSet(1 << 12)
    >>> front.sift(np.array([7, 8, 7], np.uint64)).tolist(), front.sift(np.array([8, 9], np.uint64)).tolist()
    ([0, 1], [1])
    """

    def __init__(self, size: int) -> None:
        """`size` is in bytes of RAM; the largest power of two within it is used."""
        lines = 1 << max(1, (size // 64).bit_length() - 1)
        self._table = np.zeros((lines, 8), np.uint64)
        self._shift = 64 - (lines.bit_length() - 1)

    def sift(self, keys: Keys) -> Rows:
        """The rows whose keys are not remembered; from now on they are. Of equal keys the first passes."""
        passed = np.empty(len(keys), np.int64)
        return passed[: sift(self._table, keys, self._shift, passed)]

    def clear(self) -> None:
        """Forget all."""
        self._table[:] = 0
