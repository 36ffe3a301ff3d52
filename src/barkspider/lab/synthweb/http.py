"""HTTP/1.1 over a connection: requests parsed by hand, since all that matters is in three places.

The common case, a page of a regular host, takes one search for the end of the headers, one for Host, and
one kernel call.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from email.utils import formatdate
from typing import cast

import brotli
from isal import isal_zlib

from barkspider.lab.synthweb.answer import NOT_FOUND, Answer, AnyWeb, Manner, Request
from barkspider.lab.synthweb.log import RequestLog

# More than any client sends; a request that is longer gets 431.
_MAX_HEAD = 65_536
# Names whose numbers are remembered as bytes; the table is emptied when it is full.
_MAX_HOSTS = 100_000
_REASONS = {
    200: "OK", 301: "Moved Permanently", 302: "Found", 303: "See Other", 307: "Temporary Redirect",
    308: "Permanent Redirect", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
    413: "Content Too Large", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
    500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip
_UNCHANGED = b"HTTP/1.1 304 Not Modified\r\nServer: Quill\r\nVary: Accept-Encoding\r\nETag: "
_GZIP = 31  # the window size that makes zlib write gzip
_BROTLI = 3  # quality: a page of 25 KB takes a quarter of a millisecond
_TRICKLE_STEPS = 50
_ABSOLUTE = b"http://"


class Service:
    """What all connections of a server share. Used on its loop only."""

    def __init__(self, web: AnyWeb, log: RequestLog | None = None) -> None:
        self.web = web
        self.log = log
        self.seed = web.seed
        self.connections: set[Connection] = set()
        self._hosts: dict[bytes, tuple[int, bytes]] = {}
        self._date = (0, b"")

    def regular_host(self, name: bytes, scheme: str) -> tuple[int, bytes]:
        """The number of a regular host that answers on `scheme`, or -1, and the start of its responses."""
        key = name if scheme == "http" else b"s:" + name
        known = self._hosts.get(key)
        if known is None:
            known = self._look_up(_host(name), scheme)
            if len(self._hosts) >= _MAX_HOSTS:
                self._hosts.clear()
            self._hosts[key] = known
        return known

    def _look_up(self, name: str, scheme: str) -> tuple[int, bytes]:
        host, content_type = self.web.regular_host(name, scheme)
        start = f"HTTP/1.1 200 OK\r\nServer: Quill\r\nContent-Type: {content_type}\r\n"
        return host, start.encode()

    def date(self) -> bytes:
        """The Date header, made once a second."""
        now = int(time.time())
        if now != self._date[0]:
            self._date = (now, f"Date: {formatdate(now, usegmt=True)}\r\n".encode())
        return self._date[1]


class Connection(asyncio.Protocol):
    """One client's connection. Answers in the order of requests; reads on while it waits or is blocked."""

    def __init__(self, service: Service, scheme: str) -> None:
        self._service = service
        self._scheme = scheme
        self._buffer = b""
        self._sending: asyncio.Task[None] | None = None
        self._blocked = False
        self._address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if peer is None or not ipaddress.ip_address(peer[0]).is_loopback:
            self._transport.abort()  # cannot happen while only loopback addresses are bound
            return
        self._address = transport.get_extra_info("sockname")[0]
        self._service.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._service.connections.discard(self)
        if self._sending is not None:
            self._sending.cancel()

    def close(self) -> None:
        """Ends the connection at once."""
        self._transport.abort()

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        self._answer_all()

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        self._answer_all()

    def _answer_all(self) -> None:
        while (
            self._buffer and not self._blocked and self._sending is None and not self._transport.is_closing()
        ):
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEAD:
                    self._refuse(431)
                return
            head = self._buffer[:end]
            self._buffer = self._buffer[end + 4 :]
            self._handle(head)

    def _handle(self, head: bytes) -> None:
        line_end = head.find(b"\r\n")
        line = (head if line_end < 0 else head[:line_end]).split(b" ")
        fields = head[line_end:].lower() + b"\r\n" if line_end >= 0 else b"\r\n"
        host = _field(fields, b"\r\nhost:")
        if len(line) == 3 and line[1].startswith(_ABSOLUTE):  # so a proxy is asked; the host is in Host, too
            line[1] = b"/" + line[1][len(_ABSOLUTE) :].partition(b"/")[2]
        if len(line) != 3 or not line[1].startswith(b"/") or not line[2].startswith(b"HTTP/1.") or not host:
            return self._refuse(400)
        if line[0] not in (b"GET", b"HEAD"):
            return self._refuse(405)
        if _field(fields, b"\r\ncontent-length:") not in (b"", b"0") or b"\r\ntransfer-encoding:" in fields:
            return self._refuse(413)
        connection = _field(fields, b"\r\nconnection:")
        close = connection == b"close" or (line[2] == b"HTTP/1.0" and connection != b"keep-alive")
        coding = _coding(_field(fields, b"\r\naccept-encoding:"))
        number, start = self._service.regular_host(host, self._scheme)
        found = self._service.web.regular_page(number, line[1]) if number >= 0 else None
        if found is None:
            # The cookie's value is taken from the original text: only names of fields have no case.
            at = fields.find(b"\r\ncookie:")
            cookie = head[line_end + at + 9 :].partition(b"\r\n")[0] if at >= 0 else b""
            target = line[1].decode("utf-8", "replace")
            request = Request(_host(host), target, self._scheme, cookie.strip().decode("latin-1"))
            return self._answer(request, line[0] == b"HEAD", coding, close)
        body, version = found
        # From what the bytes follow from, in all codings: they need not be looked at.
        suffix = b"-" + coding if coding else b""
        tag = b'"%x-%x%b"' % (self._service.seed, version, suffix)
        ending = b"Connection: close\r\n\r\n" if close else b"\r\n"
        if tag in _field(fields, b"\r\nif-none-match:"):
            self._note(host, line[1], 304)
            self._transport.write(b"".join((_UNCHANGED, tag, b"\r\n", self._service.date(), ending)))
        else:
            self._note(host, line[1], 200)
            if coding:
                body = _packed(body, coding)
                start += b"Content-Encoding: %b\r\nVary: Accept-Encoding\r\n" % coding
            length = b"\r\nContent-Length: %d\r\n" % len(body)
            if line[0] == b"HEAD":
                body = b""
            self._transport.write(
                b"".join((start, b"ETag: ", tag, length, self._service.date(), ending, body))
            )
        if close:
            self._transport.close()
        return None

    def _answer(self, request: Request, head_only: bool, coding: bytes, close: bool) -> None:
        answer = self._service.web.answer(request)
        closed = answer.manner is Manner.CLOSED
        self._note(request.host.encode(), request.target.encode(), 0 if closed else answer.status)
        if answer.manner is Manner.PLAIN and not answer.delay:
            head, body = self._message(answer, coding, close)
            self._transport.write(head if head_only else head + body)
            if close:
                self._transport.close()
            return
        self._sending = asyncio.get_running_loop().create_task(self._send_badly(answer, close))
        self._sending.add_done_callback(self._sent)

    def _message(self, answer: Answer, coding: bytes, close: bool) -> tuple[bytes, bytes]:
        body = answer.body
        fields = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
        if answer.content_type is not None:
            fields += f"Content-Type: {answer.content_type}\r\n"
        if coding and len(body) > 500:  # shorter ones do not get shorter
            body = _packed(body, coding)
            fields += f"Content-Encoding: {coding.decode()}\r\nVary: Accept-Encoding\r\n"
        if close:
            fields += "Connection: close\r\n"
        status = f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\nServer: Quill\r\n"
        head = f"{status}{fields}Content-Length: {len(body)}\r\n".encode() + self._service.date() + b"\r\n"
        return head, body

    async def _send_badly(self, answer: Answer, close: bool) -> None:
        await asyncio.sleep(answer.delay)
        head, body = self._message(answer, b"", close)
        write = self._transport.write
        if answer.manner is Manner.PLAIN:
            write(head + body)
        elif answer.manner is Manner.CUT:
            write(head + body[: len(body) // 2])
        elif answer.manner is Manner.TRICKLED_HEADERS:
            for at in range(len(head)):
                write(head[at : at + 1])
                await asyncio.sleep(answer.seconds / len(head))
            write(body)
        elif answer.manner is Manner.TRICKLED_BODY:
            write(head)
            piece = len(body) // _TRICKLE_STEPS + 1
            for at in range(0, len(body), piece):
                await asyncio.sleep(answer.seconds / _TRICKLE_STEPS)
                write(body[at : at + piece])
        if close or answer.manner in (Manner.CUT, Manner.CLOSED):
            self._transport.close()

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending = None
        if not task.cancelled():
            self._answer_all()

    def _refuse(self, status: int) -> None:
        self._note(b"-", b"-", status)
        answer = Answer(status, NOT_FOUND.body.replace(b"Not found", str(status).encode()))
        head, body = self._message(answer, b"", True)
        self._transport.write(head + body)
        self._transport.close()

    def _note(self, host: bytes, path: bytes, status: int) -> None:
        if self._service.log is not None:
            text = path.decode("utf-8", "replace").replace("\t", "%09")
            name = _host(host).replace("\t", "")
            self._service.log.add(time.time(), self._address, name, text, status)


def _field(fields: bytes, name: bytes) -> bytes:
    at = fields.find(name)
    if at < 0:
        return b""
    begin = at + len(name)
    return fields[begin : fields.find(b"\r\n", begin)].strip()


def _coding(accepted: bytes) -> bytes:
    """The content coding for a client: gzip, or br for one that takes that alone."""
    return next((coding for coding in (b"gzip", b"br") if coding in accepted), b"")


def _packed(body: bytes, coding: bytes) -> bytes:
    packed: bytes = (
        isal_zlib.compress(body, 1, _GZIP) if coding == b"gzip" else brotli.compress(body, quality=_BROTLI)
    )
    return packed


def _host(name: bytes) -> str:
    return name.decode("latin-1").partition(":")[0].rstrip(".").lower()
