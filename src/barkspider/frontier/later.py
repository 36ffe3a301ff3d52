"""What links to a URL say that are found while it waits to be fetched: a shorter way, or who links there."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from barkspider.core.batch import UrlBatch
from barkspider.core.records import Flag, UrlRow

nb: Any = numba
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # as in `storage.keyset`
_LINKED = np.uint8(Flag.LINKED)
_BYTES = 11  # of a slot


class LaterLinks:
    """The least depth of the links to each URL that were found lately, and whether a page under `page.keep_tlds` is among
    those that link there. One thread.

    Each key has one slot, the last that came is there: so it forgets, but what it says was found. It is not kept over a
    restart, for which the links since the last checkpoint are found again.

    >>> row = UrlRow(1, 2, 3, depth=3, hops=0, tries=0, flags=0, url=b"http://a.example/")
    >>> later = LaterLinks(1 << 10)
    >>> later.learn(UrlBatch.from_rows([row, row._replace(depth=2), row._replace(depth=4)]))
    >>> later.told(row).depth, later.told(row._replace(key=5)).depth
    (2, 3)
    """

    def __init__(self, size: int) -> None:
        """`size` is in bytes of RAM, of which the largest power of two of slots is used."""
        slots = 1 << max(1, (size // _BYTES).bit_length() - 1)
        self._shift = 65 - slots.bit_length()
        self._keys = np.zeros(slots, np.uint64)
        self._depths = np.zeros(slots, np.uint16)
        self._flags = np.zeros(slots, np.uint8)

    def learn(self, links: UrlBatch) -> None:
        """Take links that were found."""
        if len(links):
            _learn(self._keys, self._depths, self._flags, self._shift, links.key, links.depth, links.flags)

    def told(self, row: UrlRow) -> UrlRow:
        """A row as far as links say better."""
        slot = ((row.key * int(_SPREAD)) & 0xFFFF_FFFF_FFFF_FFFF) >> self._shift
        if not row.key or int(self._keys[slot]) != row.key:
            return row
        depth, flags = int(self._depths[slot]), int(self._flags[slot])
        if depth >= row.depth and flags | row.flags == row.flags:
            return row
        return row._replace(depth=min(depth, row.depth), flags=row.flags | flags)


@nb.njit(
    nb.void(
        nb.uint64[::1],
        nb.uint16[::1],
        nb.uint8[::1],
        nb.uint64,
        nb.uint64[::1],
        nb.uint16[::1],
        nb.uint8[::1],
    ),
    nogil=True,
    cache=True,
)
def _learn(keys, depths, flags, shift, new_keys, new_depths, new_flags):  # type: ignore[no-untyped-def]
    for i in range(len(new_keys)):
        slot = (new_keys[i] * _SPREAD) >> shift
        if keys[slot] == new_keys[i]:
            depths[slot] = min(depths[slot], new_depths[i])
            flags[slot] |= new_flags[i] & _LINKED
        else:
            keys[slot], depths[slot], flags[slot] = new_keys[i], new_depths[i], new_flags[i] & _LINKED
