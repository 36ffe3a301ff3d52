"""Which of a page's new links the Sydney strategy takes now: a kernel on integers.

The live crawl and the simulation call the same function. The random state is one uint64 that the
caller owns, so the same seed gives the same choices on any machine.
"""

from __future__ import annotations

import numba as nb
import numpy as np


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
