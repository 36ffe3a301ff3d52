"""A stored web divided among processes, and what a division costs (Viúva Negra, Table III, as counts).

Who owns a page is decided in `url.partition`, as in a live crawl. Where a web has no URLs, its sites and pages get
random keys instead of hashes of their names; partitions that need names are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError
from barkspider.lab.simulate.parallel_kernels import random_keys
from barkspider.lab.webgraph import WebGraph
from barkspider.url.domains import Domains
from barkspider.url.keys import KeyMaker
from barkspider.url.partition import PARTITIONS, OwnerColumn, by_address, by_hash, by_hierarchy, top_level

_PAGES = 0x5851F42D4C957F2D  # sets the random keys of pages apart from those of sites


@dataclass(frozen=True, slots=True)
class Merits:
    """What a partition means for the processes that work on it; counts a site are 1 where no site is divided."""

    crossing_links: float  # share of the links that lead to another process
    largest_part: float  # pages of the largest process, for each in an average one
    dns_lookups: float  # in the crawl, a site: each process looks up the sites that it has pages of
    connections: float  # a site: one to each server that a process has alone, else one to each of its sites
    shared_servers: float  # share of the servers that several processes ask, who would have to take turns
    robots_fetches: float  # a site: each process needs the robots.txt of the sites that it has pages of
    lookups_to_assign: float  # a site: what must be asked elsewhere before the owner of a URL is known


class Divider:
    """Divides a web among processes, in any of the ways that its names and addresses allow. One thread.

    >>> divider = Divider(WebGraph.of([[1], [0]], urls=["http://a.de/", "http://b.fr/"]))
    >>> divider.hosts, divider.owners("hierarchical", 2, seed=1).tolist()
    (['a.de', 'b.fr'], [0, 1])
    """

    def __init__(self, web: WebGraph, addresses: Mapping[str, str] | None = None) -> None:
        """`addresses` are those of hosts, as far as they are known."""
        self._web = web
        self._addresses = addresses

    @cached_property
    def hosts(self) -> list[str]:
        """The host of each site."""
        if self._web.urls is None:
            raise UsageError("this partition needs the pages' URLs, and the graph has none; take site or url")
        firsts = np.unique(self._web.site, return_index=True)[1]
        return [_host(url) for url in self._web.urls.take(firsts).to_pylist()]

    @cached_property
    def servers(self) -> npt.NDArray[np.int64]:
        """A number for the server of each site; where addresses are not known, each site has its own."""
        if self._addresses is None:
            return np.arange(self._web.sites)
        names = [self._addresses.get(host, host) for host in self.hosts]
        return np.unique(np.array(names), return_inverse=True)[1]

    def owners(self, partition: str, processes: int, seed: int) -> OwnerColumn:
        """The process that owns each page; another seed gives other hashes."""
        if partition not in PARTITIONS:
            raise UsageError(f"{partition!r} is no partition; the partitions are {', '.join(PARTITIONS)}")
        if partition == "url":
            return by_hash(self._page_keys(seed), processes)
        return self._site_owners(partition, processes, KeyMaker(seed))[self._web.site]

    def merits(self, partition: str, owners: OwnerColumn) -> Merits:
        """What a division by `partition` into `owners` costs."""
        web = self._web
        crossing = np.repeat(owners, np.diff(web.indptr)) != owners[web.indices]
        sites = _pairs(owners, web.site)
        servers = _pairs(owners, self.servers[web.site])
        by_server = partition == "address"
        asking = np.unique(servers & 0xFFFFFFFF, return_counts=True)[1]
        return Merits(
            crossing_links=float(crossing.sum()) / max(web.arcs, 1),
            largest_part=float(np.bincount(owners).max() * (int(owners.max()) + 1) / web.nodes),
            dns_lookups=0.0 if by_server else len(sites) / web.sites,
            connections=len(servers if by_server else sites) / web.sites,
            shared_servers=float((asking > 1).mean()),
            robots_fetches=len(sites) / web.sites,
            lookups_to_assign=float(by_server),
        )

    def _page_keys(self, seed: int) -> npt.NDArray[np.uint64]:
        if self._web.urls is None:
            keys: npt.NDArray[np.uint64] = random_keys(self._web.nodes, seed ^ _PAGES)
            return keys
        return KeyMaker(seed).column(url.encode() for url in self._web.urls.to_pylist())

    def _site_owners(self, partition: str, processes: int, keys: KeyMaker) -> OwnerColumn:
        if partition == "site" and self._web.urls is None:
            return by_hash(random_keys(self._web.sites, keys.seed), processes)
        host_keys = keys.column(host.encode() for host in self.hosts)
        if partition == "domain":
            pay_level = Domains().pay_level
            return by_hash(keys.column(pay_level(host).encode() for host in self.hosts), processes)
        if partition == "hierarchical":
            groups = np.unique([top_level(host) for host in self.hosts], return_inverse=True)[1]
            weights = np.bincount(groups[self._web.site])
            return by_hierarchy(groups, weights, host_keys, processes)
        if partition == "address":
            if self._addresses is None:
                raise UsageError("the address partition needs the hosts' addresses: give --addresses")
            known = [self._addresses.get(host, "") for host in self.hosts]
            address_keys = np.array([keys.of(address) if address else 0 for address in known], np.uint64)
            return by_address(address_keys, host_keys, processes)
        return by_hash(host_keys, processes)


def _host(url: str) -> str:
    """The host of a URL, or of a name without a scheme; without its port.

    >>> _host("http://A.example:8080/x"), _host("bbc.co.uk")
    ('a.example', 'bbc.co.uk')
    """
    rest = url.partition("://")[2] or url
    end = min((place for place in map(rest.find, "/?#") if place >= 0), default=len(rest))
    name, colon, port = rest[:end].lower().rpartition(":")
    return name if colon and port.isdigit() else rest[:end].lower()


def _pairs(owners: OwnerColumn, things: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Each pair of a process and a thing that it has a page of, once; the thing in the low 32 bits."""
    return np.unique(owners.astype(np.int64) << 32 | things)
