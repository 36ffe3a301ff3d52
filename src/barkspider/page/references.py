"""Character references in attribute values, which differ from those in text.

In `?a=1&copy=2` nothing stands for ©: within an attribute a name without its semicolon is left alone when
`=`, a letter or a digit follows (HTML standard, section 13.2.5.73).
"""

from __future__ import annotations

import re
from html.entities import html5

# Every alternative begins with what no other begins with, and repeats possessively: linear. A `=` behind a name tells
# that it is none of a reference.
_REFERENCE = re.compile(r"(&(?:#(?:[xX][0-9a-fA-F]++|[0-9]++);?|[A-Za-z][A-Za-z0-9]*+[;=]?))")
_REPLACED = dict(enumerate(bytes(range(0x80, 0xA0)).decode("cp1252", "replace"), 0x80))
_LONGEST = 7  # digits of the largest code point; more are out of range
_MOST_KNOWN, _LONGEST_KNOWN = (
    10_000,
    40,
)  # references that are remembered, 1 MB; their letters: no name has more


def unescape_attribute(value: str) -> str:
    """The value of an attribute as a browser reads it.

    >>> unescape_attribute("?a=1&amp;b=2&copy=3&eacute;&#x20AC;&#128;&notit;")
    '?a=1&b=2&copy=3é€€&notit;'
    """
    parts = _REFERENCE.split(value)
    parts[1::2] = map(_KNOWN.__getitem__, parts[1::2])
    return "".join(parts)


class _Known(dict[str, str]):
    """What references stand for, as far as they came up: a page may hold a hundred thousand of them."""

    def __missing__(self, reference: str) -> str:
        text = _resolve(reference)
        if len(self) < _MOST_KNOWN and len(reference) <= _LONGEST_KNOWN:
            self[reference] = text
        return text


_KNOWN = _Known()


def _resolve(reference: str) -> str:
    if reference[1] != "#":
        return html5.get(reference[1:], reference)  # no name there has a `=`
    hexadecimal = reference[2] in "xX"
    digits = reference[3 if hexadecimal else 2 :].rstrip(";").lstrip("0") or "0"
    number = int(digits, 16 if hexadecimal else 10) if len(digits) <= _LONGEST else 0
    if number == 0 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
        return "\ufffd"
    replaced = _REPLACED.get(number)
    return chr(number) if replaced in (None, "\ufffd") else replaced
