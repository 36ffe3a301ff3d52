"""The other processes of a crawl, as the loop of one of them knows them.

    instructions ─► Seal, Rest, and whose turn it is at a server ─► Neighbours, which `parallel` has
    what they sent ─► Received ─► a harvest, as any other outcome

A batch leaves when the record at which it ends, and the archive's bytes before that, are safe from a power loss: else
this process would find other pages after one, and make another batch of the same number. Where checkpoints are copied to a
store, which may be all that is left of this process, it leaves when the checkpoint that has it is there. It is received when
its name is safe in the inbox: the journal says no more than that it is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any, NamedTuple, Protocol

from barkspider.archive import ArchiveWriter, Note
from barkspider.archive.records import micros
from barkspider.core.events import (
    Denied,
    FetchPage,
    FetchRobots,
    Instruction,
    ProbeDomain,
    Ranked,
    Received,
    Request,
    ResolveHost,
    Rest,
    Score,
    Scored,
    Seal,
    Sealed,
)
from barkspider.engine.harvest import Reaped
from barkspider.engine.ledger import Ledger
from barkspider.frontier import Driver
from barkspider.frontier.batches import batch_name
from barkspider.model.budgets import Distribution

_LOOK = 0.1  # seconds between two looks for what has arrived
_RANK = 5.0  # seconds between two exchanges of in-degrees


def _host(key: int) -> str:
    """What the turn at a host is called: as no address is."""
    return f"host {key:016x}"


class _Ask(NamedTuple):
    """A request, the names of the turns that it `lacks`, and of those that it `has`."""

    request: FetchPage | FetchRobots
    lacks: tuple[str, ...]
    has: tuple[str, ...] = ()

    def with_next(self) -> _Ask:
        """The same, with the first turn that it lacked."""
        return _Ask(self.request, self.lacks[1:], (*self.has, self.lacks[0]))


class Neighbours(Protocol):
    """How a process reaches the others. Every call returns at once."""

    def take_turn(self, name: str) -> float | None:
        """Take the turn at a server, or at a host, by its name: 0 when it is ours, to be given back by `rest`, else the
        seconds until it may be free; None when somebody else is asked, whose answer `hear_turns` gets."""
        ...

    def hear_turns(self, answered: Callable[[str, float], None]) -> None:
        """Give what comes of turns that somebody else was asked for, as `take_turn` would, to this."""
        ...

    def rest(self, address: str, seconds: float) -> None:
        """Give back a turn: the server is left alone for so long, by everybody."""
        ...

    def deliver(self, batches: Iterable[tuple[int, int]]) -> None:
        """Let others have batches, by whom they are for and their number; those that they have are left alone."""
        ...

    def arrived(self, after: Sequence[int]) -> list[Received]:
        """The batches that follow, from each sender, the one of this number."""
        ...

    def scope_of(self, batch: Received) -> list[str]:
        """What a batch adds to the scope."""
        ...

    def publish(self, ranks: Distribution) -> None:
        """Let others know how many of our domains have which in-degree."""
        ...

    def ranks(self) -> Distribution | None:
        """What the others have published, added up; None when nothing is new."""
        ...

    def acknowledge(self, applied: Sequence[int]) -> None:
        """Tell each sender up to which of its batches all is safe here."""
        ...

    def acknowledged(self) -> Sequence[int]:
        """Up to which of our batches each of the others has told so."""
        ...


class Correspondence:
    """See the module. Lives on the loop of its crawl; `take_in` is given what arrives, `extend` what belongs to the
    scope; `wall` gives the time, in seconds since 1970; `fail` is told what went wrong while nobody waited for it;
    `wake` is called when there is something for `sift` to give. `hasten`, if checkpoints are copied, asks for one: when
    there is nothing else to do, others need not wait for a batch."""

    def __init__(
        self,
        neighbours: Neighbours,
        frontier: Driver,
        ledger: Ledger,
        archive: ArchiveWriter,
        take_in: Callable[[Reaped], None],
        extend: Callable[[str], None],
        wall: Callable[[], float],
        fail: Callable[[Exception], None],
        wake: Callable[[], None],
        hasten: Callable[[], None] | None,
        take_cookies: Callable[[Received], None] = lambda _: None,
        shares_hosts: bool = False,
    ) -> None:
        """`take_cookies` is given each batch that arrives, `shares_hosts` says whether others may ask the same hosts."""
        exchange = frontier.exchange
        assert exchange is not None
        self._neighbours, self._frontier = neighbours, frontier
        self._ledger, self._archive = ledger, archive
        self._exchange, self._sends = exchange, exchange.sorting.sends
        self._take_in, self._extend, self._wall, self._fail = take_in, extend, wall, fail
        self._take_cookies, self._shares_hosts = take_cookies, shares_hosts
        self._wake, self._hasten = wake, hasten
        self._asking: dict[str, _Ask] = {}  # by the name of the turn that somebody is asked for
        self._granted: list[Request] = []  # those whose turn was awaited and is there
        neighbours.hear_turns(self._answered)
        # Up to which batch for each other a copied checkpoint has them, and one that was asked for will have.
        self._copied, self._hastened = [0] * len(exchange.sealed), list[int]()
        self._handed_in, self._rank_at = list(exchange.applied), 0.0
        self._sending: asyncio.Task[None] | None = None
        self._receiving: asyncio.Task[None] | None = None
        # The batches that were sent last; none: an earlier run may not have sent its last.
        self._sent_up_to: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self.ended = False  # whether somebody who sees all processes has said that nothing will come any more

    def start(self) -> None:
        """Begin to look for what arrives."""
        self._look()

    async def close(self) -> None:
        """Look no longer."""
        if self._timer is not None:
            self._timer.cancel()
        await self.finish()

    async def finish(self) -> None:
        """Wait until what is being sent is sent, and what is being received is taken in."""
        for task in (self._sending, self._receiving):
            if task is not None:
                await task

    def sift(self, instructions: Sequence[Instruction]) -> list[Request]:
        """Do what is about others; what is to be asked of the network, and may be."""
        requests, self._granted = self._granted, []
        for instruction in instructions:
            if isinstance(instruction, Seal):
                self._take_in(Reaped(Sealed(instruction)))
            elif isinstance(instruction, Score):
                self._take_in(Reaped(Scored(instruction)))
            elif isinstance(instruction, Rest):
                self._neighbours.rest(instruction.address, instruction.seconds)
                if instruction.host_key:
                    self._neighbours.rest(_host(instruction.host_key), instruction.host_seconds)
            elif isinstance(instruction, ResolveHost | ProbeDomain) or (
                isinstance(instruction, FetchPage | FetchRobots)
                and self._take_turns(_Ask(instruction, self._names(instruction)))
            ):
                requests.append(instruction)
        return requests

    def give_back(self, request: Request) -> None:
        """A request does not go out after all: so its turns are others' now."""
        if isinstance(request, FetchPage | FetchRobots):
            for name in self._names(request):
                self._neighbours.rest(name, 0.0)

    def _names(self, asked: FetchPage | FetchRobots) -> tuple[str, ...]:
        """What a request needs the turns at: its server, and before it its host where others may ask that, too."""
        if not self._shares_hosts:
            return (asked.address,)
        return _host(asked.row.host_key if isinstance(asked, FetchPage) else asked.host_key), asked.address

    def _take_turns(self, ask: _Ask) -> bool:
        """Take the turns that a request lacks, one after the other; whether all are there now. If not, it is denied, or
        somebody is asked and `_answered` goes on."""
        while ask.lacks:
            wait = self._neighbours.take_turn(ask.lacks[0])
            if wait is None:
                self._asking[ask.lacks[0]] = ask
                return False
            if wait:
                self._deny(ask, wait)
                return False
            ask = ask.with_next()
        return True

    def _deny(self, ask: _Ask, wait: float) -> None:
        """A turn is not to be had: those that were taken for the request go back."""
        for name in ask.has:
            self._neighbours.rest(name, 0.0)
        self._take_in(Reaped(Denied(ask.request, wait, at_host=len(ask.lacks) > 1)))

    def _answered(self, name: str, wait: float) -> None:
        ask = self._asking.pop(name, None)
        if ask is None:
            if not wait:
                self._neighbours.rest(name, 0.0)
        elif wait:
            self._deny(ask, wait)
        elif self._take_turns(ask.with_next()):
            self._granted.append(ask.request)
            self._wake()

    def committed(self) -> None:
        """A checkpoint was made, and copied if it is to: what was taken in is safe, and others need not keep it."""
        self._neighbours.acknowledge(self._exchange.committed_applied)
        if self._hasten is not None:
            self._copied = self._exchange.committed_sealed
            batches = self._exchange.unacknowledged()
            self._neighbours.deliver([(to, number) for to, number in batches if number <= self._copied[to]])

    def state(self, census: bool = False) -> dict[str, Any]:
        """How this process stands with the others, for whoever looks for the end of the crawl; with samples of what it has
        fetched (`frontier.census`), if these are asked for."""
        exchange, known = self._exchange, self._exchange.sorting.census
        samples = known.as_json() if census and known is not None else None
        return {
            "granted": self._frontier.granted,
            "waits": self._frontier.waits,
            "sealed": list(exchange.sealed),
            "applied": list(exchange.applied),
            "unsent": not exchange.sorting.is_empty,
            "waiting": exchange.waiting(),
            **({} if samples is None else {"census": samples}),
            "is_full": exchange.is_full,
        }

    def _look(self) -> None:
        try:
            self._look_around()
        except Exception as error:
            self._fail(error)
        self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def _look_around(self) -> None:
        """See what has arrived, what others have safe, and what is to be sent."""
        if self._receiving is None and (batches := self._neighbours.arrived(self._handed_in)):
            self._receiving = asyncio.create_task(self._receive(batches))
        if self._sends and monotonic() >= self._rank_at:
            self._exchange_ranks()
            self._rank_at = monotonic() + _RANK
        for to, number in enumerate(self._neighbours.acknowledged()):
            self._exchange.acknowledge(to, number)
        if self._hasten is not None:
            sealed = self._exchange.sealed
            if sealed not in (self._copied, self._hastened) and self._frontier.is_idle():
                self._hastened = list(sealed)
                self._hasten()
        elif self._sending is None and self._exchange.sealed != self._sent_up_to:
            self._sent_up_to = list(self._exchange.sealed)
            self._sending = asyncio.create_task(self._send())

    def _exchange_ranks(self) -> None:
        own, others = self._frontier.ranks(), self._neighbours.ranks()
        if own is not None:
            self._neighbours.publish(own)
        if others is not None:
            self._take_in(Reaped(Ranked(others.degrees, others.counts)))

    async def _receive(self, batches: Sequence[Received]) -> None:
        try:
            await asyncio.to_thread(self._exchange.sync_inbox)
            for batch in batches:
                for url in self._neighbours.scope_of(batch):
                    self._extend(url)
                self._take_cookies(batch)
                self._handed_in[batch.sender] = batch.number
                row = (micros(self._wall()), batch.sender, batch.number, *self._exchange.sizes(batch))
                self._take_in(Reaped(batch, notes=[Note("batches", row)]))
        except Exception as error:
            self._fail(error)
        finally:
            self._receiving = None

    async def _send(self) -> None:
        batches = list(self._exchange.unacknowledged())
        archive, journal = self._archive.syncing(), self._ledger.syncing()
        names = [batch_name(to, number) for to, number in batches]

        def sync() -> None:
            archive()
            journal()
            self._exchange.sync(names)

        try:
            if batches:
                await asyncio.to_thread(sync)
                self._neighbours.deliver(batches)
        except Exception as error:
            self._fail(error)
        finally:
            self._sending = None
