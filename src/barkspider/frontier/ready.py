"""Ready: URLs whose turn may come, one queue a host, and whom we may contact when.

A host (a name) is always in one state:

    IDLE ── put ──► WAITING ── its pause is over ──► DUE ── its server's too ──► BUSY ── outcome ──► IDLE
                       └────── address unknown: ResolveHost, BUSY ──────┘
    BLOCKED: its next URL waits for a robots.txt that another host is being asked for (a redirect)

At most one request at a time goes to a host, and one to a server (an address). A pause begins when an
outcome arrives, so what the host sees between two requests is never shorter than the delay.
The heaps hold hosts by the end of their pause, servers that have a host due, and retries by their time.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict, deque
from enum import Enum
from itertools import count

from barkspider.core.events import (
    Counters,
    FetchPage,
    FetchRobots,
    HostResolved,
    Instruction,
    PageFetched,
    ResolveHost,
    RobotsFetched,
    Trail,
)
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Politeness
from barkspider.url import ALLOW_ALL, DISALLOW_ALL, Keys, RobotsRules, origin, split

_ROBOTS_REDIRECTS = 5  # RFC 9309, 2.3.1.2


class State(Enum):
    """Where a host is; see the module."""

    IDLE = "idle"
    WAITING = "waiting"
    DUE = "due"
    BUSY = "busy"
    BLOCKED = "blocked"


class Origin:
    """What we know of one origin's robots.txt."""

    __slots__ = ("asking", "failures", "refusal", "rules", "until")

    def __init__(self) -> None:
        self.rules: RobotsRules | None = None
        self.until = -math.inf
        self.asking = False
        self.failures = 0
        self.refusal = "robots"  # the reason that counters give for what the rules refuse


class Server:
    """An address, and the hosts on it whose own pause is over."""

    __slots__ = ("busy", "due", "listed", "next_time")

    def __init__(self) -> None:
        self.next_time = -math.inf
        self.busy = False
        self.listed = False  # whether the heap of servers holds it
        self.due: deque[Host] = deque()


class Host:
    """A name: its queue (filled by `Ready.put`, emptied by `Ready.take`) and what we know of it."""

    __slots__ = (
        "address",
        "address_until",
        "crawl_delay",
        "duplicates",
        "failures",
        "key",
        "lookups",
        "name",
        "next_time",
        "origins",
        "queue",
        "robots",
        "server",
        "state",
        "taken",
    )

    def __init__(self, key: int, name: str) -> None:
        self.key, self.name = key, name
        self.state = State.IDLE
        self.queue: deque[tuple[UrlRow, Trail]] = deque()
        self.robots: list[tuple[str, str, int]] = []  # origin, URL, hops: go before pages; rarely any
        self.origins: dict[str, Origin] = {}
        self.address = ""
        self.address_until = -math.inf
        self.server: Server | None = None
        self.next_time = -math.inf
        self.crawl_delay = 0.0
        self.failures = 0  # in a row
        self.lookups = 0  # failed ones in a row
        self.taken = 0  # URLs ever put
        self.duplicates = 0  # pages whose content was seen before


