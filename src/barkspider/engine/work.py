"""What an instruction asks for, done: a name looked up, a robots.txt or a page fetched, and then read.

instruction ─► fetch ─► Arrival ─ with all others that have arrived ─► read (`reading`) ─► Reaped
                          ▲  └ a large page ─► read aside (`contents`)
                          └───────── with its content ──────┘
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
from barkspider.engine.contents import LARGE, Content, Contents, is_large
from barkspider.engine.earlier import Earlier, EarlierPages
from barkspider.engine.harvest import Reaped
from barkspider.engine.job import Job
from barkspider.engine.links import LinkMaker
from barkspider.engine.reading import Reader
from barkspider.engine.spare import SpareFiles
from barkspider.engine.statistics import Tally
from barkspider.fetch import Fetcher, Resolution, Response
from barkspider.url.robots import MAX_SIZE

_UNLESS_THE_SAME = int(Flag.AGAIN | Flag.REVISIT)  # whoever wants its other links needs the page


class Arrival(NamedTuple):
    """What the network gave for an instruction; None when something went wrong here.

    `earlier` is what is stored of a page that is fetched again, `content` what is in a large one, which is read already.
    """

    instruction: Instruction
    answer: Response | Resolution | None
    earlier: Earlier | None = None
    content: Content | None = None


class Worker:
    """Carries out instructions, many at a time, on the running loop."""

    def __init__(
        self, job: Job, links: LinkMaker, archive: ArchiveWriter, clock: Clock, tally: Tally
    ) -> None:
        self._job, self._clock, self._tally = job, clock, tally
        self._fetcher = Fetcher(job.settings)
        self.cookies, self.give_cookies = self._fetcher.cookies, self._fetcher.give_cookies
        self._contents = Contents(job.settings)
        self._reader = Reader(job.settings, self._contents, links, archive, clock, tally, job.log)
        self._earlier: EarlierPages | None = None  # made when the first page is fetched again
        self._spare = SpareFiles(job.env, self._shed)

    async def fetch(self, instruction: Instruction) -> Arrival:
        """Get from the network what an instruction asks for."""
        if isinstance(instruction, ResolveHost):
            return Arrival(instruction, await self._fetcher.resolve(instruction.host))
        if isinstance(instruction, FetchRobots):
            # One byte more than counts tells that there was more.
            url, most = instruction.url, MAX_SIZE + 1
            return Arrival(instruction, await self._fetcher.fetch(url, instruction.address, most=most))
        await self._contents.room()
        url = instruction.row.url.decode()
        earlier = self._find_earlier(instruction.row)
        validators = earlier.validators if earlier else None
        response = await self._fetcher.fetch(url, instruction.address, validators, any_type=False, most=LARGE)
        return Arrival(instruction, response, earlier)

    @staticmethod
    def takes_long(arrival: Arrival) -> bool:
        """Whether an arrival has a large page that is not read yet."""
        if not isinstance(arrival.instruction, FetchPage) or arrival.content is not None:
            return False
        answer = arrival.answer
        return isinstance(answer, Response) and 200 <= answer.exchange.status < 300 and is_large(answer)

    async def read_aside(self, arrival: Arrival) -> Arrival:
        """The same with what is in its page, read while the loop goes on."""
        assert isinstance(arrival.answer, Response)
        arrival.answer.pack()
        return arrival._replace(content=await self._contents.read_aside(arrival.answer))

    def read(self, arrival: Arrival) -> Reaped | None:
        """What came of an instruction; None for a page that came when there were enough.

        When it returns, the exchange is in the archive, not yet flushed, and in the tally.
        """
        instruction, answer, earlier, content = arrival
        if answer is None:
            return Reaped(internal_error(instruction))
        if isinstance(answer, Response):
            if isinstance(instruction, FetchRobots):
                return self._reader.robots(instruction, answer)
            assert isinstance(instruction, FetchPage)
            if 0 < self._job.settings.limits.pages <= self._tally.pages:
                return None
            return self._reader.page(instruction, answer, earlier, content)
        assert isinstance(instruction, ResolveHost)
        outcome = HostResolved(instruction, answer.addresses, answer.error, answer.ttl)
        error = (
            [error_note(self._clock.wall(), "dns", answer.error, instruction.host)] if answer.error else []
        )
        return Reaped(outcome, None, error)

    async def close(self) -> None:
        """Close connections and files."""
        self._spare.close()
        self._contents.close()
        if self._earlier is not None:
            self._earlier.close()
        await self._fetcher.aclose()

    def _shed(self, count: int) -> None:
        self._job.log(self._clock.wall(), "few_open_files", connections=self._fetcher.shed(count))

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
