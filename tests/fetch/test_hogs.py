"""Servers that want all of the memory for what is received: pages of others come through, and the limit holds."""

from __future__ import annotations

import asyncio
import tracemalloc
import zlib
from collections.abc import Awaitable
from contextlib import AsyncExitStack, aclosing

import pytest

from barkspider.core.settings import Fetch
from barkspider.fetch import Response
from barkspider.fetch import intake as intake_module
from barkspider.fetch.message import Message
from tests.fetch.test_ways import Serve, answering, fetcher, listening

_SHARE = 2_000_000  # of 16 MB


def hog(size: int) -> Serve:
    """Nearly all of a page at once, and the rest faster than the least that is allowed, but not by much."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + b"h" * size)
        while not writer.is_closing():
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.write(b"h" * 100)

    return serve


def page(size: int) -> Serve:
    return answering(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % size + b"p" * size
    )


def test_pages_come_through_beside_hogs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_module, "_CHANCE", 0.1)

    async def read(fetch: Awaitable[Response]) -> tuple[str, str, int]:
        response = await fetch
        assert len(set(response.body)) == 1
        return response.exchange.outcome, response.exchange.truncated, len(response.body)

    async def run() -> tuple[list[tuple[str, str, int]], list[tuple[str, str, int]], int]:
        async with AsyncExitStack() as stack:
            hogs = await stack.enter_async_context(listening(hog(300_000)))
            small = await stack.enter_async_context(listening(page(50_000)))
            large = await stack.enter_async_context(listening(page(400_000)))
            # The deadlines are long: whoever waits for a hog to end by itself does not come through.
            settings = {"memory": "16MB", "fetch.timeout": "60s", "fetch.header_timeout": "60s"}
            fetching = fetcher(1, **settings)
            await stack.enter_async_context(aclosing(fetching))
            held = fetching._shared.intake
            greedy = [
                asyncio.create_task(read(fetching.fetch(f"http://a.example:{hogs}/", "127.0.0.1")))
                for _ in range(40)
            ]
            async with asyncio.timeout(20):
                while held.held < _SHARE:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                good = [
                    await read(fetching.fetch(f"http://a.example:{port}/", "127.0.0.1"))
                    for port in (small, large) * 5
                ]
            for task in greedy:
                task.cancel()
            ended = [task.result() for task in greedy if task.done() and not task.cancelled()]
            await asyncio.gather(*greedy, return_exceptions=True)
            return good, ended, held.most_held

    good, ended, most_held = asyncio.run(run())
    assert good == [("ok", "", 50_000), ("ok", "", 400_000)] * 5
    assert {(outcome, truncated) for outcome, truncated, _ in ended} == {("cut_memory", "unspecified")}
    assert min(size for _, _, size in ended) > intake_module.FIRST // 2
    assert most_held < _SHARE + 50 * 2 * intake_module.FIRST + 4 * 400_000


def test_a_hog_that_waits_for_memory_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_module, "_CHANCE", 1000.0)

    async def run() -> list[str]:
        async with listening(hog(300_000)) as port:
            settings = {"memory": "16MB", "fetch.timeout": "500ms"}
            async with aclosing(fetcher(port, **settings)) as fetching, asyncio.timeout(20):
                fetches = [fetching.fetch("http://a.example/", "127.0.0.1") for _ in range(20)]
                return [each.exchange.outcome for each in await asyncio.gather(*fetches)]

    assert asyncio.run(run()) == ["cut_time"] * 20


def taken(limits: Fetch, *pieces: bytes) -> tuple[int, int]:
    """Bytes that a message takes while it is not over, and that it says it does."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    message = Message(limits)
    for piece in pieces:
        assert not message.feed(piece)
    found = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return found, message.held


_LONG = Fetch(parse_timeout=60.0, max_headers=10**6)


@pytest.mark.parametrize(
    "pieces",
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *[b"2\r\nab\r\n" * 5000] * 20),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *[b"2\nab\n" * 1000] * 10),
        (b"HTTP/1.1 200 OK\r\n\r\n", *[b"x" * 16] * 50_000),
        (b"HTTP/1.1 200 OK\r\n", *[b"ab: c\r\n" * 1000] * 9),
        (b"HTTP/1.1 200 OK\r\n\r\n", *[b"x" * 60_000] * 20),
    ],
    ids=["small chunks", "small chunks that break rules", "small pieces", "headers", "a page"],
)
def test_a_message_knows_what_it_takes(pieces: tuple[bytes, ...]) -> None:
    found, said = taken(_LONG, *pieces)
    assert found <= said * 1.3 + 4096
    assert said <= sum(map(len, pieces)) * 2 + 100 * len(pieces) + 200 * b"".join(pieces).count(b": c")


@pytest.mark.parametrize("end", [b"\r\nhi", b""])
def test_a_flood_of_headers_is_refused(end: bytes) -> None:
    message = Message(Fetch())
    assert message.feed(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 2002 + end)
    found = message.exchange()
    assert (found.outcome, found.detail) == ("headers_too_large", "more than 2000 headers")


def test_bombs_are_not_unpacked_before_they_are_read() -> None:
    packed = zlib.compress(bytes(8_000_000), 9)
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: deflate\r\nContent-Length: %d\r\n\r\n"

    async def run() -> tuple[int, int]:
        async with (
            listening(answering(head % len(packed) + packed)) as port,
            aclosing(fetcher(port)) as fetching,
        ):
            fetches = [fetching.fetch("http://a.example/", "127.0.0.1") for _ in range(10)]
            found = await asyncio.gather(*fetches)
            waiting = tracemalloc.get_traced_memory()[0]
            return waiting, len(found[0].body)

    tracemalloc.start()
    try:
        waiting, size = asyncio.run(run())
    finally:
        tracemalloc.stop()
    assert size == 8_000_000
    assert waiting < 8_000_000
