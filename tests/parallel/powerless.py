"""Two processes that divide a web on one virtual clock, on a disk in RAM that loses power.

The journal, the checkpoints, the frontiers, the exchange and the post are those of a crawl; the web is made up, and there are
no sockets and no archive. Everything that a process does goes through one `FaultyEnv`, so that power may fail after any
operation: of the machine, or of the disk of one process.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest import mock

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Outcome, PageFetched, Seeds
from barkspider.core.load import load_settings
from barkspider.core.records import Flag
from barkspider.engine.harvest import Harvest, Reaped
from barkspider.engine.ledger import Ledger
from barkspider.engine.neighbours import Correspondence
from barkspider.frontier import open_frontier
from barkspider.frontier.irlbot import Irlbot
from barkspider.parallel.post import Post
from barkspider.storage.env import Env
from barkspider.url.partition import by_hash
from tests.frontier.virtual import VirtualWeb, batch, random_web, row
from tests.storage.faulty import Disk, FaultyEnv

JOB = Path("/job")
_PARTS = 2
_LATENCY = 0.3
# What becomes of what was not synced, and whose: the machine's, or one process's.
_LOSSES = tuple(product(("drop", "random", "keep"), (None, 0, 1)))


class _Turns:
    """Nobody else asks a server: each has one host."""

    def __init__(self, *_: Any) -> None: ...

    def take(self, address: str) -> float:
        return 0.0

    def rest(self, address: str, seconds: float) -> None: ...

    def close(self) -> None: ...


class _Archive:
    def syncing(self) -> Any:
        return lambda: None


@contextmanager
def without_turns() -> Iterator[None]:
    """Nor does time go by by itself: what others acknowledged is read at every look."""
    post = "barkspider.parallel.post"
    with mock.patch(f"{post}.Turns", _Turns), mock.patch(f"{post}._READ_AGAIN", 0.0):
        yield


class Part:
    """One process: what is in RAM is gone with it."""

    def __init__(
        self, env: Env, web: VirtualWeb, number: int, now: float, options: Sequence[str] = ()
    ) -> None:
        usual = [f"parallel.processes={_PARTS}", f"parallel.part={number}", "memory=16MB", "seed=1"]
        settings = load_settings(options=[*usual, "parallel.batch=4", "parallel.interval=2s", *options])
        folder, self.web, self.order = JOB / f"part-{number:04d}", web, count()
        env.make_folder(folder)
        self.ledger = Ledger(env, folder)
        self.ledger.recover(folder / "archive")
        self.frontier = open_frontier(
            settings, env, folder, state=self.ledger.state, resumed=now, background=False
        )
        self.coming: list[tuple[float, int, Outcome]] = []
        replayed = 0
        for harvest in self.ledger.harvests():
            self.frontier.replay(harvest.time, harvest.outcomes)
            replayed += len(harvest.outcomes)
        for structure in self.frontier.structures():
            self.ledger.add(structure)
        self.post = Post(env, folder, settings)
        self.others = Correspondence(
            self.post,
            self.frontier,
            self.ledger,
            _Archive(),  # type: ignore[arg-type]
            self._take_in,
            lambda _: None,
            lambda: 0.0,
            self._fail,
            lambda: None,
            None,
        )
        assert self.frontier.exchange is not None
        self.exchange = self.frontier.exchange
        assert self.exchange.sorting.census is not None
        self.known = set(self.exchange.sorting.census.fetched.keys)  # what it need not ask for again
        self.wake = now
        if self.ledger.is_new:
            self._take_in(Reaped(Seeds(batch(next(iter(web.pages)), flags=int(Flag.SEED)))))
        elif replayed:
            self.commit()

    def _take_in(self, reaped: Reaped) -> None:
        heapq.heappush(self.coming, (-1.0, next(self.order), reaped.outcome))

    def _fail(self, error: Exception) -> None:
        raise error

    async def turn(self, now: float) -> None:
        """Look for what others sent, send, take in what has arrived, and ask for more."""
        self.others._look()
        assert self.others._timer is not None
        self.others._timer.cancel()
        await self.others.finish()
        outcomes = []
        while self.coming and self.coming[0][0] <= now:
            outcomes.append(heapq.heappop(self.coming)[2])
        harvest = _harvest(now, outcomes)
        if harvest.is_news:
            self.ledger.write(harvest)
        instructions, self.wake = self.frontier.step(now, harvest.outcomes)
        for request in self.others.sift(instructions):
            answer = self.web.answer(now, request)
            heapq.heappush(self.coming, (now + _LATENCY, next(self.order), answer))

    def commit(self) -> None:
        """A checkpoint, as a crawl makes it."""
        self.ledger.commit(0.0, [])
        self.others.committed()

    def next_time(self) -> float:
        return min(self.wake, self.coming[0][0] if self.coming else math.inf)


def _harvest(now: float, outcomes: list[Outcome]) -> Harvest:
    """The outcomes with their links as slices of one batch."""
    parts = [each.links for each in outcomes if isinstance(each, PageFetched) and each.links is not None]
    links, place, found = UrlBatch.join(parts), 0, list[Outcome]()
    for each in outcomes:
        if isinstance(each, PageFetched) and each.links is not None:
            start, place = place, place + len(each.links)
            found.append(each.with_links(links.slice(start, place)))
        else:
            found.append(each)
    return Harvest(now, found, links)


class Found(NamedTuple):
    """What all processes have when nothing is left: pages, how often in all, links between domains, and URLs sent and
    received; and how many pages were asked for though they were known when the run began."""

    pages: frozenset[int]
    counted: int
    in_degrees: tuple[tuple[int, int], ...]
    sent: int
    received: int
    again: int


def web() -> VirtualWeb:
    """Twenty-four pages on six hosts, domains each, of both processes."""
    return VirtualWeb(random_web(hosts=6, pages=24, links=4, seed=3), latency=_LATENCY)


def truth() -> set[int]:
    """The keys of all pages, which both processes have some of."""
    rows = [row(url) for url in web().pages]
    owners = by_hash(UrlBatch.from_rows(rows).pld_key, _PARTS)
    assert set(owners.tolist()) == set(range(_PARTS))
    return {each.key for each in rows}


def crawl(env: Env, seed: int, options: Sequence[str] = ()) -> Found:
    """Start both processes on what the disk has, and let them crawl to the end."""
    return asyncio.run(_crawl(env, seed, options))


async def _crawl(env: Env, seed: int, options: Sequence[str]) -> Found:
    random, machine = Random(seed), Machine(env, options=options)
    for _ in range(2_000):
        for part in machine.parts:
            await part.turn(machine.now)
            if random.random() < 0.1:
                part.commit()
        if machine.is_over():
            return machine.end()
        machine.wait()
    raise AssertionError("the crawl does not end")


class Machine:
    """Both processes, and their clock."""

    def __init__(
        self, env: Env, served: VirtualWeb | None = None, options: Sequence[str] = (), now: float = 1000.0
    ) -> None:
        self.env, self.now, self.web, self._options = env, now, served or web(), options
        env.make_folder(JOB)
        self.parts = [self.start(number) for number in range(_PARTS)]

    def start(self, number: int) -> Part:
        """A process on what the disk has."""
        return Part(self.env, self.web, number, self.now, self._options)

    async def run(self) -> None:
        """To the end."""
        for _ in range(2_000):
            for part in self.parts:
                await part.turn(self.now)
            if self.is_over():
                return
            self.wait()
        raise AssertionError("the crawl does not end")

    def wait(self) -> None:
        """Until somebody has something to do, or for a while: others may have sent something."""
        until = min(part.next_time() for part in self.parts)
        self.now = max(self.now + 0.1, min(until, self.now + 5.0))

    def is_over(self) -> bool:
        """As the supervisor of a crawl sees it."""
        for part in self.parts:
            if not part.frontier.is_idle() or part.coming or not part.exchange.sorting.is_empty:
                return False
        return all(
            one.exchange.sealed[to] == other.exchange.applied[sender]
            for sender, one in enumerate(self.parts)
            for to, other in enumerate(self.parts)
        )

    def end(self) -> Found:
        """A last checkpoint of each, and what there is."""
        for part in self.parts:
            part.commit()
        return _found(self.parts, self.web)


def _found(parts: list[Part], served: VirtualWeb) -> Found:
    fetched, degrees, known = set[int](), dict[int, int](), set[int]()
    for part in parts:
        part.frontier.validate()
        assert part.frontier.counters.balanced()
        assert part.exchange.sorting.census is not None
        assert not fetched & part.exchange.sorting.census.fetched.keys
        fetched |= part.exchange.sorting.census.fetched.keys
        known |= part.known
        assert isinstance(part.frontier._source, Irlbot)
        star = part.frontier._source._star
        star.merge()
        found = star.distribution()
        for degree, domains in zip(found.degrees.tolist(), found.counts.tolist(), strict=True):
            degrees[degree] = degrees.get(degree, 0) + domains
        part.frontier.close()
        part.ledger.close()
    asked = [row(url).key for url in served.fetched()]
    return Found(
        frozenset(fetched),
        sum(part.frontier.counters.pages for part in parts),
        tuple(sorted(degrees.items())),
        sum(part.exchange.sent for part in parts),
        sum(part.exchange.received for part in parts),
        sum(key in known for key in asked),
    )


def is_whole(found: Found, calm: Found) -> bool:
    """Whether nothing is lost, nothing was applied twice, and nothing that was known was asked for."""
    return (
        (set(found.pages), found.counted) == (truth(), len(truth()))
        and found.in_degrees == calm.in_degrees
        and found.sent == found.received
        and not found.again
    )


def power_losses(every: int) -> Iterator[tuple[str, bool]]:
    """Let the power fail after each, or some, of the operations of a crawl that change the disk, of the machine and of each
    process in turn, and start again: what was done, and whether the crawl then ended as it should."""
    env, random = FaultyEnv(), Random(1)
    calm = crawl(env, 1)
    for number, (done, disk) in enumerate(env.crashes()):
        if number % every == 0:
            how, part = _LOSSES[number // every % len(_LOSSES)]
            lost = FaultyEnv(after(disk, how, random, part))
            last = env.operations[done - 1] if done else None
            about = f"{how} of {'all' if part is None else part} after {last and (last.kind, last.path)}"
            try:
                yield about, is_whole(crawl(lost, 2), calm)
            except StorageError as error:
                yield f"{about}: {error}", False


def after(disk: Disk, how: str, random: Random, part: int | None) -> Disk:
    """The disk after the power failed: of the machine, or of one process."""
    if part is None:
        return disk.after_power_loss(how, random)
    return disk.after_power_loss(how, random, (JOB / f"part-{part:04d}", JOB / "mail" / f"{part:04d}"))
