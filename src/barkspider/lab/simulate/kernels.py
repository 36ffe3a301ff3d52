"""The compiled loops of replays: one visit of a page at a time, on whole numbers.

What becomes of a page's new links is decided by `frontier.sampling.place`, the kernel of the live crawl.
Numba's cache goes by the file of a kernel: when that one changes, the cached loops here must go.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from barkspider.frontier.sampling import place

nb: Any = numba
i64: Any = np.int64

_PLACES = nb.types.Array(nb.int64, 1, "C", readonly=True)
_NODES = nb.types.Array(nb.int32, 1, "C", readonly=True)
_MARKS = nb.types.Array(nb.boolean, 1, "C", readonly=True)

# What a page is: in N+(v) if it is new and v links to it; a candidate only while v is looked at.
_NEW, _CANDIDATE, _QUEUED, _VISITED, _AGAIN = 0, 1, 2, 3, 4


@nb.njit(
    nb.types.UniTuple(nb.int64, 6)(
        _PLACES, _NODES, _NODES, nb.boolean, nb.int64, nb.boolean, nb.int64, nb.int64, _MARKS,
        nb.uint64[::1], nb.int32[::1], nb.int32[::1], nb.int32[::1],
    ),
    nogil=True,
    cache=True,
)  # fmt: skip
def replay(  # type: ignore[no-untyped-def]
    indptr, indices, seeds, newest_first, t, keeps, limit, share, shallow, random, order, primary, secondary
):
    """Visit pages from `seeds` on, by figure 2 of Castillo et al.; the other strategies leave parts of it out.

    P is a queue, or a stack if `newest_first`. Of a page's new links at most `t` go into P, all with t = 0, and the page
    itself into S if it `keeps` one: `place` says which and whether. With a `share` in thousandths, of pages that are
    `shallow` that share of the new links goes into P instead, of the others all. P and S hold `limit` pages (section 3.3):
    what is left out is still new. When P is empty S becomes P: all its pages are visited again, before what they give.

    order[i] is the page that was visited as number i for the first time, primary[i] and secondary[i] are
    the sizes of P and S after it. Returns the pages visited, all visits, pages visited more than once, the
    largest size of P and S together, links followed, and links left out.
    O(1) a link, 17 bytes a page.
    """
    nodes = len(indptr) - 1
    kind = np.zeros(nodes, np.uint8)
    queue, first, queued = np.empty(nodes, np.int32), 0, 0  # P: a ring, since a page is in it once at most
    stored, oldest, storing = np.empty(nodes if keeps else 0, np.int32), 0, 0  # S: another
    emptying = 0  # pages of S that belong to P since that was empty
    found = np.empty(nodes, np.int32)
    pages, visits, again, largest, followed, dropped = 0, 0, 0, 0, 0, 0
    for seed in seeds:
        if kind[seed] == _NEW:
            kind[seed] = _QUEUED
            queue[queued] = seed
            queued += 1
    largest = queued
    while queued or storing:
        if queued == 0 and emptying == 0:
            emptying = storing
        is_first = emptying == 0
        if not is_first:
            page = stored[oldest]
            oldest = oldest + 1 if oldest + 1 < nodes else 0
            storing -= 1
            emptying -= 1
            again += kind[page] == _VISITED
            kind[page] = _AGAIN
        else:
            queued -= 1
            if newest_first:
                spot = first + queued
                page = queue[spot if spot < nodes else spot - nodes]
            else:
                page = queue[first]
                first = first + 1 if first + 1 < nodes else 0
            kind[page] = _VISITED
        visits += 1
        count = 0
        followed += indptr[page + 1] - indptr[page]
        for arc in range(indptr[page], indptr[page + 1]):
            target = indices[arc]
            if kind[target] == _NEW:
                kind[target] = _CANDIDATE
                found[count] = target
                count += 1
        if count:
            most = t
            if share:
                most = (count * share + 999) // 1000 if shallow[page] else 0
            chosen, kept = place(count, most, keeps, queued + emptying, storing - emptying, limit, random)
            if kept:
                spot = oldest + storing
                stored[spot if spot < nodes else spot - nodes] = page
                storing += 1
            for i in range(count):
                target = found[i]
                if chosen[i]:
                    kind[target] = _QUEUED
                    spot = first + queued
                    queue[spot if spot < nodes else spot - nodes] = target
                    queued += 1
                else:
                    kind[target] = _NEW
                    dropped += not kept
        largest = max(largest, queued + storing)
        if is_first:
            order[pages] = page
            primary[pages] = queued
            secondary[pages] = storing
            pages += 1
    return pages, visits, again, largest, followed, dropped


# A page in a list: the page after it and before it, and how many links to it were seen. One row, so that to move
# it touches memory in one place.
_AFTER, _BEFORE, _LINKS = 0, 1, 2
_ENDS, _ROWS = nb.int32[:, ::1], nb.int32[:, ::1]


@nb.njit(nb.void(_ENDS, _ROWS, nb.int64), nogil=True, cache=True)
def _append(ends, rows, page):  # type: ignore[no-untyped-def]
    """Put a page at the end of the list of its number of links."""
    number = rows[page, _LINKS]
    last = ends[number, 1]
    rows[page, _AFTER], rows[page, _BEFORE] = -1, last
    if last < 0:
        ends[number, 0] = page
    else:
        rows[last, _AFTER] = page
    ends[number, 1] = page


@nb.njit(nb.void(_ENDS, _ROWS, nb.int64), nogil=True, cache=True)
def _unlink(ends, rows, page):  # type: ignore[no-untyped-def]
    """Take a page out of its list."""
    number, after, before = rows[page, _LINKS], rows[page, _AFTER], rows[page, _BEFORE]
    if before < 0:
        ends[number, 0] = after
    else:
        rows[before, _AFTER] = after
    if after < 0:
        ends[number, 1] = before
    else:
        rows[after, _BEFORE] = before


@nb.njit(
    nb.types.UniTuple(nb.int64, 3)(_PLACES, _NODES, _NODES, nb.int32[::1], nb.int32[::1]),
    nogil=True,
    cache=True,
)
def replay_backlinks(indptr, indices, seeds, order, primary):  # type: ignore[no-untyped-def]
    """Visit the seeds, then always the page to which the most pages visited so far link; of equal ones the first
    that got there.

    Pages with equally many links are a list, and the highest list that is not empty moves up by one at most
    for each link: O(1) a link, in all, and 13 bytes a page. Returns the pages visited, the largest queue, and
    links followed.
    """
    rows = np.zeros((len(indptr) - 1, 3), np.int32)
    kind = np.zeros(len(indptr) - 1, np.uint8)
    ends = np.full((64, 2), -1, np.int32)  # the first and the last page of each list
    pages, queued, followed, highest, begun = 0, 0, 0, 0, 0
    for seed in seeds:
        if kind[seed] == _NEW:
            kind[seed] = _QUEUED
            _append(ends, rows, seed)
            queued += 1
    largest = queued
    while queued:
        if begun < len(seeds):
            page = seeds[begun]
            begun += 1
            if kind[page] == _VISITED:
                continue
        else:
            while ends[highest, 0] < 0:
                highest -= 1
            page = ends[highest, 0]
        _unlink(ends, rows, page)
        queued -= 1
        kind[page] = _VISITED
        followed += indptr[page + 1] - indptr[page]
        for arc in range(indptr[page], indptr[page + 1]):
            target = indices[arc]
            if kind[target] == _VISITED:
                continue
            if kind[target] == _QUEUED:
                _unlink(ends, rows, target)
            else:
                kind[target] = _QUEUED
                queued += 1
            rows[target, _LINKS] += 1
            highest = max(highest, i64(rows[target, _LINKS]))
            if highest == len(ends):
                more = np.full((2 * len(ends), 2), -1, np.int32)
                more[: len(ends)] = ends
                ends = more
            _append(ends, rows, target)
        largest = max(largest, queued)
        order[pages] = page
        primary[pages] = queued
        pages += 1
    return pages, largest, followed
