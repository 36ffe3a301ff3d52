"""What is done every second while a crawl runs: rows that waited are written, the disk is looked at, a sample is taken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barkspider.engine.recovery import Components
from barkspider.engine.sampler import Sampler

_TICK = 1.0  # seconds


class EverySecond:
    """See the module. On the loop of the crawl, which says what `pause` and `fail` do: the former is told whether there is a
    reason, and which."""

    def __init__(
        self,
        components: Components,
        sampler: Sampler,
        log: Callable[..., None],
        pause: Callable[[bool, str], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self._job, self._clock = components.job, components.clock
        self._archive, self._frontier = components.archive, components.frontier
        self._sampler, self._log, self._pause, self._fail = sampler, log, pause, fail
        self._is_full = False  # the disk, or nearly
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Do it now, and from then on every second."""
        try:
            self._archive.tick(self._clock.monotonic())
            self._watch_disk(self.sample())
            self.tell()
        except Exception as error:
            self._fail(error)
        self._timer = asyncio.get_running_loop().call_later(_TICK, self.start)

    def stop(self) -> None:
        """Do it no longer."""
        if self._timer is not None:
            self._timer.cancel()

    def sample(self) -> int:
        """Take down the present moment; the disk space that is left."""
        free = self._job.env.free_space(self._job.path)
        self._sampler.take(free)
        return free

    def tell(self) -> None:
        """Write down what a person would want to know of the frontier."""
        for event, details in self._frontier.notices():
            self._log(event, **details)

    def _watch_disk(self, free: int) -> None:
        """Pause before the disk is full, and go on when there is room again."""
        least = self._job.settings.limits.free_space
        if (free < least) == self._is_full:
            return
        self._is_full = free < least
        if self._is_full:
            self._log("disk_full", free=free, wanted=least)
        else:
            self._log("disk_has_room", free=free)
        self._pause(self._is_full, "disk")
