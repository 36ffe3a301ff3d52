"""Whose turn it is at the servers whose addresses have the slots of one part; and where to ask for the others.

The table of `parallel.turns`, in RAM: a station answers for all parts. Only durations come and go. A new table knows nothing
of what the one before had given out: it gives out nothing until all of that is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

import numpy as np

from barkspider.parallel.turns import BUSY
from barkspider.url import KeyMaker
from barkspider.url.partition import by_hash

_MANY = 1 << 16  # addresses, beyond which those that are free are forgotten


class Desk:
    """See the module. One thread.

    >>> time = [100.0]
    >>> desk = Desk(lease=60.0, clock=lambda: time[0])
    >>> desk.take("192.0.2.1"), desk.take("192.0.2.1"), desk.take("192.0.2.2")
    (0.0, 0.05, 0.0)
    >>> desk.rest("192.0.2.1", 2.0); time[0] += 1.5
    >>> desk.take("192.0.2.1")
    0.5
    """

    def __init__(self, lease: float, opens: float = 0.0, clock: Callable[[], float] = monotonic) -> None:
        """`lease` is how long a request may take, and the pause behind it; nothing is given out for `opens` seconds."""
        self._lease, self._clock, self._opens = lease, clock, clock() + opens
        self._until: dict[str, tuple[float, bool]] = {}  # until when, and whether a request is under way

    def take(self, address: str) -> float:
        """0 if the turn is the asker's from now on; else the seconds after which it may be free."""
        now = self._clock()
        until, busy = self._until.get(address, (now, False))
        if now < self._opens:
            return self._opens - now
        if until > now:
            return min(until - now, BUSY) if busy else until - now
        if len(self._until) >= _MANY:
            self._until = {each: entry for each, entry in self._until.items() if entry[0] > now}
        self._until[address] = (now + self._lease, True)
        return 0.0

    def rest(self, address: str, seconds: float) -> None:
        """A turn comes back: for so long nobody gets it."""
        self._until[address] = (self._clock() + seconds, False)


def owners(keys: KeyMaker, addresses: Sequence[str], processes: int) -> list[int]:
    """The part that gives out the turns at each address: the one that owns its slot.

    >>> owners(KeyMaker(7), ["192.0.2.1", "192.0.2.2"], 1)
    [0, 0]
    """
    return by_hash(np.array([keys.of(each) for each in addresses], np.uint64), processes).tolist()  # type: ignore[no-any-return]
