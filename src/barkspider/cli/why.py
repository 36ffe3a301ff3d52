"""`barkspider why`: what became of a URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barkspider.cli.progress import working
from barkspider.cli.terminal import say, say_json, screen, styled
from barkspider.engine.folder import check_job

if TYPE_CHECKING:
    from barkspider.engine.why import Why


def why(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The folder of a crawl; it may be running.")],
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="URLs, written in any way.")],
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object for each.")] = False,
) -> int:
    """Tell why a URL was fetched or not: its scope, where it waits, what robots.txt says, how it ended.

    Example: barkspider why jobs/mine https://example.org/page
    """
    check_job(job)
    from barkspider.engine.why import whys

    with working("looking through queues"):
        answers = whys(job, urls)
    for found in answers:
        if json_:
            say_json({"job": str(job), **found.as_dict()})
        else:
            _tell(found)
    return 0


def _tell(found: Why) -> None:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    rows = {
        "URL": found.normalised or found.url,
        "scope": (found.refused and f"refused: {found.refused}") or "in scope",
        "seen": "yes" if found.seen else "not as of the last checkpoint",
        "found on": found.found_on or ("a seed" if found.is_seed else "no page that the tables have"),
        "outcomes": "\n".join(f"{each['time']}: {each['outcome']}" for each in found.outcomes) or "none",
        "waits in": "\n".join(f"{each['queue']}, behind {each['ahead']:,}" for each in found.places)
        or "no queue",
        "decided": "\n".join(
            f"{each['time']}: {each['decision']} by {each['rule']}" for each in found.decisions
        ),
        "its domain": ", ".join(
            f"{name.replace('_', '-')} {value:,}" for name, value in found.domain.items()
        ),
        "robots.txt": ", ".join(f"{name} {value}" for name, value in found.robots.items()) or "not fetched",
        "host": ", ".join(f"{name} {value}" for name, value in found.host.items() if name != "origins")
        or "nothing in RAM",
        "not seen": "\n".join(found.unseen),
    }
    for name, value in rows.items():
        if value:
            grid.add_row(styled(name, "bold"), styled(str(value), overflow="fold"))
    say(f"{found.verdict[0].upper()}{found.verdict[1:]}.")
    screen().print(grid)
