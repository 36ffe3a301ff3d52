"""Webs with spam farms: a web that is made up, and farms planted into it or into any other.

Whole numbers and one random state only, so that a seed gives the same web on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numba
import numpy as np

from barkspider.core.errors import UsageError
from barkspider.frontier.sampling import next_random
from barkspider.lab.webgraph import WebGraph

nb: Any = numba
u64: Any = np.uint64
i64: Any = np.int64

_PLACES = nb.types.Array(nb.int64, 1, "C", readonly=True)
_MOST = 10**8  # of anything: with it all pages together still have numbers of 31 bits
_CHILDREN = 8  # pages that a page is the way to, within its domain
_INSIDE, _OUTSIDE = 2, 2  # further links of a page, to its own domain and to others


@dataclass(frozen=True, slots=True)
class FarmSpec:
    """A web of `domains` honest domains, of which the one at rank r has `largest` / r pages, and its farms.

    A farm is one net over `farms` domains with `farm_pages` pages in all, each of which links to `branching` new
    ones. One in `entry` pages of the web links to it.
    """

    domains: int = 300
    largest: int = 100_000
    farms: int = 10
    farm_pages: int = 2_000_000
    branching: int = 20
    entry: int = 100

    def __post_init__(self) -> None:
        for field in fields(self):
            least, value = 2 if field.name == "domains" else 1, getattr(self, field.name)
            if not least <= value <= _MOST:
                raise UsageError(f"{field.name} is {value}; give {least} to {_MOST:,}")
        if self.farm_pages < self.farms:
            raise UsageError(f"{self.farms} farms with {self.farm_pages} pages; give each one page or more")


def make_web(spec: FarmSpec, seed: int = 1) -> WebGraph:
    """An honest web: sizes of domains follow Zipf's law, and large domains are linked to more than small ones.

    Page i of a domain is linked from page (i - 1) / 8, so that all of it can be reached from its home page.
    Each page links to 2 more pages of its domain and to 2 elsewhere, every other time to the home page.

    >>> web = make_web(FarmSpec(domains=10, largest=50))
    >>> web.nodes, web.sites, web.links(0).tolist()[:9]
    (144, 10, [1, 2, 3, 4, 5, 6, 7, 8, 28])
    """
    sizes = np.maximum(1, spec.largest // np.arange(1, spec.domains + 1))
    first = np.concatenate([[0], np.cumsum(sizes)])
    indptr, indices = _link(first, np.array([seed], np.uint64))
    site = np.repeat(np.arange(spec.domains, dtype=np.int32), sizes)
    return WebGraph(indptr, indices, site)


def plant_farms(web: WebGraph, spec: FarmSpec, seed: int = 1) -> WebGraph:
    """The same web with farms behind it: their pages and sites have the highest numbers, from `web.nodes` and
    `web.sites` on. Honest pages that link to a farm do so last.

    >>> web = plant_farms(WebGraph.of([[1], [0]]), FarmSpec(farms=2, farm_pages=6, branching=2, entry=1))
    >>> web.nodes, web.site.tolist(), [web.links(page).tolist() for page in (2, 3, 4)]
    (8, [0, 0, 1, 2, 1, 2, 1, 2], [[4, 5], [6, 7], []])
    """
    state = np.array([seed], np.uint64)
    draws = np.array([int(next_random(state)) for _ in range(-(-web.nodes // spec.entry))], np.uint64)
    entries = np.unique((draws % u64(web.nodes)).astype(np.int64))
    roots = web.nodes + np.arange(len(entries)) % spec.farms
    indices = np.insert(web.indices, web.indptr[entries + 1], roots.astype(np.int32))
    degrees = np.diff(web.indptr)
    degrees[entries] += 1
    pages = np.arange(spec.farm_pages)
    children = np.arange(web.nodes + spec.farms, web.nodes + spec.farm_pages, dtype=np.int32)
    branches = np.clip(len(children) - pages * spec.branching, 0, spec.branching)
    return WebGraph(
        np.concatenate([[0], np.cumsum(np.concatenate([degrees, branches]))]),
        np.concatenate([indices, children]),
        np.concatenate([web.site, (web.sites + pages % spec.farms).astype(np.int32)]),
    )


@nb.njit(nb.int64(nb.uint64[::1], nb.int64), nogil=True, cache=True)
def _below(random, count):  # type: ignore[no-untyped-def]
    """A random number below `count`, of at most 31 bits."""
    return i64(((next_random(random) >> u64(33)) * u64(count)) >> u64(31))


@nb.njit(nb.types.Tuple((nb.int64[::1], nb.int32[::1]))(_PLACES, nb.uint64[::1]), nogil=True, cache=True)
def _link(first, random):  # type: ignore[no-untyped-def]
    domains, nodes = len(first) - 1, first[-1]
    indptr = np.zeros(nodes + 1, np.int64)
    indices = np.empty((1 + _INSIDE + _OUTSIDE) * nodes, np.int32)
    count, page = 0, 0
    for domain in range(domains):
        size = first[domain + 1] - first[domain]
        for number in range(size):
            for child in range(number * _CHILDREN + 1, min(size, (number + 1) * _CHILDREN + 1)):
                indices[count] = first[domain] + child
                count += 1
            for _ in range(_INSIDE):
                indices[count] = first[domain] + _below(random, size)
                count += 1
            for each in range(_OUTSIDE):
                # The lower of two: the first ranks come up most often.
                other = min(_below(random, domains), _below(random, domains))
                target = first[other]
                if each % 2:
                    target += _below(random, first[other + 1] - first[other])
                indices[count] = target
                count += 1
            page += 1
            indptr[page] = count
    return indptr, indices[:count].copy()
