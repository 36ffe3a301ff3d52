"""The other processes of a crawl, as the loop of one of them knows them.

    instructions ─► Seal, Rest, and whose turn it is at a server ─► Neighbours, which `parallel` has
    what they sent ─► Received ─► a harvest, as any other outcome

A batch leaves when the record at which it ends, and the archive's bytes before that, are safe from a power loss: else
this process would find other pages after one, and make another batch of the same number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any, Protocol

from barkspider.archive import ArchiveWriter
from barkspider.core.events import (
    Denied,
    Instruction,
    Ranked,
    Received,
    Request,
    ResolveHost,
    Rest,
    Seal,
    Sealed,
)
from barkspider.engine.harvest import Reaped
from barkspider.engine.ledger import Ledger
from barkspider.frontier import Driver
from barkspider.frontier.budget.budgets import Distribution
from barkspider.frontier.exchange import batch_name

_LOOK = 0.1  # seconds between two looks for what has arrived
_RANK = 5.0  # seconds between two exchanges of in-degrees


class Neighbours(Protocol):
    """How a process reaches the others. Every call returns at once."""

    def take_turn(self, address: str) -> float:
        """Take the turn at a server: 0 when it is ours, to be given back by `rest`, else the seconds until it may be free."""
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
    """See the module. Lives on the loop of its crawl; `take_in` is given what arrives, `extend` what belongs to the scope."""

    def __init__(
        self,
        neighbours: Neighbours,
        frontier: Driver,
        ledger: Ledger,
        archive: ArchiveWriter,
        take_in: Callable[[Reaped], None],
        extend: Callable[[str], None],
    ) -> None:
        exchange = frontier.exchange
        assert exchange is not None
        self._neighbours, self._frontier = neighbours, frontier
        self._ledger, self._archive = ledger, archive
        self._exchange, self._sends = exchange, exchange.sends
        self._take_in, self._extend = take_in, extend
        self._handed_in, self._rank_at = list(exchange.applied), 0.0
        self._sending: asyncio.Task[None] | None = None
        self._to_send = True  # what an earlier run may not have sent
        self._timer: asyncio.TimerHandle | None = None
        self.ended = False  # whether somebody who sees all processes has said that nothing will come any more

    def start(self) -> None:
        """Begin to look for what arrives."""
        self._look()

    async def close(self) -> None:
        """Look no longer; what is being sent is sent."""
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            await self._sending

    def sift(self, instructions: Sequence[Instruction]) -> list[Request]:
        """Do what is about others; what is to be asked of the network, and may be."""
        requests: list[Request] = []
        for instruction in instructions:
            if isinstance(instruction, Seal):
                self._take_in(Reaped(Sealed(instruction)))
                self._to_send = True
            elif isinstance(instruction, Rest):
                self._neighbours.rest(instruction.address, instruction.seconds)
            elif isinstance(instruction, ResolveHost) or not (
                wait := self._neighbours.take_turn(instruction.address)
            ):
                requests.append(instruction)
            else:
                self._take_in(Reaped(Denied(instruction, wait)))
        return requests

    def committed(self) -> None:
        """A checkpoint was made: what was taken in is safe, and others need not keep it."""
        self._neighbours.acknowledge(self._exchange.committed_applied)

    def state(self) -> dict[str, Any]:
        """How this process stands with the others, for whoever looks for the end of the crawl."""
        exchange = self._exchange
        return {
            "sealed": list(exchange.sealed),
            "applied": list(exchange.applied),
            "unsent": not exchange.is_empty,
        }

    def _look(self) -> None:
        for batch in self._neighbours.arrived(self._handed_in):
            for url in self._neighbours.scope_of(batch):
                self._extend(url)
            self._handed_in[batch.sender] = batch.number
            self._take_in(Reaped(batch))
        if self._sends and monotonic() >= self._rank_at:
            self._exchange_ranks()
            self._rank_at = monotonic() + _RANK
        for to, number in enumerate(self._neighbours.acknowledged()):
            self._exchange.acknowledge(to, number)
        if self._to_send and self._sending is None:
            self._to_send = False
            self._sending = asyncio.create_task(self._send())
            self._sending.add_done_callback(self._sent)
        self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def _exchange_ranks(self) -> None:
        own, others = self._frontier.ranks(), self._neighbours.ranks()
        if own is not None:
            self._neighbours.publish(own)
        if others is not None:
            self._take_in(Reaped(Ranked(others.degrees, others.counts)))

    async def _send(self) -> None:
        batches = list(self._exchange.unacknowledged())
        if batches:
            archive, journal = self._archive.syncing(), self._ledger.syncing()
            names = [batch_name(to, number) for to, number in batches]

            def settle() -> None:
                archive()
                journal()
                self._exchange.sync(names)

            await asyncio.to_thread(settle)
            self._neighbours.deliver(batches)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending = None
        task.result()
