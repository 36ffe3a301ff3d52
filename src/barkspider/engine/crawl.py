"""The loop: ask the frontier what to do, do it, tell it what happened.

    frontier.step ─► instructions ─► fetch ─► reading (archive, links) ─► journal ─► outcomes ─► frontier.step

Only this room knows the order of the stages. Everything here runs on one asyncio loop.
"""

from __future__ import annotations

import asyncio
import resource
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

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
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Fetch, Settings
from barkspider.engine.control import Control
from barkspider.engine.cookies import KeptCookies
from barkspider.engine.earlier import Earlier, EarlierPages
from barkspider.engine.job import Job
from barkspider.engine.ledger import Ledger
from barkspider.engine.links import LinkMaker
from barkspider.engine.outcomes import Entry
from barkspider.engine.preflight import canonical_seeds, check_hosts
from barkspider.engine.reading import Reader
from barkspider.engine.statistics import Statistics, Tally
from barkspider.fetch import Fetcher, Response, user_agent
from barkspider.frontier import Irlbot, Sydney
from barkspider.storage.env import Env

_Answer = TypeVar("_Answer", PageFetched, RobotsFetched)

_TICK = 1.0  # seconds
_ONLY_IF_CHANGED = int(Flag.AGAIN | Flag.REVISIT)  # whoever wants its other links needs the page


def crawl(seeds: str | Sequence[str], folder: Path | str, settings: Settings | None = None) -> Statistics:
    """Crawl from seeds into a new job folder and return what was done. Blocks until the crawl ends.

    Raises `UsageError` for a seed, setting or folder that cannot be used, `StorageError` when the disk
    refuses. README.md shows a call.
    """
    chosen = settings or Settings()
    starts = canonical_seeds(chosen, ((seed, "") for seed in ([seeds] if isinstance(seeds, str) else seeds)))

    async def run() -> Statistics:
        await check_hosts(chosen, starts)
        return await _run(Job.create(Path(folder), chosen, starts, Env()))

    return _blocking(run)


def resume(folder: Path | str, options: Sequence[str] = ()) -> Statistics:
    """Go on with a job that was stopped or killed, and return what was done. Blocks until the crawl ends.

    `options` change settings, as `a.b=c`. Raises `UsageError` for a folder or setting that cannot be used.
    """

    async def run() -> Statistics:
        return await _run(Job.open(Path(folder), Env(), options))

    return _blocking(run)


def _blocking(run: Callable[[], Coroutine[Any, Any, Statistics]]) -> Statistics:
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise UsageError("barkspider runs a loop of its own: call it outside of a running event loop")
    return uvloop.run(run())


async def _run(job: Job) -> Statistics:
    try:
        crawl = Crawl(job)
        statistics = await crawl.run()
    finally:
        job.close()
    if crawl.fault is not None:
        raise crawl.fault
    return statistics


