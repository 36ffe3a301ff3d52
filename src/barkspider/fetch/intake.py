"""How much may be read at this moment: a share of memory for what has been received, and a bandwidth.

    bytes ─► held by a message ─► held by its `Claim` until somebody has read it ─► given back

Beyond either, sockets are not read, so the network holds the bytes back, and a connection that has something to
read waits here. For bandwidth they are served as they came. For memory it is whoever holds least, and nobody waits
for a first piece: so what small pages take is never for others to hold. Of those that hold more, the ones that have
taken most memory for most time must make room: each may read on at once, and is cut if a second brings little.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from typing import Protocol

from barkspider.core.load import parse_hours
from barkspider.core.settings import Fetch

FIRST = 64 * 1024  # bytes that every message may hold, however little memory there is: most pages are smaller
_TICK = 0.05  # seconds between two looks at whether reading may go on
_BURST = 0.25  # seconds of bandwidth that may be used at once
_CHANCE = 1.0  # seconds in which who must make room brings an eighth of what it holds, or is cut
_EIGHTH = 8
_FEWEST = (
    4  # messages that make room at a time; as many as would take a quarter of the memory, if that is more
)


class Receiver(Protocol):
    """What receives: a connection. `held` is what its message takes, which only the intake changes."""

    held: int

    def resume(self) -> None:
        """Read on."""
        ...

    def cut(self) -> None:
        """End with what there is."""
        ...


class Claim:
    """The memory of a message that has ended, counted for as long as anybody keeps it."""

    __slots__ = ("_intake", "_size")

    def __init__(self, intake: Intake, size: int) -> None:
        self._intake, self._size = intake, size

    def __del__(self) -> None:
        self._intake.held -= self._size


class Intake:
    """The reading of one loop. `held` is the number of bytes in messages that nobody has read yet.

    It stays below the memory that is given, but for twice `FIRST` a message, and for what those that make room read.
    `is_limited` says that there is a bandwidth to wait for.
    """

    def __init__(
        self, settings: Fetch, memory: int, loop: asyncio.AbstractEventLoop, hour: Callable[[], int]
    ) -> None:
        self.memory, self._loop, self._hour = memory, loop, hour
        self._rates = [settings.bandwidth] * 24
        for first, last, rate in map(parse_hours, settings.bandwidth_hours):
            for number in range(first, last if last > first else last + 24):
                self._rates[number % 24] = rate
        self.is_limited = any(self._rates)
        self._tokens = float(self._rates[hour()]) * _BURST
        self._filled = loop.time()
        self._waiting: list[Receiver] = []
        self._large: dict[Receiver, float] = {}  # who holds more than the first piece, and since when
        self._leaving: dict[Receiver, tuple[float, int]] = {}  # who must make room: until when, from what on
        self._most_leaving = max(_FEWEST, memory // (4 * settings.max_size))
        self._timer: asyncio.TimerHandle | None = None
        self.held = 0
        self.most_held = 0

    def may_read(self, connection: Receiver) -> bool:
        """Whether to read now; if not, `resume` is called later."""
        if self.is_limited and self._tokens <= 0:
            self._refill()
        if self._is_free(connection):
            return True
        self._waiting.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(_TICK, self._turn)
        return False

    def took(self, connection: Receiver, size: int, held: int) -> None:
        """So many bytes were read, and the message takes so much memory now."""
        self.held += held - connection.held
        connection.held = held
        if self.held > self.most_held:
            self.most_held = self.held
        if held > FIRST and connection not in self._large:
            self._large[connection] = self._loop.time()
        if self.is_limited:
            self._tokens -= size

    def ended(self, connection: Receiver) -> Claim | None:
        """A message is over. What it holds counts until the claim is gone; a small one is soon read, and counts no more."""
        held, connection.held = connection.held, 0
        if held <= FIRST:
            self.held -= held
            return None
        self._large.pop(connection, None)
        self._leaving.pop(connection, None)
        return Claim(self, held)

    def close(self) -> None:
        """Resume nobody any more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _is_free(self, connection: Receiver) -> bool:
        if self.is_limited and self._tokens <= 0:
            return False
        return self.held < self.memory or connection.held < FIRST or connection in self._leaving

    def _refill(self) -> None:
        now, rate = self._loop.time(), self._rates[self._hour()]
        if rate:
            gained = self._tokens + rate * (now - self._filled)
            self._tokens = min(gained, rate * _BURST)
        else:
            self._tokens = float("inf")  # this hour has no limit
        self._filled = now

    def _turn(self) -> None:
        """Let those who wait read on, as far as there is room."""
        self._timer = None
        if self.is_limited:
            self._refill()
        if self.held >= self.memory:
            self._make_room()
        waiting, self._waiting = self._waiting, []
        if not self.is_limited:
            waiting.sort(key=_held)
        left = []
        for connection in waiting:
            if self._is_free(connection):
                connection.resume()
            else:
                left.append(connection)
        self._waiting = left + self._waiting  # who has just been served comes last
        if self._waiting and self._timer is None:
            self._timer = self._loop.call_later(_TICK, self._turn)

    def _make_room(self) -> None:
        """Cut those who had their chance and did not use it, as many as need be; then it is the turn of others."""
        now, wanted = self._loop.time(), self.held - self.memory + self.memory // _EIGHTH
        for connection, (until, before) in list(self._leaving.items()):
            if now < until or wanted <= 0:
                continue
            if connection.held - before < before // _EIGHTH:
                wanted -= connection.held
                connection.cut()
            else:
                self._leaving[connection] = now + _CHANCE, connection.held
        others = (connection for connection in self._large if connection not in self._leaving)
        for connection in heapq.nlargest(
            self._most_leaving - len(self._leaving),
            others,
            key=lambda each: each.held * (now - self._large[each]),
        ):
            self._leaving[connection] = now + _CHANCE, connection.held


def _held(connection: Receiver) -> int:
    return connection.held


def local_hour() -> int:
    """The hour of the day where the crawler is."""
    return time.localtime().tm_hour
