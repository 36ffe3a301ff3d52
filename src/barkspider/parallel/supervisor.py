"""The supervisor: starts the parts of a crawl, watches them, grants them pages, and knows when it is over.

It sees the parts through their sockets only, twice a second, and decides by what they told last (`watch`). What it must
not forget is in the journals of the parts: so it may be killed at any time, and the parts then stop by themselves.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from barkspider.core.errors import BarkspiderError, JobError
from barkspider.engine.control import Control, ask
from barkspider.engine.folder import events, part_folders
from barkspider.engine.job import LOCK, Job
from barkspider.engine.preflight import canonical_seeds
from barkspider.engine.statistics import Statistics
from barkspider.engine.trust import write_settings
from barkspider.parallel.division import check_division, share
from barkspider.parallel.grants import GRANTS, are_within, grants
from barkspider.parallel.post import TURNS
from barkspider.parallel.summing import sum_up

_LOOK = 0.5  # seconds between two looks at all parts
_PATIENCE = 5.0  # seconds for the answer of a part
_DEATHS, _WITHIN = 5, 600.0  # a part that dies so often within so many seconds is given up
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds until a part that died is started again, doubled each time


class Part:
    """One part, as the supervisor sees it: its process, and what it told last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: asyncio.subprocess.Process | None = None
        self.told: dict[str, Any] = {}
        self.heard = 0  # in which look it told that
        self.changed = 0.0  # when it last told something new, or was started
        self.deaths: deque[float] = deque()
        self.start_at = 0.0
        self.given_up = False

    @property
    def is_running(self) -> bool:
        """Whether there is a process that has not ended."""
        return self.process is not None and self.process.returncode is None

    async def start(self) -> None:
        """Start its process; Ctrl-C in a terminal is not for it."""
        command = [sys.executable, "-m", "barkspider.parallel.part", str(self.folder)]
        self.process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        self.changed, self.told = time.monotonic(), {}

    async def ask(self, command: str, **details: Any) -> dict[str, Any] | None:
        """What it answers; None when it does not."""
        try:
            return await asyncio.to_thread(ask, self.folder, command, timeout=_PATIENCE, **details)
        except JobError:
            return None


