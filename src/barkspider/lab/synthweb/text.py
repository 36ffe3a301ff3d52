"""URLs as bytes: written from page numbers by kernels, and read back.

Reading a path takes the number out of it, writes the path that this number has, and compares: whatever a
style looks like, there is one URL for each page, and no page for any other URL.
"""

from __future__ import annotations

import numpy as np

from barkspider.lab.synthweb.kernels import kernel, types, uint64
from barkspider.lab.synthweb.model import (
    FOR_NAME,
    FOR_PATH,
    FOR_STYLE,
    TABLES,
    Bytes,
    Int64s,
    Tables,
    below,
    draw,
    host_of,
)
from barkspider.lab.synthweb.names import (
    LABELS,
    SECTIONS,
    SECTIONS_PER_SITE,
    SPREAD,
    SUFFIXES,
    SYLLABLES,
    WORDS,
)

# Where each vocabulary begins among the strings of `Tables`.
_SUFFIX = len(SYLLABLES)
_LABEL = _SUFFIX + len(SUFFIXES)
_SECTION = _LABEL + len(LABELS)
WORD = _SECTION + len(SECTIONS)
_FIXED = WORD + len(WORDS)
_SUFFIXES, _LABELS, _SECTIONS, WORD_COUNT = len(SUFFIXES), len(LABELS), len(SECTIONS), len(WORDS)

_HTTP, _HTTPS, _WWW, _ITEM, _VIEW, _VIEW_AMP, _VIEW_38, _ARTICLE, _HTML, _HTM, _ASPX = range(
    _FIXED, _FIXED + 11
)
SNIPPETS = _FIXED + 11
_PIECES = ("http://", "https://", "www.", "item.php?id=", "view.php?lang=en&id=", "view.php?lang=en&amp;id=")
_MORE_PIECES = ("view.php?lang=en&#38;id=", "Article,", ".html", ".htm", ".aspx")
STYLES = 8

# How `&` is written: as it is, or as one of two character references.
RAW, AMP, NUMERIC = range(3)
# No URL of a page comes near this; buffers have room for it.
MAX_URL = 250

_NAMES: tuple[str, ...] = (*SYLLABLES, *SUFFIXES, *LABELS, *SECTIONS, *WORDS, *_PIECES, *_MORE_PIECES)
STRINGS: list[bytes] = [name.encode() for name in _NAMES]
"""All strings that kernels write; `render` adds its own at `SNIPPETS`."""

_S8, _S16, _S24, _S40, _S48 = (uint64(n) for n in (8, 16, 24, 40, 48))


@kernel(types.int64(types.uint8[::1], types.int64, types.int64, types.uint8[::1], types.int64))
def copy(source: Bytes, begin: int, size: int, out: Bytes, at: int) -> int:
    """Copies bytes to `out` and gives the place after them, as all kernels that write do."""
    # With signed numbers every index is checked for counting from the end, which is 40 times slower.
    to, origin = uint64(at), uint64(begin)
    for k in range(uint64(size)):
        out[to + k] = source[origin + k]
    return at + size


@kernel(types.int64(TABLES, types.int64, types.uint8[::1], types.int64))
def put(t: Tables, string: int, out: Bytes, at: int) -> int:
    """Writes one of the strings of `Tables`."""
    begin = t.at[string]
    return copy(t.chars, begin, t.at[string + 1] - begin, out, at)


@kernel(types.int64(types.int64, types.int64, types.uint8[::1], types.int64))
def put_number(number: int, width: int, out: Bytes, at: int) -> int:
    """Writes a number in decimal, with zeros in front up to `width`."""
    digits = 1
    rest = number // 10
    while rest > 0 or digits < width:
        digits += 1
        rest //= 10
    for k in range(digits):
        out[at + digits - 1 - k] = 48 + number % 10
        number //= 10
    return at + digits


