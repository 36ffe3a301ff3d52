"""In which order to visit a web: strategies replayed, and what each costs and finds (Castillo et al.).

| strategy | pages wait in | takes of a page's new links |
| --- | --- | --- |
| bfs, dfs | a queue, a stack | all |
| sydney | P, and S for pages with links left (figure 2) | `t`; within `limit` if there is one (section 3.3) |
| random | P alone (figure 6) | `t`, the others are lost |
| directory | a queue | a `share` of those of pages in the first `levels` of directories, the others are lost (5.2) |
| backlink | a queue by the number of links seen so far, the seeds first | all |

A repetition draws seeds, and all strategies begin with the same. The pages that BFS reaches from there are full
coverage, and the measure of every queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import UsageError
from barkspider.lab.simulate.kernels import replay, replay_backlinks
from barkspider.lab.simulate.quality import MEASURES, directory_depths, scores
from barkspider.lab.simulate.repeats import Summary, choose_seeds
from barkspider.lab.webgraph import WebGraph

STRATEGIES = ("bfs", "dfs", "sydney", "random", "directory", "backlink")
POINTS = 100  # of a curve: one for each percent of the pages that can be reached
_UNLIMITED = 2**62
_NO_MARKS = np.zeros(0, np.bool_)


@dataclass(frozen=True, slots=True)
class Strategy:
    """One configuration; see the module. `limit` is a share of the pages that can be reached.

    >>> Strategy("sydney", 8, limit=0.03).label, Strategy("directory", levels=2, share=0.5).label
    ('sydney 8, ≤ 3%', 'directory 2, 50%')
    """

    name: str
    t: int = 0
    limit: float | None = None
    levels: int = 0
    share: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise UsageError(f"{self.name!r} is no strategy; there are {', '.join(STRATEGIES)}")
        if self.t < 0 or (self.name in ("sydney", "random") and self.t == 0):
            raise UsageError(f"t is {self.t}; a strategy that samples takes 1 link of a page or more")
        if self.limit is not None and not 0 < self.limit <= 1:
            raise UsageError(f"the queue limit is {self.limit:g} of the pages; give more than 0, at most 1")
        if self.name == "directory" and (self.levels < 1 or not 0.001 <= self.share <= 1):
            raise UsageError("directory takes a share of 0.001 to 1 of the links in 1 level or more")

    @property
    def label(self) -> str:
        """A name for tables and legends."""
        if self.name == "directory":
            return f"directory {self.levels}, {self.share:.0%}"
        return " ".join([self.name] + [str(self.t)] * (self.t > 0)) + (
            "" if self.limit is None else f", ≤ {self.limit * 100:g}%"
        )


@dataclass(frozen=True, slots=True)
class Replay:
    """One strategy from one set of seeds: pages by first visit, and the sizes of P and S after each."""

    order: npt.NDArray[np.int32]
    primary: npt.NDArray[np.int32]
    secondary: npt.NDArray[np.int32]
    visits: int
    revisited: int  # pages that were visited more than once
    largest: int  # of P and S together
    followed: int  # links, those of re-visits too
    dropped: int  # links left out because of the limit


@dataclass(frozen=True, slots=True)
class Result:
    """What a strategy did over all repetitions.

    `curves` are means over the repetitions, at 1%, 2%, … of the pages that can be reached, as far as all
    repetitions got: `primary` and `secondary` queue, and the share of all quality found, by each measure.
    """

    strategy: Strategy
    summary: Summary
    curves: dict[str, list[float]]

    def as_dict(self) -> dict[str, Any]:
        """For programs; figures in nine digits, so that the last bits of a sum do not show."""
        chosen = self.strategy
        named: dict[str, Any] = {"strategy": chosen.name, "t": chosen.t or None, "limit": chosen.limit}
        if chosen.name == "directory":
            named |= {"levels": chosen.levels, "share": chosen.share}
        return (
            named
            | _rounded(self.summary.mean)
            | {"spread": _rounded(self.summary.spread)}
            | {"curves": {name: [float(f"{y:.9g}") for y in curve] for name, curve in self.curves.items()}}
        )


def run(
    web: WebGraph,
    strategy: Strategy,
    seeds: npt.NDArray[np.int32],
    reach: int = 0,
    seed: int = 1,
    shallow: npt.NDArray[np.bool_] = _NO_MARKS,
) -> Replay:
    """Replay a strategy; a limit is one of `reach` pages, `seed` is for sampling, `shallow` for `directory`.

    >>> web = WebGraph.of([[1, 2, 3], [0], [], []])
    >>> found = run(web, Strategy("sydney", t=2), np.array([0], np.int32))
    >>> len(found.order), found.visits, found.revisited, found.largest
    (4, 5, 1, 3)
    """
    order, primary, secondary = (np.zeros(web.nodes, np.int32) for _ in range(3))
    if strategy.name == "backlink":
        pages, largest, followed = replay_backlinks(web.indptr, web.indices, seeds, order, primary)
        visits, again, dropped = pages, 0, 0
    else:
        pages, visits, again, largest, followed, dropped = replay(
            web.indptr,
            web.indices,
            seeds,
            strategy.name == "dfs",
            strategy.t,
            strategy.name == "sydney",
            _UNLIMITED if strategy.limit is None else max(1, int(strategy.limit * reach)),
            round(strategy.share * 1000),
            shallow,
            np.array([seed], np.uint64),
            order,
            primary,
            secondary,
        )
    return Replay(
        order[:pages], primary[:pages], secondary[:pages], visits, again, largest, followed, dropped
    )


def simulate_order(
    web: WebGraph,
    strategies: Sequence[Strategy],
    *,
    seeds: int = 100,
    repeat: int = 5,
    seed: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> list[Result]:
    """Replay each strategy `repeat` times from `seeds` pages; `progress` is called after each replay.

    >>> web = WebGraph.of([[1, 2, 3], [0], [1], [0]])
    >>> (result,) = simulate_order(web, [Strategy("sydney", t=2)], seeds=1, repeat=2)
    >>> result.summary.mean["coverage"]
    1.0
    """
    if repeat < 1:
        raise UsageError(f"{repeat} repetitions; give 1 or more")
    worth, shallow = scores(web), [shallow_pages(web, strategy) for strategy in strategies]
    figures: list[list[dict[str, float]]] = [[] for _ in strategies]
    curves: list[list[dict[str, npt.NDArray[np.float64]]]] = [[] for _ in strategies]
    for number in range(seed, seed + repeat):
        chosen = choose_seeds(web, seeds, number)
        full = run(web, Strategy("bfs"), chosen)
        totals = {name: float(worth[name][full.order].sum()) for name in MEASURES}
        for place, strategy in enumerate(strategies):
            found = run(web, strategy, chosen, len(full.order), number, shallow[place])
            quality = {
                name: np.cumsum(worth[name][found.order]) / max(totals[name], 1e-300) for name in MEASURES
            }
            figures[place].append(_figures(found, full, quality))
            curves[place].append(_curves(found, len(full.order), quality))
            progress()
    return [
        Result(strategy, Summary.of(runs), _mean_curves(drawn))
        for strategy, runs, drawn in zip(strategies, figures, curves, strict=True)
    ]


def out_degrees(web: WebGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Figure 4: the out-degrees that occur, and how many pages have each.

    >>> [column.tolist() for column in out_degrees(WebGraph.of([[1, 2], [0], []]))]
    [[0, 1, 2], [1, 1, 1]]
    """
    degrees, counts = np.unique(np.diff(web.indptr), return_counts=True)
    return degrees, counts


