"""Pages that change by known rates: each as a Poisson process of its own, from which everything at any time follows.

The rates of pages lie evenly, by their logarithm, over three powers of ten: some pages change a thousand times as often as others.
The gaps between the changes of a page are drawn by its number and theirs, so nothing is stored.
"""

from __future__ import annotations

from math import exp, log

import numpy as np
import numpy.typing as npt

from barkspider.lab.synthweb.kernels import kernel, types
from barkspider.lab.synthweb.model import FOR_CHANGES, Int64s, draw, unit

Times = npt.NDArray[np.float64]

_SPREAD = 1_000.0  # the highest rate by the lowest
_GAPS = 1 << 20  # changes of a page that are told apart
_MEAN = (_SPREAD - 1) / log(_SPREAD)  # of the rates, by the lowest


@kernel(types.float64(types.int64, types.int64, types.float64))
def rate_of(seed: int, page: int, mean: float) -> float:
    """How often a page changes in a unit of time, if pages do so `mean` times on average."""
    return mean * exp(unit(draw(seed, FOR_CHANGES, page)) * log(_SPREAD)) / _MEAN


_TIMES = types.Array(types.float64, 1, "C", readonly=True)


@kernel(
    types.void(types.int64, types.float64, _TIMES, types.int64[::1], types.int64[::1], types.float64[::1])
)
def move_on(seed: int, mean: float, until: Times, pages: Int64s, versions: Int64s, nexts: Times) -> None:
    """Bring pages to their times: how often each has changed by then, and when it changes next. They begin with -1 and 0."""
    for k in range(len(pages)):
        page = pages[k]
        while nexts[k] <= until[k]:
            versions[k] += 1
            gap = -log(unit(draw(seed, FOR_CHANGES + 1, page * _GAPS + versions[k])))
            nexts[k] += gap / rate_of(seed, page, mean)


class Changes:
    """What the pages of a web have become by a time, and how often they change.

    >>> changes = Changes(seed=1, mean=0.5)
    >>> changes.version(7, 0.0), changes.version(7, 10_000.0) > changes.version(7, 5_000.0) > 0
    (0, True)
    >>> rates = changes.rates(np.arange(100_000))
    >>> bool(abs(rates.mean() / 0.5 - 1) < 0.02)
    True
    """

    def __init__(self, seed: int, mean: float) -> None:
        """`mean` is how often a page changes in a unit of time, on average over all pages."""
        self.seed, self.mean = seed, mean

    def rates(self, pages: Int64s) -> Times:
        """How often each of the pages changes in a unit of time."""
        return np.array([rate_of(self.seed, page, self.mean) for page in pages.tolist()])

    def version(self, page: int, time: float) -> int:
        """How often a page has changed by a time."""
        versions, nexts = np.full(1, -1, np.int64), np.zeros(1)
        move_on(self.seed, self.mean, np.array([time]), np.array([page]), versions, nexts)
        return int(versions[0])
