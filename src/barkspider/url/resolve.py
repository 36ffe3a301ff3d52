"""Simple links to URLs, by a compiled function: what parsing and the rules of `Normaliser` would make of them.

Simple is a link that no parser changes but by the steps of its path and by the usual escapes: to a path or a query of
the page's own origin, or to an origin that came up before, which a parser has seen. All else (rare signs, ports and names
in other forms, a session id that may have to go, an index name) is left to `Normaliser`.
"""

from __future__ import annotations

from inspect import getsource
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from xxhash import xxh32_intdigest

from barkspider.core.settings import UrlRules
from barkspider.core.texts import BYTES, NO_BYTES, SMALL, Bytes, copy, ends, nb
from barkspider.url import origins as numbering
from barkspider.url import xxh3 as hashing
from barkspider.url.normalise import most_work
from barkspider.url.origins import OriginNumbers, find_origin
from barkspider.url.xxh3 import xxh3

# What a row of `found` begins with that has no URL: it takes a parser; it is refused, so many links by this reason.
UNUSUAL, REFUSED = -1, -2
REASONS = ("", "scheme", "too_long", "malformed")  # by number, as `UrlError` has them
_SCHEME_REASON, _LENGTH_REASON = REASONS.index("scheme"), REASONS.index("too_long")
_NOT_SIMPLE = -1  # what the kernel says instead of how much it has written

