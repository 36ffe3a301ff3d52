"""Pages as bytes: one kernel call writes a whole HTML page, in about the time that sending it takes.

Links are written in the ways that are found on the web (relative, absolute, without a scheme, with a fragment,
quoted or not, with character references), and things that look like links but are none stand in comments
and scripts: they lead to addresses that do not exist.
"""

from __future__ import annotations

from math import log

import numpy as np

from barkspider.lab.synthweb.kernels import kernel, types, uint64
from barkspider.lab.synthweb.model import (
    FOR_FORM,
    FOR_LENGTH,
    FOR_STYLE,
    MAX_LINKS,
    TABLES,
    Bytes,
    Int64s,
    Tables,
    below,
    body_links,
    draw,
    footer_links,
    host_of,
    nav_links,
    unit,
)
from barkspider.lab.synthweb.prose import CHARSETS, SENTENCES
from barkspider.lab.synthweb.text import (
    AMP,
    MAX_URL,
    NUMERIC,
    PATH,
    RAW,
    SNIPPETS,
    WORD,
    WORD_COUNT,
    copy,
    find_rank,
    is_https,
    put,
    put_number,
    write_host,
    write_origin,
    write_path,
)

# How hosts declare their charset: which of `CHARSETS`, the value of Content-Type, and what stands in the head.
_HTML5 = '<meta charset="{}">\n'
_HTML4 = '<meta http-equiv="Content-Type" content="text/html; charset={}">\n'
DECLARATIONS = (
    (0, "text/html; charset=utf-8", _HTML5.format("utf-8")),
    (0, "text/html; charset=utf-8", _HTML5.format("utf-8")),
    (0, "text/html; charset=UTF-8", _HTML4.format("UTF-8")),
    (0, "text/html; charset=utf-8", ""),
    (0, "text/html", _HTML5.format("utf-8")),
    (1, "text/html; charset=ISO-8859-1", _HTML4.format("ISO-8859-1")),
    (1, "text/html", _HTML4.format("iso-8859-1")),
    (2, "text/html; charset=windows-1252", ""),
    (2, "text/html", _HTML5.format("windows-1252")),
)
_DECLARATIONS = len(DECLARATIONS)
_PROSE_OF = np.array([charset for charset, _, _ in DECLARATIONS])

_TEXTS = (
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n",
    "<title>",
    "</title>\n<meta name=\"description\" content=\"",
    "\">\n<meta name=\"generator\" content=\"Quill 2.1\">\n",
    "<base href=\"/\">\n",
    "</head>\n<body>\n<nav><ul>\n",
    "<li><a href=\"",
    "\">",
    "</a></li>\n",
    "</ul></nav>\n<main>\n<h1>",
    "</h1>\n<p>",
    "<a href=\"", "\">",
    "<a href='", "'>",
    "<a href=", " class=more>",
    "<A HREF=\"", "\" TARGET=_top>",
    "<a class=\"ref\" title=\"a > b\" href=\"", "\" rel=\"bookmark\">",
    "</a> ",
    "<!-- <a href=\"/ghost-",
    ".html\">withdrawn</a> -->",
    "<script>var next = '<a href=\"/ghost-",
    ".html\">more</a>';</script>\n",
    "</p>\n</main>\n",
    "<footer><ul>\n",
    "</ul>\n<p>&copy; 2007 ",
    " <a href=\"mailto:webmaster@",
    "\">contact</a> <a href=\"javascript:print()\">print</a></p></footer>\n</body>\n</html>\n",
    "../",
    "#part-",
)  # fmt: skip
(
    _TOP, _TITLE, _DESCRIPTION, _GENERATOR, _BASE, _NAV, _ITEM, _ITEM_TEXT, _ITEM_END, _HEADING, _TEXT,
    _OPEN, _, _, _, _, _, _, _, _, _, _CLOSE, _COMMENT, _COMMENT_END, _SCRIPT, _SCRIPT_END, _MAIN_END, _FOOTER,
    _COPYRIGHT, _MAIL, _END, _UP, _FRAGMENT,
) = range(SNIPPETS, SNIPPETS + len(_TEXTS))  # fmt: skip
_DECLARATION = SNIPPETS + len(_TEXTS)
SNIPPET_TEXTS: list[bytes] = [text.encode() for text in (*_TEXTS, *(meta for _, _, meta in DECLARATIONS))]

