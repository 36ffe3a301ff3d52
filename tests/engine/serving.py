"""The socket of a job, served on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from barkspider.engine.control import Control

Answer = Callable[[str, dict[str, Any]], dict[str, Any]]


def echo(command: str, details: dict[str, Any]) -> dict[str, Any]:
    """An answer that shows the question."""
    return {"command": command, **details}


@contextmanager
def serving(folder: Path, answer: Answer = echo, timeout: float = 10.0) -> Iterator[Callable[[], None]]:
    """Serve until the end, or until what is given is called."""
    ready, over = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def run() -> None:
        served = Control(folder, answer, timeout=timeout)
        await served.start()
        loops.append(asyncio.get_running_loop())
        ready.set()
        await over.wait()
        await served.close()

    def end() -> None:
        if thread.is_alive():
            loops[0].call_soon_threadsafe(over.set)
            thread.join(30)
        assert not thread.is_alive()

    thread = threading.Thread(target=uvloop.run, args=(run(),))
    thread.start()
    assert ready.wait(30)
    try:
        yield end
    finally:
        end()
