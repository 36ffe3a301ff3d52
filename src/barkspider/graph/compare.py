"""What tells rankings apart: figures 1 to 3 and Table I, from top lists and scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def spam_found(names: Sequence[str], spam: Collection[str]) -> npt.NDArray[np.int64]:
    """u_r for r = 1, 2, …: how many of the first r are spam (section IV-C, figures 1(a) and 2(d)).

    >>> spam_found(["good.org", "bad.com", "fine.net"], {"bad.com"}).tolist()
    [0, 1, 1]
    """
    return np.cumsum([name in spam for name in names], dtype=np.int64)


def agreement(first: Sequence[Any], second: Sequence[Any]) -> float:
    """The share of one top list that is in the other as well.

    >>> agreement([1, 2, 3, 4], [4, 3, 9, 8])
    0.5
    """
    return len(set(first) & set(second)) / len(first) if len(first) else 1.0


def relative_errors(
    estimates: npt.NDArray[Any], exact: npt.NDArray[Any], order: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """|estimate - exact| / exact of the nodes in `order`, that of the exact ranking (figure 3(b)).

    >>> relative_errors(np.array([9, 30]), np.array([10, 20]), np.array([1, 0])).tolist()
    [0.5, 0.1]
    """
    wanted = exact[order].astype(np.float64)
    return np.divide(np.abs(estimates[order] - wanted), wanted, out=np.zeros(len(order)), where=wanted > 0)


def moving_average(values: npt.NDArray[Any], window: int) -> npt.NDArray[np.float64]:
    """The mean of the last `window` values at each place, of fewer at the beginning; NaN counts for nothing.

    >>> moving_average(np.array([1.0, np.nan, 5.0, 7.0]), 2).tolist()
    [1.0, 1.0, 5.0, 6.0]
    """
    known = ~np.isnan(values)
    totals = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(0, ends - window)
    means: npt.NDArray[np.float64] = (totals[ends] - totals[begins]) / np.maximum(
        1, counts[ends] - counts[begins]
    )
    return means


def outside_scores(names: Sequence[str], scores: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """What another source thinks of each of these nodes; NaN where it does not know it (figure 2)."""
    return np.array([scores.get(name, np.nan) for name in names], np.float64)


def spam_by_score(
    names: Collection[str], scores: Mapping[str, float], spam: Collection[str]
) -> dict[str, float]:
    """The share of spam among the nodes of each outside score, rounded; `none` has no score (figure 1(b)).

    >>> spam_by_score(["a", "b", "c"], {"a": 0, "b": 0}, {"a"})
    {'0': 0.5, 'none': 0.0}
    """
    groups: dict[str, list[bool]] = {}
    for name in names:
        score = scores.get(name)
        groups.setdefault("none" if score is None else f"{score:.0f}", []).append(name in spam)
    known = sorted((key for key in groups if key != "none"), key=float)
    return {
        key: sum(groups[key]) / len(groups[key]) for key in [*known, *(["none"] if "none" in groups else [])]
    }
