"""Path patterns as robots.txt writes them: a prefix, `*` for any text, `$` at the end for the end.

Matching takes the pieces between the stars from left to right, each at its first place after the one
before. That finds a match whenever there is one, so nothing is ever tried again and no pattern can make
it slow, as a regular expression could be made.
"""

from __future__ import annotations

import re

_LOWER_ESCAPE = re.compile(r"%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f])")
# Of `*` and `$`, and of the marks that need no escape, `-._~`.
_LITERAL_ESCAPE = re.compile(r"%(2[4ADE]|5F|7E)", re.IGNORECASE)
_LETTER_ESCAPE = re.compile(r"%(3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])", re.IGNORECASE)
# Of what divides a URL (RFC 3986, 2.2), but for `*` and `$`.
_DIVIDER_ESCAPE = re.compile(r"%(2[1367-9BCF]|3[ABDF]|40|5[BD])", re.IGNORECASE)
_QUERY = re.compile(r"[?*]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def upper_escapes(target: str) -> str:
    """Percent-escapes in capitals, so that `%aa` and `%AA` compare equal.

    >>> upper_escapes("/%e3%83%84/100%")
    '/%E3%83%84/100%'
    """
    return _LOWER_ESCAPE.sub(lambda match: match[0].upper(), target) if "%" in target else target


def comparable(target: str) -> str:
    """A path and query as patterns are compared with it: `*`, `$` and `-._~` in no escapes, others in capitals.

    So `/~a` and `/%7Ea` are the same (RFC 9309, 2.2.2), and an escape can stand for a `*` that is none of the
    pattern's own (2.2.3).

    >>> comparable("/%7ea/%2A/%2f")
    '/~a/*/%2F'
    """
    return upper_escapes(_undo(_LITERAL_ESCAPE, target)) if "%" in target else target


def plain_escapes(target: str) -> str:
    """The second reading of a pattern or a target: escapes of letters and digits undone, too, and, where it may

    be the query that is read, those of what divides URLs (RFC 9309, 2.2.2 and its table).

    >>> plain_escapes("/%70rivate/a%2Fb?to=http%3A%2F%2Fc.org")
    '/private/a%2Fb?to=http://c.org'
    """
    if "%" not in target:
        return target
    target = _undo(_LETTER_ESCAPE, target)
    query = _QUERY.search(target)
    return target[: query.end()] + _undo(_DIVIDER_ESCAPE, target[query.end() :]) if query else target


def _undo(escapes: re.Pattern[str], text: str) -> str:
    return escapes.sub(lambda match: chr(int(match[1], 16)), text)


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

    `text` is the pattern with its escapes as in canonical URLs, and makes the same pattern again; its `length`,
    as it is compared, decides between rules. `head` is what every match begins with; `literal` is the same when
    that is all the pattern asks for, else None. `%2A` and `%24` are the characters themselves.

    >>> PathPattern("/fish*.php$").matches("/fishheads/catfish.php")
    True
    >>> PathPattern("/fish*.php$").matches("/fish.php?parameters")
    False
    >>> PathPattern("/fish-%2A$").matches("/fish-*")
    True
    >>> PathPattern("/fish").literal, PathPattern("/fish*").literal, PathPattern("/*.gif").literal
    ('/fish', '/fish', None)
    """

    __slots__ = ("_exact", "_middle", "_tail", "head", "length", "literal", "text")

    def __init__(self, pattern: str) -> None:
        self.text = pattern = escape(pattern)
        self.length = len(comparable(pattern))
        anchored = pattern.endswith("$")
        head, *pieces = map(comparable, (pattern[:-1] if anchored else pattern).split("*"))
        self.head = head
        self._exact = head if anchored and not pieces else None
        self._tail = pieces.pop() if anchored and pieces else ""
        self._middle = [piece for piece in pieces if piece]
        self.literal = head if not anchored and not self._middle else None

    def matches(self, target: str) -> bool:
        """Whether a path and query fits, as `comparable` gives it."""
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
