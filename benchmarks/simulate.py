"""Link visits per CPU-second of replays, by strategy and by mode of eight processes, beside a breadth-first search of
igraph on the same web.

The web is made up: 3 million links when quick, else 100 million, the largest that a simulation must hold. A
link is visited when its page is, re-visits too. Each strategy begins with the same 100 pages, each process with five.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np

from barkspider.lab.simulate.farms import FarmSpec, make_web
from barkspider.lab.simulate.order import Strategy
from barkspider.lab.simulate.order import run as replay
from barkspider.lab.simulate.parallel import Setup, Simulation
from barkspider.lab.simulate.repeats import choose_seeds
from barkspider.lab.webgraph import WebGraph

_TARGET = 5_000_000
_STRATEGIES = {
    "bfs": Strategy("bfs"),
    "dfs": Strategy("dfs"),
    "sydney_8": Strategy("sydney", 8),
    "sydney_8_limit_3": Strategy("sydney", 8, limit=0.03),
    "random_8": Strategy("random", 8),
    "backlink": Strategy("backlink"),
}
_SETUPS = {
    "parallel_firewall": Setup("firewall", 8),
    "parallel_exchange": Setup("exchange", 8, batch=1000),
    "parallel_exchange_backlinks": Setup("exchange", 8, batch=1000, order="backlinks"),
}
_UNIT = "link_visits_per_cpu_second"


def run(quick: bool) -> dict[str, Any]:
    """See the module."""
    web = make_web(FarmSpec() if quick else FarmSpec(domains=1000, largest=2_700_000))
    seeds = choose_seeds(web, 100, 1)
    figures: dict[str, Any] = {"pages": web.nodes, "links": web.arcs}
    for name, strategy in _STRATEGIES.items():
        cpu = time.process_time()
        found = replay(web, strategy, seeds, reach=web.nodes)
        figures[f"{name}_{_UNIT}"] = round(found.followed / (time.process_time() - cpu))
    simulation, degrees = Simulation(web), np.diff(web.indptr)
    for name, setup in _SETUPS.items():
        cpu = time.process_time()
        followed = int(degrees @ simulation.run(setup, seed=1).times)
        figures[f"{name}_{_UNIT}"] = round(followed / (time.process_time() - cpu))
    figures["peak_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    slowest = min(value for name, value in figures.items() if name.endswith(_UNIT))
    # igraph copies the graph, at some 40 bytes a link.
    figures[f"igraph_bfs_{_UNIT}"] = _igraph(web, int(seeds[0])) if quick else None
    targets = [
        {
            "name": "link visits per CPU-second, the slowest",
            "value": slowest,
            "target": _TARGET,
            "holds": slowest >= _TARGET,
        }
    ]
    return {"figures": figures, "targets": targets}


def _igraph(web: WebGraph, start: int) -> int | None:
    try:
        import igraph
    except ImportError:
        return None
    sources = np.repeat(np.arange(web.nodes, dtype=np.int32), np.diff(web.indptr))
    graph = igraph.Graph(n=web.nodes, edges=np.stack([sources, web.indices], axis=1), directed=True)
    cpu = time.process_time()
    order, _, _ = graph.bfs(start, mode="out")
    seconds = time.process_time() - cpu
    return round(int(np.diff(web.indptr)[order].sum()) / seconds)
