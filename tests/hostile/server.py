"""A server that misbehaves as it is told: a script for each host, over real sockets on loopback.

It runs in a thread of its own (`hostile_server`), so that a test can wait for a crawler in another process.
Every request that reaches it is kept, to the byte.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from tests.hostile.names import Names, Script, below

ADDRESS = "127.66.0.1"
_PORT_TRIES = 20


@dataclass(frozen=True)
class Request:
    """One request as the server saw it."""

    host: str
    target: str
    raw: bytes
    time: float
    connection: int

    def header(self, name: str) -> str:
        """The value of a header, or "" without one."""
        for line in self.raw.decode("latin-1").split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name:
                return value.strip()
        return ""


class Line:
    """The server's end of a connection, as scripts use it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Write, and wait until the network has taken it."""
        self._writer.write(data)
        await self._writer.drain()

    async def drip(self, data: bytes, pause: float) -> None:
        """Write byte by byte."""
        for byte in data:
            await self.send(bytes((byte,)))
            await asyncio.sleep(pause)

    async def silence(self) -> None:
        """Say nothing until the client has hung up."""
        while await self._reader.read(65536):
            pass

    def reset(self) -> None:
        """End the connection without goodbye."""
        opened: socket.socket = self._writer.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self._writer.transport.abort()


Serve = Callable[[Line, Request], Awaitable[None]]


def ok(body: bytes = b"hi", kind: str = "text/html", headers: str = "", status: str = "200 OK") -> bytes:
    """A proper response."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def moved(target: str, headers: str = "") -> bytes:
    """A redirect."""
    return ok(b"", headers=f"Location: {target}\r\n{headers}", status="302 Found")


@dataclass
class Hostile:
    """The server: its scripts by host name (`*.name` for all below), its ports, and what it saw."""

    scripts: Mapping[str, Serve]
    names: Names
    certificates: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    http_port: int = 0
    https_port: int = 0
    dns_port: int = 0
    connections: int = 0
    _lines: set[asyncio.Task[None]] = field(default_factory=set)

    def seen(self, *hosts: str) -> list[Request]:
        """The requests for these hosts, in order."""
        return [request for request in self.requests if request.host in hosts]

    async def serve(self, addresses: Iterable[str], over: asyncio.Event, ready: threading.Event) -> None:
        """Listen until `over`."""
        loop = asyncio.get_running_loop()
        with ExitStack() as stack:
            self.http_port = await self._listen(list(addresses), None, stack)
            if self.certificates is not None:
                self.https_port = await self._listen([ADDRESS], self.certificates, stack)
            transport, _ = await loop.create_datagram_endpoint(lambda: self.names, ("127.0.0.1", 0))
            stack.callback(transport.close)
            self.dns_port = transport.get_extra_info("sockname")[1]
            ready.set()
            await over.wait()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _listen(self, addresses: list[str], tls: ssl.SSLContext | None, stack: ExitStack) -> int:
        bound = bind(addresses)
        for listener in bound:
            server = await asyncio.start_server(self._accept, sock=listener, ssl=tls, backlog=1024)
            stack.callback(server.close)
        return int(bound[0].getsockname()[1])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        self.connections += 1
        number = self.connections
        try:
            while True:
                raw = await reader.readuntil(b"\r\n\r\n")
                request = _read(raw, number)
                self.requests.append(request)
                script = below(self.scripts, request.host)
                if script is None:
                    break
                await script(Line(reader, writer), request)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError, End):
            pass
        finally:
            self._lines.discard(task)
            with suppress(OSError):
                writer.close()


class End(Exception):  # noqa: N818  (not an error: the script's way to say goodbye)
    """Raised by a script that is done with its connection."""


def _read(raw: bytes, connection: int) -> Request:
    target = raw.split(b" ", 2)[1].decode("latin-1")
    request = Request("", target, raw, time.monotonic(), connection)
    host = request.header("host")
    return Request(host.rpartition(":")[0] or host, target, raw, request.time, connection)


def bind(addresses: list[str]) -> list[socket.socket]:
    """A socket on each address, all at one port."""
    for _ in range(_PORT_TRIES):
        bound: list[socket.socket] = []
        port = 0
        try:
            for address in addresses:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                bound.append(socket.socket(family, socket.SOCK_STREAM))
                bound[-1].bind((address, port))
                port = bound[-1].getsockname()[1]
        except OSError:
            for listener in bound:
                listener.close()
        else:
            return bound
    raise OSError(f"no port is free on all of {len(addresses)} addresses")


@contextmanager
def hostile_server(
    scripts: Mapping[str, Serve],
    records: Mapping[str, Script],
    addresses: Iterable[str] = (ADDRESS,),
    certificates: ssl.SSLContext | None = None,
    otherwise: Callable[[bytes], bytes | None] | None = None,
) -> Iterator[Hostile]:
    """The server in a thread, as long as the block runs."""
    server = Hostile(scripts, Names(records, otherwise), certificates)
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()
    task = server.serve(addresses, over, ready)
    thread = threading.Thread(target=lambda: loop.run_until_complete(task), daemon=True)
    thread.start()
    assert ready.wait(10), "the hostile server did not start"
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
