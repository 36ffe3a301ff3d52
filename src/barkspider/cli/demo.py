"""`barkspider demo`: crawl the embedded synthetic web for half a minute."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barkspider.cli.interrupts import leave_on_interrupt
from barkspider.cli.terminal import say, screen
from barkspider.core.load import load_settings

if TYPE_CHECKING:
    from barkspider.lab.synthweb import Web

_HOSTS = """
    SELECT url_host_name AS host, count(*) FILTER (answered) AS answers, count(*) FILTER (NOT answered) AS failures
    FROM (SELECT url_host_name, true AS answered FROM pages UNION ALL
          SELECT url_host_name, fetch_status < 500 FROM robots UNION ALL
          SELECT url_host_name, false FROM errors)
    GROUP BY host
"""
_QUERY = "SELECT what, outcome, count(*) AS times, any_value(url_host_name) AS host FROM errors GROUP BY ALL ORDER BY times DESC"


def demo(
    for_: Annotated[str, typer.Option("--for", metavar="TIME", help="How long to crawl.")] = "30s",
    pages: Annotated[int, typer.Option(help="Stop after this many pages; 0 means no limit.")] = 0,
    job: Annotated[Path | None, typer.Option(help="The folder to make for this crawl.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="One setting; may be repeated.")
    ] = None,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Show it in the browser while it runs.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> int:
    """Start the synthetic web on this machine, crawl it, and show what happened and which hazards were met.

    Example: barkspider demo --for 10s
    """
    leave_on_interrupt()
    from barkspider.cli.run import run_crawl
    from barkspider.lab.synthweb import HAZARDS, WebSpec, running_web

    chosen = {
        "scope.level": "web",
        "politeness.host_delay": "50ms",
        "politeness.server_delay": "5ms",
        "politeness.retry_delay": "1s",
        "politeness.slow_factor": 0,  # its servers are slow because we share a machine with them
        "limits.grace": "1s",  # some servers of this web never answer
    }
    wanted = [f"limits.time={for_}", f"limits.pages={pages}", *(set_ or [])]
    load_settings(options=wanted)  # a wrong option is refused before anything starts
    spec = WebSpec(seed=1, pages=10_000_000, https_share=0.1, hazards=frozenset(HAZARDS))
    with running_web(spec, https=True) as served:
        options = [f"{name}={value}" for name, value in (chosen | served.settings()).items()]
        settings = load_settings(options=[*options, *wanted])
        if not json_:
            say(
                f"The synthetic web: {spec.pages:,} pages on loopback, made from a seed\n"
                "number, with all its hazards. It is ours, so the pauses are short: 50 ms a host\n"
                "and 5 ms a server instead of 2 s and 1 s."
            )
        folder = job or Path("jobs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
        run_crawl(
            settings, served.web.seeds(20), folder, json_, "barkspider demo", ends=True, dashboard=dashboard
        )
        if not json_:
            _show_hazards(served.web, folder)
            _write_report(folder)
            say(f"Ask it yourself: barkspider query {shlex.quote(str(folder))} {shlex.quote(_QUERY)}")
    return 0


def _write_report(folder: Path) -> None:
    from barkspider.report import write_report

    path = folder / "report.html"
    write_report(folder, path)
    say(f"See it: {path}")


def _show_hazards(web: Web, job: Path) -> None:
    """Which hazards of the synthetic web the crawl met: hosts that have one, and what came of them."""
    from rich.table import Table

    from barkspider.engine import open_job

    hosts, answers, failures = Counter[str](), Counter[str](), Counter[str]()
    for row in open_job(job).query(_HOSTS).to_pylist():
        site = web.site(row["host"])
        if site is not None and site.hazard is not None:
            hosts[site.hazard.name] += 1
            answers[site.hazard.name] += row["answers"]
            failures[site.hazard.name] += row["failures"]
    table = Table("hazard", title="hazards that it met", title_justify="left")
    for name in ("hosts", "answers", "failures"):
        table.add_column(name, justify="right")
    for name, count in hosts.most_common():
        table.add_row(name, f"{count:,}", f"{answers[name]:,}", f"{failures[name]:,}")
    screen().print(table)
