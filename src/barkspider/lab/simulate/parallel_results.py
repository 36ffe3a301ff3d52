"""Configurations of a parallel crawl, repeated and summed up, for tables, JSON and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from barkspider.lab.simulate.parallel import Crawl, Setup, Simulation, choose_seeds
from barkspider.lab.simulate.repeats import Summary
from barkspider.lab.webgraph import WebGraph

_STEPS = 50  # coverages at which a curve has a point

Curve: TypeAlias = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One configuration: means and deviations of its figures, and points (coverage, overlap) of its first run."""

    setup: Setup
    summary: Summary
    curve: Curve

    def as_dict(self) -> dict[str, Any]:
        """For programs; figures in nine digits, so that the last bits of a sum do not show."""
        mean, spread = _rounded(self.summary.mean), _rounded(self.summary.spread)
        curve = [list(_rounded(dict(enumerate(point))).values()) for point in self.curve]
        return asdict(self.setup) | mean | {"spread": spread, "curve": curve}


def simulate_parallel(
    web: WebGraph,
    setups: Sequence[Setup],
    *,
    repeat: int = 1,
    seed: int = 1,
    addresses: Mapping[str, str] | None = None,
    progress: Callable[[], None] = lambda: None,
) -> list[Result]:
    """Run each configuration `repeat` times, with other hashes and seeds each time; `progress` after each run.

    >>> web = WebGraph.of([[1], [0, 2], [3], [2]], site=[0, 0, 1, 1])
    >>> (result,) = simulate_parallel(web, [Setup("firewall", processes=2, seeds=1)])
    >>> result.summary.mean["overlap"], result.summary.mean["exchanged_per_page"]
    (0.0, 0.0)
    """
    simulation = Simulation(web, addresses)
    runs = [_run_all(simulation, setups, number, progress) for number in range(seed, seed + repeat)]
    results = []
    for setup, *found in zip(setups, *runs, strict=True):
        figures, curves = zip(*found, strict=True)
        results.append(Result(setup, Summary.of(figures), curves[0]))
    return results


def _run_all(
    simulation: Simulation, setups: Sequence[Setup], seed: int, progress: Callable[[], None]
) -> list[tuple[dict[str, float], Curve]]:
    """The figures and the curve of each configuration; what some have in common is computed once."""
    divider, found = simulation.divider, []
    owners_of = cache(lambda partition, processes: divider.owners(partition, processes, seed))
    merits_of = cache(
        lambda partition, processes: asdict(divider.merits(partition, owners_of(partition, processes)))
    )
    seeds_of = cache(
        lambda partition, processes, seeds: choose_seeds(
            owners_of(partition, processes), processes, seeds, seed
        )
    )
    reachable = cache(lambda *division: simulation.reachable(seeds_of(*division)))
    for setup in setups:
        division = setup.partition, setup.processes
        crawl = simulation.crawl(setup, owners_of(*division), seeds_of(*division, setup.seeds))
        figures = _figures(crawl) | merits_of(*division)
        if setup.pages:
            figures["quality"] = crawl.quality(simulation.backlinks, min(setup.pages, simulation.web.nodes))
        else:
            figures["reachable"] = reachable(*division, setup.seeds)
        found.append((figures, points(crawl)))
        progress()
    return found


def _figures(crawl: Crawl) -> dict[str, float]:
    return {
        "downloaded": crawl.pages,
        "coverage": crawl.coverage,
        "overlap": crawl.overlap,
        "overlap_when_covered": crawl.overlap_when_covered,
        "exchanged_per_page": crawl.exchanged_per_page,
        "sendings": crawl.sendings,
        "coverage_without_overlap": crawl.coverage_without_overlap,
    }


def points(crawl: Crawl) -> Curve:
    """Some points (coverage, overlap), evenly spread over the coverage."""
    coverage, overlap = crawl.curve()
    places = np.searchsorted(coverage, np.linspace(0, coverage[-1], _STEPS + 1))
    return tuple((float(coverage[place]), float(overlap[place])) for place in np.unique(places))


def _rounded(figures: Mapping[Any, float]) -> dict[Any, float]:
    return {name: float(f"{value:.9g}") for name, value in figures.items()}
