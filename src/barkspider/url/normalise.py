"""Normalising: one text for all the URLs that lead to the same page (Viúva Negra, sections 4.3 and 4.5).

The WHATWG parse does most of it (case, default ports, dot segments, the `/` of an empty path). The rules
here then work on the serialised text, in an order in which no later rule makes work for an earlier one:
fragment, userinfo, session ids, listings, index names, `www.`, replicas. So normalising twice changes nothing.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from url import URL, URLError

from barkspider.core.errors import UrlError
from barkspider.core.settings import UrlRules
from barkspider.url.domains import Domains
from barkspider.url.parse import host_span, parse
from barkspider.url.replicas import rewrite

# `sid=12` is the number of a story; what identifies a session is longer.
_SHORTEST_SESSION_VALUE = 8
# Apache 1.3 wrote ?N=D (name, modified, size, description; ascending, descending), Apache 2 ?C=N;O=D.
_LISTING = re.compile(r"[NMSD]=[AD]|C=[NMSD][;&]O=[AD]")
_SEPARATED = re.compile(r"([&;])")
_WEB = ("http://", "https://")
_NO_REPLICAS: Mapping[str, str] = MappingProxyType({})


class Normaliser:
    """Turns the texts of links into canonical URLs by the rules in force. Pure, and safe to share.

    Raises `UrlError` with the reason `malformed`, `scheme` (not http or https) or `too_long`.

    >>> normalise = Normaliser(UrlRules(), Domains())
    >>> normalise("HTTP://user@Example.COM:80/a/../b.html#top")
    'http://example.com/b.html'
    >>> normalise("http://example.com/dir/?C=M;O=A")
    'http://example.com/dir/'
    >>> normalise("http://example.com/view;jsessionid=1A2B3C4D5E?id=7&PHPSESSID=0123456789abcdef")
    'http://example.com/view?id=7'
    >>> normalise("mailto:someone@example.com")
    Traceback (most recent call last):
    barkspider.core.errors.UrlError: scheme: 'mailto:someone@example.com'
    """

    def __init__(self, rules: UrlRules, domains: Domains, replicas: Mapping[str, str] = _NO_REPLICAS) -> None:
        """`replicas` are hosts instead of which others are named; names as the rules have them, and no original is a replica."""
        self.rules, self._replicas = rules, replicas
        self._domains = domains
        self._drop_fragment = rules.drop_fragment
        self._drop_userinfo = rules.drop_userinfo
        self._trim_listings = rules.trim_listings
        self._add_www = rules.add_www
        self._max_length = rules.max_length
        # Whatever the URL is.
        self._needs_rules = rules.add_www or not rules.drop_fragment or bool(replicas)
        self._index_endings = (
            tuple(f"/{name}" for name in rules.index_names) if rules.drop_index_names else ()
        )
        self._last_letters = frozenset(name[-1] for name in self._index_endings)
        self._sessions = frozenset(name.lower() for name in rules.session_names)
        # Only finds URLs worth a closer look. No part of it repeats, so it is linear.
        self._session_hint = (
            re.compile("[?&;](?:" + "|".join(map(re.escape, sorted(self._sessions))) + ")=", re.I | re.A)
            if rules.drop_session_ids and self._sessions
            else None
        )

    def __call__(self, text: str, base: URL | None = None) -> str:
        """The canonical URL of a link's text, relative to `base` when there is one."""
        if self._drop_fragment and "#" in text:
            text = text[: text.index("#")]
        try:
            url = str(URL.parse(text) if base is None else URL.parse(text, base))
        except (URLError, UnicodeEncodeError):
            url = str(parse(text, base))  # it knows more, and raises with the reason
        # Most links need no rule; to see that here spares a call for each.
        if (
            self._needs_rules
            or "=" in url
            or "@" in url
            or url[-1] in self._last_letters
            or not url.startswith(_WEB)
            or len(url) > self._max_length
        ):
            return self._apply(url)
        return url

    def many(
        self, texts: Sequence[str], base: URL, refused: Counter[str], most: int = sys.maxsize
    ) -> tuple[list[str], bool]:
        """The canonical URLs of the links of a page, each once, in order; `refused` counts the others by reason. And
        whether they are more than `most` characters, or all that it took to find them more than `most_work`: those beyond are
        left out.

        >>> refused = Counter()
        >>> Normaliser(UrlRules(), Domains()).many(["a", "mailto:b", "./a#c"], parse("http://d.org/"), refused)
        (['http://d.org/a'], False)
        >>> refused
        Counter({'scheme': 1})
        """
        targets = Counter([text.partition("#")[0] for text in texts] if self._drop_fragment else texts)
        found: dict[str, None] = {}
        size = work = 0
        for target, times in targets.items():
            try:
                url = self(target, base)
            except UrlError as error:
                refused[error.reason] += times
                work += self._max_length if error.reason == "too_long" else len(target)
            else:
                work += len(url)
                if url not in found:
                    size += len(url)
                    if size > most:
                        return list(found), True
                    found[url] = None
            if work > most_work(most):
                return list(found), True
        return list(found), False

    def _apply(self, url: str) -> str:
        """The rules in force, on a serialised URL."""
        if not url.startswith(_WEB):
            raise UrlError("scheme", repr(url[:200]))
        fragment = ""
        if "#" in url:
            url, sign, fragment = url.partition("#")
            fragment = "" if self._drop_fragment else sign + fragment
        # Each rule is preceded by the cheapest test that shows it has nothing to do.
        if self._drop_userinfo and "@" in url:
            url = _without_userinfo(url)
        if "=" in url:
            if self._session_hint is not None and self._session_hint.search(url):
                url = self._without_sessions(url)
            if self._trim_listings:
                address, mark, query = url.partition("?")
                if mark and address[-1] == "/" and _LISTING.fullmatch(query):
                    url = address
        if url[-1] in self._last_letters and url.endswith(self._index_endings) and "?" not in url:
            url = url[: url.rindex("/") + 1]
        if self._add_www:
            url = self._with_www(url)
        if self._replicas:
            url = rewrite(url, self._replicas)
        if fragment:
            url += fragment
        if len(url) > self._max_length:
            raise UrlError("too_long", f"{len(url)} characters: {url[:200]!r}")
        return url

    def _is_session(self, parameter: str) -> bool:
        name, _, value = parameter.partition("=")
        return len(value) >= _SHORTEST_SESSION_VALUE and name.lower() in self._sessions

    def _without_sessions(self, url: str) -> str:
        address, mark, query = url.partition("?")
        if ";" in address:
            start = address.index("/", 8)
            segments = [
                ";".join([name, *(each for each in parameters if not self._is_session(each))])
                for name, *parameters in (segment.split(";") for segment in address[start:].split("/"))
            ]
            path = "/".join(segments)
            if path != address[start:]:
                # `/..;sid=…` was a name and is now a step up: only the parser knows what that means.
                address = str(URL.parse(address[:start] + path))
        if mark:
            first, *rest = _SEPARATED.split(query)
            pairs = [("", first), *zip(rest[::2], rest[1::2], strict=True)]
            kept = [pair for pair in pairs if not self._is_session(pair[1])]
            if len(kept) < len(pairs):
                query = "".join(separator + parameter for separator, parameter in kept)
                query = query[len(kept[0][0]) :] if kept else ""
                mark = "?" if query else ""
        return address + mark + query

    def _with_www(self, url: str) -> str:
        start, end = host_span(url)
        host = url[start:end]
        # Names of the second level alone: of those at the third, 16% have no www. (Viúva Negra, Table II).
        if host.count(".") == 1 and not host.startswith("www.") and self._domains.is_registered(host):
            return f"{url[:start]}www.{url[start:]}"
        return url


def most_work(most: int) -> int:
    """How many characters are resolved for the sake of links that may have `most` of them: some are repeated, or refused.

    >>> most_work(250_000)
    565536
    """
    return 2 * most + (1 << 16)


def _without_userinfo(url: str) -> str:
    start = url.index("/") + 2
    at = url.rfind("@", start, url.index("/", start))  # an @ in the path is none of ours
    return url if at < 0 else url[:start] + url[at + 1 :]
