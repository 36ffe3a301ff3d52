"""What an instruction asks for, done: a name looked up, a robots.txt or a page fetched, and then read.

instruction ─► fetch ─► Arrival ─ with all others that have arrived ─► read (`reading`) ─► Reaped
                          ▲  └ a large page ─► read aside (`contents`)
                          └───────── with its content ──────┘
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barkspider.archive import ArchiveWriter, error_note
from barkspider.core.clock import Clock
from barkspider.core.events import (
    DomainProbed,
    FetchPage,
    FetchRobots,
    HostResolved,
    Outcome,
    PageFetched,
    ProbeDomain,
    Request,
    ResolveHost,
    RobotsFetched,
)
from barkspider.core.records import Flag, UrlRow
from barkspider.engine.contents import LARGE, Content, Contents
from barkspider.engine.earlier import Earlier, EarlierPages
from barkspider.engine.folder import earlier_folders
from barkspider.engine.harvest import Reaped
from barkspider.engine.job import Job
from barkspider.engine.links import LinkMaker
from barkspider.engine.reading import ResponseReader
from barkspider.engine.spare import SpareFiles
from barkspider.engine.statistics import Tally
from barkspider.fetch import Fetcher, Resolution, Response
from barkspider.url.robots import MAX_SIZE

_UNLESS_THE_SAME = int(Flag.AGAIN | Flag.REVISIT)  # whoever wants its other links needs the page


class Arrival(NamedTuple):
    """What the network gave for an instruction, or what went wrong here.

    `earlier` is what is stored of a page that is fetched again, `content` what is in a large one, which is read already.
    """

    instruction: Request
    answer: Response | Resolution | Exception
    earlier: Earlier | None = None
    content: Content | Exception | None = None


class Worker:
    """Carries out instructions, many at a time, on the running loop."""

    def __init__(
        self, job: Job, links: LinkMaker, archive: ArchiveWriter, clock: Clock, tally: Tally
    ) -> None:
        self._job, self._clock, self._tally = job, clock, tally
        self._fetcher = Fetcher(job.settings)
        self.cookies, self.give_cookies = self._fetcher.cookies, self._fetcher.give_cookies
        self._contents = Contents(job.settings)
        self._reader = ResponseReader(job.settings, self._contents, links, archive, clock, tally, job.log)
        self._earlier: list[EarlierPages] = []  # made when the first page is fetched again
        self._spare = SpareFiles(job.env, self._shed)

    @property
    def has_room(self) -> bool:
        """Whether what was fetched is read so soon that more can be asked for."""
        return self._contents.has_room

    def received(self) -> tuple[int, int]:
        """Bytes of RAM in what was received and is not read yet, and how many there may be."""
        return self._fetcher.received()

    def begin(self, instruction: Request, done: Callable[[Arrival], None]) -> None:
        """Get from the network what an instruction asks for, and tell `done`, which opens no socket."""

        def arrived(answer: Response | Resolution) -> None:
            done(Arrival(instruction, answer, earlier))

        earlier: Earlier | None = None
        if isinstance(instruction, ResolveHost | ProbeDomain):
            self._fetcher.look_up(instruction.host, arrived)
        elif isinstance(instruction, FetchRobots):
            # One byte more than counts tells that there was more.
            self._fetcher.begin(instruction.url, instruction.address, arrived, most=MAX_SIZE + 1)
        else:
            row = instruction.row
            earlier = self._find_earlier(row)
            validators = earlier.validators if earlier else None
            url = row.url.decode()
            self._fetcher.begin(url, instruction.address, arrived, validators, any_type=False, most=LARGE)

    def abort(self) -> None:
        """Give up what is under way: nobody is told of it."""
        self._fetcher.abort()

    def pays_aside(self, arrival: Arrival) -> bool:
        """Whether an arrival has a page that is not read yet and is better read in a thread."""
        if not isinstance(arrival.instruction, FetchPage) or arrival.content is not None:
            return False
        answer = arrival.answer
        return (
            isinstance(answer, Response)
            and 200 <= answer.exchange.status < 300
            and self._contents.pays_aside(answer)
        )

    def read_aside(self, arrival: Arrival, done: Callable[[Arrival], None]) -> None:
        """Read its page while the loop goes on, and tell `done` the same with what is in it."""
        assert isinstance(arrival.answer, Response)
        arrival.answer.pack()
        self._contents.read_aside(arrival.answer, lambda content: done(arrival._replace(content=content)))

    def read(self, arrival: Arrival) -> Reaped:
        """What came of an instruction.

        When it returns, the exchange is in the tally; `Reaped.kept` puts it into the archive.
        """
        instruction, answer, earlier, content = arrival
        if isinstance(answer, Exception):
            raise answer
        if isinstance(content, Exception):
            raise content
        if isinstance(answer, Response):
            self._fetcher.take_cookies(answer)
            if isinstance(instruction, FetchRobots):
                return self._reader.robots(instruction, answer)
            assert isinstance(instruction, FetchPage)
            return self._reader.page(instruction, answer, earlier, content)
        if isinstance(instruction, ProbeDomain):
            return Reaped(DomainProbed(instruction, answer.addresses))
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
        for pages in self._earlier:
            pages.close()
        await self._fetcher.aclose()

    def _shed(self, count: int) -> None:
        self._job.log(self._clock.wall(), "few_open_files", connections=self._fetcher.shed(count))

    def _find_earlier(self, row: UrlRow) -> Earlier | None:
        """What is stored of a page that is to be fetched, and stored, again only if it has changed."""
        if row.flags & _UNLESS_THE_SAME != Flag.AGAIN:
            return None
        if not self._earlier:
            # The newest first: what is here, then what there was before the crawl was divided anew, and before that.
            archives = [
                self._job.archive,
                *(path / "archive" for path in reversed(earlier_folders(self._job.path))),
            ]
            self._earlier = [EarlierPages(self._job.env, archive) for archive in archives]
        url = row.url.decode()
        return next((found for pages in self._earlier if (found := pages.find(url)) is not None), None)


def internal_error(instruction: Request) -> Outcome:
    """The outcome of an instruction that could not be carried out, through no fault of its server."""
    if isinstance(instruction, ResolveHost):
        return HostResolved(instruction, (), "internal_error")
    if isinstance(instruction, ProbeDomain):
        return DomainProbed(instruction, ())
    if isinstance(instruction, FetchRobots):
        return RobotsFetched(instruction, 0)
    return PageFetched(instruction, failure="internal_error")
