"""A name server on loopback, over UDP and TCP, that says what a test tells it to."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass

A, CNAME, AAAA = 1, 5, 28
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME, REFUSED = 0, 2, 3, 5


@dataclass(frozen=True)
class Answer:
    """What is said about a name: addresses and aliases, a code, or exactly these bytes after the id."""

    records: Sequence[str] = ()
    ttl: int = 300
    code: int = NO_ERROR
    truncated: bool = False
    raw: bytes | None = None


Script = Callable[[str, int], Answer | None]
"""From a name and a kind of record to an answer; None says nothing at all."""


class NameServer:
    """Runs a script; `asked` are the questions in the order in which they came."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[tuple[str, int]] = []
        self.streams = 0  # questions that came over TCP
        self.open = asyncio.Event()  # answers wait until it is set
        self.open.set()
        self.address = ""
        self._came = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> NameServer:
        loop = asyncio.get_running_loop()
        while True:  # until a port is free for both
            self._server = await asyncio.start_server(self._stream, "127.0.0.1", 0)
            host, port = self._server.sockets[0].getsockname()
            try:
                self._transport, _ = await loop.create_datagram_endpoint(
                    lambda: _Datagrams(self), (host, port)
                )
            except OSError:
                self._server.close()
            else:
                self.address = f"{host}:{port}"
                return self

    async def __aexit__(self, *_: object) -> None:
        self.open.set()
        self._transport.close()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def received(self, count: int) -> None:
        """Wait until so many questions have come."""
        while len(self.asked) < count:
            self._came.clear()
            await self._came.wait()

    def begin(self, query: bytes, reply: Callable[[bytes], None]) -> None:
        """Answer in a task of its own."""
        task = asyncio.create_task(self._respond(query, reply, datagram=True))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _respond(self, query: bytes, reply: Callable[[bytes], None], datagram: bool) -> None:
        name, kind, end = question(query)
        self.asked.append((name, kind))
        self._came.set()
        await self.open.wait()
        answer = self.script(name, kind)
        if answer is not None:
            reply(message(query[:end], answer, cut=answer.truncated and datagram))

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(2), "big")
                query = await reader.readexactly(length)
                self.streams += 1
                await self._respond(
                    query, lambda text: writer.write(len(text).to_bytes(2, "big") + text), datagram=False
                )
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: NameServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:
        self._server.begin(data, lambda text: self._transport.sendto(text, addr))


def question(query: bytes) -> tuple[str, int, int]:
    """The name as it was asked, the kind of record, and where the question ends."""
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    return ".".join(labels), int.from_bytes(query[at + 1 : at + 3], "big"), at + 5


def message(query: bytes, answer: Answer, cut: bool) -> bytes:
    """The response to a query that ends with its question."""
    if answer.raw is not None:
        return query[:2] + answer.raw
    records = [] if cut else [_record(text, answer.ttl) for text in answer.records]
    flags = bytes((0x84 | (query[2] & 1) | 2 * cut, 0x80 | answer.code))
    return (
        query[:2]
        + flags
        + b"\0\1"
        + len(records).to_bytes(2, "big")
        + bytes(4)
        + query[12:]
        + b"".join(records)
    )


def _record(text: str, ttl: int) -> bytes:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        kind = CNAME
        data = b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"
    else:
        kind, data = (A if address.version == 4 else AAAA), address.packed
    head = b"\xc0\x0c" + kind.to_bytes(2, "big") + b"\0\1"
    return head + ttl.to_bytes(4, "big") + len(data).to_bytes(2, "big") + data
