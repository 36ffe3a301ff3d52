"""What a person sees while kernels are compiled, which happens once on a machine and takes some twenty seconds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

# Commands that load no kernels, or nearly none.
_LIGHT = frozenset(("status", "pause", "stop", "plan", "papers"))


def announce(arguments: Sequence[str]) -> None:
    """Let the compiler say when it is at work, for a command that may need it."""
    if arguments and not (arguments[0].startswith("-") or arguments[0] in _LIGHT or "--help" in arguments):
        _listen()


@cache
def _listen() -> Any:
    event: Any = import_module("numba.core.event")

    class Compiling(event.Listener):  # type: ignore[misc]
        """Tells of the kernels that are compiled; those compiled for another one's sake count with it."""

        def __init__(self) -> None:
            self._depth = self._done = 0

        def on_start(self, _: object) -> None:
            self._depth += 1
            if self._depth > 1:
                return
            if sys.stderr.isatty():
                self._say(f"\rcompiling kernels for this machine, once: {self._done} are done …\x1b[K")
            elif not self._done:
                self._say("compiling kernels for this machine, once: some 20 s\n")

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
