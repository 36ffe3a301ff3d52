"""The loop: ask the frontier what to do, do it, tell it what came of it.

    frontier.step ─► instructions ─► work: fetch ─► what has arrived ─► work: read ─► Harvest ─┐
          ▲                                                                                    │
          └────────────────────── outcomes ◄─ tables ◄─ journal ◄─ WARC bytes ◄────────────────┘

Only this room knows the order of the stages. Everything here runs on one asyncio loop, and nothing should hold it for
longer than a tenth of a second (`watch`).
"""

from __future__ import annotations

import asyncio
import math
import traceback
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Self, cast

from barkspider.archive.notes import batches_of, decision_note
from barkspider.core.allotment import begin_threads, fit_memory, give_back
from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.clock import Clock, SystemClock
from barkspider.core.errors import ShortMemoryError, StorageError, is_shortage
from barkspider.core.events import Denied, FetchPage, FetchRobots, Instruction, Request, Ruled, Seeds
from barkspider.core.settings import Limits
from barkspider.core.units import format_size
from barkspider.engine.answers import Answers
from barkspider.engine.checkpointer import Checkpointer
from barkspider.engine.control import Control
from barkspider.engine.copying import copying
from barkspider.engine.every_second import EverySecond
from barkspider.engine.harvest import Harvest, Reaped
from barkspider.engine.job import Job
from barkspider.engine.list_files import ListFiles
from barkspider.engine.neighbours import Correspondence, Neighbours
from barkspider.engine.preflight import canonical_seeds, fit_open_files
from barkspider.engine.reach import Reach
from barkspider.engine.reaping import Reaping
from barkspider.engine.recovery import Components, open_components
from barkspider.engine.rules import canonical, is_known
from barkspider.engine.sampler import Sampler
from barkspider.engine.statistics import Statistics
from barkspider.engine.suspects import Suspects
from barkspider.engine.visits import READING, Visits, open_registry, owner_of
from barkspider.engine.watch import Watch
from barkspider.engine.work import Arrival
from barkspider.fetch import user_agent
from barkspider.frontier.ownership import frozen, shares_hosts
from barkspider.url import Domains

_BESIDE = 2  # threads in which a checkpoint is written, and what is sent to other processes is made safe
# While more instructions than these are under way, seconds for which others may join the first that has arrived: a harvest
# costs as much as some pages, and a crawl of small pages takes a tenth less CPU for it.
_MANY, _GATHERING = 16, 0.004