_LETTER, _SCHEME, _PATH, _QUERY, _ESCAPED = 1, 2, 4, 8, 16
_CLASS = np.zeros(256, np.uint8)
_CLASS[list(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] |= _LETTER | _SCHEME | _PATH | _QUERY
_CLASS[list(b"0123456789+-.")] |= _SCHEME | _PATH | _QUERY
_CLASS[list(b"!$%&()*,/:;=@[]_~")] |= _PATH | _QUERY
_CLASS[list(b"'")] |= _PATH  # escaped in queries alone
_CLASS[list(b"?")] |= _QUERY
_CLASS[list(b' "<>') + list(range(128, 256))] |= _ESCAPED  # in paths and in queries
_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
# Those that have a host whatever follows, as numbers.
_SPECIAL = tuple(int.from_bytes(name, "big") for name in (b"ftp", b"file", b"ws", b"wss", b"http", b"https"))
_LONGEST_SPECIAL = 5
_SLASH, _MARK, _COLON, _DOT, _PERCENT, _EQUALS, _AND, _SEMICOLON, _TWO, _E, _BLANK = map(ord, "/?:.%=&;2e ")


class Resolved(NamedTuple):
    """A row of `found` for each target, or each of the first for whose URLs there was room: where its URL lies in
    `urls`, the number of its origin, and 0, or REFUSED, how many links that are, 0, and the number of the reason.
    `used` bytes of `urls` are written, and so many rows are `unusual`."""

    urls: Bytes
    found: npt.NDArray[np.int64]
    used: int
    unusual: int


class LinkResolver:
    """Resolves the links of pages by the rules of a crawl. Keeps its buffer from page to page."""

    def __init__(self, rules: UrlRules, seed: int, most: int) -> None:
        """`most` are the bytes that the URLs of a page may have."""
        sessions = [name.lower().encode() for name in rules.session_names if rules.drop_session_ids]
        indexes = [f"/{name}".encode() for name in rules.index_names if rules.drop_index_names]
        self._names = np.frombuffer(b"".join((*sessions, *indexes)) or b"\0", np.uint8)
        self._places = ends(np.array([*map(len, sessions), *map(len, indexes)], np.int64))
        self._sessions, self._trims, self._longest = len(sessions), rules.trim_listings, rules.max_length
        self._knows_rules = rules.drop_fragment and not rules.add_www
        self._seed = np.uint64(seed)
        self._most = most_work(most)
        self._urls = NO_BYTES
        self._found = np.empty((0, 4), np.int64)

    def resolve(
        self, lines: bytes, targets: npt.NDArray[np.int64], base: str, origins: OriginNumbers
    ) -> Resolved | None:
        """What becomes of targets, relative to the canonical URL `base`; None if rules or base are not for this."""
        base = base.partition("#")[0]
        root = base.index("/", 8)
        if not self._knows_rules or "@" in base[:root]:
            return None
        stop = base.find("?")
        path_end = len(base) if stop < 0 else stop
        text = np.frombuffer(base.encode(), np.uint8)
        marks = (base.index("/"), root, base.rindex("/", 0, path_end) + 1, path_end)
        number = origins.number(base[:root])
        if len(self._found) < len(targets):
            self._found = np.empty((2 * len(targets), 4), np.int64)
        found = self._found[: len(targets)]
        found[:, 3] = 0
        while True:
            used, rows, unusual = resolve(
                np.frombuffer(lines, np.uint8),
                targets,
                text,
                *marks,
                number,
                self._longest,
                self._trims,
                self._sessions,
                self._names,
                self._places,
                self._seed,
                origins.slots,
                origins.keys,
                origins.starts,
                origins.texts,
                self._urls,
                found,
            )
            if used == _NOT_SIMPLE:
                return None
            if rows == len(targets) or len(self._urls) >= self._most:
                return Resolved(self._urls, found[:rows], used, unusual)
            self._urls = np.empty(min(max(4 * len(self._urls), 1 << 16), self._most), np.uint8)


@nb.njit(
    nb.boolean(BYTES, nb.int64, nb.int64, BYTES, nb.int64, nb.int64, nb.boolean),
    **SMALL,
)
def _ends(text, start, end, names, first, last, folds):  # type: ignore[no-untyped-def]
    """Whether a text ends in a name; if it `folds`, the name is in lower case and the text may not be."""
    if end - start < last - first:
        return False
    for k in range(last - first):
        c = text[end - 1 - k]
        if folds and 65 <= c <= 90:
            c += 32
        if c != names[last - 1 - k]:
            return False
    return True


@nb.njit(nb.boolean(BYTES, nb.int64, nb.int64, nb.int64, BYTES, nb.int64[::1]), **SMALL)
def _is_session(text, start, end, count, names, places):  # type: ignore[no-untyped-def]
    """Whether a text, before its `=`, ends in a parameter that may be that of a session."""
    for k in range(count):
        before = end - (places[k + 1] - places[k]) - 1
        if (
            before >= start
            and text[before] in (_MARK, _AND, _SEMICOLON)
            and _ends(text, before + 1, end, names, places[k], places[k + 1], True)
        ):
            return True
    return False


@nb.njit(nb.boolean(BYTES, nb.int64, nb.int64), **SMALL)
def _is_special(text, start, end):  # type: ignore[no-untyped-def]
    if end - start > _LONGEST_SPECIAL:
        return False
    name = 0
    for k in range(start, end):
        name = name << 8 | text[k] | 32
    return name in _SPECIAL


@nb.njit(nb.int64(nb.uint8[::1], nb.int64, nb.int64, nb.int64), **SMALL)
def _step(urls, segment, end, floor):  # type: ignore[no-untyped-def]
    """Where a path goes on whose last segment may be `.` or `..`; `end` if it is neither."""
    count = end - segment
    if count == 0 or count > 2 or urls[segment] != _DOT or urls[end - 1] != _DOT:
        return end
    if count == 2 and segment > floor:
        segment -= 1
        while segment > floor and urls[segment - 1] != _SLASH:
            segment -= 1
    return segment


@nb.njit(nb.int64(nb.uint8[::1], nb.int64, nb.uint8), **SMALL)
def _escape(urls, place, c):  # type: ignore[no-untyped-def]
    urls[place], urls[place + 1], urls[place + 2] = _PERCENT, _DIGITS[c >> 4], _DIGITS[c & 15]
    return place + 3


def _compile(sources: int) -> Any:
    @nb.njit(
        nb.types.UniTuple(nb.int64, 3)(
            *(BYTES, nb.int64[:, ::1], BYTES),
            *(nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, nb.boolean, nb.int64),
            *(BYTES, nb.int64[::1], nb.uint64, nb.int32[::1], nb.uint64[::1], nb.int64[::1], nb.uint8[::1]),
            *(nb.uint8[::1], nb.int64[:, ::1]),
        ),
        nogil=True,
        cache=True,
    )
    def resolve(  # type: ignore[no-untyped-def]
        lines,
        targets,
        base,
        scheme_end,
        root,
        folder,
        path_end,
        own_origin,
        longest,
        trims,
        sessions,
        names,
        places,
        seed,
        slots,
        keys,
        starts,
        texts,
        urls,
        found,
    ):
        unusual = used = sources & 0
        for k in range(len(base)):
            if base[k] == _EQUALS and _is_session(base, 0, k, sessions, names, places):
                return _NOT_SIMPLE, 0, 0
        for row in range(len(targets)):
            i, end = targets[row, 0], targets[row, 1]
            start = used
            if start + len(base) + 3 * (end - i) + 2 > len(urls):
                return used, row, unusual
            place = start
            origin = own_origin
            authority = -1
            c = lines[i] if i < end else 0
            if _CLASS[c] & _LETTER:
                k = i + 1
                while k < end and _CLASS[lines[k]] & _SCHEME:
                    k += 1
                if k < end and lines[k] == _COLON:
                    if _is_special(lines, i, k):
                        # As nearly all are written: a name in other letters has no known origin.
                        if k + 2 < end and lines[k + 1] == _SLASH and lines[k + 2] == _SLASH:
                            authority = k + 3
                            copy(urls, place, lines, i, authority - i)
                            place += authority - i
                        else:
                            authority = end + 1
                    elif k + 1 == end or lines[k + 1] != _SLASH:
                        found[row, 0], found[row, 1], found[row, 3] = REFUSED, targets[row, 2], _SCHEME_REASON
                        continue
                    else:
                        authority = end + 1
            elif c == _SLASH and i + 1 < end and lines[i + 1] == _SLASH:
                authority = i + 2
                copy(urls, place, base, 0, scheme_end)
                copy(urls, place + scheme_end, lines, i, 2)
                place += scheme_end + 2
            # A blank at the end, before a fragment, is dropped.
            simple = authority <= end and (i == end or lines[end - 1] != _BLANK)
            query = -1  # where it begins, with its mark
            if authority >= 0 and simple:
                i = authority
                while i < end and lines[i] != _SLASH and lines[i] != _MARK:
                    urls[place] = lines[i]
                    place += 1
                    i += 1
                key = xxh3(urls, start, place - start, seed)
                origin = find_origin(urls, start, place, key, slots, keys, starts, texts)
                simple = origin >= 0
                urls[place] = _SLASH
                place += 1
                floor = place
                i += i < end and lines[i] == _SLASH
            elif c == _SLASH:
                copy(urls, place, base, 0, root + 1)
                place += root + 1
                floor = place
                i += 1
            elif i == end:
                copy(urls, place, base, 0, len(base))
                place += len(base)
                floor = place
                if path_end < len(base):
                    query = start + path_end
            elif c == _MARK:
                copy(urls, place, base, 0, path_end)
                place += path_end
                floor = place
            else:
                copy(urls, place, base, 0, folder)
                place += folder
                floor = start + root + 1
            segment = place
            while simple and i < end and lines[i] != _MARK:
                c = lines[i]
                if _CLASS[c] & _ESCAPED:
                    place = _escape(urls, place, c)
                    i += 1
                    continue
                simple = _CLASS[c] & _PATH != 0
                if c == _PERCENT and i + 2 < end and lines[i + 1] == _TWO and lines[i + 2] | 32 == _E:
                    simple = False  # a dot
                if c == _EQUALS and _is_session(urls, start, place, sessions, names, places):
                    simple = False
                if c == _SLASH and _step(urls, segment, place, floor) != place:
                    segment = place = _step(urls, segment, place, floor)
                else:
                    urls[place] = c
                    place += 1
                    if c == _SLASH:
                        segment = place
                i += 1
            place = _step(urls, segment, place, floor)
            if i < end and simple:
                query = place
                while simple and i < end:
                    c = lines[i]
                    if _CLASS[c] & _ESCAPED:
                        place = _escape(urls, place, c)
                        i += 1
                        continue
                    simple = _CLASS[c] & _QUERY != 0
                    if c == _EQUALS and _is_session(urls, start, place, sessions, names, places):
                        simple = False
                    urls[place] = c
                    place += 1
                    i += 1
            if query >= 0:
                if trims and place - query in (4, 8) and urls[query - 1] == _SLASH:
                    simple = False  # maybe the order of a listing
            elif simple:
                for k in range(sessions, len(places) - 1):
                    if _ends(urls, start, place, names, places[k], places[k + 1], False):
                        simple = False
            if not simple:
                unusual += 1
                found[row, 0] = UNUSUAL
            elif place - start > longest:
                found[row, 0], found[row, 1], found[row, 3] = REFUSED, targets[row, 2], _LENGTH_REASON
            else:
                found[row, 0], found[row, 1], found[row, 2] = start, place, origin
                used = place
        return used, len(targets), unusual

    return resolve


# numba's cache does not see what a function calls: so it closes over the texts of those files.
resolve = _compile(xxh32_intdigest((getsource(hashing) + getsource(numbering)).encode()))
