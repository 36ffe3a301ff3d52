"""The loop: ask the frontier what to do, do it, tell it what happened.

    frontier.step ─► instructions ─► fetch ─► reading (archive, links) ─► outcomes ─► frontier.step

Only this room knows the order of the stages. Everything here runs on one asyncio loop.
"""

from __future__ import annotations

import asyncio
import resource
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import uvloop

from barkspider.archive import ArchiveWriter
from barkspider.core.clock import Clock, SystemClock
from barkspider.core.errors import StorageError, UsageError
from barkspider.core.events import (
    FetchPage,
    FetchRobots,
    Frontier,
    HostResolved,
    Instruction,
    Outcome,
    PageFetched,
    ResolveHost,
    RobotsFetched,
    Seeds,
)
from barkspider.core.settings import Fetch, Settings
from barkspider.engine.job import Job
from barkspider.engine.links import LinkMaker
from barkspider.engine.preflight import canonical_seeds, check_hosts
from barkspider.engine.reading import Reader
from barkspider.engine.statistics import Statistics, Tally
from barkspider.fetch import Fetcher, user_agent
from barkspider.frontier import Irlbot, Sydney
from barkspider.storage.env import Env

_FLUSH_INTERVAL = 1.0  # seconds


def crawl(seeds: str | Sequence[str], folder: Path | str, settings: Settings | None = None) -> Statistics:
    """Crawl from seeds into a new job folder and return what was done. Blocks until the crawl ends.

    Raises `UsageError` for a seed, setting or folder that cannot be used, `StorageError` when the disk
    refuses. README.md shows a call.
    """
    chosen = settings or Settings()
    starts = canonical_seeds(chosen, ((seed, "") for seed in ([seeds] if isinstance(seeds, str) else seeds)))
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise UsageError("barkspider.crawl runs a loop of its own: call it outside of a running event loop")

    async def run() -> Statistics:
        await check_hosts(chosen, starts)
        job = Job.create(Path(folder), chosen, Env())
        try:
            crawl = Crawl(job, starts)
            statistics = await crawl.run()
        finally:
            job.close()
        if crawl.fault is not None:
            raise crawl.fault
        return statistics

    return uvloop.run(run())


