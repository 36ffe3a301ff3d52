"""How much may be read at this moment: a share of memory for what is being received, and a bandwidth.

Beyond either, sockets are not read, so the network holds the bytes back. A connection that has something
to read then waits here, first come first served, and its deadlines wait with it. While memory is short the
few oldest go on, or nothing would ever end; they must be done soon, because everyone waits for them.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from barkspider.core.load import parse_hours
from barkspider.core.settings import Fetch

_TICK = 0.05  # seconds between two looks at whether reading may go on
_BURST = 0.25  # seconds of bandwidth that may be used at once
_FAVOURED = 4  # connections that go on while memory is short


class Reading(Protocol):
    """What receives: a connection."""

    started: float

    def resume(self, within: float | None) -> None:
        """Read on; when `within` is given, be done in so many seconds."""
        ...


class Intake:
    """The reading of one loop. `held` is the number of bytes in messages that are not over."""

    def __init__(
        self, settings: Fetch, memory: int, loop: asyncio.AbstractEventLoop, hour: Callable[[], int]
    ) -> None:
        self._memory, self._patience, self._loop, self._hour = memory, settings.rate_window, loop, hour
        self._rates = [settings.bandwidth] * 24
        for first, last, rate in map(parse_hours, settings.bandwidth_hours):
            for number in range(first, last if last > first else last + 24):
                self._rates[number % 24] = rate
        self._limited = any(self._rates)
        self._tokens = float(self._rates[hour()]) * _BURST
        self._filled = loop.time()
        self._waiting: deque[Reading] = deque()
        self._favoured: set[Reading] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.held = 0
        self.most_held = 0

    def may_read(self, connection: Reading) -> bool:
        """Whether to read now; if not, `resume` is called later."""
        if self._limited and self._tokens <= 0:
            self._refill()
        if (not self._limited or self._tokens > 0) and (
            self.held < self._memory or connection in self._favoured
        ):
            return True
        self._waiting.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(_TICK, self._turn)
        return False

    def took(self, size: int) -> None:
        """So many bytes were read."""
        self.held += size
        if self.held > self.most_held:
            self.most_held = self.held
        if self._limited:
            self._tokens -= size

    def gave_back(self, connection: Reading, size: int) -> None:
        """A message is over: its bytes are no longer ours to hold."""
        self.held -= size
        self._favoured.discard(connection)

    def close(self) -> None:
        """Resume nobody any more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _refill(self) -> None:
        now, rate = self._loop.time(), self._rates[self._hour()]
        if rate:
            gained = self._tokens + rate * (now - self._filled)
            self._tokens = min(gained, rate * _BURST)
        else:
            self._tokens = float("inf")  # this hour has no limit
        self._filled = now

    def _turn(self) -> None:
        """Let those who wait read on, as far as there is room; the oldest few in any case."""
        self._timer = None
        if self._limited:
            self._refill()
        if self.held >= self._memory and len(self._favoured) < _FAVOURED:
            oldest = sorted(self._waiting, key=_started)[: _FAVOURED - len(self._favoured)]
            self._favoured.update(oldest)
        for _ in range(len(self._waiting)):
            if self._limited and self._tokens <= 0:
                break
            connection = self._waiting.popleft()
            if connection in self._favoured:
                connection.resume(self._patience)
            elif self.held < self._memory:
                connection.resume(None)
            else:
                self._waiting.append(connection)
        if self._waiting and self._timer is None:
            self._timer = self._loop.call_later(_TICK, self._turn)


def _started(connection: Reading) -> float:
    return connection.started


def local_hour() -> int:
    """The hour of the day where the crawler is."""
    return time.localtime().tm_hour
