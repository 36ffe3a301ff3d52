"""Path patterns as robots.txt writes them: a prefix, `*` for any text, `$` at the end for the end.

Matching takes the pieces between the stars from left to right, each at its first place after the one
before. That finds a match whenever there is one, so nothing is ever tried again and no pattern can make
it slow, as a regular expression could be made.
"""

from __future__ import annotations

import re

_LOWER_ESCAPE = re.compile(r"%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f])")
_UNRESERVED_ESCAPE = re.compile(r"%(2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])", re.IGNORECASE)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def upper_escapes(target: str) -> str:
    """Percent-escapes in capitals, so that `%aa` and `%AA` compare equal.

    >>> upper_escapes("/%e3%83%84/100%")
    '/%E3%83%84/100%'
    """
    return _LOWER_ESCAPE.sub(lambda match: match[0].upper(), target) if "%" in target else target


def plain_escapes(target: str) -> str:
    """Escapes of letters, digits and `-._~` undone: they mean the same as the characters (RFC 3986, 2.3).

    >>> plain_escapes("/%70rivate/%7Ea%2Fb")
    '/private/~a%2Fb'
    """
    return _UNRESERVED_ESCAPE.sub(lambda match: chr(int(match[1], 16)), target) if "%" in target else target


def escape(pattern: str) -> str:
    """A pattern as a canonical URL would spell it: anything but ASCII escaped, escapes in capitals.

    >>> escape("/ツ/%aa*")
    '/%E3%83%84/%AA*'
    """
    if not pattern.isascii():
        # Bytes that were no UTF-8 were read as lone surrogates and become themselves again.
        pattern = _NOT_ASCII.sub(
            lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape")),
            pattern,
        )
    return upper_escapes(pattern)


class PathPattern:
    """One pattern, taken apart once.

    `text` is the pattern with its escapes as in canonical URLs, and makes the same pattern again; its `length`
    decides between rules. `head` is what every match begins with; `literal` is the same when that is all the
    pattern asks for, else None.

    >>> PathPattern("/fish*.php$").matches("/fishheads/catfish.php")
    True
    >>> PathPattern("/fish*.php$").matches("/fish.php?parameters")
    False
    >>> PathPattern("/fish").literal, PathPattern("/fish*").literal, PathPattern("/*.gif").literal
    ('/fish', '/fish', None)
    """

    __slots__ = ("_exact", "_middle", "_tail", "head", "length", "literal", "text")

    def __init__(self, pattern: str) -> None:
        self.text = pattern = escape(pattern)
        self.length = len(pattern)
        anchored = pattern.endswith("$")
        head, *pieces = (pattern[:-1] if anchored else pattern).split("*")
        self.head = head
        self._exact = head if anchored and not pieces else None
        self._tail = pieces.pop() if anchored and pieces else ""
        self._middle = [piece for piece in pieces if piece]
        self.literal = head if not anchored and not self._middle else None

    def matches(self, target: str) -> bool:
        """Whether a path and query, with its escapes in capitals, fits."""
        if self._exact is not None:
            return target == self._exact
        if not target.startswith(self.head):
            return False
        at = len(self.head)
        for piece in self._middle:
            at = target.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        # Without `$` the tail is empty and always fits.
        return len(target) - len(self._tail) >= at and target.endswith(self._tail)
