"""Where a crawl's CPU goes: seconds of its loop by what they were spent on, counted all the time.

One reading of the thread's clock between two phases, half a microsecond each: a few for a harvest and four for a page.
"""

from __future__ import annotations

import time
from typing import Literal, get_args

Phase = Literal[
    "open",  # the job, and what its journal says
    "sockets",  # names, connections, requests, answers as they come in, and what asyncio does for it
    "read",  # answers taken apart: inflated, told what they are, scanned; robots.txt and failures as a whole
    "links",  # resolved, normalised, judged by scope
    "warc",  # records packed and handed to the system
    "harvest",  # the links of all pages as one batch with keys, outcomes, rows
    "journal",
    "tables",  # what is said of pages, and the rows on their way to the thread that writes them
    "frontier",
    "checkpoint",
    "close",  # the last checkpoint, small files merged, tables that follow from others
]
THREADS = "threads"  # all CPU that is not the loop's: merges of DRUMs, Parquet files, large pages


class Phases:
    """The phases of one run, of the thread that made this.

    >>> phases = Phases()
    >>> phases.end("read")
    >>> list(phases.seconds())[:3], list(phases.seconds())[-1]
    (['open', 'sockets', 'read'], 'threads')
    """

    def __init__(self) -> None:
        self._spent = dict.fromkeys(get_args(Phase), 0.0)
        self._process, self._thread = time.process_time(), time.thread_time()
        self._last = self._thread

    def end(self, phase: Phase) -> None:
        """What was done since the last call was this."""
        now = time.thread_time()
        self._spent[phase] += now - self._last
        self._last = now

    def seconds(self) -> dict[str, float]:
        """CPU seconds by phase; what has been done since the last `end` is in none."""
        others = (time.process_time() - self._process) - (time.thread_time() - self._thread)
        return {name: round(spent, 6) for name, spent in (self._spent | {THREADS: others}).items()}
