"""One pass over the bytes of a page: where its links, its rare tags and its text are.

The pass follows the tokenizer of the HTML standard, with as much of tree construction as decides what is a
tag and what is text: raw text (scripts, styles, textareas …), templates, drawings (SVG and MathML have CDATA
and no raw text) and framesets. It keeps no tree: the only memory is a stack of at most 64 open elements of
drawings. So the time is linear in the bytes, whatever they are, and what is found goes into arrays that the
caller owns. No GIL is held.

Links of `<a>` and `<area>`, nearly all there are, are written out one to a line, ready to be split: trimmed,
without tabs and line ends (which no URL keeps), without those marked nofollow. One that holds a character
reference other than `&amp;` begins with `MARK` and is left for the caller to unescape; one that is longer than any
may be is counted and nothing else. Other tags of interest become a row: what the tag is, where the lines of links had
got to, and where the values of its attributes lie.
"""

from __future__ import annotations

from inspect import getsource
from typing import Any

import numpy as np
from xxhash import xxh32_intdigest

from barkspider.core.texts import SMALL, nb
from barkspider.page import lexing, names
from barkspider.page.lexing import (
    BASIS,
    CLASS,
    ENDS_NAME,
    LETTER,
    LOWER,
    PRIME,
    SPACE,
    TEXT,
    WORDS,
    calls,
    declaration_end,
    find,
    is_nofollow,
    raw_end,
    read_attributes,
    script_end,
    write_link,
    write_text,
)
from barkspider.page.names import (
    CODE,
    IS_BLOCK,
    IS_BODY,
    IS_BREAKOUT,
    IS_HTML,
    IS_MATH_POINT,
    IS_RAW,
    IS_REQUISITE,
    IS_ROW,
    IS_SVG_POINT,
    KIND,
    TAG_HASHES,
    TAG_NUMBERS,
)

MARK = b"\r"

# What the caller may ask for beyond links.
WANT_TEXT, WANT_REQUISITES, WANT_ANCHORS, WANT_FORMS = 1, 2, 4, 8

# Where a row has the starts of values that are needed here; each is followed by its end.
_HREF, _REL, CONTENT = (2 + 2 * place for place in range(3))
_XLINK, _BACKGROUND, STYLE = (
    2 + 2 * lexing.ATTRIBUTES.index(n) for n in ("xlink:href", "background", "style")
)
ROW = 2 + 2 * len(lexing.ATTRIBUTES)

_A, _AREA, _SCRIPT, _SVG, _MATH = (CODE[name] for name in ("a", "area", "script", "svg", "math"))
_TEMPLATE, _PLAINTEXT, _FRAMESET, _FRAME = (CODE[n] for n in ("template", "plaintext", "frameset", "frame"))
_NOFRAMES, _TITLE, _FORM, _STYLE = (CODE[name] for name in ("noframes", "title", "form", "style"))
_P, _BR, _IMAGE, _USE = (CODE[name] for name in ("p", "br", "image", "use"))
_LT, _GT, _BANG, _SLASH, _QUERY, _BLANK, _LINE_FEED = (ord(sign) for sign in "<>!/? \n")

_DEEPEST = 64  # open elements of drawings that are told apart
_IN_SVG, _IN_MATH, _IN_POINT = 1, 2, 3  # at a point of integration a drawing holds HTML
_NO_LINK, _TOO_LONG = -1, -2
_THREE = nb.types.UniTuple(nb.int64, 3)

# numba's cache goes by the file in which a function stands and by what it closes over, not by what it calls: so
# the kernel closes over the text of the other two files.
_SOURCES = xxh32_intdigest((getsource(lexing) + getsource(names)).encode())


@nb.njit(nb.int64(nb.int64[::1], nb.int64), **SMALL)
def _outside(kinds, depth):  # type: ignore[no-untyped-def]
    """How many elements stay open when all of the innermost drawing are closed."""
    while depth and kinds[depth - 1] != _IN_POINT:
        depth -= 1
    return depth


@nb.njit(nb.types.Tuple((nb.uint64, nb.int64))(TEXT, nb.int64, nb.int64), **SMALL)
def _read_name(text, i, n):  # type: ignore[no-untyped-def]
    """The hash of the name of a tag, in any case, and where the name ends."""
    value = np.uint64(BASIS)
    while i < n and not CLASS[text[i]] & ENDS_NAME:
        value = (value ^ LOWER[text[i]]) * np.uint64(PRIME)
        i += 1
    return value, i


@nb.njit(nb.int64(nb.uint64), **SMALL)
def _code_of(value):  # type: ignore[no-untyped-def]
    """The number of a name, by its hash; 0 for one that means nothing here."""
    slot = value % np.uint64(len(TAG_HASHES))
    while TAG_HASHES[slot] != 0 and TAG_HASHES[slot] != value:
        slot = (slot + np.uint64(1)) % np.uint64(len(TAG_HASHES))
    return TAG_NUMBERS[slot] if TAG_HASHES[slot] == value else 0


