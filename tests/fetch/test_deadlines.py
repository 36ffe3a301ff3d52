"""The wheel of deadlines on a loop whose clock we turn by hand."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import dataclass, field

from barkspider.fetch.deadlines import Deadlines


@dataclass(eq=False)
class Thing:
    """Is over at `end`; remembers when it was checked."""

    end: float
    checked: list[float] = field(default_factory=list)

    def check(self, now: float) -> float | None:
        self.checked.append(now)
        return self.end if now < self.end else None


class VirtualLoop(asyncio.SelectorEventLoop):
    """Never waits: time jumps to the next timer."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run(*things: tuple[float, Thing]) -> float:
    """Watch things from their first deadlines on until all are over; the time at the end."""

    async def main() -> float:
        deadlines = Deadlines()
        for first, thing in things:
            deadlines.watch(thing, first)
        loop = asyncio.get_running_loop()
        while deadlines._timer is not None:  # noqa: ASYNC110  # there is no event for "nothing left"
            await asyncio.sleep(0.05)
        return loop.time()

    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def test_each_is_checked_after_its_deadline_and_soon() -> None:
    things = [Thing(1000.0 + 0.037 * number) for number in range(200)]
    run(*((thing.end, thing) for thing in things))
    for thing in things:
        assert len(thing.checked) == 1
        assert thing.end <= thing.checked[0] <= thing.end + 0.2 + 1e-6


def test_a_deadline_that_moved_is_checked_again() -> None:
    thing = Thing(1060.0)
    run((1015.0, thing))
    assert [round(time) for time in thing.checked] == [1015, 1060]


def test_the_wheel_stands_still_when_nothing_is_watched() -> None:
    assert run() == 1000.0
    assert run((1001.0, Thing(1001.0))) < 1001.5


def test_what_is_forgotten_is_let_go_and_never_checked() -> None:
    async def main() -> tuple[bool, list[float]]:
        deadlines, thing, other = Deadlines(), Thing(1015.0), Thing(1015.0)
        for each in (thing, other):
            deadlines.watch(each, each.end)
        deadlines.forget(thing, thing.end)
        deadlines.forget(thing, thing.end)  # it is gone already
        deadlines.forget(other, 1100.0)  # it is not there
        kept = weakref.ref(thing)
        del thing, each
        gone = kept() is None
        while deadlines._timer is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        return gone, other.checked

    loop = VirtualLoop()
    try:
        gone, checked = loop.run_until_complete(main())
    finally:
        loop.close()
    assert gone
    assert [round(time) for time in checked] == [1015]
