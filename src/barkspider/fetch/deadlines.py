"""Deadlines of many connections with one timer: a wheel that turns ten times a second.

A timer of the loop for each phase of each request would cost as much as parsing its headers. Here setting
a deadline is an entry in a slot; what has ended meanwhile is skipped when its slot comes up, or leaves it before.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Protocol

_TICK = 0.1  # seconds: how late a deadline may be noticed


class Timed(Protocol):
    """What has a deadline; `check` is called once it may be over."""

    def check(self, now: float) -> float | None:
        """End what is over. The next time to check, or None when nothing is left to watch."""
        ...


class Deadlines:
    """The wheel of one loop. Lives on that loop's thread; runs only while something is watched."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._slots: defaultdict[int, dict[Timed, None]] = defaultdict(dict)
        self._timer: asyncio.TimerHandle | None = None
        self._reached = 0

    def watch(self, watched: Timed, deadline: float) -> None:
        """Have `check` called at this time of the loop, or a moment later."""
        self._slots[max(int(deadline / _TICK) + 1, self._reached + 1)][watched] = None
        if self._timer is None:
            now = self._loop.time()
            self._reached = int(now / _TICK)
            self._timer = self._loop.call_at((self._reached + 1) * _TICK, self._turn)

    def forget(self, watched: Timed, deadline: float) -> None:
        """Hold on no longer to what was to be checked at this time: a slot may be half a minute away, and what a crawl
        has done with by then takes megabytes."""
        slot = self._slots.get(int(deadline / _TICK) + 1)
        if slot is not None:
            slot.pop(watched, None)

    def close(self) -> None:
        """Watch nothing any more."""
        self._slots.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _turn(self) -> None:
        now = self._loop.time()
        reached = max(int(now / _TICK), self._reached + 1)  # rounding must not make a turn stand still
        # After a pause of the whole process several slots are due at once.
        for slot in range(self._reached + 1, reached + 1):
            for watched in self._slots.pop(slot, ()):
                again = watched.check(now)
                if again is not None:
                    self._slots[max(int(again / _TICK) + 1, reached + 1)][watched] = None
        self._reached = reached
        self._timer = self._loop.call_at((reached + 1) * _TICK, self._turn) if self._slots else None
