"""What a person sees while kernels are compiled, which happens once on a machine and takes some twenty seconds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, TextIO

# Commands that load no kernels, or nearly none.
_LIGHT = frozenset(("status", "pause", "stop", "plan", "papers"))


def announce(arguments: Sequence[str], stream: TextIO | None = None) -> None:
    """Let the compiler say when it is at work, for a command that may need it."""
    if not arguments or arguments[0].startswith("-") or arguments[0] in _LIGHT or "--help" in arguments:
        return
    event: Any = import_module("numba.core.event")

    class Compiling(event.Listener):  # type: ignore[misc]
        """Tells of the kernels that are compiled; those compiled for another one's sake count with it."""

        def __init__(self, out: TextIO) -> None:
            self._out, self._depth, self._done = out, 0, 0

        def on_start(self, _: object) -> None:
            self._depth += 1
            if self._depth > 1:
                return
            if self._out.isatty():
                self._out.write(f"\rcompiling kernels for this machine, once: {self._done} are done …\x1b[K")
            elif not self._done:
                self._out.write("compiling kernels for this machine, once: some 20 s\n")
            self._out.flush()

        def on_end(self, _: object) -> None:
            self._depth -= 1
            if self._depth == 0:
                self._done += 1
                if self._out.isatty():
                    self._out.write("\r\x1b[K")
                    self._out.flush()

    event.register("numba:compile", Compiling(stream or sys.stderr))
