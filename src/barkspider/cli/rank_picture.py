"""The picture of `barkspider rank --compare`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barkspider.cli.pictures import save

if TYPE_CHECKING:
    from barkspider.cli.rank_compare import Comparison

_WINDOW = 100  # ranks that a point of a moving average stands for


def draw(found: Comparison, path: Path) -> None:
    """Spam among the top r (figure 1(a)), errors by rank (3(b)), and scores from elsewhere (1(b), 2)."""
    panels = [_errors]
    if found.spam:
        panels.insert(0, _spam)
    if found.outside:
        panels += [_average, _zero, _none]
    if found.spam_by_score:
        panels.append(_spam_by_score)
    save([partial(panel, found=found) for panel in panels], path)


def _spam(axes: Any, found: Comparison) -> None:
    for method, counts in found.spam.items():
        axes.plot(range(1, len(counts) + 1), counts, label=method)
    _label(axes, "rank r", "spam among the first r")


def _errors(axes: Any, found: Comparison) -> None:
    from barkspider.graph.compare import moving_average

    for method, errors in found.errors.items():
        axes.plot(range(1, len(errors) + 1), 100 * moving_average(errors, _WINDOW), label=method)
    axes.set_yscale("symlog", linthresh=0.01)
    _label(axes, "rank by exact supporters", "relative error (%)")


def _average(axes: Any, found: Comparison) -> None:
    from barkspider.graph.compare import moving_average

    for method, scores in found.outside.items():
        axes.plot(range(1, len(scores) + 1), moving_average(scores, len(scores)), label=method)
    _label(axes, "rank r", "mean score of the first r")


def _zero(axes: Any, found: Comparison) -> None:
    for method, scores in found.outside.items():
        axes.plot(range(1, len(scores) + 1), (scores == 0).cumsum(), label=method)
    _label(axes, "rank r", "score 0 among the first r")


def _none(axes: Any, found: Comparison) -> None:
    for method, scores in found.outside.items():
        axes.plot(range(1, len(scores) + 1), (scores != scores).cumsum(), label=method)
    _label(axes, "rank r", "without a score among the first r")


def _spam_by_score(axes: Any, found: Comparison) -> None:
    shares = found.spam_by_score
    axes.bar(list(shares), [100 * share for share in shares.values()])
    axes.set_xlabel("score from elsewhere")
    axes.set_ylabel("spam (%)")


def _label(axes: Any, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.legend(fontsize="small")
