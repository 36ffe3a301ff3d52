"""Into which queue a URL goes, given the budget of its domain: a kernel on arrays, and the table it needs.

Queues are named by *turns*: the current one has turn T, the one after it T + 1, and so on, for ever. The paper
keeps an array of the left-over budget of each domain in each queue. Turns make one pair of turn and left-over
budget enough: a domain fills its queues one after the other, so those before that turn are closed to it, and
those behind it have none of its URLs. A pair whose turn has come says no more than no pair, so it is dropped
when there are too many.

During a re-scan turns go on past the last queue, for URLs that fail: so it is known afterwards, by powers of two, how
many turns would have been enough for how many of them (`levels`). When it is over these turns are forgotten (`close`).

The live crawl and simulations call the same kernel.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

nb: Any = numba
_KEYS = nb.types.Array(nb.uint64, 1, "C", readonly=True)
_BUDGETS = nb.types.Array(nb.uint32, 1, "C", readonly=True)
_MARKS = nb.types.Array(nb.boolean, 1, "C", readonly=True)
_TABLE = nb.uint64[:, ::1]

FAILED = -1  # instead of a turn: no queue has budget left, so the URL goes to Q_F
SLOT = 16  # bytes
LEVELS = 33  # powers of two up to 2^32, as many as there are turns
_LEAST = 64  # slots
_HIGHEST = 2**64 - 1
# Fibonacci hashing: keys are hashes, but a caller may pass small numbers too.
_SPREAD: Any = np.uint64(0x9E3779B97F4A7C15)
u64: Any = np.uint64
i64: Any = np.int64


@nb.njit(nb.uint64(nb.int64), nogil=True, cache=True)
def _shift(slots):  # type: ignore[no-untyped-def]
    """How far to shift a product to the right for a slot, of a power of two."""
    shift = 64
    while slots > 1:
        slots >>= 1
        shift -= 1
    return u64(shift)


@nb.njit(
    nb.int64(
        _TABLE,
        nb.int64,
        nb.int64,
        _KEYS,
        _BUDGETS,
        _MARKS,
        nb.int64,
        nb.int64,
        nb.int64,
        nb.int64[::1],
        nb.int64[::1],
    ),
    nogil=True,
    cache=True,
)
def place(table, used, most, keys, budgets, deferred, first, split, last, turns, levels):  # type: ignore[no-untyped-def]
    """Give each row the turn of the first queue in which its domain has budget left; IRLbot, section 6.2.

    Rows are taken in order. Ordinary ones may go into turns `first` to `last`, `deferred` ones, which were
    in Q_F, into `split` to `last`. A domain has at most its budget in each turn, with the budget that counts
    when it begins one. `table` has `used` entries (key, turn · 2^32 + left-over budget), and key 0 where there
    is none; its length is a power of two above `most`. When it has `most`, further domains fail too.

    A deferred row of a domain in the table that fails has a turn as well, n behind `last`, and counts in the first of
    `levels` with n ≤ 2^level.

    Returns the entries used then. O(1) a row.
    """
    mask = i64(len(table) - 1)
    shift = _shift(len(table))
    for row in range(len(keys)):
        key = keys[row] if keys[row] != u64(0) else _SPREAD  # shares a budget, once in 2^64 domains
        slot = i64((key * _SPREAD) >> shift)
        while table[slot, 0] != u64(0) and table[slot, 0] != key:
            slot = (slot + 1) & mask
        is_new = table[slot, 0] == u64(0)
        turn = i64(table[slot, 1] >> u64(32))
        left = i64(table[slot, 1] & u64(0xFFFFFFFF))
        earliest = split if deferred[row] else first
        if is_new or turn < earliest:
            turn, left = earliest, i64(budgets[row])
        elif left == 0:
            turn, left = turn + 1, i64(budgets[row])
        turns[row] = FAILED
        if left == 0 or (turn > last and not deferred[row]):
            continue
        if is_new:
            if used == most:
                continue
            used += 1
            table[slot, 0] = key
        table[slot, 1] = (u64(turn) << u64(32)) | u64(left - 1)
        if turn <= last:
            turns[row] = turn
            continue
        level = 0
        while turn - last > i64(1) << i64(level):
            level += 1
        levels[level] += 1
    return used


@nb.njit(nb.void(_TABLE, nb.int64), nogil=True, cache=True)
def _close(table, last):  # type: ignore[no-untyped-def]
    """Let no entry be of a turn behind `last`: what was there has failed."""
    full = u64(last) << u64(32)
    for slot in range(len(table)):
        if table[slot, 1] >> u64(32) > u64(last):
            table[slot, 1] = full


@nb.njit(nb.void(_TABLE, nb.types.Array(nb.uint64, 2, "C", readonly=True)), nogil=True, cache=True)
def _fill(table, entries):  # type: ignore[no-untyped-def]
    """Put entries with different keys into an empty table that has room for them."""
    mask = i64(len(table) - 1)
    shift = _shift(len(table))
    for row in range(len(entries)):
        slot = i64((entries[row, 0] * _SPREAD) >> shift)
        while table[slot, 0] != u64(0):
            slot = (slot + 1) & mask
        table[slot, 0] = entries[row, 0]
        table[slot, 1] = entries[row, 1]


@nb.njit(nb.uint64[:, ::1](_TABLE, nb.int64, nb.uint64, nb.uint64), nogil=True, cache=True)
def _held(table, first, low, high):  # type: ignore[no-untyped-def]
    """The entries of turn `first` or later with keys from `low` to `high`."""
    least = u64(first) << u64(32)
    count = 0
    for slot in range(len(table)):
        count += low <= table[slot, 0] <= high and table[slot, 1] >= least
    entries = np.empty((count, 2), np.uint64)
    count = 0
    for slot in range(len(table)):
        if low <= table[slot, 0] <= high and table[slot, 1] >= least:
            entries[count, 0] = table[slot, 0]
            entries[count, 1] = table[slot, 1]
            count += 1
    return entries


class Placement:
    """The left-over budgets of domains in RAM, which grow up to a limit. One thread.

    A slot takes 16 bytes, and at most 5 of 8 are used: 26 to 51 bytes a domain. Only domains count that have
    URLs in a queue behind the current one; the others are forgotten when the table is full. 256 MiB hold 10.5
    million of them (and half as much again is needed for a moment when the table grows to that); to place a URL
    then takes 80 ns, and to write them all, as each commit does, 2.4 s. Beyond the limit, URLs of domains that
    are not in the table fail like those without budget, and are placed after the next re-scan.

    >>> placement = Placement(1 << 20)
    >>> three = np.array([7, 7, 7], np.uint64), np.array([2, 2, 2], np.uint32), np.zeros(3, np.bool_)
    >>> placement.place(*three, first=1, split=1, last=1).tolist()
    [1, 1, -1]
    """

    def __init__(self, memory: int) -> None:
        """`memory` is in bytes; the largest power of two within it is used."""
        self._limit = max(_LEAST, 1 << ((memory // SLOT).bit_length() - 1))
        self._table = np.zeros((_LEAST, 2), np.uint64)
        self._used = 0
        self._cleaned = 0  # the first turn that counted when the table was last cleaned
        self.levels = np.zeros(LEVELS, np.int64)  # of deferred rows that failed; see `place`

    def __len__(self) -> int:
        """Entries, some of which may say no more than none."""
        return self._used

    def place(
        self,
        keys: npt.NDArray[np.uint64],
        budgets: npt.NDArray[np.uint32],
        deferred: npt.NDArray[np.bool_],
        first: int,
        split: int,
        last: int,
    ) -> npt.NDArray[np.int64]:
        """The turn of each row, or FAILED; see the kernel."""
        if not len(keys) == len(budgets) == len(deferred):
            raise ValueError(f"{len(keys)} URLs with {len(budgets)} budgets")
        if self._used + len(keys) > self._most() and (
            len(self._table) < self._limit or self._cleaned != first
        ):
            self._rebuild(_held(self._table, first, 1, _HIGHEST), len(keys))
            self._cleaned = first
        turns = np.empty(len(keys), np.int64)
        self._used = place(
            self._table,
            self._used,
            self._most(),
            keys,
            budgets,
            deferred,
            first,
            split,
            last,
            turns,
            self.levels,
        )
        return turns

    def close(self, last: int) -> None:
        """A re-scan is over: domains whose URLs did not fit into the turns up to `last` go on behind these."""
        _close(self._table, last)

    def clear(self) -> None:
        """Forget all domains."""
        self.load(np.empty((0, 2), np.uint64))

    def entries(self, first: int) -> npt.NDArray[np.uint64]:
        """Keys and pairs of the domains that have URLs in turn `first` or later, in no order."""
        entries: npt.NDArray[np.uint64] = _held(self._table, first, 1, _HIGHEST)
        return entries

    def load(self, entries: npt.NDArray[np.uint64]) -> None:
        """Begin with these entries."""
        self._rebuild(entries, 0)

    def _most(self) -> int:
        return len(self._table) * 5 // 8

    def _rebuild(self, entries: npt.NDArray[np.uint64], more: int) -> None:
        slots = _LEAST
        wanted = len(entries) + len(entries) // 2 + more  # half again, so that it does not happen often
        while slots * 5 // 8 < wanted and (slots < self._limit or slots * 5 // 8 < len(entries)):
            slots *= 2
        self._table = np.zeros((slots, 2), np.uint64)
        _fill(self._table, entries)
        self._used = len(entries)
