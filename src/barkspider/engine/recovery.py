"""From the folder of a job to a crawl that can go on: everything at the last checkpoint, then what came in since.

    checkpoint ─► archive, frontier, cookies ─► each harvest of the journal: tables, cookies, frontier ─► a crawl

A job that is new takes the same way; it finds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from barkspider.archive import ArchiveWriter
from barkspider.core.clock import Clock, SteadyClock
from barkspider.core.events import CheckedOut, PageFetched, Received
from barkspider.core.records import Flag
from barkspider.engine.cookies import KeptCookies
from barkspider.engine.folder import earlier_folders, whole_of
from barkspider.engine.harvest import Harvest
from barkspider.engine.history import History
from barkspider.engine.job import Job
from barkspider.engine.ledger import Ledger
from barkspider.engine.links import LinkMaker
from barkspider.engine.statistics import Tally
from barkspider.engine.visits import seeded
from barkspider.engine.work import Worker
from barkspider.fetch import user_agent
from barkspider.frontier import Driver, open_frontier
from barkspider.frontier.batches import batch_name, inbox, scope_of
from barkspider.storage.store.manifest import restoring


@dataclass(frozen=True, slots=True)
class Components:
    """What a crawl consists of. `replayed` counts the outcomes that came in since the last checkpoint."""

    job: Job
    clock: Clock
    steady: SteadyClock
    tally: Tally
    ledger: Ledger
    links: LinkMaker
    archive: ArchiveWriter
    worker: Worker
    frontier: Driver
    cookies: KeptCookies
    history: History
    replayed: int


def open_components(job: Job, clock: Clock) -> Components:
    """Make the components of a crawl and bring them to where the job was; a moment for each minute since its checkpoint."""
    with restoring(job.path):
        return _open_components(job, clock)


def _open_components(job: Job, clock: Clock) -> Components:
    settings, tally, steady = job.settings, Tally(), SteadyClock(clock)
    ledger = Ledger(job.env, job.path)
    links = LinkMaker(settings, job.seeds(), clock.wall, tally.out_of_scope)
    info = {
        "software": user_agent(settings.agent),
        "robots": "obey" if settings.politeness.obey_robots else "ignore",
    }
    earlier = [folder / "archive" for folder in earlier_folders(job.path)]
    archive = ArchiveWriter(job.env, job.archive, settings, info, ledger.recover(job.archive), earlier)
    worker = Worker(job, links, archive, clock, tally)
    mail = inbox(job.path, settings.parallel.part)
    cookies = KeptCookies(job.env, job.path, worker.cookies, ledger.state(KeptCookies.name), mail)
    resumed = steady.now() if job.resumed else None
    frontier = open_frontier(
        settings, job.env, job.path, state=ledger.state, resumed=resumed, part=whole_of(job.path) != job.path
    )
    frontier.judge_scope_by(links.judge)
    for url in ledger.progress.extended:
        links.extend(url)
    replayed = 0
    for harvest in ledger.harvests():
        _extend_scope(job, links, harvest)
        cookies.replay(harvest)
        archive.add(harvest.batches, harvest.links)
        frontier.replay(harvest.time, harvest.outcomes)
        replayed += len(harvest.outcomes)
    worker.give_cookies()  # what the user has now counts more than what an earlier run was given
    tally.load(ledger.tally)
    tally.before = ledger.progress.seconds
    history = History(job.env, job.path, ledger.state(History.name))
    for structure in (*frontier.structures(), archive, cookies, history):
        ledger.add(structure)
    return Components(
        job, clock, steady, tally, ledger, links, archive, worker, frontier, cookies, history, replayed
    )


def _extend_scope(job: Job, links: LinkMaker, harvest: Harvest) -> None:
    """What seeds redirect to is in scope, as it was when they did, or when another process told of it."""
    for outcome in harvest.outcomes:
        if isinstance(outcome, Received):
            path = inbox(job.path, job.settings.parallel.part) / batch_name(outcome.sender, outcome.number)
            for url in scope_of(job.env, path):
                links.extend(url)
        if isinstance(outcome, CheckedOut):
            for url in seeded(outcome):
                links.extend(url)
        if isinstance(outcome, PageFetched) and outcome.redirect is not None:
            target = outcome.redirect.row
            if target.flags & Flag.SEED:
                links.extend(target.url.decode())