@nb.njit(nb.boolean(TEXT, nb.int64, nb.int64), **SMALL)
def _is_blank(text, i, end):  # type: ignore[no-untyped-def]
    """Whether there is nothing but white space."""
    while i < end and CLASS[text[i]] & SPACE:
        i += 1
    return i >= end


@nb.njit(nb.int64(nb.uint8[::1], nb.int64), **SMALL)
def _begin_line(plain, written):  # type: ignore[no-untyped-def]
    """A block begins or ends: what follows stands in a line of its own."""
    if 0 < written < len(plain) and plain[written - 1] != _LINE_FEED:
        written -= plain[written - 1] == _BLANK
        plain[written] = _LINE_FEED
        written += 1
    return written


@nb.njit(nb.int64(nb.int64, nb.int64, nb.boolean), **SMALL)
def _count_frameset(framesets, code, closing):  # type: ignore[no-untyped-def]
    """How many framesets are open after a tag within one; -1 behind the last, where nothing counts any more."""
    if code == _FRAMESET and framesets > 0:
        framesets += -1 if closing else 1
        if not framesets:
            framesets = -1
    return framesets


@nb.njit(_THREE(nb.uint64[::1], nb.int64[::1], nb.int64, nb.int64, nb.uint64, nb.boolean), **SMALL)
def _close_drawing(names, kinds, depth, beyond, value, ends_all):  # type: ignore[no-untyped-def]
    """The end of an element, perhaps of a drawing: what is open then, and whether it was one of these.

    The end of an element around the drawing (`ends_all`) ends that too; a stray one is ignored.
    """
    if beyond:
        return depth, beyond - 1, 0
    k = depth - 1
    while k >= 0 and names[k] != value:
        k -= 1
    if k >= 0:
        return k, 0, 1
    return _outside(kinds, depth) if ends_all else depth, 0, 0


@nb.njit(
    _THREE(nb.uint64[::1], nb.int64[::1], nb.int64, nb.int64, nb.int64, nb.uint64, nb.int64, nb.int64),
    **SMALL,
)
def _open_drawing(names, kinds, depth, beyond, drawing, value, code, kind):  # type: ignore[no-untyped-def]
    """An element within a drawing, or one that begins it: what is open then, and in which drawing we are."""
    if depth >= _DEEPEST:
        return depth, beyond + 1, drawing
    point = kind & (IS_SVG_POINT if drawing == _IN_SVG else IS_MATH_POINT)
    if not drawing:
        drawing = _IN_SVG if code == _SVG else _IN_MATH
        point = 0
    names[depth] = value
    kinds[depth] = _IN_POINT if point else drawing
    return depth + 1, beyond, drawing


@nb.njit(nb.int64(TEXT, WORDS, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64), **SMALL)
def _raw_text_end(text, words, i, n, name, length, code):  # type: ignore[no-untyped-def]
    """Where what is no markup ends: behind the end tag of the element, whose name stands at `name`."""
    if code == _SCRIPT:
        return script_end(text, words, i, n, name)
    return raw_end(text, words, i, n, name, length)


@nb.njit(nb.int64(TEXT, nb.int64[::1], nb.uint8[::1], nb.int64, nb.int64), **SMALL)
def _write_href(text, spans, out, used, longest):  # type: ignore[no-untyped-def]
    """Write the link of a tag, if it has one that counts: where the lines end then; `_NO_LINK`, or `_TOO_LONG`."""
    if spans[_HREF] < 0 or is_nofollow(text, spans[_REL], spans[_REL + 1]):
        return _NO_LINK
    if spans[_HREF + 1] - spans[_HREF] > longest:
        return _TOO_LONG
    return write_link(text, spans[_HREF], spans[_HREF + 1], out, used)


