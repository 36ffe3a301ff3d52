"""What budgets cost and what they keep out: BEAST, the naive queues and BFS crawl a web with spam farms.

Pages are taken from the queues some at a time; their links that were never seen get the budgets of their
domains and go back into the queues:

    queues ─ take ─► pages ─ links ─► seen? ─► in-degrees of domains ─► budgets ─ put ─► queues

BEAST is the live crawl's (`frontier.budget.beast`), files and all, as are placing, edges of domains and budget functions;
the naive way places with the same kernel. Links of pages come from a graph, so time does not matter.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import WIDTH, UrlBatch
from barkspider.core.errors import UsageError
from barkspider.core.settings import Budget
from barkspider.core.texts import Texts
from barkspider.frontier.budget.beast import Beast
from barkspider.frontier.budget.star import edge_keys
from barkspider.lab.simulate.queues import Naive, Plain, Queues
from barkspider.lab.simulate.repeats import Summary
from barkspider.lab.webgraph import WebGraph
from barkspider.model.budgets import Budgets, Distribution
from barkspider.model.irlbot import beast_speed, naive_speed, over_budget
from barkspider.storage.env import Env
from barkspider.storage.keyset import KeySet

_QUEUES: dict[str, Callable[[Path, Budget], Queues]] = {
    "bfs": lambda folder, _: Plain(Env(), folder),
    "naive": lambda folder, _: Naive(Env(), folder),
    "beast": lambda folder, settings: Beast(Env(), folder, settings),
}
METHODS = tuple(_QUEUES)
ROW = 110  # bytes: b of the paper; a head, a length of 4 bytes, and the URL
_URL = ROW - WIDTH - 4
_AT_A_TIME = 1000  # pages between two looks at in-degrees
_MODELS = {"naive": naive_speed, "beast": beast_speed}


@dataclass(frozen=True, slots=True)
class Crawled:
    """One crawl: figures of all of it, and curves.

    `curves` has `pages` with `farm_share`, the share of those in farms, and from re-scan to re-scan `rescan_pages`
    with λ of the time since the one before and by the theorem. λ is in bytes a page: S is one page a second.
    """

    figures: dict[str, float]
    curves: dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Result:
    """What a method did over all repetitions; the curves are those of the first."""

    method: str
    summary: Summary
    curves: dict[str, list[float]]

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        means, spread = (
            {name: float(f"{value:.9g}") for name, value in part.items()}
            for part in (self.summary.mean, self.summary.spread)
        )
        return {"strategy": self.method} | means | {"spread": spread, "curves": self.curves}


def crawl(
    web: WebGraph, honest: int, method: str, seeds: npt.NDArray[np.int32], pages: int, settings: Budget
) -> Crawled:
    """Crawl so many pages, or all; nodes from `honest` on are of farms.

    The last λ and that of equation (8) or (10), with the N, L, V and E[B] of that moment, are among the figures.

    >>> web = WebGraph.of([[1, 2], [0], [0]], site=[0, 0, 1])
    >>> found = crawl(web, 2, "bfs", np.array([0], np.int32), 10, Budget()).figures
    >>> found["pages"], round(found["farm_share"], 3), found["disk_bytes_per_page"]
    (3, 0.333, 220.0)
    """
    with tempfile.TemporaryDirectory(prefix="barkspider-simulate-") as folder:
        queues = _queues(method, Path(folder), settings)
        try:
            return _Crawl(web, honest, queues, settings).run(method, seeds, pages)
        finally:
            queues.close()


def simulate_budget(
    webs: Callable[[int], tuple[WebGraph, int, npt.NDArray[np.int32]]],
    *,
    methods: tuple[str, ...] = METHODS,
    pages: int = 100_000,
    repeat: int = 3,
    seed: int = 1,
    settings: Budget | None = None,
    progress: Callable[[], None] = lambda: None,
) -> list[Result]:
    """Let each method crawl `repeat` webs: `webs(seed)` gives a web, its first node of a farm, and seeds."""
    if repeat < 1 or pages < 1:
        raise UsageError(f"{repeat} repetitions of {pages} pages; give 1 or more of both")
    runs: dict[str, list[Crawled]] = {method: [] for method in methods}
    for number in range(seed, seed + repeat):
        web, honest, seeds = webs(number)
        for method in methods:
            runs[method].append(crawl(web, honest, method, seeds, pages, settings or Budget()))
            progress()
    return [
        Result(method, Summary.of([run.figures for run in found]), found[0].curves)
        for method, found in runs.items()
    ]


class _Mark(NamedTuple):
    """How things stand at a re-scan: N, the bytes moved so far, the URLs found (L times N), V, and E[B]."""

    pages: int
    moved: int
    found: int
    domains: int
    budget: float


class _Crawl:
    """One crawl; it keeps a mark for each re-scan."""

    def __init__(self, web: WebGraph, honest: int, queues: Queues, settings: Budget) -> None:
        self._web, self._honest, self._queues = web, honest, queues
        self._budgets = Budgets(settings)
        self._seen, self._edges = np.zeros(web.nodes, np.bool_), KeySet()
        self._degrees = np.zeros(web.sites, np.int64)
        self._known = np.zeros(web.sites, np.bool_)  # domains of which a URL was found
        self._pages = self._farmed = 0
        self._marks = [_Mark(0, 0, 0, 0, 0.0)]

    def run(self, method: str, seeds: npt.NDArray[np.int32], pages: int) -> Crawled:
        """Crawl; see `crawl`."""
        curves: dict[str, list[float]] = {"pages": [], "farm_share": []}
        self._find(seeds)
        while self._pages < pages and self._step(min(_AT_A_TIME, pages - self._pages)):
            if self._pages:
                curves["pages"].append(self._pages)
                curves["farm_share"].append(self._farmed / self._pages)
        end = self._mark()
        figures = {
            "pages": end.pages,
            "farm_share": self._farmed / end.pages,
            "disk_bytes": end.moved,
            "disk_bytes_per_page": end.moved / end.pages,
            "unique_per_page": end.found / end.pages,
            "domains": end.domains,
            "expected_budget": end.budget,
            "rescans": self._queues.moved.rescans,
        }
        if method in _MODELS and len(self._marks) > 2:
            costs = self._costs(method)
            curves |= costs
            figures |= {
                "alpha": _excess(self._marks[-1]),
                "pages_per_pass": self._marks[-1].pages - self._marks[-2].pages,
                "lambda": costs["lambda"][-1],
                "lambda_theorem": costs["lambda_theorem"][-1],
            }
        return Crawled(figures, curves)

    def _costs(self, method: str) -> dict[str, list[float]]:
        spans = list(pairwise(self._marks))[1:]
        model = _MODELS[method]
        return {
            "rescan_pages": [end.pages for _, end in spans],
            "lambda": [(end.moved - begin.moved) / (end.pages - begin.pages) for begin, end in spans],
            "lambda_theorem": [model(1, ROW, end.found / end.pages, _excess(end)) for _, end in spans],
        }

    def _mark(self) -> _Mark:
        moved = self._queues.moved
        found, domains = int(self._seen.sum()), int(self._known.sum())
        budget = self._budgets.expected(self._distribution())
        return _Mark(self._pages, moved.read + moved.written, found, domains, budget)

    def _step(self, most: int) -> bool:
        """Crawl a few pages, and split again what failed; False when there is nothing left."""
        mark, rescans = self._mark(), self._queues.moved.rescans
        taken = self._queues.take(most)
        if self._queues.moved.rescans > rescans and mark.pages > self._marks[-1].pages:
            self._marks.append(mark)
        again = 0
        for failed in self._queues.rescanned():
            again += len(failed)
            self._put(failed)
        if len(taken):
            self._follow(taken.key.astype(np.int64))
        return len(taken) > 0 or again > 0

    def _follow(self, nodes: npt.NDArray[np.int64]) -> None:
        web = self._web
        self._pages += len(nodes)
        self._farmed += int((nodes >= self._honest).sum())
        begin, counts = web.indptr[nodes], web.indptr[nodes + 1] - web.indptr[nodes]
        starts = np.cumsum(counts) - counts
        targets = web.indices[np.arange(counts.sum()) + np.repeat(begin - starts, counts)]
        sources, ends = np.repeat(web.site[nodes], counts), web.site[targets]
        apart = sources != ends
        keys = edge_keys(sources[apart].astype(np.uint64), ends[apart].astype(np.uint64))
        np.add.at(self._degrees, ends[apart][self._edges.add(keys)], 1)
        self._find(targets)

    def _find(self, nodes: npt.NDArray[np.int32]) -> None:
        """Queue the pages that are new, in the order in which they were found."""
        nodes = nodes[~self._seen[nodes]]
        nodes = nodes[np.sort(np.unique(nodes, return_index=True)[1])]
        self._seen[nodes] = True
        self._known[self._web.site[nodes]] = True
        self._put(_batch(nodes, self._web.site[nodes]))

    def _put(self, batch: UrlBatch) -> None:
        # Key 0 stands for no domain in the table of left-over budgets.
        degrees = self._degrees[batch.pld_key.astype(np.int64) - 1]
        self._queues.put(batch, self._budgets(degrees, self._distribution()))

    def _distribution(self) -> Distribution:
        return Distribution.of([self._degrees[self._degrees > 0]])


def _excess(mark: _Mark) -> float:
    return over_budget(mark.pages, mark.budget, mark.domains)


def _queues(method: str, folder: Path, settings: Budget) -> Queues:
    if method not in _QUEUES:
        raise UsageError(f"{method!r} is no way to queue URLs; there are {', '.join(METHODS)}")
    return _QUEUES[method](folder, settings)


def _batch(nodes: npt.NDArray[np.int32], sites: npt.NDArray[np.int32]) -> UrlBatch:
    count = len(nodes)
    domains = sites.astype(np.uint64) + np.uint64(1)
    urls = Texts(np.arange(count + 1) * _URL, np.full(_URL * count, ord("u"), np.uint8))
    return UrlBatch.of(urls, key=nodes, host_key=domains, pld_key=domains)
