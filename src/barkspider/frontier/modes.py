"""What a process does with a link that another process owns: kernels on arrays.

The modes of Parallel Crawlers (sections 2 and 3), each a rule that turns "who owns the target, and is it
replicated" into one of four decisions:

| mode | own URL | another's URL | another's URL, replicated |
| --- | --- | --- | --- |
| independent | take | take | take |
| firewall | take | drop | drop |
| cross-over | take | hold back until own URLs run out | the same |
| exchange | take | send to its owner | drop: its owner has it from the beginning |

In exchange mode a process sends what it collected in a batch, after k pages, or earlier when it has nothing left
to fetch: otherwise two processes could wait for each other's last links for ever (`is_due`). Equal URLs of a batch
are sent once, with the number of links that they stand for (`bundle`), by which the owner can count backlinks. No
process remembers what it sent before (section 3.1).

The live crawl (`exchange`) and simulations (`lab.simulate`) go by the same rules and call the same kernels.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError

nb: Any = numba
u8: Any = np.uint8

TAKE, HOLD, SEND, DROP = 0, 1, 2, 3
RULE = nb.types.Array(nb.uint8, 2, "C", readonly=True)

# By mode: [another's, another's and replicated], [own, own and replicated].
_RULES = {
    "independent": ((TAKE, TAKE), (TAKE, TAKE)),
    "firewall": ((DROP, DROP), (TAKE, TAKE)),
    "cross-over": ((HOLD, HOLD), (TAKE, TAKE)),
    "exchange": ((SEND, DROP), (TAKE, TAKE)),
}
MODES = tuple(_RULES)


def rule(mode: str) -> npt.NDArray[np.uint8]:
    """The rule of a mode, for the kernels.

    >>> rule("firewall").tolist() == [[DROP, DROP], [TAKE, TAKE]]
    True
    """
    if mode not in _RULES:
        raise UsageError(f"{mode!r} is no mode; the modes are {', '.join(MODES)}")
    return np.array(_RULES[mode], np.uint8)


@nb.njit(nb.uint8(RULE, nb.boolean, nb.boolean), nogil=True, cache=True)
def decision(rule, is_own, is_replicated):  # type: ignore[no-untyped-def]
    """What to do with one link.

    >>> decision(rule("exchange"), False, True) == DROP
    True
    """
    return rule[1 if is_own else 0, 1 if is_replicated else 0]


def decide(
    rule: npt.NDArray[np.uint8],
    process: int,
    owners: npt.NDArray[np.uint16],
    replicated: npt.NDArray[np.bool_],
) -> npt.NDArray[np.uint8]:
    """What `process` does with each link, given who owns its target and whether that is replicated.

    >>> owners, replicated = np.array([3, 5, 5], np.uint16), np.array([False, False, True])
    >>> decide(rule("exchange"), 3, owners, replicated).tolist() == [TAKE, SEND, DROP]
    True
    """
    found: npt.NDArray[np.uint8] = rule[(owners == process).astype(np.int64), replicated.astype(np.int64)]
    return found


@nb.njit(nb.boolean(nb.int64, nb.int64, nb.boolean), nogil=True, cache=True)
def is_due(pages, batch, is_idle):  # type: ignore[no-untyped-def]
    """Whether to send now, `pages` pages after the last time, in batches of `batch` pages.

    >>> is_due(9, 10, False), is_due(10, 10, False), is_due(9, 10, True), is_due(0, 10, True)
    (False, True, True, False)
    """
    return pages >= batch or (is_idle and pages > 0)


@nb.njit(nb.uint32[::1](nb.types.Array(nb.uint64, 1, "C", readonly=True)), nogil=True, cache=True)
def bundle(keys):  # type: ignore[no-untyped-def]
    """How many links each row of a batch stands for: all with its key in the first row that has it, 0 in others.

    Rows with a number are sent, with that number. O(n log n).

    >>> bundle(np.array([8, 5, 8, 8], np.uint64)).tolist()
    [3, 1, 0, 0]
    """
    counts = np.zeros(len(keys), np.uint32)
    order = np.argsort(keys, kind="mergesort")  # stable: of equal keys the first row comes first
    first = 0
    for place in range(len(order)):
        if keys[order[place]] != keys[order[first]]:
            first = place
        counts[order[first]] += 1
    return counts
