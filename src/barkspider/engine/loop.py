"""The loop: ask the frontier what to do, do it, tell it what came of it.

    frontier.step ─► instructions ─► work: fetch ─► what has arrived ─► work: read ─► Harvest ─┐
          ▲                                                                                    │
          └────────────────────── outcomes ◄─ tables ◄─ journal ◄─ WARC bytes ◄────────────────┘

Only this room knows the order of the stages. Everything here runs on one asyncio loop, and nothing should hold it for
longer than a tenth of a second (`watch`).
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Self, cast

from barkspider.core.allotment import fit_memory, give_back
from barkspider.core.clock import Clock, SystemClock
from barkspider.core.errors import ShortMemoryError, StorageError, is_shortage
from barkspider.core.events import Granted, Instruction, Request, Seeds
from barkspider.core.units import format_size
from barkspider.engine.checkpointer import Checkpointer
from barkspider.engine.control import Control
from barkspider.engine.harvest import Reaped
from barkspider.engine.job import Job
from barkspider.engine.neighbours import Correspondence, Neighbours
from barkspider.engine.preflight import canonical_seeds, fit_open_files
from barkspider.engine.reach import Reach
from barkspider.engine.reaping import Reaping
from barkspider.engine.recovery import Parts, open_parts
from barkspider.engine.statistics import Statistics
from barkspider.engine.watch import Watch
from barkspider.engine.work import Arrival
from barkspider.fetch import user_agent

_TICK = 1.0  # seconds
# While more instructions than these are under way, seconds for which others may join the first that has arrived: a harvest
# costs as much as some pages, and a crawl of small pages takes a tenth less CPU for it.
_MANY, _GATHERING = 16, 0.004


class Crawl:
    """One crawl into one job, on the running loop: a new one, or one that goes on where it was.

    `run` returns when nothing is left, a limit is reached, or `stop` was called; it can run once.
    """

    def __init__(self, parts: Parts) -> None:
        """`open` makes one from a job."""
        self._job, self._clock, self._steady = parts.job, parts.clock, parts.steady
        self._tally, self._ledger, self._links = parts.tally, parts.ledger, parts.links
        self._phases = parts.tally.phases
        self._archive, self._worker, self._frontier = parts.archive, parts.worker, parts.frontier
        self.replayed = parts.replayed  # outcomes since the last checkpoint
        self.fault: StorageError | ShortMemoryError | None = None  # what ended the crawl, if it was no wish
        self._others: Correspondence | None = None
        self._asked = deque[Request]()  # filled by `_loop`, emptied there while there is room
        self._news = asyncio.Event()
        self._under_way = 0  # instructions that were begun and have not arrived
        self._given_up = False  # whether what arrives comes too late
        self._stopped_by = ""
        self._pauses: set[str] = set()  # why nothing is given out
        self._reach = Reach(self._links.seed_hosts() if self._job.resumed else ())
        self._started = self._clock.monotonic()
        self._watch = Watch(self._log)
        self._reaping = Reaping(parts, self._watch, self._reach, self._read_aside, self._log_error)
        self._arrived = self._reaping.arrived  # filled by `_arrive` and `_take_in`
        self._checkpointer = Checkpointer(
            self._ledger,
            self._clock,
            self._job.settings.checkpoint,
            lambda: (self._seconds(), self._links.extended),
            self._log,
            self._news.set,
        )

    @classmethod
    def open(cls, job: Job, clock: Clock | None = None, neighbours: Neighbours | None = None) -> Self:
        """Recovers a job that was killed, which takes a moment for each minute since its last checkpoint.

        `neighbours` are the other processes with which it divides a crawl."""
        fetch, fitted = job.settings.fetch, fit_open_files(job.settings)
        job.settings = fit_memory(fitted)
        crawl = cls(open_parts(job, clock or SystemClock()))
        if neighbours is not None:
            crawl._others = Correspondence(
                neighbours,
                crawl._frontier,
                crawl._ledger,
                crawl._archive,
                crawl._take_in,
                crawl._links.extend,
            )
            crawl._checkpointer.told = crawl._others.committed
        if fetch != fitted.fetch:
            fetch = fitted.fetch
            crawl._log("few_open_files", in_flight=fetch.in_flight, idle_connections=fetch.idle_connections)
        if crawl._ledger.is_new:
            crawl._take_in(Reaped(Seeds(crawl._links.seeds())))
        elif crawl.replayed:
            crawl._ledger.commit(crawl._seconds(), crawl._links.extended)
        return crawl

    async def run(self) -> Statistics:
        """Crawl to the end."""
        event = {"replayed": self.replayed} if self._job.resumed else {}
        self._log("resumed" if event else "started", agent=user_agent(self._job.settings.agent), **event)
        limit = self._job.settings.limits.time
        loop = asyncio.get_running_loop()
        timer = loop.call_later(limit, self.stop, "time") if limit else None
        control = Control(self._job.path, self._answer)
        await control.start()
        self._watch.start()
        self._tick()
        if self._others is not None:
            self._others.start()
        loop.set_exception_handler(self._on_exception)
        try:
            await self._loop()
        except Exception as error:
            self._fail(error)
        finally:
            if timer is not None:
                timer.cancel()
            self._ticker.cancel()
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

    def add(self, urls: Sequence[str], again: Collection[str] = ()) -> int:
        """Take further seeds, of which those in `again` are fetched though they are known; how many there are."""
        seeds = canonical_seeds(self._job.settings, ((url, "") for url in urls))
        self._job.add_seeds(seeds)
        self._take_in(Reaped(Seeds(self._links.more_seeds(seeds, frozenset(again)))))
        return len(seeds)

    def statistics(self) -> Statistics:
        """What was done so far."""
        frontier = self._frontier
        return self._tally.statistics(
            self._clock.monotonic() - self._started,
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

    def _answer(self, command: str, details: dict[str, Any]) -> dict[str, Any]:
        """What another process on this machine is told; see `control`."""
        if command == "pause" or command == "go_on":
            self.pause(command == "pause", details.get("why", "request"))
        elif command == "stop":
            self.stop()
        elif command == "add":
            return {"added": self.add(details["urls"], details.get("again", ()))}
        elif command == "write_tables":
            self._archive.write_rows()
            return {}
        elif command == "grant":
            pages = details["pages"]  # what is fetched and under way cannot be taken back
            granted = None if pages is None else max(int(pages), self._frontier.least_grant)
            self._take_in(Reaped(Granted(granted)))
        elif command == "end" and self._others is not None:
            self._others.ended = True
            self._news.set()
        if self._others is not None:
            about = {"is_idle": self._is_idle(), "start": self._started, "granted": self._frontier.granted}
            about |= self._others.state()
            return {"state": self.state(), "others": about, **self.statistics().as_dict()}
        return {"state": self.state(), **self.statistics().as_dict(), **self._frontier.traffic()}

    def _is_idle(self) -> bool:
        return self._frontier.is_idle() and not self._under_way and not self._arrived

    # ── the loop ───────────────────────────────────────────────────────────────────────────────

    async def _loop(self) -> None:
        limits = self._job.settings.limits
        self._phases.end("open")
        while True:
            instructions, wake = self._bring_in()
            self._asked.extend(self._requests(instructions))
            while self._asked and self._worker.has_room and not self._stopped_by:
                self._begin(self._asked.popleft())
            if 0 < limits.bytes <= self._tally.bytes:
                self.stop("bytes")
            if self._is_over() or (self._stopped_by and not self._under_way):
                enough = 0 < limits.pages <= self._frontier.counters.pages
                self._stopped_by = self._stopped_by or ("pages" if enough else "done")
                return
            if self._nobody_answers():
                self.stop("unreachable")
                return
            self._phases.end("sockets")
            self._checkpointer.turn()
            self._phases.end("checkpoint")
            await self._wait(wake)

    def _is_over(self) -> bool:
        """Whether nothing is left; while there are others, they say whether anything may still come from them."""
        return (
            self._frontier.finished() and (self._others is None or self._others.ended) and not self._arrived
        )

    def _requests(self, instructions: Sequence[Instruction]) -> Sequence[Request]:
        """What is to be asked of the network; the rest is about other processes."""
        if self._others is None:
            return cast(Sequence[Request], instructions)  # a crawl of one process has no others
        return self._others.sift(instructions)

    def _nobody_answers(self) -> bool:
        """Whether no byte has ever come in and what is left are retries: they would show the same for minutes."""
        busy = self._under_way or self._arrived or self._asked or self._others is not None
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
            self._phases.end("journal")
            self._archive.add(harvest.batches, harvest.links)
            self._phases.end("tables")
        done = self._frontier.step(self._steady.now(), harvest.outcomes)
        self._phases.end("frontier")
        return done

    def _seconds(self) -> float:
        """How long this crawl has run, with its earlier runs."""
        return self._tally.before + self._clock.monotonic() - self._started

    async def _wait(self, wake: float) -> None:
        """Until something arrives, the frontier wants to be called, or a checkpoint is due."""
        if not self._arrived:
            pause = max(min(wake - self._steady.now(), self._checkpointer.pause()), 0.0)
            timer = asyncio.get_running_loop().call_later(pause, self._news.set)
            await self._news.wait()
            timer.cancel()
            if self._arrived and self._under_way > _MANY:
                await asyncio.sleep(_GATHERING)
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
        except Exception as error:
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
        self._under_way += 1
        try:
            self._worker.begin(instruction, self._arrive)
        except Exception as error:
            self._arrive(Arrival(instruction, error))

    def _read_aside(self, arrival: Arrival) -> None:
        self._under_way += 1
        self._worker.read_aside(arrival, self._arrive)

    def _arrive(self, arrival: Arrival) -> None:
        if self._given_up:
            return
        self._under_way -= 1
        self._arrived.append(arrival)
        self._news.set()

    def _take_in(self, reaped: Reaped) -> None:
        """Let something be part of the next harvest."""
        self._arrived.append(reaped)
        self._news.set()

    async def _close(self) -> None:
        self.abort()
        try:
            await self._checkpointer.close()
            if self._others is not None:
                await self._others.close()
        except Exception as error:
            self._fail(error)
        give_back()
        checkpoint = (self._bring_in_rest, self._checkpointer.commit)
        for step in (*checkpoint, self._archive.close, self._ledger.close, self._frontier.close):
            if step in checkpoint and self.fault is not None:
                continue
            try:
                step()
            except Exception as error:
                if self.fault is None:  # or it follows from that
                    self._fail(error)
        self._phases.end("close")
        self._final = self.statistics()
        await self._worker.close()
        with suppress(StorageError, MemoryError):  # a full disk may have no room for this either
            why = {"error": str(self.fault)} if self.fault else {}
            self._log("ended", **self._final.as_dict(), **self._traffic(), **why)

    def _bring_in_rest(self) -> None:
        """Apply what came in after the last step; what was given up is in flight, and will be sent again."""
        self._reaping.closing = True
        self._frontier.hold()
        while self._arrived:
            self._bring_in()

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
