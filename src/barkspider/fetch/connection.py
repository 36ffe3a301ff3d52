"""One connection and the exchange on it: HTTP/1.1 by httptools on an asyncio protocol.

`Connection` sends a request, feeds what arrives to llhttp, keeps the exact bytes, and ends the exchange
at the first of: the message is complete, a limit is passed, a deadline is over, the peer has closed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httptools

from barkspider.core.settings import Fetch
from barkspider.fetch.deadlines import Deadlines

_MOST_INTERIM = 10  # 1xx responses before we hang up


@dataclass(slots=True)
class Exchange:
    """What went over the wire. `failure` is "" when a response with headers arrived.

    `truncated` names why a body is not whole, in the words of WARC-Truncated: length, time, disconnect.
    """

    failure: str = ""
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    raw: bytes = b""
    body: bytes = b""
    truncated: str = ""

    def header(self, name: bytes) -> str:
        """The first header of this (lower-case) name, or ""."""
        for key, value in self.headers:
            if len(key) == len(name) and key.lower() == name:
                return value.decode("latin-1").strip()
        return ""

    def all_headers(self, name: bytes) -> list[str]:
        """Every header of this (lower-case) name."""
        return [value.decode("latin-1").strip() for key, value in self.headers if key.lower() == name]


_NOTHING = Exchange()


class Connection(asyncio.Protocol):
    """A connection that carries one exchange at a time. Lives on its loop's thread.

    `reusable` says whether another exchange may follow the one that ended.
    """

    def __init__(self, settings: Fetch, deadlines: Deadlines, loop: asyncio.AbstractEventLoop) -> None:
        self._settings, self._deadlines, self._loop = settings, deadlines, loop
        self._transport: Any = None
        self._connecting: asyncio.Task[Any] | None = None
        self._done: asyncio.Future[Exchange] | None = None
        self._deadline = 0.0
        self.reusable = False

    @property
    def open(self) -> bool:
        """Whether the connection can still carry an exchange."""
        return self._transport is not None and not self._transport.is_closing()

    async def connect(self, address: str, port: int, tls: Any, name: str) -> None:
        """Open the connection; TimeoutError when `fetch.connect_timeout` is over first."""
        self._connecting = task = asyncio.current_task()
        assert task is not None
        self._deadline = self._loop.time() + self._settings.connect_timeout
        self._deadlines.watch(self, self._deadline)
        try:
            await self._loop.create_connection(
                self._itself, address, port, ssl=tls, server_hostname=name if tls else None
            )
        except asyncio.CancelledError:
            if self._connecting is None and task.uncancel() == 0:  # it was `check` that cancelled us
                raise TimeoutError from None
            raise
        finally:
            self._connecting = None

    def exchange(self, request: bytes, deadline: float) -> asyncio.Future[Exchange]:
        """Send a request; the future never fails, it ends with an `Exchange`."""
        done = self._done = self._loop.create_future()
        self._parser: Any = httptools.HttpResponseParser(self)
        self._result = Exchange()
        self._chunks: list[bytes] = []
        self._received = 0
        self._body: list[bytes] = []
        self._body_size = 0
        self._interim = 0
        self._headers_done = self._complete = self.reusable = False
        self._last = deadline
        self._deadline = min(self._loop.time() + self._settings.header_timeout, deadline)
        self._deadlines.watch(self, self._deadline)
        if self.open:
            self._transport.write(request)
        else:
            self._finish("disconnected")
        return done

    def check(self, now: float) -> float | None:
        """Called by the wheel of deadlines: end what is over."""
        if self._connecting is None and self._done is None:
            return None
        if now < self._deadline:
            return self._deadline
        if self._connecting is not None:
            task, self._connecting = self._connecting, None
            task.cancel()
        else:
            self._broken("timeout_headers", "time")
        return None

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()

    # ── asyncio ────────────────────────────────────────────────────────────────────────────────

    def _itself(self) -> Connection:
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        if self._done is None:  # bytes that nobody asked for
            self.reusable = False
            return self.close()
        self._chunks.append(data)
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            return self._broken("protocol_error", "")
        if self._body_size > self._settings.max_size:
            self.reusable = False
            return self._broken("", "length")
        if self._complete:
            return self._finish("")
        if not self._headers_done and self._received > self._settings.max_header:
            return self._finish("headers_too_large")
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self._transport = None
        if self._done is None:
            return
        if exc is None and self._headers_done and not self._framed():
            self._finish("")  # without a length, the end of the connection is the end of the body
        else:
            self._broken("disconnected", "disconnect")

    # ── httptools ──────────────────────────────────────────────────────────────────────────────

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        self._result.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        status = self._parser.get_status_code()
        if status >= 200:
            self._result.status = status
            self._headers_done = True
            self._deadline = self._last

    def on_body(self, data: bytes) -> None:
        """Called by the parser."""
        self._body.append(data)
        self._body_size += len(data)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if self._headers_done:
            self._complete = True
            self.reusable = self._parser.should_keep_alive()
            return
        self._interim += 1
        if self._interim > _MOST_INTERIM:
            raise httptools.HttpParserError("too many interim responses")
        self._result.headers.clear()
        head, _, rest = b"".join(self._chunks).partition(b"\r\n\r\n")
        self._chunks, self._received = [rest], self._received - len(head) - 4

    # ── ends ───────────────────────────────────────────────────────────────────────────────────

    def _framed(self) -> bool:
        return bool(self._result.header(b"content-length") or self._result.header(b"transfer-encoding"))

    def _broken(self, failure: str, truncated: str) -> None:
        """The exchange ends early: what came after the headers is kept as a cut body."""
        if self._headers_done and truncated:
            self._result.truncated = truncated
            failure = ""
        self._finish(failure)

    def _finish(self, failure: str) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        result = self._result
        result.failure = failure
        result.raw = b"".join(self._chunks)
        result.body = b"".join(self._body)
        if result.truncated == "length":
            surplus = self._body_size - self._settings.max_size
            result.body, result.raw = result.body[:-surplus], result.raw[:-surplus]
        # The parser refers back to us: without this a page would stay in memory until the next collection.
        self._chunks, self._body, self._parser = [], [], None
        self._result = _NOTHING
        if not self.reusable:
            self.close()
        if not done.done():
            done.set_result(result)
