"""Open files for the disk where connections have taken all that the system allows.

    no descriptor for a file ─► a spare one is given back, and the file opened ─► on the loop: connections are shed,
                                                                                  and there is a spare one again

A connection less is a little slower; a file that cannot be opened would be the end of the crawl.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable

from barkspider.storage.env import Env

SPARE = 16  # descriptors: a checkpoint or a merge opens no more files than this before the loop has its turn
_PAUSE = 0.25  # seconds until another try where shedding was not enough


class SpareFiles:
    """The spare descriptors of one crawl, on its loop, from which any thread may take one.

    `shed` is told how many connections should go.
    """

    def __init__(self, env: Env, shed: Callable[[int], None]) -> None:
        self._env, self._shed, self._loop = env, shed, asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._held: list[int] = []
        self._open = True
        self._refill()
        env.relieve(self._give)

    def close(self) -> None:
        """Give all of them back."""
        self._env.relieve(None)
        with self._lock:
            self._open = False
            while self._held:
                os.close(self._held.pop())

    def _give(self) -> bool:
        """Called where a file could not be opened: whether another try may go better."""
        with self._lock:
            if not self._held:
                return False
            os.close(self._held.pop())
        self._loop.call_soon_threadsafe(self._replace)
        return True

    def _replace(self) -> None:
        with self._lock:
            missing = SPARE - len(self._held) if self._open else 0
        if missing:
            self._shed(missing)
            self._refill()

    def _refill(self) -> None:
        with self._lock:
            try:
                while self._open and len(self._held) < SPARE:
                    self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                self._loop.call_later(_PAUSE, self._replace)
