"""Figures 4 to 11 and Table 1 of Parallel Crawlers on another web, beside what the paper's text prints of them.

The paper's web has 40 million pages, with 10 links a page, one of them to another site. What is a number of pages
or URLs there is the same share here. Five seeds a process are many more on a small web, in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from barkspider.lab.papers.comparison import Cell, Line, Picture, Table
from barkspider.lab.simulate.parallel import Crawl, Setup, Simulation, choose_seeds
from barkspider.lab.simulate.parallel_kernels import random_keys
from barkspider.lab.simulate.parallel_results import points
from barkspider.lab.webgraph import WebGraph

_PAPER = "Parallel Crawlers"
_PROCESSES = (1, 2, 4, 8, 16, 32, 64)
_EXCHANGES = (0, 1, 3, 10, 30, 99, 1000)
_ENOUGH = 0.97  # of the quality with 1,000 exchanges
_GOOD = {  # Table 1
    "firewall": (False, True, False, True),
    "cross-over": (True, False, False, True),
    "exchange": (True, True, True, False),
}

Row: TypeAlias = tuple[str, tuple[Cell | None, ...]]


def tables(web: WebGraph, repeat: int = 5) -> list[Table]:
    """All of them; each figure is the mean of `repeat` runs."""
    whole = _Means(web, repeat)
    return [
        _figure_4(whole, _Means(half_of_sites(web), repeat)),
        _figure_5(whole),
        _figure_6(whole),
        _figure_7(whole),
        _figure_8(whole),
        *(_figures_9_to_11(whole, number, share) for number, share in ((9, 1.2), (10, 5.0), (11, 20.0))),
        _table_1(whole),
    ]


def half_of_sites(web: WebGraph, seed: int = 1) -> WebGraph:
    """The pages of a random half of the sites, and the links among them (the dotted line of figure 4).

    >>> half_of_sites(WebGraph.of([[1, 2], [0], [3], [0]], site=[0, 0, 1, 1])).nodes
    2
    """
    kept = np.argsort(random_keys(web.sites, seed), kind="stable")[: (web.sites + 1) // 2]
    stays = np.isin(web.site, kept)
    number = np.cumsum(stays) - 1
    inner = np.repeat(stays, np.diff(web.indptr)) & stays[web.indices]
    ends = np.concatenate([[0], np.cumsum(inner)])[web.indptr[1:]][stays]
    site = np.unique(web.site[stays], return_inverse=True)[1]
    return WebGraph(
        np.concatenate([[0], ends]).astype(np.int64),
        number[web.indices[inner]].astype(np.int32),
        site.astype(np.int32),
    )


class _Means:
    """Runs configurations several times, for the means of their figures."""

    def __init__(self, web: WebGraph, repeat: int) -> None:
        self.web, self._repeat = web, repeat
        self._simulation = Simulation(web)

    def of(self, figure: str, setups: Sequence[Setup]) -> list[float]:
        """The mean of a property of `Crawl`."""
        return [float(np.mean([getattr(crawl, figure) for crawl in self.crawls(setup)])) for setup in setups]

    def quality(self, setups: Sequence[Setup]) -> tuple[list[float], list[float]]:
        """The mean quality, and the mean number of URLs exchanged per page."""
        qualities, sent = [], []
        for setup in setups:
            crawls = self.crawls(setup)
            backlinks = self._simulation.backlinks
            qualities.append(float(np.mean([crawl.quality(backlinks, setup.pages) for crawl in crawls])))
            sent.append(float(np.mean([crawl.exchanged_per_page for crawl in crawls])))
        return qualities, sent

    def covered(self, setup: Setup) -> float:
        """The least coverage, of what a single process reaches from the same seeds."""
        divider, shares = self._simulation.divider, []
        for seed, crawl in enumerate(self.crawls(setup), 1):
            owners = divider.owners(setup.partition, setup.processes, seed)
            seeds = choose_seeds(owners, setup.processes, setup.seeds, seed)
            shares.append(crawl.coverage / self._simulation.reachable(seeds))
        return min(shares)

    def crawls(self, setup: Setup) -> list[Crawl]:
        """All runs of one configuration."""
        return [self._simulation.run(setup, seed) for seed in range(1, self._repeat + 1)]

    def pages(self, percent: float) -> int:
        """So many percent of the pages."""
        return max(1, round(percent / 100 * self.web.nodes))


def _figure_4(whole: _Means, half: _Means) -> Table:
    setups = [Setup("firewall", processes) for processes in _PROCESSES]
    coverage = dict(zip(_PROCESSES, whole.of("coverage", setups), strict=True))
    halved = dict(zip(_PROCESSES, half.of("coverage", setups), strict=True))
    fixed = whole.of("coverage", [Setup("firewall", count, seeds=64 // count) for count in _PROCESSES])
    falls = sum(more < fewer for fewer, more in pairwise(fixed))
    printed = {1: "0.9", 4: "0.8", 16: "0.5", 64: "0.1"}
    labels = {1: "1 process", 4: "4 processes (at least)", 64: "64 processes (less than)"}
    x = tuple(map(float, _PROCESSES))
    return _table(
        "Figure 4",
        "Coverage of a firewall crawl, 5 seeds a process",
        [
            (labels.get(count, f"{count} processes"), (Cell(text, coverage[count]),))
            for count, text in printed.items()
        ]
        + [("with 64 seeds in all, of 6 doublings of processes it falls in", (Cell("6", falls),))],
        f"With 64 seeds in all: {', '.join(f'{value:.2f}' for value in fixed)} with "
        + f"{', '.join(map(str, _PROCESSES))} processes. Half of the sites with half of the processes: "
        + ", ".join(f"{halved[count // 2]:.2f} for {coverage[count]:.2f}" for count in _PROCESSES[1:])
        + ".",
        ("number of processes n", "coverage"),
        (
            Line("all sites", x, tuple(coverage.values())),
            Line("half of the sites", x, tuple(halved.values())),
            Line("all sites", tuple(map(float, printed)), tuple(map(float, printed.values())), points=True),
        ),
    )


def _figure_5(whole: _Means) -> Table:
    lines, seeds, found = [], (64, 128, 256, 512, 1024), {}
    for processes in (2, 8, 32, 64):
        setups = [Setup("firewall", processes, seeds=total // processes) for total in seeds]
        found[processes] = whole.of("coverage", setups)
        lines.append(Line(f"{processes} processes", tuple(map(float, seeds)), tuple(found[processes])))
    lines.append(Line("64 processes", (64.0, 1024.0), (0.004, 0.1), points=True))
    return _table(
        "Figure 5",
        "Coverage of a firewall crawl of 64 processes, by seeds in all",
        [
            ("64 seeds", (Cell("0.4%", found[64][0]),)),
            ("1,024 seeds", (Cell("10%", found[64][-1]),)),
        ],
        "",
        ("total number of seed URLs s", "coverage"),
        lines,
    )


def _figure_6(whole: _Means) -> Table:
    crawls = {processes: whole.crawls(Setup("cross-over", processes)) for processes in (4, 16)}
    apart = float(np.mean([crawl.coverage_without_overlap for crawl in crawls[16]]))
    covered = float(np.mean([crawl.overlap_when_covered for crawl in crawls[4]]))
    lines = []
    for processes, (first, *_) in crawls.items():
        shown = [point for point in points(first) if point[1] > 0]
        if shown:
            coverage, overlap = zip(*shown, strict=True)
            lines.append(Line(f"{processes} processes", coverage, overlap))
    lines.append(Line("4 processes", (1.0,), (2.5,), points=True))
    return _table(
        "Figure 6",
        "Coverage and overlap of a cross-over crawl",
        [
            ("16 processes: coverage until the first runs out of its pages", (Cell("0.5", apart),)),
            ("4 processes: overlap when 99% is covered", (Cell("2.5", covered),)),
        ],
        "Until the first process runs out of its own pages, the overlap is exactly 0.",
        ("coverage", "overlap"),
        lines,
    )


def _figure_7(whole: _Means) -> Table:
    counts, figure = _PROCESSES[1:], "exchanged_per_page"
    by_site = dict(zip(counts, whole.of(figure, [Setup(processes=n) for n in counts]), strict=True))
    hashed = [Setup(processes=n, partition="url") for n in counts]
    by_url = dict(zip(counts, whole.of(figure, hashed), strict=True))
    web = whole.web
    between = float((np.repeat(web.site, np.diff(web.indptr)) != web.site[web.indices]).mean())
    x = tuple(map(float, counts))
    return _table(
        "Figure 7",
        "URLs exchanged per page",
        [
            ("site-hash, 2 processes", (Cell("0.4", by_site[2]),)),
            ("site-hash, 16 processes", (Cell("0.8", by_site[16]),)),
            ("site-hash, 64 processes", (Cell("0.86", by_site[64]),)),
            ("URL-hash, 2 processes", (Cell("5", by_url[2]),)),
            ("site-hash over URL-hash, 64 processes", (Cell("10%", by_site[64] / by_url[64]),)),
            ("links that lead to another site", (Cell("10%", between),)),
            (
                "coverage of what can be reached, 64 processes",
                (Cell("1", whole.covered(Setup(processes=64))),),
            ),
        ],
        f"A page has {web.arcs / web.nodes:.1f} links here, 10 in the paper.",
        ("number of processes n", "URLs exchanged per page"),
        (
            Line("site-hash", x, tuple(by_site.values())),
            Line("URL-hash", x, tuple(by_url.values())),
            Line("site-hash", (2.0, 16.0, 64.0), (0.4, 0.8, 0.86), points=True),
            Line("URL-hash", (2.0,), (5.0,), points=True),
        ),
    )


def _figure_8(whole: _Means) -> Table:
    shares, printed = (0.025, 0.25, 0.5), ("40%", "51%", "53%")
    setups = [Setup(processes=64, replicated=whole.pages(share)) for share in shares]
    none, *some = whole.of("exchanged_per_page", [Setup(processes=64), *setups])
    return _table(
        "Figure 8",
        "URLs exchanged per page by 64 processes that have the most popular URLs replicated: less by",
        [
            (f"{share}% of the URLs", (Cell(text, 1 - sent / none),))
            for share, text, sent in zip(shares, printed, some, strict=True)
        ],
        f"{none:.2f} URLs a page without replicas, then {', '.join(f'{sent:.2f}' for sent in some)}.",
        ("replicated URLs (%)", "URLs exchanged per page"),
        (
            Line("64 processes", shares, tuple(some)),
            Line("64 processes", shares, (0.52, 0.42, 0.86 * (1 - 0.53)), points=True),
        ),
    )


def _figures_9_to_11(whole: _Means, number: int, percent: float) -> Table:
    pages, quality, sent = whole.pages(percent), {}, {}
    for processes in (2, 8, 64):
        setups = [
            Setup("exchange", processes, order="backlinks", pages=pages, exchanges=times)
            for times in _EXCHANGES
        ]
        quality[processes], sent[processes] = whole.quality(setups)
    best = quality[8][-1]
    enough = next(x for x, got in zip(_EXCHANGES, quality[8], strict=True) if got >= _ENOUGH * best)
    worse = sum(values[0] < values[-1] for values in quality.values())
    rows: list[Row] = [
        (f"exchanges for {_ENOUGH:.0%} of the quality, 8 processes (fewer than)", (Cell("100", enough),)),
        ("of 2, 8 and 64 processes, so many are worse without exchange", (Cell("3", worse),)),
    ]
    if number == 9:
        rows.append(("quality without exchange, 2 processes", (Cell("0.12", quality[2][0]),)))
        rows.append(("quality without exchange, 64 processes", (Cell("0.025", quality[64][0]),)))
    if number == 11:
        rows.append(("URLs a page in 10 exchanges, 8 processes", (Cell("0.17", sent[8][3]),)))
    shown = "; ".join(
        f"{processes} processes " + ", ".join(f"{value:.3f}" for value in values)
        for processes, values in quality.items()
    )
    x = tuple(map(float, _EXCHANGES[1:]))
    return _table(
        f"Figure {number}",
        f"Quality when {percent:g}% is downloaded in order of backlinks",
        rows,
        f"Quality with {', '.join(map(str, _EXCHANGES))} exchanges: {shown}.",
        ("number of URL exchanges x", "quality"),
        [Line(f"{processes} processes", x, tuple(values[1:])) for processes, values in quality.items()],
    )


def _table_1(whole: _Means) -> Table:
    pages = whole.pages(5)
    judged, _ = whole.quality([Setup(mode, 8, order="backlinks", pages=pages) for mode in _GOOD])
    crawls = {mode: whole.crawls(Setup(mode, 8)) for mode in _GOOD}
    widest = max(crawl.coverage for some in crawls.values() for crawl in some)
    rows: list[Row] = []
    for (mode, printed), quality in zip(_GOOD.items(), judged, strict=True):
        ours = (
            min(crawl.coverage for crawl in crawls[mode]) >= _ENOUGH * widest,
            all(crawl.overlap == 0 for crawl in crawls[mode]),
            quality >= _ENOUGH * max(judged),
            all(crawl.sent == 0 for crawl in crawls[mode]),
        )
        agreeing = sum(one == other for one, other in zip(ours, printed, strict=True))
        rows.append((f"{mode}: of 4 merits, so many as printed", (Cell("4", agreeing),)))
    return _table(
        "Table 1",
        "Coverage, overlap, quality, communication: good or bad",
        rows,
        "8 processes. Good is a coverage within 3% of the best mode, no overlap, a quality (5% downloaded) within 3% of "
        "the best, and no URL sent.",
    )


def _table(
    name: str,
    title: str,
    rows: Sequence[Row],
    note: str,
    axes: tuple[str, str] = ("", ""),
    lines: Sequence[Line] = (),
) -> Table:
    picture = Picture(f"{_PAPER}, {name}", *axes, tuple(lines)) if lines else None
    return Table(_PAPER, name, title, ("value",), tuple(rows), note, picture)
