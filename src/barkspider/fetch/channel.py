"""c-ares on the crawl's loop: its sockets are watched here, and answers are told in the loop's thread.

Left to itself it watches them in a thread of its own, and each answer wakes that thread, which wants the interpreter's
lock, and then the loop: half as much again for a name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from weakref import ref

import pycares
from pycares.errno import ARES_ECANCELLED

_KINDS = {"A": pycares.QUERY_TYPE_A, "AAAA": pycares.QUERY_TYPE_AAAA}
_NO_SOCKET = pycares.ARES_SOCKET_BAD
_EIGHTH = 8  # of a timeout: how late it may be noticed

Answered = Callable[[pycares.DNSResult | None, int], None]


class Channel:
    """Asks name servers, or the system's. Belongs to one loop, and closes itself when nobody has it and nothing is asked.

    `ask` has `done` called once, later, with the answer or with an error of c-ares.
    """

    def __init__(self, servers: Sequence[str], timeout: float, tries: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._tick = max(timeout / _EIGHTH, 0.01)
        self._timer: asyncio.TimerHandle | None = None
        self._asked = 0  # queries that are not answered
        self._answers: list[tuple[Answered, pycares.DNSResult | None, int]] = []  # that are not told
        self._sockets: set[int] = set()
        # c-ares must not keep us: we would never be closed.
        self._ares = pycares.Channel(
            sock_state_cb=partial(_watch, ref(self)), timeout=timeout, tries=tries, servers=servers or None
        )

    def ask(self, name: str, kind: str, done: Answered) -> None:
        """Ask for the addresses of a name, of kind A or AAAA."""
        self._asked += 1
        before = len(self._answers)
        try:
            self._ares.query(name, _KINDS[kind], callback=partial(self._take, done))
        except pycares.AresError as error:
            if all(told is not done for told, _, _ in self._answers[before:]):  # it may say so twice
                self._take(done, None, error.args[0])
        if self._timer is None:
            self._timer = self._loop.call_later(self._tick, self._turn)

    def close(self) -> None:
        """Give up what was asked: nobody is told."""
        if self._timer is not None:
            self._timer.cancel()
        self._answers.clear()
        with suppress(RuntimeError):  # it is closed
            self._ares.cancel()
        for number in self._sockets:
            self._loop.remove_reader(number)
            self._loop.remove_writer(number)
        self._sockets.clear()
        self._ares.close()

    def __del__(self) -> None:
        if hasattr(self, "_ares") and not self._loop.is_closed():
            self.close()

    def watch(self, number: int, readable: bool, writable: bool) -> None:
        """Called by c-ares: what it waits for at a socket; nothing before it closes that."""
        if readable:
            self._loop.add_reader(number, self._ares.process_fd, number, _NO_SOCKET)
        elif number in self._sockets:
            self._loop.remove_reader(number)
        if writable:
            self._loop.add_writer(number, self._ares.process_fd, _NO_SOCKET, number)
        elif number in self._sockets:
            self._loop.remove_writer(number)
        if readable or writable:
            self._sockets.add(number)
        else:
            self._sockets.discard(number)

    def _take(self, done: Answered, answer: pycares.DNSResult | None, error: int | None) -> None:
        """Called by c-ares, which nobody may ask from here."""
        self._asked -= 1
        if error == ARES_ECANCELLED:
            return
        if not self._answers:
            self._loop.call_soon(self._tell)
        self._answers.append((done, answer, error or 0))

    def _tell(self) -> None:
        answers, self._answers = self._answers, []
        for done, answer, error in answers:
            done(answer, error)

    def _turn(self) -> None:
        """Let c-ares see what was not answered in time."""
        self._ares.process_fd(_NO_SOCKET, _NO_SOCKET)
        self._timer = self._loop.call_later(self._tick, self._turn) if self._asked else None


def _watch(channel: ref[Channel], number: int, readable: bool, writable: bool) -> None:
    found = channel()
    if found is not None:
        found.watch(number, readable, writable)