class Crawl:
    """One crawl into one job, on the running loop: a new one, or one that goes on where it was.

    `run` returns when nothing is left, a limit is reached, or `stop` was called; it can run once.
    """

    def __init__(self, components: Components) -> None:
        """`open` makes one from a job."""
        self._job, self._clock, self._steady = components.job, components.clock, components.steady
        self._tally, self._ledger, self._links = components.tally, components.ledger, components.links
        self._phases = components.tally.phases
        self._archive, self._worker = components.archive, components.worker
        self._frontier = components.frontier
        self.replayed = components.replayed  # outcomes since the last checkpoint
        self.fault: StorageError | ShortMemoryError | None = None  # what ended the crawl, if it was no wish
        self.others: Correspondence | None = None  # the other processes, if there are any
        self.told: Callable[[Harvest], None] | None = None  # hears of every harvest once it is safe
        # By their identity, what people gave that is in no record yet.
        self._given: dict[int, asyncio.Future[None]] = {}
        self._asked = deque[Request]()  # filled by `_loop`, emptied there while there is room
        self._news = asyncio.Event()
        self._under_way = 0  # instructions that were begun and have not arrived
        self._wake = 0.0  # when the frontier wants to be called, if nothing arrives before
        self._given_up = False  # whether what arrives comes too late
        self._stopped_by = ""
        self._pauses: set[str] = set()  # why nothing is given out
        self._reach = Reach(self._links.seed_hosts() if self._job.resumed else ())
        self.started = self._clock.monotonic()
        self._limits = self._job.settings.limits
        self._watch = Watch(self._log)
        self._reaping = Reaping(components, self._watch, self._reach, self._read_aside, self._log_error)
        self._arrived = self._reaping.arrived  # filled by `_arrive` and `_take_in`
        self._checkpointer = Checkpointer(
            self._ledger,
            self._clock,
            self._job.settings.checkpoint,
            lambda: (self._seconds(), self._links.extended),
            self._log,
            self._news.set,
            copying(self._job),
        )
        self._timer: asyncio.TimerHandle | None = None
        leases = components.frontier.leases
        self._visits: Visits | None = None  # the database of sites, if it goes site by site
        if leases is not None:
            job, registry = self._job, open_registry(self._job.settings, self._job.path)
            suspects = self._reaping.suspects = Suspects(job.path / READING)
            self._visits = Visits(
                *(registry, owner_of(job.env, job.path), job.settings, leases, suspects.found, self.take_in),
                *(self._links.extend, self._syncing, self._log, self._fail),
            )
        self._answers = Answers(self, components, self._checkpointer)
        self._lists = ListFiles(self._job, self._frontier.follow_lists, self._log)
        sampler = Sampler(components, self._checkpointer, self.statistics, lambda: self.others)
        self._every_second = EverySecond(components, sampler, self._lists, self._log, self.pause, self._fail)

    @classmethod
    def open(cls, job: Job, clock: Clock | None = None, neighbours: Neighbours | None = None) -> Self:
        """Recovers a job that was killed, which takes a moment for each minute since its last checkpoint.

        `neighbours` are the other processes with which it divides a crawl."""
        fetch, fitted = job.settings.fetch, fit_open_files(job.settings)
        job.settings = fit_memory(fitted)
        components = open_components(job, clock or SystemClock())
        crawl = cls(components)
        hasten = crawl._checkpointer.hasten if job.settings.store.url else None
        if neighbours is not None:
            crawl.others = Correspondence(
                *(neighbours, crawl._frontier, crawl._ledger, crawl._archive, crawl.take_in),
                *(crawl._links.extend, crawl._clock.wall, crawl._fail, crawl._news.set, hasten),
                lambda batch: components.cookies.receive(batch, crawl._steady.now()),
                shares_hosts(job.settings.parallel),
            )
            crawl._checkpointer.told = crawl.others.committed
        if fetch != fitted.fetch:
            fetch = fitted.fetch
            crawl._log("few_open_files", in_flight=fetch.in_flight, idle_connections=fetch.idle_connections)
        crawl._lists.open()
        if crawl._ledger.is_new:
            replicas, _ = frozen(job.env, job.path)
            crawl.take_in(Reaped(Seeds(UrlBatch.join([crawl._links.seeds(), replicas]))))
        elif crawl.replayed:
            crawl._ledger.commit(crawl._seconds(), crawl._links.extended)
        return crawl

    async def run(self) -> Statistics:
        """Crawl to the end."""
        event = {"replayed": self.replayed} if self._job.resumed else {}
        self._log("resumed" if event else "started", agent=user_agent(self._job.settings.agent), **event)
        loop = asyncio.get_running_loop()
        loop.set_default_executor(begin_threads(ThreadPoolExecutor(_BESIDE, "beside"), _BESIDE))
        self._set_timer()
        control = Control(self._job.path, self._answers)
        await control.start()
        self._watch.start()
        self._every_second.start()
        if self.others is not None:
            self.others.start()
        if self._visits is not None:
            self._visits.start()
        loop.set_exception_handler(self._on_exception)
        try:
            await self._loop()
        except Exception as error:
            self._fail(error)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._every_second.stop()
            self._watch.stop()
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
        self._given_up, self._under_way = True, 0
        self._reaping.closing = True  # nobody would hear of a page that is given to a thread now
        self._worker.abort()
        self._news.set()

    def pause(self, on: bool, why: str = "request") -> None:
        """Give out nothing while there is a reason not to."""
        (self._pauses.add if on else self._pauses.discard)(why)
        self._frontier.pause(bool(self._pauses))
        self._news.set()

    async def add(self, urls: Sequence[str], again: Collection[str] = ()) -> dict[str, int]:
        """Take further seeds, of which those in `again` are fetched though they are known. When this tells how many were
        `added`, the journal has them."""
        seeds = canonical_seeds(self._job.settings, ((url, "") for url in urls))
        self._job.add_seeds(seeds)
        await self._keep(Seeds(self._links.more_seeds(seeds, frozenset(again))))
        return {"added": len(seeds)}

    async def _keep(self, given: Seeds | Ruled) -> None:
        """Take in what people give, and wait until the journal has it."""
        kept = self._given[id(given)] = asyncio.get_running_loop().create_future()
        self.take_in(Reaped(given))
        await kept

    async def rule(self, changes: Sequence[tuple[str, str]], why: str = "") -> dict[str, Any]:
        """Go by further rules of people, for a reason. When this tells what they are, the journal has them; `known` says
        whether what is taken back was there."""
        ruled = Ruled(canonical(changes, Domains(self._job.settings.url.private_suffixes)))
        about = {**self._frontier.about_rules(), "traps": self._frontier.about_traps()}
        known = all(is_known(what, rule, about) for what, rule in ruled.changes)
        await self._keep(ruled)
        self._log("ruled", changes=ruled.changes, why=why)
        return {"rules": [rule for _, rule in ruled.changes], "known": known}

    def tell(self, event: str, **details: Any) -> None:
        """Log what became of a function that reads along; those that failed are counted."""
        self._tally.hook_errors += event == "hook_failed"
        self._log(event, **details)

    @property
    def hook_errors(self) -> int:
        """How many of them failed."""
        return self._tally.hook_errors

    def statistics(self) -> Statistics:
        """What was done so far."""
        frontier = self._frontier
        return self._tally.statistics(
            self._clock.monotonic() - self.started,
            frontier.counters,
            frontier.gauges() | {"loop_held": round(1000 * self._watch.longest)},
            self._stopped_by,
            self._reach.problems(),
        )

    def state(self) -> str:
        """What it is doing, in a word or two."""
        if self._stopped_by:
            return "stopping"
        return f"paused ({', '.join(sorted(self._pauses))})" if self._pauses else "running"

    @property
    def limits(self) -> Limits:
        """Those in force."""
        return self._limits

    def follow_limits(self, limits: Limits) -> None:
        """Go by other limits than those that it began with."""
        self._limits = limits
        if self.others is None:  # to a part the supervisor grants its pages
            self._frontier.limit_pages(limits.pages)
        self._set_timer()
        self._news.set()

    def about_others(self, whole: bool = False) -> dict[str, Any]:
        """How it stands with others, if there are any: the `whole` of it takes longer."""
        if self.others is None:
            return {}
        about = {"is_idle": self.is_idle(), "sleeps": self._sleeps(), "start": self.started}
        return {"others": about | self.others.state(census=whole)}

    def end(self) -> None:
        """Nothing will come from other processes any more."""
        if self.others is not None:
            self.others.ended = True
            self._news.set()

    def is_idle(self) -> bool:
        """Whether nothing is under way, and nothing is left but what others may send."""
        return self._frontier.is_idle() and not self._under_way and not self._arrived

    def _sleeps(self) -> bool:
        """Whether nothing is under way, and nothing is to be done before a time that is known: all hosts are left alone."""
        return self._steady.now() < self._wake < math.inf and not self._under_way and not self._arrived

    # ── the loop ───────────────────────────────────────────────────────────────────────────────

    async def _loop(self) -> None:
        self._phases.end("open")
        while True:
            instructions, self._wake = self._bring_in()
            self._asked.extend(self._requests(instructions))
            while self._asked and self._worker.has_room and not self._stopped_by:
                self._begin(self._asked.popleft())
            if 0 < self._limits.bytes <= self._tally.bytes:
                self.stop("bytes")
            if self._is_over() or (self._stopped_by and not self._under_way):
                enough = 0 < self._limits.pages <= self._frontier.counters.pages
                self._stopped_by = self._stopped_by or ("pages" if enough else "done")
                return
            if self._nobody_answers():
                self.stop("unreachable")
                return
            self._phases.end("sockets")
            self._checkpointer.turn()
            self._phases.end("checkpoint")
            await self._wait()

    def _set_timer(self) -> None:
        """Stop when the limit of time is over, which is counted from the beginning of this run."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._limits.time:
            left = self.started + self._limits.time - self._clock.monotonic()
            self._timer = asyncio.get_running_loop().call_later(max(left, 0.0), self.stop, "time")

    def _is_over(self) -> bool:
        """Whether nothing is left; while there are others, they say whether anything may still come from them."""
        return self._frontier.finished() and (self.others is None or self.others.ended) and not self._arrived

    def _requests(self, instructions: list[Instruction]) -> Sequence[Request]:
        """What is to be asked of the network; the rest is about other processes, or for the database of sites."""
        if self._visits is not None:
            instructions = self._visits.sift(instructions)
        if self.others is None:
            return cast(Sequence[Request], instructions)  # a crawl of one process has no others
        return self.others.sift(instructions)

    def _nobody_answers(self) -> bool:
        """Whether no byte has ever come in and what is left are retries: they would show the same for minutes."""
        busy = self._under_way or self._arrived or self._asked or self.others is not None
        return not self._tally.bytes and not busy and self._reach.all_tried()

    def _bring_in(self) -> tuple[list[Instruction], float]:
        """Take in what has arrived, and ask what is to be done next.

        It is applied after it is safe from the end of this process: first the archive, then the journal.
        """
        self._phases.end("sockets")
        harvest = self._reaping.reap()
        self._phases.end("harvest")
        if harvest.is_news:
            self._archive.flush()
            self._phases.end("warc")
            self._ledger.write(harvest)
            for outcome in harvest.outcomes if self._given else ():
                kept = self._given.pop(id(outcome), None)
                if kept is not None and not kept.done():  # or whoever gave it has gone
                    kept.set_result(None)
            self._phases.end("journal")
            self._archive.add(harvest.batches, harvest.links)
            self._phases.end("tables")
            if self.told is not None:
                self.told(harvest)
        done = self._frontier.step(self._steady.now(), harvest.outcomes)
        self._phases.end("frontier")
        traced = self._frontier.traced()  # no part of the harvest: after a crash the last ones are missing
        if traced:
            self._archive.add(batches_of(decision_note(*each) for each in traced), NO_URLS)
            self._phases.end("tables")
        return done

    def _seconds(self) -> float:
        """How long this crawl has run, with its earlier runs."""
        return self._tally.before + self._clock.monotonic() - self.started

    async def _wait(self) -> None:
        """Until something arrives, the frontier wants to be called, or a checkpoint is due."""
        if not self._arrived:
            pause = max(min(self._wake - self._steady.now(), self._checkpointer.pause()), 0.0)
            timer = asyncio.get_running_loop().call_later(pause, self._news.set)
            await self._news.wait()
            timer.cancel()
            if self._arrived and self._under_way > _MANY:
                await asyncio.sleep(_GATHERING)
        else:
            await asyncio.sleep(0)
        self._news.clear()

    def _fail(self, error: Exception) -> None:
        """End here, if it is the disk or memory that refused; raise anything else.

        What is in RAM may be half changed: it goes into no checkpoint, the journal has it.
        """
        if isinstance(error, StorageError):
            self.fault = self.fault or error
            self.stop("disk")
        elif not is_shortage(error):
            raise error
        else:
            self.fault = self.fault or ShortMemoryError(
                f"memory has run out, and the crawl has stopped; with more of it, or a smaller `memory` than "
                f"{format_size(self._job.settings.memory)}, `barkspider resume {self._job.path}` goes on"
            )
            self.stop("memory")
            self.abort()

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What a callback of the loop raised, such as that of a socket."""
        error = context.get("exception")
        if isinstance(error, Exception) and is_shortage(error):
            self._fail(error)
        else:
            loop.default_exception_handler(context)

    def _begin(self, instruction: Request) -> None:
        """Have done what an instruction asks for; whatever happens, something arrives."""
        if self._visits is not None and (wait := self._visits.wait_of(instruction)):
            if self.others is not None:
                self.others.give_back(instruction)
            assert isinstance(instruction, FetchPage | FetchRobots)
            self.take_in(Reaped(Denied(instruction, wait, at_host=True)))
            return
        self._under_way += 1
        try:
            self._worker.begin(instruction, self._arrive)
        except Exception as error:
            self._arrive(Arrival(instruction, error))

    def _read_aside(self, arrival: Arrival) -> None:
        self._under_way += 1
        suspects = self._reaping.suspects
        done = self._arrive if suspects is None else suspects.aside(arrival.instruction, self._arrive)
        self._worker.read_aside(arrival, done)

    def _arrive(self, arrival: Arrival) -> None:
        if self._given_up:
            return
        self._under_way -= 1
        self._arrived.append(arrival)
        self._news.set()

    def take_in(self, reaped: Reaped) -> None:
        """Let something be part of the next harvest."""
        self._arrived.append(reaped)
        self._news.set()

    async def _close(self) -> None:
        self.abort()
        try:
            await self._checkpointer.close()
            if self.others is not None:
                await self.others.close()
            if self._visits is not None:
                await self._visits.close()
        except Exception as error:
            self._fail(error)
        last = self._every_second
        for step in (
            self._bring_in_rest,
            last.sample,
            last.tell,
            last.tell_of_last,
            self._checkpointer.commit,
        ):
            if self.fault is None:
                self._finish(step)
        # What it took to crawl goes first: to complete the archive takes as much again.
        self._finish(self._ledger.close)
        self._finish(self._frontier.close)
        await self._worker.close()
        if self._reaping.suspects is not None:
            self._reaping.suspects.close()
        give_back()
        self._finish(self._archive.close)
        if self.fault is None:
            self._finish(self._checkpointer.copy_last)
        self._phases.end("close")
        self._final = self.statistics()
        with suppress(StorageError, MemoryError):  # a full disk may have no room for this either
            why = {"error": str(self.fault)} if self.fault else {}
            self._log("ended", **self._final.as_dict(), **self.about_others(), **self._traffic(), **why)

    def _finish(self, step: Callable[[], object]) -> None:
        """Take a step of the end; the others are to follow whatever happens."""
        try:
            step()
        except Exception as error:
            if self.fault is None:  # or it follows from that
                self._fail(error)

    def _bring_in_rest(self) -> None:
        """Apply what came in after the last step; what was given up is in flight, and will be sent again."""
        self._reaping.closing = True
        self._frontier.hold()
        while self._arrived:
            self._bring_in()

    def _syncing(self) -> Callable[[], None]:
        """What makes all that was archived and written down so far survive a power loss; any thread may call it."""
        archive, journal = self._archive.syncing(), self._ledger.syncing()

        def sync() -> None:
            archive()
            journal()

        return sync

    def _traffic(self) -> dict[str, Any]:
        """What the frontier moved on disk; nothing when the disk does not say."""
        try:
            return self._frontier.traffic()
        except StorageError:
            return {}

    def _log_error(self, instruction: Request) -> None:
        self._log("internal_error", instruction=repr(instruction), trace=traceback.format_exc())

    def _log(self, event: str, **details: Any) -> None:
        self._job.log(self._clock.wall(), event, **details)