class Crawl:
    """One crawl into one job, on the running loop.

    `run` returns when nothing is left, a limit is reached, or `stop` was called; it can run once.
    """

    def __init__(self, job: Job, seeds: Sequence[str], clock: Clock | None = None) -> None:
        settings = job.settings
        self._job, self._clock = job, clock or SystemClock()
        self._tally = Tally()
        self._links = LinkMaker(settings, seeds, self._clock.wall)
        chosen = Irlbot if settings.frontier == "irlbot" else Sydney
        self._frontier: Frontier = chosen(settings, job.env, job.queues)
        self._fetcher = Fetcher(settings)
        info = {
            "software": user_agent(settings.agent),
            "robots": "obey" if settings.politeness.obey_robots else "ignore",
        }
        self._archive = ArchiveWriter(job.env, job.archive, settings, info)
        self._reader = Reader(settings, self._links, self._archive, self._clock, self._tally)
        self._outcomes: list[Outcome] = [Seeds(self._links.seeds())]
        self._news = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()
        self.fault: StorageError | None = None  # what the disk refused, if that ended the crawl
        self._stopped_by = ""
        self._started = self._clock.monotonic()

    async def run(self) -> Statistics:
        """Crawl to the end."""
        _allow_open_files(self._job.settings.fetch)
        self._job.log(self._clock.wall(), "started", agent=user_agent(self._job.settings.agent))
        limit = self._job.settings.limits.time
        loop = asyncio.get_running_loop()
        timer = loop.call_later(limit, self.stop, "time") if limit else None
        self._flush()
        try:
            await self._loop()
        finally:
            if timer is not None:
                timer.cancel()
            self._flusher.cancel()
            await self._close()
        return self._final

    def stop(self, reason: str = "request") -> None:
        """Start nothing new; `run` returns when what is in flight has ended, or after a moment."""
        if not self._stopped_by:
            self._stopped_by = reason
            self._frontier.hold()
            asyncio.get_running_loop().call_later(self._job.settings.limits.grace, self.abort)
            self._news.set()

    def _flush(self) -> None:
        """Hand the archive to the operating system now and then: a killed crawl loses a second of it."""
        try:
            self._archive.tick(self._clock.monotonic())
        except StorageError as error:
            self.fault = error
            self.stop("disk")
        self._flusher = asyncio.get_running_loop().call_later(_FLUSH_INTERVAL, self._flush)

    def abort(self) -> None:
        """Give up what is in flight; `run` returns at once."""
        for task in self._under_way:
            task.cancel()

    def statistics(self) -> Statistics:
        """What was done so far."""
        frontier = self._frontier
        return self._tally.statistics(
            self._clock.monotonic() - self._started,
            frontier.counters,
            frontier.gauges(),
            self._links.refused,
            self._stopped_by,
        )

    async def _loop(self) -> None:
        while True:
            outcomes, self._outcomes = self._outcomes, []
            instructions, wake = self._frontier.step(self._clock.monotonic(), outcomes)
            for instruction in instructions:
                task = asyncio.create_task(self._carry_out(instruction))
                self._under_way.add(task)
                task.add_done_callback(self._task_done)
            if self._frontier.finished() or (self._stopped_by and not self._under_way):
                limit = self._job.settings.limits.pages
                enough = 0 < limit <= self._frontier.counters.pages
                self._stopped_by = self._stopped_by or ("pages" if enough else "done")
                return
            await self._wait(wake)

    async def _wait(self, wake: float) -> None:
        """Until there is an outcome or the frontier wants to be called."""
        if not self._outcomes:
            pause = max(wake - self._clock.monotonic(), 0.0)
            try:
                async with asyncio.timeout(None if pause == float("inf") else pause):
                    await self._news.wait()
            except TimeoutError:
                pass
        else:
            await asyncio.sleep(0)
        self._news.clear()

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._news.set()

    async def _carry_out(self, instruction: Instruction) -> None:
        """Do what an instruction says; whatever happens, there is one outcome."""
        try:
            outcome = await self._outcome(instruction)
        except StorageError as error:
            self.fault = error
            self.stop("disk")
            return
        except Exception:  # one bad page must not end the crawl; the log keeps what happened
            self._job.log(
                self._clock.wall(),
                "internal_error",
                instruction=repr(instruction),
                trace=traceback.format_exc(),
            )
            outcome = _internal_error(instruction)
        if outcome is not None:
            self._outcomes.append(outcome)

    async def _outcome(self, instruction: Instruction) -> Outcome | None:
        """What came of it; None for a page that came when there were enough."""
        if isinstance(instruction, ResolveHost):
            found = await self._fetcher.resolve(instruction.host)
            if found.error:
                self._archive.note_error(self._clock.wall(), "dns", found.error, instruction.host)
            return HostResolved(instruction, found.addresses, found.error, found.ttl)
        if isinstance(instruction, FetchRobots):
            response = await self._fetcher.fetch(instruction.url, instruction.address)
            return self._reader.robots(instruction, response)
        url = instruction.row.url.decode()
        response = await self._fetcher.fetch(url, instruction.address, any_type=False)
        limit = self._job.settings.limits.pages
        if 0 < limit <= self._tally.pages:
            return None
        return self._reader.page(instruction, response)

    async def _close(self) -> None:
        self.abort()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._final = self.statistics()
        await self._fetcher.aclose()
        for close in (self._archive.close, self._frontier.close):
            try:
                close()
            except StorageError as error:
                self.fault = self.fault or error
        with suppress(StorageError):  # a full disk may have no room for this either
            why = {"error": str(self.fault)} if self.fault else {}
            drums = {"drum": self._frontier.drums()}
            self._job.log(self._clock.wall(), "ended", **self._final.as_dict(), **drums, **why)


def _allow_open_files(fetch: Fetch) -> None:
    """Ask the system for as many open files as there may be connections, and some for everything else."""
    wanted = fetch.in_flight + fetch.idle_connections + 256
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _internal_error(instruction: Instruction) -> Outcome:
    if isinstance(instruction, ResolveHost):
        return HostResolved(instruction, (), "internal_error")
    if isinstance(instruction, FetchRobots):
        return RobotsFetched(instruction, 0)
    assert isinstance(instruction, FetchPage)
    return PageFetched(instruction, failure="internal_error")
