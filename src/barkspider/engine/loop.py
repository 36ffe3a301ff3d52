"""The loop: ask the frontier what to do, do it, tell it what happened.

    frontier.step ─► instructions ─► work (fetch, archive, links) ─► journal ─► outcomes ─► frontier.step

Only this room knows the order of the stages. Everything here runs on one asyncio loop.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from barkspider.archive import ArchiveWriter
from barkspider.core.clock import Clock, SystemClock
from barkspider.core.errors import StorageError
from barkspider.core.events import Frontier, HostResolved, Instruction, Outcome, PageFetched, Seeds
from barkspider.core.records import Flag
from barkspider.engine.control import Control
from barkspider.engine.cookies import KeptCookies
from barkspider.engine.job import Job
from barkspider.engine.ledger import Ledger
from barkspider.engine.links import LinkMaker
from barkspider.engine.outcomes import Entry
from barkspider.engine.preflight import allow_open_files, canonical_seeds
from barkspider.engine.statistics import Statistics, Tally
from barkspider.engine.work import Worker, internal_error
from barkspider.fetch import user_agent
from barkspider.frontier import Irlbot, Sydney

_TICK = 1.0  # seconds


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
        info = {
            "software": user_agent(settings.agent),
            "robots": "obey" if settings.politeness.obey_robots else "ignore",
        }
        recovered = self._ledger.recover(job.archive)
        self._archive = ArchiveWriter(job.env, job.archive, settings, info, recovered)
        self._worker = Worker(job, self._links, self._archive, self._clock, self._tally)
        jar, state = self._worker.cookies, self._ledger.state(KeptCookies.name)
        self._cookies = KeptCookies(job.env, job.path, jar, state)
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
        allow_open_files(self._job.settings.fetch)
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
        """Do what an instruction says; whatever happens, there is one outcome, unless the crawl is about to end."""
        try:
            outcome = await self._worker.carry_out(instruction)
        except StorageError as error:
            self._fail(error)
            return
        except Exception:  # one bad page must not end the crawl; the log keeps what happened
            self._log("internal_error", instruction=repr(instruction), trace=traceback.format_exc())
            outcome = internal_error(instruction)
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
        await self._worker.close()
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
