"""`barkspider sites`: the sites of a crawl site by site, and what is to become of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from barkspider.cli.resume import TrustSettings
from barkspider.cli.terminal import say, say_json, screen
from barkspider.core.errors import UsageError

_SHOWN = 50


def sites(
    job: Annotated[Path, typer.Argument(help="The folder of a crawl, running or not, with frontier = site.")],
    state: Annotated[
        str, typer.Option(help="Only those to_crawl, being_crawled, crawled or left; several with commas.")
    ] = "",
    like: Annotated[str, typer.Option(metavar="TEXT", help="Only those with this in their names.")] = "",
    most: Annotated[int, typer.Option(min=0, help="List so many; 0 means all.")] = _SHOWN,
    free: Annotated[
        str, typer.Option(metavar="NAME", help="Take this site away from the process that has it.")
    ] = "",
    free_ended: Annotated[
        bool, typer.Option("--free-ended", help="Take all sites away whose leases are over.")
    ] = False,
    repeat: Annotated[
        str, typer.Option(metavar="NAME", help="Let this site be crawled once more, all of it.")
    ] = "",
    remove: Annotated[str, typer.Option(metavar="NAME", help="Leave this site alone from now on.")] = "",
    trust: TrustSettings = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """List the sites of a crawl, free them, repeat them and remove them; a crawl that runs sees it with its next check-out.

    Example: barkspider sites jobs/archive --state left

    Example: barkspider sites jobs/archive --repeat www.example.org
    """
    from barkspider.engine.folder import check_job
    from barkspider.engine.trust import take_settings
    from barkspider.engine.visits import SITES, open_registry
    from barkspider.sites import State
    from barkspider.storage.env import Env

    names = {each.name.lower(): each for each in State}
    chosen = [name.strip() for name in state.split(",") if name.strip()]
    if unknown := [name for name in chosen if name not in names]:
        raise UsageError(f"there is no state {unknown[0]!r}; there are {', '.join(names)}")
    check_job(job)
    settings, _ = take_settings(Env(), job, [], trust)
    if settings.frontier != "site":
        raise UsageError(f"{job} does not go site by site: it was begun with frontier = {settings.frontier}")
    if not settings.parallel.database and not (job / SITES).is_file():
        raise UsageError(f"{job} has no sites yet: `barkspider resume {job}` begins")
    registry = open_registry(settings, job)
    try:
        done = _change(registry, free, free_ended, repeat, remove)
        counts = registry.counts()
        found = registry.sites([names[name] for name in chosen], like, most)
    finally:
        registry.close()
    if json_:
        say_json({"job": str(job), "changed": done, "counts": counts, "sites": found})
        return 0
    for what, count in done.items():
        say(f"{what}: {count:,}")
    _show(counts, found, most)
    return 0


def _change(registry: Any, free: str, free_ended: bool, repeat: str, remove: str) -> dict[str, int]:
    """Do what was asked for; how many sites each concerned."""
    done = {}
    for what, name, change in (
        ("freed", free, registry.free),
        ("to be crawled again", repeat, registry.repeat),
        ("removed", remove, registry.remove),
    ):
        if name:
            done[what] = int(change(name))
            if not done[what]:
                raise UsageError(f"{name} is no site of this crawl that can be {what}")
    if free_ended:
        done["freed"] = done.get("freed", 0) + registry.free()
    return done


def _show(counts: dict[str, int], found: list[dict[str, Any]], most: int) -> None:
    from rich.table import Table

    total = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    say(f"sites: {total or 'none'}")
    if not found:
        return
    table = Table("site", "state", "visits", "pages", "failed", "refused", "owner, or reason")
    for each in found:
        state = each["state"].replace("_", " ") + (", lease over" if each["over"] else "")
        numbers = (f"{each[name]:,}" for name in ("visits", "pages", "failed", "refused"))
        table.add_row(each["name"], state, *numbers, each["owner"] or each["reason"])
    screen().print(table)
    if most and len(found) == most:
        say(f"the first {most:,}; --most 0 lists all")
