"""The redirects that led to URLs which wait somewhere: by them a redirect back into its own trail is recognised."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from barkspider.core.events import Trail


class Trails:
    """The redirects that led to URLs which wait somewhere, by the keys of these; of more than `most` the oldest are
    forgotten.

    >>> trails = Trails(most=100)
    >>> trails.put(7, (1, 2)); trails.pop(7), trails.pop(7)
    ((1, 2), ())
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._trails: OrderedDict[int, Trail] = OrderedDict()

    def put(self, key: int, trail: Trail) -> None:
        """Remember the trail of a URL."""
        self._trails[key] = trail
        if len(self._trails) > self.most:
            self._trails.popitem(last=False)

    def pop(self, key: int) -> Trail:
        """Give out the trail of a URL; an empty one when there is none."""
        return self._trails.pop(key, ()) if self._trails else ()

    def copy(self) -> Trails:
        """One with the same trails."""
        other = Trails(self.most)
        other._trails = self._trails.copy()
        return other

    def save(self) -> npt.NDArray[np.uint64]:
        """All of them: key, length, and the keys of the trail, one after the other."""
        flat = [number for key, trail in self._trails.items() for number in (key, len(trail), *trail)]
        return np.array(flat, np.uint64)

    def load(self, saved: npt.NDArray[np.uint64]) -> None:
        """Take what `save` gave."""
        for key, trail in self.pairs(saved):
            self.put(key, trail)

    @staticmethod
    def pairs(saved: npt.NDArray[np.uint64]) -> Iterator[tuple[int, Trail]]:
        """The keys and trails in what `save` gave."""
        numbers, place = saved.tolist(), 0
        while place < len(numbers):
            key, length = numbers[place : place + 2]
            yield key, tuple(numbers[place + 2 : place + 2 + length])
            place += 2 + length
