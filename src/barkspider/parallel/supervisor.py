"""The supervisor: starts the parts of a crawl, watches them, grants them pages, and knows when it is over.

It sees the parts through their sockets only, twice a second, and decides by what they told last (`watch`). What it must
not forget is in the journals of the parts: so it may be killed at any time, and the parts then stop by themselves.
"""

from __future__ import annotations

import asyncio
import math
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from barkspider.core.errors import BarkspiderError, JobError
from barkspider.core.settings import Limits
from barkspider.engine.control import Control, ask
from barkspider.engine.copying import copy_about
from barkspider.engine.folder import LOCK, events, part_folders
from barkspider.engine.job import Job
from barkspider.engine.preflight import canonical_seeds
from barkspider.engine.statistics import Statistics
from barkspider.engine.steering import change_limits
from barkspider.engine.trust import write_settings
from barkspider.engine.visits import open_registry
from barkspider.frontier.census import KeySample, census_from, committed_census
from barkspider.parallel.division import check_division, check_share, here, share
from barkspider.parallel.grants import GRANTS, are_within, grants
from barkspider.parallel.post import TURNS
from barkspider.parallel.summing import sum_up
from barkspider.storage.env import Env

_LOOK = 0.5  # seconds between two looks at all parts
_PATIENCE = 5.0  # seconds for the answer of a part
_DEATHS, _WITHIN = 5, 600.0  # a part that dies so often within so many seconds is given up
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds until a part that died is started again, doubled each time


