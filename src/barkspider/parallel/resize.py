"""A stopped job for another number of processes: a new generation of parts, made of what the old one holds.

    old parts, one after the other: recovered, a last checkpoint ─ all they hold, by slots ─► new parts ─► checkpoints
    all of these ─► the store, if there is one
    job.toml, replaced in one step ─► the job has the new parts; of the old ones only the archives stay

Until job.toml is replaced the job is the old one, which was only brought to checkpoints; from then on it is the new one. So a
kill at any moment leaves the one or the other, and what it leaves beside is removed by whoever comes next (`generations`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from barkspider.core.errors import JobError, UsageError
from barkspider.core.load import replace
from barkspider.core.settings import Settings
from barkspider.engine.checkpoint import Checkpoint
from barkspider.engine.copying import Copier, copy_about, forget
from barkspider.engine.dividing import Counted, NewPart, completed
from barkspider.engine.folder import DIVISION, LOCK, archive_folders, part_folders, parts_in, read_division
from barkspider.engine.job import Job
from barkspider.engine.recrawl import ASKED, LAST, read_asked, read_last
from barkspider.engine.trust import write_settings
from barkspider.frontier.batches import NAME, batch_name, cookies_of, inbox
from barkspider.frontier.dividing import Dividing
from barkspider.frontier.ownership import APART, FROZEN
from barkspider.parallel.division import check_share, folders, here, share, write_division
from barkspider.parallel.generations import tidy
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import MANIFEST, read_manifest
from barkspider.url.partition import SLOT_OF


async def resize(job: Job, processes: int, tell: Callable[[int, int], None] = lambda *_: None) -> None:
    """Divide a job, held by this process, among another number of them. `tell` is given how much was moved, of how much.

    Raises `UsageError` where that cannot be, `JobError` while a part is in use; then nothing is changed.
    """
    env, path = job.env, job.path
    tidy(job)
    settings = _checked(job, processes)
    old, earlier = part_folders(path), archive_folders(path)
    generation = (read_division(path).get("generation", 0) if (path / DIVISION).is_file() else 0) + 1
    home = parts_in(path, {"generation": generation})
    before = job.settings
    try:
        await _build(job, settings, old, earlier, home, tell)
        _copy(env, job, settings, old, home)
    except BaseException:
        job.settings = before
        env.remove_tree(home)
        raise
    write_division(env, path, settings, generation, [str(folder.relative_to(path)) for folder in earlier])
    write_settings(env, path, settings)  # if that is not reached, whoever opens the job does it
    job.settings = settings
    job.log(time.time(), "resized", processes=processes, before=len(old))
    if settings.store.url:
        copy_about(env, path, settings.store.url)
    tidy(job)
    for folder in earlier if settings.store.url else ():  # of these only the archives stay in the store, too
        Copier(env, folder, settings).copy()


def _checked(job: Job, processes: int) -> Settings:
    """The settings of the resized job; raises what is wrong with it."""
    path, old, parallel = job.path, part_folders(job.path), job.settings.parallel
    if job.settings.frontier == "site":
        raise UsageError(f"{path} goes site by site: it is not divided, and keeps the processes that it has")
    about = read_division(path) if (path / DIVISION).is_file() else {}
    partition = about.get("partition", parallel.partition)
    if partition not in SLOT_OF:
        raise UsageError(
            f"{path} is divided by {partition}, which has no slots to move: only a crawl that is divided by "
            f"{', '.join(SLOT_OF)} can be resized"
        )
    if parallel.mode in APART and len(old) > 1:
        raise UsageError(
            f"{path} is crawled in {parallel.mode} mode, in which a page has no owner who could keep it: only a crawl in "
            "exchange or firewall mode can be resized"
        )
    if len(here(job.settings)) < len(old):
        raise UsageError(
            f"{path} has parts that are crawled elsewhere: bring all of them here, and say so with "
            f"`barkspider resume {path} --set parallel.here=`"
        )
    if job.settings.budget.reputation == "supporters":
        raise UsageError(
            f"{path} goes by supporters, which one process ranks for all: such a crawl cannot be resized; leave "
            "budget.reputation at indegree in one that may have to be"
        )
    if processes == len(old):
        raise UsageError(f"{path} has {processes} process{'es' if processes > 1 else ''} already")
    settings = replace(job.settings, {"parallel.processes": processes})
    check_share(settings)
    # Those that a killed supervisor has left behind are about to end.
    for folder in old if old != [path] else ():
        lock = job.env.lock(folder / LOCK)
        if lock is None:
            raise JobError(f"{folder} is in use by another process; wait for it, or end it")
        lock.release()
    return settings


async def _build(
    job: Job,
    settings: Settings,
    old: Sequence[Path],
    earlier: Sequence[Path],
    home: Path,
    tell: Callable[[int, int], None],
) -> None:
    """Make the new parts, with checkpoints of their own, in a folder that nobody knows of yet."""
    env, new = job.env, list[NewPart]()
    expected, moved = sum(_rows(env, folder) for folder in old), 0

    def tell_of(rows: int) -> None:
        nonlocal moved
        moved += rows
        tell(min(moved, expected), expected)

    with ExitStack() as stack:
        for part, folder in enumerate(folders(home, settings.parallel.processes)):
            new.append(NewPart(folder, share(settings, part), job.seeds(), env, earlier))
            stack.callback(new[-1].close)
            env.make_folder(inbox(folder, part))
            if FROZEN in env.list(old[0]):  # what is replicated stays so
                env.write_whole(folder / FROZEN, env.read(old[0] / FROZEN))
        dividing, counted = Dividing([each.frontier for each in new], settings, tell_of), Counted()
        posts = []
        for part, folder in enumerate(old):
            # Its own may be of another's making; those of the whole have been looked at.
            if folder != job.path:
                write_settings(env, folder, share(job.settings, part))
            own = job if folder == job.path else Job.open(folder, env, trust=True, part=True)
            try:
                async with completed(own) as parts:
                    counted.add(parts)
                    dividing.take(parts.frontier)
                    exchange = parts.frontier.exchange
                    if exchange is not None:
                        posts.append((list(exchange.sealed), list(exchange.applied)))
            finally:
                if own is not job:
                    own.close()
        dividing.finish()
        for path in _under_way(old, posts):
            counted.extend(dividing.deliver(env, path))
            counted.redirected += cookies_of(env, path)
        for each in new:
            each.commit(counted)
        stack.pop_all()
    _hand_on_orders(env, old, folders(home, settings.parallel.processes))
    env.sync_folder(home)


def _copy(env: Env, job: Job, settings: Settings, old: Sequence[Path], home: Path) -> None:
    """Copy the old parts as they were brought to checkpoints, and the new ones: of both the store has all before its job.toml
    is replaced."""
    if not settings.store.url:
        return
    for folder in old:
        Copier(env, folder, job.settings).copy()
    for folder in folders(home, settings.parallel.processes):
        forget(settings.store.url, folder)  # what was left by one that was killed
        Copier(env, folder, settings).copy()


def _rows(env: Env, folder: Path) -> int:
    """About how much a part holds: what its DRUMs know, and what waits."""
    if MANIFEST not in env.list(folder):
        return 0
    known = 0
    for state in read_manifest(env, folder)[1].values():
        known += sum(segment[2] for segment in state.get("segments", ()))
    checkpoint = Checkpoint.read(env, folder)
    counters = checkpoint.counters(env, folder) if checkpoint else None
    return known + (counters.deferred + counters.queued + counters.in_flight if counters else 0)


def _under_way(old: Sequence[Path], posts: Sequence[tuple[list[int], list[int]]]) -> Iterator[Path]:
    """The batches that one old part has sent and another not taken in, where their senders keep them."""
    for sender, (sealed, _) in enumerate(posts):
        for to, last in enumerate(sealed):
            for number in range(posts[to][1][sender] + 1, last + 1):
                yield old[sender] / NAME / batch_name(to, number)


def _hand_on_orders(env: Env, old: Sequence[Path], new: Sequence[Path]) -> None:
    """From before when pages were asked for again: the latest that any part knows of, to all; and the pages on which a budget
    was spent."""
    latest: dict[str, float] = {}
    spent = [read_asked(env, folder) for folder in old if ASKED in env.list(folder)]
    for folder in new if spent else ():
        env.write_whole(folder / ASKED, np.concatenate(spent).tobytes())
    for folder in old:
        if LAST in env.list(folder):
            for name, before in read_last(env, folder).items():
                latest[name] = max(before, latest.get(name, 0.0))
    for folder in new if latest else ():
        env.write_whole(folder / LAST, json.dumps(latest).encode())
