"""`--ray`: the commands that start a crawl on a cluster, go on with it and give it URLs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import uvloop

from barkspider.cli.run import follow, summary
from barkspider.cli.seeds import given_seeds
from barkspider.cli.terminal import say, say_json, screen
from barkspider.core.errors import JobError, SettingsError, UsageError
from barkspider.core.load import change_settings
from barkspider.core.settings import Limits, Settings
from barkspider.engine import Job, Statistics, check_hosts
from barkspider.engine.copying import has_crawl, restore_job, without_pages
from barkspider.parallel.cluster.client import (
    ClusterCrawl,
    answer,
    begin,
    check_not_crawled,
    connect,
    find,
    go_on,
    stored_settings,
)
from barkspider.parallel.division import check_share
from barkspider.parallel.resize import resize
from barkspider.storage.env import Env
from barkspider.storage.store.remote import check_store


def crawl_on_cluster(
    address: str, settings: Settings, seeds: Sequence[str], folder: Path, as_json: bool, title: str
) -> Statistics:
    """Start a crawl on a cluster and show it to its end; it goes on without us."""
    if settings.parallel.processes < 2:
        raise SettingsError(
            "--ray divides a crawl: say among how many processes with --processes, 2 at least"
        )
    if settings.frontier == "site":
        raise SettingsError("--ray is for frontier = irlbot or sydney: leave it out with site")
    check_share(settings)
    connect(address)
    if settings.store.url:
        check_store(settings.store.url)
        if has_crawl(settings.store.url):
            raise JobError(
                f"{settings.store.url} has copies of a crawl: go on with it by `barkspider resume {folder} --ray {address} "
                f"--store {settings.store.url}`, or name another --store"
            )
    else:
        say("without --store the part of a node that is lost is lost with it", error=True)
    uvloop.run(check_hosts(settings, seeds))
    overseer = begin(folder, settings, list(seeds))
    return _follow(ClusterCrawl(folder, overseer, _warn, settings.limits), folder, as_json, title)


def resume_on_cluster(
    address: str, folder: Path, options: Sequence[str], store: str, as_json: bool
) -> Statistics:
    """Show a crawl that is on a cluster, or start it again there."""
    connect(address)
    if options and find(folder) is not None:
        raise SettingsError(f"{folder} is running: stop it before settings are changed")
    overseer, limits = go_on(folder), Limits()
    if overseer is None:
        settings = change_settings(stored_settings(folder, store), options)
        overseer, limits = begin(folder, settings, [], resumed=True), settings.limits
    return _follow(ClusterCrawl(folder, overseer, _warn, limits), folder, as_json, f"barkspider: {folder}")


def add_on_cluster(
    address: str, folder: Path, urls: Sequence[str], seeds: Path | None, strict: bool, again: bool
) -> int:
    """Give a crawl on a cluster further seeds; how many."""
    connect(address)
    starts = given_seeds(
        stored_settings(folder, "") if folder.is_dir() else Settings(), list(urls), seeds, strict
    )
    answer(folder, "add", urls=starts, again=starts if again else [])
    return len(starts)


def resize_on_cluster(
    address: str, folder: Path, processes: int, store: str, tell: Callable[[int, int], None]
) -> int:
    """Divide a crawl that was stopped among another number of processes: in a folder of this machine, from its store and back
    there; how many there were. The pages stay there."""
    connect(address)
    check_not_crawled(folder)
    settings = stored_settings(folder, store)
    url = settings.store.url
    if not url:
        raise UsageError(f"{folder} has no store, from which its parts could be divided anew")
    env, scratch = Env(), folder.absolute().with_name(f".{folder.name}.resize")
    env.remove_tree(scratch)
    try:
        restore_job(env, url, scratch, wanted=without_pages)
        held = Job.open(scratch, env, [f"store.url={url}"], trust=True)
        try:
            before = held.settings.parallel.processes
            uvloop.run(resize(held, processes, tell))
        finally:
            held.close()
    finally:
        env.remove_tree(scratch)
    return before


def _follow(crawl: ClusterCrawl, folder: Path, as_json: bool, title: str) -> Statistics:
    console = screen(error=as_json)
    statistics = uvloop.run(follow(crawl, title, console))
    if as_json:
        say_json({"job": str(folder), **statistics.as_dict()})
    else:
        console.print(summary(statistics, title))
    if crawl.fault is not None:
        raise crawl.fault
    return statistics


def _warn(line: str) -> None:
    say(line, error=True)