def share_above(web: WebGraph, t: int) -> float:
    """Figure 5: the share of pages with more than t out-links."""
    return float((np.diff(web.indptr) > t).mean())


def shallow_pages(web: WebGraph, strategy: Strategy) -> npt.NDArray[np.bool_]:
    """The pages in the first levels of directories, where `directory` samples; nothing for the others."""
    if strategy.name != "directory":
        return _NO_MARKS
    if web.urls is None:
        raise UsageError(
            "directory needs the URLs of the pages: an array `url`, or NAME.names.txt beside NAME.npz"
        )
    return directory_depths(web.urls) < strategy.levels


def _figures(found: Replay, full: Replay, quality: dict[str, npt.NDArray[np.float64]]) -> dict[str, float]:
    reach = len(full.order)
    half = -(-reach // 2)
    return {
        "coverage": len(found.order) / reach,
        "max_queue": found.largest,
        "max_queue_fraction": found.largest / reach,
        "max_queue_to_bfs": found.largest / full.largest,
        "max_secondary_fraction": int(found.secondary.max()) / reach,
        "revisits": found.revisited / reach,
        "extra_visits": (found.visits - len(found.order)) / reach,
        "link_visits": found.followed,
        "links_dropped": found.dropped,
        "reachable": reach,
        **{name: float(curve[-1]) for name, curve in quality.items()},
        **{f"{name}_at_half": float(curve[:half][-1]) for name, curve in quality.items()},
    }


def _curves(
    found: Replay, reach: int, quality: dict[str, npt.NDArray[np.float64]]
) -> dict[str, npt.NDArray[np.float64]]:
    places = -(-np.arange(1, POINTS + 1) * reach // POINTS) - 1
    places = places[places < len(found.order)]
    sizes = {"primary": found.primary[places] / reach, "secondary": found.secondary[places] / reach}
    return sizes | {name: curve[places] for name, curve in quality.items()}


def _mean_curves(drawn: Sequence[dict[str, npt.NDArray[np.float64]]]) -> dict[str, list[float]]:
    length = min(len(curves["primary"]) for curves in drawn)
    return {name: np.mean([curves[name][:length] for curves in drawn], axis=0).tolist() for name in drawn[0]}


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.9g}") for name, value in figures.items()}
