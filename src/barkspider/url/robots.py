"""robots.txt: what a site asks of us (RFC 9309, with the tolerance that real files need).

Viúva Negra found 64% of these files not compliant (section 4.5), so common slips are read as they were
meant; a rule is repaired only to forbid, never to allow. Where the RFC leaves room, verdicts are those of
Google's published parser: groups of the same agent are merged, the longest rule wins, Allow wins a tie, and
`Allow: /x/index.html` also allows `/x/`.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Self

from barkspider.core.errors import UrlError
from barkspider.url.parse import origin as origin_of
from barkspider.url.parse import parse
from barkspider.url.patterns import PathPattern, comparable, escape, plain_escapes

# RFC 9309, section 2.5: at least 500 kibibytes must be read. No setting: reading less would break the standard,
# and who needs more than that to say what we may not do would not be served by us reading on.
MAX_SIZE = 500 * 1024
# As in Google's parser: eight times the longest URL of old browsers, less the end of the line. The rest is cut.
_MAX_LINE = 2083 * 8 - 1
# A site needs one, and that one can name 50,000 others (sitemaps.org); longer ones are no URLs of ours.
_MAX_SITEMAPS = 100
_MAX_SITEMAP = 2048
# Rules with wildcards, and stars in them: they take memory, and 500 KiB hold 27,000 or a quarter of a million. No file that
# we have seen of 14,606 has more than these. Of rules that follow, the beginning up to the wildcard is forbidden: who writes so
# many must not keep us busy, and we must not go where we were not wanted.
_MAX_WILD, _MAX_STARS = 2_000, 4_000
# What judging a URL may take, in letters gone over: some 60 µs. That is enough for 200 patterns and a URL of 100 letters;
# where it is not, only patterns are tried that have something in common with the URL, and if even these are too many it
# is forbidden.
_MOST_WORK = 30_000
_USUAL_LENGTH = 100
_LOOK = 50  # to see that a target begins in another way than a pattern
# Verdicts that took longer, for a URL is judged when it is queued and when its turn comes: 16 MB.
_REMEMBERED = 8192
# Trying each of more prefixes than this costs more than it saves.
_MANY_PREFIXES = 200

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}  # what editors of Windows call Unicode
_MARKUP = (b"<!doctype", b"<html", b"<head", b"<body", b"<?xml")

_ALLOW, _DISALLOW, _AGENT, _DELAY, _SITEMAP = range(5)
_FIELDS = (
    {"allow": _ALLOW, "sitemap": _SITEMAP, "site-map": _SITEMAP}
    | dict.fromkeys(("user-agent", "useragent", "user agent", "user_agent", "user-agents"), _AGENT)
    | dict.fromkeys(("crawl-delay", "crawldelay", "crawl delay", "crawl_delay"), _DELAY)
    | dict.fromkeys(("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), _DISALLOW)
    | dict.fromkeys(("disallows", "disallowed", "dis-allow"), _DISALLOW)
)
_WHOLE_URL = re.compile(r"(https?://[^/?]*)/?(.*)", re.IGNORECASE | re.DOTALL)
_TOKEN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")

# How rules are kept: Crawl-delay (NaN for none), how many rules of each kind there are, bytes of a length.
_KEPT = struct.Struct("<d4IB")
_KEPT_ALL_FORBIDDEN = b"/"
_WIDTHS = {1: "B", 2: "H", 4: "I"}

_Wild = list[tuple[int, bool, PathPattern]]


class RobotsRules:
    """The rules of one origin for one agent. Immutable once made.

    `crawl_delay` is in seconds, as the site wrote it; `sitemaps` are URLs as written, for all agents.

    >>> rules = RobotsRules.parse(b"User-agent: *\\nDisallow: /private\\nCrawl-delay: 2\\n", "barkspider")
    >>> rules.allows("/public"), rules.allows("/private/x"), rules.crawl_delay
    (True, False, 2.0)
    """

    __slots__ = (
        "_exact",
        "_index",
        "_lengths",
        "_literals",
        "_plain",
        "_prefixes",
        "_starred",
        "_wild",
        "_work",
        "crawl_delay",
        "sitemaps",
    )

    def __init__(
        self,
        rules: Iterable[tuple[bool, str]] = (),
        crawl_delay: float | None = None,
        sitemaps: tuple[str, ...] = (),
    ) -> None:
        """`rules` are pairs of "is it Allow" and a non-empty pattern."""
        rules = list(rules)
        plain: RobotsRules | None = None
        if any("%" in text for _, text in rules):
            unescaped = [(allow, plain_escapes(text)) for allow, text in rules]
            plain = RobotsRules(unescaped) if unescaped != rules else None
        # Most rules are plain prefixes, kept in a dictionary; Allow wins between equals.
        literals: dict[str, bool] = {}
        wild: _Wild = []
        closed: list[str] = []  # beginnings of rules that are too many
        stars = 0
        for allow, text in rules:
            if "*" not in text and not text.endswith("$"):
                literal = comparable(escape(text))
                literals[literal] = allow or literals.get(literal, False)
                continue
            stars += text.count("*")
            if len(wild) < _MAX_WILD and stars <= _MAX_STARS:
                pattern = PathPattern(text)
                wild.append((pattern.length, allow, pattern))
            elif not allow:
                head, star, _ = text.partition("*")
                closed.append(comparable(escape(head if star else head[:-1])))
        for head in closed:
            literals.setdefault(head, False)
        wild.sort(key=lambda rule: rule[:2], reverse=True)
        self._arrange(literals, wild, plain, crawl_delay, sitemaps)

    def _arrange(
        self,
        literals: dict[str, bool],
        wild: _Wild,
        plain: RobotsRules | None,
        crawl_delay: float | None,
        sitemaps: tuple[str, ...] = (),
    ) -> Self:
        self.crawl_delay, self.sitemaps = crawl_delay, sitemaps
        self._literals, self._wild, self._plain = literals, wild, plain
        # `/a$` is looked up like a prefix; what is tried one by one are stars.
        self._exact = {
            pattern.exact: (length, allow)
            for length, allow, pattern in reversed(wild)
            if pattern.exact is not None
        }
        self._starred = [rule for rule in wild if rule[2].exact is None]
        self._work = 0, 0  # of all patterns
        for _, _, pattern in self._starred:
            fixed, each = pattern.work()
            self._work = self._work[0] + fixed, self._work[1] + each
        # Made now if usual URLs need it: files come one by one, URLs of many files together.
        self._index = _Index(self._starred) if self._takes_long(_USUAL_LENGTH) else None
        self._lengths = sorted({len(text) for text in self._literals}, reverse=True)
        # What no Disallow can match is allowed, and that is most of what is asked.
        prefixes = {text for text, allow in self._literals.items() if not allow}
        prefixes.update(pattern.head for _, allow, pattern in wild if not allow)
        self._prefixes = tuple(prefixes) if len(prefixes) <= _MANY_PREFIXES else ("",)
        return self

    @classmethod
    def parse(cls, body: bytes, agent: str, origin: str = "") -> RobotsRules:
        """Read the robots.txt of `origin` for the product name `agent`. Whatever it holds, this gives rules.

        A group is ours when it names our product, in any case (RFC 9309, 2.2.1); without one those for `*` are.
        A Disallow that is a whole URL counts where it is one of `origin`; those of others say nothing here.
        """
        body = content(body)
        if body[:1024].lstrip().lower().startswith(_MARKUP):
            return ALLOW_ALL
        groups = GroupCollector(agent, origin)
        for line in body.replace(b"\r", b"\n").split(b"\n"):
            groups.read(line)
        rules, delay = groups.rules(), groups.delay()
        if not rules and delay is None and not groups.sitemaps:
            return ALLOW_ALL  # many sites have a file that says nothing: they share one object
        return cls(rules, delay, tuple(groups.sitemaps))

    def allows(self, target: str) -> bool:
        """Whether the path and query of a canonical URL may be requested. About a microsecond.

        >>> RobotsRules([(False, "/"), (True, "/*.html$")]).allows("/a.html")
        True
        """
        if not self._match(comparable(target)):
            return False
        # RFC 9309 (2.2.2) takes %62 for b, Google's parser does not: what either reading forbids is forbidden.
        plain = plain_escapes(target)
        if self._plain is not None:
            return self._plain._match(comparable(plain))
        return plain == target or self._match(comparable(plain))

    def encode(self) -> bytes:
        """The rules as bytes, which `decode` reads without interpreting anything again; without sitemaps.

        >>> ALLOW_ALL.encode(), RobotsRules.decode(DISALLOW_ALL.encode()) is DISALLOW_ALL
        (b'', True)
        """
        levels = [self] if self._plain is None else [self, self._plain]
        if self._plain is None and self.crawl_delay is None and not self._wild:
            if not self._literals:
                return b""
            if self._literals == DISALLOW_ALL._literals:
                return _KEPT_ALL_FORBIDDEN
        counts, verdicts, texts = [0, 0, 0, 0], bytearray(), list[bytes]()
        for place, level in enumerate(levels):
            counts[2 * place : 2 * place + 2] = len(level._literals), len(level._wild)
            verdicts += bytes(level._literals.values()) + bytes(allow for _, allow, _ in level._wild)
            texts += [text.encode() for text in level._literals]
            texts += [pattern.text.encode() for _, _, pattern in level._wild]
        lengths = [len(text) for text in texts]
        width = next(width for width in _WIDTHS if max(lengths, default=0) < 1 << 8 * width)
        delay = math.nan if self.crawl_delay is None else self.crawl_delay
        sizes = struct.pack(f"<{len(lengths)}{_WIDTHS[width]}", *lengths)
        return b"".join((_KEPT.pack(delay, *counts, width), verdicts, sizes, *texts))

    @classmethod
    def decode(cls, kept: bytes) -> RobotsRules:
        """The rules that `encode` wrote: for any target `allows` says the same. ValueError for other bytes.

        >>> kept = RobotsRules([(False, "/a"), (True, "/a/*.html$")], crawl_delay=2.5).encode()
        >>> rules = RobotsRules.decode(kept)
        >>> rules.allows("/a/x"), rules.allows("/a/x.html"), rules.crawl_delay, len(kept)
        (False, True, 2.5, 41)
        """
        if not kept:
            return ALLOW_ALL
        if kept == _KEPT_ALL_FORBIDDEN:
            return DISALLOW_ALL
        try:
            delay, *counts, width = _KEPT.unpack_from(kept)
            rules = sum(counts)
            lengths = struct.unpack_from(f"<{rules}{_WIDTHS[width]}", kept, _KEPT.size + rules)
        except (struct.error, KeyError) as error:
            raise ValueError("rules of a robots.txt are damaged") from error
        start = _KEPT.size + rules * (1 + width)
        ends = list(accumulate(lengths, initial=start))
        if ends[-1] != len(kept):
            raise ValueError("rules of a robots.txt are damaged")
        whole = kept.decode("latin-1")  # what counts is ASCII, and places stay places
        verdicts = map(bool, kept[_KEPT.size : _KEPT.size + rules])
        pairs = zip((whole[begin:end] for begin, end in pairwise(ends)), verdicts, strict=True)
        levels = []
        for literals, wild in (counts[:2], counts[2:]):
            prefixes = dict(next(pairs) for _ in range(literals))
            patterns = [(PathPattern(text), allow) for text, allow in (next(pairs) for _ in range(wild))]
            levels.append((prefixes, [(pattern.length, allow, pattern) for pattern, allow in patterns]))
        plain = cls.__new__(cls)._arrange(*levels[1], None, None) if any(counts[2:]) else None
        return cls.__new__(cls)._arrange(*levels[0], plain, None if math.isnan(delay) else delay)

    def _match(self, target: str) -> bool:
        if not target.startswith(self._prefixes) or target == "/robots.txt":
            return True
        if self._starred and self._takes_long(len(target)):
            return _remembered(self, target)
        return self._try(target, self._starred)

    def _takes_long(self, letters: int) -> bool:
        """Whether it takes too long to compare a target of so many letters with every pattern."""
        fixed, each = self._work
        return fixed + each * letters > _MOST_WORK

    def _try(self, target: str, wild: _Wild) -> bool:
        longest, verdict = -1, True
        literals = self._literals
        for length in self._lengths:
            start = target[:length]  # shorter where the target is
            found = literals.get(start)
            if found is not None:
                longest, verdict = len(start), found
                break
        longest, verdict = max((longest, verdict), self._exact.get(target, (-1, False)))
        for length, allow, pattern in wild:
            if length < longest or (length == longest and verdict):
                break
            if pattern.matches(target):
                return allow
        return verdict

    def _judge(self, target: str) -> bool:
        """Whether a target is allowed with which many patterns would have to be compared."""
        if self._index is None:
            self._index = _Index(self._starred)
        places = self._index.find(target)
        return places is not None and self._try(target, [self._starred[place] for place in places])


_remembered = lru_cache(_REMEMBERED)(RobotsRules._judge)


class _Index:
    """Patterns by that of their signs which fewest others have, and what each takes to be tried."""

    def __init__(self, wild: _Wild) -> None:
        signs = [pattern.signs() for _, _, pattern in wild]
        counts = Counter(chain.from_iterable(signs))
        self._places: dict[str, list[int]] = {}
        for place, each in enumerate(signs):
            self._places.setdefault(min(each, key=counts.__getitem__, default=""), []).append(place)
        self._work = [(pattern.head, *pattern.work()) for _, _, pattern in wild]

    def find(self, target: str) -> list[int] | None:
        """The places of patterns that may match, in their order; None when it takes too long to try them."""
        found, left = list[int](), _MOST_WORK
        for sign in self._places.keys() & {"", *target, *map("".join, pairwise(target))}:
            for place in self._places[sign]:
                head, fixed, each = self._work[place]
                fits = target.startswith(head)
                left -= fixed + each * len(target) if fits else _LOOK
                if left < 0:
                    return None
                if fits:
                    found.append(place)
        return sorted(found)


ALLOW_ALL = RobotsRules()
DISALLOW_ALL = RobotsRules([(False, "/")])


def content(body: bytes) -> bytes:
    """What counts of a file, in UTF-8: no byte order mark, and whole lines only where it is too long."""
    is_cut, body = len(body) > MAX_SIZE, body[:MAX_SIZE]
    if body[:2] in _UTF_16:
        body = body[2:].decode(_UTF_16[body[:2]], "replace").encode()
    if is_cut:
        # A line cut in two would say something its author did not: "/" for "/private".
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    for byte in _BYTE_ORDER_MARK:  # a part of the mark is skipped too
        if not body or body[0] != byte:
            break
        body = body[1:]
    return body


class GroupCollector:
    """Collects the rules of every group that could be ours, by how well the group's name fits."""

    def __init__(self, agent: str, origin: str) -> None:
        self._agent, self._origin = agent.lower(), origin
        self.found: dict[int, list[tuple[bool, str]]] = {}
        self._delays: dict[int, float] = {}
        self._current: set[int] = set()
        self._in_rules = False
        self.sitemaps: list[str] = []

    def rules(self) -> list[tuple[bool, str]]:
        """Those of the groups that fit best."""
        return self.found[max(self.found)] if self.found else []

    def delay(self) -> float | None:
        return self._delays.get(max(self.found)) if self.found else None

    def read(self, line: bytes) -> None:
        content = line[:_MAX_LINE].partition(b"#")[0].strip()
        if not content:
            return
        text = content.decode("utf-8", "surrogateescape")
        name, colon, value = text.partition(":")
        if not colon:
            # "Disallow /x": accepted when there is exactly one gap, otherwise it is prose.
            words = text.split()
            if len(words) != 2:
                return
            name, value = words
        name = name.strip().lower()
        field = _FIELDS.get(name)
        if field is None:
            return
        value = value.strip()
        if field == _AGENT:
            self._enter(value)
        elif field == _SITEMAP:
            if 0 < len(value) <= _MAX_SITEMAP and len(self.sitemaps) < _MAX_SITEMAPS:
                self.sitemaps.append(value)
        elif field == _DELAY:
            self._slow_down(value)
        else:
            # One that the standard does not know ends no list of agents: what follows may be meant for us as well.
            self._in_rules |= bool(colon) and name in ("allow", "disallow")
            if value and self._current:
                self._add(field == _ALLOW, value)

    def _enter(self, value: str) -> None:
        if self._in_rules:
            self._current.clear()
            self._in_rules = False
        fit = self._fit(value.lower())
        if fit:
            self._current.add(fit)
            self.found.setdefault(fit, [])

    def _fit(self, name: str) -> int:
        """0 for another's group, 1 for `*`, 2 for ours."""
        if name == "*" or name[:2] in ("* ", "*\t"):
            return 1
        end = next((at for at, letter in enumerate(name) if letter not in _TOKEN), len(name))
        return 2 if name[:end] == self._agent else 0

    def _slow_down(self, value: str) -> None:
        try:
            seconds = float(value)
        except ValueError:
            return
        if seconds >= 0 and math.isfinite(seconds):
            for fit in self._current:
                self._delays[fit] = max(seconds, self._delays.get(fit, 0.0))

    def _add(self, allow: bool, pattern: str) -> None:
        patterns = [pattern] if allow else _repaired(pattern, self._origin)
        if allow and "/index.htm" in pattern:
            folder, _, last = pattern.rpartition("/")
            if last.startswith("index.htm"):
                patterns.append(f"{folder}/$")
        for fit in self._current:
            found = self.found[fit]
            for each in patterns:
                found.append((allow, each))


