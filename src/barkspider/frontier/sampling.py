"""What becomes of a page's new links in the Sydney strategy: kernels on integers.

`place` says which go into P, and whether the page goes into S with the others. The live crawl and the simulation call
the same function; the former, which has the pages of a step at once and a set of keys, by way of `place_all`. The
random state is one uint64 that the caller owns, so the same seed gives the same choices on any machine.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from barkspider.storage.keyset import find_slot

nb: Any = numba
SEEN, TAKEN, LEFT, LOST = 0, 1, 2, 3  # what became of a link: known before, in P, with its page in S, dropped
_KEYS = nb.types.Array(nb.uint64, 1, "C", readonly=True)
_COUNTS = nb.types.Array(nb.int64, 1, "C", readonly=True)
_MARKS = nb.types.Array(nb.boolean, 1, "C", readonly=True)


@nb.njit(nb.uint64(nb.uint64[::1]), nogil=True, cache=True)
def next_random(state):  # type: ignore[no-untyped-def]
    """The next number of SplitMix64; `state` is an array of one and moves on."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@nb.njit(nb.boolean[::1](nb.int64, nb.int64, nb.uint64[::1]), nogil=True, cache=True)
def sample(count, t, state):  # type: ignore[no-untyped-def]
    """Mark a random t of `count` links; all of them when there are at most t, or when t is 0.

    Figure 2 of Castillo et al., lines 8 to 12. Selection sampling (Knuth's Algorithm S): O(count), and
    the chosen keep their order on the page.

    >>> state = np.array([1], np.uint64)
    >>> int(sample(100, 8, state).sum()), int(sample(5, 8, state).sum()), int(sample(5, 0, state).sum())
    (8, 5, 5)
    """
    chosen = np.ones(count, np.bool_)
    if t == 0 or count <= t:
        return chosen
    wanted = t
    for i in range(count):
        # Taken with probability wanted / left; 53 random bits make an exact float in [0, 1).
        chance = np.float64(next_random(state) >> np.uint64(11)) * 2.0**-53
        chosen[i] = chance * (count - i) < wanted
        if chosen[i]:
            wanted -= 1
    return chosen


@nb.njit(
    nb.types.Tuple((nb.boolean[::1], nb.boolean))(
        nb.int64, nb.int64, nb.boolean, nb.int64, nb.int64, nb.int64, nb.uint64[::1]
    ),
    nogil=True,
    cache=True,
)
def place(count, t, keeps, primary, secondary, limit, state):  # type: ignore[no-untyped-def]
    """Which of a page's `count` new links go into P, and whether the page goes into S with the others.

    Lines 8 to 12 of figure 2 within the limit of section 3.3, which is one of `primary` and `secondary` together, the
    sizes of P and S without this page. A page with more than t new links takes a place in S (if there is an S: `keeps`)
    before its links take theirs in P; links that find none stay with it. But while P is empty the last place is for a
    link: else a full S would give back the same pages for ever. What is neither in P nor with a page in S is lost.

    >>> state = np.array([1], np.uint64)
    >>> [(int(taken.sum()), kept) for taken, kept in (
    ...     place(100, 8, True, 50, 20, 1000, state), place(100, 8, True, 50, 20, 73, state),
    ...     place(100, 8, True, 50, 20, 71, state), place(100, 8, True, 0, 70, 71, state), place(5, 8, True, 9, 9, 20, state)
    ... )]
    [(8, True), (2, True), (0, True), (1, False), (2, False)]
    """
    room = limit - primary - secondary
    wanted = count if t == 0 else min(t, count)
    kept = keeps and wanted < count and room > (primary == 0)
    taken = min(wanted, room - kept)
    if taken <= 0:
        return np.zeros(count, np.bool_), kept
    return sample(count, taken, state), kept


@nb.njit(
    nb.types.Tuple((nb.uint8[::1], nb.int64))(
        nb.uint64[::1], nb.uint8, _KEYS, _COUNTS, _COUNTS, _MARKS, _MARKS, nb.int64, nb.int64, nb.int64,
        nb.uint64[::1],
    ),
    nogil=True,
    cache=True,
)  # fmt: skip
def place_all(  # type: ignore[no-untyped-def]
    table, shift, keys, counts, samples, keeps, frees, primary, secondary, limit, state
):
    """`place` for several pages, one after the other; what became of each link (SEEN, TAKEN, LEFT or LOST), and the largest
    size of P and S together on the way.

    A link is new if its key is not in the `table` (of a `KeySet`, with space for all keys, none of which is 0); those that
    go into P are put in. Page i has counts[i] links, of which samples[i] are taken at most (0: all); keeps[i] says whether
    it may go into S, frees[i] whether it has a place of its own, counted in `primary`, that is free for them. O(links).
    """
    fates = np.zeros(len(keys), np.uint8)
    found = np.empty(0 if len(counts) == 0 else counts.max(), np.int64)
    first, largest = 0, 0
    for page in range(len(counts)):
        new = 0
        for link in range(first, first + counts[page]):
            if table[find_slot(table, keys[link], shift)] == 0:
                found[new] = link
                new += 1
        first += counts[page]
        primary -= frees[page]
        if new == 0:
            continue
        chosen, kept = place(new, samples[page], keeps[page], primary, secondary, limit, state)
        secondary += kept
        for number in range(new):
            link = found[number]
            if not chosen[number]:
                fates[link] = LEFT if kept else LOST
                continue
            slot = find_slot(table, keys[link], shift)
            if table[slot] == 0:  # else the page has it twice
                table[slot] = keys[link]
                fates[link] = TAKEN
                primary += 1
        largest = max(largest, primary + secondary)
    return fates, largest
