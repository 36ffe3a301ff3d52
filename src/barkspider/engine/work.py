"""What an instruction asks for, done: a name looked up, a robots.txt or a page fetched and read.

instruction ─► fetch ─► reading (archive, links) ─► outcome
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from barkspider.archive import ArchiveWriter
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
from barkspider.engine.job import Job
from barkspider.engine.links import LinkMaker
from barkspider.engine.reading import Reader
from barkspider.engine.statistics import Tally
from barkspider.fetch import Fetcher, Response

_Answer = TypeVar("_Answer", PageFetched, RobotsFetched)

_ONLY_IF_CHANGED = int(Flag.AGAIN | Flag.REVISIT)  # whoever wants its other links needs the page


class Worker:
    """Carries out instructions, many at a time, on the running loop. What it read is in the archive, not yet flushed,
    and in the tally when an outcome is returned."""

    def __init__(
        self, job: Job, links: LinkMaker, archive: ArchiveWriter, clock: Clock, tally: Tally
    ) -> None:
        self._job, self._archive, self._clock, self._tally = job, archive, clock, tally
        self._fetcher = Fetcher(job.settings)
        self.cookies = self._fetcher.cookies
        self._reader = Reader(job.settings, links, archive, clock, tally)
        self._earlier: EarlierPages | None = None  # made when the first page is fetched again

    async def carry_out(self, instruction: Instruction) -> Outcome | None:
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

    async def close(self) -> None:
        """Close connections and files."""
        if self._earlier is not None:
            self._earlier.close()
        await self._fetcher.aclose()

    def _find_earlier(self, row: UrlRow) -> Earlier | None:
        """What is stored of a page that is to be fetched again only if it has changed."""
        if row.flags & _ONLY_IF_CHANGED != Flag.AGAIN:
            return None
        if self._earlier is None:
            self._earlier = EarlierPages(self._job.env, self._job.archive)
        return self._earlier.find(row.url.decode())


def _with_cookies(outcome: _Answer, response: Response) -> _Answer:
    """What was taken goes into the journal with the outcome."""
    return replace(outcome, cookies=response.cookies) if response.cookies else outcome


def internal_error(instruction: Instruction) -> Outcome:
    """The outcome of an instruction that could not be carried out, through no fault of its server."""
    if isinstance(instruction, ResolveHost):
        return HostResolved(instruction, (), "internal_error")
    if isinstance(instruction, FetchRobots):
        return RobotsFetched(instruction, 0)
    assert isinstance(instruction, FetchPage)
    return PageFetched(instruction, failure="internal_error")
