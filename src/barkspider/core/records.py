"""The shape of a URL on its way through the crawler: its columns, declared here and nowhere else.

One URL by itself is a `UrlRow`; many are a `core.batch.UrlBatch`. On disk and in batches all columns but the URL are a
head of fixed size in front of it: see docs/formats/rows.md.
"""

from __future__ import annotations

import struct
from enum import IntFlag
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np


class Flag(IntFlag):
    """How a URL came to be where it is."""

    SEED = 1
    REDIRECT = 2
    LINKED = 4  # a page under the domains that are wanted (page.keep_tlds) links to it
    REQUISITE = 8
    EXACT = 16  # fetched once more exactly as a redirect wrote it, past seen
    REVISIT = 32  # fetched again for links that were left over
    AGAIN = 128  # fetched once more because the page stored is old: only if it has changed
    DEFERRED = 64  # exceeded its domain's budget: waits in Q_F, or is on its way to be budgeted again


class UrlRow(NamedTuple):
    """One URL while it is handled on its own, which is only while it is being fetched.

    `key`, `host_key` and `pld_key` are xxh3_64 of the URL, its host and its pay-level domain, seeded per job. `depth`
    counts links from where depth is counted, `hops` redirects in a row that led here, or requisites of requisites,
    `tries` failed attempts so far;
    `flags` are of `Flag`. `url` is the normalised URL, in ASCII as WHATWG serialises it. `parent` is the key of the page
    that linked to it, 0 for seeds; `found` when it was discovered, in seconds since 1970, 0 when unknown.
    """

    key: Annotated[int, "<u8"]
    host_key: Annotated[int, "<u8"]
    pld_key: Annotated[int, "<u8"]
    depth: Annotated[int, "<u2"]
    hops: Annotated[int, "u1"]
    tries: Annotated[int, "u1"]
    flags: Annotated[int, "u1"]
    url: bytes
    parent: Annotated[int, "<u8"] = 0
    found: Annotated[int, "<u4"] = 0


def _head() -> np.dtype[Any]:
    hints = get_type_hints(UrlRow, include_extras=True)
    return np.dtype([(name, hints[name].__metadata__[0]) for name in UrlRow._fields if name != "url"])


HEAD = _head()  # every column but the URL, in order and without gaps: 41 bytes
_URL = UrlRow._fields.index("url")
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}  # by size: all columns are numbers without a sign
_STRUCT = struct.Struct("<" + "".join(_CODES[HEAD[name].itemsize] for name in HEAD.names or ()))


def pack_row(row: UrlRow) -> bytes:
    """A row by itself in the form that it has in a batch.

    >>> row = UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/", parent=2**64 - 1)
    >>> len(pack_row(row)), unpack_row(pack_row(row)) == row
    (58, True)
    """
    return _STRUCT.pack(*row[:_URL], *row[_URL + 1 :]) + row.url


def unpack_row(data: bytes) -> UrlRow:
    """What `pack_row` was given; ValueError for what is too short to be a row."""
    if len(data) < _STRUCT.size:
        raise ValueError(f"{len(data)} bytes are no row of a URL")
    head = _STRUCT.unpack_from(data)
    return UrlRow._make((*head[:_URL], data[_STRUCT.size :], *head[_URL:]))