class Supervisor:
    """A crawl of several processes, with the face of `engine.Crawl`. Lives on one loop; `run` once."""

    def __init__(self, job: Job, tell: Callable[[str], None] = lambda _: None) -> None:
        """`job` is that of the whole; its parts are made. `tell` is given lines for a person."""
        check_division(job)
        self._job, self._tell = job, tell
        self._parts = [Part(folder) for folder in part_folders(job.path)]
        self.replayed = 0
        self.fault: BarkspiderError | None = None
        self._looks = 0
        self._quiet: tuple[Any, ...] | None = None  # what all parts told when nothing was left anywhere
        self._stopped_by, self._ending = "", False
        self._paused = False
        self._started = time.monotonic()
        self._news = asyncio.Event()

    # ── what whoever runs it asks ──────────────────────────────────────────────────────────────

    async def run(self) -> Statistics:
        """Crawl to the end."""
        await self._wait_for_parts()
        self._prepare()
        self._log("resumed" if self._job.resumed else "started", processes=len(self._parts))
        control = Control(self._job.path, self._answer)
        await control.start()
        limit = self._job.settings.limits.time
        timer = asyncio.get_running_loop().call_later(limit, self.stop, "time") if limit else None
        try:
            while not self._is_over():
                await self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await self._news.wait()
                self._news.clear()
        finally:
            if timer is not None:
                timer.cancel()
            await control.close()
            await self._end_all()
        final = self._final()
        self._log("ended", **final.as_dict())
        return final

    def stop(self, reason: str = "request") -> None:
        """Start nothing new; `run` returns when all parts have ended."""
        if not self._stopped_by:
            self._stopped_by = reason
            self._ending = True
            self._news.set()

    def abort(self) -> None:
        """Give up what is in flight everywhere."""
        self.stop()
        for part in self._parts:
            if part.is_running and part.process is not None:
                part.process.send_signal(signal.SIGTERM)

    def statistics(self) -> Statistics:
        """What all parts together have done, as they told last."""
        told = [part.told for part in self._parts if part.told]
        seconds = max((each["seconds"] for each in told), default=0.0)
        return sum_up(told, seconds, self._stopped_by)

    def state(self) -> str:
        """What it is doing, in a word or two."""
        if self._stopped_by:
            return "stopping"
        states = {part.told.get("state", "starting") for part in self._parts if not part.given_up}
        return states.pop() if len(states) == 1 else "running"

    def _answer(self, command: str, details: dict[str, Any]) -> dict[str, Any] | Awaitable[dict[str, Any]]:
        if command == "stop":
            self.stop()
        elif command in ("pause", "go_on"):
            self._paused = command == "pause"
            return self._tell_all(command)
        elif command == "add":
            return self._add(details["urls"], details.get("again", ()))
        elif command == "write_tables":
            return self._tell_all(command)
        return self._status()

    def _status(self) -> dict[str, Any]:
        parts = [{"folder": part.folder.name, **part.told.get("others", {})} for part in self._parts]
        return {"state": self.state(), "parts": parts, **self.statistics().as_dict()}

    async def _tell_all(self, command: str, **details: Any) -> dict[str, Any]:
        answers = await asyncio.gather(*(part.ask(command, **details) for part in self._parts))
        for part, answer in zip(self._parts, answers, strict=True):
            part.told = answer if answer and "gauges" in answer else part.told
        return self._status()

    async def _add(self, urls: Sequence[str], again: Collection[str]) -> dict[str, Any]:
        """Every part gets all of them: for its scope, and to take those that are its own."""
        seeds = canonical_seeds(self._job.settings, ((url, "") for url in urls))
        silent = [part for part in self._parts if not part.is_running]
        if silent:
            raise JobError(f"{silent[0].folder.name} is being started again; try in a moment")
        self._job.add_seeds(seeds)
        for part in self._parts:
            if await part.ask("add", urls=list(urls), again=list(again)) is None:
                raise JobError(
                    f"{part.folder.name} did not answer; add them once more: what is known does not count twice"
                )
        return {"added": len(seeds)}

    # ── looking after parts ────────────────────────────────────────────────────────────────────

    async def _wait_for_parts(self) -> None:
        """Those that a supervisor which was killed has left behind are about to end."""
        end = time.monotonic() + self._job.settings.fetch.timeout + self._job.settings.limits.grace
        for part in self._parts:
            while (lock := self._job.env.lock(part.folder / LOCK)) is None:
                if time.monotonic() > end:
                    raise JobError(f"{part.folder} is in use by another process; end that first")
                await asyncio.sleep(_LOOK)
            lock.release()

    def _prepare(self) -> None:
        """Give the parts the settings of the whole; a table of turns is of no use when no process runs."""
        self._job.env.remove(self._job.path / TURNS)
        for number, part in enumerate(self._parts):
            write_settings(self._job.env, part.folder, share(self._job.settings, number))

    async def _look(self) -> None:
        """Start whoever does not run, hear how all of them are, and decide what follows from that."""
        self._looks += 1
        now = time.monotonic()
        for part in self._parts:
            if not part.is_running and not part.given_up:
                await self._revive(part, now)
        await asyncio.gather(*(self._hear(part) for part in self._parts if part.is_running))
        if self._ending:
            return
        self._watch_dogs()
        pages = self._job.settings.limits.pages
        if 0 < pages <= sum(part.told.get("pages", 0) for part in self._parts):
            self.stop("pages")
            return
        heard = [part for part in self._parts if part.heard == self._looks]
        for number, granted in grants(pages, [part.told for part in self._parts]):
            if self._parts[number] in heard:
                await self._parts[number].ask("grant", pages=granted)
        for part in heard:
            if GRANTS in part.told["state"] and are_within(pages, [each.told for each in self._parts]):
                await part.ask("go_on", why=GRANTS)
        if self._nothing_left():
            self._stopped_by, self._ending = "done", True
            await self._tell_all("end")

    async def _revive(self, part: Part, now: float) -> None:
        """Start a part, or start it again some time after it died; one that dies over and over is given up."""
        if part.process is not None:
            if self._ending:
                return
            self._log("part_died", part=part.folder.name, code=part.process.returncode)
            part.process = None
            part.deaths.append(now)
            while part.deaths[0] < now - _WITHIN:
                part.deaths.popleft()
            if len(part.deaths) >= _DEATHS:
                part.given_up = True
                self.fault = BarkspiderError(
                    f"{part.folder} ended {_DEATHS} times within {_WITHIN / 60:.0f} minutes and was left alone; the others "
                    f"went on, and `barkspider resume {self._job.path}` tries it again"
                )
                self._tell(str(self.fault))
                return
            self._tell(f"{part.folder.name} has ended unexpectedly and is started again")
            part.start_at = now + min(_FIRST_PAUSE * 2 ** (len(part.deaths) - 1), _LONGEST_PAUSE)
        if now >= part.start_at and not self._ending:
            await part.start()

    async def _hear(self, part: Part) -> None:
        command = "stop" if self._ending and self._stopped_by != "done" else "status"
        told = await part.ask(command)
        if told is not None:
            if self._has_done(told) != self._has_done(part.told):
                part.changed = time.monotonic()
            part.told, part.heard = told, self._looks
            if self._paused and told["state"] == "running":
                await part.ask("pause")

    @staticmethod
    def _has_done(told: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(
            told.get(name) for name in ("pages", "bytes", "discovered", "robots_files", "failed", "others")
        )

    def _watch_dogs(self) -> None:
        """End a part that has work and has done nothing for long; it is started again."""
        for part in self._parts:
            idle = self._paused or part.told.get("others", {}).get("is_idle", False)
            if idle:
                part.changed = time.monotonic()
            silent = time.monotonic() - part.changed
            if part.is_running and part.process is not None and silent > self._job.settings.parallel.watchdog:
                self._log("part_hangs", part=part.folder.name, seconds=round(silent))
                part.process.kill()

    def _nothing_left(self) -> bool:
        """Whether in two looks in a row all parts were idle, had sent all they found, and had taken in all that was sent,
        the same processes in both, with the same counts."""
        parts = [part for part in self._parts if not part.given_up]
        told = [part.told.get("others", {}) for part in parts]
        numbers = [number for number, part in enumerate(self._parts) if not part.given_up]
        if (
            not parts
            or not all(part.heard == self._looks for part in parts)
            or not all(each["is_idle"] and not each["unsent"] for each in told)
            or any(part.told["queued"] + part.told["deferred"] for part in parts)  # which wait for a grant
            or any(
                told[i]["sealed"][to] != told[j]["applied"][sender]
                for i, sender in enumerate(numbers)
                for j, to in enumerate(numbers)
                if i != j
            )
        ):
            self._quiet = None
            return False
        now = tuple((each["start"], tuple(each["sealed"]), tuple(each["applied"])) for each in told)
        before, self._quiet = self._quiet, now
        return before == now

    def _is_over(self) -> bool:
        """Whether all parts have ended, as they were told to, or none is left to go on with."""
        if all(part.given_up for part in self._parts):
            return True
        return self._ending and not any(part.is_running for part in self._parts)

    async def _end_all(self) -> None:
        """Whatever ended us: no part goes on without its supervisor."""
        for part in self._parts:
            if part.process is not None:
                if part.is_running and part.process.stdin is not None:
                    part.process.stdin.close()
                await part.process.wait()

    def _final(self) -> Statistics:
        """What the logs of the parts say of their ends."""
        ends = [
            last
            for part in self._parts
            if (last := next((e for e in reversed(list(events(part.folder))) if e["event"] == "ended"), None))
        ]
        return sum_up(ends, max((each["seconds"] for each in ends), default=0.0), self._stopped_by or "done")

    def _log(self, event: str, **details: Any) -> None:
        self._job.log(time.time(), event, **details)
