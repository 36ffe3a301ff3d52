"""`barkspider duphosts`: which hosts of a crawl are copies of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barkspider.cli.progress import working
from barkspider.cli.resume import TrustSettings
from barkspider.cli.terminal import say, say_json, screen
from barkspider.core.errors import BarkspiderError, UsageError
from barkspider.core.units import parse_size
from barkspider.engine.folder import check_job

if TYPE_CHECKING:
    from barkspider.engine.duphosts import DuplicateHosts, Pair
    from barkspider.engine.revisiting import Revisited
    from barkspider.engine.stored import StoredJob

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
    visit: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Look up all replicas, and visit so many pairs of each heuristic once more.",
        ),
    ] = 0,
    www: Annotated[
        bool,
        typer.Option("--www", help="What putting www. before names would do, by their level (Table II)."),
    ] = False,
    memory: Annotated[str, typer.Option(help="RAM for it; some of what does not fit goes to disk.")] = "1GB",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="One setting for the visits; may be repeated."),
    ] = None,
    trust: TrustSettings = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object, with all pairs.")] = False,
) -> int:
    """Find hosts that serve the same contents as others, by the five heuristics of Viúva Negra (Table I).

    With --visit, some pairs are asked for three pages each, politely and as robots.txt allows, to see whether they still are the same.

    Example: barkspider duphosts jobs/mine -o replicas.txt

    Example: barkspider duphosts jobs/mine --visit 50
    """
    check_job(job)
    from barkspider.engine.duphosts import HEURISTICS, duplicate_hosts
    from barkspider.engine.stored import open_job

    if by not in HEURISTICS:
        raise UsageError(f"there is no heuristic {by!r}; there are {', '.join(HEURISTICS)}")
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise UsageError(f"{output} cannot be a file; name one in a folder that is there")
    stored = open_job(job)
    if www:
        return _www(job, stored, json_)
    with working("comparing hosts"):
        found = duplicate_hosts(stored, parse_size(memory))
    visited = _visit(stored, found, visit, set_ or [], trust) if visit else {}
    if output is not None:
        _write(output, found.pairs[by])
    rows = [row | _columns(visited.get(str(row["heuristic"])), found.sites) for row in found.rows()]
    if json_:
        pairs = {
            name: [[pair.replica, pair.original] for pair in pairs] for name, pairs in found.pairs.items()
        }
        say_json({"job": str(job), "sites": found.sites, "table": rows, "pairs": pairs})
        return 0
    _show(rows, found.sites)
    if output is not None:
        say(f"{len(found.pairs[by]):,} replicas by {by}: {output}")
    return 0


def _visit(
    job: StoredJob, found: DuplicateHosts, most: int, options: list[str], trust: bool
) -> dict[str, Revisited]:
    import uvloop

    from barkspider.engine.revisiting import revisit
    from barkspider.engine.trust import take_settings
    from barkspider.storage.env import Env

    settings, _ = take_settings(Env(), job.path, options, trust)
    with working("visiting hosts"):
        return uvloop.run(revisit(found, job, settings, most))


def _columns(visited: Revisited | None, sites: int) -> dict[str, Any]:
    """What a visit adds to a line of the table; the share of sites is then that of the pairs that have addresses."""
    if visited is None:
        return {}
    return {
        "share": (visited.pairs - visited.invalid) / sites if sites else 0.0,
        "invalid": visited.invalid / visited.pairs if visited.pairs else None,
        "visited": visited.visited,
        "precision": visited.precision,
    }


def _write(output: Path, pairs: list[Pair]) -> None:
    lines = [f"{pair.replica} {pair.original}\n" for pair in pairs]
    try:
        output.write_text("".join(lines), "ascii")
    except OSError as error:
        raise BarkspiderError(f"cannot write {output}: {error.strerror}") from error


def _show(rows: list[dict[str, Any]], sites: int) -> None:
    from rich.table import Table

    table = Table(title=f"Duplicate hosts among {sites:,} sites", title_justify="left")
    table.add_column("heuristic")
    was_visited = any("visited" in row for row in rows)
    columns = ("replicas", "invalid", "share of sites", "visited", "precision", "coverage")
    for name in columns if was_visited else (columns[0], columns[2], columns[5]):
        table.add_column(name, justify="right")
    for row in rows:
        shown = [f"{row['replicas']:,}", _percent(row["share"])]
        if was_visited:
            shown[1:1] = [_percent(row["invalid"])]
            shown += [f"{row['visited']:,}", _percent(row["precision"])]
        coverage = "-" if row["coverage"] is None else f"{row['coverage']:.1f}"
        table.add_row(str(row["heuristic"]), *shown, coverage)
    screen().print(table)


def _www(path: Path, job: StoredJob, json_: bool) -> int:
    from dataclasses import asdict

    from barkspider.engine.duphosts import www_rule

    levels = www_rule(job)
    if json_:
        say_json({"job": str(path), "levels": [asdict(each) for each in levels]})
        return 0
    if not levels:
        say(f"{path} has no name that was asked for with and without www.; give both forms as seeds")
        return 0
    from rich.table import Table

    table = Table(title="Names with and without www.", title_justify="left")
    for name in ("level", "names", "duphosts avoided", "sites lost"):
        table.add_column(name, justify="right")
    for each in levels:
        shares = (_percent(count / each.names) for count in (each.duphosts, each.lost))
        table.add_row(str(each.level), f"{each.names:,}", *shares)
    screen().print(table)
    return 0


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
