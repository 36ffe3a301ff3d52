"""Which pages a budget is best spent on: those that are due, by how often each seems to change.

    versions of each page ─► its rate ─► how many pages there are of each rate ─► how often each rate is visited (a policy)
                                                                  └─► the pages that are overdue by most

A page that is to be visited f times in a period is due after 1/f of it; with less than that to spend, those go first for which the
time since the last visit is most times that. All pages are looked at twice, a million at a time: first they are counted by rate and by age,
then those are taken that are due. So memory does not grow with the crawl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.model.freshness import Numbers, estimate, frequencies

_FINE = 16  # classes for each doubling of a rate or an age: 2% to either side
_SLOWEST, _RATES = -40, 60  # powers of two: changes a second of the first class, doublings up to the last one
_AGES = 32  # doublings of an age, from one second
DAY = 86_400.0

# Each visit of the pages of one part, in order; what was found unchanged has the content that was there before. A page is known by its key.
VISITS = """
    WITH visits AS (
        SELECT key, epoch(fetch_time) AS time, url, depth, coalesce(parent, 0) AS parent,
            CASE WHEN outcome <> 'unchanged' THEN hash(coalesce(content_decoded_digest, content_digest)) END AS content
        FROM stored_pages
        WHERE key % {parts} = {part} AND (outcome = 'unchanged' OR outcome = 'ok' AND fetch_status BETWEEN 200 AND 299)),
    filled AS (
        SELECT * EXCLUDE (content), last_value(content IGNORE NULLS) OVER (
            PARTITION BY key ORDER BY time ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS content
        FROM visits)
    SELECT {columns}, time, coalesce(content <> lag(content) OVER one, false) AS changed
    FROM filled WINDOW one AS (PARTITION BY key ORDER BY time) ORDER BY key, time
"""
Keys: TypeAlias = npt.NDArray[np.uint64]


class Budget(NamedTuple):
    """So many pages in each period of so many seconds, spent by a policy."""

    pages: int
    period: float = DAY
    policy: str = "optimal"


class Rated(NamedTuple):
    """Pages with the rates at which they change, NaN for those that were visited once, and the times of their last visits; `rows` are those of
    the last visits in the table that was asked."""

    keys: Keys
    rates: Numbers
    last: Numbers
    rows: npt.NDArray[np.int64]

    def where(self, mask: npt.NDArray[np.bool_]) -> Rated:
        """The pages that the mask marks."""
        return Rated(self.keys[mask], self.rates[mask], self.last[mask], self.rows[mask])


def rated(table: pa.Table) -> Rated:
    """What the visits to pages, in the order of keys and times, say of each.

    >>> table = pa.table({"key": pa.array([1, 1, 1, 2], pa.uint64()), "time": [0.0, 9.0, 18.0, 4.0],
    ...                   "changed": [False, True, False, False]})
    >>> found = rated(table)
    >>> found.keys.tolist(), found.rates.round(4).tolist(), found.rows.tolist()
    ([1, 2], [0.0568, nan], [2, 3])
    """
    keys = table["key"].to_numpy().astype(np.uint64)
    times = table["time"].to_numpy().astype(np.float64)
    changed = table["changed"].to_numpy(zero_copy_only=False).astype(bool)
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    counts = np.diff(np.append(starts, len(keys)))
    rates = np.full(len(starts), np.nan)
    many = counts > 1
    if many.any():
        again = np.ones(len(keys), bool)
        again[starts] = False
        waits = np.maximum(np.diff(times, prepend=0.0)[again], 1.0)
        firsts = np.concatenate(([0], np.cumsum(counts[many] - 1)[:-1]))
        rates[many] = estimate(firsts, waits, changed[again])[0]
    rows = starts + counts - 1
    return Rated(keys[starts], rates, times[rows], rows)


@dataclass
class Choice:
    """Counts pages by rate and by age, then says which are due: `count` for all, `decide`, `due` for all again."""

    budget: Budget
    now: float

    def __post_init__(self) -> None:
        self._counts = np.zeros((_RATES * _FINE, _AGES * _FINE), np.int64)
        self._unknown = np.zeros(_AGES * _FINE, np.int64)  # of pages that were visited once
        self._usual = 0  # the class of rates that these are taken for
        self._order = np.zeros(0, np.int64)
        self._left = np.zeros(0, np.int64)

    def count(self, pages: Rated) -> None:
        """Take note of pages."""
        ages, known = self._ages(pages), ~np.isnan(pages.rates)
        np.add.at(self._counts, (_class_of(pages.rates[known]), ages[known]), 1)
        np.add.at(self._unknown, ages[~known], 1)

    def decide(self) -> None:
        """Share out the budget, now that all pages are counted."""
        of_rates = self._counts.sum(axis=1)
        if of_rates.any():  # of whom nothing is known is taken for one in the middle
            self._usual = int(np.searchsorted(np.cumsum(of_rates), of_rates.sum() / 2))
        else:
            self._usual = int(_class_of(np.array([1 / self.budget.period]))[0])
        self._counts[self._usual] += self._unknown
        of_rates = self._counts.sum(axis=1)
        there = np.flatnonzero(of_rates)
        rates = np.exp2((np.arange(_RATES * _FINE) + 0.5) / _FINE + _SLOWEST)
        often = np.zeros(len(rates))
        if len(there):
            visits = self.budget.pages / self.budget.period
            often[there] = frequencies(
                self.budget.policy, rates[there], visits, of_rates[there].astype(np.float64)
            )
        ages = np.exp2((np.arange(_AGES * _FINE) + 0.5) / _FINE)
        overdue = (often[:, None] * ages[None, :]).ravel()
        counts = self._counts.ravel()
        order = np.argsort(-overdue, kind="stable")
        order = order[(counts[order] > 0) & (overdue[order] > 0)]
        before = np.cumsum(counts[order]) - counts[order]
        # Of each class of rate and age so many are taken: all, or what is left for the last one, or none.
        self._left = np.zeros(counts.size, np.int64)
        self._left[order] = np.clip(self.budget.pages - before, 0, counts[order])

    def due(self, pages: Rated) -> npt.NDArray[np.bool_]:
        """Which of the pages are to be visited now."""
        known = np.where(np.isnan(pages.rates), self._usual, _class_of(pages.rates))
        cells = known * (_AGES * _FINE) + self._ages(pages)
        chosen = np.zeros(len(cells), bool)
        order = np.argsort(cells, kind="stable")
        ordered = cells[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
        place = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
        chosen[order] = place < self._left[ordered]
        np.subtract.at(self._left, cells[chosen], 1)
        return chosen

    def _ages(self, pages: Rated) -> npt.NDArray[np.int64]:
        ages = np.maximum(self.now - pages.last, 1.0)
        found: npt.NDArray[np.int64] = np.minimum((np.log2(ages) * _FINE).astype(np.int64), _AGES * _FINE - 1)
        return found


def _class_of(rates: Numbers) -> npt.NDArray[np.int64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        classes = np.floor((np.log2(np.nan_to_num(rates)) - _SLOWEST) * _FINE)
    found: npt.NDArray[np.int64] = np.clip(classes, 0, _RATES * _FINE - 1).astype(np.int64)
    return found


def visits(
    ask: Callable[[str], pa.Table], parts: int, columns: str = "key"
) -> Iterator[tuple[pa.Table, Rated]]:
    """The visits to all pages, a part of them at a time, with what they say."""
    for part in range(parts):
        table: Any = ask(VISITS.format(parts=parts, part=part, columns=columns))
        yield table, rated(table)
