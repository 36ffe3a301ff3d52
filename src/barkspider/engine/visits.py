"""The Global Frontier, as the loop of one process knows it: check-outs, check-ins, and leases that are renewed.

    instructions ─► CheckOut, CheckIn ─► in turn, in a thread: the database ─► CheckedOut, CheckedIn ─► a harvest
    every third of a lease ─► renewed ─► LeaseLost for the sites that somebody else has now

A request goes out only while the lease of its site holds, by a clock that nobody sets and that goes on while this process is
stopped. While the database is away what is to be said waits, the crawl goes on as long as its leases, and nothing is lost: until
they are answered, check-ins are in the frontier, which keeps them over a crash as all that it has.

A visit is checked in when its pages and the journal are safe from a power loss, so the database never knows of more than is here.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from barkspider.core.batch import UrlBatch
from barkspider.core.events import (
    CheckedIn,
    CheckedOut,
    CheckIn,
    CheckOut,
    FetchPage,
    FetchRobots,
    Instruction,
    LeaseLost,
    Request,
    SiteLeased,
)
from barkspider.core.records import Flag, pack_row
from barkspider.core.settings import Settings
from barkspider.core.texts import Texts
from barkspider.engine.folder import whole_of
from barkspider.engine.harvest import Reaped
from barkspider.sites import AwayError, Link, Registry, Visit, open_database
from barkspider.sites.registry import KILLED
from barkspider.storage.env import Env
from barkspider.url import KeyMaker, split

SITES, OWNER, READING = "sites.db", "owner", "reading"
_RENEWALS = 3  # of a lease, while it lasts
_AGAIN, _LONGEST = 0.5, 10.0  # seconds until a database that is away is asked again, doubled each time
Result = TypeVar("Result")
_SOON, _LATER = (
    0.5,
    60.0,
)  # seconds until a request without a lease is looked at again, if it may get one, and if not


def open_registry(settings: Settings, folder: Path) -> Registry:
    """The Global Frontier of the job that a folder is, or is a part of."""
    name = f"crawl_{settings.seed:016x}"
    database = open_database(settings.parallel.database, whole_of(folder) / SITES, name)
    return Registry(database, settings.site.lease, settings.site.tries)


def owner_of(env: Env, folder: Path) -> str:
    """As whom a job, or a part of one, has sites: the same for as long as its folder is there."""
    if OWNER not in env.list(folder):
        env.write_whole(folder / OWNER, f"{folder.name}-{secrets.token_hex(8)}".encode())
    return env.read(folder / OWNER).decode()


def check_out(registry: Registry, owner: str, asked: CheckOut) -> CheckedOut:
    """Carry out a check-out."""
    sites, left = registry.check_out(owner, asked.most)
    leased = (
        SiteLeased(site.key, site.fence, site.seen, UrlBatch.checked(Texts.of(site.rows))) for site in sites
    )
    return CheckedOut(tuple(leased), left)


def check_in(registry: Registry, asked: CheckIn) -> CheckedIn:
    """Carry out a check-in."""
    links = [
        Link(
            row.host_key,
            split(row.url.decode()).host,
            row.pld_key,
            row.key,
            pack_row(row),
            bool(row.flags & Flag.SEED),
        )
        for row in asked.found.rows()
    ]
    if not asked.key:
        registry.add(links)
        return CheckedIn(0, asked.fence, True)
    visit = Visit(asked.seen, asked.pages, asked.failed, asked.refused, asked.failed_by)
    return CheckedIn(asked.key, asked.fence, registry.check_in(asked.key, asked.fence, visit, links))


def seeded(outcome: CheckedOut) -> list[str]:
    """The URLs to which seeds redirect, which belong to the scope wherever they are crawled."""
    both = Flag.SEED | Flag.REDIRECT
    rows = (row for site in outcome.sites for row in site.links.rows())
    return [row.url.decode() for row in rows if row.flags & both == both]


class Visits:
    """See the module. Lives on the loop of its crawl. `held` are the sites that its frontier has, with the numbers of their
    visits, and `blamed` those at which an earlier process looked when it ended; `take_in` is given what the database answers, `extend` what belongs to the scope; `sync` gives what makes all that was
    archived so far safe, for any thread; `log` is told when the database goes and comes, `fail` what else went wrong."""

    def __init__(
        self,
        registry: Registry,
        owner: str,
        settings: Settings,
        held: Mapping[int, int],
        blamed: Collection[int],
        take_in: Callable[[Reaped], None],
        extend: Callable[[str], None],
        sync: Callable[[], Callable[[], None]],
        log: Callable[..., None],
        fail: Callable[[Exception], None],
        clock: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        self._registry, self._owner, self._lease = registry, owner, settings.site.lease
        self._keys = KeyMaker(settings.seed)
        self._take_in, self._extend, self._sync = take_in, extend, sync
        self._log, self._fail, self._clock = log, fail, clock
        self._held = dict(held)  # in the frontier, or on their way there
        self._blamed = {key: fence for key, fence in held.items() if key in blamed}
        self._until: dict[int, float] = {}  # when leases end
        self._errands = deque[CheckOut | CheckIn]()
        self._news = asyncio.Event()
        # Whether the database may say that we have sites of which we do not know: an answer was lost.
        self._unsure, self._renew_at = True, 0.0
        self._thread = ThreadPoolExecutor(1, "sites")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to speak to the database."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Say nothing more; sites that are here stay ours for as long as their leases."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await asyncio.to_thread(self._thread.shutdown)  # what is under way is waited for
        self._registry.close()

    def sift(self, instructions: list[Instruction]) -> list[Instruction]:
        """Take what is for the database; the rest."""
        errands = [each for each in instructions if isinstance(each, CheckOut | CheckIn)]
        if not errands:
            return instructions
        self._errands += errands
        self._news.set()
        return [each for each in instructions if not isinstance(each, CheckOut | CheckIn)]

    def wait_of(self, request: Request) -> float:
        """0 if a request may go out now; else the seconds after which it is to be looked at again."""
        if isinstance(request, FetchPage):
            site = request.row.host_key
        elif isinstance(request, FetchRobots):  # which may be elsewhere, after a redirect
            site = self._keys.of(split(request.origin + "/").host)
        else:
            return 0.0
        if self._until.get(site, 0.0) > self._clock():
            return 0.0
        return _SOON if site in self._held else _LATER

    async def _run(self) -> None:
        pause = _AGAIN
        while True:
            try:
                if self._clock() >= self._renew_at:
                    await self._renew()
                while self._errands and self._clock() < self._renew_at:
                    await self._answer_all()
                if pause > _AGAIN:
                    pause = _AGAIN
                    self._log("database_back")
            except AwayError as error:
                if pause == _AGAIN:
                    self._log("database_away", error=str(error))
                self._unsure, self._renew_at = True, 0.0
                pause = min(2 * pause, _LONGEST)
                await asyncio.sleep(pause / 2)
                continue
            except Exception as error:
                self._fail(error)
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(max(self._renew_at - self._clock(), 0.0)):
                    await self._news.wait()
            self._news.clear()

    async def _renew(self) -> None:
        """Prolong all leases, and find out which are not ours any more."""
        begun, known = self._clock(), set(self._held.items()) if self._unsure else None
        while self._blamed:
            key, fence = next(iter(self._blamed.items()))
            if await self._call(partial(self._registry.blame, key, fence)):
                self._log("site_left", reason=KILLED, site=f"{key:016x}")
            del self._blamed[key]
        found = await self._call(lambda: self._registry.renew(self._owner, known))
        self._unsure, self._renew_at = False, begun + self._lease / _RENEWALS
        ending = {
            errand.key for errand in self._errands if isinstance(errand, CheckIn)
        }  # which says itself what is
        lost = tuple(
            (key, fence) for key, fence in self._held.items() if found.get(key) != fence and key not in ending
        )
        for key, _ in lost:
            del self._held[key]
        self._until = dict.fromkeys(self._held, begun + self._lease)
        if lost:
            self._log("leases_lost", sites=len(lost))
            self._take_in(Reaped(LeaseLost(lost)))

    async def _answer_all(self) -> None:
        """Carry out what is to be said at this moment; all of it that is checked in is made safe before, once."""
        count = len(self._errands)
        if any(isinstance(errand, CheckIn) for errand in self._errands):
            await self._call(self._sync())
        for _ in range(count):
            await self._answer(self._errands[0])
            self._errands.popleft()

    async def _answer(self, errand: CheckOut | CheckIn) -> None:
        begun = self._clock()
        if isinstance(errand, CheckOut):
            given = await self._call(lambda: check_out(self._registry, self._owner, errand))
            for site in given.sites:
                self._held[site.key], self._until[site.key] = site.fence, begun + self._lease
            for url in seeded(given):
                self._extend(url)
            self._take_in(Reaped(given))
            return
        answer = await self._call(lambda: check_in(self._registry, errand))
        if self._held.get(errand.key) == errand.fence:
            del self._held[errand.key]
            self._until.pop(errand.key, None)
        self._take_in(Reaped(answer))

    async def _call(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
