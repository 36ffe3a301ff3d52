"""The one way to standard output and standard error: what pages, servers and job folders say moves no cursor.

    for people ─► `say`, `screen` ─► escaped, wherever it goes
    for programs ─► `output`, `put`, `say_json` ─► exact; escaped where the output is a terminal after all

A title or a URL may hold escape sequences that rename a window, hide lines or type commands, letters that reverse what
follows, or markup of the library that draws tables. No other module of `cli` prints.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# What separates words in some language, and does nothing else.
_SPACES = frozenset(
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)


def printable(value: Any) -> str:
    """A value as text without anything that a terminal would obey: controls, also those of C1, of writing direction and
    of lines, become escapes.

    >>> printable("a\\x1b[31m"), printable("\\x9b1m \\u202e"), printable(None), printable(1234)
    ('a\\\\x1b[31m', '\\\\x9b1m \\\\u202e', '', '1234')
    """
    if value is None:
        return ""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in _SPACES else c.encode("unicode_escape").decode() for c in text
    )


def lines(text: str) -> str:
    """As `printable`, but for tabs and the ends of lines.

    >>> lines("a\\tb\\r\\nc\\x07")
    'a\\tb\\nc\\\\x07'
    """
    rows = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(printable, row.split("\t"))) for row in rows)


def say(text: str, *, error: bool = False, end: str = "\n", at_once: bool = False) -> None:
    """Lines for people; `at_once` they are not kept until there are more."""
    print(lines(text), file=sys.stderr if error else sys.stdout, end=end, flush=error or at_once)


def is_watched() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()


def complain(message: str) -> None:
    """What was wrong, as one line."""
    say("barkspider: " + printable(" ".join(message.split())), error=True)


def say_json(value: Any) -> None:
    """One JSON value for programs, in ASCII without controls."""
    print(in_json(value))


def in_json(value: Any) -> str:
    """The text of `say_json`.

    >>> in_json(["\\x7f\\x1b"])
    '["\\\\u007f\\\\u001b"]'
    """
    return json.dumps(value).replace("\x7f", "\\u007f")


def output() -> TextIO:
    """Standard output for text that programs read."""
    return cast("TextIO", _Screen()) if sys.stdout.isatty() else sys.stdout


def put(data: bytes, text: str | None = None) -> None:
    """Bytes that programs read; for a terminal the `text` that they are, or what they are in UTF-8."""
    if sys.stdout.isatty():
        say(data.decode("utf-8", "backslashreplace") if text is None else text, end="")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def screen(*, error: bool = False, width: int | None = None) -> Console:
    """What draws tables and colours; texts that it is given are shown as they are."""
    from rich.console import Console

    class Plain(Console):
        """Knows no markup, and escapes."""

        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(lines(text), **{**options, "markup": False, "emoji": False})

    return Plain(stderr=error, width=width, highlight=False)


def styled(text: str, style: str = "", *, overflow: Any = None) -> Text:
    """A text in a style of our choice."""
    from rich.text import Text

    return Text(lines(text), style, overflow=overflow)


def prepare() -> None:
    """Make sure of three open streams (uvloop aborts without them) that can write any text."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def leave() -> None:
    """The reader of our output has left: no further word."""
    sys.stderr.close()


class _Screen(io.TextIOBase):
    """A terminal in the place of a file."""

    def write(self, text: str, /) -> int:
        say(text, end="")
        return len(text)
