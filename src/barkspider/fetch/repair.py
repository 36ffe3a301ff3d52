"""Responses that break the rules in ways that browsers read all the same: their heads and chunks put right.

Only what the strict parser refused comes here, and what comes out is read by the strict parser again or is as
narrow as what Chromium takes. What could be meant in two ways (two lengths, a coding behind `chunked`, control
bytes) is left as it is, to be refused.
"""

from __future__ import annotations

import re
from typing import Protocol

import httptools

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# 15 digits are more than any body has, and a chunk line of Chromium has so many bytes at most.
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\0\r]*)?")
_LONGEST_LINE = 16_384
_HEX = frozenset(b"0123456789abcdefABCDEF")
_BLANKS = b" \t"

_Headers = list[tuple[bytes, bytes]]


def repaired_head(head: bytes) -> tuple[bytes, list[str]]:
    """A head as a strict parser reads it, and what was put right; nothing where there is no sound way to do it.

    >>> repaired_head(b"HTTP/1.1 200 OK\\nX : a\\n  b\\n\\n")
    (b'HTTP/1.1 200 OK\\r\\nX: a b\\r\\n\\r\\n', ['line ends', 'folded lines', 'blanks before colons'])
    >>> repaired_head(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nContent-Length: 3\\r\\n\\r\\n")[1]
    []
    """
    repairs: list[str] = []
    status, *lines = (line.removesuffix(b"\r") for line in head.split(b"\n")[:-2])
    is_folded_at_once = bool(lines) and lines[0][:1] in (b" ", b"\t")
    if is_folded_at_once or any(map(_CONTROL.search, (status, *lines))):
        return head, repairs
    if head.count(b"\n") > head.count(b"\r\n"):
        repairs.append("line ends")
    headers = _framing(_named(_unfolded(lines, repairs), repairs), repairs)
    return b"\r\n".join([status, *(b"%b: %b" % header for header in headers), b"", b""]), repairs


def _unfolded(lines: list[bytes], repairs: list[str]) -> list[bytes]:
    """RFC 9112, 5.2: a line that begins with blanks goes on with the one before."""
    fields: list[list[bytes]] = []
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            fields[-1].append(line.strip(_BLANKS))
        else:
            fields.append([line])
    if len(fields) < len(lines):
        repairs.append("folded lines")
    return [b" ".join(parts) for parts in fields]


def _named(fields: list[bytes], repairs: list[str]) -> _Headers:
    """Names without the blanks behind them (RFC 9112, 5.1), and no lines that are no headers."""
    found = [field.partition(b":") for field in fields]
    if any(name[-1:] in (b" ", b"\t") and colon for name, colon, _ in found):
        repairs.append("blanks before colons")
    headers = [
        (name.rstrip(_BLANKS), value.strip(_BLANKS))
        for name, colon, value in found
        if colon and _TOKEN.fullmatch(name.rstrip(_BLANKS))
    ]
    if len(headers) < len(fields):
        repairs.append("lines that are no headers")
    return headers


def _framing(headers: _Headers, repairs: list[str]) -> _Headers:
    """One way to tell where the body ends (RFC 9112, 6.3), where only one can be meant."""
    lengths = _members(headers, b"content-length")
    codings = _members(headers, b"transfer-encoding")
    others = [coding for coding in codings if coding != b"identity"]
    gone = set()
    if len(others) < len(codings) and (not others or (others == [b"chunked"] and codings[-1] == b"chunked")):
        repairs.append("identity")  # which is to say that there is no coding
        gone.add(b"transfer-encoding")
    if len(set(lengths)) == 1 and lengths[0].isdigit():
        if others == [b"chunked"]:
            repairs.append("a length beside chunks")
            gone.add(b"content-length")
        elif len(lengths) > 1:
            repairs.append("equal lengths")
            gone.add(b"content-length")
    kept = [header for header in headers if header[0].lower() not in gone]
    if b"transfer-encoding" in gone and others:
        kept.append((b"Transfer-Encoding", b"chunked"))
    if b"content-length" in gone and not others:
        kept.append((b"Content-Length", lengths[0]))
    return kept


def _members(headers: _Headers, name: bytes) -> list[bytes]:
    values = [value for key, value in headers if key.lower() == name]
    return [member.strip(_BLANKS).lower() for value in values for member in value.split(b",")]


class Body(Protocol):
    """Who is told what a parser finds behind the head, in the words of httptools."""

    def on_message_begin(self) -> None: ...
    def on_header(self, name: bytes, value: bytes) -> None: ...
    def on_body(self, data: bytes) -> None: ...
    def on_message_complete(self) -> None: ...


class LooseChunks:
    """Reads a body in chunks whose lines may end in LF alone, and whose sizes may be padded with blanks.

    It stands in for the parser of httptools from the beginning of the body on, and raises its error.
    """

    def __init__(self, body: Body) -> None:
        self._told = body
        self._rest = b""  # a line that is not complete
        self._left = 0  # bytes of the chunk still to come
        self._ends = self._last = self._over = (
            False  # behind a chunk's bytes; behind the last chunk; at the end
        )

    def feed_data(self, data: bytes) -> None:
        """Take the next bytes of the body."""
        data, at = self._rest + data, 0
        while at < len(data):
            if self._left:
                piece = data[at : at + self._left]
                self._told.on_body(piece)
                self._left -= len(piece)
                at += len(piece)
                continue
            end = -1 if self._over else data.find(b"\n", at)
            if end < 0:
                break
            self._line(data[at:end].removesuffix(b"\r"))
            at = end + 1
        self._rest = data[at:]
        if self._over and self._rest.strip(b"\r\n"):
            self._told.on_message_begin()
        if len(self._rest) > _LONGEST_LINE:
            raise httptools.HttpParserError("a chunk line is too long")
        if self._rest and not (self._ends or self._last) and self._rest[0] not in _HEX:
            raise httptools.HttpParserError("a chunk has no size")

    def _line(self, line: bytes) -> None:
        if self._last:
            if line:
                self._told.on_header(line, b"")
            else:
                self._over = True
                self._told.on_message_complete()
        elif self._ends:
            if line:
                raise httptools.HttpParserError("a chunk is longer than it says")
            self._ends = False
        else:
            size = _CHUNK_SIZE.fullmatch(line)
            if size is None:
                raise httptools.HttpParserError("a chunk has no size")
            self._left = int(size[1], 16)
            self._ends, self._last = self._left > 0, self._left == 0
