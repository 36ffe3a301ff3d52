"""What several repetitions of one simulation found, as means and spread, and the seeds that they begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError
from barkspider.frontier.sampling import next_random
from barkspider.lab.webgraph import WebGraph


@dataclass(frozen=True, slots=True)
class Summary:
    """The mean and the standard deviation of each figure; the deviation of a single value is 0.

    >>> summary = Summary.of([{"coverage": 0.5}, {"coverage": 0.7}])
    >>> round(summary.mean["coverage"], 3), round(summary.spread["coverage"], 3)
    (0.6, 0.141)
    """

    mean: dict[str, float]
    spread: dict[str, float]

    @classmethod
    def of(cls, runs: Sequence[Mapping[str, float]]) -> Summary:
        """Of runs that have the same figures."""
        rows = {name: np.array([run[name] for run in runs], float) for name in runs[0]}
        spread = {name: float(row.std(ddof=1)) if len(row) > 1 else 0.0 for name, row in rows.items()}
        return cls({name: float(row.mean()) for name, row in rows.items()}, spread)


def choose_seeds(web: WebGraph, count: int, seed: int) -> npt.NDArray[np.int32]:
    """Different pages at random among those that link anywhere; the same on every machine.

    >>> choose_seeds(WebGraph.of([[1], [], [0], [0]]), 3, seed=7).tolist()
    [0, 2, 3]
    """
    linking = np.flatnonzero(np.diff(web.indptr)).astype(np.int32)
    if not 1 <= count <= len(linking):
        raise UsageError(f"{count:,} seeds; {len(linking):,} pages have links: give 1 to that many")
    state, chosen = np.array([seed], np.uint64), dict[int, None]()
    while len(chosen) < count:
        chosen[int(linking[int(next_random(state)) % len(linking)])] = None
    return np.array(list(chosen), np.int32)
