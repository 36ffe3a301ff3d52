"""What has arrived and waits to be read: turns go round by domain, by the time that each takes.

One loop reads everything. If pages were read in the order of arrival, all sites would wait for those whose pages take long
to read, such as pages with a megabyte of links. So this is fair queueing, as in routers (WF2Q+, Bennett and Zhang 1997, with
equal weights): imagine that all domains are read at the same time, each with an equal share of the loop. The one that would
be done first is read first. A share that a domain does not use is not saved for later.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count

from barkspider.core.events import FetchPage
from barkspider.engine.harvest import Reaped
from barkspider.engine.work import Arrival

_NOBODY, _THREADS = 0, -1  # the domains of seeds and other things of our own, and of what threads have read
_MANY = 1024  # domains that were read lately; those that others have caught up with are then forgotten


class Arrivals:
    """Filled by tasks, emptied by the loop, which says after each `popleft` what it took (`charge`)."""

    def __init__(self) -> None:
        self._waiting: dict[int, deque[Arrival | Reaped]] = {}
        self._read = deque[Arrival]()  # what a thread has read takes most memory: it waits for nothing
        # Domains with something that waits, by the share at which it would be done; in order of arrival if equal.
        self._turns: list[tuple[float, int, int]] = []
        self._numbers = count()
        self._now = 0.0  # the share of everybody, in seconds
        # By domain: the share it has used, and what its last page took.
        self._had: dict[int, tuple[float, float]] = {}
        self._usual = 0.0  # what pages take
        self._many = _MANY
        self._last = _NOBODY
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, each: Arrival | Reaped) -> None:
        """Something has arrived."""
        self._count += 1
        if isinstance(each, Arrival) and each.content is not None:
            self._read.append(each)
            return
        domain = _domain(each)
        if domain in self._waiting:
            self._waiting[domain].append(each)
        else:
            self._waiting[domain] = deque((each,))
            self._line_up(domain)

    def popleft(self) -> Arrival | Reaped:
        """What is to be read next."""
        if self._read:
            self._last, self._count = _THREADS, self._count - 1
            return self._read.popleft()
        done, _, domain = heappop(self._turns)
        while done < sum(self._had.get(domain, ())):  # it was read since it lined up
            self._line_up(domain)
            done, _, domain = heappop(self._turns)
        waiting = self._waiting[domain]
        each = waiting.popleft()
        self._last, self._count = domain, self._count - 1
        if waiting:
            self._line_up(domain)
        else:
            del self._waiting[domain]
        return each

    def charge(self, seconds: float) -> None:
        """What was taken last took so long."""
        used, _ = self._had.get(self._last, (0.0, 0.0))
        self._had[self._last] = max(self._now, used) + seconds, seconds
        self._now += seconds / max(len(self._waiting), 1)
        self._usual += (seconds - self._usual) / 64
        if len(self._had) > self._many:
            self._had = {domain: had for domain, had in self._had.items() if had[0] > self._now}
            self._many = max(_MANY, 2 * len(self._had))

    def _line_up(self, domain: int) -> None:
        used, last = self._had.get(domain, (0.0, self._usual))
        heappush(self._turns, (max(self._now, used) + last, next(self._numbers), domain))


def _domain(each: Arrival | Reaped) -> int:
    """The key of the domain of a page; of a robots.txt or a name, the key of its host."""
    if isinstance(each, Reaped):
        return _NOBODY
    asked = each.instruction
    return asked.row.pld_key if isinstance(asked, FetchPage) else asked.host_key
