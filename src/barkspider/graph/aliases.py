"""Nodes that stand for others: a domain that only redirects is counted with the one it leads to (section V-D)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # it loads the compiler, which SQL does not need
    from barkspider.storage.columns import Keys


class Aliases(NamedTuple):
    """Keys, ascending, and what each stands for: a key that is no alias itself."""

    keys: Keys
    targets: Keys

    @classmethod
    def resolved(cls, keys: Keys, targets: Keys) -> Aliases:
        """Aliases from keys, ascending, and where each leads, which may be another of them.

        Each stands for the end of its chain. Those that lead to each other in a circle have no end: they are no
        aliases, and a chain ends where it enters the circle. Pointers are doubled, so the longest chain takes as
        many rounds as its length has bits.

        >>> found = Aliases.resolved(np.array([1, 2, 5, 6, 7], np.uint64), np.array([2, 3, 6, 7, 6], np.uint64))
        >>> found.keys, found.targets
        (array([1, 2, 5], dtype=uint64), array([3, 3, 6], dtype=uint64))
        """
        following = np.searchsorted(keys, targets)
        following[following == len(keys)] = 0
        leads_on = keys[following] == targets
        ends = _followed(following, leads_on)
        circling = np.zeros(len(keys), np.bool_)
        circling[ends] = True  # after as many steps as there are aliases, all are at an end or in a circle
        circling &= leads_on
        if circling.any():
            ends = _followed(following, leads_on & ~circling[following])
        kept = ~circling
        return cls(keys[kept], targets[ends[kept]])

    def __call__(self, keys: Keys) -> Keys:
        """The keys with each alias replaced by what it stands for.

        >>> Aliases(np.array([4], np.uint64), np.array([9], np.uint64))(np.array([9, 4, 3], np.uint64))
        array([9, 9, 3], dtype=uint64)
        """
        if not len(self.keys):
            return keys
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.targets[places], keys)


def _followed(following: npt.NDArray[np.intp], leads_on: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Where each alias is after as many steps as there are aliases; one that does not lead on stays."""
    steps = np.where(leads_on, following, np.arange(len(following)))
    for _ in range(len(following).bit_length()):
        twice = steps[steps]
        if (twice == steps).all():
            break
        steps = twice
    return steps
