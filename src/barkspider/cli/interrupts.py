"""Ctrl-C before a crawl has begun."""

from __future__ import annotations

import os
import signal
import threading

from barkspider.cli.terminal import complain

INTERRUPTED = 130  # the exit code that shells give the end by SIGINT


def leave_on_interrupt() -> None:
    """Let Ctrl-C end this process at once, until the crawl takes it over: nothing has begun that would be lost.

    An exception in the midst of an import is lost in callbacks of libraries, or met by their clean-up.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _leave)


def _leave(*_: object) -> None:
    complain("interrupted")
    os._exit(INTERRUPTED)
