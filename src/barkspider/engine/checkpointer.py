"""When checkpoints are made: every `checkpoint` seconds, between two steps of the frontier."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barkspider.core.clock import Clock


class Checkpointer:
    """Makes the checkpoints of one crawl, on its loop, which waits only while structures note what their state is. All that
    is to be written for that, and to be waited for, is done in a thread while the crawl goes on.

    `begin` is called when one is due and gives the work for the thread; `end` is called when that is done, with the seconds
    that the loop and that the thread took so far; `wake` when the loop should look again.
    """

    def __init__(
        self,
        clock: Clock,
        interval: float,
        begin: Callable[[], Callable[[], None]],
        end: Callable[[float, float], None],
        wake: Callable[[], None],
    ) -> None:
        self._clock, self._interval = clock, interval
        self._begin, self._end, self._wake = begin, end, wake
        self._next = clock.monotonic() + interval
        self._writing: asyncio.Task[None] | None = None
        self._held = self._since = 0.0

    def turn(self) -> None:
        """Between two steps: begin with a checkpoint when it is time, end it when all is written."""
        now = self._clock.monotonic()
        if self._writing is not None and self._writing.done():
            writing, self._writing = self._writing, None
            writing.result()
            self._end(self._held, now - self._since)
        elif self._writing is None and now >= self._next:
            self._writing = asyncio.create_task(asyncio.to_thread(self._begin()))
            self._writing.add_done_callback(lambda _: self._wake())
            self._since = self._clock.monotonic()
            self._held, self._next = self._since - now, now + self._interval

    def pause(self) -> float:
        """Seconds until `turn` should be called if nothing happens before."""
        return max(self._next - self._clock.monotonic(), 0.0)

    async def close(self) -> None:
        """End the checkpoint that is under way; no further one is made."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
            self.turn()
