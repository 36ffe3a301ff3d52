"""SURT keys: URLs written so that sorting them puts what belongs together side by side.

`http://www.Example.com/b/?y=2&x=1` becomes `com,example)/b?x=1&y=2`. Archives look pages up by such keys, and
what asks them makes the keys by the rules of the Internet Archive, so these follow them: the scheme goes, and
`www.`, a default port and a final slash; escapes are taken off and put back in one way; everything is in lower
case; session ids go; the parameters of the query are sorted.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes

from barkspider.url import split

_DEFAULT_PORTS = {"http": 80, "https": 443}
_WWW = re.compile(r"www[0-9]*\.")
_REPEATED = re.compile(rb"%(?:25)+(?=[0-9A-Fa-f]{2})|%(?:25)+")
_SAFE = "".join(map(chr, range(0x21, 0x7F))).replace("#", "").replace("%", "")
_SESSION_IN_PATH = re.compile(r"/(?:\((?:[a-z]\([0-9a-z]{24}\))+\)|\([0-9a-z]{24}\))(?=/[^?]+\.aspx)")
_SESSION_IN_QUERY = (
    re.compile(r"(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}(?:&|$)"),
    re.compile(r"aspsessionid[a-z]{8}=[a-z]{24}(?:&|$)"),
    re.compile(r"cfid=[^&]+&cftoken=[^&]+(?:&|$)"),
)
# Escapes within escapes are taken off so often; each round is linear, and no honest URL needs a third.
_ROUNDS = 8


def surt(url: str) -> str:
    """The key of a canonical http or https URL.

    >>> surt("https://www.example.com:443/A/?b=2&a=1"), surt("http://example.com:8080/")
    ('com,example)/a?a=1&b=2', 'com,example:8080)/')
    >>> surt("http://127.0.0.1/%7Euser//x"), surt("http://example.com/?")
    ('1,0,0,127)/~user/x', 'com,example)/')
    """
    scheme, host, port, target = split(url)
    path, _, query = target.partition("?")
    if "%" in path:
        path = _plain(path)
    if "//" in path or "/." in path:
        path = _straight(path)
    path = path.lower()
    if ".aspx" in path:
        path = _SESSION_IN_PATH.sub("", path)
    if len(path) > 1 and path[-1] == "/":
        path = path[:-1]
    key = _reversed(host) if port == _DEFAULT_PORTS[scheme] else f"{_reversed(host)}:{port}"
    if not query:
        return f"{key}){path or '/'}"
    if "%" in query:
        query = _plain(query)
    query = _sorted(query.lower())
    return f"{key}){path or '/'}?{query}" if query else f"{key}){path or '/'}"


@lru_cache(2048)  # 230 bytes each
def _reversed(host: str) -> str:
    name = host.lower().strip(".[]")
    www = _WWW.match(name)
    return ",".join(reversed(name[www.end() if www else 0 :].split(".")))


def _plain(text: str) -> str:
    """Escapes taken off, all of them, and put back where they are needed."""
    data = text.encode()
    for _ in range(_ROUNDS):
        less = unquote_to_bytes(_REPEATED.sub(b"%", data))
        if less == data:
            break
        data = less
    return quote_from_bytes(data, safe=_SAFE)


def _straight(path: str) -> str:
    """Without empty and dotted segments."""
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == ".." and kept:
            kept.pop()
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(filter(None, kept))


def _sorted(query: str) -> str:
    for pattern in _SESSION_IN_QUERY:
        query = pattern.sub("", query, count=1)
    # Sorted by name and then by value: "=" must not take part, because some characters lie before it.
    return "&".join(sorted(query.split("&"), key=_name_and_value)) if "&" in query else query


def _name_and_value(parameter: str) -> list[str]:
    return parameter.split("=", 1)
