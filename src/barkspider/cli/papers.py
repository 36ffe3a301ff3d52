"""`barkspider papers`: the papers' tables and figures, printed values and ours side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from barkspider.cli.terminal import say, say_json
from barkspider.core.errors import UsageError
from barkspider.lab.papers.comparison import Cell, Table

# Rooms that recompute something of the papers: each has `TABLES`, functions that return a `comparison.Table`.
_ROOMS = ("barkspider.lab.papers.formulas",)
# Those that need a graph of pages to simulate: each has `tables`, a function of a `lab.webgraph.WebGraph`.
_SIMULATIONS = ("barkspider.lab.simulate.papers", "barkspider.lab.simulate.parallel_tables")


def papers(
    output: Annotated[
        Path | None, typer.Option(help="Write papers.md, papers.json and pictures (SVG) into this folder.")
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(
            help="Simulate the papers' strategies on this graph of pages too, as simulate order does."
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Crawl the first 20,000 pages of the graph on loopback too, by each strategy, and the first 2,000 by several "
            "processes: some twenty-five minutes.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Recompute the papers' tables and show them beside the printed ones, with the relative difference.

    Example: barkspider papers --output papers/

    Example: barkspider papers --graph cnr-2000.npz --live
    """
    if output is not None and output.exists() and not output.is_dir():
        raise UsageError(f"{output} is a file; name a folder with --output")
    if live and graph is None:
        raise UsageError("--live crawls a graph; name one with --graph")
    tables = [table() for room in _ROOMS for table in import_module(room).TABLES]
    if graph is not None:
        from barkspider.lab.webgraph import load_web

        web = load_web(graph)
        tables += [table for room in _SIMULATIONS for table in import_module(room).tables(web)]
        if live:
            from barkspider.cli.papers_live import live_tables
            from barkspider.cli.papers_live_cookies import cookie_tables
            from barkspider.cli.papers_live_parallel import parallel_tables

            tables += [*live_tables(web), *parallel_tables(web), *cookie_tables()]
    if output is not None:
        _write(tables, output)
    if as_json:
        say_json(as_dict(tables))
    elif output is None:
        say("\n".join(markdown(table) for table in tables), end="")
    else:
        agreeing, figures = _agreeing(tables)
        say(f"{agreeing} of {figures} figures agree to the printed digits: {output / 'papers.md'}")


def markdown(table: Table, folder: bool = False) -> str:
    """A table as Markdown; with `folder`, its picture lies beside it."""
    columns = [part for name in table.columns for part in (name, "ours", "difference")]
    lines = [
        f"### {table.paper}, {table.name}: {table.title}",
        "",
        f"| | {' | '.join(columns)} |",
        "| --- |" + " ---: |" * len(columns),
    ]
    for label, cells in table.rows:
        parts = [part for cell in cells for part in _parts(cell)]
        lines.append(f"| {label} | {' | '.join(parts)} |")
    if table.note:
        lines += ["", table.note]
    if folder and table.picture is not None:
        lines += ["", f"![{table.picture.title}]({table.key}.svg)"]
    return "\n".join(lines) + "\n"


def as_dict(tables: Sequence[Table]) -> dict[str, Any]:
    """For programs: every figure, and how many agree."""
    agreeing, figures = _agreeing(tables)
    return {
        "figures": figures,
        "to_the_printed_digits": agreeing,
        "tables": [
            {
                "paper": table.paper,
                "name": table.name,
                "title": table.title,
                "note": table.note,
                "figures": [
                    {
                        "row": row,
                        "column": column,
                        "printed": cell.printed,
                        "printed_value": cell.value,
                        "ours": cell.ours,
                        "difference": cell.difference,
                        "to_the_printed_digits": cell.agrees,
                    }
                    for row, column, cell in table.cells()
                ],
            }
            for table in tables
        ],
    }


def _parts(cell: Cell | None) -> tuple[str, str, str]:
    if cell is None:
        return "", "", ""
    return cell.printed, cell.shown, f"{cell.difference:+.2%}"


def _agreeing(tables: Sequence[Table]) -> tuple[int, int]:
    cells = [cell for table in tables for _, _, cell in table.cells()]
    return sum(cell.agrees for cell in cells), len(cells)


def _write(tables: Sequence[Table], folder: Path) -> None:
    from barkspider.cli.pictures import draw

    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(markdown(table, folder=True) for table in tables)
    (folder / "papers.md").write_text(f"# The papers' figures and ours\n\n{text}", "utf-8")
    (folder / "papers.json").write_text(json.dumps(as_dict(tables), indent=1) + "\n", "utf-8")
    for table in tables:
        if table.picture is not None:
            draw([table.picture], folder / f"{table.key}.svg")
