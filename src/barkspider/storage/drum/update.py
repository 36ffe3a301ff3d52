"""What an update does to a stored value: by name, or a function of the caller's.

Rows come sorted by key and, within a key, in order of arrival; `scan` gives the value after each of them, as
if they had been applied one by one:

    replace   the new value
    add       old + new, for numbers (wrapping around like numpy's)
    max       the larger
    union     values are sets of items of a fixed size, sorted, one after the other
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.texts import Rows, Texts
from barkspider.storage.columns import Column, Kind

Mask = npt.NDArray[np.bool_]


class Update(ABC):
    """A way to update. `skips` tells whether it makes use of which values are needed."""

    skips = False

    @abstractmethod
    def scan(self, values: Column, start: Mask, prior: Column, has_prior: Mask, needed: Mask) -> Column:
        """The value after each row.

        `start` marks the first row of each key; for those `has_prior` tells whether a value was stored, and
        `prior` which (one for each key, blank when none). Rows that are not `needed` may get any value, if the
        update `skips`; otherwise only the last of each key is marked, and all rows get theirs.
        """


class Replace(Update):
    """The newest value stands."""

    def scan(self, values: Column, start: Mask, prior: Column, has_prior: Mask, needed: Mask) -> Column:  # noqa: ARG002
        return values


class Accumulate(Update):
    """An associative ufunc over numbers."""

    def __init__(self, function: np.ufunc) -> None:
        self._function = function

    def scan(self, values: Column, start: Mask, prior: Column, has_prior: Mask, needed: Mask) -> Column:  # noqa: ARG002
        assert isinstance(values, np.ndarray)
        assert isinstance(prior, np.ndarray)
        running = values.copy()
        seeded = np.flatnonzero(start)[has_prior]
        with np.errstate(over="ignore"):
            running[seeded] = self._function(prior[has_prior], values[seeded])
            rank = _rank(start)
            # Each step joins pairs of runs twice as long: as many steps as the most repeated key has bits.
            step, deepest = 1, int(rank.max(initial=0))
            while step <= deepest:
                rows = np.flatnonzero(rank >= step)
                running[rows] = self._function(running[rows - step], running[rows])
                step *= 2
        return running


class Combine(Update):
    """A function of the caller's on arrays, `function(old, new)`: one call for each repeat of the key that
    is repeated most."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def scan(self, values: Column, start: Mask, prior: Column, has_prior: Mask, needed: Mask) -> Column:  # noqa: ARG002
        assert isinstance(values, np.ndarray)
        assert isinstance(prior, np.ndarray)
        running = values.copy()
        seeded = np.flatnonzero(start)[has_prior]
        if len(seeded):
            running[seeded] = self._function(prior[has_prior], values[seeded])
        rank = _rank(start)
        by_rank = np.argsort(rank, kind="stable")
        ends = np.cumsum(np.bincount(rank)) if len(rank) else np.zeros(0, np.int64)
        for depth in range(1, len(ends)):
            rows = by_rank[ends[depth - 1] : ends[depth]]
            running[rows] = self._function(running[rows - 1], values[rows])
        return running


class CombineTexts(Update):
    """A function of the caller's on bytes, `function(old, new)` with None for no old value: a call a row."""

    def __init__(self, function: Callable[[bytes | None, bytes], bytes]) -> None:
        self._function = function

    def scan(self, values: Column, start: Mask, prior: Column, has_prior: Mask, needed: Mask) -> Column:  # noqa: ARG002
        assert isinstance(values, Texts)
        assert isinstance(prior, Texts)
        olds = iter(zip(prior.tolist(), has_prior.tolist(), strict=True))
        running: bytes | None = None
        out = []
        for new, begins in zip(values.tolist(), start.tolist(), strict=True):
            if begins:
                old, stored = next(olds)
                running = old if stored else None
            running = self._function(running, new)
            out.append(running)
        return Texts.of(out)


class Union(Update):
    """Sets of items of `size` bytes; all rows up to one that is needed are united at once."""

    skips = True

    def __init__(self, size: int) -> None:
        self._size = size

    def scan(self, values: Column, start: Mask, prior: Column, has_prior: Mask, needed: Mask) -> Column:  # noqa: ARG002
        assert isinstance(values, Texts)
        assert isinstance(prior, Texts)
        if (values.lengths() % self._size).any():
            raise ValueError(f"a set of items of {self._size} bytes has a length that is not a multiple")
        out: list[bytes] = []
        held: list[Any] = []
        key = -1
        starts, wanted = start.tolist(), needed.tolist()
        for row in range(len(values)):
            if starts[row]:
                key += 1
                held = [self._items(prior, key)]
            held.append(self._items(values, row))
            if not wanted[row]:
                out.append(b"")
                continue
            held = [self._distinct(np.concatenate(held))]
            out.append(held[0].tobytes())
        return Texts.of(out)

    def _distinct(self, items: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self._size != 8:
            return np.unique(items, axis=0)
        items.sort()  # `unique` hashes, which takes ten times as long for millions of items
        fresh = np.ones(len(items), np.bool_)
        np.not_equal(items[1:], items[:-1], out=fresh[1:])
        return items[fresh]

    def _items(self, texts: Texts, row: int) -> Any:
        data = texts.data[texts.offsets[row] : texts.offsets[row + 1]]
        # Rows of bytes and not numpy's strings, which forget trailing zeros.
        return data.view("<u8") if self._size == 8 else data.reshape(-1, self._size)


def choose(update: str | Callable[..., Any], kind: Kind, item: int = 8) -> Update:
    """The update of a name or function for values of a kind. `item` is the size of items for `union`.

    >>> type(choose("max", np.dtype("<i4"))).__name__
    'Accumulate'
    >>> choose("union", None)
    Traceback (most recent call last):
        ...
    ValueError: update 'union' does not work on none values
    """
    if callable(update):
        return CombineTexts(update) if kind is bytes else Combine(update)
    fixed = isinstance(kind, np.dtype)
    if update == "replace":
        return Replace()
    if update in ("add", "max") and isinstance(kind, np.dtype) and kind.names is None:
        return Accumulate(np.add if update == "add" else np.maximum)
    if update == "union" and kind is bytes:
        return Union(item)
    known = ("replace", "add", "max", "union")
    if update not in known:
        raise ValueError(f"no update is called {update!r}; there are {', '.join(known)}")
    shown = str(kind) if fixed else "bytes" if kind is bytes else "none"
    raise ValueError(f"update {update!r} does not work on {shown} values")


def _rank(start: Mask) -> Rows:
    """How many rows of the same key come before each."""
    places = np.flatnonzero(start)
    rank: Rows = np.arange(len(start)) - np.repeat(places, np.diff(np.append(places, len(start))))
    return rank
