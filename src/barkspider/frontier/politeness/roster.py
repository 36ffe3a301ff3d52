"""Roster: every host and server that is known, and who may be contacted when.

A host (a name) is always in one state:

    IDLE ── put ──► WAITING ── its pause is over ──► DUE ── its server's too ──► BUSY ── outcome ──► IDLE
                       └───── address unknown: UNNAMED ── ResolveHost, BUSY ─────┘
    BLOCKED: its next URL waits for a robots.txt that another host is being asked for (a redirect)

At most one request at a time goes to a host, and one to a server (an address). Hosts wait in `waiting`; the heap
holds servers that have a host due. For whom there is no slot at that moment waits in `lines`, one for each rank: servers
with a host due, and hosts whose address is to be looked up. Turns go round by domain, at a server as in a line. What is
asked of a host, how long its pauses are, and who gets a slot is for `Ready` to say.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Iterator
from itertools import count

from barkspider.core.settings import Politeness
from barkspider.frontier.politeness.hosts import Host, Server, State
from barkspider.frontier.politeness.rotation import Rotation
from barkspider.frontier.politeness.slots import RANKS
from barkspider.frontier.politeness.waiting import Waiting

_FORGET_AT_ONCE = 1_000  # hosts looked at in a step, so that many with long pauses do not hold it up


class Roster:
    """See the module. Filled and asked by `Ready`, in one thread.

    Invariants: every host is in the one place that its state says; a server is in the heap, or in line, when it has a
    host due and is not busy. `remembered` is how many idle hosts are kept.

    >>> roster = Roster(Politeness(), remembered=10)
    >>> host = roster.host(7)
    >>> host.robots = (("http://a.example", "http://a.example/robots.txt", 0),)
    >>> roster.schedule(host); host.state.name
    'WAITING'
    >>> roster.rested(now=5.0) is host
    True
    >>> roster.move(host, "127.0.0.1"); roster.line_up(host)
    >>> server = roster.due(now=5.0); roster.call(server) is host
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
        self.lines = [Rotation[Host | Server]() for _ in range(RANKS)]
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
            host.server = server
            server.join(host)

    # ── from state to state ────────────────────────────────────────────────────────────────────

    def schedule(self, host: Host) -> None:
        """Let a host that is idle, and has something to ask, wait for the end of its pause."""
        if host.state is not State.IDLE:
            return
        if host.first is not None or host.robots or host.errands:  # as `is_wanted`: for each request
            self._idle.pop(host.key, None)
            host.state = State.WAITING
            self._waiting.push(host)
        else:
            self._idle[host.key] = host

    def rested(self, now: float) -> Host | None:
        """Take out the host whose own pause ended first, if it has ended; what it does next is for the caller."""
        host = self._waiting.pop(now)
        if host is not None:
            host.state = State.IDLE
        return host

    def next_server(self, host: Host, now: float) -> Server | None:
        """The server of a host that has rested and need not line up: it is free, and nobody else is due. So it is with
        nearly every request of a crawl."""
        server = host.server
        if (
            server is not None
            and server.next_time <= now
            and not server.busy
            and not server.due
            and (not self._due or self._due[0][0] > now)
        ):
            return server
        return None

    def line_up(self, host: Host) -> None:
        """A host that has rested waits for its server."""
        assert host.server is not None
        host.state = State.DUE
        host.server.due.push(host.pld, host)
        self._list(host.server)

    def due(self, now: float) -> Server | None:
        """Take out the next server whose pause is over and that has a host due; `call` or `wait` is to follow."""
        if not self._due or self._due[0][0] > now:
            return None
        return heapq.heappop(self._due)[2]

    def call(self, server: Server) -> Host:
        """Take out the host whose turn it is at a server; `begin` or `pass_over` is to follow."""
        server.listed = False
        host = server.due.take()
        host.state = State.IDLE
        return host

    def wait(self, number: int, domain: int, who: Host | Server) -> None:
        """There is no slot for a server that was due, or for looking up the address of a host that has rested."""
        if isinstance(who, Host):
            who.state = State.UNNAMED
        self.lines[number].push(domain, who)

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

    def last_in_line(self) -> int:
        """The last rank in which somebody waits for a slot; -1 if nobody does."""
        return max((number for number, line in enumerate(self.lines) if line), default=-1)

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
        servers = self._servers.values()
        due = [id(host) for server in servers for line in server.due.values() for host in line]
        lines = [who for line in self.lines for ones in line.values() for who in ones]
        unnamed = {id(who) for who in lines if isinstance(who, Host)}
        listed = {id(who) for who in lines if isinstance(who, Server)} | {id(each[2]) for each in self._due}
        assert len(waiting) == len(list(self._waiting))
        assert len(set(due)) == len(due)
        assert len(unnamed) + len(listed) == len(lines) + len(self._due)
        hosts = dict.fromkeys(self._servers, 0)
        for key, host in self._hosts.items():
            entries = list(host.queued_urls())
            assert len(entries) == host.length
            assert not entries or entries[-1] is host.last
            if host.server is not None:
                hosts[host.server.address] += 1
            assert (host.state is State.WAITING) == (id(host) in waiting)
            assert (host.state is State.DUE) == (id(host) in due)
            assert (host.state is State.UNNAMED) == (id(host) in unnamed)
            assert (host.state is State.IDLE) == (key in self._idle)
            assert host.state is not State.IDLE or not host.is_wanted()
        for address, server in self._servers.items():
            assert server.listed == bool(server.due and not server.busy) == (id(server) in listed)
            assert server.hosts == hosts[address]
