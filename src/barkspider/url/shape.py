"""The shape of a URL: what is left of it when everything that is counted through is taken for the same.

    /calendar.php?year=2007&month=1        /calendar.php?month&year
    /chapter/notes/chapter/chapter/        /chapter/notes/
    /offer/8812.html                       /offer/#.html

A word with a digit in it is `#`, of segments and of the names of parameters each counts once, in no order, and values do not
count. Endless places have endless addresses and few shapes.
"""

from __future__ import annotations

import re
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

nb: Any = numba

_BYTES = nb.types.Array(nb.uint8, 1, "C", readonly=True)
_PLACES = nb.types.Array(nb.int64, 1, "C", readonly=True)
_FIRST, _PRIME, _MIX = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)
_MOST = 64  # segments, and parameters, that are told apart
_WORD = re.compile(r"[0-9A-Za-z]*[0-9][0-9A-Za-z]*")


@nb.njit(nb.uint64(_BYTES, nb.int64, nb.int64), nogil=True, cache=True)
def _folded(data, start, end):  # type: ignore[no-untyped-def]
    """A hash of a piece of a URL in which words with a digit are the same."""
    found, i = _FIRST, start
    while i < end:
        stop, has_digit = i, False
        while stop < end and (
            0x30 <= data[stop] <= 0x39 or 0x41 <= data[stop] <= 0x5A or 0x61 <= data[stop] <= 0x7A
        ):
            has_digit |= data[stop] <= 0x39
            stop += 1
        if has_digit:
            found = (found ^ np.uint64(0x23)) * _PRIME
        else:
            stop = max(stop, i + 1)
            for place in range(i, stop):
                found = (found ^ np.uint64(data[place])) * _PRIME
        i = stop
    return found


@nb.njit(nb.uint64(_BYTES, nb.int64, nb.int64, nb.uint8, nb.uint8), nogil=True, cache=True)
def _set_of(data, start, end, between, ends_name):  # type: ignore[no-untyped-def]
    """A hash of the pieces between signs, each counted once and in no order; of each what is before another sign."""
    known = np.empty(_MOST, np.uint64)
    count, total = 0, np.uint64(0)
    while start < end:
        stop = start
        while stop < end and data[stop] != between:
            stop += 1
        name_end = start
        while name_end < stop and data[name_end] != ends_name:
            name_end += 1
        piece, is_new = _folded(data, start, name_end), True
        for place in range(count):
            is_new &= known[place] != piece
        if is_new and count < _MOST:
            known[count] = piece
            count += 1
            piece *= _MIX
            total += piece ^ (piece >> np.uint64(29))
        start = stop + 1
    return total


@nb.njit(nb.uint64[::1](_BYTES, _PLACES), nogil=True, cache=True)
def _shapes(data, offsets):  # type: ignore[no-untyped-def]
    found = np.empty(len(offsets) - 1, np.uint64)
    for row in range(len(found)):
        start, end = offsets[row] + 8, offsets[row + 1]  # behind the slashes of https:// at least
        while start < end and data[start] != 0x2F:
            start += 1
        query = start
        while query < end and data[query] != 0x3F:
            query += 1
        # A folder is not a file of the same name.
        folder = np.uint64(data[query - 1] == 0x2F)
        path = _set_of(data, start + 1, query, 0x2F, 0x00)
        names = _set_of(data, query + 1, end, 0x26, 0x3D)
        mixed = (path ^ (names * _PRIME + folder + np.uint64(query < end) * np.uint64(2))) * _MIX
        found[row] = mixed ^ (mixed >> np.uint64(32))
    return found


def shapes(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Hashes of the shapes of canonical URLs, one behind the other."""
    kernel: Any = _shapes
    found: npt.NDArray[np.uint64] = kernel(data, offsets)
    return found


def shape(url: str) -> str:
    """The shape of a canonical URL, for people: the pieces in the order in which this one has them.

    >>> shape("http://a.example/x1/y/x2/y/?b=1&a=2&b=3"), shape("http://a.example/offer/8812.html")
    ('/#/y/?b&a', '/offer/#.html')
    """
    path, asks, query = url[url.index("/", 8) + 1 :].partition("?")
    pieces = dict.fromkeys(_WORD.sub("#", piece) for piece in path.removesuffix("/").split("/"))
    names = dict.fromkeys(_WORD.sub("#", part.partition("=")[0]) for part in query.split("&"))
    place = "/" + "/".join(pieces) + ("/" if path.endswith("/") and path != "/" else "")
    return place + (f"?{'&'.join(names)}" if asks else "")
