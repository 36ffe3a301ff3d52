"""Ready: URLs whose turn may come, one queue a host, and what becomes of the requests for them.

    put ─► the queue of its host ─ whom `roster` lets us contact ─► take ─► outcome ─► counted, or put off

How long the pauses are is said by `politeness.pauses`, who gets a slot by `politeness.slots`, what robots.txt forbids by
`robots.origins`: this is where they meet.

Only URLs whose turn comes within the horizon of half a minute are kept here. What has to wait longer, because its
host is parked, has many others queued, or shares a slow server with many, is put off: it comes back when its turn is
near. So n URLs here are work for n/30 requests a second, and no host or server can fill the memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator

from barkspider.core.events import (
    Denied,
    DomainProbed,
    FetchPage,
    FetchRobots,
    HostResolved,
    Instruction,
    PageFetched,
    ResolveHost,
    Rest,
    RobotsFetched,
    Trail,
)
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.decisions import ADDRESS_LIMIT, FAR_TURN, RETRY, ROBOTS_UNKNOWN, Decisions
from barkspider.frontier.mirrors import MIRROR, Mirrors, is_home
from barkspider.frontier.ownership import shares_hosts
from barkspider.frontier.politeness.hosts import Asked, Host, QueuedUrl, Server, State
from barkspider.frontier.politeness.pauses import HostPace, Multiples, Pauses, ServerPace, retry_pause
from barkspider.frontier.politeness.roster import Roster
from barkspider.frontier.politeness.slots import Slots, next_cost
from barkspider.frontier.politeness.wildcards import PROBING, Wildcards
from barkspider.frontier.robots.origins import Learned, Origins
from barkspider.frontier.robots.rules import is_unreachable

_HORIZON = 30.0  # seconds; more where a single pause is longer
_SHORTEST_TURN = 0.01  # seconds that a request takes at least: for guessing when a turn comes
_PAGES_AN_ERRAND = 16  # requests to a host with pages for each one that another domain sent us for
_LOOKED_AT = 64  # domains in line for a slot that are looked at in a step: some ten microseconds
_PROBED = 0.5  # seconds until a host is looked up once more whose top-level domain is being probed
_LOOK_AGAIN = 0.1  # seconds until they are if nothing else happens: what may be used changes with time


class Ready:
    """See the module. Touched by one thread; told the time, never asks for it.

    Owns `queued`, `in_flight`, `pages`, `redirects`, `refused` and `failed` of the counters it is given; `deferred`
    is for whoever takes what is put off.
    """

    def __init__(
        self,
        settings: Settings,
        decisions: Decisions,
        remembered_hosts: int,
        put_off: Callable[[float, UrlRow, Trail, str], None],
        judge: Callable[[UrlRow, Trail, str], bool] = lambda *_: True,
    ) -> None:
        """`put_off` is given a URL, no longer counted here, when it should come back, and by which rule; `judge` one that is
        to be fetched from an address, and says whether it may be: one that may not is no longer counted here."""
        self._politeness, self._decisions, self._put_off = settings.politeness, decisions, put_off
        self._counters = decisions.counters
        self._pauses = Pauses(settings.politeness)
        self._horizon = max(_HORIZON, 2 * settings.politeness.host_delay)
        self._slots = Slots(settings.fetch.in_flight)
        self._lookups = Slots(settings.dns.in_flight)  # of these slots, those for looking up addresses
        self._roster = Roster(settings.politeness, remembered_hosts)
        self._origins = Origins(settings, self._roster)
        self._judge = judge
        self.rulings = 0  # their number: what was let in before there were as many is judged once more
        self.closes: Callable[[str, str], bool] | None = None  # whether a host, at an address, is left alone
        self.mirrors: Mirrors | None = None  # of whom, if they are looked for
        self.by_address = Counter[str]()  # URLs that were taken from each server, where there is a limit
        self._most_by_address = settings.limits.address_urls
        most = settings.limits.wildcard_hosts
        self.wildcards = Wildcards(settings.seed, most) if most else None
        self._look_at = math.inf  # when those in line for a slot are looked at again
        # Whether other processes ask the same servers, and the pauses that they have not been told of.
        self._shares_servers, self._rests = settings.parallel.processes > 1, list[Rest]()
        self._shares_hosts = shares_hosts(settings.parallel)

    @property
    def under_way(self) -> int:
        """Instructions without an outcome, of every kind."""
        return len(self._slots)

    # ── what the frontier puts in ──────────────────────────────────────────────────────────────

    @property
    def multiples(self) -> Multiples:
        """The budgets of domains, which shorten delays if the settings let them."""
        return self._pauses.multiples

    def put(self, row: UrlRow, now: float, trail: Trail = ()) -> None:
        """Queue a URL behind the others of its host, or put it off when its turn is far away."""
        host = self._roster.host(row.host_key)
        host.pld = row.pld_key
        self._pauses.follow_budget(host, host.server, row.pld_key)
        known = rules = None
        if self._politeness.obey_robots:
            url = row.url.decode()
            known = host.origin_of(url)
            refusal = self._origins.refusal(host, known, url, now)
            if refusal:  # at once: nobody has to wait for this
                self._decisions.refuse(row, refusal)
                return
            if known is not None and known.until > now:
                rules = known.rules
        if host.error and host.next_time > now:
            self._decisions.fail(row, host.error)
            return
        if self._turn(host, now) > now + self._horizon:
            self._put_off(self._assign_turn(host, now), row, trail, FAR_TURN)
            return
        entry = QueuedUrl(row, trail, known, rules, self.rulings)
        if self.mirrors is not None and is_home(row):
            host.push_first(entry)
        else:
            host.push(entry)
        self._counters.queued += 1
        self._roster.schedule(host)

    def ask(self, name: str, now: float) -> None:
        """Fetch the robots.txt of an origin, unless it is known or under way."""
        self._origins.ask(name, now)

    def ask_again(self, asked: Asked) -> None:
        """Fetch a robots.txt that an earlier run was to fetch."""
        self._origins.add(asked)

    @property
    def asking(self) -> int:
        """Origins whose robots.txt is under way or to be asked for."""
        return self._origins.asking

    def permit(
        self, name: str, until: float, learned: float, refusal: str, rules: bytes, host_key: int = 0
    ) -> None:
        """What is known elsewhere of an origin's robots.txt, its rules encoded; see `Origins`."""
        self._origins.permit(name, until, learned, refusal, rules, host_key)

    def locate(self, host_key: int, address: str, until: float) -> None:
        """Where a host was found that may have been forgotten since; one that is known here is left where it is."""
        host = self._roster.find(host_key)
        if host is not None and host.server is None and host.state is not State.BUSY:
            host.address_until = until
            self._roster.move(host, address)

    def knows(self, row: UrlRow, now: float) -> bool:
        """Whether the rules for a URL are here and in force."""
        return self._origins.knows(row, now)

    def knows_host(self, key: int, now: float) -> bool:
        """Whether any rules of a host are here and in force."""
        host = self._roster.find(key)
        return host is not None and any(known.until > now for known in host.origins)

    def subscribe(self, learned: Learned) -> None:
        """Let somebody be told what becomes of each robots.txt; see `Origins`."""
        self._origins.learned = learned

    def host(self, key: int) -> Host:
        """The host of a key, made when it is new."""
        return self._roster.host(key)

    def find(self, key: int) -> Host | None:
        """The host of a key, if it is here."""
        return self._roster.find(key)

    def hosts(self) -> Iterator[Host]:
        """All hosts, in no order."""
        return iter(self._roster)

    def __len__(self) -> int:
        """Hosts known."""
        return len(self._roster)

    def unoccupied(self, host_key: int, now: float) -> bool:
        """Whether a URL of this host could be fetched at once: nothing of it is queued or under way."""
        host = self._roster.find(host_key)
        return host is None or (host.state is State.IDLE and host.next_time <= now)

    # ── what may be done now ───────────────────────────────────────────────────────────────────

    def take(self, now: float, room: int) -> list[Instruction]:
        """At most `room` instructions that politeness allows at this moment."""
        taken: list[Instruction] = []
        roster = self._roster
        last = roster.last_in_line()
        self._slots.look(now, last)
        self._lookups.look(now, last)
        for number, line in enumerate(roster.lines[: last + 1]):
            for _ in range(min(len(line), _LOOKED_AT)):
                if len(taken) >= room or self._slots.left(number) <= 0:
                    break
                domain, who = line.first()
                if not self._admits(number, domain, who):
                    line.skip(domain)
                    continue
                line.take()
                if isinstance(who, Host):
                    taken.append(self._look_up(who, number, now))
                else:
                    self._ask(roster.call(who), number, now, taken)
        self._serve_due(now, room, taken)
        while len(taken) < room and (host := roster.rested(now)) is not None:
            if host.first is None and not host.is_wanted():  # that was answered in an earlier run
                roster.schedule(host)
            elif host.address_until > now:
                free = roster.next_server(host, now)
                if free is not None and self._slots.admits(number := free.rank(host), host.pld, free.address):
                    free.due.last = host.pld
                    self._ask(host, number, now, taken)
                else:
                    roster.line_up(host)
            elif self.closes is not None and self.closes(host.name(), ""):
                self._leave(host, "", now)
                roster.schedule(host)
            elif self._admits(number := host.lookup_rank(), host.pld, host):
                taken.append(self._look_up(host, number, now))
            else:
                roster.wait(number, host.pld, host)
        self._serve_due(now, room, taken)
        self._slots.given_out()
        self._lookups.given_out()
        self._look_at = now + _LOOK_AGAIN if roster.last_in_line() >= 0 else math.inf
        roster.forget(now)
        return taken if self.wildcards is None else [*taken, *self.wildcards.probes()]

    def _serve_due(self, now: float, room: int, taken: list[Instruction]) -> None:
        """Those who have lined up, and whose servers are free now."""
        roster = self._roster
        while len(taken) < room and (server := roster.due(now)) is not None:
            domain, host = server.due.first()
            number = server.rank(host)
            if self._slots.admits(number, domain, server.address):
                self._ask(roster.call(server), number, now, taken)
            else:
                roster.wait(number, domain, server)

    def _admits(self, number: int, domain: int, who: Host | Server) -> bool:
        """Whether there is a slot of this rank for looking up a host, or for the next host on a server."""
        if isinstance(who, Host):
            return self._slots.admits(number, domain) and self._lookups.admits(number, domain)
        return self._slots.admits(number, domain, who.address)

    def _look_up(self, host: Host, number: int, now: float) -> ResolveHost:
        self._slots.begin(host.key, number, now, host.pld)
        self._lookups.begin(host.key, number, now, host.pld)
        host.state = State.BUSY
        return ResolveHost(host.name(), host.key)

    def _ask(self, host: Host, number: int, now: float, taken: list[Instruction]) -> None:
        """Let a host whose turn it is at its server have a slot, if there is anything to ask it."""
        # A robots.txt that came from elsewhere may have made its pause longer since it was due.
        if self.wildcards is not None:
            host.wait_until(self.wildcards.free_at(host.key))
        instruction = self._next(host, now) if host.next_time <= now else None
        if instruction is None:
            self._roster.pass_over(host)
            return
        if self.wildcards is not None:
            self.wildcards.keep_free(host.key, now + self._pauses.host_delay(host))
        self._roster.begin(host)
        self._slots.begin(host.key, number, now, host.pld, instruction.address)
        taken.append(instruction)

    def next_time(self) -> float:
        """When `take` may give something again if no outcome arrives first."""
        return min(self._roster.next_time(), self._look_at)

    def _next(self, host: Host, now: float) -> FetchRobots | FetchPage | None:
        """The next request to a host, or None when it has none now; what robots.txt refuses ends here."""
        assert host.server is not None
        address = host.server.address
        if self.closes is not None and host.is_wanted() and self.closes(host.name(), address):
            self._leave(host, address, now)
            return None
        if host.robots:
            asked, *rest = host.robots
            host.robots = tuple(rest)
            return self._fetch_robots(host, asked, address)
        if host.errands and host.answers % _PAGES_AN_ERRAND == _PAGES_AN_ERRAND - 1:
            errand = self._origins.errand(host, now)
            if errand is not None:
                return self._fetch_robots(host, errand, address)
        blocked = False
        while (entry := host.first) is not None:
            if 0 < self._most_by_address <= self.by_address[address]:
                self._decisions.refuse(self._take_out(host, entry), ADDRESS_LIMIT)
                continue
            if self.wildcards is not None and (rule := self.wildcards.refusal(host.key)):
                self._decisions.refuse(self._take_out(host, entry), rule)
                continue
            if entry.judged != self.rulings or self.closes is not None:
                host.pop(entry)
                self._counters.queued -= 1
                if not self._judge(entry.row, entry.trail, address):
                    continue
                entry.judged = self.rulings
                host.push_first(entry)
                self._counters.queued += 1
            if self.mirrors is not None and (verdict := self.mirrors.verdict(entry.row, now)):
                row = self._take_out(host, entry)
                if verdict == MIRROR:
                    self._decisions.refuse(row, MIRROR)
                else:
                    self._put_off(self.mirrors.when(row, now), row, entry.trail, verdict)
                continue
            known = entry.origin
            if known is not None:
                if known.asking:
                    blocked = True
                    break
                if known.until <= now:
                    return self._fetch_robots(host, self._origins.want(known), address)
                if known.rules is not entry.rules or host.crawl_delay > self._politeness.max_crawl_delay:
                    refusal = self._origins.refusal(host, known, entry.row.url.decode(), now)
                    if refusal:
                        self._decisions.refuse(self._take_out(host, entry), refusal)
                        continue
            host.pop(entry)
            host.flying = entry
            self._counters.queued -= 1
            self._counters.in_flight += 1
            return FetchPage(entry.row, address, entry.trail)
        errand = self._origins.errand(host, now)
        if errand is not None:
            return self._fetch_robots(host, errand, address)
        if blocked:
            host.state = State.BLOCKED
        return None

    def _leave(self, host: Host, address: str, now: float) -> None:
        """A host is left alone: what waits for it is judged, and robots.txt are not asked for."""
        while (entry := host.first) is not None:
            self._judge(self._take_out(host, entry), entry.trail, address)
        self._origins.leave(host, now)

    @staticmethod
    def _fetch_robots(host: Host, asked: Asked, address: str) -> FetchRobots:
        host.flying = asked
        name, url, hops = asked
        return FetchRobots(name, url, address, host.key, hops)

    # ── what happened ──────────────────────────────────────────────────────────────────────────

    def resolved(self, outcome: HostResolved, now: float) -> None:
        """A host's address is known, or cannot be had."""
        host = self.host(outcome.asked.host_key)
        host.state, host.answers = State.IDLE, 0
        self._slots.end(host.key, now)
        self._lookups.end(host.key, now)
        if outcome.addresses:
            host.lookups, host.error = 0, ""
            host.address_until = now + outcome.ttl
            self._roster.move(host, outcome.addresses[0])
            if self.wildcards is not None:
                self._judge_name(self.wildcards, host, outcome, now)
            self._shed(host, now)
        elif outcome.error == "dns_failure" and host.lookups < self._politeness.retries:
            host.wait_until(now + retry_pause(self._politeness, host.lookups))
            host.lookups += 1
        else:
            host.lookups, host.error = 0, outcome.error
            host.wait_until(now + self._politeness.retry_delay)
            while host.first is not None:
                self._decisions.fail(self._take_out(host, host.first), outcome.error)
            self._origins.unanswerable(host, now)
        self._roster.schedule(host)

    def _judge_name(self, wildcards: Wildcards, host: Host, outcome: HostResolved, now: float) -> None:
        """Refuse what is queued for a host whose name costs nothing, if there are too many; or look it up again when it is known
        whether it does."""
        rule = wildcards.located(host.key, host.pld, outcome.asked.host, outcome.addresses[0])
        if rule == PROBING:
            host.address_until = now
            host.wait_until(now + _PROBED)
        elif rule:
            while host.first is not None:
                self._decisions.refuse(self._take_out(host, host.first), rule)
            self._origins.unanswerable(host, now)

    def probed(self, outcome: DomainProbed) -> None:
        """It is known whether a domain has an answer for any name."""
        if self.wildcards is not None:
            self.wildcards.probed(outcome)

    def robots(self, outcome: RobotsFetched, now: float) -> None:
        """A robots.txt arrived, sent us elsewhere, or failed."""
        asked = outcome.asked
        host = self.host(asked.host_key)
        if outcome.stale:
            self._origins.put(host, (asked.origin, asked.url, asked.hops))
            self._release(outcome, host, False, now)
        else:
            self._release(outcome, host, is_unreachable(outcome.status), now)
            self._origins.answered(outcome, now)

    def replay_robots(self, outcome: RobotsFetched, time: float) -> None:
        """`robots`, of an earlier run: the same without the end of a request of this one."""
        asked = outcome.asked
        host = self.host(asked.host_key)
        self._pauses.answered(host, ServerPace(), outcome, is_unreachable(outcome.status), time)
        done = (asked.origin, asked.url)
        host.robots = tuple(task for task in host.robots if task[:2] != done)
        host.errands = tuple(task for task in host.errands if task[:2] != done)
        self._origins.answered(outcome, time)
        self._roster.schedule(host)

    def page_fetched(self, outcome: PageFetched, now: float) -> None:
        """A page, redirect or failure; a temporary failure is put off for another try."""
        self._release(outcome, self.host(outcome.asked.row.host_key), outcome.temporary, now)
        self._counters.in_flight -= 1
        self._count(outcome, now)

    def replay_page(self, outcome: PageFetched, time: float) -> None:
        """`page_fetched`, of an earlier run: the same without the end of a request of this one."""
        host = self.host(outcome.asked.row.host_key)
        self._pauses.answered(host, ServerPace(), outcome, outcome.temporary, time)
        self._counters.ahead += 1
        if self.wildcards is not None:
            self.wildcards.visited(host.key, outcome.asked.row.pld_key, outcome.asked.address)
        self._count(outcome, time)

    def _count(self, outcome: PageFetched, now: float) -> None:
        row = outcome.asked.row
        if self._most_by_address and not row.tries:
            self.by_address[outcome.asked.address] += 1
        if not outcome.failure:
            if 200 <= outcome.status < 300 or outcome.status == 304:
                self._counters.pages += 1
            else:
                self._counters.redirects += 1
            if self._decisions.ended is not None:
                self._decisions.ended(row, "", False)
        elif outcome.temporary and row.tries < self._politeness.retries:
            again = row._replace(tries=row.tries + 1)
            pause = retry_pause(self._politeness, row.tries)
            self._put_off(now + pause, again, outcome.asked.trail, RETRY)
        else:
            self._decisions.fail(row, outcome.failure)

    def put_back(self, outcome: PageFetched, row: UrlRow, trail: Trail, now: float) -> None:
        """Instead of `page_fetched`: the same URL goes back into the queue in another form."""
        self._counters.in_flight -= 1
        self._release(outcome, self.host(outcome.asked.row.host_key), False, now)
        obeys = self._politeness.obey_robots
        if obeys and not self.knows(row, now):
            self._put_off(now, row, trail, ROBOTS_UNKNOWN)  # it may be known on disk
            return
        self._counters.queued += 1
        host = self.host(row.host_key)
        host.pld = row.pld_key
        host.push(QueuedUrl(row, trail, host.find_origin(row.url.decode()) if obeys else None, None))
        self._roster.schedule(host)

    def _release(self, outcome: PageFetched | RobotsFetched, host: Host, trouble: bool, now: float) -> None:
        """The end of a request: the pauses of its host and its server begin."""
        assert host.server is not None
        host.server.cost = next_cost(host.server.cost, self._slots.end(host.key, now))
        host.answers += outcome.status > 0
        self._pauses.follow_budget(host, host.server, host.domain)
        self._pauses.answered(host, host.server, outcome, trouble, now)
        if self.wildcards is not None:
            self.wildcards.keep_free(host.key, host.next_time)
        if trouble and not outcome.status:
            host.address_until = -math.inf  # nobody is there: the name may have another address
        if self._shares_servers:
            rest = Rest(host.server.address, host.server.next_time - now)
            if self._shares_hosts:
                rest = Rest(rest.address, rest.seconds, host.key, host.next_time - now)
            self._rests.append(rest)
        self._roster.end(host)
        self._shed(host, now)
        self._roster.schedule(host)

    def denied(self, outcome: Denied, now: float) -> None:
        """Another process has the turn at a server, or a host: what was asked is asked again when that may be free."""
        asked = outcome.asked
        host = self.host(asked.host_key if isinstance(asked, FetchRobots) else asked.row.host_key)
        assert host.server is not None
        self._slots.end(host.key, now)
        if outcome.at_host:
            host.wait_until(now + outcome.wait)
        else:
            host.server.next_time = now + outcome.wait
        if isinstance(asked, FetchRobots):
            self._origins.put(host, (asked.origin, asked.url, asked.hops))
        else:
            self._counters.in_flight -= 1
            self._counters.queued += 1
            assert isinstance(host.flying, QueuedUrl)
            host.flying.behind = None
            host.push(host.flying)
        self._roster.end(host)
        self._shed(host, now)
        self._roster.schedule(host)

    def rests(self) -> list[Rest]:
        """The pauses of servers that have begun since the last call, for other processes to know."""
        rests, self._rests = self._rests, []
        return rests

    # ── a crawl that goes on ───────────────────────────────────────────────────────────────────

    def restart(self, now: float) -> None:
        """Everybody counts as contacted at this moment, whatever an earlier run did."""
        self._roster.restarted = now

    def restore(self, key: int, pace: HostPace, duplicates: int, domain: int = 0) -> None:
        """What an earlier run knew of a host: its troubles and the end of its pause; the key of its domain, if that is known."""
        host = self.host(key)
        host.pld = host.pld or domain
        host.trouble, host.crawl_delay, host.duplicates = pace.trouble, pace.crawl_delay, duplicates
        host.wait_until(pace.next_time)

    def withdraw(self, host: Host, rule: str) -> None:
        """Refuse the first URL that is queued for a host."""
        assert host.first is not None
        self._decisions.refuse(self._take_out(host, host.first), rule)

    # ── whose turn is far away ─────────────────────────────────────────────────────────────────

    def _turn(self, host: Host, now: float) -> float:
        """When a URL that is queued now would be fetched, as far as can be told."""
        start, delay = max(host.next_time, now), self._delay(host)
        server = host.server
        if server is None:
            return start + host.length * delay
        # Turns there go round by domain: a domain waits for its own hosts, each time behind one of each other domain.
        own, domains = server.due.get(host.pld), len(server.due)
        turns = domains + 1 if own is None else (len(own) + 1) * domains
        return max(
            start + host.length * delay,
            now + turns * max(self._pauses.server_delay(server), _SHORTEST_TURN),
        )

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
        entry: QueuedUrl | None = host.first
        host.first = host.last = None
        self._counters.queued -= host.length
        host.length = 0
        while entry is not None:
            self._put_off(self._assign_turn(host, now), entry.row, entry.trail, FAR_TURN)
            entry = entry.behind

    def _take_out(self, host: Host, entry: QueuedUrl) -> UrlRow:
        """The first URL of a host, which is neither queued nor asked for any more."""
        host.pop(entry)
        self._counters.queued -= 1
        return entry.row

    def validate(self) -> None:
        """Check the invariants: every host in the one place that its state says, every URL counted."""
        self._roster.validate()
        self._origins.validate()
        self._slots.validate()
        self._lookups.validate()
        assert sum(host.length for host in self._roster) == self._counters.queued
