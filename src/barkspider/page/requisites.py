"""Addresses inside of values: image candidates in `srcset`, `url()` and `@import` in style sheets."""

from __future__ import annotations

import re

# An address runs to white space, its descriptors to a comma outside of parentheses. What one of these patterns
# has read none reads again, so this is linear.
_ADDRESS = re.compile(r"[\s,]*+([^\s,]\S*+)")
_DESCRIPTORS = re.compile(r"(?:[^,(]++|\([^)]*+\)?+)*+")
_STYLE_URL = re.compile(
    r"/\*.*?(?:\*/|\Z)|(?:url\(\s*+|@import\s++)(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"')(;]++))", re.I | re.S
)


def urls_of_srcset(value: str) -> list[str]:
    """The addresses of a `srcset`.

    >>> urls_of_srcset("a.jpg 1x, b.jpg,c.jpg 2x, d.jpg"), urls_of_srcset("a,b.jpg, c.jpg 480w")
    (['a.jpg', 'b.jpg,c.jpg', 'd.jpg'], ['a,b.jpg', 'c.jpg'])
    """
    found, place = [], 0
    while match := _ADDRESS.match(value, place):
        address = match[1].rstrip(",")
        found.append(address)
        place = match.end()
        # A comma at the end of an address ends the candidate.
        if address == match[1] and (descriptors := _DESCRIPTORS.match(value, place)):
            place = descriptors.end()
    return found


def style_urls(style: str) -> list[str]:
    """What a style sheet refers to.

    >>> style_urls("@import 'a.css'; /* url(no.png) */ p { background: url( b.png ) } i { src: url(\\"c d\\") }")
    ['a.css', 'b.png', 'c d']
    """
    found = ("".join(filter(None, match.groups())) for match in _STYLE_URL.finditer(style))
    return [address for address in found if address and address.lower() != "url"]
