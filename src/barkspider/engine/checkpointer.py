"""When checkpoints are made: every `checkpoint` seconds, between two steps of the frontier."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barkspider.core.clock import Clock
from barkspider.engine.ledger import Ledger


class Checkpointer:
    """Makes the checkpoints of one crawl, on its loop. What was written since the last one goes to the disk in a thread
    before, so that the commit itself, which nothing else can go on beside, finds little to wait for.

    `commit` is called when one is due; `wake` when the loop should look again.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        interval: float,
        commit: Callable[[], None],
        wake: Callable[[], None],
    ) -> None:
        self._ledger, self._clock, self._interval = ledger, clock, interval
        self._commit, self._wake = commit, wake
        self._next = clock.monotonic() + interval
        self._settling: asyncio.Task[None] | None = None

    def turn(self) -> None:
        """Between two steps: begin with a checkpoint when it is time, end it when the disk is ready."""
        if self._settling is not None and self._settling.done():
            self._settling.result()
            self._settling = None
            self._commit()
        elif self._settling is None and self._clock.monotonic() >= self._next:
            self._settling = asyncio.create_task(asyncio.to_thread(self._ledger.settle))
            self._settling.add_done_callback(lambda _: self._wake())
            self._next = self._clock.monotonic() + self._interval

    def pause(self) -> float:
        """Seconds until `turn` should be called if nothing happens before."""
        return max(self._next - self._clock.monotonic(), 0.0)

    async def close(self) -> None:
        """Wait for the thread; no further checkpoint is made."""
        if self._settling is not None:
            await asyncio.gather(self._settling, return_exceptions=True)
