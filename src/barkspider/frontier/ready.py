"""Ready: URLs whose turn may come, one queue a host, and whom we may contact when.

A host (a name) is always in one state:

    IDLE ── put ──► WAITING ── its pause is over ──► DUE ── its server's too ──► BUSY ── outcome ──► IDLE
                       └────── address unknown: ResolveHost, BUSY ──────┘
    BLOCKED: its next URL waits for a robots.txt that another host is being asked for (a redirect)

At most one request at a time goes to a host, and one to a server (an address). How long the pauses are is
said by `politeness`, what robots.txt forbids by `robots`. Hosts wait in `waiting`; the heaps hold servers that
have a host due, and retries by their time.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
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
from barkspider.frontier.hosts import Entry, Host, Server, State
from barkspider.frontier.politeness import Pauses, retry_pause
from barkspider.frontier.robots import MOST_REDIRECTS, is_unreachable, rules_of
from barkspider.frontier.waiting import Waiting
from barkspider.url import ALLOW_ALL, Keys, RobotsRules, origin, split

_FORGET_AT_ONCE = 1_000  # hosts looked at in a step, so that many with long pauses do not hold it up


class Ready:
    """See the module. Touched by one thread; told the time, never asks for it.

    Owns `queued`, `in_flight`, `pages`, `redirects`, `refused` and `failed` of the counters it is given.
    """

    def __init__(
        self, politeness: Politeness, agent: str, keys: Keys, counters: Counters, remembered_hosts: int
    ) -> None:
        self._politeness, self._agent, self._keys, self._counters = politeness, agent, keys, counters
        self._pauses = Pauses(politeness)
        self._remembered = remembered_hosts
        self._hosts: dict[int, Host] = {}
        self._idle: OrderedDict[int, Host] = OrderedDict()
        self._servers: dict[str, Server] = {}
        self._many_servers = 2 * remembered_hosts  # beyond, those without hosts are forgotten
        self._waiting = Waiting()
        self._due: list[tuple[float, int, Server]] = []
        self._later: list[tuple[float, int, UrlRow, Trail]] = []
        self._order = count()
        self.under_way = 0  # instructions without an outcome, of every kind

    # ── what the frontier puts in ──────────────────────────────────────────────────────────────

    def put(self, row: UrlRow, trail: Trail = (), budget: float = 1.0) -> None:
        """Queue a URL behind the others of its host.

        `budget` is what its domain has now, in multiples of B_0; it shortens delays if the settings let it.
        """
        host = self.host(row.host_key)
        self._pauses.set_budget(host, host.server, row.pld_key, budget)
        host.push(row, trail)
        host.taken += 1
        self._counters.queued += 1
        self._schedule(host)

    def host(self, key: int) -> Host:
        """The host of a key, made when it is new."""
        found = self._hosts.get(key)
        if found is None:
            found = self._hosts[key] = self._idle[key] = Host(key)
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
            host = self.host(row.host_key)
            host.push(row, trail)
            self._schedule(host)
        while len(taken) < room and (ended := self._waiting.pop(now)) is not None:
            if ended.address_until <= now:
                ended.state = State.BUSY
                taken.append(ResolveHost(ended.name(), ended.key))
            else:
                assert ended.server is not None
                ended.state = State.DUE
                ended.server.due.append(ended)
                self._list(ended.server)
        while self._due and self._due[0][0] <= now and len(taken) < room:
            server = heapq.heappop(self._due)[2]
            server.listed = False
            host = server.due.pop(0)
            host.state = State.IDLE
            # A robots.txt that came from elsewhere may have made its pause longer since it was due.
            instruction = self._next(host, server.address, now) if host.next_time <= now else None
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
        due = self._due[0][0] if self._due else math.inf
        later = self._later[0][0] if self._later else math.inf
        return min(self._waiting.next_time(), due, later)

    def _next(self, host: Host, address: str, now: float) -> FetchRobots | FetchPage | None:
        """The next request to a host, or None when it has none now; what robots.txt refuses ends here."""
        if host.robots:
            (asked, url, hops), *rest = host.robots
            host.robots = tuple(rest)
            return FetchRobots(asked, url, address, host.key, hops)
        while (entry := host.first) is not None:
            if self._politeness.obey_robots:
                url = entry.row.url.decode()
                known = host.origin(origin(url))
                if known.asking:
                    host.state = State.BLOCKED
                    return None
                if known.until <= now:
                    known.asking = True
                    return FetchRobots(known.name, f"{known.name}/robots.txt", address, host.key, 0)
                target = url[url.index("/", 8) :].partition("#")[0]  # as `split`, at a fifth of the cost
                refusal = "" if known.rules.allows(target) else known.refusal
                if host.crawl_delay > self._politeness.max_crawl_delay:
                    refusal = "crawl_delay"
                if refusal:
                    self._drop(host, entry, self._counters.refused, refusal)
                    continue
            host.pop(entry)
            self._counters.queued -= 1
            self._counters.in_flight += 1
            return FetchPage(entry.row, address, entry.trail)
        return None

    # ── what happened ──────────────────────────────────────────────────────────────────────────

    def resolved(self, outcome: HostResolved, now: float) -> None:
        """A host's address is known, or cannot be had."""
        host = self._hosts[outcome.asked.host_key]
        host.state = State.IDLE
        self.under_way -= 1
        if outcome.addresses:
            host.lookups = 0
            host.address_until = now + outcome.ttl
            self._move(host, outcome.addresses[0])
        elif outcome.error == "dns_failure" and host.lookups < self._politeness.retries:
            host.wait_until(now + retry_pause(self._politeness, host.lookups))
            host.lookups += 1
        else:
            host.lookups = 0
            host.wait_until(now + self._politeness.retry_delay)
            while host.first is not None:
                self._drop(host, host.first, self._counters.failed, outcome.error)
            led_here, host.robots = host.robots, ()
            for name, _, _ in led_here:  # a redirect that led nowhere: as if there were no robots.txt
                self._learn(name, ALLOW_ALL, None, now)
        self._schedule(host)

    def robots(self, outcome: RobotsFetched, now: float) -> None:
        """A robots.txt arrived, sent us elsewhere, or failed (RFC 9309, 2.3.1)."""
        asked = outcome.asked
        host = self._hosts[asked.host_key]
        if outcome.stale:
            host.robots = ((asked.origin, asked.url, asked.hops), *host.robots)
            self._release(host, asked.address, outcome, False, now)
            return
        self._release(host, asked.address, outcome, is_unreachable(outcome.status), now)
        if outcome.redirect and asked.hops < MOST_REDIRECTS:
            host = self.host(self._keys.of(split(outcome.redirect).host))
            host.robots += ((asked.origin, outcome.redirect, asked.hops + 1),)
            self._schedule(host)
        else:
            self._learn(asked.origin, rules_of(outcome, self._agent), outcome.max_age, now)

    def _learn(self, name: str, rules: RobotsRules | None, max_age: float | None, now: float) -> None:
        """Keep an origin's rules and go on with its host; None means that they could not be had."""
        host = self.host(self._keys.of(split(name + "/").host))
        known = host.origin(name)
        known.asking = False
        if rules is None:
            host.wait_until(now + known.miss(self._politeness, now, host.next_time))
        else:
            known.learn(rules, max_age, self._politeness, now)
            host.crawl_delay = max(each.rules.crawl_delay or 0.0 for each in host.origins)
            # The pause that began with this answer did not know of the Crawl-delay in it.
            if host.crawl_delay <= self._politeness.max_crawl_delay:
                host.wait_until(now + host.crawl_delay)
        if host.state is State.BLOCKED:
            host.state = State.IDLE
        self._schedule(host)

    def page_fetched(self, outcome: PageFetched, now: float) -> None:
        """A page, redirect or failure; a temporary failure is queued for another try."""
        row = outcome.asked.row
        self._release(self._hosts[row.host_key], outcome.asked.address, outcome, outcome.temporary, now)
        self._counters.in_flight -= 1
        if not outcome.failure:
            if 200 <= outcome.status < 300:
                self._counters.pages += 1
            else:
                self._counters.redirects += 1
        elif outcome.temporary and row.tries < self._politeness.retries:
            again = row._replace(tries=row.tries + 1, flags=row.flags | Flag.RETRY)
            time = now + retry_pause(self._politeness, row.tries)
            heapq.heappush(self._later, (time, next(self._order), again, outcome.asked.trail))
            self._counters.queued += 1
        else:
            self._end(self._counters.failed, outcome.failure)

    def put_back(self, outcome: PageFetched, row: UrlRow, trail: Trail, now: float) -> None:
        """Instead of `page_fetched`: the same URL goes back into the queue in another form."""
        self._counters.in_flight -= 1
        self._counters.queued += 1
        asked = outcome.asked
        self._release(self._hosts[asked.row.host_key], asked.address, outcome, False, now)
        host = self.host(row.host_key)
        host.push(row, trail)
        self._schedule(host)

    def _release(
        self, host: Host, address: str, outcome: PageFetched | RobotsFetched, trouble: bool, now: float
    ) -> None:
        """The end of a request: the pauses of its host and its server begin."""
        self.under_way -= 1
        server = self._servers[address]
        self._pauses.answered(host, server, outcome, trouble, now)
        if trouble and not outcome.status:
            host.address_until = -math.inf  # nobody is there: the name may have another address
        host.state = State.IDLE
        server.busy = False
        self._list(server)
        self._schedule(host)

    # ── bookkeeping ────────────────────────────────────────────────────────────────────────────

    def _schedule(self, host: Host) -> None:
        if host.state is not State.IDLE:
            return
        if host.first is not None or host.robots:
            self._idle.pop(host.key, None)
            host.state = State.WAITING
            self._waiting.push(host)
        else:
            self._idle[host.key] = host

    def _list(self, server: Server) -> None:
        if server.due and not server.busy and not server.listed:
            server.listed = True
            heapq.heappush(self._due, (server.next_time, next(self._order), server))

    def _move(self, host: Host, address: str) -> None:
        server = self._servers.get(address)
        if server is None:
            server = self._servers[address] = Server(address)
        if host.server is not server:
            if host.server is not None:
                host.server.leave(host)
            host.server = server
            server.join(host)

    def _forget(self, now: float) -> None:
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

    def _drop(self, host: Host, entry: Entry, counts: dict[str, int], reason: str) -> None:
        host.pop(entry)
        self._counters.queued -= 1
        self._end(counts, reason)

    @staticmethod
    def _end(counts: dict[str, int], reason: str) -> None:
        counts[reason] = counts.get(reason, 0) + 1

    def validate(self) -> None:
        """Check the invariants: every host in the one place that its state says, every URL counted."""
        waiting = {id(host) for host in self._waiting}
        due = [id(host) for server in self._servers.values() for host in server.due]
        assert len(waiting) == len(list(self._waiting))
        assert len(set(due)) == len(due)
        queued = len(self._later)
        hosts = dict.fromkeys(self._servers, 0)
        for key, host in self._hosts.items():
            entry = host.first
            while entry is not None:
                queued += 1
                assert entry.behind is not None or entry is host.last
                entry = entry.behind
            if host.server is not None:
                hosts[host.server.address] += 1
            assert (host.state is State.WAITING) == (id(host) in waiting)
            assert (host.state is State.DUE) == (id(host) in due)
            assert (host.state is State.IDLE) == (key in self._idle)
            assert host.state is not State.IDLE or not (host.first or host.robots)
        for address, server in self._servers.items():
            assert server.listed == bool(server.due and not server.busy)
            assert server.hosts == hosts[address]
        assert queued == self._counters.queued
