"""Raw replies that break the rules of HTTP/1.1: what curl and browsers make of each, and what we must.

`curl` is 7.88; `browsers` is Chromium, by its source. docs/http.md shows this table to people.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.hostile.hazard import CHUNKED, Hazard, fetched, says


class Reply(NamedTuple):
    """`number` is that of the list of hazards; `repaired` is what we put right, empty where we refuse."""

    number: int
    name: str
    raw: bytes
    curl: str
    browsers: str
    repaired: str = ""


_OK = b"HTTP/1.1 200 OK\r\n"
_TWO = b"Content-Length: 2\r\n"
_CODED = b"Transfer-Encoding: chunked\r\n"
_IN_CHUNKS = b"2\r\nhi\r\n0\r\n\r\n"

REPLIES = [
    Reply(11, "lines that end in LF", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", "reads", "read", "line ends"),
    Reply(11, "an empty line of LF alone", _OK + _TWO + b"\nhi", "reads", "read", "line ends"),
    Reply(11, "a folded header", _OK + b"X: a\r\n b\r\n" + _TWO + b"\r\nhi", "reads", "read", "folded lines"),
    Reply(11, "a folded line behind the status", _OK + b" X: a\r\n" + _TWO + b"\r\nhi", "refuses", "skip it"),
    Reply(11, "a blank before the colon", _OK + b"Content-Length : 2\r\n\r\nhi", "skips it", "read", "blanks before colons"),
    Reply(11, "a line without a colon", _OK + _OK + _TWO + b"\r\nhi", "refuses", "skip it", "lines that are no headers"),
    Reply(11, "a name of two words", _OK + b"en-US X: a\r\n" + _TWO + b"\r\nhi", "reads", "skip it", "lines that are no headers"),
    Reply(11, "NUL in a line that ends in LF", b"HTTP/1.1 200 OK\nX: a\0b\n\nhi", "refuses", "refuse"),
    Reply(6, "the same length twice", _OK + _TWO + _TWO + b"\r\nhi", "reads", "read", "equal lengths"),
    Reply(6, "the same length twice in a line", _OK + b"Content-Length: 2, 2\r\n\r\nhi", "reads", "read", "equal lengths"),
    Reply(6, "two lengths", _OK + _TWO + b"Content-Length: 3\r\n\r\nhi", "takes the last", "refuse"),
    Reply(6, "a length and chunks", _OK + b"Content-Length: 9\r\n" + _CODED + b"\r\n" + _IN_CHUNKS, "takes chunks", "take chunks", "a length beside chunks"),
    Reply(6, "chunks and a length", _OK + _CODED + b"Content-Length: 9\r\n\r\n" + _IN_CHUNKS, "takes chunks", "take chunks", "a length beside chunks"),
    Reply(6, "two lengths and chunks", _OK + _TWO + b"Content-Length: 3\r\n" + _CODED + b"\r\n" + _IN_CHUNKS, "takes chunks", "take chunks"),
    Reply(6, "the coding identity", _OK + b"Transfer-Encoding: identity\r\n" + _TWO + b"\r\nhi", "reads", "read", "identity"),
    Reply(6, "identity, then chunked", _OK + b"Transfer-Encoding: identity\r\n" + _CODED + b"\r\n" + _IN_CHUNKS, "reads", "read", "identity"),
    Reply(6, "chunked, but not at last", _OK + b"Transfer-Encoding: chunked, identity\r\n\r\n" + _IN_CHUNKS, "reads", "read"),
    Reply(6, "chunked twice", _OK + _CODED + _CODED + b"\r\n" + _IN_CHUNKS, "reads", "read"),
    Reply(7, "chunk lines that end in LF", CHUNKED + b"2\nhi\n0\n\n", "reads", "read", "chunk lines"),
    Reply(7, "chunk sizes padded with blanks", CHUNKED + b"2   \r\nhi\r\n0   \r\n\r\n", "reads", "read", "chunk lines"),
    Reply(7, "a chunk extension that is none", CHUNKED + b"2;\r\nhi\r\n0\r\n\r\n", "reads", "read", "chunk lines"),
    Reply(7, "a chunk longer than it says", CHUNKED + b"2\r\nhiX\r\n0\r\n\r\n", "refuses", "refuse"),
    Reply(7, "a chunk size with a sign", CHUNKED + b"-2\r\nhi\r\n0\r\n\r\n", "refuses", "refuse"),
    Reply(7, "a chunk size of C", CHUNKED + b"0x2\r\nhi\r\n0\r\n\r\n", "refuses", "refuse"),
]  # fmt: skip


def _met(reply: Reply) -> Hazard:
    expect = {"outcome": "ok", "body": 2} if reply.repaired else {"outcome": "protocol_error"}
    return fetched(
        reply.number,
        f"reply: {reply.name}",
        says(reply.raw, stay=True),
        **expect,
        repaired=reply.repaired,
    )


BROKEN_RULES = [_met(reply) for reply in REPLIES]
