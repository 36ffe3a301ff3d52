"""When checkpoints are made: every `checkpoint` seconds, between two steps of the frontier."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barkspider.core.clock import Clock
from barkspider.engine.ledger import Ledger


class Checkpointer:
    """Makes the checkpoints of one crawl, on its loop, which waits only while structures note what their state is. All that
    is to be written for that, and to be waited for, is done in a thread while the crawl goes on.

    `progress` says for how long the crawl has run and what was added to its scope, `log` is told of each checkpoint, and
    `wake` is called when the loop should look again.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        interval: float,
        progress: Callable[[], tuple[float, list[str]]],
        log: Callable[..., None],
        wake: Callable[[], None],
    ) -> None:
        self._ledger, self._clock, self._interval = ledger, clock, interval
        self._progress, self._log, self._wake = progress, log, wake
        self._next = clock.monotonic() + interval
        self._writing: asyncio.Task[None] | None = None
        self._held = self._since = 0.0
        self.told: Callable[[], None] = lambda: None  # what else is to be done when a checkpoint is safe

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

    def commit(self) -> None:
        """A checkpoint for which everything waits: the last one."""
        start = self._clock.monotonic()
        self._begin()()
        self._end(self._clock.monotonic() - start, 0.0)

    def pause(self) -> float:
        """Seconds until `turn` should be called if nothing happens before; `wake` is called when all is written."""
        if self._writing is not None:
            return self._interval
        return max(self._next - self._clock.monotonic(), 0.0)

    async def close(self) -> None:
        """End the checkpoint that is under way; no further one is made."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
            self.turn()

    def _begin(self) -> Callable[[], None]:
        """All that was written has been applied."""
        return self._ledger.begin(*self._progress())

    def _end(self, held: float, written: float) -> None:
        """All of it is written, which took so long; `held` is for how long nothing else could be done."""
        start = self._clock.monotonic()
        self._ledger.end()
        self.told()
        self._log(
            "checkpoint",
            seconds=round(held + self._clock.monotonic() - start, 3),
            written=round(written, 3),
            number=self._ledger.checkpoints,
            harvests=self._ledger.progress.sequence,
        )
