"""Path patterns as robots.txt writes them: a prefix, `*` for any text, `$` at the end for the end.

Matching takes the pieces between the stars from left to right, each at its first place after the one
before. That finds a match whenever there is one, so nothing is ever tried again and no pattern can make
it slow, as a regular expression could be made: `PathPattern.work` says what it takes at most.
"""

from __future__ import annotations

import re
from itertools import pairwise, product
from string import hexdigits

_LOWER_ESCAPE = re.compile(r"(%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f]))")
# Of `*` and `$`, and of the marks that need no escape, `-._~`.
_LITERAL_ESCAPE = re.compile(r"%(2[4ADE]|5F|7E)", re.IGNORECASE)
_LETTER_ESCAPE = re.compile(r"%(3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])", re.IGNORECASE)
# Of what divides a URL (RFC 3986, 2.2), but for `*` and `$`.
_DIVIDER_ESCAPE = re.compile(r"%(2[1367-9BCF]|3[ABDF]|40|5[BD])", re.IGNORECASE)
_QUERY = re.compile(r"[?*]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_CHARACTERS = {first + second: chr(int(first + second, 16)) for first, second in product(hexdigits, repeat=2)}
# What finding a piece costs beside the letters it goes over, in letters; and how long a pattern makes each cost one more.
_FIND, _PIECE = 50, 32
_SIGNS = 9  # pieces and letters of a pattern that are looked at to tell it from others


def upper_escapes(target: str) -> str:
    """Percent-escapes in capitals, so that `%aa` and `%AA` compare equal.

    >>> upper_escapes("/%e3%83%84/100%")
    '/%E3%83%84/100%'
    """
    if "%" not in target:
        return target
    parts = _LOWER_ESCAPE.split(target)
    parts[1::2] = map(str.upper, parts[1::2])
    return "".join(parts)


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
    parts = escapes.split(text)  # a third of the time of `sub` with a function: a URL may be all escapes
    parts[1::2] = map(_CHARACTERS.__getitem__, parts[1::2])
    return "".join(parts)


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
    that is all the pattern asks for, `exact` when it is all of a match, else they are None. `%2A` and `%24` are the
    characters themselves.

    >>> PathPattern("/fish*.php$").matches("/fishheads/catfish.php")
    True
    >>> PathPattern("/fish*.php$").matches("/fish.php?parameters")
    False
    >>> PathPattern("/fish-%2A$").matches("/fish-*")
    True
    >>> PathPattern("/fish").literal, PathPattern("/fish*").literal, PathPattern("/*.gif").literal
    ('/fish', '/fish', None)
    """

    __slots__ = ("_middle", "_tail", "exact", "head", "length", "literal", "text")

    def __init__(self, pattern: str) -> None:
        self.text = pattern = escape(pattern)
        self.length = len(comparable(pattern))
        anchored = pattern.endswith("$")
        head, *pieces = map(comparable, (pattern[:-1] if anchored else pattern).split("*"))
        self.head = head
        self.exact = head if anchored and not pieces else None
        self._tail = pieces.pop() if anchored and pieces else ""
        self._middle = [piece for piece in pieces if piece]
        self.literal = head if not anchored and not self._middle else None

    def work(self) -> tuple[int, int]:
        """What a match takes at most, in letters gone over: so many, and so many more for each of the target's, because
        each piece is looked for where the last one ended.

        >>> PathPattern("/*a*b").work(), PathPattern("/a$").work()
        ((150, 1), (50, 1))
        """
        return _FIND * (1 + self.text.count("*")), 1 + len(self.text) // _PIECE

    def signs(self) -> list[str]:
        """Some texts of one or two letters, each of which all that matches has.

        >>> PathPattern("/*abc*d").signs(), PathPattern("/*").signs()
        (['ab', 'bc'], ['/'])
        """
        piece = max((*self._middle[:_SIGNS], self._tail, self.head), key=len)[:_SIGNS]
        return list(map("".join, pairwise(piece))) or list(piece)

    def matches(self, target: str) -> bool:
        """Whether a path and query fits, as `comparable` gives it."""
        if self.exact is not None:
            return target == self.exact
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
