"""Roster: every host and server that is known, and who may be contacted when.

A host (a name) is always in one state:

    IDLE ── put ──► WAITING ── its pause is over ──► DUE ── its server's too ──► BUSY ── outcome ──► IDLE
                       └────── address unknown: ResolveHost, BUSY ──────┘
    BLOCKED: its next URL waits for a robots.txt that another host is being asked for (a redirect)

At most one request at a time goes to a host, and one to a server (an address). Hosts wait in `waiting`; the heap
holds servers that have a host due. What is asked of a host, and how long its pauses are, is for `Ready` to say.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Iterator
from itertools import count

from barkspider.core.settings import Politeness
from barkspider.frontier.politeness.hosts import Host, Server, State
from barkspider.frontier.politeness.waiting import Waiting

_FORGET_AT_ONCE = 1_000  # hosts looked at in a step, so that many with long pauses do not hold it up


class Roster:
    """See the module. Filled and asked by `Ready`, in one thread.

    Invariants: every host is in the one place that its state says; a server is in the heap when it has a host due
    and is not busy. `remembered` is how many idle hosts are kept.

    >>> roster = Roster(Politeness(), remembered=10)
    >>> host = roster.host(7)
    >>> host.robots = (("http://a.example", "http://a.example/robots.txt", 0),)
    >>> roster.schedule(host); host.state.name
    'WAITING'
    >>> roster.rested(now=5.0) is host
    True
    >>> roster.move(host, "127.0.0.1"); roster.line_up(host); roster.due(now=5.0) is host
    True
    >>> roster.begin(host); roster.due(now=5.0), host.state.name
    (None, 'BUSY')
    """

    def __init__(self, politeness: Politeness, remembered: int) -> None:
        self._politeness, self._remembered = politeness, remembered
        self._hosts: dict[int, Host] = {}
        self._idle: OrderedDict[int, Host] = OrderedDict()
        self._servers: dict[str, Server] = {}
        self._many_servers = 2 * remembered  # beyond, those without hosts are forgotten
        self._waiting = Waiting()
        self._due: list[tuple[float, int, Server]] = []
        self._order = count()
        self.restarted = -math.inf  # when a crawl was gone on with: all count as contacted then

    def __len__(self) -> int:
        """Hosts known."""
        return len(self._hosts)

    def __iter__(self) -> Iterator[Host]:
        """All hosts, in no order."""
        return iter(self._hosts.values())

    def find(self, key: int) -> Host | None:
        """The host of a key, if it is known."""
        return self._hosts.get(key)

    def host(self, key: int) -> Host:
        """The host of a key, made when it is new."""
        found = self._hosts.get(key)
        if found is None:
            found = self._hosts[key] = self._idle[key] = Host(key)
            found.next_time = self.restarted + self._politeness.host_delay
        return found

    def move(self, host: Host, address: str) -> None:
        """A host was found to be on the server of an address."""
        server = self._servers.get(address)
        if server is None:
            server = self._servers[address] = Server(address)
            server.next_time = self.restarted + self._politeness.server_delay
        if host.server is not server:
            if host.server is not None:
                host.server.leave(host)
                host.server.active -= host.active
            host.server = server
            server.join(host)
            server.active += host.active

    # ── from state to state ────────────────────────────────────────────────────────────────────

    def schedule(self, host: Host) -> None:
        """Let a host that is idle, and has something to ask, wait for the end of its pause."""
        if host.state is not State.IDLE:
            return
        active = host.first is not None or bool(host.robots)
        if active:
            self._idle.pop(host.key, None)
            host.state = State.WAITING
            self._waiting.push(host)
        else:
            self._idle[host.key] = host
        if host.active != active and host.server is not None:
            host.server.active += 1 if active else -1
        host.active = active

    def rested(self, now: float) -> Host | None:
        """Take out the host whose own pause ended first, if it has ended; what it does next is for the caller."""
        host = self._waiting.pop(now)
        if host is not None:
            host.state = State.IDLE
        return host

    def line_up(self, host: Host) -> None:
        """A host that has rested waits for its server."""
        assert host.server is not None
        host.state = State.DUE
        host.server.due.append(host)
        self._list(host.server)

    def due(self, now: float) -> Host | None:
        """Take out the next host whose server's pause is over too; `begin` or `pass_over` is to follow."""
        if not self._due or self._due[0][0] > now:
            return None
        server = heapq.heappop(self._due)[2]
        server.listed = False
        host = server.due.pop(0)
        host.state = State.IDLE
        return host

    def begin(self, host: Host) -> None:
        """A request goes out to a host that was due."""
        assert host.server is not None
        host.state, host.server.busy = State.BUSY, True

    def pass_over(self, host: Host) -> None:
        """A host that was due has nothing to ask now: it is the turn of the next one on its server."""
        assert host.server is not None
        self._list(host.server)
        self.schedule(host)

    def end(self, host: Host) -> None:
        """A request ended, and its pauses are set: the server is free for the next host; `schedule` is to follow."""
        assert host.server is not None
        host.state, host.flying, host.server.busy = State.IDLE, None, False
        self._list(host.server)

    def next_time(self) -> float:
        """When `rested` or `due` may give a host again, if nothing happens before."""
        due = self._due[0][0] if self._due else math.inf
        return min(self._waiting.next_time(), due)

    def _list(self, server: Server) -> None:
        if server.due and not server.busy and not server.listed:
            server.listed = True
            heapq.heappush(self._due, (server.next_time, next(self._order), server))

    def forget(self, now: float) -> None:
        """Keep RAM bounded: forget the hosts that were idle longest and whose pause is over."""
        for _ in range(min(len(self._idle) - self._remembered, _FORGET_AT_ONCE)):
            key, host = self._idle.popitem(last=False)
            if host.next_time > now or any(known.asking for known in host.origins):
                self._idle[key] = host
            else:
                del self._hosts[key]
                if host.server is not None:
                    host.server.leave(host)
        if len(self._servers) > self._many_servers:
            self._servers = {
                address: server
                for address, server in self._servers.items()
                if server.hosts or server.next_time > now
            }
            self._many_servers = 2 * max(len(self._servers), self._remembered)

    def validate(self) -> None:
        """Check the invariants."""
        waiting = {id(host) for host in self._waiting}
        due = [id(host) for server in self._servers.values() for host in server.due]
        assert len(waiting) == len(list(self._waiting))
        assert len(set(due)) == len(due)
        hosts = dict.fromkeys(self._servers, 0)
        active = dict.fromkeys(self._servers, 0)
        for key, host in self._hosts.items():
            entries = list(host.entries())
            assert len(entries) == host.length
            assert not entries or entries[-1] is host.last
            if host.server is not None:
                hosts[host.server.address] += 1
                active[host.server.address] += host.active
            assert host.active == (host.state is not State.IDLE)
            assert (host.state is State.WAITING) == (id(host) in waiting)
            assert (host.state is State.DUE) == (id(host) in due)
            assert (host.state is State.IDLE) == (key in self._idle)
            assert host.state is not State.IDLE or not (host.first or host.robots)
        for address, server in self._servers.items():
            assert server.listed == bool(server.due and not server.busy)
            assert server.hosts == hosts[address]
            assert server.active == active[address]
