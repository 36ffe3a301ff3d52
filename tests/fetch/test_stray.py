"""Bytes that nobody asked for on a connection that is kept: the next page has none of them.

Each case is a way for a message to end, a moment at which the stray bytes come, what they are, and plain HTTP or TLS:
6 x 9 x 3 x 2 = 324. The server runs on the same loop, so that its bytes are there when the test says so, before the
client has looked at its sockets again.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from barkspider.fetch import Fetcher
from barkspider.lab.synthweb.certificates import Authority
from tests.fetch.test_ways import fetcher, listening

ENDS = {
    "a length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
    "a length of 0": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\nA: b\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
}
STRAYS = {
    "a response": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Stray: ",
    "a body": b"stray",
}
SECOND = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond"


class Server:
    """Answers /first and /second; what it says between is up to a moment."""

    def __init__(self, end: bytes) -> None:
        self.end, self.behind = end, b""
        self.writer: asyncio.StreamWriter | None = None  # of the connection that was used last
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            self.writer = writer
            writer.write(SECOND if b"/second" in request else self.end + self.behind)

    def say(self, data: bytes) -> None:
        assert self.writer is not None
        self.writer.write(data)  # which reaches the kernel at once

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


class Client:
    def __init__(self, fetching: Fetcher, scheme: str, port: int) -> None:
        self.fetching, self.base = fetching, f"{scheme}://a.example:{port}"

    async def get(self, path: str) -> tuple[str, bytes]:
        found = await self.fetching.fetch(self.base + path, "127.0.0.1")
        return found.exchange.outcome, found.body


Moment = Callable[[Server, Client, bytes], Coroutine[None, None, tuple[str, bytes]]]


async def with_the_end(server: Server, client: Client, stray: bytes) -> tuple[str, bytes]:
    server.behind = stray
    await client.get("/first")
    return await client.get("/second")


async def in_the_same_turn(server: Server, client: Client, stray: bytes) -> tuple[str, bytes]:
    first = asyncio.create_task(client.get("/first"))
    while server.writer is None:  # noqa: ASYNC110
        await asyncio.sleep(0)
    server.say(stray)
    await first
    return await client.get("/second")


async def in_the_next_turn(server: Server, client: Client, stray: bytes) -> tuple[str, bytes]:
    await client.get("/first")
    await asyncio.sleep(0)
    server.say(stray)
    return await client.get("/second")


async def while_idle(server: Server, client: Client, stray: bytes) -> tuple[str, bytes]:
    await client.get("/first")
    server.say(stray)
    await asyncio.sleep(0.002)
    return await client.get("/second")


async def right_before(server: Server, client: Client, stray: bytes) -> tuple[str, bytes]:
    await client.get("/first")
    server.say(stray)
    return await client.get("/second")


async def when_it_is_queued(server: Server, client: Client, stray: bytes) -> tuple[str, bytes]:
    await client.get("/first")
    second = asyncio.create_task(client.get("/second"))
    server.say(stray)
    return await second


async def in_halves(server: Server, client: Client, stray: bytes) -> tuple[str, bytes]:
    await client.get("/first")
    server.say(stray[: len(stray) // 2])
    await asyncio.sleep(0)
    server.say(stray[len(stray) // 2 :])
    return await client.get("/second")


async def after_a_blank_line(server: Server, client: Client, stray: bytes) -> tuple[str, bytes]:
    server.behind = b"\r\n"  # which is harmless by itself
    await client.get("/first")
    server.say(stray)
    return await client.get("/second")


async def after_a_second_use(server: Server, client: Client, stray: bytes) -> tuple[str, bytes]:
    assert await client.get("/second") == ("ok", b"second")
    await client.get("/first")
    server.say(stray)
    return await client.get("/second")


MOMENTS: list[Moment] = [
    with_the_end, in_the_same_turn, in_the_next_turn, while_idle, right_before, when_it_is_queued, in_halves,
    after_a_blank_line, after_a_second_use,
]  # fmt: skip


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ssl.SSLContext, Path]]:
    trusted = tmp_path_factory.mktemp("tls") / "authority.pem"
    authority = Authority()
    trusted.write_bytes(authority.pem)
    yield authority.context("a.example"), trusted
    authority.close()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_stray_byte_belongs_to_the_next_page(
    end: str, scheme: str, certificates: tuple[ssl.SSLContext, Path]
) -> None:
    context, authority = certificates

    async def run() -> dict[tuple[str, str], tuple[str, bytes]]:
        found = {}
        async with aclosing(fetcher(1, **{"fetch.tls_authority": str(authority)})) as fetching:
            for moment in MOMENTS:
                for name, stray in STRAYS.items():
                    server = Server(ENDS[end])
                    async with listening(server.serve, context if scheme == "https" else None) as port:
                        client = Client(fetching, scheme, port)
                        found[moment.__name__, name] = await moment(server, client, stray)
                        server.hang_up()
        return found

    found = asyncio.run(run())
    assert len(found) == 27
    assert {case: what for case, what in found.items() if what != ("ok", b"second")} == {}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_connection_without_stray_bytes_is_kept(
    scheme: str, certificates: tuple[ssl.SSLContext, Path]
) -> None:
    context, authority = certificates

    async def run() -> int:
        writers = set()
        async with aclosing(fetcher(1, **{"fetch.tls_authority": str(authority)})) as fetching:
            server = Server(ENDS["a length"])
            async with listening(server.serve, context if scheme == "https" else None) as port:
                client = Client(fetching, scheme, port)
                for path in ("/first", "/second") * 3:
                    await client.get(path)
                    writers.add(server.writer)
                server.hang_up()
        return len(writers)

    assert asyncio.run(run()) == 1


def test_an_answer_that_came_before_its_request_ends_the_connection() -> None:
    async def run() -> list[tuple[str, bytes]]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            async with aclosing(fetcher(port)) as fetching:
                client, found, accepted = Client(fetching, "http", port), [], []
                for path in ("/first", "/second"):
                    asking = asyncio.create_task(client.get(path))
                    await asyncio.sleep(0)  # it connects, and the client has not looked at its socket again
                    if path == "/second":
                        listener.setblocking(False)
                    accepted.append(listener.accept()[0])
                    accepted[-1].sendall(STRAYS["a response"])
                    found.append(await asking)
                for connection in accepted:
                    connection.close()
                return found

    assert asyncio.run(run()) == [("ok", b"stray")] * 2
