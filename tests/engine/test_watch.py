"""The watch says for how long the loop was held, and by what."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import pairwise
from typing import Any

import pytest

from barkspider.engine.watch import Watch


def watched(hold: float, times: int = 1) -> tuple[Watch, list[dict[str, Any]]]:
    """A loop that is held so long, each time for longer."""
    logged: list[dict[str, Any]] = []

    async def run() -> Watch:
        watch = Watch(lambda event, **details: logged.append({"event": event, **details}))
        watch.start()
        await asyncio.sleep(0.05)
        for number in range(times):
            watch.doing = f"page {number}"
            hold_the_loop(hold)
            watch.doing = None
            await asyncio.sleep(0.05)
        watch.stop()
        return watch

    return asyncio.run(run()), logged


def hold_the_loop(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_what_held_the_loop_is_named() -> None:
    watch, logged = watched(0.4)
    assert watch.longest > 0.3
    event = logged[-1]
    assert (event["event"], event["what"]) == ("loop_held", "'page 0'")
    assert event["where"].split(" < ")[0].endswith("test_watch.hold_the_loop")
    assert event["seconds"] == pytest.approx(watch.longest, abs=0.001)


def test_a_line_is_written_only_for_what_takes_much_longer_than_any_before() -> None:
    _, logged = watched(0.15, times=8)
    seconds = [event["seconds"] for event in logged]
    assert all(later > 1.2 * earlier for earlier, later in pairwise(seconds))


def test_a_watch_leaves_no_thread_behind() -> None:
    watched(0.0)
    assert "watch" not in [thread.name for thread in threading.enumerate()]
