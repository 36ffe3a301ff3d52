"""Fetching from a server that does one thing wrong at a time, over real sockets on loopback."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from barkspider.core.load import load_settings
from barkspider.fetch import STALE, Fetcher, Response, retry_after
from barkspider.fetch.connection import Connection

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def says(*pieces: bytes, pause: float = 0.0, stay: bool = False) -> Script:
    """A server that reads a request, writes these pieces, and closes unless it is to stay."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        if stay:
            await reader.read()

    return script


def fetch(script: Script, *paths: str, **changes: str) -> list[Response]:
    """Fetch paths one after the other from a server that runs the script on each connection."""

    async def run() -> list[Response]:
        serving = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            serving.add(asyncio.current_task())
            try:
                await script(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        short = {"fetch.timeout": "600ms", "fetch.header_timeout": "300ms", "fetch.connect_timeout": "300ms"}
        names = short | {name.replace("__", "."): value for name, value in changes.items()}
        opened = {"network.allow": ["127.0.0.0/8"], "network.ports": [f"127.0.0.0/8:80={port}"]}
        fetcher = Fetcher(load_settings(overrides=names | opened))
        try:
            return [await fetcher.fetch(f"http://a.example{path}", "127.0.0.1") for path in paths or ("/",)]
        finally:
            await fetcher.aclose()
            server.close()
            await asyncio.gather(*serving)

    return asyncio.run(run())


def one(script: Script, **changes: str) -> Response:
    return fetch(script, **changes)[0]


def test_a_page_is_kept_to_the_byte() -> None:
    response = one(says(OK))
    assert (response.exchange.failure, response.exchange.status, response.body, response.whole) == (
        "",
        200,
        b"hi",
        True,
    )
    assert response.exchange.head + response.exchange.payload == OK
    assert response.request.startswith(b"GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: barkspider/")
    assert response.request.endswith(b"\r\n\r\n")


def test_chunks_are_joined_and_the_wire_bytes_kept() -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    response = one(says(raw[:40], raw[40:60], raw[60:], pause=0.01))
    assert (response.body, response.exchange.head + response.exchange.payload) == (b"abcde", raw)


def test_gzip_is_unpacked_and_the_wire_bytes_kept() -> None:
    packed = gzip.compress(b"text " * 1000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    response = one(says(head + packed))
    assert (response.body, response.whole) == (b"text " * 1000, True)
    assert response.exchange.head + response.exchange.payload == head + packed


def test_a_bomb_is_unpacked_up_to_the_limit() -> None:
    packed = zlib.compress(bytes(30_000_000), 9)
    response = one(
        says(b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n" + packed), fetch__max_decoded="1MB"
    )
    assert (len(response.body), response.whole) == (1_000_000, False)


def test_what_is_not_packed_as_it_says_is_given_as_it_came() -> None:
    response = one(says(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nplain"))
    assert (response.body, response.whole) == (b"plain", False)


def test_a_body_without_length_ends_with_the_connection() -> None:
    response = one(says(b"HTTP/1.1 200 OK\r\n\r\nall of it"))
    assert (response.body, response.exchange.truncated) == (b"all of it", "")


def test_interim_responses_are_passed_over() -> None:
    response = one(says(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK))
    assert (response.exchange.status, response.exchange.head + response.exchange.payload, response.body) == (
        200,
        OK,
        b"hi",
    )
    assert response.exchange.header(b"link") == ""


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        (says(), "disconnected"),
        (says(b"HTTP/1.1 200 OK\r\nContent-"), "disconnected"),
        (says(b"HTTP/1.1 200 OK\r\nX: ", *[b"y"] * 100, pause=0.05, stay=True), "timeout_headers"),
        (says(stay=True), "timeout_headers"),
        (says(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, stay=True), "headers_too_large"),
        (says(b"SSH-2.0-OpenSSH\r\n", stay=True), "protocol_error"),
        (
            says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", stay=True),
            "protocol_error",
        ),
        (says(b"HTTP/1.1 200 OK\r\nX\0Y: 1\r\n\r\n", stay=True), "protocol_error"),
        (says(b"HTTP/1.1 100 Continue\r\n\r\n" * 50, stay=True), "protocol_error"),
    ],
)
def test_no_response_is_a_failure_with_a_name(script: Script, failure: str) -> None:
    assert one(script).exchange.failure == failure


@pytest.mark.parametrize(
    ("script", "truncated", "size"),
    [
        (says(b"HTTP/1.1 200 OK\r\n\r\n", *[b"x" * 1000] * 100), "length", 5000),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + b"x" * 9000), "length", 5000),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", *[b"x"] * 50, pause=0.1), "time", None),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nxxx"), "disconnect", 3),
    ],
)
def test_a_cut_body_is_kept_and_the_cut_recorded(script: Script, truncated: str, size: int | None) -> None:
    response = one(script, fetch__max_size="5KB")
    assert (response.exchange.failure, response.exchange.truncated, response.whole) == ("", truncated, False)
    assert response.body == b"x" * len(response.body)
    assert len(response.body) == size if size else 0 < len(response.body) < 50


