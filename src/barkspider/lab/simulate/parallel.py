"""Parallel crawls over a stored web: Parallel Crawlers (WWW 2002), sections 3 to 9.

    web ─► divider (who owns which page) ─► seeds a process ─► crawl, tick by tick ─► metrics of section 4

Processes in firewall and exchange mode never have the same page, so one run of the kernel has them all. In
independent and cross-over mode they may, but then none hears of any other: each crawls alone, and what they did in
the same tick is added up. So memory does not grow with the number of processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError
from barkspider.frontier.modes import MODES, rule
from barkspider.lab.simulate.parallel_kernels import OWNER, REPLICATED, crawl, random_keys
from barkspider.lab.simulate.partitions import Divider
from barkspider.lab.webgraph import WebGraph
from barkspider.url.partition import SLOTS, OwnerColumn

ORDERS = ("breadth", "backlinks")
_NEVER = np.iinfo(np.int32).max
_TOGETHER = ("firewall", "exchange")
_SEEDS = 0x2545F4914F6CDD1D  # sets the random numbers of seeds apart from those of keys

Seeds: TypeAlias = Sequence[npt.NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class Setup:
    """One configuration of a parallel crawl."""

    mode: str = "exchange"
    processes: int = 1
    partition: str = "site"
    seeds: int = 5  # a process
    order: str = "breadth"  # or backlinks: the page with the most links that the process heard of
    pages: int = 0  # to fetch in all, 0 for no limit
    batch: int = 1  # exchange mode: pages of a process between two times that it sends
    exchanges: int | None = None  # exchange mode, instead of a batch: how often all send in the whole crawl
    replicated: int = 0  # exchange mode: most popular URLs that all processes have from the beginning

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"{self.mode!r} is no mode; the modes are {', '.join(MODES)}")
        if self.order not in ORDERS:
            raise UsageError(f"{self.order!r} is no order; the orders are {', '.join(ORDERS)}")
        if not 1 <= self.processes <= SLOTS:
            raise UsageError(f"{self.processes} processes cannot share the web; give 1 to {SLOTS}")
        if min(self.seeds, self.batch) < 1 or min(self.pages, self.replicated, self.exchanges or 0) < 0:
            raise UsageError("seeds and batch are 1 or more; pages, exchanges and replicated URLs 0 or more")
        if self.mode != "exchange" and (self.batch, self.exchanges, self.replicated) != (1, None, 0):
            raise UsageError(
                f"nothing is sent in {self.mode} mode; batches and replicas are for exchange mode"
            )
        if self.exchanges is not None and not self.pages:
            raise UsageError("a number of exchanges is for a crawl of a known number of pages: give it too")


@dataclass(frozen=True)
class Crawl:
    """What a parallel crawl did. Its properties are the metrics of section 4."""

    times: npt.NDArray[np.int32]  # how often each page was fetched
    first: npt.NDArray[np.int32]  # the tick in which each page was fetched first
    by_tick: npt.NDArray[np.int64]  # pages fetched in each tick, repeated ones too
    sent: int  # URLs that went from one process to another
    sendings: int  # times that some process sent any
    strayed: int  # the tick in which the first process fetched a page of another's, or -1

    @property
    def pages(self) -> int:
        """N: pages fetched, repeated ones too."""
        return int(self.by_tick.sum())

    @property
    def coverage(self) -> float:
        """I / U: different pages fetched, of all."""
        return float((self.times > 0).mean())

    @property
    def overlap(self) -> float:
        """(N - I) / I: fetched again for each different page."""
        return self.pages / max(int((self.times > 0).sum()), 1) - 1

    @property
    def exchanged_per_page(self) -> float:
        """URLs sent for each page fetched."""
        return self.sent / max(self.pages, 1)

    def quality(self, backlinks: npt.NDArray[np.int64], wanted: int) -> float:
        """|A ∩ P| / |P|, P being the `wanted` pages with the most backlinks.

        Which of several pages with as many backlinks as the last one are in P is left to chance: this is the
        mean over all choices.
        """
        least = np.partition(backlinks, -wanted)[-wanted]
        above, level = backlinks > least, backlinks == least
        got = self.times > 0
        chance = (wanted - int(above.sum())) / int(level.sum())
        return float((got & above).sum() + chance * (got & level).sum()) / wanted

    def curve(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Coverage and overlap at the end of each tick (figure 6)."""
        found = np.cumsum(np.bincount(self.first[self.times > 0], minlength=len(self.by_tick)))
        return found / len(self.times), np.cumsum(self.by_tick) / np.maximum(found, 1) - 1

    @property
    def overlap_when_covered(self) -> float:
        """The overlap at which 99% of the coverage was reached: each of the last pages costs many others again."""
        coverage, overlap = self.curve()
        return float(overlap[np.searchsorted(coverage, 0.99 * coverage[-1])])

    @property
    def coverage_without_overlap(self) -> float:
        """How much was covered before the first process fetched a page of another's."""
        return float((self.first < (_NEVER if self.strayed < 0 else self.strayed)).mean())


