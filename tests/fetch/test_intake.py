"""Reading within a share of memory and a bandwidth, on a clock of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from barkspider.core.load import load_settings
from barkspider.core.settings import Fetch
from barkspider.fetch import Fetcher
from barkspider.fetch.intake import FIRST, Intake


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
    """A connection of which `whole` bytes can be read, all at once or at a rate, as soon as this is allowed."""

    def __init__(self, intake: Intake, loop: Loop, whole: int, rate: float = float("inf")) -> None:
        self.intake, self.loop, self.whole, self.rate = intake, loop, whole, rate
        self.held = self.got = 0
        self.end = ""

    def get(self, size: int) -> None:
        """Read so much before anybody can say no."""
        self.got += size
        self.intake.took(self, size, self.got)

    def read(self) -> None:
        while not self.end and self.got < self.whole and self.intake.may_read(self):
            self.get(min(1000, self.whole - self.got))
            if self.rate < float("inf"):  # the rest is not there yet
                self.loop.call_later(1000 / self.rate, self.read)
                return
        if self.got >= self.whole and not self.end:
            self.end = "whole"
            self.intake.ended(self)

    def resume(self) -> None:
        self.read()

    def cut(self) -> None:
        self.end = "cut"
        self.intake.ended(self)


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


def test_memory_is_kept_and_what_comes_fast_is_not_cut() -> None:
    intake, loop = make(memory=2_000_000)
    sources = [Source(intake, loop, 1_000_000) for _ in range(20)]
    for source in sources:  # everyone has read a part before anyone could end
        source.get(100_000)
    for source in sources:
        source.read()
    assert intake.held == 2_000_000
    loop.run(10.0)
    assert [source.end for source in sources] == ["whole"] * 20
    assert intake.held == 0
    assert intake.most_held <= 2_000_000 + 4 * 1_000_000


def full_of_hogs(loop: Loop, intake: Intake, count: int = 10) -> list[Source]:
    """Nearly all of two megabytes, in a moment, and then a little now and then, for ever."""
    hogs = [Source(intake, loop, 10**9, rate=2000) for _ in range(count)]
    for hog in hogs:
        hog.get(190_000)
        hog.read()
    loop.run(0.5)
    return hogs


def test_nobody_waits_for_a_first_piece() -> None:
    intake, loop = make(memory=1_900_000)
    full_of_hogs(loop, intake)
    sources = [Source(intake, loop, 60_000) for _ in range(50)]
    for source in sources:
        source.read()
    assert [source.end for source in sources] == ["whole"] * 50


def test_who_is_large_and_slow_makes_room() -> None:
    intake, loop = make(memory=1_900_000)
    hogs = full_of_hogs(loop, intake)
    late = [Source(intake, loop, 150_000) for _ in range(8)]
    steady = Source(intake, loop, 400_000, rate=40_000)  # slow, but never large for long
    for source in (*late, steady):
        source.get(70_000)
        source.read()
    loop.run(3.0)
    assert [source.end for source in late] == ["whole"] * 8
    assert {hog.end for hog in hogs} == {"cut", ""}  # no more of them than need be
    assert intake.most_held <= 1_900_000 + 9 * FIRST + 4 * 190_000
    loop.run(20.0)
    assert steady.end == "whole"


def test_without_need_nobody_is_cut() -> None:
    intake, loop = make(memory=2_000_000)
    hogs = full_of_hogs(loop, intake)
    loop.run(5.0)
    assert {hog.end for hog in hogs} == {""}


def test_who_holds_least_is_served_first() -> None:
    intake, loop = make(memory=1_000_000)
    hog = Source(intake, loop, 10**9)
    hog.get(10**6)
    sources = [Source(intake, loop, 10**6) for _ in range(9)]
    for number, source in enumerate(sources, 1):
        source.get(100_000 * number)
    order = []
    for source in reversed(sources):
        source.resume = lambda source=source: order.append(source)  # type: ignore[method-assign,misc]
        source.read()
    intake.memory, intake._most_leaving = 10**9, 0  # room, from somewhere
    loop.run(0.06)
    assert order == sources


def test_what_has_ended_counts_until_it_is_read() -> None:
    intake, loop = make()
    small, large = Source(intake, loop, FIRST), Source(intake, loop, FIRST + 1)
    for source in (small, large):
        source.get(source.whole)
    assert intake.ended(small) is None
    claim = intake.ended(large)
    assert (intake.held, claim is not None) == (FIRST + 1, True)
    del claim
    assert intake.held == 0


def test_many_bodies_at_once_stay_within_the_share_of_memory() -> None:
    size, servers, share = 1_500_000, 12, 2_000_000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % size + bytes(size)
        )
        await writer.drain()
        writer.close()

    async def run() -> tuple[list[tuple[str, int]], int]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        opened = {"network.allow": ["127.0.0.0/8"], "network.ports": [f"127.0.0.0/8:80={port}"]}
        short = {"memory": "16MB", "fetch.timeout": "5s", "fetch.header_timeout": "2s"}
        fetcher = Fetcher(load_settings(overrides=opened | short))

        async def fetch() -> tuple[str, int]:
            response = await fetcher.fetch("http://a.example/", "127.0.0.1")
            return response.exchange.outcome, len(response.body)

        found = await asyncio.gather(*(fetch() for _ in range(servers)))
        intake = fetcher._shared.intake
        await fetcher.aclose()
        server.close()
        assert intake.held == 0
        return found, intake.most_held

    found, most_held = asyncio.run(run())
    assert found == [("ok", size)] * servers
    assert most_held <= share + 5 * size
