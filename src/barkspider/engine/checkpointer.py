"""When checkpoints are made: every `checkpoint` seconds, between two steps of the frontier."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barkspider.core.clock import Clock
from barkspider.core.errors import StorageError
from barkspider.engine.ledger import Ledger


class Checkpointer:
    """Makes the checkpoints of one crawl, on its loop, which waits only while structures note what their state is. All that
    is to be written for that, and to be waited for, is done in a thread while the crawl goes on.

    `progress` says for how long the crawl has run and what was added to its scope, `log` is told of each checkpoint, and
    `wake` is called when the loop should look again. `copy`, if there is one, copies a checkpoint elsewhere, in the same
    thread, and gives what went wrong or "".
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        interval: float,
        progress: Callable[[], tuple[float, list[str]]],
        log: Callable[..., None],
        wake: Callable[[], None],
        copy: Callable[[], str] | None = None,
    ) -> None:
        self._ledger, self._clock, self._interval = ledger, clock, interval
        self._progress, self._log, self._wake = progress, log, wake
        self._next = clock.monotonic() + interval
        self._writing: asyncio.Task[None] | None = None
        self._held = self._since = 0.0
        self.held_in_all = self.written_in_all = 0.0  # seconds of all checkpoints of this run
        # What else is to be done when a checkpoint, and its copy, is safe.
        self.told: Callable[[], None] = lambda: None
        self._copy, self._missed = copy, ""  # why the last checkpoint was not copied

    def turn(self) -> None:
        """Between two steps: begin with a checkpoint when it is time, end it when all is written."""
        now = self._clock.monotonic()
        if self._writing is not None and self._writing.done():
            writing, self._writing = self._writing, None
            writing.result()
            self._end(self._held, now - self._since)
        elif self._writing is None and now >= self._next:
            self._writing = asyncio.create_task(asyncio.to_thread(self._write, self._begin()))
            self._writing.add_done_callback(lambda _: self._wake())
            self._since = self._clock.monotonic()
            self._held, self._next = self._since - now, now + self._interval

    def hasten(self) -> None:
        """Make the next checkpoint now."""
        if self._next > self._clock.monotonic():
            self._next = self._clock.monotonic()
            self._wake()

    def commit(self) -> None:
        """A checkpoint for which everything waits: the last one. `copy_last` copies it, when its files have changed for the
        last time."""
        start = self._clock.monotonic()
        self._begin()()
        self._missed = "later" if self._copy is not None else ""
        self._end(self._clock.monotonic() - start, 0.0)

    def copy_last(self) -> None:
        """Copy the files as they are when all is closed."""
        if self._copy is not None and (missed := self._copy()):
            raise StorageError(f"the last checkpoint is not in the store: {missed}")

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

    def _write(self, finish: Callable[[], None]) -> None:
        """What is done beside the crawl."""
        finish()
        self._missed = self._copy() if self._copy is not None else ""

    def _begin(self) -> Callable[[], None]:
        """All that was written has been applied."""
        return self._ledger.begin(*self._progress())

    def _end(self, held: float, written: float) -> None:
        """All of it is written, which took so long; `held` is for how long nothing else could be done."""
        start = self._clock.monotonic()
        self._ledger.end()
        if not self._missed:
            self.told()
        elif self._missed != "later":
            self._log("copy_failed", error=self._missed)
        held += self._clock.monotonic() - start
        self.held_in_all += held
        self.written_in_all += written
        self._log(
            "checkpoint",
            seconds=round(held, 3),
            written=round(written, 3),
            number=self._ledger.checkpoints,
            harvests=self._ledger.progress.sequence,
        )