class Simulation:
    """Runs configurations over one web. One thread.

    >>> web = WebGraph.of([[1], [0, 2], [3], [2]], site=[0, 0, 1, 1])
    >>> crawl = Simulation(web).run(Setup("exchange", processes=2, seeds=1), seed=1)
    >>> crawl.coverage, crawl.overlap
    (1.0, 0.0)
    """

    def __init__(self, web: WebGraph, addresses: Mapping[str, str] | None = None) -> None:
        """`addresses` of hosts, as far as they are known."""
        self.web = web
        self.divider = Divider(web, addresses)
        self.backlinks: npt.NDArray[np.int64] = np.bincount(web.indices, minlength=web.nodes)

    def run(self, setup: Setup, seed: int) -> Crawl:
        """One crawl; `seed` gives the hashes of the partition and the seeds of the crawl."""
        owners = self.divider.owners(setup.partition, setup.processes, seed)
        return self.crawl(setup, owners, choose_seeds(owners, setup.processes, setup.seeds, seed))

    def reachable(self, seeds: Seeds) -> float:
        """The coverage of a single process that starts from the seeds of all."""
        alone = np.zeros(self.web.nodes, np.uint16)
        return self.crawl(Setup("firewall"), alone, [np.concatenate(seeds)]).coverage

    def crawl(self, setup: Setup, owners: OwnerColumn, seeds: Seeds) -> Crawl:
        """One crawl with the pages' owners and the seeds of each process given."""
        limit = min(setup.pages or self.web.nodes, self.web.nodes)
        if setup.replicated:
            popular = np.argsort(-self.backlinks, kind="stable")[: setup.replicated].astype(np.int32)
            # Nobody sends them, so those who own them must know them from the beginning (section 3.1).
            mine = (popular[owners[popular] == process] for process in range(setup.processes))
            seeds = [np.union1d(*pair) for pair in zip(seeds, mine, strict=True)]
            owners = owners.copy()
            owners[popular] |= REPLICATED
        if setup.mode in _TOGETHER:
            found = _Sum(self.web.nodes)
            order, ticks, sent, sendings, _ = self._call(setup, owners, seeds, 0, limit)
            found.add(order, ticks)
            return found.crawl(sent, sendings, -1)
        return self._one_by_one(setup, owners, seeds, limit)

    def _one_by_one(self, setup: Setup, owners: OwnerColumn, seeds: Seeds, limit: int) -> Crawl:
        """Each process alone, up to the last tick until which all together fetch no more than the limit."""
        if setup.pages:
            active = np.zeros(limit, np.int64)  # processes that have a page to fetch, by tick
            for process in range(setup.processes):
                active[: len(self._call(setup, owners, seeds, process, limit)[0])] += 1
            limit = int(np.searchsorted(np.cumsum(active), limit, "right"))
        found, strays = _Sum(self.web.nodes), []
        for process in range(setup.processes):
            order, ticks, _, _, strayed = self._call(setup, owners, seeds, process, limit)
            found.add(order, ticks)
            if strayed >= 0:
                strays.append(strayed)
        return found.crawl(0, 0, min(strays, default=-1))

    def _call(
        self,
        setup: Setup,
        owners: OwnerColumn,
        seeds: Seeds,
        process: int,
        limit: int,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int, int, int]:
        """All processes, or one where each crawls alone: pages in order, their ticks, and the kernel's counts."""
        if setup.mode in _TOGETHER:
            rooms = np.bincount(owners & OWNER, minlength=setup.processes)
        else:
            rooms, seeds = np.array([self.web.nodes]), [seeds[process]]
        exchanges = setup.exchanges or 0
        order, ticks = np.empty(limit, np.int32), np.empty(limit, np.int32)
        fetched, *counts = crawl(
            self.web.indptr,
            self.web.indices,
            owners.copy(),
            rule("firewall" if setup.exchanges == 0 else setup.mode),
            process,
            np.concatenate([[0], np.cumsum(rooms)]),
            np.cumsum([len(some) for some in seeds]),
            np.concatenate(seeds),
            setup.batch,
            np.arange(1, exchanges + 1) * limit // (exchanges + 1),
            limit,
            setup.order == "backlinks",
            order,
            ticks,
        )
        return order[:fetched], ticks[:fetched], *counts


class _Sum:
    """What processes fetched, added up."""

    def __init__(self, nodes: int) -> None:
        self._times = np.zeros(nodes, np.int32)
        self._first = np.full(nodes, _NEVER, np.int32)
        self._by_tick = np.zeros(0, np.int64)

    def add(self, order: npt.NDArray[np.int32], ticks: npt.NDArray[np.int32]) -> None:
        self._times[order] += 1
        self._first[order] = np.minimum(self._first[order], ticks)
        more = np.bincount(ticks)
        longer, shorter = sorted((self._by_tick, more), key=len, reverse=True)
        longer[: len(shorter)] += shorter
        self._by_tick = longer

    def crawl(self, sent: int, sendings: int, strayed: int) -> Crawl:
        return Crawl(self._times, self._first, self._by_tick, sent, sendings, strayed)


def choose_seeds(owners: OwnerColumn, processes: int, count: int, seed: int) -> Seeds:
    """`count` random pages of each process's own, or all if it has fewer; more of them include fewer of them.

    >>> [len(some) for some in choose_seeds(np.array([0, 1, 0, 0], np.uint16), 2, 2, seed=1)]
    [2, 1]
    """
    # The pages by process and, within each, by random number; no two of these numbers are the same.
    order = np.argsort(random_keys(len(owners), seed ^ _SEEDS)).astype(np.int32)
    order = order[np.argsort(owners[order], kind="stable")]
    ends = np.cumsum(np.bincount(owners, minlength=processes))
    return [part[:count] for part in np.split(order, ends[:-1])]
