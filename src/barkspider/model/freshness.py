"""How fresh copies of pages are that change at random, by how often they are visited (Cho and Garcia-Molina).

A page changes as a Poisson process of rate λ and is visited f times in a unit of time, at equal intervals. Its copy is fresh
while it is what the page is; its age is for how long it has not been. Arrays in, arrays out; the unit of time is the caller's.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]

POLICIES = ("uniform", "proportional", "optimal")
_STEPS = 80  # of a bisection: more than a float has bits
_RATIOS = np.geomspace(1e-5, 50.0, 16_384)  # of r, with g(r) for each: see `_optimal`
_WORTHS = -np.expm1(-_RATIOS) - _RATIOS * np.exp(-_RATIOS)


def freshness(rates: Numbers, frequencies: Numbers) -> Numbers:
    """The time for which a copy is fresh, as a share: (1 - e^-r) / r, with r = λ/f. Of pages never visited 0, or 1 if they do not
    change.

    >>> freshness(np.array([1.0, 1.0, 0.0, 1.0]), np.array([1.0, 10.0, 0.0, 0.0])).round(3).tolist()
    [0.632, 0.952, 1.0, 0.0]
    """
    r = _ratios(rates, frequencies)
    with np.errstate(invalid="ignore"):
        found: Numbers = np.where(r > 0, -np.expm1(-r) / r, 1.0)
    return np.where(np.isinf(r), 0.0, found)


def age(rates: Numbers, frequencies: Numbers) -> Numbers:
    """How old a copy is on average: I (1/2 - 1/r + (1 - e^-r) / r²), with I = 1/f; without bound if it is never visited.

    >>> age(np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])).round(3).tolist()
    [0.132, 0.0, inf]
    """
    r = _ratios(rates, frequencies)
    small = r < 1e-4  # where differences lose their digits: r/6
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = np.where(small, r / 6, 0.5 - 1 / r - np.expm1(-r) / r**2)
        found: Numbers = np.where(r > 0, parts / frequencies, 0.0)
    return np.where(np.isinf(r), np.inf, found)


def frequencies(policy: str, rates: Numbers, budget: float, counts: Numbers | None = None) -> Numbers:
    """How often each page is visited if so many visits are made in a unit of time: all alike, in proportion to their rates, or so
    that the mean freshness is the highest there is. Each number stands for so many pages (`counts`).

    >>> rates = np.array([0.1, 1.0, 30.0])
    >>> {name: freshness(rates, frequencies(name, rates, 3.0)).mean().round(3).item() for name in POLICIES}
    {'uniform': 0.539, 'proportional': 0.096, 'optimal': 0.581}
    >>> frequencies("optimal", rates, 3.0).round(2).tolist()  # what changes too often is left alone
    [0.78, 2.22, 0.0]
    """
    counts = np.ones(len(rates)) if counts is None else counts
    if policy == "uniform":
        return np.full(len(rates), budget / counts.sum())
    if policy == "proportional":
        return rates * (budget / max(float((rates * counts).sum()), 1e-300))
    return _optimal(rates, budget, counts)


def _optimal(rates: Numbers, budget: float, counts: Numbers) -> Numbers:
    """Lagrange: what one more visit is worth, ∂F/∂f = g(r)/λ with g(r) = 1 - (1 + r) e^-r, is the same µ for all that are visited;
    others, for whom it never is, are not."""
    found = np.zeros(len(rates))
    changing = rates > 0
    some, each = rates[changing], counts[changing]
    if not len(some):
        return frequencies("uniform", rates, budget, counts)
    low, high = -700.0, float(np.log(1 / some.min()))  # of log µ
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if float((_visits(some, np.exp(middle)) * each).sum()) > budget:
            low = middle
        else:
            high = middle
    found[changing] = _visits(some, np.exp(high))
    return found


def _visits(rates: Numbers, worth: float) -> Numbers:
    """How often pages are visited of which one more visit is worth so much."""
    goals = rates * worth
    r = np.where(goals < _WORTHS[0], np.sqrt(2 * goals), np.interp(goals, _WORTHS, _RATIOS))
    return np.where(goals < 1.0, rates / r, 0.0)


def estimate(
    firsts: npt.NDArray[np.int64], intervals: Numbers, changed: npt.NDArray[np.bool_]
) -> tuple[Numbers, Numbers]:
    """The rate of each page, and for how long it was watched. Page k was visited after the intervals from `firsts[k]` up to the next
    one's, and each time found changed, or not.

    The likelihood of what was seen is highest where Σ w/(e^λw - 1) over the visits that found a change is Σ w over the others
    (Cho and Garcia-Molina, for irregular visits); with half a visit without a change on top, which takes most of the bias of few
    visits away: for regular ones -log((X + 1/2) / (n + 1/2)), as they have it. A page that was never seen to change has no such
    maximum but 0, at which nobody would look at it again: it is given half a change for the time that it was watched.

    >>> rates, watched = estimate(np.array([0, 4]), np.ones(8), np.array([1, 1, 0, 0, 0, 0, 0, 0], bool))
    >>> rates.round(3).tolist(), watched.tolist()
    ([0.588, 0.125], [4.0, 4.0])
    >>> round(-np.log((2 + 0.5) / (4 + 0.5)), 3).item()
    0.588
    """
    counts = np.diff(np.append(firsts, len(intervals)))
    assert (counts > 0).all(), "each page has been visited again"
    watched = np.add.reduceat(intervals, firsts)
    means = watched / counts
    unchanged = np.add.reduceat(np.where(changed, 0.0, intervals), firsts) + means / 2
    often = np.add.reduceat(changed.astype(np.float64), firsts) > 0
    pages = np.repeat(np.arange(len(firsts)), counts)[changed]  # of visits that found a change
    waits = intervals[changed]
    low, high = 1e-9 / means, 100.0 / means
    for _ in range(_STEPS // 2):
        middle = np.sqrt(low * high)
        with np.errstate(over="ignore"):
            terms = waits / np.expm1(middle[pages] * waits)
        above = np.bincount(pages, terms, len(firsts)) > unchanged
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(often, np.sqrt(low * high), 0.5 / watched), watched


def _ratios(rates: Numbers, frequencies: Numbers) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Numbers = np.where(rates > 0, rates / frequencies, 0.0)
    return found
