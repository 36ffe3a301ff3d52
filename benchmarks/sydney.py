"""The Sydney strategy live beside its simulation: coverage within a queue limit, and the largest queue without one.

Samples of cnr-2000 (where the file is there) and of a synthetic web are served on loopback and crawled from the seeds of the
simulation: one request at a time without pauses, which has to agree with it, and politely, with a hundredth of the default
pauses, which is shown beside. Quick: 1,500 pages of the synthetic web.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from barkspider.cli.papers_live import ALONE, POLITE, Trial, trial
from barkspider.lab.simulate.order import Strategy
from barkspider.lab.synthweb import Web, WebSpec, write_graph
from barkspider.lab.webgraph import WebGraph, load_web

_CNR = Path(__file__).parents[2] / "shared" / "data" / "graphs" / "cnr-2000.npz"
_MOST = 20_000
_APART = 3.0  # points between a live and a simulated coverage
_SAVED = 0.9  # the largest queue with t = 8 against that of breadth-first, where the simulation says 0.87


def run(quick: bool) -> dict[str, Any]:
    """See the module."""
    figures: dict[str, Any] = {}
    targets: list[dict[str, Any]] = []
    webs = {"synthetic": (_synthetic(1_500 if quick else 10_000), 1)}
    if not quick and _CNR.is_file():
        webs["cnr"] = (load_web(_CNR).first(_MOST), 100)
    for name, (web, seeds) in webs.items():
        with trial(web, seeds) as tried:
            figures[f"{name}_pages"] = tried.reach
            apart = _limited(name, tried, figures, quick)
            targets.append(_target(f"{name}: points from the simulation, at most", apart, _APART))
            if name == "synthetic":
                covered, saved = _unlimited(name, tried, figures)
                targets.append(_target("pages missed without a limit", tried.reach - covered, 0))
                targets.append(
                    _target("largest queue at t = 8, of breadth-first's", None if quick else saved, _SAVED)
                )
    return {"figures": figures, "targets": targets}


def _limited(name: str, tried: Trial, figures: dict[str, Any], quick: bool) -> float:
    """Coverage within limits, in percent; how far a live crawl without pauses is from the simulation at most."""
    apart = 0.0
    for t in (8, 16):
        for limit in (0.05,) if quick else (0.02, 0.05, 0.1):
            strategy = Strategy("sydney", t, limit)
            simulated = 100 * len(tried.simulate(strategy).order) / tried.reach
            live = 100 * tried.crawl(strategy, ALONE).pages / tried.reach
            label = f"{name}_t{t}_{limit:.0%}"
            figures |= {f"{label}_simulated": round(simulated, 1), f"{label}_live": round(live, 1)}
            if not quick:
                polite = 100 * tried.crawl(strategy, POLITE).pages / tried.reach
                figures[f"{label}_polite"] = round(polite, 1)
            apart = max(apart, abs(live - simulated))
    return round(apart, 2)


def _unlimited(name: str, tried: Trial, figures: dict[str, Any]) -> tuple[int, float]:
    """Without a limit: pages fetched, and the largest queue at t = 8 against that of breadth-first."""
    all_links, eight = Strategy("bfs"), Strategy("sydney", 8)
    whole, sampled = tried.crawl(all_links, ALONE), tried.crawl(eight, ALONE)
    figures[f"{name}_queue_simulated"] = round(tried.simulate(eight).largest / tried.full.largest, 3)
    figures[f"{name}_queue_live"] = round(sampled.largest / whole.largest, 3)
    polite = tried.crawl(eight, POLITE).largest / tried.crawl(all_links, POLITE).largest
    figures[f"{name}_queue_polite"] = round(polite, 3)
    return min(whole.pages, sampled.pages), round(sampled.largest / whole.largest, 3)


def _synthetic(pages: int) -> WebGraph:
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder, "web.npz")
        write_graph(Web(WebSpec(pages=pages)), graph, graph.with_suffix(".names.txt"))
        return load_web(graph)


def _target(name: str, value: float | None, target: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "target": target,
        "holds": None if value is None else value <= target,
    }
