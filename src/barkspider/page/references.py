"""Character references in attribute values, which differ from those in text.

In `?a=1&copy=2` nothing stands for ©: within an attribute a name without its semicolon is left alone when
`=`, a letter or a digit follows (HTML standard, section 13.2.5.73).
"""

from __future__ import annotations

import re
from html.entities import html5

# Every alternative begins with what no other begins with, and repeats possessively: linear.
_REFERENCE = re.compile(r"&(?:#(?:[xX]([0-9a-fA-F]++)|([0-9]++));?|([A-Za-z][A-Za-z0-9]*+);?)")
_REPLACED = dict(enumerate(bytes(range(0x80, 0xA0)).decode("cp1252", "replace"), 0x80))
_LONGEST = 7  # digits of the largest code point; more are out of range


def unescape_attribute(value: str) -> str:
    """The value of an attribute as a browser reads it.

    >>> unescape_attribute("?a=1&amp;b=2&copy=3&eacute;&#x20AC;&#128;&notit;")
    '?a=1&b=2&copy=3é€€&notit;'
    """
    return _REFERENCE.sub(_resolve, value)


def _resolve(match: re.Match[str]) -> str:
    hexadecimal, decimal, name = match.groups()
    if name is not None:
        text = match[0]
        if text[-1] == ";":
            return html5.get(text[1:], text)
        followed = match.string[match.end() : match.end() + 1] == "="
        return text if followed else html5.get(name, text)
    digits = (hexadecimal or decimal).lstrip("0") or "0"
    number = int(digits, 16 if hexadecimal else 10) if len(digits) <= _LONGEST else 0
    if number == 0 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
        return "\ufffd"
    replaced = _REPLACED.get(number)
    return chr(number) if replaced in (None, "\ufffd") else replaced
