"""Addresses inside of attributes: image candidates in `srcset`."""

from __future__ import annotations

import re
from collections.abc import Iterator

# An address runs to white space, its descriptors to a comma outside of parentheses. What one of these patterns
# has read none reads again, so this is linear.
_ADDRESS = re.compile(r"[\s,]*+([^\s,]\S*+)")
_DESCRIPTORS = re.compile(r"(?:[^,(]++|\([^)]*+\)?+)*+")


def urls_of_srcset(value: str) -> Iterator[str]:
    """The addresses of a `srcset`.

    >>> list(urls_of_srcset("a.jpg 1x, b.jpg,c.jpg 2x, d.jpg")), list(urls_of_srcset("a,b.jpg, c.jpg 480w"))
    (['a.jpg', 'b.jpg,c.jpg', 'd.jpg'], ['a,b.jpg', 'c.jpg'])
    """
    place = 0
    while match := _ADDRESS.match(value, place):
        address = match[1].rstrip(",")
        yield address
        place = match.end()
        # A comma at the end of an address ends the candidate.
        if address == match[1] and (descriptors := _DESCRIPTORS.match(value, place)):
            place = descriptors.end()
