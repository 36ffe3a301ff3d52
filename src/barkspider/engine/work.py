"""What an instruction asks for, done: a name looked up, a robots.txt or a page fetched, and then read.

instruction ─► fetch ─► Arrival ─ with all others that have arrived ─► read (`reading`) ─► Reaped
"""

from __future__ import annotations

from typing import NamedTuple

from barkspider.archive import ArchiveWriter, error_note
from barkspider.core.clock import Clock
from barkspider.core.events import (
    FetchPage,
    FetchRobots,
    HostResolved,
    Instruction,
    Outcome,
    PageFetched,
    ResolveHost,
    RobotsFetched,
)
from barkspider.core.records import Flag, UrlRow
from barkspider.engine.earlier import Earlier, EarlierPages
from barkspider.engine.harvest import Reaped
from barkspider.engine.job import Job
from barkspider.engine.links import LinkMaker
from barkspider.engine.reading import Reader
from barkspider.engine.statistics import Tally
from barkspider.fetch import Fetcher, Resolution, Response

_UNLESS_THE_SAME = int(Flag.AGAIN | Flag.REVISIT)  # whoever wants its other links needs the page


class Arrival(NamedTuple):
    """What the network gave for an instruction; None when something went wrong here.

    `earlier` is what is stored of a page that is fetched again.
    """

    instruction: Instruction
    answer: Response | Resolution | None
    earlier: Earlier | None = None


class Worker:
    """Carries out instructions, many at a time, on the running loop."""

    def __init__(
        self, job: Job, links: LinkMaker, archive: ArchiveWriter, clock: Clock, tally: Tally
    ) -> None:
        self._job, self._clock, self._tally = job, clock, tally
        self._fetcher = Fetcher(job.settings)
        self.cookies, self.give_cookies = self._fetcher.cookies, self._fetcher.give_cookies
        self._reader = Reader(job.settings, links, archive, clock, tally, job.log)
        self._earlier: EarlierPages | None = None  # made when the first page is fetched again

    async def fetch(self, instruction: Instruction) -> Arrival:
        """Get from the network what an instruction asks for."""
        if isinstance(instruction, ResolveHost):
            return Arrival(instruction, await self._fetcher.resolve(instruction.host))
        if isinstance(instruction, FetchRobots):
            return Arrival(instruction, await self._fetcher.fetch(instruction.url, instruction.address))
        url = instruction.row.url.decode()
        earlier = self._find_earlier(instruction.row)
        validators = earlier.validators if earlier else None
        response = await self._fetcher.fetch(url, instruction.address, validators, any_type=False)
        return Arrival(instruction, response, earlier)

    def read(self, arrival: Arrival) -> Reaped | None:
        """What came of an instruction; None for a page that came when there were enough.

        When it returns, the exchange is in the archive, not yet flushed, and in the tally.
        """
        instruction, answer, earlier = arrival
        if answer is None:
            return Reaped(internal_error(instruction))
        if isinstance(answer, Response):
            if isinstance(instruction, FetchRobots):
                return self._reader.robots(instruction, answer)
            assert isinstance(instruction, FetchPage)
            if 0 < self._job.settings.limits.pages <= self._tally.pages:
                return None
            return self._reader.page(instruction, answer, earlier)
        assert isinstance(instruction, ResolveHost)
        outcome = HostResolved(instruction, answer.addresses, answer.error, answer.ttl)
        error = (
            [error_note(self._clock.wall(), "dns", answer.error, instruction.host)] if answer.error else []
        )
        return Reaped(outcome, None, error)

    async def close(self) -> None:
        """Close connections and files."""
        if self._earlier is not None:
            self._earlier.close()
        await self._fetcher.aclose()

    def _find_earlier(self, row: UrlRow) -> Earlier | None:
        """What is stored of a page that is to be fetched, and stored, again only if it has changed."""
        if row.flags & _UNLESS_THE_SAME != Flag.AGAIN:
            return None
        if self._earlier is None:
            self._earlier = EarlierPages(self._job.env, self._job.archive)
        return self._earlier.find(row.url.decode())


def internal_error(instruction: Instruction) -> Outcome:
    """The outcome of an instruction that could not be carried out, through no fault of its server."""
    if isinstance(instruction, ResolveHost):
        return HostResolved(instruction, (), "internal_error")
    if isinstance(instruction, FetchRobots):
        return RobotsFetched(instruction, 0)
    return PageFetched(instruction, failure="internal_error")
