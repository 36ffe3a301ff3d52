"""Time as the engine sees it. The decision core never reads a clock: it is told `now`."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where the engine takes its time from; tests put a virtual one in its place."""

    def monotonic(self) -> float:
        """Seconds that never jump: what delays and deadlines are counted in."""
        ...

    def wall(self) -> float:
        """Seconds since 1970: what records are dated with."""
        ...


class SteadyClock:
    """The frontier's time: about that of the wall, so that it goes on across restarts, but it does not jump when the
    machine's clock is set.

    >>> clock = SteadyClock(SystemClock())
    >>> clock.now() <= clock.now()
    True
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = clock.wall() - clock.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._clock.monotonic() + self._offset


class SystemClock:
    """The machine's clocks.

    >>> SystemClock().monotonic() <= SystemClock().monotonic()
    True
    """

    def monotonic(self) -> float:
        """Seconds since some fixed moment."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970."""
        return time.time()
