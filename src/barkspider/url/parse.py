"""Reading URLs: WHATWG parsing by url-py, and cheap splitting of texts that were parsed before.

`parse` is for texts from outside. Everything inside a crawl is a *canonical text*, the serialisation
that `Normaliser` gives, and `split` takes such a text apart by string operations alone, which is
several times cheaper than parsing it again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from url import URL, URLError

from barkspider.core.errors import UrlError

_SPECIAL = ("http", "https", "ws", "wss", "ftp")  # but for `file`, whose host may be empty
_SLASHES = re.compile(r"[\x00-\x20]*[/\\][\t\n\r]*[/\\][/\\\t\n\r]*")


class UrlParts(NamedTuple):
    """What a request needs of a URL. `target` is the path and query, as in the request line."""

    scheme: str
    host: str
    port: int
    target: str


def parse(text: str, base: URL | None = None) -> URL:
    """Parse by the WHATWG rules, relative to `base` when there is one.

    Raises `UrlError("malformed")`. Any scheme passes: `mailto:` is a URL too.

    >>> str(parse("../b.html#top", parse("HTTP://Example.com:80/x/a.html")))
    'http://example.com/b.html#top'
    >>> str(parse("///example.org/b", parse("http://example.com/")))
    'http://example.org/b'
    >>> parse("http://a b/")
    Traceback (most recent call last):
    barkspider.core.errors.UrlError: malformed: invalid international domain name: 'http://a b/'
    """
    try:
        return URL.parse(text) if base is None else URL.parse(text, base)
    except (URLError, UnicodeEncodeError) as error:  # the latter for lone surrogates
        # url-py takes the host for empty behind three slashes; the standard ignores all of them (special
        # authority ignore slashes state).
        slashes = _SLASHES.match(text) if base is not None and base.scheme in _SPECIAL else None
        if slashes is not None and slashes[0] != "//":
            return parse(f"//{text[slashes.end() :]}", base)
        raise UrlError("malformed", f"{_why(error)}: {text[:200]!r}") from None


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, URLError) else "not a Unicode text"


@lru_cache(maxsize=1024)  # from the request for a page to its row in a table there are some hundred others
def split(url: str) -> UrlParts:
    """Take a canonical http or https URL apart; the default port is filled in.

    >>> split("https://example.com/a?b=1")
    UrlParts(scheme='https', host='example.com', port=443, target='/a?b=1')
    >>> split("http://[::1]:8080/")
    UrlParts(scheme='http', host='[::1]', port=8080, target='/')
    """
    scheme, _, rest = url.partition("://")
    authority, slash, target = rest.partition("/")
    if "#" in target:
        target = target.partition("#")[0]
    if "@" in authority:
        authority = authority.rpartition("@")[2]
    # An IPv6 literal ends in a bracket, so a colon is a port's only when something follows the bracket.
    if ":" in authority and authority[-1] != "]":
        host, _, digits = authority.rpartition(":")
        return UrlParts(scheme, host, int(digits), slash + target)
    return UrlParts(scheme, authority, 443 if scheme == "https" else 80, slash + target)


def origin(url: str) -> str:
    """Scheme, host and port of a canonical URL, as text: what one robots.txt speaks for.

    >>> origin("https://example.com/a?b=1"), origin("http://user@[::1]:8080/")
    ('https://example.com', 'http://[::1]:8080')
    """
    end = url.find("/", 8)
    if "@" in url[:end]:
        return url[: url.index("/") + 2] + url[:end].rpartition("@")[2]
    return url[:end]


def host_span(url: str) -> tuple[int, int]:
    """Where the host of a canonical URL begins and ends in its text.

    >>> url = "http://user@example.com:8080/"
    >>> url[slice(*host_span(url))]
    'example.com'
    """
    start = url.index("/") + 2
    end = url.index("/", start)
    start = url.rfind("@", start, end) + 1 or start
    if url[end - 1] != "]":
        colon = url.find(":", url.find("]", start, end) + 1 or start, end)
        end = end if colon < 0 else colon
    return start, end
