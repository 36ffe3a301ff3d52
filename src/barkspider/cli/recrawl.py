"""`barkspider recrawl`: fetch the old pages of a crawl again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.interrupts import leave_on_interrupt
from barkspider.cli.progress import working
from barkspider.cli.resume import TrustSettings
from barkspider.cli.terminal import in_json, say
from barkspider.core.errors import UsageError
from barkspider.core.units import parse_duration


def recrawl(
    job: Annotated[Path, typer.Argument(help="The folder of a crawl that is not running.")],
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long ago a page was fetched last, such as 12h or 7d."),
    ] = None,
    cut: Annotated[
        bool, typer.Option("--cut", help="Only pages of which a part is stored, however old they are.")
    ] = False,
    gone: Annotated[
        bool, typer.Option("--gone", help="Only URLs that answered 404 or 410 last, however often.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="One setting to change; may be repeated."),
    ] = None,
    trust: TrustSettings = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> int:
    """Fetch old pages again, unless their servers say that they have not changed, and go on with the crawl.

    So are URLs whose last answer was temporary (429, 5xx), and 404 once more: what is missing twice in a row, or answers 410,
    is taken for gone, and asked for again with --gone only. With --cut, fetch those again of which only a part is
    stored: raise the limit that cut them.

    Example: barkspider recrawl jobs/mine --older-than 7d

    Example: barkspider recrawl jobs/mine --cut --set fetch.max_size=50MB

    Example: barkspider recrawl jobs/mine --gone --older-than 90d
    """
    leave_on_interrupt()
    if older_than is None and not cut and not gone:
        raise UsageError("say which pages are to be fetched again: --older-than TIME, --cut or --gone")
    before = time.time() - (parse_duration(older_than) if older_than is not None else 0.0)
    from barkspider.cli.run import run_job
    from barkspider.engine import Job, fetch_again
    from barkspider.storage.env import Env

    held = Job.open(job, Env(), set_ or [], trust=trust)
    try:
        with working("looking for pages"):
            count, unfinished = fetch_again(held, before, cut, gone)
    except BaseException:
        held.close()
        raise
    if not count and not unfinished:
        held.close()
        kinds = " or ".join(name for name, asked in (("was cut", cut), ("is gone", gone)) if asked)
        reasons = [kinds] * bool(kinds) + [f"is older than {older_than}"] * (older_than is not None)
        nothing = f"no page of {job} {' and '.join(reasons)}"
        say(in_json({"job": str(job), "again": 0}) if json_ else nothing)
        return 0

    async def make() -> Job:
        return held

    run_job(make, json_, f"barkspider: {job}, {count:,} pages again", known={"again": count})
    return 0
