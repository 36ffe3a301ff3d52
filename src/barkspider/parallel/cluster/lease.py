"""How long a part may go on without a word of the overseer.

The station asks for the lease, and counts it from the moment at which it asked; the overseer counts it from when it was asked,
which is later. So whatever happens in between, a part has stopped before another takes its place. The clock is the one that goes
on while a machine sleeps, and both count durations: no two clocks are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def now() -> float:
    """Seconds of a clock of this machine that all its processes share, that nobody sets, and that goes on in its sleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """The lease of one part, at whoever holds it or has given it.

    >>> time = [0.0]
    >>> lease = Lease(30.0, lambda: time[0])
    >>> lease.holds, lease.renew(0.0), lease.holds
    (False, None, True)
    >>> time[0] = 31.0; lease.holds
    False
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = now) -> None:
        self.seconds, self.clock = seconds, clock
        self.until = -1.0

    def renew(self, asked: float) -> None:
        """It was given, to whoever asked at this time of the clock."""
        self.until = max(self.until, asked + self.seconds)

    @property
    def holds(self) -> bool:
        """Whether it is not over."""
        return self.clock() < self.until
