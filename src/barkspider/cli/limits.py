"""`barkspider limits`: how many sites and URLs each limit has stopped, and what lies behind it."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from barkspider.cli.control import AsJson, JobFolder
from barkspider.cli.progress import working
from barkspider.cli.terminal import say, say_json, screen
from barkspider.core.units import format_duration, format_size
from barkspider.engine.control import ask
from barkspider.engine.folder import check_job


def limits(job: JobFolder, json_: AsJson = False) -> int:
    """Show how many sites and URLs each limit has stopped, how they are spread, and a value that would stop one in a hundred.

    Nothing is changed by it: whether what was stopped were traps takes a person to see.

    Example: barkspider limits jobs/mine
    """
    check_job(job)
    ask(job, "write_tables")  # a crawl that runs still has rows in memory
    from barkspider.engine import open_job  # here: what reads tables takes a moment to load
    from barkspider.report.facts import read_limits
    from barkspider.report.limits import deep_links, spreads

    with working("reading tables"):
        stored = open_job(job)
        found, behind, (links, deep) = read_limits(job), spreads(stored), deep_links(stored)
    rows = [
        {
            **asdict(limit),
            "share": round(limit.reached / limit.of, 4) if limit.of else 0.0,
            "spread": behind[limit.setting],
            "suggested": _rounded(limit.setting, behind[limit.setting]),
        }
        for limit in found
    ]
    if json_:
        say_json({"job": str(job), "limits": rows, "external_links": links, "deep_links": deep})
        return 0
    _show(rows)
    if links:
        say(f"Of {links:,} pages found by a link from another site {deep / links:.1%} are not its home page.")
    return 0


def _rounded(setting: str, spread: list[float]) -> str:
    """What 99 of a hundred do not exceed, as one would write it into settings; "" where there is nothing to go by."""
    if not spread:
        return ""
    value = spread[-2]
    if setting == "fetch.timeout":
        return format_duration(max(math.ceil(value), 1))
    return format_size(max(int(value), 1)) if setting == "fetch.max_size" else f"{max(int(value), 1)}"


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(title="Limits, and who reached them", title_justify="left")
    table.add_column("setting", no_wrap=True)
    for head in ("value", "reached by", "half · 90% · 99% · most", "stops 1%", "what to do"):
        table.add_column(head)
    for row in rows:
        spread = " · ".join(f"{value:,.0f}" if value >= 10 else f"{value:,.3g}" for value in row["spread"])
        reached = f"{row['reached']:,} of {row['of']:,} {row['what']} ({row['share']:.1%})"
        table.add_row(
            row["setting"],
            row["limit"],
            reached,
            spread,
            row["suggested"],
            row["suggestion"],
        )
    screen().print(table)
