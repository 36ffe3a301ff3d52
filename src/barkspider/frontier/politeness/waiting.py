"""Hosts that wait for the end of their pause: a million of them, at a cost that hardly grows.

One heap of all would touch twenty scattered entries for each host that it gives out. Here only the hosts of the
present eighth of a second are in a heap; the others lie in one list for each eighth to come, in no order, at eight
bytes a host, and are put in order when their time comes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import chain, count

from barkspider.frontier.politeness.hosts import Host

_SLICES = 8  # in a second: a thousand hosts each at 8,000 requests a second


class Waiting:
    """Hosts by their `next_time`; those of the same time in the order in which they came.

    >>> waiting, host = Waiting(), Host(1)
    >>> host.next_time = 2.5
    >>> waiting.push(host)
    >>> waiting.pop(2.4), waiting.next_time(), waiting.pop(2.5) is host, waiting.next_time()
    (None, 2.5, True, inf)
    """

    def __init__(self) -> None:
        self._near: list[tuple[float, int, Host]] = []  # a heap: all whose slice has begun
        self._begun = -math.inf  # the end of the slices that have begun
        self._far: dict[int, list[Host]] = {}
        self._slices: list[int] = []  # a heap of the keys of `_far`
        self._order = count()

    def push(self, host: Host) -> None:
        """Let a host wait; its pause may be made longer meanwhile."""
        if host.next_time < self._begun or host.next_time == -math.inf:
            heapq.heappush(self._near, (host.next_time, next(self._order), host))
            return
        number = math.floor(host.next_time * _SLICES)
        there = self._far.get(number)
        if there is None:
            self._far[number] = [host]
            heapq.heappush(self._slices, number)
        else:
            there.append(host)

    def pop(self, now: float) -> Host | None:
        """The host whose pause ended first, if it has ended."""
        while self._slices and self._slices[0] <= now * _SLICES:
            number = heapq.heappop(self._slices)
            self._begun = (number + 1) / _SLICES
            for host in self._far.pop(number):
                self.push(host)
        while self._near and self._near[0][0] <= now:
            host = heapq.heappop(self._near)[2]
            if host.next_time <= now:
                return host
            self.push(host)
        return None

    def next_time(self) -> float:
        """When the first pause ends, or the slice begins that it is in."""
        near = self._near[0][0] if self._near else math.inf
        far = self._slices[0] / _SLICES if self._slices else math.inf
        return min(near, far)

    def __iter__(self) -> Iterator[Host]:
        """All, in no order."""
        return chain((host for _, _, host in self._near), chain.from_iterable(self._far.values()))
