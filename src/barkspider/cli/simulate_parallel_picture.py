"""The picture of `barkspider simulate parallel`, with the axes of the paper's figures 4 to 11."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barkspider.cli.pictures import save

if TYPE_CHECKING:
    from barkspider.lab.simulate.parallel import Setup
    from barkspider.lab.simulate.parallel_results import Result

_PROCESSES = "number of processes n"


def draw_parallel(results: Sequence[Result], path: Path) -> None:
    """The figures for which something was varied: coverage by processes (4) and seeds (5), overlap by coverage (6),
    URLs exchanged by processes (7) and replicated URLs (8), quality and exchange by exchanges (9 to 11)."""
    covering = [result for result in results if not result.setup.pages and not result.setup.replicated]
    shut = [result for result in covering if result.setup.mode == "firewall"]
    crossing = [result for result in results if result.curve[-1][1] > 0]
    meeting = [result for result in results if result.setup.exchanges is not None]
    sending = [result for result in results if result.setup.mode == "exchange" and result not in meeting]
    judged = [result for result in results if result.setup.pages and result not in meeting]
    panels: list[Callable[[Any], None]] = []

    def add(chosen: Sequence[Result], name: str, figure: str, across: str, up: str, **scale: Any) -> None:
        if len({getattr(result.setup, name) for result in chosen}) > 1:
            panels.append(
                partial(_lines, results=chosen, name=name, figure=figure, across=across, up=up, **scale)
            )

    add(covering, "processes", "coverage", _PROCESSES, "coverage")
    add(shut, "seeds", "coverage", "seed URLs of a process", "coverage")
    if crossing:
        panels.append(partial(_overlaps, results=crossing))
    add(sending, "processes", "exchanged_per_page", _PROCESSES, "URLs exchanged per page")
    add(sending, "replicated", "exchanged_per_page", "replicated URLs k", "URLs exchanged per page", linear=1)
    add(sending, "batch", "exchanged_per_page", "batch size k (pages)", "URLs exchanged per page")
    add(meeting, "exchanges", "quality", "URL exchanges x", "quality", linear=1)
    add(meeting, "exchanges", "exchanged_per_page", "URL exchanges x", "URLs exchanged per page", linear=1)
    add(judged, "processes", "quality", _PROCESSES, "quality")
    if not panels:
        panels.append(partial(_overlaps, results=results))
    save(panels, path)


def _lines(
    axes: Any, results: Sequence[Result], name: str, figure: str, across: str, up: str, linear: float = 0
) -> None:
    """One line for each configuration that differs in more than `name`; `linear` is where 0 has a place."""
    groups: dict[Setup, list[Result]] = {}
    for result in results:
        common = replace(result.setup, **{name: getattr(results[0].setup, name)})
        groups.setdefault(common, []).append(result)
    for label, members in zip(_labels(list(groups)), groups.values(), strict=True):
        axes.errorbar(
            [getattr(result.setup, name) for result in members],
            [result.summary.mean[figure] for result in members],
            [result.summary.spread[figure] for result in members],
            marker="o",
            markersize=3,
            capsize=2,
            label=label,
        )
    axes.set_xscale("symlog", linthresh=linear) if linear else axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(bottom=0)
    _label(axes, across, up)


def _overlaps(axes: Any, results: Sequence[Result]) -> None:
    for label, result in zip(_labels([result.setup for result in results]), results, strict=True):
        axes.plot(*zip(*result.curve, strict=True), label=label)
    axes.set(xlim=(0, 1), ylim=(0, None))
    _label(axes, "coverage", "overlap")


def _labels(setups: Sequence[Setup]) -> list[str]:
    """What sets each configuration apart from the others."""
    names = [field.name for field in fields(setups[0])]
    varied = [name for name in names if len({getattr(setup, name) for setup in setups}) > 1]
    return [", ".join(_value(name, getattr(setup, name)) for name in varied) for setup in setups]


def _value(name: str, value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{name} {value:,}" if value is not None else "batches"


def _label(axes: Any, across: str, up: str) -> None:
    axes.set(xlabel=across, ylabel=up)
    axes.grid(alpha=0.3)
    lines = len(axes.get_legend_handles_labels()[1])
    if lines > 1:
        legend = axes.legend(
            frameon=False, fontsize="small" if lines < 9 else "xx-small", ncols=1 + lines // 13
        )
        legend.set_in_layout(False)  # else many lines would squeeze the panel
