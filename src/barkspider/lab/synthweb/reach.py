"""Breadth-first search over the web in integers: what a perfect crawl would find. And its links, for graphs."""

from __future__ import annotations

import numpy as np

from barkspider.lab.synthweb.kernels import int64, kernel, types, uint64
from barkspider.lab.synthweb.model import (
    MAX_LINKS,
    TABLES,
    Int32s,
    Int64s,
    Tables,
    body_links,
    footer_links,
    host_of,
    is_allowed,
    page_links,
)

_SPREAD = uint64(0x9E3779B97F4A7C15)
_S20 = uint64(20)
_NOT_FETCHED = -2
"""In the table of pages: found, but closed by robots.txt."""
# A page's links, with room for a template of its own size beside the tail that MAX_LINKS cuts.
LINK_SPACE = 2 * MAX_LINKS


@kernel(types.int64[::1](types.int64))
def _free(size: int) -> Int64s:
    # Loops here and below: numpy's own functions take seconds to compile.
    keys = np.empty(size, np.int64)
    for slot in range(size):
        keys[slot] = -1
    return keys


@kernel(types.int64[::1](types.int64[::1]))
def _longer(numbers: Int64s) -> Int64s:
    longer = np.empty(2 * numbers.size, np.int64)
    for k in range(numbers.size):
        longer[k] = numbers[k]
    return longer


@kernel(types.int64(types.int64[::1], types.int64))
def _slot(keys: Int64s, page: int) -> int:
    # Where `page` is in a table whose size is a power of two, or the free place for it. Free is -1.
    mask = int64(keys.size - 1)
    slot: int = int64((uint64(page) * _SPREAD) >> _S20) & mask
    while keys[slot] != -1 and keys[slot] != page:
        slot = (slot + 1) & mask
    return slot


@kernel(types.Tuple((types.int64[::1], types.int64[::1]))(types.int64[::1], types.int64[::1]))
def _doubled(keys: Int64s, values: Int64s) -> tuple[Int64s, Int64s]:
    more_keys = _free(2 * keys.size)
    more_values = np.empty(2 * keys.size, np.int64)
    for old in range(keys.size):
        if keys[old] != -1:
            new = _slot(more_keys, keys[old])
            more_keys[new] = keys[old]
            more_values[new] = values[old]
    return more_keys, more_values


@kernel(
    types.Tuple((types.int64[::1], types.int64[::1], types.int64[::1]))(
        TABLES, types.int64[::1], types.int64, types.int64, types.boolean
    )
)
def explore(
    t: Tables, seeds: Int64s, clicks: int, limit: int, obey_robots: bool
) -> tuple[Int64s, Int64s, Int64s]:
    """The pages that a crawl fetches, in order, and a table from page to place in that order.

    At most `clicks` links from a seed (below 0: any number), at most `limit` pages. Pages that robots.txt
    closes are not fetched, so their links are not followed. Linear in the links of the pages fetched.
    """
    keys = _free(1 << 16)
    values = np.empty(1 << 16, np.int64)
    order = np.empty(1 << 15, np.int64)
    links = np.empty(LINK_SPACE, np.int64)
    found = fetched = used = 0
    level_end = depth = 0
    while True:
        if used == 0 and found == 0:
            source, count = seeds, seeds.size
        else:
            if fetched == level_end:
                if fetched == found or depth == clicks:
                    break
                level_end = found
                depth += 1
            source, count = links, page_links(t, order[fetched], links)
            fetched += 1
        for k in range(count):
            page = source[k]
            slot = _slot(keys, page)
            if keys[slot] != -1:
                continue
            if found == limit:
                break
            keys[slot] = page
            values[slot] = _NOT_FETCHED
            used += 1
            if not obey_robots or is_allowed(t, page):
                if found == order.size:
                    order = _longer(order)
                order[found] = page
                values[slot] = found
                found += 1
            if 2 * used > keys.size:
                keys, values = _doubled(keys, values)
        if found == limit or used == 0:
            break
    return order[:found], keys, values


@kernel(
    types.UniTuple(types.int64, 2)(
        TABLES, types.int64[::1], types.int64[::1], types.int64[::1], types.int64, types.int64[::1],
        types.int32[::1], types.int32[::1],
    )
)  # fmt: skip
def inner_links(
    t: Tables, order: Int64s, keys: Int64s, values: Int64s, first: int, indptr: Int64s, last: Int32s, out: Int32s
) -> tuple[int, int]:  # fmt: skip
    """Links among the pages of `order`, as places in it, from page `first` on until `out` is full.

    Each target once a page and none to itself. Fills `indptr` and gives the next page and the number of
    links written. `last` remembers by which page a target was last linked.
    """
    links = np.empty(LINK_SPACE, np.int64)
    written = 0
    node = first
    while node < order.size and written + LINK_SPACE <= out.size:
        for k in range(page_links(t, order[node], links)):
            slot = _slot(keys, links[k])
            if keys[slot] == -1 or values[slot] < 0:
                continue
            target = values[slot]
            if target != node and last[target] != node:
                last[target] = node
                out[written] = target
                written += 1
        node += 1
        indptr[node] = indptr[first] + written
    return node, written


@kernel(
    types.UniTuple(types.int64, 2)(TABLES, types.int64, types.int64[::1], types.int64[::1], types.int64[::1])
)
def domain_links(t: Tables, first: int, last: Int64s, sources: Int64s, targets: Int64s) -> tuple[int, int]:
    """Links between regular domains that their pages have, from domain `first` on until `targets` is full.

    Each target once a domain and none to itself. Gives the next domain and the number of links written.
    `last` remembers by which domain a target was last linked.
    """
    links = np.empty(LINK_SPACE, np.int64)
    written = 0
    domain = first
    while domain < t.domains and written + t.domains <= targets.size:
        begin, end = t.start[t.first_host[domain]], t.start[t.first_host[domain + 1]]
        for host in range(t.first_host[domain], t.first_host[domain + 1]):
            # Navigation stays on the host, and the footer is the same on all its pages.
            count = footer_links(t, host, links)
            for page in range(t.start[host], t.start[host + 1]):
                count += body_links(t, page, host, links[count:])
                for k in range(count):
                    if begin <= links[k] < end:
                        continue
                    target = t.domain_of[host_of(t, links[k])]
                    if last[target] != domain:
                        last[target] = domain
                        sources[written] = domain
                        targets[written] = target
                        written += 1
                count = 0
        domain += 1
    return domain, written
