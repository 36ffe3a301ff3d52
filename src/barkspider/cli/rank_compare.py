"""`barkspider rank --compare`: Tables I and II and figures 1 to 3 of the paper for any graph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barkspider.cli.terminal import say_json, screen
from barkspider.core.errors import UsageError

if TYPE_CHECKING:
    from barkspider.graph.rank import Choice, Result
    from barkspider.graph.store import Graph

_SIDE_BY_SIDE = 15  # rows of Table I
_ESTIMATES = ("qvs", "bv", "tse")


@dataclass(slots=True)
class Comparison:
    """Everything that the tables and the picture show, by method."""

    results: dict[str, Result] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    errors: dict[str, Any] = field(default_factory=dict)
    spam: dict[str, Any] = field(default_factory=dict)
    outside: dict[str, Any] = field(default_factory=dict)
    spam_by_score: dict[str, float] = field(default_factory=dict)


def read_spam(path: Path | None) -> frozenset[str]:
    """Names, one a line; lines that begin with # are comments."""
    names = frozenset(line for line in ([] if path is None else _lines(path)) if not line.startswith("#"))
    if path is not None and not names:
        raise UsageError(f"{path} has no names: give one a line")
    return names


def read_scores(path: Path | None) -> dict[str, float]:
    """Lines of a name and a number, separated by blanks, a tab or a comma."""
    scores = {}
    for line in [] if path is None else _lines(path):
        name, _, number = line.replace(",", " ").replace("\t", " ").partition(" ")
        try:
            scores[name] = float(number)
        except ValueError:
            raise UsageError(f"{path}: {line[:40]!r} is not a name and a number") from None
    return scores


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def compare(
    graph: Graph,
    choice: Choice,
    spam: frozenset[str],
    outside: dict[str, float],
    picture: Path | None,
    as_json: bool,
) -> None:
    """Run all methods and print, or draw, what they found."""
    if spam and not any(graph.name(node) in spam for node in range(graph.nodes)):
        raise UsageError(
            "no name of the spam list is in the graph: give the names that the graph has, one a line"
        )
    found = _run_all(graph, choice, spam, outside)
    if picture is not None:
        from barkspider.cli import rank_picture

        rank_picture.draw(found, picture)
    if as_json:
        say_json(_as_dict(graph, found))
    else:
        _print(found, spam)


def _run_all(graph: Graph, choice: Choice, spam: frozenset[str], outside: dict[str, float]) -> Comparison:
    from barkspider.graph import compare as measures
    from barkspider.graph.methods import top_nodes
    from barkspider.graph.rank import METHODS, rank

    found, scores = Comparison(), {}
    for method in METHODS:
        blocks: list[Any] = []
        chosen = replace(choice, method=method, whole=False)
        result = rank(graph, chosen, lambda _, part: blocks.append(part))  # noqa: B023
        (scores[method],) = blocks
        found.results[method] = result
        found.names[method] = [graph.name(node) for node, _ in result.top]
        if spam:
            found.spam[method] = measures.spam_found(found.names[method], spam)
        if outside:
            found.outside[method] = measures.outside_scores(found.names[method], outside)
    order = top_nodes(scores["supp"], choice.top)
    for method in _ESTIMATES:
        found.errors[method] = measures.relative_errors(scores[method], scores["supp"], order)
    if spam and outside:
        union = {name for names in found.names.values() for name in names}
        found.spam_by_score = measures.spam_by_score(union, outside, spam)
    return found


def _as_dict(graph: Graph, found: Comparison) -> dict[str, Any]:
    from barkspider.cli.rank import as_dict
    from barkspider.graph.compare import agreement

    return {
        "methods": [as_dict(graph, result) for result in found.results.values()],
        "agreement": {
            first: {second: agreement(found.names[first], found.names[second]) for second in found.names}
            for first in found.names
        },
        "mean_error": {method: float(errors.mean()) for method, errors in found.errors.items()},
        "spam": {method: counts.tolist() for method, counts in found.spam.items()},
        "outside": {
            method: [None if score != score else score for score in scores.tolist()]
            for method, scores in found.outside.items()
        },
        "spam_by_score": found.spam_by_score,
    }


def _print(found: Comparison, spam: frozenset[str]) -> None:
    _print_lists(found, spam)
    _print_costs(found)
    _print_agreement(found)
    if found.spam:
        _print_spam(found)
    if found.outside:
        _print_outside(found)
    if found.spam_by_score:
        _table(
            "Share of spam by score from elsewhere",
            ["score", "spam"],
            [[score, f"{share:.0%}"] for score, share in found.spam_by_score.items()],
        )


def _table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    from rich.table import Table

    shown = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        shown.add_column(column, justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        shown.add_row(*row)
    screen().print(shown)


def _print_lists(found: Comparison, spam: frozenset[str]) -> None:
    def named(name: str) -> str:
        return f"{name} (S)" if name in spam else name

    lists = [names[:_SIDE_BY_SIDE] for names in found.names.values()]
    _table(
        "Top of each list" + (" (S is spam)" if spam else ""),
        ["", *found.names],
        [[str(place + 1), *(named(each[place]) for each in lists)] for place in range(len(lists[0]))],
    )


def _print_costs(found: Comparison) -> None:
    exact = found.results["supp"].seconds
    _table(
        "What it took",
        ["", "hits", "operations", "seconds", "CPU", "speed-up", "mean error"],
        [
            [
                method,
                f"{result.ram_hits:,}",
                f"{result.operations:,}",
                f"{result.seconds:.3f}",
                f"{result.cpu_seconds:.3f}",
                f"{exact / result.seconds:,.1f}",
                f"{found.errors[method].mean():.2%}" if method in found.errors else "",
            ]
            for method, result in found.results.items()
        ],
    )


def _print_agreement(found: Comparison) -> None:
    from barkspider.graph.compare import agreement

    methods = list(found.results)
    _table(
        f"Share of the top {len(found.names['supp']):,} that two methods have in common",
        ["", *methods],
        [
            [first, *(f"{agreement(found.names[first], found.names[second]):.0%}" for second in methods)]
            for first in methods
        ],
    )


def _print_spam(found: Comparison) -> None:
    places = [r for r in (10, 100, 1000, 10_000, 100_000) if r <= len(found.names["supp"])]
    places = sorted({*places, len(found.names["supp"])})
    _table(
        "Spam among the first r, and the place of the first",
        ["", *(f"r = {r:,}" for r in places), "first"],
        [
            [method, *(str(counts[min(r, len(counts)) - 1]) for r in places), _first(counts)]
            for method, counts in found.spam.items()
        ],
    )


def _print_outside(found: Comparison) -> None:
    import numpy as np

    _table(
        "Scores from elsewhere in each top list",
        ["", "mean", "zero", "none"],
        [
            [
                method,
                f"{np.nanmean(scores):.2f}" if (~np.isnan(scores)).any() else "–",
                str(int((scores == 0).sum())),
                str(int(np.isnan(scores).sum())),
            ]
            for method, scores in found.outside.items()
        ],
    )


def _first(counts: Any) -> str:
    return str(int((counts > 0).argmax()) + 1) if len(counts) and counts[-1] else "–"
