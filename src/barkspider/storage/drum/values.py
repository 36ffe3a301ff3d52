"""Comparing rows with stored keys that have values: as if one row after the other, done with arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.texts import Bytes, Rows, Texts
from barkspider.storage.columns import NO_ROWS, Column, Keys, blank, join, take
from barkspider.storage.drum.buckets import CHECK, UPDATE
from barkspider.storage.drum.update import Update
from barkspider.storage.kernels import insert_keys

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Row `rows[i]` (in order of arrival) gets `values[places[i]]`: what many rows get is there once."""

    rows: npt.NDArray[np.uint32]
    places: Rows
    values: Column


@dataclass(frozen=True, slots=True)
class Comparison:
    """The new run of Z, which sorted rows had a key that was not there, and the answers for the others."""

    keys: Keys
    values: Column
    unique: Mask
    answers: LookedUp


def compare(
    known: Keys,
    stored: Column,
    keys: Keys,
    ops: Bytes,
    order: npt.NDArray[np.uint32],
    row_values: Column,
    update: Update,
    answering: bool,
) -> Comparison:
    """Sorted rows, one or more, against a sorted run of Z. `row_values` are in order of arrival; there are
    answers only when `answering`.

    The trick is that the value before a row is the value after the last update of the same key before it,
    or the stored one; so it is enough to know the values after each update (`Update.scan`).
    """
    start = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=start[1:])
    group = np.cumsum(start) - 1
    group_keys = keys[start]
    place = np.searchsorted(known, group_keys)
    is_stored = place < len(known)
    is_stored[is_stored] = known[place[is_stored]] == group_keys[is_stored]

    updating = (ops & UPDATE) != 0
    updates = np.flatnonzero(updating)
    in_group = group[updates]
    first = np.ones(len(updates), np.bool_)
    np.not_equal(in_group[1:], in_group[:-1], out=first[1:])
    last = np.append(first[1:], True) if len(updates) else first
    updated = in_group[first]  # the groups with an update
    has_prior = is_stored[updated]
    prior = _prior(stored, place[updated], has_prior)
    needed = last | _asked_between(ops, updates) if update.skips else last
    after = update.scan(take(row_values, order[updates]), first, prior, has_prior, needed)

    before = np.cumsum(updating) - updating  # updates before each row
    has_previous = before > before[start][group]
    is_known = has_previous | is_stored[group]
    asked = (ops & CHECK) != 0
    rows = np.flatnonzero(asked & is_known) if answering else NO_ROWS
    source = np.where(has_previous[rows], len(known) + before[rows] - 1, place[group[rows]])
    used, places = np.unique(source, return_inverse=True)

    ends = np.flatnonzero(last)
    merged_keys, merged_values = _merged(
        known, stored, group_keys[updated], place[updated], has_prior, after, ends
    )
    answers = LookedUp(order[rows], places, _of_two(stored, after, used))
    return Comparison(merged_keys, merged_values, asked & ~is_known, answers)


def _prior(stored: Column, places: Rows, has_prior: Mask) -> Column:
    """The stored value of each updated key, blank where there is none."""
    rows = np.zeros(len(places), np.int64)
    rows[has_prior] = np.arange(1, np.count_nonzero(has_prior) + 1)
    kind: Any = bytes if isinstance(stored, Texts) else stored.dtype
    return take(join([blank(kind, 1), take(stored, places[has_prior])]), rows)


def _asked_between(ops: Bytes, updates: Rows) -> Mask:
    """Whether any row from each update to the next one, that included, wants the value.

    The next may be of another key: then one value too many is called needed, which does no harm.
    """
    asked = np.cumsum(ops & CHECK, dtype=np.int64)
    upper = np.append(updates[1:], len(ops) - 1) if len(updates) else updates
    wanted: Mask = asked[upper] > asked[updates]
    return wanted


def _of_two(first: Column, second: Column, rows: Rows) -> Column:
    """Rows, ascending, of two columns seen as one."""
    cut = int(np.searchsorted(rows, len(first)))
    return join([take(first, rows[:cut]), take(second, rows[cut:] - len(first))])


def _merged(
    known: Keys, stored: Column, keys: Keys, places: Rows, is_stored: Mask, after: Column, ends: Rows
) -> tuple[Keys, Column]:
    """The run of Z after all updates: `ends` are the rows of `after` with the final values of `keys`."""
    if len(keys) == 0:
        return known, stored
    source = np.arange(len(known))
    source[places[is_stored]] = len(known) + ends[is_stored]
    new = ~is_stored
    source = np.insert(source, places[new], len(known) + ends[new])
    merged = np.empty(len(source), np.uint64)
    insert_keys(known, np.ascontiguousarray(keys[new]), np.ascontiguousarray(places[new]), merged)
    return merged, take(join([stored, after]), source)
