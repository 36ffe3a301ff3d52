"""A crawl as one call that blocks: what `barkspider.crawl` is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop

from barkspider.core.errors import UsageError
from barkspider.core.settings import Settings
from barkspider.engine.folder import DIVISION
from barkspider.engine.job import Job
from barkspider.engine.loop import Crawl
from barkspider.engine.preflight import canonical_seeds, check_hosts
from barkspider.engine.statistics import Statistics
from barkspider.storage.env import Env

_SEVERAL = "a call crawls in this process alone; for several processes run `barkspider {}`"


def crawl(seeds: str | Sequence[str], folder: Path | str, settings: Settings | None = None) -> Statistics:
    """Crawl from seeds into a new job folder and return what was done. Blocks until the crawl ends.

    Raises `UsageError` for a seed, setting or folder that cannot be used, `StorageError` when the disk
    refuses. README.md shows a call.
    """
    chosen = settings or Settings()
    if chosen.parallel.processes > 1:
        raise UsageError(_SEVERAL.format("crawl --processes"))
    starts = canonical_seeds(chosen, ((seed, "") for seed in ([seeds] if isinstance(seeds, str) else seeds)))

    async def run() -> Statistics:
        await check_hosts(chosen, starts)
        return await _run(Job.create(Path(folder), chosen, starts, Env()))

    return _blocking(run)


def resume(folder: Path | str, options: Sequence[str] = (), *, trust_settings: bool = False) -> Statistics:
    """Go on with a job that was stopped or killed, and return what was done. Blocks until the crawl ends.

    `options` change settings, as `a.b=c`. Settings that another wrote load no code or files, and open no networks, unless
    they are to be trusted. Raises `UsageError` for a folder or setting that cannot be used.
    """

    if (Path(folder) / DIVISION).is_file():
        raise UsageError(_SEVERAL.format("resume"))

    async def run() -> Statistics:
        return await _run(Job.open(Path(folder), Env(), options, trust=trust_settings))

    return _blocking(run)


def _blocking(run: Callable[[], Coroutine[Any, Any, Statistics]]) -> Statistics:
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise UsageError("barkspider runs a loop of its own: call it outside of a running event loop")
    return uvloop.run(run())


async def _run(job: Job) -> Statistics:
    try:
        crawl = Crawl.open(job)
        statistics = await crawl.run()
    finally:
        job.close()
    if crawl.fault is not None:
        raise crawl.fault
    return statistics
