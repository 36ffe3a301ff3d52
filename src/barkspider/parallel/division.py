"""A job of parts on disk, and what each part gets of what is meant for the whole.

JOB/
  job.toml         how the crawl is divided; replaced only by `resize`
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
from barkspider.frontier.batches import inbox
from barkspider.frontier.ownership import freeze
from barkspider.parallel.frozen import Frozen
from barkspider.storage.env import Env
from barkspider.url import Domains, split

_FORMAT, _RESIZED = 1, 2  # of job.toml; the second has folders of earlier parts
LEAST_MEMORY = 16_000_000  # of a part, as of any crawl
PARTITION = "domain"
_DIVISION = ("partition", "mode", "processes")
_NOTHING = Frozen()


def create_job(
    path: Path, settings: Settings, seeds: Sequence[str], env: Env, given: Frozen = _NOTHING
) -> Job:
    """Make a new job, of parts if there are to be several; these come before the settings of the whole, which make it one."""

    def divide(settings: Settings) -> None:
        replicas = given.rows(settings, seeds)
        for part, folder in enumerate(folders(path, settings.parallel.processes)):
            Job.create(folder, share(settings, part), seeds, env).close()
            if given != _NOTHING:
                freeze(env, folder, replicas, given.weights)
            env.make_folder(inbox(folder, part))
        write_division(env, path, settings)

    return Job.create(path, settings, seeds, env, divide if settings.parallel.processes > 1 else None)


def write_division(
    env: Env, path: Path, settings: Settings, generation: int = 0, earlier: Sequence[str] = ()
) -> None:
    """Replace job.toml, in one step: from now on the job has these parts. `earlier` are the folders of those before."""
    about = {
        "format": _RESIZED if generation else _FORMAT,
        **{name: getattr(settings.parallel, name) for name in _DIVISION},
        "seed": settings.seed,
    }
    if generation:
        about |= {"generation": generation, "earlier": list(earlier)}
    env.write_whole(path / DIVISION, tomli_w.dumps(about).encode())


def check_division(job: Job) -> None:
    """Raise `JobError` if what job.toml says is not what the settings of the job say."""
    about = read_division(job.path)
    if about.get("format") not in (_FORMAT, _RESIZED):
        raise JobError(f"{job.path} was begun by a newer barkspider: go on with that one")
    wanted = {name: getattr(job.settings.parallel, name) for name in _DIVISION} | {"seed": job.settings.seed}
    if wanted != {name: about.get(name) for name in wanted}:
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
    processes, count = settings.parallel.processes, len(here(settings))
    pages, more = divmod(settings.limits.pages, processes)
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
        limits=replace(
            limits, pages=pages + (part < more), bytes=0, time=0.0
        ),  # the supervisor sees to these two
    )


def here(settings: Settings) -> list[int]:
    """The numbers of the parts that run on this machine.

    >>> from barkspider.core.load import load_settings
    >>> here(load_settings(options=["parallel.processes=3"])), here(load_settings(options=["parallel.here=2,0"]))
    ([0, 1, 2], [0, 2])
    """
    return sorted(set(settings.parallel.here)) or list(range(settings.parallel.processes))


def check_share(settings: Settings) -> None:
    """Raise `SettingsError` where there is too little of something for so many processes."""
    count = len(here(settings))
    if here(settings)[-1] >= settings.parallel.processes:
        raise SettingsError(
            f"parallel.here names part {here(settings)[-1]}, and there are 0 to {settings.parallel.processes - 1}"
        )
    if settings.memory // count < LEAST_MEMORY:
        raise SettingsError(
            f"memory is {settings.memory // 1_000_000} MB for {count:,} processes; each needs 16 MB: give more, or fewer processes"
        )
    if settings.budget.reputation == "supporters" and settings.parallel.partition != PARTITION:
        raise SettingsError(
            "budget.reputation = supporters is for crawls that are divided by domain: leave parallel.partition at domain, or "
            "the reputation at indegree"
        )
    if 0 < settings.limits.pages < count:
        raise SettingsError(
            f"limits.pages is {settings.limits.pages} for {count:,} processes, which need one each: allow more, or use fewer processes"
        )


def is_one_domain(settings: Settings, seeds: Iterable[str]) -> bool:
    """Whether all seeds, and with them all pages in scope, are of one domain: then one process has all of them, if domains
    are what is divided."""
    domains = Domains(settings.url.private_suffixes)
    if settings.scope.level == "web" or settings.parallel.partition != "domain":
        return False
    return len({domains.pay_level(split(seed).host) for seed in seeds}) == 1


def folders(path: Path, count: int) -> list[Path]:
    """The folders of so many parts in a folder.

    >>> [folder.name for folder in folders(Path("jobs/web"), 2)]
    ['part-0000', 'part-0001']
    """
    return [path / f"part-{part:04d}" for part in range(count)]
