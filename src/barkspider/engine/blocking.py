"""A crawl as one call: what `barkspider.crawl`, `resume`, `start` and `stream` are."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import uvloop

from barkspider.core.errors import UsageError
from barkspider.core.settings import Settings
from barkspider.engine.folder import DIVISION
from barkspider.engine.hooks import Hooks, OnEvent, OnLink, OnPage
from barkspider.engine.job import Job
from barkspider.engine.loop import Crawl
from barkspider.engine.pages import CrawledPage
from barkspider.engine.preflight import canonical_seeds, check_hosts
from barkspider.engine.running import RunningCrawl
from barkspider.engine.statistics import Statistics
from barkspider.storage.env import Env

_SEVERAL = "a call crawls in this process alone; for several processes run `barkspider {}`, and read `open_job(…).changes()`"
_Opening = Callable[[], Awaitable[Job]]
_Result = TypeVar("_Result")


def crawl(
    seeds: str | Sequence[str],
    folder: Path | str,
    settings: Settings | None = None,
    *,
    on_page: OnPage | None = None,
    on_link: OnLink | None = None,
    on_event: OnEvent | None = None,
) -> Statistics:
    """Crawl from seeds into a new job folder and return what was done. Blocks until the crawl ends.

    `on_page`, `on_link` and `on_event` are called with each page once it is archived, with each link in scope, and with each
    event of the log, in this thread, one after the other; they may be `async`. One that raises is logged and counted
    (`hook_errors`), and the crawl goes on; one that is slow slows the crawl.

    Raises `UsageError` for a seed, setting or folder that cannot be used, `StorageError` when the disk
    refuses. README.md shows a call.
    """
    return _blocking(_new(seeds, Path(folder), settings), Hooks(on_page, on_link, on_event))


def resume(
    folder: Path | str,
    options: Sequence[str] = (),
    *,
    trust_settings: bool = False,
    on_page: OnPage | None = None,
    on_link: OnLink | None = None,
    on_event: OnEvent | None = None,
) -> Statistics:
    """Go on with a job that was stopped or killed, and return what was done. Blocks until the crawl ends.

    `options` change settings, as `a.b=c`. Settings that another wrote load no code or files, and open no networks, unless
    they are to be trusted. Functions are called as by `crawl`, with what comes from now on. Raises `UsageError` for a folder or
    setting that cannot be used.
    """
    return _blocking(_old(Path(folder), options, trust_settings), Hooks(on_page, on_link, on_event))


def start(seeds: str | Sequence[str], folder: Path | str, settings: Settings | None = None) -> RunningCrawl:
    """Begin a crawl in a thread of its own, to read its pages as they come, also on a running event loop:

    async with barkspider.start("https://example.org/", "jobs/example", settings) as crawl:
        async for page in crawl.pages():
            print(page.url, page.title)
    """
    return RunningCrawl(_new(seeds, Path(folder), settings))


def stream(
    seeds: str | Sequence[str], folder: Path | str | None = None, settings: Settings | None = None
) -> Iterator[CrawledPage]:
    """The pages of a new crawl, each as soon as it is archived; who reads slowly slows the crawl, who stops ends it.

    Without a folder the job is a temporary one, which goes with the iterator: read what you want of a page before that.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="barkspider-"))) / "job"
        running = stack.enter_context(start(seeds, folder, settings))
        yield from running


def _new(seeds: str | Sequence[str], folder: Path, settings: Settings | None) -> _Opening:
    chosen = settings or Settings()
    if chosen.parallel.processes > 1:
        raise UsageError(_SEVERAL.format("crawl --processes"))
    starts = canonical_seeds(chosen, ((seed, "") for seed in ([seeds] if isinstance(seeds, str) else seeds)))

    async def opening() -> Job:
        await check_hosts(chosen, starts)
        return Job.create(folder, chosen, starts, Env())

    return opening


def _old(folder: Path, options: Sequence[str], trust: bool) -> _Opening:
    if (folder / DIVISION).is_file():
        raise UsageError(_SEVERAL.format("resume"))

    async def opening() -> Job:
        return Job.open(folder, Env(), options, trust=trust)

    return opening


def _blocking(opening: _Opening, hooks: Hooks) -> Statistics:
    if hooks.wanted:
        return _aside(lambda: _followed(opening, hooks))
    return _aside(lambda: uvloop.run(_run(opening)))


def _aside(work: Callable[[], _Result]) -> _Result:
    """Do it here; in another thread where an event loop runs, such as that of a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, "crawl") as pool:
        return pool.submit(work).result()


def _followed(opening: _Opening, hooks: Hooks) -> Statistics:
    with RunningCrawl(opening, hooks.wanted) as running:
        hooks.follow(running)
        return running.wait()


async def _run(opening: _Opening) -> Statistics:
    job = await opening()
    try:
        crawl = Crawl.open(job)
        statistics = await crawl.run()
    finally:
        job.close()
    if crawl.fault is not None:
        raise crawl.fault
    return statistics