class Ready:
    """See the module. Touched by one thread; told the time, never asks for it.

    Owns `queued`, `in_flight`, `pages`, `redirects`, `refused` and `failed` of the counters it is given.
    """

    def __init__(
        self, politeness: Politeness, agent: str, keys: Keys, counters: Counters, remembered_hosts: int
    ) -> None:
        self._politeness, self._agent, self._keys, self._counters = politeness, agent, keys, counters
        self._remembered = remembered_hosts
        self._hosts: dict[int, Host] = {}
        self._idle: OrderedDict[int, Host] = OrderedDict()
        self._servers: dict[str, Server] = {}
        self._waiting: list[tuple[float, int, Host]] = []
        self._due: list[tuple[float, int, Server]] = []
        self._later: list[tuple[float, int, UrlRow, Trail]] = []
        self._order = count()
        self.under_way = 0  # instructions without an outcome, of every kind

    # ── what the frontier puts in ──────────────────────────────────────────────────────────────

    def put(self, row: UrlRow, trail: Trail = ()) -> None:
        """Queue a URL behind the others of its host."""
        host = self.host(row.host_key, row.url)
        host.queue.append((row, trail))
        host.taken += 1
        self._counters.queued += 1
        self._schedule(host)

    def host(self, key: int, url: bytes) -> Host:
        """The host of a URL, made when it is new."""
        found = self._hosts.get(key)
        if found is None:
            found = self._hosts[key] = self._idle[key] = Host(key, split(url.decode()).host)
        return found

    def __len__(self) -> int:
        """Hosts known."""
        return len(self._hosts)

    def unoccupied(self, host_key: int, now: float) -> bool:
        """Whether a URL of this host could be fetched at once: nothing of it is queued or under way."""
        host = self._hosts.get(host_key)
        return host is None or (host.state is State.IDLE and host.next_time <= now)

    # ── what may be done now ───────────────────────────────────────────────────────────────────

    def take(self, now: float, room: int) -> list[Instruction]:
        """At most `room` instructions that politeness allows at this moment."""
        taken: list[Instruction] = []
        while self._later and self._later[0][0] <= now:
            _, _, row, trail = heapq.heappop(self._later)
            host = self.host(row.host_key, row.url)
            host.queue.append((row, trail))
            self._schedule(host)
        while self._waiting and self._waiting[0][0] <= now and len(taken) < room:
            host = heapq.heappop(self._waiting)[2]
            if host.next_time > now:  # its pause was made longer after it was queued here
                heapq.heappush(self._waiting, (host.next_time, next(self._order), host))
            elif host.address_until <= now:
                host.state = State.BUSY
                taken.append(ResolveHost(host.name, host.key))
            else:
                assert host.server is not None
                host.state = State.DUE
                host.server.due.append(host)
                self._list(host.server)
        while self._due and self._due[0][0] <= now and len(taken) < room:
            server = heapq.heappop(self._due)[2]
            server.listed = False
            host = server.due.popleft()
            host.state = State.IDLE
            instruction = self._next(host, now)
            if instruction is not None:
                host.state, server.busy = State.BUSY, True
                taken.append(instruction)
            else:
                self._list(server)
                self._schedule(host)
        self.under_way += len(taken)
        self._forget(now)
        return taken

    def next_time(self) -> float:
        """When `take` may give something again if no outcome arrives first."""
        heaps = (self._waiting, self._due, self._later)
        return min((heap[0][0] for heap in heaps if heap), default=math.inf)

    def _next(self, host: Host, now: float) -> FetchRobots | FetchPage | None:
        """The next request to a host, or None when it has none now; what robots.txt refuses ends here."""
        if host.robots:
            asked, url, hops = host.robots.pop(0)
            return FetchRobots(asked, url, host.address, host.key, hops)
        while host.queue:
            row, trail = host.queue[0]
            url = row.url.decode()
            if self._politeness.obey_robots:
                name = origin(url)
                known = host.origins.setdefault(name, Origin())
                if known.asking:
                    host.state = State.BLOCKED
                    return None
                if known.until <= now:
                    known.asking = True
                    return FetchRobots(name, f"{name}/robots.txt", host.address, host.key, 0)
                assert known.rules is not None
                refusal = "" if known.rules.allows(split(url).target) else known.refusal
                if host.crawl_delay > self._politeness.max_crawl_delay:
                    refusal = "crawl_delay"
                if refusal:
                    host.queue.popleft()
                    self._counters.queued -= 1
                    self._end(self._counters.refused, refusal)
                    continue
            host.queue.popleft()
            self._counters.queued -= 1
            self._counters.in_flight += 1
            return FetchPage(row, host.address, trail)
        return None

    # ── what happened ──────────────────────────────────────────────────────────────────────────

    def resolved(self, outcome: HostResolved, now: float) -> None:
        """A host's address is known, or cannot be had."""
        host = self._hosts[outcome.asked.host_key]
        host.state = State.IDLE
        self.under_way -= 1
        if outcome.addresses:
            host.lookups = 0
            host.address = outcome.addresses[0]
            host.address_until = now + outcome.ttl
            host.server = self._servers.setdefault(host.address, Server())
        elif outcome.error == "dns_failure" and host.lookups < self._politeness.retries:
            host.next_time = now + self._retry_pause(host.lookups)
            host.lookups += 1
        else:
            host.lookups = 0
            host.next_time = now + self._politeness.retry_delay
            while host.queue:
                host.queue.popleft()
                self._counters.queued -= 1
                self._end(self._counters.failed, outcome.error)
            while host.robots:  # the redirect of a robots.txt led nowhere: as if it were not there
                self._learn(host.robots.pop(0)[0], RobotsRules.parse(b"", self._agent), now)
        self._schedule(host)

    def robots(self, outcome: RobotsFetched, now: float) -> None:
        """A robots.txt arrived, sent us elsewhere, or failed (RFC 9309, 2.3.1)."""
        asked = outcome.asked
        host = self._release(asked.host_key, asked.address, now, outcome.retry_after)
        if outcome.stale:
            host.robots.insert(0, (asked.origin, asked.url, asked.hops))
            self._schedule(host)
            return
        if outcome.redirect and asked.hops < _ROBOTS_REDIRECTS:
            parts = split(outcome.redirect)
            host = self.host(self._keys.of(parts.host), outcome.redirect.encode())
            host.robots.append((asked.origin, outcome.redirect, asked.hops + 1))
            self._schedule(host)
            return
        if 200 <= outcome.status < 300:
            self._learn(asked.origin, RobotsRules.parse(outcome.body, self._agent), now)
        elif 300 <= outcome.status < 500 and outcome.status != 429:
            self._learn(asked.origin, ALLOW_ALL, now)
        else:
            self._learn(asked.origin, None, now)

    def _learn(self, name: str, rules: RobotsRules | None, now: float) -> None:
        """Keep an origin's rules and go on with its host; None means that they could not be had."""
        host = self.host(self._keys.of(split(name + "/").host), name.encode() + b"/")
        known = host.origins.setdefault(name, Origin())
        known.asking = False
        if rules is not None:
            known.failures = 0
            known.rules, known.refusal = rules, "robots"
            known.until = now + self._politeness.robots_expiry
            host.crawl_delay = max(host.crawl_delay, rules.crawl_delay or 0.0)
            if host.crawl_delay <= self._politeness.max_crawl_delay:
                host.next_time = max(host.next_time, now + host.crawl_delay)
        elif known.failures < self._politeness.retries:
            host.next_time = max(host.next_time, now + self._retry_pause(known.failures))
            known.failures += 1
        else:
            known.failures = 0
            known.rules, known.refusal = DISALLOW_ALL, "robots_unreachable"
            known.until = now + self._politeness.park_time
        if host.state is State.BLOCKED:
            host.state = State.IDLE
        self._schedule(host)

    def page_fetched(self, outcome: PageFetched, now: float) -> None:
        """A page, redirect or failure; a temporary failure is queued for another try."""
        row = outcome.asked.row
        host = self._release(row.host_key, outcome.asked.address, now, outcome.retry_after)
        self._counters.in_flight -= 1
        if not outcome.failure:
            if 200 <= outcome.status < 300:
                self._counters.pages += 1
            else:
                self._counters.redirects += 1
            host.failures = 0
            return
        if outcome.temporary:
            host.failures += 1
            if host.failures >= self._politeness.park_after:
                doublings = min(host.failures - self._politeness.park_after, 10)
                host.next_time = max(host.next_time, now + self._politeness.park_time * 2**doublings)
            if row.tries < self._politeness.retries:
                again = row._replace(tries=row.tries + 1, flags=row.flags | Flag.RETRY)
                time = now + self._retry_pause(row.tries)
                heapq.heappush(self._later, (time, next(self._order), again, outcome.asked.trail))
                self._counters.queued += 1
                return
        self._end(self._counters.failed, outcome.failure)

    def put_back(self, outcome: PageFetched, row: UrlRow, trail: Trail, now: float) -> None:
        """Instead of `page_fetched`: the same URL goes back into the queue in another form."""
        host = self._release(row.host_key, outcome.asked.address, now, None)
        self._counters.in_flight -= 1
        self._counters.queued += 1
        host.queue.append((row, trail))
        self._schedule(host)

    def _release(self, host_key: int, address: str, now: float, retry_after: float | None) -> Host:
        """The end of a request: the pauses of its host and its server begin."""
        self.under_way -= 1
        host, server = self._hosts[host_key], self._servers[address]
        pause = max(self._politeness.host_delay, min(host.crawl_delay, self._politeness.max_crawl_delay))
        host.next_time = max(host.next_time, now + pause)
        if retry_after is not None:
            host.next_time = max(
                host.next_time, now + min(max(retry_after, 1.0), self._politeness.max_retry_after)
            )
        host.state = State.IDLE
        server.busy = False
        server.next_time = now + self._politeness.server_delay
        self._list(server)
        self._schedule(host)
        return host

    # ── bookkeeping ────────────────────────────────────────────────────────────────────────────

    def _schedule(self, host: Host) -> None:
        if host.state is not State.IDLE:
            return
        if host.queue or host.robots:
            self._idle.pop(host.key, None)
            host.state = State.WAITING
            heapq.heappush(self._waiting, (host.next_time, next(self._order), host))
        else:
            self._idle[host.key] = host

    def _list(self, server: Server) -> None:
        if server.due and not server.busy and not server.listed:
            server.listed = True
            heapq.heappush(self._due, (server.next_time, next(self._order), server))

    def _forget(self, now: float) -> None:
        """Keep RAM bounded: forget the hosts that were idle longest and whose pause is over."""
        for _ in range(len(self._idle) - self._remembered):
            key, host = self._idle.popitem(last=False)
            if host.next_time > now or any(known.asking for known in host.origins.values()):
                self._idle[key] = host
            else:
                del self._hosts[key]
        if len(self._servers) > 2 * self._remembered:
            used = {id(host.server) for host in self._hosts.values()}
            self._servers = {
                address: server
                for address, server in self._servers.items()
                if id(server) in used or server.next_time > now
            }

    def _retry_pause(self, tries: int) -> float:
        return float(self._politeness.retry_delay * 2 ** min(tries, 20))

    @staticmethod
    def _end(counts: dict[str, int], reason: str) -> None:
        counts[reason] = counts.get(reason, 0) + 1

    def validate(self) -> None:
        """Check the invariants: every host in the one place that its state says, every URL counted."""
        waiting = {id(host) for _, _, host in self._waiting}
        due = [id(host) for server in self._servers.values() for host in server.due]
        assert len(waiting) == len(self._waiting)
        assert len(set(due)) == len(due)
        queued = len(self._later)
        for key, host in self._hosts.items():
            queued += len(host.queue)
            assert (host.state is State.WAITING) == (id(host) in waiting)
            assert (host.state is State.DUE) == (id(host) in due)
            assert (host.state is State.IDLE) == (key in self._idle)
            assert host.state is not State.IDLE or not (host.queue or host.robots)
        for server in self._servers.values():
            assert server.listed == bool(server.due and not server.busy)
        assert queued == self._counters.queued
