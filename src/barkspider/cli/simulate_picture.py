"""The pictures of `barkspider simulate order` and `budget`, with the axes of the papers' figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barkspider.cli.pictures import save

if TYPE_CHECKING:
    from barkspider.lab.simulate import budget, order
    from barkspider.lab.webgraph import WebGraph

_VISITED = "fraction of pages visited"
_QUEUE = "queue size, fraction of pages"
_QUALITY = {"pagerank": "PageRank", "in_degree": "in-degree", "home_pages": "home pages"}


def draw_order(web: WebGraph, results: Sequence[order.Result], path: Path) -> None:
    """Queues over time (figures 1, 3, 6, 7 and 8), out-degrees (4), quality (9) of Castillo et al."""
    free = [result for result in results if result.strategy.limit is None]
    limited = [result for result in results if result.strategy.limit is not None]
    sampled = [result for result in free if result.strategy.name == "sydney"]
    random = [result for result in free if result.strategy.name == "random"]
    others = [result for result in free if result.strategy.name != "random"]
    panels: list[Callable[[Any], None]] = [partial(_queues, results=others, title="Queue size")]
    if random:
        panels.append(partial(_queues, results=random, title="P alone, the other links lost"))
    if sampled:
        panels.append(partial(_both_queues, result=min(sampled, key=lambda result: result.strategy.t)))
    for t in sorted({result.strategy.t for result in limited})[:2]:
        chosen = [result for result in limited if result.strategy.t == t]
        panels.append(partial(_queues, results=chosen, title=f"Queue limits, t = {t}"))
    panels.append(partial(_out_degrees, web=web))
    for measure, name in _QUALITY.items():
        panels.append(partial(_quality, results=others, measure=measure, name=name))
    save(panels, path)


def draw_budget(results: Sequence[budget.Result], path: Path) -> None:
    """The share of farms over the crawl, and λ of both ways with budgets beside Theorems 4 and 5."""
    save([partial(_farms, results=results), partial(_speeds, results=results)], path)


def _steps(curve: Sequence[float]) -> list[float]:
    from barkspider.lab.simulate.order import POINTS

    return [number / POINTS for number in range(1, len(curve) + 1)]


def _queues(axes: Any, results: Sequence[order.Result], title: str) -> None:
    for result in results:
        curves = result.curves
        both = [p + s for p, s in zip(curves["primary"], curves["secondary"], strict=True)]
        axes.plot(_steps(both), both, label=result.strategy.label)
    axes.set(xlim=(0, 1), ylim=(0, None))
    _label(axes, _VISITED, _QUEUE, title)


def _both_queues(axes: Any, result: order.Result) -> None:
    for name, label in (("primary", "P"), ("secondary", "S")):
        axes.plot(_steps(result.curves[name]), result.curves[name], label=label)
    axes.set(xlim=(0, 1), ylim=(0, None))
    _label(axes, _VISITED, _QUEUE, f"Both queues, {result.strategy.label}")


def _out_degrees(axes: Any, web: WebGraph) -> None:
    from barkspider.lab.simulate.order import out_degrees

    degrees, counts = out_degrees(web)
    axes.plot(degrees, counts / web.nodes, ".", markersize=3)
    axes.set(xscale="log", yscale="log")
    _label(axes, "out-degree", "fraction of pages", "Out-degrees")


def _quality(axes: Any, results: Sequence[order.Result], measure: str, name: str) -> None:
    for result in results:
        axes.plot(_steps(result.curves[measure]), result.curves[measure], label=result.strategy.label)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    _label(axes, _VISITED, f"cumulative {name}", f"Cumulative {name}")


def _farms(axes: Any, results: Sequence[budget.Result]) -> None:
    for result in results:
        axes.plot(result.curves["pages"], result.curves["farm_share"], label=result.method)
    axes.set(ylim=(0, 1))
    _label(axes, "pages crawled", "share of them in farms", "Spam")


def _speeds(axes: Any, results: Sequence[budget.Result]) -> None:
    for result in results:
        if "lambda" in result.curves:
            (line,) = axes.plot(
                result.curves["rescan_pages"], result.curves["lambda"], "o", label=result.method
            )
            axes.plot(
                result.curves["rescan_pages"],
                result.curves["lambda_theorem"],
                color=line.get_color(),
                label=f"{result.method}, by its theorem",
            )
    axes.set(xscale="log", yscale="log")
    _label(axes, "pages crawled", "λ, bytes a page", "Disk traffic between re-scans")


def _label(axes: Any, x: str, y: str, title: str) -> None:
    axes.set(xlabel=x, ylabel=y, title=title)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=7)