class Part:
    """One part, as the supervisor sees it: its process, and what it told last."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder, self.number = folder, number
        self.process: asyncio.subprocess.Process | None = None
        self.told: dict[str, Any] = {}
        self.heard = 0  # in which look it told that
        self.full_since = math.inf  # when it first told that others have to take in what it has for them
        self.changed = 0.0  # when it last told something new, or was started
        self.deaths: deque[float] = deque()
        self.start_at = 0.0
        self.given_up = False

    @property
    def is_running(self) -> bool:
        """Whether there is a process that has not ended."""
        return self.process is not None and self.process.returncode is None

    @property
    def has_died(self) -> bool:
        """Whether there was a process that has ended, and nobody has looked into that yet."""
        return self.process is not None and self.process.returncode is not None

    def bury(self) -> int | None:
        """Forget the process that has ended; its exit code, if that is known."""
        code = self.process.returncode if self.process is not None else None
        self.process = None
        return code

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

    def send(self, number: signal.Signals) -> None:
        """Send its process a signal, if there is one that runs."""
        if self.process is not None and self.is_running:
            self.process.send_signal(number)

    async def end(self) -> None:
        """Leave its process, which ends then, and wait for that."""
        if self.process is not None:
            if self.is_running and self.process.stdin is not None:
                self.process.stdin.close()
            await self.process.wait()

    async def last_words(self) -> dict[str, Any]:
        """What its log says of its last end; {} if it never ended."""
        return end_of(self.folder)

    async def census(self) -> Mapping[str, KeySample]:
        """The samples of what it has fetched, as of its last checkpoint."""
        return committed_census(Env(), self.folder)


class Supervisor:
    """A crawl of several processes, with the face of `engine.Crawl`. Lives on one loop; `run` once."""

    def __init__(
        self, job: Job, tell: Callable[[str], None] = lambda _: None, parts: Sequence[Part] | None = None
    ) -> None:
        """`job` is that of the whole; its parts are made, if they are on this machine. `tell` is given lines for a person."""
        self._job, self._tell, self._is_whole = job, tell, True
        check_share(job.settings)
        if parts is None:
            check_division(job)
            folders = part_folders(job.path)
            parts = [Part(folders[number], number) for number in here(job.settings)]
            self._is_whole = len(parts) == len(folders)  # or some are elsewhere
        self._parts = parts
        self.replayed = 0
        self.fault: BarkspiderError | None = None
        self._looks = 0
        self._quiet: tuple[Any, ...] | None = None  # what all parts told when nothing was left anywhere
        self._stopped_by, self._ending = "", False
        self._paused = False
        self._begun: float | None = None  # when all parts had begun to crawl
        self._timer: asyncio.TimerHandle | None = None  # of the limit of time
        self._news = asyncio.Event()

    # ── what whoever runs it asks ──────────────────────────────────────────────────────────────

    async def run(self) -> Statistics:
        """Crawl to the end."""
        await self._wait_for_parts()
        self._prepare()
        self._log("resumed" if self._job.resumed else "started", processes=len(self._parts))
        control = Control(self._job.path, self.answer)
        await control.start()
        try:
            while not self._is_over():
                await self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await self._news.wait()
                self._news.clear()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await control.close()
            await self._end_all()
        final, parts = await self._final()
        self._log("ended", parts=parts, **final.as_dict())
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
            part.send(signal.SIGTERM)

    def statistics(self) -> Statistics:
        """What all parts together have done, as they told last."""
        told = [part.told for part in self._parts if part.told]
        seconds = max((each["seconds"] for each in told), default=0.0)
        return sum_up(told, seconds, self._stopped_by)

    @property
    def limits(self) -> Limits:
        """Those in force, of all parts together."""
        return self._job.settings.limits

    def state(self) -> str:
        """What it is doing, in a word or two."""
        if self._stopped_by:
            return "stopping"
        states = {part.told.get("state", "starting") for part in self._parts if not part.given_up}
        return states.pop() if len(states) == 1 else "running"

    def answer(self, command: str, details: dict[str, Any]) -> dict[str, Any] | Awaitable[dict[str, Any]]:
        """What others are told; see `engine.control`."""
        if command == "stop":
            self.stop()
        elif command in ("pause", "go_on"):
            self._paused = command == "pause"
            return self._tell_all(command)
        elif command == "add":
            return self._add(details["urls"], details.get("again", ()))
        elif command in ("write_tables", "checkpoint"):
            return self._tell_all(command)
        elif command == "change":
            return self._change([str(option) for option in details["settings"]])
        elif command == "rule":
            return self._rule(details["changes"], str(details.get("why", "")))
        elif command == "rules":
            return self._about_rules()
        elif command == "status":
            return self._whole_status()
        return self._status([])

    def _change(self, options: Sequence[str]) -> dict[str, Any]:
        """Other limits: of pages parts are granted theirs, bytes and time are counted here."""
        change_limits(self._job, options)
        self._log("changed", settings=list(options))
        self._set_timer()
        self._news.set()
        return self._status([])

    def _set_timer(self) -> None:
        """Stop when the limit of time is over. It counts from when all parts can crawl: to start them takes seconds."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        limit = self._job.settings.limits.time
        if limit and self._begun is not None:
            left = max(self._begun + limit - time.monotonic(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(left, self.stop, "time")

    def _status(self, whole: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What all parts told last, or what they just told of themselves as a `whole`, if all of them did."""
        told = whole or [part.told for part in self._parts]
        parts = [_about(part.folder, each) for part, each in zip(self._parts, told, strict=True)]
        found = self.statistics()
        if whole and self._is_whole:
            censuses = [census_from(each["others"].get("census", {})) for each in whole]
            found = sum_up(whole, found.seconds, found.stopped_by, censuses)
        return {"state": self.state(), "parts": parts, **found.as_dict()}

    async def _whole_status(self) -> dict[str, Any]:
        answers = await asyncio.gather(*(part.ask("status", whole=True) for part in self._parts))
        whole = [answer for answer in answers if answer is not None]
        return self._status(whole if len(whole) == len(self._parts) else [])

    async def _tell_all(self, command: str, **details: Any) -> dict[str, Any]:
        answers = await asyncio.gather(*(part.ask(command, **details) for part in self._parts))
        for part, answer in zip(self._parts, answers, strict=True):
            part.told = answer if answer and "gauges" in answer else part.told
        return self._status([])

    async def _add(self, urls: Sequence[str], again: Collection[str]) -> dict[str, Any]:
        """Every part gets all of them: for its scope, and to take those that are its own."""
        seeds = canonical_seeds(self._job.settings, ((url, "") for url in urls))
        self._check_running()
        self._job.add_seeds(seeds)
        await asyncio.to_thread(self._copy_about)
        for part in self._parts:
            if await part.ask("add", urls=list(urls), again=list(again)) is None:
                raise JobError(
                    f"{part.folder.name} did not answer; add them once more: what is known does not count twice"
                )
        return {"added": len(seeds)}

    async def _rule(self, changes: Sequence[tuple[str, str]], why: str) -> dict[str, Any]:
        """Every part goes by all rules; each writes them into its journal."""
        self._check_running()
        known, answer = False, dict[str, Any]()
        for part in self._parts:
            told = await part.ask("rule", changes=list(changes), why=why)
            if told is None:
                raise JobError(
                    f"{part.folder.name} did not answer; say it once more: what is known does not count twice"
                )
            known, answer = known or told["known"], told
        self._log("ruled", changes=list(changes), why=why)
        return {**answer, "known": known}

    async def _about_rules(self) -> dict[str, Any]:
        given, blocked, traps = dict[str, str](), Counter[str](), list[dict[str, Any]]()
        for part in self._parts:
            told = await part.ask("rules") or {}
            given |= told.get("given", {})
            blocked.update(told.get("blocked", {}))
            traps += told.get("traps", [])
        return {"given": given, "blocked": dict(blocked), "traps": traps}

    def _check_running(self) -> None:
        silent = [part for part in self._parts if not part.is_running]
        if silent:
            raise JobError(f"{silent[0].folder.name} is being started again; try in a moment")

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
        self._job.env.remove(self._parts[0].folder.parent / TURNS)
        for part in self._parts:
            write_settings(self._job.env, part.folder, share(self._job.settings, part.number))
        if self._job.settings.frontier == "site":
            registry = open_registry(self._job.settings, self._job.path)
            registry.prolong()  # or the first part to begin would take the sites of the others
            registry.close()
        self._copy_about()

    def _copy_about(self) -> None:
        """Copy what is about the whole, if there is a store; the parts copy themselves."""
        if self._job.settings.store.url:
            copy_about(self._job.env, self._job.path, self._job.settings.store.url)

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
        if self._begun is None and all(part.told or part.given_up for part in self._parts):
            self._begun = now
            self._set_timer()
        limits = self._job.settings.limits
        for reason, limit in (("pages", pages := self._pages()), ("bytes", limits.bytes)):
            if 0 < limit <= sum(part.told.get(reason, 0) for part in self._parts):
                self.stop(reason)
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
        elif not self._is_whole and all(map(self._must_wait, heard)) and len(heard) == len(self._parts):
            self.stop("outbox")

    async def _revive(self, part: Part, now: float) -> None:
        """Start a part, or start it again some time after it died; one that dies over and over is given up."""
        if part.has_died:
            if self._ending:
                return
            self._log("part_died", part=part.folder.name, code=part.bury())
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
            full = told.get("others", {}).get("is_full", False)
            part.full_since = min(part.full_since, time.monotonic()) if full else math.inf
            if self._paused and told["state"] == "running":
                await part.ask("pause")

    @staticmethod
    def _has_done(told: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(
            told.get(name) for name in ("pages", "bytes", "discovered", "robots_files", "failed", "others")
        )

    def _watch_dogs(self) -> None:
        """End a part that has work and does nothing for long, or does not answer; it is started again."""
        for part in self._parts:
            if self._paused or (part.heard == self._looks and _may_rest(part.told)):
                part.changed = time.monotonic()
            silent = time.monotonic() - part.changed
            if part.is_running and silent > self._job.settings.parallel.watchdog:
                self._log("part_hangs", part=part.folder.name, seconds=round(silent))
                part.send(signal.SIGKILL)

    def _pages(self) -> int:
        """How many pages the parts that are here may fetch; 0 for any number."""
        return sum(share(self._job.settings, part.number).limits.pages for part in self._parts)

    def _must_wait(self, part: Part) -> bool:
        """Whether a part can do nothing more before parts elsewhere have taken in what it has for them: its outbox has been
        full for longer than those here need for a checkpoint."""
        patience = 2 * self._job.settings.checkpoint + _PATIENCE
        return bool(part.told["others"]["is_idle"]) or time.monotonic() - part.full_since > patience

    def _nothing_left(self) -> bool:
        """Whether in two looks in a row all parts were idle, had sent all they found, and had taken in all that was sent,
        the same processes in both, with the same counts."""
        parts = [part for part in self._parts if not part.given_up]
        told = [part.told.get("others", {}) for part in parts]
        numbers = [part.number for part in parts]
        if (
            not parts
            or not all(part.heard == self._looks for part in parts)
            or not all(each["is_idle"] and not each["unsent"] for each in told)
            or any(each["waits"] for each in told)  # for a grant
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
            await part.end()

    async def _final(self) -> tuple[Statistics, list[dict[str, Any]]]:
        """What the logs of the parts say of their ends: all together, and of each."""
        ends = [await part.last_words() for part in self._parts]
        told = [end for end in ends if end]
        censuses = None
        if self._is_whole and all("others" in end for end in ends):
            censuses = [await part.census() for part in self._parts]
        seconds = max((end["seconds"] for end in told), default=0.0)
        parts = [_about(part.folder, end) for part, end in zip(self._parts, ends, strict=True)]
        return sum_up(told, seconds, self._stopped_by or "done", censuses), parts

    def _log(self, event: str, **details: Any) -> None:
        self._job.log(time.time(), event, **details)


def _may_rest(told: Mapping[str, Any]) -> bool:
    """Whether a part has a reason to do nothing: it is paused, or has nothing left, or nothing before some time, or
    others have to take in first what it has for them."""
    others = told.get("others", {})
    waits = others.get("is_idle") or others.get("sleeps") or others.get("is_full")
    return bool(waits) or str(told.get("state", "")).startswith("paused")


def end_of(folder: Path) -> dict[str, Any]:
    """What the log of a part says of its last end; {} if it never ended."""
    return next((event for event in reversed(list(events(folder))) if event["event"] == "ended"), {})


def _about(folder: Path, told: Mapping[str, Any]) -> dict[str, Any]:
    """What is to be known of a part: how it stands with others, and what its stages moved, if it told that."""
    others = {name: value for name, value in told.get("others", {}).items() if name != "census"}
    traffic = {name: told[name] for name in ("drum", "beast", "ranking") if name in told}
    return {"folder": folder.name, **others, **traffic}
