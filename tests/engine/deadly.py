"""A process that kills itself at a chosen system call, and tells its parent what it was doing."""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Callable
from functools import wraps
from typing import Any

from barkspider.engine.checkpointer import Checkpointer
from barkspider.engine.loop import Crawl
from barkspider.storage.calls import Calls

PHASES = ("recovery", "crawling", "checkpoint", "closing")
CHANGES = ("open", "write", "sync", "truncate", "rename", "remove", "make_folder", "sync_folder")


class Phase:
    """What a forked crawl is doing, in memory that its parent shares: it is there to be read after a kill."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 1)

    def get(self) -> str:
        """One of `PHASES`."""
        return PHASES[self._shared[0]]

    def set(self, phase: str) -> None:
        """Say what begins now."""
        self._shared[0] = PHASES.index(phase)

    def follow(self) -> None:
        """In the crawl's process: keep it right from now on. All before the loop is recovery."""
        self.set("recovery")
        init, close = Crawl.__init__, Crawl._close
        begin, end = Checkpointer._begin, Checkpointer._end

        def followed_init(crawl: Crawl, *given: Any) -> None:
            init(crawl, *given)
            self.set("crawling")

        def followed_begin(checkpointer: Checkpointer) -> Callable[[], None]:
            if self.get() == "crawling":
                self.set("checkpoint")  # and the crawl goes on meanwhile
            return begin(checkpointer)

        def followed_end(checkpointer: Checkpointer, *given: Any) -> None:
            end(checkpointer, *given)
            if self.get() == "checkpoint":
                self.set("crawling")

        async def followed_close(crawl: Crawl) -> None:
            self.set("closing")
            await close(crawl)

        for kind, name, followed in (
            (Crawl, "__init__", followed_init),
            (Checkpointer, "_begin", followed_begin),
            (Checkpointer, "_end", followed_end),
            (Crawl, "_close", followed_close),
        ):
            setattr(kind, name, followed)

    def die_at(self, phase: str, operation: int) -> None:
        """In the crawl's process: end at so many system calls of a phase that change the disk, in the midst of a write."""
        left = operation

        def is_last() -> bool:
            nonlocal left
            left -= self.get() == phase
            return left <= 0

        def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(call)
            def made(calls: Calls, *given: Any) -> Any:
                if self.get() == phase and is_last():
                    if call.__name__ == "write":
                        descriptor, views = given
                        data = b"".join(views)
                        os.write(descriptor, data[: len(data) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(calls, *given)

            return made

        for name in CHANGES:
            setattr(Calls, name, deadly(getattr(Calls, name)))
