"""The first start on a machine: kernels are compiled, which takes some ten seconds, and people are told.

The compiler uses one core. So when the first kernel of a command turns out not to be compiled yet, a second process
begins with others that the command will need; this one then finds them in the cache.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

# Commands that load no kernels, or nearly none.
_LIGHT = frozenset(("status", "pause", "stop", "query", "plan", "papers"))
# What a second process compiles: about half of what the command needs, and what it comes to last.
_LAST = {
    "demo": "barkspider.lab.synthweb",
    **dict.fromkeys(("crawl", "resume", "recrawl"), "barkspider.page"),
}


def announce(arguments: Sequence[str]) -> None:
    """Let the compiler say when it is at work, for a command that may need it."""
    if arguments and not (arguments[0].startswith("-") or arguments[0] in _LIGHT or "--help" in arguments):
        _listen(_LAST.get(arguments[0], ""))


def compile_beside(module: str) -> None:
    """Let another process compile the kernels of a module, if there is a core for it; it ends with this one."""
    if len(os.sched_getaffinity(0)) < 2:
        return
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", f"import {module}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return  # not for this user, or not at this moment: then this process compiles them
    atexit.register(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@cache
def _listen(last: str) -> Any:
    event: Any = import_module("numba.core.event")

    class Compiling(event.Listener):  # type: ignore[misc]
        """Tells of the kernels that are compiled; those compiled for another one's sake count with it."""

        def __init__(self) -> None:
            self._depth = self._done = 0

        def on_start(self, _: object) -> None:
            self._depth += 1
            if self._depth > 1:
                return
            if last and not self._done:
                compile_beside(last)
            if sys.stderr.isatty():
                self._say(f"\rcompiling kernels for this machine, once: {self._done} are done …\x1b[K")
            elif not self._done:
                self._say("compiling kernels for this machine, once: some 10 s\n")

        def on_end(self, _: object) -> None:
            self._depth -= 1
            if self._depth == 0:
                self._done += 1
                if sys.stderr.isatty():
                    self._say("\r\x1b[K")

        def _say(self, text: str) -> None:
            sys.stderr.write(text)
            sys.stderr.flush()

    listener = Compiling()
    event.register("numba:compile", listener)
    return listener
