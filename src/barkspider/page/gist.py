"""What a page says, as a number: of its words those that stand outside of links, with whatever has a digit in it taken for the same.

Two months of a calendar, two listings of the same files, and a page under two addresses say the same; two articles do not,
however much of their templates they share. One pass over the bytes, without the GIL; nothing is decoded: words of the
same letters have the same bytes.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

nb: Any = numba

_BYTES = nb.types.Array(nb.uint8, 1, "C", readonly=True)
_FIRST, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a, 64 bits
_NUMBER = np.uint64(0x9E3779B97F4A7C15)  # any word with a digit
_LT, _GT, _SLASH = 0x3C, 0x3E, 0x2F


@nb.njit(nb.boolean(_BYTES, nb.int64, nb.int64, nb.uint64, nb.int64), nogil=True, cache=True)
def _is_named(body, at, end, name, size):  # type: ignore[no-untyped-def]
    """Whether a tag name of so many letters, packed into a number, begins at a place."""
    if at + size > end:
        return False
    for i in range(size):
        if body[at + i] | 0x20 != np.int64((name >> np.uint64(8 * (size - 1 - i))) & np.uint64(0xFF)):
            return False
    return at + size == end or body[at + size] <= 0x20 or body[at + size] == _GT or body[at + size] == _SLASH


def _packed(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(name.encode(), "big"))


_A, _STYLE, _SCRIPT = _packed("a"), _packed("style"), _packed("script")
_OTHER, _LETTER, _DIGIT, _OPENS = 0, 1, 2, 3


def _kinds() -> np.ndarray[Any, np.dtype[np.uint8]]:
    kinds = np.full(256, _OTHER, np.uint8)
    kinds[list(range(0x41, 0x5B)) + list(range(0x61, 0x7B)) + list(range(0x80, 0x100))] = _LETTER
    kinds[0x30:0x3A] = _DIGIT
    kinds[_LT] = _OPENS
    return kinds


_KINDS = _kinds()


@nb.njit(nb.uint64(_BYTES), nogil=True, cache=True)
def _gist(body):  # type: ignore[no-untyped-def]
    found = _FIRST
    in_link, hidden = False, 0  # hidden: within 1 a style sheet, 2 a script
    i, end = np.uint64(0), np.uint64(len(body))
    one = np.uint64(1)
    while i < end:
        kind = _KINDS[body[i]]
        if kind == _OPENS:
            place, size = np.int64(i), np.int64(end)
            closes = place + 1 < size and body[place + 1] == _SLASH
            at = place + 2 if closes else place + 1
            if hidden == 0 and _is_named(body, at, size, _A, 1):
                in_link = not closes
            elif _is_named(body, at, size, _STYLE, 5):
                hidden = 1 if not closes and hidden == 0 else (0 if closes and hidden == 1 else hidden)
            elif _is_named(body, at, size, _SCRIPT, 6):
                hidden = 2 if not closes and hidden == 0 else (0 if closes and hidden == 2 else hidden)
            i += one
            if hidden == 0 or closes:
                while i < end and body[i] != _GT:
                    i += one
        elif in_link or hidden != 0:
            while i < end and body[i] != _LT:
                i += one
        elif kind == _OTHER:
            i += one
        else:
            word, has_digit = _FIRST, False
            while i < end:
                kind = _KINDS[body[i]]
                if kind != _LETTER and kind != _DIGIT:
                    break
                has_digit |= kind == _DIGIT
                word = (word ^ np.uint64(body[i] | 0x20)) * _PRIME
                i += one
            found = (found ^ (_NUMBER if has_digit else word)) * _PRIME
            found ^= found >> np.uint64(31)
    return found


def gist(body: bytes) -> int:
    """The number of a page of HTML.

    >>> one = gist(b"<title>May 2007</title><p>Nothing in month 5.<a href=6>next: June</a>")
    >>> two = gist(b"<title>May 2031</title><p>Nothing in month 12. <a href=1>next: January</a>")
    >>> one == two, one == gist(b"<title>May 2007</title><p>A concert in month 5.")
    (True, False)
    """
    kernel: Any = _gist
    return int(kernel(np.frombuffer(body, np.uint8)))
