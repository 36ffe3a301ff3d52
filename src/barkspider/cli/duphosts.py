"""`barkspider duphosts`: which hosts of a crawl are copies of others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.progress import working
from barkspider.cli.terminal import say, say_json, screen
from barkspider.core.errors import BarkspiderError, UsageError
from barkspider.core.units import parse_size
from barkspider.engine.folder import check_job

_DEFAULT = "SameHomeAnd1Doc"  # the cheapest of those with a precision above 90% (Table I)


def duphosts(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The folder of a crawl; it may be running.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write a list: a replica and its original a line.", show_default=False
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(help="The heuristic of the list: SameHome, SameHomeAnd1Doc, Dups60, Dups80, Dups100."),
    ] = _DEFAULT,
    memory: Annotated[str, typer.Option(help="RAM for it; some of what does not fit goes to disk.")] = "1GB",
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object, with all pairs.")] = False,
) -> int:
    """Find hosts that serve the same contents as others, by the five heuristics of Viúva Negra (Table I).

    Example: barkspider duphosts jobs/mine -o replicas.txt
    """
    check_job(job)
    from barkspider.engine.duphosts import HEURISTICS, duplicate_hosts
    from barkspider.engine.stored import open_job

    if by not in HEURISTICS:
        raise UsageError(f"there is no heuristic {by!r}; there are {', '.join(HEURISTICS)}")
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise UsageError(f"{output} cannot be a file; name one in a folder that is there")
    with working("comparing hosts"):
        found = duplicate_hosts(open_job(job), parse_size(memory))
    if output is not None:
        lines = [f"{pair.replica} {pair.original}\n" for pair in found.pairs[by]]
        try:
            output.write_text("".join(lines), "ascii")
        except OSError as error:
            raise BarkspiderError(f"cannot write {output}: {error.strerror}") from error
    rows = found.rows()
    if json_:
        pairs = {
            name: [[pair.replica, pair.original] for pair in pairs] for name, pairs in found.pairs.items()
        }
        say_json({"job": str(job), "sites": found.sites, "table": rows, "pairs": pairs})
        return 0
    from rich.table import Table

    table = Table(title=f"Duplicate hosts among {found.sites:,} sites", title_justify="left")
    table.add_column("heuristic")
    for name in ("replicas", "share of sites", "coverage"):
        table.add_column(name, justify="right")
    for row in rows:
        coverage = "-" if row["coverage"] is None else f"{row['coverage']:.1f}"
        table.add_row(str(row["heuristic"]), f"{row['replicas']:,}", f"{row['share']:.1%}", coverage)
    screen().print(table)
    if output is not None:
        say(f"{len(found.pairs[by]):,} replicas by {by}: {output}")
    return 0