class Crawl:
    """One crawl into one job, on the running loop: a new one, or one that goes on where it was.

    `run` returns when nothing is left, a limit is reached, or `stop` was called; it can run once.
    """

    def __init__(self, job: Job, clock: Clock | None = None) -> None:
        """Recovers a job that was killed, which takes a moment for each minute since its last checkpoint."""
        settings = job.settings
        self._job, self._clock = job, clock or SystemClock()
        # The frontier's time goes on across restarts, but does not jump when the clock is set.
        self._offset = self._clock.wall() - self._clock.monotonic()
        self._tally = Tally()
        self._ledger = Ledger(job.env, job.path)
        self._links = LinkMaker(settings, job.seeds(), self._clock.wall)
        self._fetcher = Fetcher(settings)
        jar, state = self._fetcher.cookies, self._ledger.state(KeptCookies.name)
        self._cookies = KeptCookies(job.env, job.path, jar, state)
        info = {
            "software": user_agent(settings.agent),
            "robots": "obey" if settings.politeness.obey_robots else "ignore",
        }
        recovered = self._ledger.recover(job.archive)
        self._archive = ArchiveWriter(job.env, job.archive, settings, info, recovered)
        self._earlier: EarlierPages | None = None  # made when the first page is fetched again
        self._reader = Reader(settings, self._links, self._archive, self._clock, self._tally)
        chosen = Irlbot if settings.frontier == "irlbot" else Sydney
        self._frontier: Frontier = chosen(
            settings,
            job.env,
            job.path,
            state=self._ledger.state,
            resumed=self._now() if job.resumed else None,
        )
        self._outcomes: list[Outcome] = []
        self._entries: list[Entry] = []
        self._news = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()
        self.fault: StorageError | None = None  # what the disk refused, if that ended the crawl
        self._stopped_by = ""
        self._pauses: set[str] = set()  # why nothing is given out
        self._started = self._clock.monotonic()
        self.replayed = self._recover()  # outcomes since the last checkpoint
        self._checkpoint_at = self._started + settings.checkpoint
        self._settling: asyncio.Task[None] | None = None

    def _recover(self) -> int:
        """Apply again what the journal has, and go on from there."""
        extra = self._ledger.extra
        self._tally.before = float(extra.get("seconds", 0.0))
        for url in extra.get("extended", []):
            self._links.extend(url)
        replayed = 0
        for entry in self._ledger.entries():
            outcome = entry.outcome
            links = None
            if isinstance(outcome, PageFetched):
                links = outcome.links
                if outcome.redirect is not None and outcome.redirect.row.flags & Flag.SEED:
                    self._links.extend(outcome.redirect.row.url.decode())
            if not isinstance(outcome, Seeds):
                self._cookies.replay(entry.time, outcome)
            self._archive.add_notes(entry.notes, links)
            self._frontier.replay(entry.time, outcome)
            replayed += 1
        if self._ledger.tally:
            self._tally.load(self._ledger.tally)
            self._links.refused = Counter(self._ledger.tally["out_of_scope"])
        for structure in (*self._frontier.structures(), self._archive, self._cookies):
            self._ledger.add(structure)
        if self._ledger.is_new:
            self._hand_in(Seeds(self._links.seeds()))
        elif replayed:
            self._ledger.commit(self._extra())
        return replayed

    async def run(self) -> Statistics:
        """Crawl to the end."""
        _allow_open_files(self._job.settings.fetch)
        event = {"replayed": self.replayed} if self._job.resumed else {}
        self._log("resumed" if event else "started", agent=user_agent(self._job.settings.agent), **event)
        limit = self._job.settings.limits.time
        loop = asyncio.get_running_loop()
        timer = loop.call_later(limit, self.stop, "time") if limit else None
        control = Control(self._job.path, self._answer)
        await control.start()
        self._tick()
        try:
            await self._loop()
        except StorageError as error:
            self._fail(error)
        finally:
            if timer is not None:
                timer.cancel()
            self._ticker.cancel()
            await self._close()
            await control.close()
        return self._final

    def stop(self, reason: str = "request") -> None:
        """Start nothing new; `run` returns when what is in flight has ended, or after a moment."""
        if not self._stopped_by:
            self._stopped_by = reason
            self._frontier.hold()
            asyncio.get_running_loop().call_later(self._job.settings.limits.grace, self.abort)
            self._news.set()

    def abort(self) -> None:
        """Give up what is in flight; `run` returns at once."""
        for task in self._under_way:
            task.cancel()

    def pause(self, on: bool, why: str = "request") -> None:
        """Give out nothing while there is a reason not to."""
        (self._pauses.add if on else self._pauses.discard)(why)
        self._frontier.pause(bool(self._pauses))
        self._news.set()

    def add(self, urls: Sequence[str]) -> int:
        """Take further seeds; how many there are."""
        seeds = canonical_seeds(self._job.settings, ((url, "") for url in urls))
        self._job.add_seeds(seeds)
        self._hand_in(Seeds(self._links.more_seeds(seeds)))
        return len(seeds)

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

    def state(self) -> str:
        """What it is doing, in a word or two."""
        if self._stopped_by:
            return "stopping"
        return f"paused ({', '.join(sorted(self._pauses))})" if self._pauses else "running"

    def _answer(self, command: str, details: dict[str, Any]) -> dict[str, Any]:
        """What another process on this machine is told; see `control`."""
        if command == "pause" or command == "go_on":
            self.pause(command == "pause")
        elif command == "stop":
            self.stop()
        elif command == "add":
            return {"added": self.add(details["urls"])}
        return {"state": self.state(), **self.statistics().as_dict()}

    # ── the loop ───────────────────────────────────────────────────────────────────────────────

    async def _loop(self) -> None:
        limits = self._job.settings.limits
        while True:
            outcomes, self._outcomes = self._outcomes, []
            self._keep()
            instructions, wake = self._frontier.step(self._now(), outcomes)
            for instruction in instructions:
                task = asyncio.create_task(self._carry_out(instruction))
                self._under_way.add(task)
                task.add_done_callback(self._task_done)
            if 0 < limits.bytes <= self._tally.bytes:
                self.stop("bytes")
            if self._frontier.finished() or (self._stopped_by and not self._under_way):
                enough = 0 < limits.pages <= self._frontier.counters.pages
                self._stopped_by = self._stopped_by or ("pages" if enough else "done")
                return
            self._checkpoint()
            await self._wait(wake)

    def _keep(self) -> None:
        """Outcomes are applied after they are safe from the end of this process: first the archive, then these."""
        entries, self._entries = self._entries, []
        if entries:
            self._archive.flush()
            self._ledger.write(entries)
        for entry in entries:
            links = entry.outcome.links if isinstance(entry.outcome, PageFetched) else None
            self._archive.add_notes(entry.notes, links)

    def _checkpoint(self) -> None:
        """Commit every minute. What was written since the last time goes to the disk in a thread before, so that the
        commit itself, which nothing else can go on beside, finds little to wait for."""
        if self._settling is not None and self._settling.done():
            self._settling.result()
            self._settling = None
            self._commit()
        elif self._settling is None and self._clock.monotonic() >= self._checkpoint_at:
            self._settling = asyncio.create_task(asyncio.to_thread(self._ledger.settle))
            self._settling.add_done_callback(lambda _: self._news.set())
            self._checkpoint_at = self._clock.monotonic() + self._job.settings.checkpoint

    def _commit(self) -> None:
        """A checkpoint: between two steps, when all that was written has been applied."""
        start = self._clock.monotonic()
        self._ledger.commit(self._extra())
        self._log("checkpoint", seconds=round(self._clock.monotonic() - start, 3), **self._ledger.progress())

    def _extra(self) -> dict[str, Any]:
        seconds = self._tally.before + self._clock.monotonic() - self._started
        return {"seconds": round(seconds, 3), "extended": self._links.extended}

    async def _wait(self, wake: float) -> None:
        """Until there is an outcome, the frontier wants to be called, or a checkpoint is due."""
        if not self._outcomes:
            pause = max(min(wake - self._now(), self._checkpoint_at - self._clock.monotonic()), 0.0)
            try:
                async with asyncio.timeout(pause):
                    await self._news.wait()
            except TimeoutError:
                pass
        else:
            await asyncio.sleep(0)
        self._news.clear()

    def _tick(self) -> None:
        """What is to be done every second: rows that waited are written, and the disk is looked at."""
        try:
            self._archive.tick(self._clock.monotonic())
            self._watch_disk()
            for event, details in self._frontier.notices():
                self._log(event, **details)
        except StorageError as error:
            self._fail(error)
        self._ticker = asyncio.get_running_loop().call_later(_TICK, self._tick)

    def _watch_disk(self) -> None:
        """Pause before the disk is full, and go on when there is room again."""
        least = self._job.settings.limits.free_space
        free = self._job.env.free_space(self._job.path)
        if free < least and "disk" not in self._pauses:
            self._log("disk_full", free=free, wanted=least)
            self.pause(True, "disk")
        elif free >= least and "disk" in self._pauses:
            self._log("disk_has_room", free=free)
            self.pause(False, "disk")

    def _fail(self, error: StorageError) -> None:
        self.fault = self.fault or error
        self.stop("disk")

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._news.set()

    async def _carry_out(self, instruction: Instruction) -> None:
        """Do what an instruction says; whatever happens, there is one outcome."""
        try:
            outcome = await self._outcome(instruction)
        except StorageError as error:
            self._fail(error)
            return
        except Exception:  # one bad page must not end the crawl; the log keeps what happened
            self._log("internal_error", instruction=repr(instruction), trace=traceback.format_exc())
            outcome = _internal_error(instruction)
        if outcome is not None:
            self._hand_in(outcome)

    def _hand_in(self, outcome: Outcome) -> None:
        """Let an outcome be applied, after it was kept if it must be: a name can be looked up again."""
        self._outcomes.append(outcome)
        notes = self._archive.take_notes()
        if isinstance(outcome, HostResolved) or (not isinstance(outcome, Seeds) and outcome.stale):
            self._archive.add_notes(notes, None)
        else:
            tally = self._tally.save() | {"out_of_scope": dict(self._links.refused)}
            self._entries.append(Entry(self._now(), outcome, notes, self._archive.places(), tally))
        self._news.set()

    async def _outcome(self, instruction: Instruction) -> Outcome | None:
        """What came of it; None for a page that came when there were enough."""
        if isinstance(instruction, ResolveHost):
            found = await self._fetcher.resolve(instruction.host)
            if found.error:
                self._archive.note_error(self._clock.wall(), "dns", found.error, instruction.host)
            return HostResolved(instruction, found.addresses, found.error, found.ttl)
        if isinstance(instruction, FetchRobots):
            response = await self._fetcher.fetch(instruction.url, instruction.address)
            return _with_cookies(self._reader.robots(instruction, response), response)
        url = instruction.row.url.decode()
        validators, original = self._find_earlier(instruction.row) or (None, None)
        response = await self._fetcher.fetch(url, instruction.address, validators, any_type=False)
        limit = self._job.settings.limits.pages
        if 0 < limit <= self._tally.pages:
            return None
        return _with_cookies(self._reader.page(instruction, response, original), response)

    def _find_earlier(self, row: UrlRow) -> Earlier | None:
        """What is stored of a page that is to be fetched again only if it has changed."""
        if row.flags & _ONLY_IF_CHANGED != Flag.AGAIN:
            return None
        if self._earlier is None:
            self._earlier = EarlierPages(self._job.env, self._job.archive)
        return self._earlier.find(row.url.decode())

    async def _close(self) -> None:
        self.abort()
        settling = [self._settling] if self._settling is not None else []
        await asyncio.gather(*self._under_way, *settling, return_exceptions=True)
        steps = [self._keep_rest, self._commit] if self.fault is None else []
        for step in (*steps, self._archive.close, self._ledger.close, self._frontier.close):
            try:
                step()
            except StorageError as error:
                self.fault = self.fault or error
        self._final = self.statistics()
        if self._earlier is not None:
            self._earlier.close()
        await self._fetcher.aclose()
        with suppress(StorageError):  # a full disk may have no room for this either
            why = {"error": str(self.fault)} if self.fault else {}
            self._log("ended", **self._final.as_dict(), drum=self._frontier.drums(), **why)

    def _keep_rest(self) -> None:
        """Apply what came in after the last step; what was given up is in flight, and will be sent again."""
        outcomes, self._outcomes = self._outcomes, []
        self._keep()
        self._frontier.hold()
        self._frontier.step(self._now(), outcomes)

    def _now(self) -> float:
        return self._clock.monotonic() + self._offset

    def _log(self, event: str, **details: Any) -> None:
        self._job.log(self._clock.wall(), event, **details)


def _allow_open_files(fetch: Fetch) -> None:
    """Ask the system for as many open files as there may be connections, and some for everything else."""
    wanted = fetch.in_flight + fetch.idle_connections + 256
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _with_cookies(outcome: _Answer, response: Response) -> _Answer:
    """What was taken goes into the journal with the outcome."""
    return replace(outcome, cookies=response.cookies) if response.cookies else outcome


def _internal_error(instruction: Instruction) -> Outcome:
    if isinstance(instruction, ResolveHost):
        return HostResolved(instruction, (), "internal_error")
    if isinstance(instruction, FetchRobots):
        return RobotsFetched(instruction, 0)
    assert isinstance(instruction, FetchPage)
    return PageFetched(instruction, failure="internal_error")
