"""`barkspider crawl`: crawl given seeds into a job."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.interrupts import leave_on_interrupt
from barkspider.cli.resume import Ray
from barkspider.cli.seeds import SeedsFile, Strict, given_seeds
from barkspider.core.load import load_settings, replace


def crawl(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="URL…", help="Where to start.", show_default=False)
    ] = None,
    seeds: SeedsFile = None,
    strict: Strict = False,
    scope: Annotated[str | None, typer.Option(help="How far to go: page, site, domain or web.")] = None,
    preset: Annotated[str, typer.Option(help="default, irlbot or viuva-negra.")] = "default",
    frontier: Annotated[
        str | None, typer.Option(help="What orders the crawl: irlbot, sydney or site.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="One setting; may be repeated.")
    ] = None,
    job: Annotated[Path | None, typer.Option(help="The folder to make for this crawl.")] = None,
    pages: Annotated[int | None, typer.Option(help="Stop after this many pages; 0 means no limit.")] = None,
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Stop after this time, such as 90s or 1h.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes that divide the crawl, on all cores of this machine.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A folder or fsspec URL to which every checkpoint is copied."),
    ] = None,
    ray: Ray = None,
    depth: Annotated[int | None, typer.Option(help="Most links from a seed; 0 means no limit.")] = None,
    allow_network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CIDR", help="Open a loopback or private network, such as 127.0.0.0/8; may be repeated."
        ),
    ] = None,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Show it in the browser while it runs.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> int:
    """Crawl from seeds, politely, into a new job folder.

    Example: barkspider crawl https://example.org/ --pages 100 --set agent.contact=me@example.org
    """
    leave_on_interrupt()
    options = list(set_ or [])
    for name, value in (
        ("scope.level", scope),
        ("frontier", frontier),
        ("limits.time", for_),
        ("limits.pages", pages),
        ("scope.depth", depth),
        ("parallel.processes", processes),
        ("store.url", store),
    ):
        if value is not None:
            options.append(f"{name}={value}")
    settings = load_settings(preset, config, options)
    if allow_network:
        settings = replace(settings, {"network.allow": [*settings.network.allow, *allow_network]})
    from barkspider.cli.run import exit_code, run_crawl  # loads the kernels: not for a wrong option
    from barkspider.url import split

    starts = given_seeds(settings, urls or [], seeds, strict)
    folder = job or Path("jobs") / f"{split(starts[0]).host.strip('[]')}-{time.strftime('%Y%m%d-%H%M%S')}"
    title = f"barkspider: {starts[0]}" + (f" and {len(starts) - 1:,} more" if len(starts) > 1 else "")
    if ray is not None:
        from barkspider.cli.cluster import crawl_on_cluster

        return exit_code(crawl_on_cluster(ray, settings, starts, folder, json_, title), folder)
    return exit_code(run_crawl(settings, starts, folder, json_, title, dashboard=dashboard), folder)
