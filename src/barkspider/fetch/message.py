"""Reading one HTTP/1.1 response from pieces of bytes, within every limit; no I/O.

llhttp (through httptools) reads the headers and chunks, as strictly as it can. What it refuses and browsers read
is put right by `repair` and read again, once; the connection is not used again after it. What two parsers could
understand differently (two lengths, chunks of another size, bytes behind the end) is a protocol error, not a page.
A body with a length, or one that ends with the connection, has no framing to read: its bytes are counted
here and copied once.
"""

from __future__ import annotations

import re
from math import inf
from time import perf_counter
from typing import Any

import httptools

from barkspider.core.settings import Fetch
from barkspider.fetch.exchange import HttpExchange
from barkspider.fetch.repair import LooseChunks, repaired_head

_HEAD_END = re.compile(rb"\n\r?\n")  # as browsers find it; the parser insists on CRs
_HTTP = b"HTTP/"
_UNWANTED, _TOO_MANY = "unwanted type", "too many headers"
_NOTHING = HttpExchange()
# What Python takes beside the bytes as they came: for a piece of them, and for a header.
_PIECE_COST, _HEADER_COST = 50, 200


class Message:
    """A response as it arrives. Feed it until it is `over`; then `exchange` says what it was.

    `speaking` says that the final headers are there, `keep_alive` that another message may follow on the
    connection.

    >>> message = Message(Fetch())
    >>> message.feed(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nh"), message.feed(b"i")
    (False, True)
    >>> message.exchange().body
    b'hi'
    """

    __slots__ = (
        "_any_type",
        "_body",
        "_body_size",
        "_chunked",
        "_head",
        "_interim",
        "_left",
        "_limits",
        "_parse_time",
        "_parser",
        "_payload",
        "_repairs",
        "_result",
        "_size",
        "_trailers",
        "_trouble",
        "keep_alive",
        "over",
        "speaking",
    )

    def __init__(self, limits: Fetch, any_type: bool = True) -> None:
        self._limits, self._any_type = limits, any_type or not limits.types
        self._parser: Any = httptools.HttpResponseParser(self)
        self._result = HttpExchange()
        self._head = b""
        self._payload: list[bytes] = []  # what follows the head, as it came
        self._body = bytearray()  # the same without chunk lines; only if it came in chunks
        self._left = -1  # bytes of the body still to come; -1: until the connection ends
        self._size = self._body_size = self._interim = self._trailers = 0
        self._parse_time = 0.0
        self._trouble = ""  # what the parser has refused in a head that may be put right once it is complete
        self._repairs: list[str] = []
        self._chunked = self.speaking = self.over = self.keep_alive = False

    def feed(self, data: bytes | memoryview) -> bool:
        """Take bytes as they arrived, which may be overwritten afterwards; returns `over`."""
        self._size += len(data)
        view = memoryview(data)
        try:
            while not self.speaking and len(view):
                view = view[self._feed_head(view) :]
            if len(view):
                self._feed_payload(bytes(view))
        except httptools.HttpParserError as error:
            self._refuse(_why(error))
        except httptools.HttpParserUpgrade:
            self._refuse("another protocol was not asked for")
        if not self.over and self._size > self._most():
            # Interim responses, headers, or chunk lines and extensions, beyond all measure.
            self.stop("length", "headers_too_large", f"more than {self._limits.max_header} bytes of headers")
        if len(self._result.headers) > self._limits.max_headers:
            self._refuse(_TOO_MANY)
        return self.over

    @property
    def held(self) -> int:
        """How much memory it takes."""
        pieces, headers = len(self._payload), len(self._result.headers)
        return self._size + len(self._body) + pieces * _PIECE_COST + headers * _HEADER_COST

    def _most(self) -> int:
        return self._limits.max_header + (2 * self._limits.max_size if self.speaking else 0)

    def _feed_head(self, view: memoryview) -> int:
        """Give the parser what belongs to the head; returns how much that was."""
        before = self._head[-2:]
        end = _HEAD_END.search(before + bytes(view[:2]))  # it may lie across two pieces
        if end:
            taken = end.end() - len(before)
        else:
            end = _HEAD_END.search(view)
            taken = end.end() if end else len(view)
        piece = bytes(view[:taken])
        self._head += piece
        if not self._trouble:
            try:
                self._parser.feed_data(piece)
            except httptools.HttpParserError as error:
                self._trouble = _why(error)
                start = self._head.lstrip(b"\r\n")[: len(_HTTP)]
                if self._trouble == _UNWANTED or not start or not _HTTP.startswith(start):
                    raise
        if self._trouble and end:
            self._repair_head()
        if end and not self._head.strip(b"\r\n"):
            self._head = b""  # empty lines in front
        return taken

    def _repair_head(self) -> None:
        head, repairs = repaired_head(self._head.lstrip(b"\r\n"))
        if not repairs:
            raise httptools.HttpParserError(self._trouble)
        self._trouble, self.speaking = "", False
        self._repairs += repairs
        self._result.forget_headers()
        self._parser = httptools.HttpResponseParser(self)
        self._parser.feed_data(head)

    def _feed_payload(self, data: bytes) -> None:
        if self.over:  # the head was all of it
            self._left = 0
        if self._chunked:
            self._payload.append(data)
            self._feed_chunks(data)
        elif 0 <= self._left < len(data):
            data, rest = data[: self._left], data[self._left :]
            self._take(data)
            if rest.strip(b"\r\n"):  # an empty line behind a body is an old and harmless habit
                raise httptools.HttpParserError("bytes after the end of the message")
        else:
            self._take(data)

    def _feed_chunks(self, data: bytes) -> None:
        try:
            self._parse(data)
        except httptools.HttpParserCallbackError:
            raise
        except httptools.HttpParserError:
            if self.over or isinstance(self._parser, LooseChunks):
                raise
            self._repairs.append("chunk lines")
            self.keep_alive = False
            self._parser = LooseChunks(self)
            self._body.clear()
            self._body_size = self._trailers = 0
            for piece in self._payload:
                if self.over:
                    break
                self._parse(piece)

    def _parse(self, data: bytes) -> None:
        before = perf_counter()
        self._parser.feed_data(data)
        self._parse_time += perf_counter() - before
        if self._body_size > self._limits.max_size:
            self.stop("length")
        elif self._parse_time > self._limits.parse_timeout:
            self.stop("parse")

    def _take(self, data: bytes) -> None:
        room = self._limits.max_size - self._body_size
        self._payload.append(data if len(data) <= room else data[:room])
        self._body_size += len(data)
        if len(data) > room:
            self.stop("length")
        elif self._left >= 0:
            self._left -= len(data)
            self.over = self._left == 0

    def end(self) -> None:
        """The connection has ended properly: without a length, that is the end of the body."""
        if self.speaking and not self._chunked and self._left < 0:
            self.over = True
        else:
            self.stop("disconnect", "disconnected", "closed before the end")

    def stop(self, cut: str, failure: str = "", detail: str = "") -> None:
        """End here. What came after the headers is a cut body; before them it is a failure."""
        if self.over:
            return
        self.over, self.keep_alive = True, False
        if self.speaking and cut:
            self._result.cut = cut
        elif self._trouble and failure != "headers_too_large":
            self._result.failure, self._result.detail = "protocol_error", self._trouble
        else:
            self._result.failure, self._result.detail = failure, detail

    def exchange(self) -> HttpExchange:
        """What it came to. The message gives its bytes away: this is its last call."""
        result = self._result
        result.head, result.payload = self._head.lstrip(b"\r\n"), b"".join(self._payload)
        result.body = bytes(self._body) if self._chunked else result.payload
        result.repaired = "" if result.failure else ", ".join(dict.fromkeys(self._repairs))
        surplus = self._body_size - self._limits.max_size
        if self._chunked and result.cut == "length" and surplus > 0:
            result.body, result.payload = result.body[:-surplus], result.payload[:-surplus]
        # The parser refers back to us: without this a page would stay in memory until the next collection.
        self._payload, self._body, self._parser, self._result = [], bytearray(), None, _NOTHING
        return result

    def _refuse(self, why: str) -> None:
        self.over = False  # also after a complete message: what follows may be meant to be taken for another
        self._trouble = ""
        if why == _UNWANTED:
            self.stop("", "unwanted_type", self._result.header(b"content-type"))
        elif why == _TOO_MANY:
            self.stop("", "headers_too_large", f"more than {self._limits.max_headers} headers")
        else:
            self.stop("", "protocol_error", why)

    def _wanted(self) -> bool:
        kind = self._result.header(b"content-type").partition(";")[0].strip().lower()
        return not kind or any(
            kind == wanted or (wanted.endswith("/*") and kind.startswith(wanted[:-1]))
            for wanted in self._limits.types
        )

    # ── called by the parser; what is raised here ends the message ─────────────────────────────

    def on_message_begin(self) -> None:
        """A message begins; a second one is not ours."""
        if self.over:
            raise httptools.HttpParserError("bytes after the end of the message")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or behind the body a trailer."""
        if not self.speaking:
            self._result.headers.append((name, value))
            return
        self._trailers += 1
        if self._trailers > self._limits.max_trailers:
            raise httptools.HttpParserError("too many trailers")

    def on_headers_complete(self) -> None:
        """The headers of an interim or of the final response are there."""
        if not self._head.lstrip(b"\r\n").startswith(_HTTP):
            raise httptools.HttpParserError("not HTTP")  # the parser knows RTSP and ICE too
        status = self._parser.get_status_code()
        if status < 100:
            raise httptools.HttpParserError(f"there is no status {status:03}")
        if status < 200:
            return
        result = self._result
        result.status, self.speaking = status, True
        self.keep_alive = not self._repairs and self._parser.should_keep_alive()
        length = result.header(b"content-length")  # the parser has seen to it that this is one number
        if length:
            self._left = int(length)
        else:
            codings = [value.lower() for value in result.all_headers(b"transfer-encoding")]
            if codings not in ([], ["chunked"]):
                raise httptools.HttpParserError("a transfer coding that was not asked for")
            self._chunked = bool(codings)
        if not self._any_type and 200 <= status < 300 and not self._wanted():
            raise httptools.HttpParserError(_UNWANTED)

    def on_body(self, data: bytes) -> None:
        """A piece of a body that came in chunks; others do not reach the parser."""
        self._body += data
        self._body_size += len(data)

    def on_message_complete(self) -> None:
        """A message ends: an interim one is forgotten."""
        if self.speaking:
            self.over = True
            return
        self._interim += 1
        if self._interim > self._limits.max_interim:
            raise httptools.HttpParserError("too many interim responses")
        self._result.forget_headers()
        self._head = b""


def read_whole(raw: bytes) -> HttpExchange:
    """A response that is at hand, as the archive has it: read as it was when it came, whatever its size.

    >>> read_whole(b"HTTP/1.1 200 OK\\nX: y\\n\\nhi").body
    b'hi'
    """
    most = len(raw) + 1
    message = Message(
        Fetch(
            max_size=most,
            max_header=most,
            max_headers=most,
            max_trailers=most,
            max_interim=most,
            parse_timeout=inf,
        )
    )
    if not message.feed(raw):
        message.end()
    return message.exchange()


def _why(error: httptools.HttpParserError) -> str:
    return str(error.__context__ if isinstance(error, httptools.HttpParserCallbackError) else error)
