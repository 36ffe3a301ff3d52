"""The letters of markup: reading names, attributes, comments and raw text, byte by byte, as compiled functions.

Each follows a few states of the tokenizer of the HTML standard (section 13.2.5) and goes once over the bytes it
reads. A place is an index into the text; the length of the text stands for its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from barkspider.core.texts import BYTES, SMALL, nb

# The attributes whose values are noted, in a row that holds start and end of each, or -1, from place 2 on.
ATTRIBUTES = (
    *("href", "rel", "content", "src", "name", "http-equiv", "charset", "srcset", "imagesrcset", "data"),
    *("poster", "action", "method", "type", "lang", "xlink:href", "background", "style"),
)

PRIME = 0x100000001B3
BASIS = 0xCBF29CE484222325


def fold(name: str) -> int:
    """FNV-1a of a name in lower case, as the compiled functions compute it.

    >>> hex(fold("a"))
    '0xaf63dc4c8601ec8c'
    """
    value = BASIS
    for byte in name.encode():
        value = (value ^ byte) * PRIME & 0xFFFFFFFFFFFFFFFF
    return value


def table_of(names: Sequence[str], size: int) -> tuple[Any, Any]:
    """Hashes and numbers of names by the low bits of the hash; on collision the next place that is free."""
    hashes, numbers = np.zeros(size, np.uint64), np.zeros(size, np.int64)
    for number, name in enumerate(names):
        place = fold(name) % size
        while hashes[place]:
            place = (place + 1) % size
        hashes[place], numbers[place] = fold(name), number
    return hashes, numbers


_ATTRIBUTE_HASHES, _ATTRIBUTE_NUMBERS = table_of(ATTRIBUTES, 128)

SPACE, ENDS_NAME, _ENDS_ATTRIBUTE, LETTER, _WORD = 1, 2, 4, 8, 16
CLASS = np.zeros(256, np.uint8)
CLASS[list(b"\t\n\x0c\r ")] |= SPACE | ENDS_NAME | _ENDS_ATTRIBUTE
CLASS[list(b"/>")] |= ENDS_NAME | _ENDS_ATTRIBUTE
CLASS[list(b"=")] |= _ENDS_ATTRIBUTE
CLASS[list(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] |= LETTER | _WORD
CLASS[list(b"0123456789")] |= _WORD
LOWER = np.arange(256, dtype=np.uint64)
LOWER[ord("A") : ord("Z") + 1] += 32

_LT, _GT, _DASH, _BANG, _AMPERSAND = (ord(sign) for sign in "<>-!&")
_SLASH, _EQUALS, _SEMICOLON, _HASH = (ord(sign) for sign in "/=;#")
_DOUBLE, _SINGLE, _BRACKET, _PARENTHESIS = (ord(sign) for sign in "\"'](")

TEXT = BYTES
WORDS = nb.types.Array(nb.uint64, 1, "C", readonly=True)


@nb.njit(nb.int64(TEXT, WORDS, nb.int64, nb.int64, nb.uint8), **SMALL)
def find(text, words, i, n, sign):  # type: ignore[no-untyped-def]
    """Where `sign` next stands, or n; eight bytes at a time."""
    while i < n and i & 7:
        if text[i] == sign:
            return i
        i += 1
    ones = np.uint64(0x0101010101010101)
    highs = np.uint64(0x8080808080808080)
    wanted = ones * np.uint64(sign)
    last = n >> 3
    word = i >> 3
    while word < last:
        differs = words[word] ^ wanted
        # Has one of the eight become zero? Only zero borrows from a high bit that was not set.
        if (differs - ones) & ~differs & highs:
            break
        word += 1
    i = max(i, word << 3)
    while i < n and text[i] != sign:
        i += 1
    return i


@nb.njit(nb.int64(TEXT, WORDS, nb.int64, nb.int64, nb.int64[::1], nb.boolean), **SMALL)
def read_attributes(text, words, i, n, row, noted):  # type: ignore[no-untyped-def]
    """Read the attributes of a tag; the place after its `>`, negative when it ends in `/>`, or 0 at the end.

    The first of several attributes of one name counts.
    """
    while i < n:
        c = text[i]
        if CLASS[c] & SPACE:
            i += 1
            continue
        if c == _GT:
            return i + 1
        if c == _SLASH:
            i += 1
            if i < n and text[i] == _GT:
                return -(i + 1)
            continue
        place = -1
        if noted:
            value = (np.uint64(BASIS) ^ LOWER[c]) * np.uint64(PRIME)
            i += 1
            while i < n and not CLASS[text[i]] & _ENDS_ATTRIBUTE:
                value = (value ^ LOWER[text[i]]) * np.uint64(PRIME)
                i += 1
            slot = value % np.uint64(128)
            while _ATTRIBUTE_HASHES[slot] != 0 and _ATTRIBUTE_HASHES[slot] != value:
                slot = (slot + np.uint64(1)) % np.uint64(128)
            if _ATTRIBUTE_HASHES[slot] == value:
                place = 2 + 2 * _ATTRIBUTE_NUMBERS[slot]
                if row[place] >= 0:
                    place = -1
        else:
            i += 1
            while i < n and not CLASS[text[i]] & _ENDS_ATTRIBUTE:
                i += 1
        while i < n and CLASS[text[i]] & SPACE:
            i += 1
        start = i
        end = i
        if i < n and text[i] == _EQUALS:
            i += 1
            while i < n and CLASS[text[i]] & SPACE:
                i += 1
            if i >= n:
                return 0
            start = i
            end = i
            c = text[i]
            if c in (_DOUBLE, _SINGLE):
                start = i + 1
                end = find(text, words, start, n, c)
                if end >= n:
                    return 0
                i = end + 1
            elif c != _GT:
                while i < n and text[i] != _GT and not CLASS[text[i]] & SPACE:
                    i += 1
                end = i
        if place >= 0:
            row[place] = start
            row[place + 1] = end
    return 0


@nb.njit(nb.boolean(TEXT, nb.int64, nb.typeof(b"")), **SMALL)
def _is(text, i, expected):  # type: ignore[no-untyped-def]
    """Whether exactly these bytes stand at i; there must be as many."""
    for k in range(len(expected)):  # noqa: SIM110  (no generators in kernels)
        if text[i + k] != expected[k]:
            return False
    return True


@nb.njit(nb.boolean(TEXT, nb.int64, nb.int64, nb.int64, nb.int64), **SMALL)
def _is_end_of(text, i, n, name, length):  # type: ignore[no-untyped-def]
    """Whether `</` at i closes the element whose name is at `name`."""
    if i + 2 + length >= n or not CLASS[text[i + 2 + length]] & ENDS_NAME:
        return False
    for k in range(length):  # noqa: SIM110
        if LOWER[text[i + 2 + k]] != LOWER[text[name + k]]:
            return False
    return True


@nb.njit(nb.int64(TEXT, WORDS, nb.int64, nb.int64, nb.int64, nb.int64), **SMALL)
def raw_end(text, words, i, n, name, length):  # type: ignore[no-untyped-def]
    """Where the end tag of raw text begins, or n."""
    while True:
        i = find(text, words, i, n, _LT)
        if i >= n or (i + 1 < n and text[i + 1] == _SLASH and _is_end_of(text, i, n, name, length)):
            return i
        i += 1


@nb.njit(nb.int64(TEXT, WORDS, nb.int64, nb.int64, nb.int64), **SMALL)
def script_end(text, words, i, n, name):  # type: ignore[no-untyped-def]
    """Where the end tag of a script begins, or n. Within `<!--`, `<script>` hides the next `</script>`."""
    hidden = 0  # 1: within <!--, 2: within <script> there
    while i < n:
        if not hidden:
            i = find(text, words, i, n, _LT)
        elif text[i] != _LT:
            if text[i] == _DASH and i + 2 < n and _is(text, i + 1, b"->"):
                hidden = 0
            i += 1
            continue
        if i + 1 >= n:
            return n
        c = text[i + 1]
        if c == _SLASH and _is_end_of(text, i, n, name, 6):
            if hidden < 2:
                return i
            hidden = 1
        elif not hidden and i + 3 < n and _is(text, i + 1, b"!--"):
            hidden = 1
            i += 1  # its own dashes may be those of -->
        elif hidden == 1 and _is_end_of(text, i - 1, n, name, 6):
            hidden = 2
        i += 1
    return n


@nb.njit(nb.int64(TEXT, WORDS, nb.int64, nb.int64, nb.boolean), **SMALL)
def declaration_end(text, words, i, n, drawing):  # type: ignore[no-untyped-def]
    """The place after what begins with `<!` at i: a comment, a CDATA section, or anything up to `>`."""
    if i + 3 < n and _is(text, i + 2, b"--"):
        j = i + 4
        while True:
            j = find(text, words, j, n, _GT)
            if j >= n:
                return n
            if text[j - 1] == _DASH and text[j - 2] == _DASH:
                return j + 1
            if text[j - 1] == _BANG and j - 3 >= i + 4 and text[j - 2] == _DASH and text[j - 3] == _DASH:
                return j + 1
            j += 1
    if drawing and i + 8 < n and _is(text, i + 2, b"[CDATA["):
        j = i + 9
        while True:
            j = find(text, words, j, n, _GT)
            if j >= n:
                return n
            if j - 2 >= i + 9 and text[j - 1] == _BRACKET and text[j - 2] == _BRACKET:
                return j + 1
            j += 1
    return min(n, find(text, words, i + 2, n, _GT) + 1)


@nb.njit(nb.int64(TEXT, nb.int64, nb.int64, nb.uint8[::1], nb.int64), **SMALL)
def write_text(text, start, end, plain, written):  # type: ignore[no-untyped-def]
    """Write text as far as there is room, white space as one blank; how much of `plain` is written then."""
    i = start
    while i < end and written < len(plain):
        c = text[i]
        i += 1
        if not CLASS[c] & SPACE:
            plain[written] = c
            written += 1
        elif written and plain[written - 1] not in (32, 10):
            plain[written] = 32
            written += 1
    return written


@nb.njit(nb.boolean(TEXT, nb.int64, nb.int64), **SMALL)
def is_nofollow(text, i, end):  # type: ignore[no-untyped-def]
    """Whether `nofollow` is among the words from i to end."""
    wanted = b"nofollow"
    while i < end:
        k = 0
        while i + k < end and k < 8 and LOWER[text[i + k]] == wanted[k]:
            k += 1
        if k == 8 and (i + 8 == end or CLASS[text[i + 8]] & SPACE):
            return True
        while i < end and not CLASS[text[i]] & SPACE:
            i += 1
        while i < end and CLASS[text[i]] & SPACE:
            i += 1
    return False


@nb.njit(nb.boolean(TEXT, nb.int64, nb.int64), **SMALL)
def calls(text, i, end):  # type: ignore[no-untyped-def]
    """Whether a style from i to end may call a function such as url(); most do not."""
    while i < end:
        if text[i] in (_PARENTHESIS, _AMPERSAND):  # or a reference to one
            return True
        i += 1
    return False


@nb.njit(nb.int64(TEXT, nb.int64, nb.int64, nb.uint8[::1], nb.int64), **SMALL)
def write_link(text, start, end, out, used):  # type: ignore[no-untyped-def]
    """Write a link and a line feed; how much of `out` is used then."""
    # A NUL stands for U+FFFD, which no parser trims.
    while start < end and 0 < text[start] <= 32:
        start += 1
    while end > start and 0 < text[end - 1] <= 32:
        end -= 1
    first = used
    i = start
    while i < end:
        c = text[i]
        if c in (9, 10, 13):
            i += 1
            continue
        if c == _AMPERSAND:
            if i + 4 < end and _is(text, i + 1, b"amp;"):
                out[used] = c
                used += 1
                i += 5
                continue
            j = i + 1
            while j < end and CLASS[text[j]] & _WORD:
                j += 1
            if not (j < end and text[j] == _EQUALS) and (j > i + 1 or (j < end and text[j] == _HASH)):
                # Perhaps a reference: as it is, but for the line ends, which become tabs.
                out[first] = 13
                used = first + 1
                for k in range(start, end):
                    c = text[k]
                    out[used] = 9 if c in (10, 13) else c
                    used += 1
                break
        out[used] = c
        used += 1
        i += 1
    out[used] = 10
    return used + 1
