"""Checkpoints: the loop goes on while one is written, and takes the next when that is done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import cast

import pytest

from barkspider.core.errors import StorageError
from barkspider.engine.checkpoint import Progress
from barkspider.engine.checkpointer import Checkpointer
from barkspider.engine.ledger import Ledger


class Hands:
    """A clock that is set by hand, a ledger whose thread waits to be let go, and what was called."""

    def __init__(self, error: Exception | None = None) -> None:
        self.now, self.said, self.go, self._error = 0.0, list[str](), threading.Event(), error
        self.woken = asyncio.Event()

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now

    def begin(self, seconds: float, extended: list[str]) -> Callable[[], None]:
        assert (seconds, extended) == (7.0, ["http://a.example/"])
        self.said.append("begin")
        self.now += 0.25
        return self._write

    def end(self) -> None:
        self.now += 0.5

    checkpoints, progress = 1, Progress(sequence=3)

    def log(self, event: str, seconds: float, written: float, number: int, harvests: int) -> None:
        assert (event, number, harvests) == ("checkpoint", 1, 3)
        self.said.append(f"end {seconds} {written}")

    def _write(self) -> None:
        self.go.wait(60)
        if self._error is not None:
            raise self._error
        self.said.append("written")

    def checkpointer(self) -> Checkpointer:
        ledger = cast(Ledger, self)
        return Checkpointer(
            ledger, self, 10.0, lambda: (7.0, ["http://a.example/"]), self.log, self.woken.set
        )


def test_the_loop_goes_on_while_a_thread_writes() -> None:
    async def main() -> None:
        hands = Hands()
        checkpoints = hands.checkpointer()
        checkpoints.turn()
        assert checkpoints.pause() == 10.0
        hands.now = 10.0
        assert checkpoints.pause() == 0.0
        checkpoints.turn()
        hands.now = 25.0
        checkpoints.turn()  # another one is due, and the first is not written yet
        assert hands.said == ["begin"]
        assert checkpoints.pause() == 10.0  # nothing is to be done before it wakes the loop
        hands.go.set()
        await hands.woken.wait()
        checkpoints.turn()
        assert hands.said == ["begin", "written", "end 0.75 14.75"]
        checkpoints.turn()
        assert hands.said[3:] == ["begin"]
        await checkpoints.close()
        assert hands.said[3:] == ["begin", "written", "end 0.75 0.0"]

    asyncio.run(main())


def test_what_the_thread_could_not_write_is_told_and_nothing_is_taken_for_committed() -> None:
    async def main() -> None:
        hands = Hands(StorageError("disk full"))
        checkpoints = hands.checkpointer()
        hands.now = 10.0
        checkpoints.turn()
        hands.go.set()
        await hands.woken.wait()
        with pytest.raises(StorageError, match="disk full"):
            checkpoints.turn()
        hands.now = 20.25
        checkpoints.turn()
        with pytest.raises(StorageError, match="disk full"):
            await checkpoints.close()
        await checkpoints.close()
        assert hands.said == ["begin", "begin"]

    asyncio.run(main())
