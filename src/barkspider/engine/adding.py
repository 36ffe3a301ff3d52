"""Giving URLs to a job in whose folder no crawl runs: they are written to its journal, for the next run to take."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import UsageError
from barkspider.core.events import Ruled, Seeds
from barkspider.core.settings import Settings
from barkspider.engine.folder import DIVISION, part_folders
from barkspider.engine.harvest import Harvest
from barkspider.engine.job import Job
from barkspider.engine.ledger import Ledger
from barkspider.engine.links import LinkMaker
from barkspider.frontier.ownership import frozen
from barkspider.storage.env import Env


def add_to_stopped(
    folder: Path, seeds: Sequence[str], again: Collection[str] = (), *, trust: bool = False
) -> None:
    """Give further seeds, canonical URLs, to a job; `resume` begins with them. Those in `again` are known to it."""
    # Every part of a job is given all of them: for its scope, and to take those that are its own.
    for path in dict.fromkeys((folder, *part_folders(folder))):
        job = Job.open(path, Env(), trust=trust, part=path != folder)
        try:
            job.add_seeds(seeds)
            if not (path / DIVISION).is_file():
                write_seeds(job, lambda links: [links.more_seeds(seeds, again)])
        finally:
            job.close()


def check_again(folder: Path, settings: Settings) -> None:
    """Raise `UsageError` for a job in which single pages are not fetched again."""
    if settings.frontier == "site":
        raise UsageError(
            f"{folder} goes site by site, and fetches sites again as a whole: `barkspider sites {folder} --repeat NAME`"
        )


def write_seeds(job: Job, make: Callable[[LinkMaker], Iterable[UrlBatch]]) -> None:
    """Write batches of URLs to the journal of a job that is held, each as soon as it is made."""
    write_outcomes(job, lambda links: map(Seeds, make(links)))


def write_outcomes(job: Job, make: Callable[[LinkMaker], Iterable[Seeds | Ruled]]) -> None:
    """Write what people say to the journal of a job that is held, each as soon as it is made."""
    ledger = Ledger(job.env, job.path)
    ledger.read_to_end()  # the journal is written to behind its last record
    links = LinkMaker(job.settings, job.seeds(), time.time)
    # A job that was killed before its first record has not taken the seeds that it was made with.
    batches = [UrlBatch.join([links.seeds(), frozen(job.env, job.path)[0]])] if ledger.is_new else []
    for outcome in chain(map(Seeds, batches), make(links)):
        ledger.write(Harvest(time.time(), [outcome], tally=ledger.tally))
    ledger.close()
