"""The socket between the process of a part and its station: turns at servers, and the lease.

part ─ {"take": [address, …], "rest": [[address, seconds], …]} ─► station
station ─ {"turns": [[address, wait], …]} or {"lease": until} ─► part

A line of JSON each, what came together in one. When the other side goes away, the part ends as if it was told to; when its lease
is over, at once: by then another may have taken its place.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable

from barkspider.parallel.cluster.lease import Lease

OVER = 75  # the exit code of a part whose lease is over
_LOOK = 0.2  # seconds between looks at the lease
_GATHER = (
    0.02  # seconds for which turns gather: each answer costs a step of the frontier, however many it is about
)
_LONGEST = 1 << 20  # bytes of a line


class Wire:
    """The end of the part: a `parallel.post.TurnTable`. Lives on its loop."""

    def __init__(self, descriptor: int, leave: Callable[[int], None] = os._exit) -> None:
        self._socket, self._leave = socket.socket(fileno=descriptor), leave
        self.answered: Callable[[str, float], None] | None = None
        self._lease = Lease(0.0)
        self._takes: list[str] = []
        self._rests: list[tuple[str, float]] = []
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, gone: Callable[[], None]) -> None:
        """Begin, with a lease; `gone` is called when the station is."""
        reader, self._writer = await asyncio.open_connection(sock=self._socket, limit=_LONGEST)
        while not self._lease.holds:  # what was told while the crawl was opened may be over
            line = await reader.readline()
            if not line:
                self._leave(OVER)
                return
            self._read(line)
        self._reading = asyncio.create_task(self._read_all(reader, gone))
        self._look()

    def take(self, address: str) -> None:
        """Ask the station for a turn; `answered` hears what comes of it."""
        if not self._lease.holds:
            self._leave(OVER)
        self._takes.append(address)
        self._send_soon()

    def rest(self, address: str, seconds: float) -> None:
        """Give a turn back."""
        self._rests.append((address, seconds))
        self._send_soon()

    def close(self) -> None:
        """Leave the station."""
        if self._timer is not None:
            self._timer.cancel()
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._send()
            self._writer.close()

    def _send_soon(self) -> None:
        if len(self._takes) + len(self._rests) == 1:  # else it is about to be sent
            asyncio.get_running_loop().call_later(_GATHER, self._send)

    def _send(self) -> None:
        takes, rests, self._takes, self._rests = self._takes, self._rests, [], []
        if self._writer is not None and not self._writer.is_closing() and (takes or rests):
            self._writer.write(json.dumps({"take": takes, "rest": rests}).encode() + b"\n")

    async def _read_all(self, reader: asyncio.StreamReader, gone: Callable[[], None]) -> None:
        try:
            while line := await reader.readline():
                self._read(line)
        except ConnectionError:
            pass
        gone()

    def _read(self, line: bytes) -> None:
        told = json.loads(line)
        if "lease" in told:
            self._lease.renew(float(told["lease"]))  # the time at which it ends, and no seconds behind that
        for address, wait in told.get("turns", ()):
            if not self._lease.holds:
                self._leave(OVER)
            if self.answered is not None:
                self.answered(address, wait)

    def _look(self) -> None:
        """Every moment: stop if the lease is over."""
        if not self._lease.holds:
            self._leave(OVER)
        self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look)


def lease_line(lease: Lease) -> bytes:
    """What tells a part until when it may go on."""
    return json.dumps({"lease": lease.until}).encode() + b"\n"