_S8, _S16, _S24, _S32, _S40, _S48 = (uint64(n) for n in (8, 16, 24, 32, 40, 48))
_CHARSETS = len(CHARSETS)


def page_buffer(page_bytes: int) -> Bytes:
    """A buffer that any page fits into: its longest text, and every link at its longest.

    >>> page_buffer(25_000).size
    1250000
    """
    return np.empty(page_bytes * 10 + MAX_LINKS * 1_000, np.uint8)


@kernel(types.int64(TABLES, types.int64))
def declaration_of(t: Tables, host: int) -> int:
    """Which of `DECLARATIONS` a host uses."""
    return below(draw(t.seed, FOR_STYLE + 200, host), _DECLARATIONS)


@kernel(types.int64(TABLES, types.uint64, types.uint8[::1], types.int64))
def _put_words(t: Tables, random: int, out: Bytes, at: int) -> int:
    at = put(t, WORD + below(random, WORD_COUNT), out, at)
    out[at] = 32
    return put(t, WORD + below(random >> _S16, WORD_COUNT), out, at + 1)


@kernel(types.int64(TABLES, types.int64, types.int64, types.uint64, types.uint8[::1], types.int64))
def _put_prose(t: Tables, charset: int, length: int, random: int, out: Bytes, at: int) -> int:
    # Whole sentences, from a place drawn in the first half of the text, at most 8 KB from each place.
    first = charset * (SENTENCES + 1)
    end = at + length
    while at < end:
        sentence = first + below(random, SENTENCES // 2)
        random = (random >> _S8) ^ (random << _S40)
        begin = t.sentences[sentence]
        stop = begin + min(end - at, 8_000)
        while t.sentences[sentence] < stop:
            sentence += 1
        at = copy(t.prose, begin, t.sentences[sentence] - begin, out, at)
    return at


@kernel(
    types.int64(
        TABLES, types.int64, types.uint8[::1], types.int64, types.int64, types.uint64, types.boolean,
        types.uint8[::1], types.uint8[::1], types.int64,
    )
)  # fmt: skip
def _put_href(
    t: Tables, host: int, source: Bytes, directory: int, target: int, random: int, fixed: bool,
    scratch: Bytes, out: Bytes, at: int,
) -> int:  # fmt: skip
    # The address of `target` as written on a page of `host` whose path is `source` up to `directory`;
    # `fixed` ones are the same on every page of the host.
    other = target_host = host if t.start[host] <= target < t.start[host + 1] else host_of(t, target)
    rank = target - t.start[target_host]
    ampersand = NUMERIC if below(draw(t.seed, FOR_STYLE + 300, host), 4) == 0 else AMP
    form = below(random, 8)
    if other != host or form >= 6:
        relative_scheme = form == 7 and is_https(t, t.domain_of[host]) == is_https(t, t.domain_of[other])
        begin = at
        at = write_origin(t, other, out, at)
        if relative_scheme:
            skip = 6 if is_https(t, t.domain_of[other]) else 5  # "https:" or "http:"
            for k in range(begin, at - skip):
                out[k] = out[k + skip]
            at -= skip
        return write_path(t, target_host, rank, ampersand, out, at)
    if fixed or form < 3:
        return write_path(t, target_host, rank, ampersand, out, at)
    if form == 5:
        at = write_path(t, target_host, rank, ampersand, out, at)
        return put_number(below(random >> _S8, 9), 1, out, put(t, _FRAGMENT, out, at))
    length = write_path(t, target_host, rank, ampersand, scratch, 0)
    same = length > directory
    for k in range(min(directory, length)):
        same = same and scratch[k] == source[k]
    begin = directory
    if not same:
        begin = 1
        for k in range(1, directory):
            if source[k] == 47:
                at = put(t, _UP, out, at)
    if begin == length and directory == 1:
        out[at] = 46  # an empty address would mean this page, with its query
        at += 1
    for k in range(begin, length):
        out[at] = scratch[k]
        at += 1
    return at


@kernel(types.int64(TABLES, types.int64, types.boolean, types.int64[::1], types.uint8[::1]))
def render_template(t: Tables, host: int, footer: bool, links: Int64s, out: Bytes) -> int:
    """Writes the navigation or the footer of a host, the same on all its pages, and gives its length."""
    nothing = np.empty(1, np.uint8)
    count = footer_links(t, host, links) if footer else nav_links(t, host, links)
    at = put(t, _FOOTER if footer else _NAV, out, 0)
    for k in range(count):
        random = draw(t.seed, FOR_FORM + (500 if footer else 0) + k, host)
        at = put(t, _ITEM, out, at)
        at = _put_href(t, host, nothing, 1, links[k], random, True, nothing, out, at)
        at = _put_words(t, random >> _S16, out, put(t, _ITEM_TEXT, out, at))
        at = put(t, _ITEM_END, out, at)
    if footer:
        at = write_host(t, host, out, put(t, _COPYRIGHT, out, at))
        at = write_host(t, host, out, put(t, _MAIL, out, at))
        at = put(t, _END, out, at)
    return at


@kernel(
    types.UniTuple(types.int64, 3)(
        TABLES, types.int64, PATH, types.uint8[::1], types.uint8[::1], types.int64[::1], types.uint8[::1]
    )
)
def serve(
    t: Tables, host: int, path: Bytes, nav: Bytes, footer: Bytes, links: Int64s, out: Bytes
) -> tuple[int, int, int]:
    """Finds the page at a path and writes it to `out`; gives its rank, where its footer begins and where it ends.

    The rank is -1 if there is no such page. `nav` and `footer` are from `render_template`, `links` is scratch
    space.
    """
    rank = find_rank(t, host, path, out)
    if rank < 0:
        return -1, 0, 0
    page = t.start[host] + rank
    source = np.empty(MAX_URL, np.uint8)
    scratch = np.empty(MAX_URL, np.uint8)
    style = draw(t.seed, FOR_STYLE + 400, host)
    has_base = below(style, 20) == 0
    directory = 1
    for k in range(write_path(t, host, rank, RAW, source, 0)):
        if source[k] == 63:  # a question mark
            break
        if source[k] == 47 and not has_base:
            directory = k + 1

    declaration = declaration_of(t, host)
    charset = _PROSE_OF[declaration]
    random = draw(t.seed, FOR_LENGTH, page)
    # Exponential above a floor: the mean is page_bytes, the longest eight times that.
    length = int(t.page_bytes * min(8.0, 0.3 - 0.7 * log(unit(random))))
    at = put(t, _DECLARATION + declaration, out, put(t, _TOP, out, 0))
    at = _put_words(t, random, out, put(t, _TITLE, out, at))
    out[at] = 32
    at = put_number(rank, 1, out, at + 1)
    at = _put_words(t, random >> _S24, out, put(t, _DESCRIPTION, out, at))
    at = put(t, _GENERATOR, out, at)
    if has_base:
        at = put(t, _BASE, out, at)
    at = copy(nav, 0, nav.size, out, at)
    random = draw(t.seed, FOR_LENGTH + 1, page)
    at = _put_words(t, random, out, put(t, _HEADING, out, at))
    at = put(t, _TEXT, out, at)
    count = body_links(t, page, host, links)
    # A link with its text takes about 75 bytes.
    gap = max(40, (length - at - footer.size - 75 * count) // (count + 1))
    for k in range(count):
        random = draw(t.seed, FOR_FORM + 1_000 + k, page)
        at = _put_prose(t, charset, gap, random >> _S32, out, at)
        form = 2 * below(random >> _S8, 5)
        at = put(t, _OPEN + form, out, at)
        at = _put_href(t, host, source, directory, links[k], random, False, scratch, out, at)
        at = _put_words(t, random >> _S16, out, put(t, _OPEN + form + 1, out, at))
        at = put(t, _CLOSE, out, at)
        if k == 1:
            at = put_number(page, 1, out, put(t, _COMMENT, out, at))
            at = put(t, _COMMENT_END, out, at)
    at = _put_prose(t, charset, gap, draw(t.seed, FOR_LENGTH + 2, page), out, at)
    at = put_number(page + 1, 1, out, put(t, _SCRIPT, out, at))
    at = put(t, _SCRIPT_END, out, at)
    at = put(t, _MAIN_END, out, at)

    return rank, at, copy(footer, 0, footer.size, out, at)
