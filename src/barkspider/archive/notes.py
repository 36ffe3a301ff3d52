"""What is to be written down about an outcome, as bytes: the journal keeps it until the tables have it.

A note is the name of a table and what its row needs; the notes of an outcome are one JSON array of them. What
follows from a URL is left out, and the links of a page come from elsewhere: the journal has them anyway.
"""

from __future__ import annotations

import json
from typing import Any

# A title may hold half a surrogate pair: it comes back as it went.
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode


def encode_notes(notes: list[tuple[Any, ...]]) -> bytes:
    """One string of bytes for the notes of an outcome; none of them takes none.

    >>> encode_notes([("errors", 1, "dns", None)]), encode_notes([])
    (b'[["errors",1,"dns",null]]', b'')
    """
    return _encode(notes).encode("utf-8", "surrogatepass") if notes else b""


def decode_notes(data: bytes) -> list[list[Any]]:
    """The notes again.

    >>> decode_notes(b'[["errors",1,"dns",null]]'), decode_notes(b"")
    ([['errors', 1, 'dns', None]], [])
    """
    if not data:
        return []
    notes: list[list[Any]]
    notes, _ = _decode(data.decode("utf-8", "surrogatepass"))
    return notes
