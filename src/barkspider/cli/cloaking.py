"""`barkspider cloaking`: whether sites show others something else."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.progress import working
from barkspider.cli.resume import TrustSettings
from barkspider.cli.terminal import printable, say, say_json, screen
from barkspider.engine.folder import check_job


def cloaking(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The folder of a crawl; it may be running.")],
    sample: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many of its pages are fetched under both names.")
    ] = 100,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="One setting for the fetches; may be repeated."),
    ] = None,
    trust: TrustSettings = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object, with every page.")] = False,
) -> int:
    """Fetch some pages of a crawl under a second name, where settings name one and robots.txt allows both, and show the differences.

    Example: barkspider cloaking jobs/mine --sample 100 --set agent.second=ourtest
    """
    check_job(job)
    import uvloop

    from barkspider.engine.cloaking import CLOAKED, compare_names
    from barkspider.engine.stored import open_job
    from barkspider.engine.trust import take_settings
    from barkspider.storage.env import Env

    settings, _ = take_settings(Env(), job, set_ or [], trust)
    with working("asking for pages"):
        found = uvloop.run(compare_names(open_job(job), settings, sample))
    counts: dict[str, int] = {}
    for each in found:
        counts[each.verdict] = counts.get(each.verdict, 0) + 1
    if json_:
        say_json({"job": str(job), "verdicts": counts, "pages": [asdict(each) for each in found]})
        return 0
    from rich.table import Table

    table = Table(title="Pages that show the second name something else", title_justify="left")
    for name in ("page", "status", "second", "bytes", "second"):
        table.add_column(name, justify="left" if name == "page" else "right")
    for each in found:
        if each.verdict == CLOAKED:
            sizes = (f"{each.bytes:,}", f"{each.second_bytes:,}")
            table.add_row(printable(each.url), str(each.status), str(each.second_status), *sizes)
    screen().print(table)
    say(
        ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(counts.items())) or "no page to ask for"
    )
    return 0
