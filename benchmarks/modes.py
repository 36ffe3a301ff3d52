"""Whether processes that divide a crawl do what the simulation of the same web says, in every mode and partition.

A finite synthetic web as a stored graph, served on loopback and crawled live by several processes, beside the simulation with
the same keys and seeds: coverage and overlap of cross-over and independent crawls, URLs exchanged with domains, sites and URLs as
what is kept together, what replicas of the 0.1% most linked URLs save, on a web of which these are 19, and the quality of a crawl in
order of backlinks by the number of exchanges (Parallel Crawlers, figures 6 to 9): the mean over four webs, since in a small one it
depends on which of many pages with as few links comes first, by some points either way.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from barkspider.cli.papers_live_parallel import parallel_trial
from barkspider.lab.simulate.parallel import Setup
from barkspider.lab.synthweb import Web, WebSpec, write_graph
from barkspider.lab.webgraph import WebGraph, load_web

_NEAR = 0.1  # how far a figure may be from the simulated one
_BATCH = 20
_SLOW = 0.02  # seconds that a page takes where URLs are sent, which takes a quarter of a second
_SLOWER = 0.05  # where it counts which pages are fetched before they arrive
_EXCHANGES = (0, 1, 10, 100)
_SEED, _SEEDS = 4, (4, 5, 6, 7)  # of webs
_REPLICATED = 20_000  # pages of the web of which 0.1% are replicated


def run(quick: bool) -> dict[str, Any]:
    """Quick: a smaller web by two processes, no replicas and no quality."""
    pages, processes = (600, 2) if quick else (4_000, 4)
    figures: dict[str, Any] = {}
    targets = []
    web = _web(pages)
    with parallel_trial(web) as tried:
        for mode in ("cross-over", "independent"):
            setup = Setup(mode, processes)
            simulated, live = tried.simulate(setup), tried.crawl(setup)
            targets.append(_target(f"{mode}: coverage", live.coverage, simulated.coverage, exactly=True))
            targets.append(_target(f"{mode}: overlap", live.overlap, simulated.overlap))
    with parallel_trial(web, _SLOW) as tried:
        for partition in ("domain", "site", "url"):
            setup = Setup("exchange", processes, partition, batch=_BATCH)
            simulated, live = tried.simulate(setup), tried.crawl(setup)
            name = f"{partition}: URLs exchanged a page"
            targets.append(_target(name, live.exchanged_per_page, simulated.exchanged_per_page))
            targets.append(_target(f"{partition}: overlap", live.overlap, 0.0, exactly=True))
    name = "replicas: share of URLs not sent"
    targets.append(_target(name, *((None, 0.0) if quick else _replicated(processes))))
    qualities = {} if quick else _mean_qualities(pages)
    figures["quality by exchanges: simulated, live"] = qualities
    rising = [live for _, live in qualities.values()][1:]
    best = rising[-1] / qualities["alone"][1] if rising else None
    targets += [
        {
            "name": "quality rises with 0, 1, 10, 100 exchanges",
            "value": rising or None,
            "target": "rising",
            "holds": rising == sorted(rising) if rising else None,
        },
        {
            "name": "quality with 100 exchanges, of that of one process",
            "value": best,
            "target": 0.95,
            "holds": None if best is None else best >= 0.95,
        },
    ]
    return {"figures": figures, "targets": targets}


def _web(pages: int, seed: int = _SEED) -> WebGraph:
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "web.npz"
        write_graph(Web(WebSpec(seed=seed, pages=pages)), graph, Path(folder) / "web.names.txt", seeds=20)
        return load_web(graph)


def _replicated(processes: int) -> tuple[float, float]:
    """What replicas of the 0.1% most linked URLs save: live, as batches have it, and simulated."""
    with parallel_trial(_web(_REPLICATED), _SLOW) as tried:
        plain = Setup("exchange", processes, batch=_BATCH)
        some = Setup("exchange", processes, batch=_BATCH, replicated=tried.web.nodes // 1_000)
        gauges = tried.run(some).gauges
        live = gauges["not_sent"] / (gauges["sent"] + gauges["not_sent"])
        return live, 1 - tried.simulate(some).sent / tried.simulate(plain).sent


def _mean_qualities(pages: int) -> dict[str, tuple[float, float]]:
    """By exchanges: simulated and live, each the mean over all webs."""
    found = [_qualities(_web(pages, seed)) for seed in _SEEDS]
    means = {name: np.mean([each[name] for each in found], axis=0).round(4).tolist() for name in found[0]}
    return {name: (simulated, live) for name, (simulated, live) in means.items()}


def _qualities(web: WebGraph) -> dict[str, tuple[float, float]]:
    pages, found = web.nodes // 10, {}
    setups = {"alone": Setup("exchange", 1, order="backlinks", pages=pages, seeds=20)}
    for exchanges in _EXCHANGES:
        setups[str(exchanges)] = Setup("exchange", 4, order="backlinks", pages=pages, exchanges=exchanges)
    with parallel_trial(web, _SLOWER) as tried:
        links = tried.simulation.backlinks
        for name, setup in setups.items():
            simulated, live = tried.simulate(setup), tried.crawl(setup)
            found[name] = simulated.quality(links, pages), live.quality(links, pages)
    return found


def _target(name: str, value: float | None, simulated: float, exactly: bool = False) -> dict[str, Any]:
    near = 0.0 if exactly else _NEAR * simulated
    return {
        "name": f"{name}, as simulated",
        "value": None if value is None else round(value, 4),
        "target": round(simulated, 4),
        "holds": None if value is None else abs(value - simulated) <= near + 1e-9,
    }
