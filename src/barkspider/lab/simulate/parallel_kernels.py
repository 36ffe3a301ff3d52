"""The compiled loop of parallel crawls over a stored web, on whole numbers.

What becomes of a link, when a batch is sent and what it holds is decided in `frontier.modes`, by the kernels of
the live crawl. Numba's cache goes by the file of a kernel: when that one changes, the cached loops here must go
(a test compares them).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from barkspider.frontier.modes import DROP, HOLD, RULE, SEND, TAKE, bundle, decision, is_due
from barkspider.frontier.sampling import next_random

nb: Any = numba
i64: Any = np.int64
u64: Any = np.uint64

_PLACES = nb.types.Array(nb.int64, 1, "C", readonly=True)
_NODES = nb.types.Array(nb.int32, 1, "C", readonly=True)

# What is known of a page, in 16 bits: who owns it, that all processes have it from the beginning, that its owner (or
# whoever crawls alone) has heard of it, and that it was fetched. A link costs one look at this, which is far away.
OWNER, REPLICATED, _KNOWN, _FETCHED = (1 << 12) - 1, 1 << 12, 1 << 13, 1 << 14
_WAITING, _OWN_CAME, _OWN_WENT, _OTHERS_CAME, _OTHERS_WENT = 0, 1, 2, 3, 4
# A page's rank: own pages before others', then more backlinks, then earlier discovery.
_BACKLINK = 1 << 31
_OWN = 1 << 62
_AHEAD = 64  # links of a page that are looked at before any is followed


@nb.njit(nb.uint64[::1](nb.int64, nb.uint64), nogil=True, cache=True)
def random_keys(count, seed):  # type: ignore[no-untyped-def]
    """The first numbers of the generator with that seed: keys for things that have no name.

    >>> random_keys(2, 7)[0] == random_keys(1, 7)[0]
    np.True_
    """
    state = np.array([seed], np.uint64)
    keys = np.empty(count, np.uint64)
    for i in range(count):
        keys[i] = next_random(state)
    return keys


@nb.njit(nb.uint8(RULE, nb.uint16, nb.int64), nogil=True, cache=True)
def _decision(rule, page, me):  # type: ignore[no-untyped-def]
    return decision(rule, (page & OWNER) == me, (page & REPLICATED) != 0)


@nb.njit(nb.void(nb.int32[::1], nb.int64[::1], nb.int32[::1], nb.int64), nogil=True, cache=True)
def _rise(heap, ranks, place, at):  # type: ignore[no-untyped-def]
    """Move a page up to where its rank belongs: above four others at most, and below one of a higher rank."""
    page, rank = heap[at], ranks[at]
    while at > 0 and ranks[(at - 1) >> 2] < rank:
        above = (at - 1) >> 2
        heap[at], ranks[at] = heap[above], ranks[above]
        place[heap[at]] = at
        at = above
    heap[at], ranks[at] = page, rank
    place[page] = at


@nb.njit(nb.int32(nb.int32[::1], nb.int64[::1], nb.int32[::1], nb.int64), nogil=True, cache=True)
def _take_best(heap, ranks, place, size):  # type: ignore[no-untyped-def]
    """Take the page of the highest rank out of a heap, which has `size` pages then."""
    best, last, rank = heap[0], heap[size], ranks[size]
    at = i64(0)
    while 4 * at + 1 < size:
        child = 4 * at + 1
        for other in range(child + 1, min(child + 4, size)):
            if ranks[other] > ranks[child]:
                child = other
        if ranks[child] <= rank:
            break
        heap[at], ranks[at] = heap[child], ranks[child]
        place[heap[at]] = at
        at = child
    heap[at], ranks[at] = last, rank
    place[last] = at
    return best


@nb.njit(
    nb.void(
        nb.int32[::1], nb.int64[::1], nb.int64[::1], nb.uint16[::1], nb.int32[::1], nb.int64[::1], nb.int64,
        nb.boolean, nb.int64,
    ),
    nogil=True,
    cache=True,
)  # fmt: skip
def _hear(room, ranks, queue, about, place, known, page, is_own, links):  # type: ignore[no-untyped-def]
    """Let a process know of a page not fetched yet, or of more links to it; 0 links if backlinks do not count.

    `queue` is the process's pages that wait, and own and others' that came and went. By backlinks, `room` is a
    heap. Else it is two queues that cannot meet, since a page comes once: own from its front, others' from its end.
    """
    if not about[page] & _KNOWN:
        about[page] |= _KNOWN
        waiting = queue[_WAITING]
        queue[_WAITING] += 1
        if links:
            room[waiting], ranks[waiting] = page, (_OWN if is_own else 0) + links * _BACKLINK - known[0]
            known[0] += 1
            _rise(room, ranks, place, waiting)
        elif is_own:
            room[queue[_OWN_CAME]] = page
            queue[_OWN_CAME] += 1
        else:
            queue[_OTHERS_CAME] += 1
            room[len(room) - queue[_OTHERS_CAME]] = page
    elif links:
        ranks[place[page]] += links * _BACKLINK
        _rise(room, ranks, place, i64(place[page]))


@nb.njit(
    nb.int32(nb.int32[::1], nb.int64[::1], nb.int64[::1], nb.uint16[::1], nb.int32[::1], nb.boolean),
    nogil=True,
    cache=True,
)
def _take(room, ranks, queue, about, place, counts_backlinks):  # type: ignore[no-untyped-def]
    """Take the page that a process fetches next; there must be one."""
    queue[_WAITING] -= 1
    if counts_backlinks:
        page = _take_best(room, ranks, place, queue[_WAITING])
    elif queue[_OWN_WENT] < queue[_OWN_CAME]:
        page = room[queue[_OWN_WENT]]
        queue[_OWN_WENT] += 1
    else:
        queue[_OTHERS_WENT] += 1
        page = room[len(room) - queue[_OTHERS_WENT]]
    about[page] |= _FETCHED
    return page


@nb.njit(
    nb.uint64[::1](_PLACES, _NODES, nb.uint16[::1], RULE, nb.int64, nb.int32[::1], nb.int64, nb.int64),
    nogil=True,
    cache=True,
)
def _collected(indptr, indices, about, rule, me, before, page, count):  # type: ignore[no-untyped-def]
    """The targets of the `count` links to send of the pages in a chain, in the order they were found."""
    keys = np.empty(count, np.uint64)
    while page >= 0:
        for arc in range(indptr[page + 1] - 1, indptr[page] - 1, -1):
            target = indices[arc]
            if _decision(rule, about[target], me) == SEND:
                count -= 1
                keys[count] = u64(target)
        page = i64(before[page])
    return keys


@nb.njit(
    nb.types.UniTuple(nb.int64, 4)(
        _PLACES, _NODES, nb.uint16[::1], RULE, nb.int64, _PLACES, _PLACES, _NODES, nb.int64, _PLACES,
        nb.int64, nb.boolean, nb.int32[::1], nb.int32[::1],
    ),
    nogil=True,
    cache=True,
)  # fmt: skip
def crawl(  # type: ignore[no-untyped-def]
    indptr, indices, about, rule, first, begin, seed_ends, seeds, batch, meetings,
    limit, counts_backlinks, order, ticks,
):  # fmt: skip
    """Crawl with the processes numbered from `first` on until `limit` pages are fetched or none is left.

    In each tick each process that knows a page fetches the best one: with the most backlinks it heard of if it
    `counts_backlinks` (a seed has one to begin with), else the one that it knows longest; others' pages
    (cross-over mode) only while it has no own. Then those send whose batch of `batch` pages is due; or, if there
    are `meetings`, all send together at these numbers of pages in all, or earlier if all wait for it. What is
    sent arrives before the next tick.

    Process `first` + i has room for begin[i + 1] - begin[i] pages and starts from the `seeds` before
    seed_ends[i]. No page may come up in two processes: where the rule lets it, let one process crawl alone.
    `about` has the owners of pages, and which are replicated; what becomes known of them is added.
    order[i] is the page fetched as number i, in tick ticks[i]. Returns the pages fetched, URLs sent, times that
    some process sent any, and the tick of the first page that was another's, or -1.
    O(1) a link and a page, O(log pages) if backlinks count; 8 bytes a page beside the results, 20 then.
    """
    nodes, processes = len(indptr) - 1, len(begin) - 1
    place = np.empty(nodes if counts_backlinks else 0, np.int32)  # of a page that waits, in the heap
    rooms = np.empty(begin[processes], np.int32)
    all_ranks = np.empty(len(rooms) if counts_backlinks else 0, np.int64)
    queues = np.zeros((processes, 5), np.int64)
    known = np.zeros(1, np.int64)
    # The pages since the last batch are a chain from `latest` on; their links are read again when it is sent.
    latest = np.full(processes, -1, np.int32)
    before = np.empty(nodes, np.int32)
    pages_since = np.zeros(processes, np.int64)
    links_since = np.zeros(processes, np.int64)
    sends = np.zeros(processes, np.bool_)
    link = i64(counts_backlinks)
    whats = np.empty(_AHEAD, np.uint8)
    may_send, may_stray = rule[0, 0] == SEND, rule[0, 0] == TAKE or rule[0, 0] == HOLD
    for process in range(processes):
        room = rooms[begin[process] : begin[process + 1]]
        ranks = all_ranks[begin[process] : begin[process + 1]]
        for i in range(seed_ends[process - 1] if process else 0, seed_ends[process]):
            _hear(room, ranks, queues[process], about, place, known, i64(seeds[i]), True, link)
    fetched, sent, sendings, met, tick, strayed = i64(0), i64(0), i64(0), i64(0), i64(0), i64(-1)
    while fetched < limit:
        is_active = False
        for process in range(processes):
            queue = queues[process]
            if queue[_WAITING] == 0 or fetched == limit:
                continue
            is_active = True
            me = first + process
            room = rooms[begin[process] : begin[process + 1]]
            ranks = all_ranks[begin[process] : begin[process + 1]]
            page = _take(room, ranks, queue, about, place, counts_backlinks)
            if may_stray and strayed < 0 and (about[page] & OWNER) != me:
                strayed = tick
            order[fetched] = page
            ticks[fetched] = tick
            fetched += 1
            if may_send:
                before[page] = latest[process]
                latest[process] = page
                pages_since[process] += 1
            # Three times over some links, so that what is far apart in memory is on its way at the same time.
            for arc in range(indptr[page], indptr[page + 1], _AHEAD):
                targets = indices[arc : min(arc + _AHEAD, indptr[page + 1])]
                for i in range(len(targets)):
                    state = about[targets[i]]
                    whats[i] = _decision(rule, state, me)
                    if whats[i] == SEND:
                        links_since[process] += 1
                        whats[i] = DROP
                    elif state & (_FETCHED if counts_backlinks else _KNOWN):
                        whats[i] = DROP
                for i in range(len(targets)):
                    if whats[i] != DROP and about[targets[i]] & _KNOWN:
                        at = i64(place[targets[i]])
                        rank = ranks[at] + _BACKLINK
                        if at > 0 and rank < ranks[(at - 1) >> 2]:  # it stays where it is
                            ranks[at] = rank
                            whats[i] = DROP
                for i in range(len(targets)):
                    if whats[i] != DROP:
                        target = i64(targets[i])
                        _hear(room, ranks, queue, about, place, known, target, whats[i] == TAKE, link)
        meet = met < len(meetings) and (fetched >= meetings[met] or not is_active)
        met += meet
        for process in range(processes):  # all decide before any hears of others
            is_idle = queues[process, _WAITING] == 0
            sends[process] = meet if len(meetings) else is_due(pages_since[process], batch, is_idle)
        for process in range(processes):
            if not sends[process]:
                continue
            keys = _collected(
                indptr, indices, about, rule, first + process, before, i64(latest[process]),
                links_since[process],
            )  # fmt: skip
            counts = bundle(keys)
            sendings += len(keys) > 0
            for row in range(len(keys)):
                target = i64(keys[row])
                sent += counts[row] > 0
                if counts[row] and not about[target] & _FETCHED:
                    owner = i64(about[target] & OWNER) - first
                    room = rooms[begin[owner] : begin[owner + 1]]
                    ranks = all_ranks[begin[owner] : begin[owner + 1]]
                    links = link * i64(counts[row])
                    _hear(room, ranks, queues[owner], about, place, known, target, True, links)
            latest[process], pages_since[process], links_since[process] = -1, 0, 0
        if not is_active and not sends.any():
            break
        tick += 1
    return fetched, sent, sendings, strayed
