"""How many pages a domain may have at a time: the budget functions F(d_x) of IRLbot (sections 5.2 and 7.2).

| name | budget of a domain with in-degree d |
| --- | --- |
| irlbot | the K first by rank get from `top` down to `base`, in even steps; all others `base` |
| equal | `base` |
| popular | the K first by rank get `top`, all others 1 |
| proportional | `base` · d / mean of d, between 1 and `top` |
| inverse | `base` · harmonic mean of d / d, between 1 and `top` |

K is `top_domains`, but at most 0.03% of the known domains, which is what the paper's 10,000 were of its 33.8
million: so E[B_x] lies between 10 and 11.5 on small webs too, where the paper has 11. A web of fewer than
3,334 domains has no top.

Two decisions that the paper leaves open. Domains of equal in-degree have the last rank among them, all the
same, so that never more than K are above the others: in a small web thousands of domains share the in-degree
of rank K. And no budget is below 1: the paper's policy for popular pages gives none to the others, but then
their URLs would wait for ever, and to delay is the purpose of budgets, not to discard (section 6.2).

A function of the user's own is named `package.module:function`. It is called as those here, and gives any
real numbers; they are rounded, and below 1 they count as 1.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import SettingsError
from barkspider.core.settings import Budget

Degrees: TypeAlias = npt.NDArray[np.integer[Any]]

_SMALL = 4096  # in-degrees below this are counted by place, the few above are sorted
_LARGEST = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many domains have which in-degree. Never changed.

    It is exact and still small, however many domains there are: n different in-degrees need n²/2 edges, so
    the 1.8 billion edges of IRLbot have at most 61,000, a megabyte.

    >>> known = Distribution.of([np.array([1, 7, 1]), np.array([1, 2])])
    >>> len(known), known.degrees.tolist(), known.ranks(np.array([0, 1, 2, 7, 8])).tolist()
    (5, [1, 2, 7], [5, 5, 2, 1, 1])
    """

    degrees: npt.NDArray[np.int64]  # ascending
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, blocks: Iterable[Degrees]) -> Distribution:
        """Count the in-degrees of all domains, in one pass."""
        small = np.zeros(_SMALL + 1, np.int64)
        large = np.empty(0, np.int64), np.empty(0, np.int64)
        for block in blocks:
            small += np.bincount(np.minimum(block, _SMALL), minlength=_SMALL + 1)
            more, counts = np.unique(block[block >= _SMALL].astype(np.int64), return_counts=True)
            if len(more):
                degrees, where = np.unique(np.concatenate([large[0], more]), return_inverse=True)
                total = np.zeros(len(degrees), np.int64)
                np.add.at(total, where, np.concatenate([large[1], counts]))
                large = degrees, total
        there = np.flatnonzero(small[:_SMALL])
        return cls(np.concatenate([there, large[0]]), np.concatenate([small[there], large[1]]))

    def plus(self, other: Distribution) -> Distribution:
        """Of these domains and those, which are others.

        >>> both = Distribution.of([np.array([1, 7])]).plus(Distribution.of([np.array([7, 9])]))
        >>> both.degrees.tolist(), both.counts.tolist()
        ([1, 7, 9], [1, 2, 1])
        """
        degrees, where = np.unique(np.concatenate([self.degrees, other.degrees]), return_inverse=True)
        counts = np.bincount(where, np.concatenate([self.counts, other.counts]), len(degrees))
        return Distribution(degrees, counts.astype(np.int64))

    def __len__(self) -> int:
        """Domains that are known."""
        return int(self.counts.sum())

    def ranks(self, degrees: Degrees) -> npt.NDArray[np.int64]:
        """How many domains have such an in-degree or a higher one; 1 at least, for the first."""
        at_least = np.append(np.cumsum(self.counts[::-1])[::-1], 0)
        ranks: npt.NDArray[np.int64] = at_least[np.searchsorted(self.degrees, degrees)]
        return np.maximum(ranks, 1)


Function: TypeAlias = Callable[[Degrees, Distribution, Budget], npt.NDArray[Any]]


class Budgets:
    """The budget function that the settings name, ready to be called.

    >>> budgets = Budgets(Budget())
    >>> web = Distribution(np.array([1, 50, 900]), np.array([9_997, 2, 1]))
    >>> budgets(np.array([0, 1, 50, 900]), web).tolist(), round(budgets.expected(web), 2)
    ([10, 10, 10, 10000], 11.0)
    """

    def __init__(self, settings: Budget) -> None:
        self._settings = settings
        self._function = _FUNCTIONS.get(settings.function) or _imported(settings.function)

    def __call__(self, degrees: Degrees, distribution: Distribution) -> npt.NDArray[np.uint32]:
        """The budget B_x of a domain of each in-degree, among all that are known."""
        found = np.asarray(self._function(degrees, distribution, self._settings), np.float64)
        if found.shape != degrees.shape or np.isnan(found).any():
            raise SettingsError(
                f"budget.function {self._settings.function} did not give one number for each in-degree"
            )
        return np.clip(np.rint(found), 1, _LARGEST).astype(np.uint32)

    def expected(self, distribution: Distribution) -> float:
        """E[B_x]: the mean budget of all known domains."""
        if not len(distribution):
            return float(self._settings.base)
        return float(np.average(self(distribution.degrees, distribution), weights=distribution.counts))


def top_count(distribution: Distribution, settings: Budget) -> int:
    """K: how many domains may have more than the others."""
    return min(settings.top_domains, len(distribution) * 3 // 10_000)


def _irlbot(degrees: Degrees, known: Distribution, settings: Budget) -> npt.NDArray[Any]:
    count, ranks = top_count(known, settings), known.ranks(degrees)
    step = (settings.top - settings.base) / max(1, count - 1)
    return np.where(ranks <= count, settings.top - (ranks - 1) * step, settings.base)


def _equal(degrees: Degrees, known: Distribution, settings: Budget) -> npt.NDArray[Any]:  # noqa: ARG001
    return np.full(degrees.shape, settings.base)


def _popular(degrees: Degrees, known: Distribution, settings: Budget) -> npt.NDArray[Any]:
    return np.where(known.ranks(degrees) <= top_count(known, settings), settings.top, 1)


def _proportional(degrees: Degrees, known: Distribution, settings: Budget) -> npt.NDArray[Any]:
    if not len(known):
        return _equal(degrees, known, settings)
    mean = max(1.0, float(np.average(known.degrees, weights=known.counts)))
    return np.clip(settings.base * degrees / mean, 1, settings.top)


def _inverse(degrees: Degrees, known: Distribution, settings: Budget) -> npt.NDArray[Any]:
    if not len(known):
        return _equal(degrees, known, settings)
    harmonic = 1.0 / float(np.average(1.0 / np.maximum(known.degrees, 1), weights=known.counts))
    return np.clip(settings.base * harmonic / np.maximum(degrees, 1), 1, settings.top)


_FUNCTIONS: dict[str, Function] = {
    "irlbot": _irlbot,
    "equal": _equal,
    "popular": _popular,
    "proportional": _proportional,
    "inverse": _inverse,
}


OURS = frozenset(_FUNCTIONS)  # what is not among them is code of the user's


def _imported(path: str) -> Function:
    module, colon, name = path.partition(":")
    if not colon:
        raise SettingsError(
            f"budget.function {path!r} is unknown: give {', '.join(_FUNCTIONS)} or package.module:function"
        )
    try:
        function: Function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"budget.function {path} cannot be imported: {error}") from error
    if not callable(function):
        raise SettingsError(f"budget.function {path} is not a function")
    return function
