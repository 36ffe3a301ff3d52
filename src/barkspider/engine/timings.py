"""For how long the phases of fetches took in this run: counts by the bounds of a histogram, a microsecond for a page."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

BOUNDS = (
    0.01,
    0.03,
    0.1,
    0.3,
    1.0,
    3.0,
    10.0,
    30.0,
)  # seconds, upper ones; beyond the last there is one more count
PHASES = ("connect", "tls", "first_byte", "body")


class Timings:
    """The histograms of one run. Lives on the loop.

    >>> timings = Timings()
    >>> timings.add((0.02, 0.0, 0.5, 40.0))
    >>> [name for name, number in timings.sample().items() if number]
    ['connect.0.03', 'connect.sum', 'first_byte.1.0', 'first_byte.sum', 'body.inf', 'body.sum']
    """

    def __init__(self) -> None:
        self._counts = [[0] * (len(BOUNDS) + 1) for _ in PHASES]
        self._sums = [0.0] * len(PHASES)

    def add(self, seconds: Sequence[float]) -> None:
        """One fetch, phase by phase; a phase that did not happen has 0."""
        for phase, spent in enumerate(seconds):
            if spent:
                self._counts[phase][bisect_left(BOUNDS, spent)] += 1
                self._sums[phase] += spent

    def sample(self) -> dict[str, float]:
        """All of it as numbers by name: how many fell below each bound and not below the one before, and the sum."""
        found: dict[str, float] = {}
        for phase, counts, total in zip(PHASES, self._counts, self._sums, strict=True):
            found |= {
                f"{phase}.{bound}": count for bound, count in zip((*BOUNDS, "inf"), counts, strict=True)
            }
            found[f"{phase}.sum"] = round(total, 6)
        return found
