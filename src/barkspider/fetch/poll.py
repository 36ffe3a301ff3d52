"""Waiting for many sockets with few system calls: an epoll of our own inside the loop's.

Sockets are watched edge-triggered, once, for everything, and leave by being closed. So a request on a new
connection takes six system calls (socket, connect, epoll_ctl, send, recv, close), and the loop runs one
callback for all sockets that are ready instead of one for each. asyncio's own transports cost twice as
much (docs/decisions/0011-sockets-of-our-own.md).
"""

from __future__ import annotations

import asyncio
import select
import sys
from typing import Protocol

# Readable, writable, or closed by the peer; each change is told once.
_EDGES = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET
READABLE = select.EPOLLIN
ENDED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
_MOST = 256  # sockets served before the loop gets its turn


class SocketOwner(Protocol):
    """What owns a socket."""

    def ready(self, events: int) -> None:
        """The socket has changed."""
        ...

    def give_up(self) -> None:
        """Close the socket if nothing was received on it yet."""
        ...


class Poller:
    """The sockets of one loop. `ready` must not raise, and must not open sockets.

    (A number of a closed socket may be given to a new one at once: an event of the old one would reach it.)
    `most` is how many there may be, for `is_full`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._watched: dict[int, SocketOwner] = {}
        self.most = sys.maxsize
        loop.add_reader(self._epoll.fileno(), self._turn)

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def is_full(self) -> bool:
        """Whether others need the descriptors that further sockets would take."""
        return len(self._watched) >= self.most

    def owners(self) -> list[SocketOwner]:
        """Who has a socket, the oldest first."""
        return list(self._watched.values())

    def watch(self, number: int, owner: SocketOwner) -> None:
        """Have `ready` called at every change of a socket, until it is forgotten."""
        self._watched[number] = owner
        self._epoll.register(number, _EDGES)

    def forget(self, number: int) -> None:
        """Call no more; the socket must be closed next, which takes it out of the kernel's set."""
        self._watched.pop(number, None)

    def close(self) -> None:
        """Stop watching."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _turn(self) -> None:
        watched = self._watched
        for number, events in self._epoll.poll(0, _MOST):
            owner = watched.get(number)
            if owner is not None:
                owner.ready(events)