def test_a_connection_serves_its_host_again() -> None:
    connections = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while not reader.at_eof():
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)

    responses = fetch(script, "/1", "/2", "/3")
    assert [response.body for response in responses] == [b"hi"] * 3
    assert connections == 1


def test_a_request_on_a_dead_connection_is_not_sent_again_behind_the_callers_back() -> None:
    connections = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await reader.readuntil(b"\r\n\r\n")  # the next request finds the door closed
        writer.transport.abort()

    responses = fetch(script, "/1", "/2", "/3")
    assert [response.exchange.failure for response in responses] == ["", STALE, ""]
    assert connections == 2


def test_a_connection_that_is_closed_is_held_by_nobody_until_its_deadline() -> None:
    held = list[int]()

    async def run() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await says(OK)(reader, writer)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        opened = {"network.allow": ["127.0.0.0/8"], "network.ports": [f"127.0.0.0/8:80={port}"]}
        fetcher = Fetcher(load_settings(overrides={"fetch.idle_connections": 0} | opened))
        for _ in range(3):
            await fetcher.fetch("http://a.example/", "127.0.0.1")
            held.append(sum(map(len, fetcher._shared.deadlines._slots.values())))
        await fetcher.aclose()
        server.close()

    asyncio.run(run())
    assert held == [0, 0, 0]


class Idle:
    """Stands for a connection that is kept."""

    def __init__(self, weight: int) -> None:
        self.weight, self.closed = weight, False

    def close(self) -> None:
        self.closed = True


def test_idle_connections_take_a_share_of_the_memory_and_the_oldest_go_first() -> None:
    async def run() -> None:
        fetcher = Fetcher(load_settings(overrides={"memory": "16MB"}))  # a sixteenth of that for them
        kept = [Idle(400_000) for _ in range(4)]
        for number, each in enumerate(kept):
            fetcher._hold_idle(("https", f"h{number}.example", 443, "192.0.2.1"), cast(Connection, each))
        assert [each.closed for each in kept] == [True, True, False, False]
        again = Idle(400_000)
        fetcher._hold_idle(("https", "h3.example", 443, "192.0.2.1"), cast(Connection, again))
        assert [each.closed for each in kept] == [
            True,
            True,
            False,
            True,
        ]  # the one that was there for its host
        fetcher._hold_idle(("https", "h4.example", 443, "192.0.2.1"), cast(Connection, Idle(2_000_000)))
        assert again.closed
        assert not fetcher._idle  # what is too much by itself is not kept
        assert fetcher._idle_bytes == 0
        await fetcher.aclose()

    asyncio.run(run())


def test_nothing_connects_to_an_address_that_was_not_opened() -> None:
    async def run() -> Response:
        fetcher = Fetcher(load_settings())
        try:
            return await fetcher.fetch("http://127.0.0.1/", "127.0.0.1")
        finally:
            await fetcher.aclose()

    assert asyncio.run(run()).exchange.failure == "refused_address"


def test_a_closed_port_fails_at_once() -> None:
    async def run() -> Response:
        opened = {"network.allow": ["127.0.0.0/8"], "network.ports": ["127.0.0.0/8:80=1"]}
        fetcher = Fetcher(load_settings(overrides=opened))
        try:
            return await fetcher.fetch("http://a.example/", "127.0.0.1")
        finally:
            await fetcher.aclose()

    assert asyncio.run(run()).exchange.failure == "connect_failed"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"120", 120.0),
        (b"-5", -5.0),
        (b"soon", None),
        (b"", None),
        (b"Thu, 01 Jan 1970 00:00:10 GMT", 10.0),
        (b"9" * 40, float("9" * 40)),
    ],
)
def test_retry_after(text: bytes, expected: float | None) -> None:
    response = one(says(b"HTTP/1.1 503 Busy\r\nRetry-After: " + text + b"\r\nContent-Length: 0\r\n\r\n"))
    assert retry_after(response.exchange, 0.0) == expected
