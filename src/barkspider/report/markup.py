"""HTML made of texts that others wrote: everything is escaped here, and nowhere else.

A `Markup` is a piece of HTML; any other text becomes one by being escaped. So what a page, a server or a job says cannot become
part of a page by being forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Any, NewType

Markup = NewType("Markup", str)

_LONG, _MANY = 24, 60  # letters of a word, and of all words of a cell, that it has room for as it is
_TAGS = re.compile(r"<[^>]*>")
# Controls, those of writing direction, and halves of characters, which no file can hold.
_CONTROLS = dict.fromkeys(
    (*range(9), 11, 12, *range(14, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "�"
) | dict.fromkeys(range(0xD800, 0xE000), "�")


def text(value: Any) -> Markup:
    """A value as text within HTML or a quoted attribute: controls, also those of writing direction, are shown as such.

    >>> text('<script>"\\u202e'), text(None), text(1234)
    ('&lt;script&gt;&quot;�', '', '1,234')
    """
    if value is None:
        return Markup("")
    if isinstance(value, bool):
        return Markup("yes" if value else "no")
    if isinstance(value, int):
        return Markup(f"{value:,}")
    if isinstance(value, datetime):
        return Markup(f"{value:%Y-%m-%d %H:%M:%S}")
    return Markup(escape(str(value).translate(_CONTROLS)))


def join(parts: Iterable[Markup], between: str = "") -> Markup:
    """Pieces one behind the other."""
    return Markup(between.join(parts))


def table(
    heads: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Sequence[int] = (), name: str = ""
) -> Markup:
    """Rows under heads; the columns in `numbers` stand to the right. Cells are escaped unless they are `Cell`s.

    >>> table(["a"], [["<b>"]])
    '<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table></div>'
    """
    right = frozenset(numbers)
    kind = [' class="n"' if place in right else "" for place in range(len(heads))]
    head = "".join(f'<th scope="col"{kind[place]}>{text(each)}</th>' for place, each in enumerate(heads))
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind[place] or _kind(each)}>{_cell(each)}</td>" for place, each in enumerate(row))
        + "</tr>"
        for row in rows
    )
    body = body or f'<tr><td class="note" colspan="{len(heads)}">nothing yet</td></tr>'
    caption = f"<caption>{text(name)}</caption>" if name else ""
    return Markup(
        f'<div class="scroll" tabindex="0"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


class Cell:
    """A cell that is HTML already."""

    __slots__ = ("markup",)

    def __init__(self, markup: Markup) -> None:
        self.markup = markup


def figure(picture: str, caption: str, note: str = "") -> Markup:
    """A drawing with what it shows."""
    more = f' <span class="note">{text(note)}</span>' if note else ""
    return Markup(f"<figure><figcaption>{text(caption)}{more}</figcaption>{picture}</figure>")


def _kind(value: Any) -> str:
    """Of a text cell: one with long words, which may be broken, or many of them gets some room."""
    words = _TAGS.sub("", value.markup) if isinstance(value, Cell) else value
    long = isinstance(words, str) and (len(words) > _MANY or any(len(word) > _LONG for word in words.split()))
    return ' class="long"' if long else ""


def _cell(value: Any) -> Markup:
    if isinstance(value, datetime):
        return Markup(f"<time>{text(value)}</time>")
    return value.markup if isinstance(value, Cell) else text(value)
