"""`barkspider recrawl`: fetch the old pages of a crawl again."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.interrupts import leave_on_interrupt
from barkspider.core.errors import UsageError
from barkspider.core.units import parse_duration


def recrawl(
    job: Annotated[Path, typer.Argument(help="The folder of a crawl that is not running.")],
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long ago a page was fetched last, such as 12h or 7d."),
    ] = None,
    cut: Annotated[
        bool, typer.Option("--cut", help="Pages that are not stored as a whole, instead of those that are.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="One setting to change; may be repeated."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> int:
    """Fetch old pages again, unless their servers say that they have not changed, and go on with the crawl.

    With --cut, fetch those again of which only a part is stored: raise the limit that cut them.

    Example: barkspider recrawl jobs/mine --older-than 7d

    Example: barkspider recrawl jobs/mine --cut --set fetch.max_size=50MB
    """
    leave_on_interrupt()
    if older_than is None and not cut:
        raise UsageError("say which pages are to be fetched again: --older-than TIME, or --cut")
    before = time.time() - (parse_duration(older_than) if older_than is not None else 0.0)
    from barkspider.cli.run import run_job
    from barkspider.engine import Job, fetch_again
    from barkspider.storage.env import Env

    held = Job.open(job, Env(), set_ or [])
    try:
        count, unfinished = fetch_again(held, before, cut)
    except BaseException:
        held.close()
        raise
    if not count and not unfinished:
        held.close()
        reasons = (["was cut"] if cut else []) + ([f"is older than {older_than}"] if older_than else [])
        nothing = f"no page of {job} {' and '.join(reasons)}"
        print(json.dumps({"job": str(job), "again": 0}) if json_ else nothing)
        return 0

    async def make() -> Job:
        return held

    run_job(make, json_, f"barkspider: {job}, {count:,} pages again", known={"again": count})
    return 0
