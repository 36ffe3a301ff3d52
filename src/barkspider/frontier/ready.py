"""Ready: URLs whose turn may come, one queue a host, and whom we may contact when.

A host (a name) is always in one state:

    IDLE ── put ──► WAITING ── its pause is over ──► DUE ── its server's too ──► BUSY ── outcome ──► IDLE
                       └────── address unknown: ResolveHost, BUSY ──────┘
    BLOCKED: its next URL waits for a robots.txt that another host is being asked for (a redirect)

At most one request at a time goes to a host, and one to a server (an address). How long the pauses are is
said by `politeness`, what robots.txt forbids by `robots`. Hosts wait in `waiting`; the heap holds servers that
have a host due.

Only URLs whose turn comes within the horizon of half a minute are kept here. What has to wait longer, because its
host is parked, has many others queued, or shares a slow server with many, is put off: it comes back when its turn is
near. So n URLs here are work for n/30 requests a second, and no host or server can fill the memory.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import count

from barkspider.core.errors import StorageError
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
from barkspider.frontier.hosts import Asked, Entry, Host, Server, State
from barkspider.frontier.politeness import HostPace, Pauses, ServerPace, retry_pause
from barkspider.frontier.robots import MOST_REDIRECTS, Origin, is_unreachable, rules_of
from barkspider.frontier.waiting import Waiting
from barkspider.url import ALLOW_ALL, Keys, RobotsRules, origin, split

_HORIZON = 30.0  # seconds; more where a single pause is longer
_SHORTEST_TURN = 0.01  # seconds that a request takes at least: for guessing when a turn comes
_FORGET_AT_ONCE = 1_000  # hosts looked at in a step, so that many with long pauses do not hold it up


class Ready:
    """See the module. Touched by one thread; told the time, never asks for it.

    Owns `queued`, `in_flight`, `pages`, `redirects`, `refused` and `failed` of the counters it is given; `deferred`
    is for whoever takes what is put off.
    """

    def __init__(
        self,
        politeness: Politeness,
        agent: str,
        keys: Keys,
        counters: Counters,
        remembered_hosts: int,
        put_off: Callable[[float, UrlRow, Trail], None],
        learned: Callable[[Origin, float], None] = lambda *_: None,
    ) -> None:
        """`put_off` is given a URL, no longer counted here, and when it should come back. `learned` is told when the
        robots.txt of an origin is known or given up, or else after which pause it is asked for again."""
        self._politeness, self._agent, self._keys, self._counters = politeness, agent, keys, counters
        self._put_off, self._learned = put_off, learned
        self._pauses = Pauses(politeness)
        self._horizon = max(_HORIZON, 2 * politeness.host_delay)
        self._remembered = remembered_hosts
        self._hosts: dict[int, Host] = {}
        self._idle: OrderedDict[int, Host] = OrderedDict()
        self._servers: dict[str, Server] = {}
        self._many_servers = 2 * remembered_hosts  # beyond, those without hosts are forgotten
        self._waiting = Waiting()
        self._due: list[tuple[float, int, Server]] = []
        self._order = count()
        self._restarted = -math.inf  # when a crawl was gone on with: all count as contacted then
        self.under_way = 0  # instructions without an outcome, of every kind
        self.asking = 0  # origins whose robots.txt is under way or to be asked for

    # ── what the frontier puts in ──────────────────────────────────────────────────────────────

    def put(self, row: UrlRow, now: float, trail: Trail = (), budget: float = 1.0) -> None:
        """Queue a URL behind the others of its host, or put it off when its turn is far away.

        `budget` is what its domain has now, in multiples of B_0; it shortens delays if the settings let it.
        """
        host = self.host(row.host_key)
        self._pauses.set_budget(host, host.server, row.pld_key, budget)
        refusal = self._refusal(host, row, now)
        if refusal:  # at once: nobody has to wait for this
            self._end(self._counters.refused, refusal)
            return
        if host.error and host.next_time > now:
            self._end(self._counters.failed, host.error)
            return
        if self._turn(host, now) > now + self._horizon:
            self._put_off(self._assign_turn(host, now), row, trail)
            return
        host.push(row, trail)
        self._counters.queued += 1
        self._schedule(host)

    def ask(self, name: str, now: float) -> None:
        """Fetch the robots.txt of an origin, unless it is known or under way."""
        known = self._origin(name)[1]
        if known.until > now:
            self._learned(known, 0.0)
        elif not known.asking:
            self.ask_again((name, f"{name}/robots.txt", 0))

    def permit(self, name: str, until: float, learned: float, refusal: str, rules: bytes) -> None:
        """What is known elsewhere of an origin's robots.txt, its rules encoded; what is known here counts if it
        is newer."""
        host, known = self._origin(name)
        if until > known.until:
            try:
                known.rules = RobotsRules.decode(rules)
            except ValueError as error:
                raise StorageError(f"the rules of {name} that were kept are damaged") from error
            known.refusal, known.learned, known.until = refusal, learned, until
            self._heed_delay(host, -math.inf)

    def knows(self, name: str, host_key: int, now: float) -> bool:
        """Whether the rules of an origin are here and in force."""
        host = self._hosts.get(host_key)
        return host is not None and any(known.name == name and known.until > now for known in host.origins)

    def host(self, key: int) -> Host:
        """The host of a key, made when it is new."""
        found = self._hosts.get(key)
        if found is None:
            found = self._hosts[key] = self._idle[key] = Host(key)
            found.next_time = self._restarted + self._politeness.host_delay
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
        while len(taken) < room and (ended := self._waiting.pop(now)) is not None:
            if ended.first is None and not ended.robots:  # what it waited for was answered in an earlier run
                ended.state = State.IDLE
                self._schedule(ended)
            elif ended.address_until <= now:
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
        return min(self._waiting.next_time(), due)

    def _next(self, host: Host, address: str, now: float) -> FetchRobots | FetchPage | None:
        """The next request to a host, or None when it has none now; what robots.txt refuses ends here."""
        if host.robots:
            host.flying, *rest = host.robots
            host.robots = tuple(rest)
            asked, url, hops = host.flying
            return FetchRobots(asked, url, address, host.key, hops)
        while (entry := host.first) is not None:
            if self._politeness.obey_robots:
                known = host.origin(origin(entry.row.url.decode()))
                if known.asking:
                    host.state = State.BLOCKED
                    return None
                if known.until <= now:
                    self._set_asking(known, True)
                    host.flying = known.name, f"{known.name}/robots.txt", 0
                    return FetchRobots(*host.flying[:2], address, host.key, 0)
                refusal = self._refusal(host, entry.row, now)
                if refusal:
                    self._drop(host, entry, self._counters.refused, refusal)
                    continue
            host.pop(entry)
            host.flying = entry
            self._counters.queued -= 1
            self._counters.in_flight += 1
            return FetchPage(entry.row, address, entry.trail)
        return None

    def _refusal(self, host: Host, row: UrlRow, now: float) -> str:
        """Why robots.txt forbids a URL, as far as it is known; "" when it does not."""
        if not self._politeness.obey_robots:
            return ""
        url = row.url.decode()
        name = origin(url)
        for known in host.origins:
            if known.name == name and known.until > now:
                if host.crawl_delay > self._politeness.max_crawl_delay:
                    return "crawl_delay"
                target = url[url.index("/", 8) :].partition("#")[0]  # as `split`, at a fifth of the cost
                return "" if known.rules.allows(target) else known.refusal
        return ""

    # ── what happened ──────────────────────────────────────────────────────────────────────────

    def resolved(self, outcome: HostResolved, now: float) -> None:
        """A host's address is known, or cannot be had."""
        host = self._hosts[outcome.asked.host_key]
        host.state = State.IDLE
        self.under_way -= 1
        if outcome.addresses:
            host.lookups, host.error = 0, ""
            host.address_until = now + outcome.ttl
            self._move(host, outcome.addresses[0])
            self._shed(host, now)
        elif outcome.error == "dns_failure" and host.lookups < self._politeness.retries:
            host.wait_until(now + retry_pause(self._politeness, host.lookups))
            host.lookups += 1
        else:
            host.lookups, host.error = 0, outcome.error
            host.wait_until(now + self._politeness.retry_delay)
            while host.first is not None:
                self._drop(host, host.first, self._counters.failed, outcome.error)
            led_here, host.robots = host.robots, ()
            # Nobody can be asked, or a redirect led nowhere: as if there were no robots.txt.
            for name, _, _ in led_here:
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
        self._robots_answered(outcome, now)

    def replay_robots(self, outcome: RobotsFetched, time: float) -> None:
        """`robots`, of an earlier run: the same without the end of a request of this one."""
        asked = outcome.asked
        host = self.host(asked.host_key)
        self._pauses.answered(host, ServerPace(), outcome, is_unreachable(outcome.status), time)
        host.robots = tuple(task for task in host.robots if task[:2] != (asked.origin, asked.url))
        self._robots_answered(outcome, time)
        self._schedule(host)

    def _robots_answered(self, outcome: RobotsFetched, now: float) -> None:
        asked = outcome.asked
        if outcome.redirect and asked.hops < MOST_REDIRECTS:
            self._set_asking(self._origin(asked.origin)[1], True)
            host = self.host(self._keys.of(split(outcome.redirect).host))
            host.robots += ((asked.origin, outcome.redirect, asked.hops + 1),)
            self._schedule(host)
        else:
            self._learn(asked.origin, rules_of(outcome, self._agent), outcome.max_age, now)

    def _origin(self, name: str) -> tuple[Host, Origin]:
        host = self.host(self._keys.of(split(name + "/").host))
        return host, host.origin(name)

    def _learn(self, name: str, rules: RobotsRules | None, max_age: float | None, now: float) -> None:
        """Keep an origin's rules and go on with its host; None means that they could not be had."""
        host, known = self._origin(name)
        self._set_asking(known, False)
        pause = 0.0
        if rules is None:
            pause = known.miss(self._politeness, now, host.next_time)
            host.wait_until(now + pause)
            if pause:
                self._set_asking(known, True)
                host.robots += ((name, f"{name}/robots.txt", 0),)
        else:
            known.learn(rules, max_age, self._politeness, now)
            # The pause that began with this answer did not know of the Crawl-delay in it.
            self._heed_delay(host, now)
        if host.state is State.BLOCKED:
            host.state = State.IDLE
        self._schedule(host)
        self._learned(known, pause)

    def _set_asking(self, known: Origin, asking: bool) -> None:
        self.asking += asking - known.asking
        known.asking = asking

    def _heed_delay(self, host: Host, contacted: float) -> None:
        host.crawl_delay = max(each.rules.crawl_delay or 0.0 for each in host.origins)
        if host.crawl_delay <= self._politeness.max_crawl_delay:
            host.wait_until(max(contacted, self._restarted) + host.crawl_delay)

    def page_fetched(self, outcome: PageFetched, now: float) -> None:
        """A page, redirect or failure; a temporary failure is put off for another try."""
        row = outcome.asked.row
        self._release(self._hosts[row.host_key], outcome.asked.address, outcome, outcome.temporary, now)
        self._counters.in_flight -= 1
        self._count(outcome, now)

    def replay_page(self, outcome: PageFetched, time: float) -> None:
        """`page_fetched`, of an earlier run: the same without the end of a request of this one."""
        host = self.host(outcome.asked.row.host_key)
        self._pauses.answered(host, ServerPace(), outcome, outcome.temporary, time)
        self._counters.ahead += 1
        self._count(outcome, time)

    def _count(self, outcome: PageFetched, now: float) -> None:
        row = outcome.asked.row
        if not outcome.failure:
            if 200 <= outcome.status < 300 or outcome.status == 304:
                self._counters.pages += 1
            else:
                self._counters.redirects += 1
        elif outcome.temporary and row.tries < self._politeness.retries:
            again = row._replace(tries=row.tries + 1, flags=row.flags | Flag.RETRY)
            self._put_off(now + retry_pause(self._politeness, row.tries), again, outcome.asked.trail)
        else:
            self._end(self._counters.failed, outcome.failure)

    def put_back(self, outcome: PageFetched, row: UrlRow, trail: Trail, now: float) -> None:
        """Instead of `page_fetched`: the same URL goes back into the queue in another form."""
        self._counters.in_flight -= 1
        asked = outcome.asked
        self._release(self._hosts[asked.row.host_key], asked.address, outcome, False, now)
        if self._politeness.obey_robots and not self.knows(origin(row.url.decode()), row.host_key, now):
            self._put_off(now, row, trail)  # robots.txt may be known on disk
            return
        self._counters.queued += 1
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
        host.flying = None
        server.busy = False
        self._list(server)
        self._shed(host, now)
        self._schedule(host)

    # ── a crawl that goes on ───────────────────────────────────────────────────────────────────

    def restart(self, now: float) -> None:
        """Everybody counts as contacted at this moment, whatever an earlier run did (DESIGN: politeness)."""
        self._restarted = now

    def hosts(self) -> Iterator[Host]:
        """All hosts, in no order."""
        return iter(self._hosts.values())

    def restore(self, key: int, pace: HostPace, duplicates: int) -> None:
        """What an earlier run knew of a host: its troubles and the end of its pause."""
        host = self.host(key)
        host.trouble, host.crawl_delay, host.duplicates = pace.trouble, pace.crawl_delay, duplicates
        host.wait_until(pace.next_time)

    def ask_again(self, asked: Asked) -> None:
        """Fetch a robots.txt that an earlier run was to fetch."""
        self._set_asking(self._origin(asked[0])[1], True)
        host = self.host(self._keys.of(split(asked[1]).host))
        host.robots += (asked,)
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
        self._set_active(host, host.state is not State.IDLE)

    @staticmethod
    def _set_active(host: Host, active: bool) -> None:
        if host.active != active and host.server is not None:
            host.server.active += 1 if active else -1
        host.active = active

    def _turn(self, host: Host, now: float) -> float:
        """When a URL that is queued now would be fetched, as far as can be told."""
        start, delay = max(host.next_time, now), self._delay(host)
        server = host.server
        if server is None:
            return start + host.length * delay
        shared = server.active * max(self._pauses.server_delay(server), _SHORTEST_TURN)
        return max(start + host.length * delay, now + shared)

    def _assign_turn(self, host: Host, now: float) -> float:
        """A turn of its own for each URL that is put off, so that they come back one by one."""
        host.last_turn = max(host.last_turn + self._delay(host), self._turn(host, now))
        return host.last_turn

    def _delay(self, host: Host) -> float:
        return max(self._pauses.host_delay(host), _SHORTEST_TURN)

    def _shed(self, host: Host, now: float) -> None:
        """Put off what is queued for a host that was given a long pause, or is on a server with many others."""
        if (
            host.first is None
            or self._turn(host, now) - host.length * self._delay(host) <= now + self._horizon
        ):
            return
        entry: Entry | None = host.first
        host.first = host.last = None
        self._counters.queued -= host.length
        host.length = 0
        while entry is not None:
            self._put_off(self._assign_turn(host, now), entry.row, entry.trail)
            entry = entry.behind

    def _list(self, server: Server) -> None:
        if server.due and not server.busy and not server.listed:
            server.listed = True
            heapq.heappush(self._due, (server.next_time, next(self._order), server))

    def _move(self, host: Host, address: str) -> None:
        server = self._servers.get(address)
        if server is None:
            server = self._servers[address] = Server(address)
            server.next_time = self._restarted + self._politeness.server_delay
        if host.server is not server:
            if host.server is not None:
                host.server.leave(host)
                host.server.active -= host.active
            host.server = server
            server.join(host)
            server.active += host.active

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
        queued = 0
        hosts = dict.fromkeys(self._servers, 0)
        active = dict.fromkeys(self._servers, 0)
        for key, host in self._hosts.items():
            entries = list(host.entries())
            queued += len(entries)
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
        assert queued == self._counters.queued
        assert self.asking == sum(known.asking for host in self._hosts.values() for known in host.origins)
