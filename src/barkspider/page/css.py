"""What a style sheet needs: `url()` and `@import`, where they are tokens and not part of a comment or a string.

The expression below goes from one to the next by the tokens of CSS (CSS Syntax Level 3, section 4), as far as these
decide where an address begins and ends. Its alternatives exclude each other and repeat possessively, and a sheet is
matched from where the last match ended, never searched: so nothing is read twice, and the time is linear in the
sheet, whatever it holds. A match takes a thousand tokens at most, because other threads wait while it lasts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANK = r"[ \t\n]"
_HEX = r"[0-9a-fA-F]"
_NUMBERED = rf"{_HEX}{{1,6}}+{_BLANK}?+"
_ESCAPE = rf"\\(?:{_NUMBERED}|[^\n0-9a-fA-F])"
_SIGN = rf"(?:[-\w\x80-\U0010ffff]|{_ESCAPE})"  # of a name, and of a number with its unit
_COMMENT = r"/\*(?:[^*]++|\*(?!/))*+(?:\*/)?+"
# Without its closing quote a string ends with the line, and is no address unless the sheet ends there, too.
_IN_STRING = rf"\\(?:{_NUMBERED}|[^0-9a-fA-F]|\Z)"
_DOUBLE, _SINGLE = (rf"{quote}(?:[^{quote}\\\n]++|{_IN_STRING})*+" for quote in "\"'")
_STRING = rf"(?:{_DOUBLE}\"?+|{_SINGLE}'?+)"
_QUOTED = rf"(?:({_DOUBLE})(?:\"|\Z)|({_SINGLE})(?:'|\Z))"


def _word(name: str) -> str:
    """A name in any case, each letter of which may be escaped, as itself or by its number."""
    letters = []
    for letter in name:
        itself = "" if letter in "abcdef" else rf"|\\{letter}"
        number = rf"\\0{{0,4}}+(?:{ord(letter.upper()):x}|{ord(letter):x})(?:{_BLANK}|(?!{_HEX}))"
        letters.append(f"(?:{letter}{itself}|{number})")
    return f"(?i:{''.join(letters)})"


_URL = rf"{_word('url')}\("
# An address without quotes ends at white space or `)`; with anything else before that `)` it is none.
_PLAIN = rf"(?:[^\s\"'()\\\x00-\x08\x0e-\x1f\x7f]++|{_ESCAPE})*+"
_BAD = r"(?:[^)\\]++|\\[\s\S]?+)*+\)?+"
_IMPORT = rf"@{_word('import')}(?!{_SIGN})"
_NAMESPACE = rf"@{_word('namespace')}(?!{_SIGN})"  # its address is a name, which nobody fetches
_TO_THE_NEXT = re.compile(
    rf"""(?:
          [^-\w"'/@\\#<\x80-\U0010ffff]++
        | {_COMMENT} | /(?!\*) | {_STRING} | (?!{_URL}){_SIGN}++ | \#{_SIGN}*+ | <(?:!--)?+ | \\(?=\n|\Z)
        | {_NAMESPACE}(?:{_COMMENT} | {_STRING} | [^;"'])*+
        | (?:@(?![iI][mM\\]|[nN][aA\\]|\\))++{_SIGN}*+ | (?!{_IMPORT}|{_NAMESPACE})@{_SIGN}*+
    ){{0,1000}}+
    (?: {_IMPORT}(?:{_BLANK}|{_COMMENT})*+{_QUOTED}?
        | {_URL}{_BLANK}*+(?: {_QUOTED} | (?=["']) | ({_PLAIN}){_BLANK}*+(?:\)|\Z) | {_BAD} )
    )?""",
    re.ASCII | re.VERBOSE,
)
_ESCAPED = re.compile(rf"\\(?:({_HEX}{{1,6}}){_BLANK}?|\n|([\s\S])|\Z)")
_LINE_ENDS = re.compile(r"\r\n?|\f")


def style_urls(style: str, longest: int = 1 << 20) -> Iterator[str]:
    r"""The addresses in a style sheet, in order, as often as they stand there. One of more than `longest` characters is
    given as it stands there.

    >>> list(style_urls("@import 'a.css'; /* url(no) */ p { background: URL( b.png ) } q { content: 'url(no)' }"))
    ['a.css', 'b.png']
    >>> list(style_urls(r'@font-face { src: url("c d\".woff"), url(e\(1\).woff) } @namespace url(no);'))
    ['c d".woff', 'e(1).woff']
    """
    style = _LINE_ENDS.sub("\n", style)
    place = 0
    while place < len(style):
        found = _TO_THE_NEXT.match(style, place)
        if found is None or found.end() == place:  # cannot be: every sign begins one of the alternatives
            return
        place = found.end()
        if found.lastindex:
            text = found[found.lastindex]
            text = text[1:] if text[:1] in ('"', "'") else text
            yield text if len(text) > longest or "\\" not in text else _ESCAPED.sub(_unescape, text)


def _unescape(escaped: re.Match[str]) -> str:
    number, sign = escaped.groups()
    if number is None:
        return sign or ""  # a line end within a string is nothing
    code = int(number, 16)
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\ufffd"
