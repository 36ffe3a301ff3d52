"""Reading within a share of memory and a bandwidth, on a clock of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from barkspider.core.load import load_settings
from barkspider.core.settings import Fetch
from barkspider.fetch import Fetcher, Response
from barkspider.fetch.intake import Intake


class Loop:
    """As much of a loop as an intake needs: a time that tests move, and timers."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> object:
        self._timers.append((self.now + delay, call))
        return object()

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self._timers if timer[0] <= end]:
            first = min(due, key=lambda timer: timer[0])
            self._timers.remove(first)
            self.now = max(self.now, first[0])
            first[1]()
        self.now = end


class Source:
    """A connection that always has `piece` bytes to read, `whole` in all."""

    def __init__(self, intake: Intake, loop: Loop, whole: int, piece: int = 1000) -> None:
        self.intake, self.whole, self.piece = intake, whole, piece
        self.started = loop.now
        self.got = 0
        self.hurried = False

    def read(self) -> None:
        while self.got < self.whole and self.intake.may_read(self):
            self.got += self.piece
            self.intake.took(self.piece)
        if self.got >= self.whole:
            self.intake.gave_back(self, self.got)

    def resume(self, within: float | None) -> None:
        self.hurried = self.hurried or within is not None
        self.read()


def make(memory: int = 10**9, hour: int = 12, **settings: object) -> tuple[Intake, Loop]:
    loop = Loop()
    return Intake(Fetch(**settings), memory, cast(asyncio.AbstractEventLoop, loop), lambda: hour), loop  # type: ignore[arg-type]


def test_bandwidth_is_kept_over_any_longer_time() -> None:
    intake, loop = make(bandwidth=10_000)
    sources = [Source(intake, loop, 10**6) for _ in range(5)]
    for source in sources:
        source.read()
    for second in range(1, 20):
        loop.run(1.0)
        total = sum(source.got for source in sources)
        assert 10_000 * (second - 1) <= total <= 10_000 * (second + 1)
    amounts = [source.got for source in sources]
    assert max(amounts) - min(amounts) <= 10_000  # nobody is left behind


@pytest.mark.parametrize(
    ("hour", "rate"), [(7, 0), (8, 5000), (17, 5000), (18, 0), (23, 20_000), (3, 20_000)]
)
def test_hours_of_the_day_have_limits_of_their_own(hour: int, rate: int) -> None:
    intake, loop = make(hour=hour, bandwidth=0, bandwidth_hours=("8-18=5KB", "22-6=20KB"))
    source = Source(intake, loop, 10**6)
    source.read()
    loop.run(10.0)
    assert source.got == (10**6 if rate == 0 else pytest.approx(rate * 10, rel=0.1))


def test_memory_is_kept_and_everything_ends() -> None:
    intake, loop = make(memory=100_000)
    sources = [Source(intake, loop, 50_000) for _ in range(20)]
    for source in sources:  # everyone has read a part before anyone could end
        source.got = 5_000
        intake.took(5_000)
    for source in sources:
        source.read()
    assert intake.held == 100_000
    loop.run(10.0)
    assert [source.got for source in sources] == [50_000] * 20
    assert intake.held == 0
    assert intake.most_held <= 100_000 + 4 * 50_000
    assert any(source.hurried for source in sources)


def test_the_oldest_go_on_when_memory_is_short() -> None:
    intake, loop = make(memory=10_000)
    intake.took(10_000)  # by those who are not done
    sources = []
    for _ in range(6):
        loop.now += 1.0
        sources.append(Source(intake, loop, 5_000))
    for source in reversed(sources):
        source.read()
    loop.run(0.06)
    assert [source.got for source in sources] == [5_000] * 4 + [0, 0]


def test_many_bodies_at_once_stay_within_the_share_of_memory() -> None:
    size, servers, share = 1_500_000, 12, 2_000_000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % size + bytes(size)
        )
        await writer.drain()
        writer.close()

    async def run() -> tuple[list[Response], int]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        opened = {"network.allow": ["127.0.0.0/8"], "network.ports": [f"127.0.0.0/8:80={port}"]}
        # Waiting for memory must count for no deadline: these are far too short for that.
        short = {"memory": "16MB", "fetch.timeout": "5s", "fetch.header_timeout": "2s"}
        fetcher = Fetcher(load_settings(overrides=opened | short))
        addresses = [f"127.0.0.{number}" for number in range(1, servers + 1)]
        responses = await asyncio.gather(
            *(fetcher.fetch("http://a.example/", "127.0.0.1") for _ in addresses)
        )
        intake = fetcher._shared.intake
        await fetcher.aclose()
        server.close()
        assert intake.held == 0
        return responses, intake.most_held

    responses, most_held = asyncio.run(run())
    assert [(response.exchange.outcome, len(response.body)) for response in responses] == [
        ("ok", size)
    ] * servers
    assert most_held <= share + 5 * size