def _repaired(pattern: str, origin: str) -> list[str]:
    """What a Disallow of `origin` meant that could match nothing as written: no path has a space, or begins elsewhere.

    >>> _repaired("/a /b", ""), _repaired("/my files/", ""), _repaired("a/b", "")
    (['/a', '/b'], ['/my%20files/'], ['/a/b'])
    >>> _repaired("http://a.org/x", "http://a.org"), _repaired("http://b.org/x", "http://a.org")
    (['/x'], [])
    """
    if pattern.startswith("/") and " " not in pattern and "\t" not in pattern:
        return [pattern]
    words = [word for word in pattern.replace("\t", " ").split(" ") if word]
    patterns = words if all(word.startswith("/") for word in words) else ["%20".join(words)]
    found = []
    for each in patterns:
        url = _WHOLE_URL.match(each) if each[0] in "hH" else None
        if url is not None:
            if not _is_of(url[1], origin):
                continue
            each = f"/{url[2]}"
        found.append(each if each.startswith(("/", "*", "$")) else f"/{each}")
    return found


def _is_of(place: str, origin: str) -> bool:
    """Whether a URL without its path is of an origin: as a URL would be, whatever its case and its port."""
    try:
        return origin_of(f"{parse(place)}") == origin
    except UrlError:
        return False