@kernel(types.int64(TABLES, types.int64, types.uint8[::1], types.int64))
def write_domain(t: Tables, domain: int, out: Bytes, at: int) -> int:
    """Writes a domain's name; numbers beyond `t.domains` are the names of hazards."""
    space = 100**t.name_digits
    spread = (domain * SPREAD + t.name_offset) % space
    for _ in range(t.name_digits):
        space //= 100
        at = put(t, (spread // space) % 100, out, at)
    out[at] = 46  # a full stop
    return put(t, _SUFFIX + below(draw(t.seed, FOR_NAME, domain + 1), _SUFFIXES), out, at + 1)


@kernel(types.boolean(TABLES, types.int64))
def is_www(t: Tables, domain: int) -> bool:
    """Whether the domain's main host is www.NAME, as for seven in ten, or NAME itself."""
    return below(draw(t.seed, FOR_NAME + 100, domain), 10) < 7


@kernel(types.boolean(TABLES, types.int64))
def is_https(t: Tables, domain: int) -> bool:
    """Whether the domain's URLs begin with https."""
    return below(draw(t.seed, FOR_NAME + 101, domain), 1_000_000) < t.https_per_million


@kernel(types.int64(TABLES, types.int64, types.uint8[::1], types.int64))
def write_host(t: Tables, host: int, out: Bytes, at: int) -> int:
    """Writes a host's name."""
    domain = t.domain_of[host]
    place = host - t.first_host[domain]
    if place > 0:
        at = put(t, _LABEL + (place - 1) % _LABELS, out, at)
        if place > _LABELS:
            at = put_number((place - 1) // _LABELS, 1, out, at)
        out[at] = 46
        at += 1
    elif is_www(t, domain):
        at = put(t, _WWW, out, at)
    return write_domain(t, domain, out, at)


@kernel(types.int64(TABLES, types.int64, types.uint8[::1], types.int64))
def write_origin(t: Tables, host: int, out: Bytes, at: int) -> int:
    """Writes scheme and host name, without a slash at the end."""
    at = put(t, _HTTPS if is_https(t, t.domain_of[host]) else _HTTP, out, at)
    return write_host(t, host, out, at)


@kernel(types.int64(TABLES, types.int64))
def style_of(t: Tables, host: int) -> int:
    """Which of the eight ways of writing paths a host has."""
    return below(draw(t.seed, FOR_STYLE, host), STYLES)


@kernel(types.int64(TABLES, types.int64, types.int64, types.uint8[::1], types.int64))
def write_section(t: Tables, host: int, section: int, out: Bytes, at: int) -> int:
    """Writes the name of one of the host's sections."""
    first = below(draw(t.seed, FOR_STYLE + 100, host), _SECTIONS)
    return put(t, _SECTION + (first + section) % _SECTIONS, out, at)


@kernel(types.int64(TABLES, types.int64, types.int64, types.int64, types.uint8[::1], types.int64))
def write_path(t: Tables, host: int, rank: int, ampersand: int, out: Bytes, at: int) -> int:
    """Writes path and query of a page, which for the home is a slash."""
    out[at] = 47  # a slash
    at += 1
    if rank == 0:
        return at
    random = draw(t.seed, FOR_PATH, t.start[host] + rank)
    at = write_section(t, host, below(random, SECTIONS_PER_SITE), out, at)
    out[at] = 47
    at += 1
    style = style_of(t, host)
    if style == 1:
        return put_number(rank, 1, out, put(t, _ITEM, out, at))
    if style == 3:
        return put_number(rank, 1, out, at)
    if style == 5:
        return put_number(rank, 1, out, put(t, _VIEW + ampersand, out, at))
    if style == 7:
        return put(t, _ASPX, out, put_number(rank, 1, out, put(t, _ARTICLE, out, at)))
    if style == 2:
        at = put_number(1998 + below(random >> _S8, 12), 4, out, at)
        out[at] = 47
        at = put_number(1 + below(random >> _S16, 12), 2, out, at + 1)
        out[at] = 47
        at += 1
    joint = 95 if style == 6 else 45  # an underscore or a hyphen
    at = put(t, WORD + below(random >> _S24, WORD_COUNT), out, at)
    out[at] = joint
    at = put(t, WORD + below(random >> _S40, WORD_COUNT), out, at + 1)
    out[at] = joint
    if style == 2:
        at = put(t, WORD + below(random >> _S48, WORD_COUNT), out, at + 1)
        out[at] = joint
    at = put_number(rank, 1, out, at + 1)
    if style == 0:
        return put(t, _HTML, out, at)
    if style == 6:
        return put(t, _HTM, out, at)
    if style == 4:
        out[at] = 47
        at += 1
    return at


# What follows the number in each style.
ENDINGS = (".html", "", "", "", "/", "", ".htm", ".aspx")
_ENDING_LENGTHS = np.array([len(ending) for ending in ENDINGS])


# Bytes of Python seen as an array.
PATH = types.Array(types.uint8, 1, "C", readonly=True)


@kernel(types.int64(TABLES, types.int64, PATH, types.uint8[::1]))
def find_rank(t: Tables, host: int, path: Bytes, scratch: Bytes) -> int:
    """The rank of the page at a path and query, or -1 if there is none."""
    if path.size == 1:
        return 0 if path[0] == 47 else -1
    if path.size > MAX_URL:
        return -1
    at = path.size - _ENDING_LENGTHS[style_of(t, host)] - 1
    rank, value = 0, 1
    while at > 0 and 48 <= path[at] <= 57 and value <= 10**10:
        rank += (path[at] - 48) * value
        value *= 10
        at -= 1
    if rank == 0 or rank >= t.start[host + 1] - t.start[host]:
        return -1
    if write_path(t, host, rank, RAW, scratch, 0) != path.size:
        return -1
    for k in range(path.size):
        if path[k] != scratch[k]:
            return -1
    return rank


@kernel(types.int64(TABLES, types.int64[::1], types.uint8[::1]))
def write_urls(t: Tables, pages: Int64s, out: Bytes) -> int:
    """Writes the URLs of pages, each with a line feed after it."""
    at = 0
    for page in pages:
        host = host_of(t, page)
        at = write_origin(t, host, out, at)
        at = write_path(t, host, page - t.start[host], RAW, out, at)
        out[at] = 10
        at += 1
    return at
