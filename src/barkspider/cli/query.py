"""`barkspider query`: ask a crawl in SQL."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barkspider.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


def query(
    job: Annotated[Path, typer.Argument(help="The folder of a crawl; it may be running.")],
    sql: Annotated[
        str, typer.Argument(help="One SELECT over pages, links, domains, robots, errors, duplicates.")
    ],
    json_: Annotated[bool, typer.Option("--json", help="Print the rows as a JSON array of objects.")] = False,
    csv_: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV with a header.")] = False,
) -> int:
    """Ask a crawl in SQL; docs/formats/tables.md lists the columns.

    Example: barkspider query jobs/mine "SELECT fetch_status, count(*) FROM pages GROUP BY ALL"
    """
    if json_ and csv_:
        raise UsageError("--json and --csv exclude each other; choose one")
    from barkspider.engine import open_job

    answer = open_job(job).query(sql)
    if json_:
        print(json.dumps(answer.to_pylist(), default=str))
    elif csv_:
        writer = csv.writer(sys.stdout)
        writer.writerow(answer.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in answer.columns), strict=True))
    else:
        _print(answer)
    return 0


def _print(answer: pa.Table) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in answer.column_names:
        numbers = str(answer.schema.field(name).type).startswith(
            ("int", "uint", "double", "float", "decimal")
        )
        table.add_column(Text(printable(name)), justify="right" if numbers else "left", overflow="fold")
    for row in zip(*(column.to_pylist() for column in answer.columns), strict=True):
        table.add_row(*(Text(printable(value)) for value in row))
    Console().print(table)


def printable(value: Any) -> str:
    """A value for a terminal: what a page wrote cannot move its cursor or change its colours.

    >>> printable("a\\x1b[31m"), printable(None), printable(1234)
    ('a\\\\x1b[31m', '', '1234')
    """
    if value is None:
        return ""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
