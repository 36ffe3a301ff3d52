"""How long the loop was held, and by what: while it is, no socket is read and no deadline kept.

The loop beats fifty times a second; a beat that comes late tells for how long something else had it. A thread looks
whether beats are late and notes where the loop is at that moment, so that the log can say what it was. Neither costs
anything a page.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_BEAT = 0.02  # seconds
_LATE = 0.05  # seconds without a beat before the thread looks what the loop is doing
LONG = 0.1  # seconds: what is worth a line in the log; half of what people notice
_GROWTH = (
    1.25  # a further line is for what takes so much longer than any before: few are written, whatever happens
)
_CALLERS = 4  # functions that are named, the innermost first


class Watch:
    """Watches the running loop from `start` to `stop`. `longest` is the longest time it was held, in seconds, give or take
    a beat; `doing` may be set to what is being worked on, whose `repr` then goes to the log."""

    def __init__(self, log: Callable[..., None]) -> None:
        """`log` takes the name and the details of an event."""
        self._log = log
        self.longest = 0.0
        self.doing: object = None
        self._seen = ("", "")  # what the thread saw when a beat was late: functions, and what they worked on
        self._logged = LONG / _GROWTH
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to watch the loop that runs in this thread."""
        self._loop = asyncio.get_running_loop()
        self._due = time.monotonic() + _BEAT
        self._timer = self._loop.call_later(_BEAT, self._beat)
        self._thread = threading.Thread(
            target=self._look, args=(threading.get_ident(),), name="watch", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer."""
        self._timer.cancel()
        self._stopped.set()
        self._thread.join()

    def _beat(self) -> None:
        now = time.monotonic()
        held, self._due = now - self._due, now + _BEAT
        self._timer = self._loop.call_later(_BEAT, self._beat)
        self.longest = max(self.longest, held)
        if held > self._logged * _GROWTH:
            self._logged = held
            where, what = self._seen
            details: dict[str, Any] = {"what": what} if what else {}
            self._log("loop_held", seconds=round(held, 3), where=where, **details)
        self._seen = ("", "")

    def _look(self, loop_thread: int) -> None:
        """In the thread: see where the loop is while its beat is late."""
        while not self._stopped.wait(_LATE):
            if time.monotonic() - self._due > _LATE:
                frame = sys._current_frames().get(loop_thread)
                if frame is not None:
                    what = "" if self.doing is None else repr(self.doing)[:500]
                    self._seen = (_functions(frame), what)


def _functions(frame: Any) -> str:
    """The innermost functions of ours that are running, from the inside out."""
    names = list[str]()
    while frame is not None and len(names) < _CALLERS:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("barkspider.") or not names:
            names.append(f"{module.removeprefix('barkspider.')}.{frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(names)
