"""What has arrived becomes harvests: read in turn, archived together, bound to one record.

No socket is looked at before a harvest is applied, so it ends soon, whatever it brings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from barkspider.core.errors import StorageError, is_shortage
from barkspider.core.events import FetchPage, PageFetched, Request, RobotsFetched
from barkspider.engine.arrivals import Arrivals
from barkspider.engine.harvest import Harvest, Reaped
from barkspider.engine.reach import Reach
from barkspider.engine.recovery import Components
from barkspider.engine.suspects import Suspects
from barkspider.engine.watch import Watch
from barkspider.engine.work import Arrival, internal_error

# After which a harvest ends: answers, links, bytes of robots.txt (whose rules take 90 ns a byte to read), seconds, bytes of
# links. One more answer takes 50 ms at worst.
_MOST, _MOST_LINKS, _MOST_RULES, _LONGEST, _MOST_BYTES = 256, 20_000, 1 << 16, 0.02, 3 << 17
_Result = TypeVar("_Result")


class Reaping:
    """See the module. Lives on the loop of its crawl, which fills `arrived`.

    `aside` has a page read in a thread, `log` is told of what failed through our own fault. When the crawl is `closing`
    nothing is read in a thread any more.
    """

    def __init__(
        self,
        components: Components,
        watch: Watch,
        reach: Reach,
        aside: Callable[[Arrival], None],
        log: Callable[[Request], None],
    ) -> None:
        self._clock, self._steady, self._worker = components.clock, components.steady, components.worker
        self._archive, self._links, self._tally = components.archive, components.links, components.tally
        self._frontier, self._phases = components.frontier, components.tally.phases
        self._watch, self._reach, self._aside, self._log = watch, reach, aside, log
        self.arrived = Arrivals()
        self.closing = False
        self.suspects: Suspects | None = None  # who is told what is being read, in a crawl site by site

    def reap(self) -> Harvest:
        """The next harvest; an empty one when nothing has arrived."""
        if not self.arrived:
            return Harvest(self._steady.now(), ())
        reaped, links, rules, size = list[Reaped](), 0, 0, 0
        until = (now := self._clock.monotonic()) + _LONGEST
        while self.arrived and len(reaped) < _MOST:
            each = self._read(self.arrived.popleft())
            if each is not None:
                reaped.append(each)
                for part in each.links or ():
                    links += len(part.urls)
                    size += part.urls.packed.size()
                rules += len(each.outcome.body) if isinstance(each.outcome, RobotsFetched) else 0
            before, now = now, self._clock.monotonic()
            self.arrived.charge(now - before)
            if now > until or links >= _MOST_LINKS or rules >= _MOST_RULES or size >= _MOST_BYTES:
                break
        self._phases.end("read")
        reaped = [each if each.keep is None else self._keep(each) for each in reaped]
        self._watch.doing = None
        if self.suspects is not None:
            self.suspects.looked()
        self._reach.take(reaped)
        warc_ends, tally = self._archive.warc_ends(), self._tally.save()
        return Harvest.of(self._steady.now(), reaped, self._links, warc_ends, tally)

    def _read(self, arrival: Arrival | Reaped) -> Reaped | None:
        """What came of an instruction; whatever happens, there is one outcome, unless it comes later, from a thread in which
        pages are read."""
        if isinstance(arrival, Reaped):
            return arrival
        most = self._frontier.granted
        if most is not None and most <= self._tally.pages and isinstance(arrival.instruction, FetchPage):
            # There are enough, for now: as if it had not been asked for.
            return Reaped(PageFetched(arrival.instruction, stale=True))
        return self._try(arrival.instruction, partial(self._read_answer, arrival))

    def _read_answer(self, arrival: Arrival) -> Reaped | None:
        if not self.closing and self._worker.pays_aside(arrival):
            self._aside(arrival)
            return None
        return self._worker.read(arrival)

    def _keep(self, reaped: Reaped) -> Reaped:
        assert isinstance(reaped.outcome, PageFetched | RobotsFetched)
        return self._try(reaped.outcome.asked, reaped.kept)

    def _try(self, instruction: Request, work: Callable[[], _Result]) -> _Result | Reaped:
        """What the work gives, or that it failed."""
        self._watch.doing = instruction
        if self.suspects is not None:
            self.suspects.look(instruction)
        try:
            return work()
        except StorageError:
            raise
        except Exception as error:  # one bad page must not end the crawl; the log keeps what happened
            if is_shortage(error):
                raise
            self._log(instruction)
            return Reaped(internal_error(instruction))
