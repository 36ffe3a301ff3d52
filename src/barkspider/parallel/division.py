"""A job of parts on disk, and what each part gets of what is meant for the whole.

JOB/
  job.toml         how the crawl is divided: what never changes
  settings.toml    the settings of the whole
  seeds.txt        what the user gave
  part-0000/ …     a job each, of the shape that a job of one process has
  mail/            batches on their way, a folder for each part
  turns            whose turn it is at which server
  log.jsonl, job.lock, control.sock   the supervisor's
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import tomli_w

from barkspider.core.errors import JobError, SettingsError
from barkspider.core.settings import Settings
from barkspider.engine.folder import DIVISION, read_division
from barkspider.engine.job import Job
from barkspider.frontier.exchange import inbox
from barkspider.url import Domains, split

_FORMAT = 1
LEAST_MEMORY = 16_000_000  # of a part, as of any crawl
_PARTITION = "domain"


def create_parts(job: Job, seeds: Sequence[str]) -> None:
    """Make the parts of a new job; it is a job of parts when the last file, job.toml, is there."""
    env, settings = job.env, job.settings
    for part, folder in enumerate(_folders(job.path, settings.parallel.processes)):
        Job.create(folder, share(settings, part), seeds, env).close()
        env.make_folder(inbox(folder, part))
    about = {
        "format": _FORMAT,
        "partition": _PARTITION,
        "mode": settings.parallel.mode,
        "processes": settings.parallel.processes,
        "seed": settings.seed,
    }
    env.write_whole(job.path / DIVISION, tomli_w.dumps(about).encode())


def check_division(job: Job) -> None:
    """Raise `JobError` if what job.toml says is not what the settings of the job say."""
    about = read_division(job.path)
    if about.get("format") != _FORMAT or about.get("partition") != _PARTITION:
        raise JobError(f"{job.path} was begun by a newer barkspider: go on with that one")
    parallel, there = job.settings.parallel, [about.get(name) for name in ("mode", "processes", "seed")]
    if there != [parallel.mode, parallel.processes, job.settings.seed]:
        raise JobError(
            f"{job.path / DIVISION} and settings.toml do not say the same of the division of the crawl"
        )


def share(settings: Settings, part: int) -> Settings:
    """The settings of a part: memory, disk, requests, bandwidth and limits are those of the whole, and shared out.

    >>> from barkspider.core.load import load_settings
    >>> whole = load_settings(options=["parallel.processes=4", "limits.pages=10", "memory=2GB"])
    >>> [share(whole, part).limits.pages for part in range(4)], share(whole, 0).memory
    ([3, 3, 2, 2], 500000000)
    """
    count = settings.parallel.processes
    pages, more = divmod(settings.limits.pages, count)
    fetch, limits = settings.fetch, settings.limits
    return replace(
        settings,
        memory=max(settings.memory // count, LEAST_MEMORY),
        disk=settings.disk // count,
        parallel=replace(settings.parallel, part=part),
        cookies=replace(settings.cookies, memory=max(settings.cookies.memory // count, 1000)),
        fetch=replace(
            fetch,
            in_flight=max(fetch.in_flight // count, 1),
            bandwidth=fetch.bandwidth // count,
            idle_connections=fetch.idle_connections // count,
        ),
        limits=replace(limits, pages=pages + (part < more), bytes=limits.bytes // count, time=0.0),
    )


def check_share(settings: Settings) -> None:
    """Raise `SettingsError` where there is too little of something for so many processes."""
    count = settings.parallel.processes
    if settings.memory // count < LEAST_MEMORY:
        raise SettingsError(
            f"memory is {settings.memory // 1_000_000} MB for {count:,} processes; each needs 16 MB: give more, or fewer processes"
        )
    if settings.budget.reputation == "supporters":
        raise SettingsError(
            "budget.reputation = supporters ranks the graph of one process: crawl with one, or leave it at indegree"
        )
    if 0 < settings.limits.pages < count:
        raise SettingsError(
            f"limits.pages is {settings.limits.pages} for {count:,} processes, which need one each: allow more, or use fewer processes"
        )


def is_one_domain(settings: Settings, seeds: Iterable[str]) -> bool:
    """Whether all seeds, and with them all pages in scope, are of one domain: then one process has all of them."""
    domains = Domains(settings.url.private_suffixes)
    return settings.scope.level != "web" and len({domains.pay_level(split(seed).host) for seed in seeds}) == 1


def _folders(path: Path, count: int) -> list[Path]:
    return [path / f"part-{part:04d}" for part in range(count)]