def _compile(sources: int) -> Any:
    @nb.njit(
        nb.types.UniTuple(nb.int64, 5)(
            TEXT, WORDS, nb.uint8[::1], nb.int64[:, ::1], nb.uint8[::1], nb.int64, nb.int64
        ),
        nogil=True,
        cache=True,
    )
    def scan(text, words, out, rows, plain, want, longest):  # type: ignore[no-untyped-def]
        n = len(text)
        spans = np.full(ROW, -1, np.int64)
        stack_name = np.empty(_DEEPEST, np.uint64)
        stack_kind = np.empty(_DEEPEST, np.int64)
        opened = np.zeros(len(KIND), np.int64)  # elements of HTML, by name
        i = used = filled = written = left = too_long = sources & 0
        depth = beyond = templates = framesets = 0  # beyond: open elements of drawings that found no place
        may_frame, had_title, in_form, anchor = True, False, False, -1
        while i < n:
            # The text before the next <.
            p = find(text, words, i, n, _LT)
            drawing = stack_kind[depth - 1] if depth and stack_kind[depth - 1] != _IN_POINT else 0
            shown = want & WANT_TEXT and not templates and not framesets and not drawing
            if shown:
                written = write_text(text, i, p, plain, written)
            may_frame = may_frame and _is_blank(text, i, p)
            if p + 1 >= n:
                break

            # What is no tag: declarations, comments, a < that stands alone.
            c = text[p + 1]
            if c == _BANG:
                i = declaration_end(text, words, p, n, depth > 0)
                continue
            closing = c == _SLASH
            name = p + 2 if closing else p + 1
            if name >= n:
                break
            c = text[name]
            if not CLASS[c] & LETTER:
                if closing or c == _QUERY:  # </> is nothing, all else up to > is a comment
                    i = min(n, find(text, words, name, n, _GT) + 1)
                else:
                    i = p + 1
                    may_frame = False
                    if shown:
                        written = write_text(text, p, i, plain, written)
                continue

            # The tag: its name and its attributes.
            value, i = _read_name(text, name, n)
            length, code = i - name, _code_of(value)
            kind = KIND[code]
            is_row = kind & IS_ROW or (kind & IS_REQUISITE and want & WANT_REQUISITES)
            # Any tag may have a background or a style.
            is_noted = (
                (is_row or code in (_A, _AREA) or want & WANT_REQUISITES) and not closing and not templates
            )
            if is_noted:
                spans[:] = -1
            after = read_attributes(text, words, i, n, spans, is_noted)
            if after == 0:
                break  # the page ends inside a tag, which is then none
            i = abs(after)

            # In framesets nothing but frames counts, and nothing at all behind them.
            if framesets and (code != _FRAME or closing or framesets < 0):
                framesets = _count_frameset(framesets, code, closing)
                if code == _NOFRAMES and not closing:
                    i = raw_end(text, words, i, n, name, length)
                continue
            if shown and kind & IS_BLOCK:
                written = _begin_line(plain, written)

            # The end of an element.
            if closing:
                if depth:
                    ends = opened[code] or code in (_P, _BR) or (code == _TEMPLATE and templates)
                    depth, beyond, was_inside = _close_drawing(
                        stack_name, stack_kind, depth, beyond, value, drawing and ends
                    )
                    if was_inside:
                        continue
                if kind & IS_HTML and opened[code]:
                    opened[code] -= 1
                if code == _TEMPLATE and templates:
                    templates -= 1
                elif code == _FORM:
                    in_form = False
                elif code == _A and anchor >= 0:
                    rows[anchor, CONTENT + 1] = p
                    anchor = -1
                continue

            # The beginning of an element, of a drawing or of HTML.
            if drawing and kind & IS_BREAKOUT:
                depth, beyond, drawing = _outside(stack_kind, depth), 0, 0
            if drawing or code in (_SVG, _MATH):
                if after > 0:  # not closed by itself
                    depth, beyond, drawing = _open_drawing(
                        stack_name, stack_kind, depth, beyond, drawing, value, code, kind
                    )
                if code == _A and spans[_HREF] < 0:
                    spans[_HREF], spans[_HREF + 1] = spans[_XLINK], spans[_XLINK + 1]
                elif code != _A and not (code in (_IMAGE, _USE) and is_row):
                    continue
            elif kind & IS_HTML:
                opened[code] += 1
            if kind & IS_BODY:
                may_frame = False

            if code == _TEMPLATE:
                templates += 1
            elif code == _FRAMESET:
                framesets += may_frame and not templates
            elif code == _PLAINTEXT:
                break
            start = i
            if kind & IS_RAW and not drawing:
                i = _raw_text_end(text, words, i, n, name, length, code)
            if templates:
                continue

            # What is noted of it: a link is a line, other tags of interest are rows.
            styled = False
            if want & WANT_REQUISITES:
                styled = spans[_BACKGROUND] >= 0 or calls(text, spans[STYLE], spans[STYLE + 1])
            noted = code  # what the row is of; 0 when only its style or background counts
            line = used
            if code in (_A, _AREA):
                if code == _A and anchor >= 0:
                    rows[anchor, CONTENT + 1] = p
                    anchor = -1
                end = _write_href(text, spans, out, used, longest)
                too_long += end == _TOO_LONG
                used = max(used, end)
                if end < 0 or not want & WANT_ANCHORS or code == _AREA:
                    noted = 0
            elif code == _FORM:
                if in_form or not want & WANT_FORMS:
                    noted = 0
                else:
                    in_form = True
            elif code == _TITLE:
                if had_title:
                    continue
                had_title = True
                spans[:] = -1
            elif not is_row or (code == _FRAME and not framesets):
                noted = 0
            if not noted and not styled:
                continue
            if filled == len(rows):
                left += 1
                continue
            if noted in (_TITLE, _STYLE, _A):
                spans[CONTENT], spans[CONTENT + 1] = start, n if noted == _A else i
            if noted == _A:
                anchor = filled
            rows[filled] = spans
            rows[filled, 0], rows[filled, 1] = noted, line
            filled += 1
        return used, filled, written, left, too_long

    return scan


scan = _compile(_SOURCES)
"""Read a page in UTF-8, or in any charset of single bytes: `scan(text, words, out, rows, plain, want, longest)`.

Gives counts: bytes of `out`, rows, bytes of `plain`, rows left out, links of more than `longest` bytes. `words` is the same
memory as `text`, eight bytes at a time. `out` must be longer than the text; `rows` and `plain` are filled as far as they go.
"""
