"""`barkspider query`: ask a crawl in SQL."""

from __future__ import annotations

import csv
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barkspider.cli.progress import working
from barkspider.cli.terminal import output, printable, say_json, screen, styled
from barkspider.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console


def query(
    job: Annotated[str, typer.Argument(help="The folder of a crawl, which may be running, or its store.")],
    sql: Annotated[
        str,
        typer.Argument(
            help="One SELECT over pages, links, domains, robots, errors, listings, batches, duplicates, parallel, history."
        ),
    ],
    json_: Annotated[bool, typer.Option("--json", help="Print the rows as a JSON array of objects.")] = False,
    csv_: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV with a header.")] = False,
    safe_csv: Annotated[
        bool,
        typer.Option(
            "--safe-csv", help="As --csv; no text begins as formulas do in a spreadsheet, but with a quote."
        ),
    ] = False,
) -> int:
    """Ask a crawl in SQL; docs/formats/tables.md lists the columns.

    Example: barkspider query jobs/mine "SELECT fetch_status, count(*) FROM pages GROUP BY ALL"
    """
    if json_ and (csv_ or safe_csv):
        raise UsageError("--json and --csv exclude each other; choose one")
    from barkspider.engine import open_job
    from barkspider.engine.borrowing import at_hand

    with at_hand(job) as folder, working("asking the tables"):
        answer = open_job(folder).query(sql)
    if json_:
        say_json([{name: _plain(value) for name, value in row.items()} for row in answer.to_pylist()])
    elif csv_ or safe_csv:
        writer, cell = csv.writer(output()), _no_formula if safe_csv else _plain
        writer.writerow(map(cell, answer.column_names))
        rows = zip(*(column.to_pylist() for column in answer.columns), strict=True)
        writer.writerows([cell(value) for value in row] for row in rows)
    else:
        _print(answer)
    return 0


def _plain(value: Any) -> Any:
    """A value as JSON and CSV can have it: no number that is none, bytes in hexadecimal digits.

    >>> _plain(float("nan")), _plain(b"\\xaa"), _plain([1, {"a": b""}])
    (None, 'aa', [1, {'a': ''}])
    """
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _no_formula(value: Any) -> Any:
    """As `_plain`; a spreadsheet takes what begins with certain signs for a formula, whoever wrote the page.

    >>> _no_formula("=cmd()"), _no_formula(-7), _no_formula("a=b")
    ("'=cmd()", -7, 'a=b')
    """
    plain = _plain(value)
    return (
        f"'{plain}"
        if isinstance(plain, str) and plain.startswith(("=", "+", "-", "@", "\t", "\r"))
        else plain
    )


def _print(answer: pa.Table) -> None:
    from rich.table import Table

    console = screen()
    wide = screen(width=10_000)  # nobody reads over the width of a file or a pipe: rows stay whole there
    table = Table()
    for name in answer.column_names:
        numbers = str(answer.schema.field(name).type).startswith(
            ("int", "uint", "double", "float", "decimal")
        )
        table.add_column(printable(name), justify="right" if numbers else "left", overflow="fold")
    for row in zip(*(column.to_pylist() for column in answer.columns), strict=True):
        table.add_row(*map(printable, row))
    if console.is_terminal and wide.measure(table).maximum > console.width:
        _print_upright(console, answer)
    else:
        wide.print(table)


def _print_upright(console: Console, answer: pa.Table) -> None:
    """Rows that are wider than the terminal: a line for each of their columns, long values over several."""
    from rich.table import Table

    rows = zip(*(column.to_pylist() for column in answer.columns), strict=True)
    for number, row in enumerate(rows, 1):
        grid = Table.grid(padding=(0, 2))
        for name, value in zip(answer.column_names, row, strict=True):
            grid.add_row(styled(printable(name), "bold"), styled(printable(value), overflow="fold"))
        console.rule(f"row {number:,}", align="left")
        console.print(grid)
