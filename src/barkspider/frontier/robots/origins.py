"""Origins: which robots.txt are asked for, what they say, and what they refuse.

    ask, or the first URL of an origin ─► FetchRobots ─► answered ─ rules, or none ─► known, `learned` is told
                                              ▲              ├ a redirect: a task of the host it leads to
                                              └── a pause ───┘ no answer (RFC 9309, 2.3.1; see `rules`)

A robots.txt to fetch is a task of a host (`Host.robots`), at the same politeness as pages and before them: filled
here, emptied by `Ready`. Anybody can redirect to anybody: what is to be fetched for the sake of an origin of another
domain is an errand (`Host.errands`), which comes after pages, if the robots.txt of its own origin allows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from barkspider.core.errors import StorageError
from barkspider.core.events import RobotsFetched
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.politeness.hosts import Asked, Host, Origin, State
from barkspider.frontier.politeness.roster import Roster
from barkspider.frontier.robots.rules import (
    MOST_REDIRECTS,
    ROBOTS,
    TOO_MANY,
    learn,
    miss,
    refusal_of,
    rules_of,
)
from barkspider.url import ALLOW_ALL, DISALLOW_ALL, Domains, KeyMaker, RobotsRules, origin, split

# Told when the robots.txt of an origin of a host is known or given up (0), or else after which pause it is asked again;
# NOBODY_ASKED if its host is left alone.
Learned: TypeAlias = Callable[[Host, Origin, float], None]

LEFT_ALONE = (
    10.0  # seconds for which a robots.txt that nobody may ask for counts as known: for those who wait for it
)
NOBODY_ASKED = -1.0  # instead of a pause
_REMEMBERED_DOMAINS = 1_000  # a host is asked about once
_MOST_ERRANDS = (
    8  # that wait at a host; for further origins the file counts as unavailable, and is asked for later
)


class Origins:
    """See the module. Part of `Ready`, in its thread; what is known of an origin is kept with its host.

    Invariant: `asking` origins are being asked for, or about to be. `learned` may be set by whoever wants to be told.
    """

    def __init__(self, settings: Settings, roster: Roster) -> None:
        self._politeness, self._agent = settings.politeness, settings.agent.name
        self._keys, self._roster = KeyMaker(settings.seed), roster
        self._domains = Domains(settings.url.private_suffixes, remembered=_REMEMBERED_DOMAINS)
        self.learned: Learned = lambda *_: None
        self.asking = 0

    def ask(self, name: str, now: float) -> None:
        """Fetch the robots.txt of an origin, unless it is known or under way."""
        host = self._host_of(name)
        known = host.origin(name)
        if known is None:  # nothing of it will be fetched
            known = Origin(name)
            learn(known, DISALLOW_ALL, None, self._politeness, now)
        if known.until > now:
            self.learned(host, known, 0.0)
        elif not known.asking:
            host.robots += (self.want(known),)
            self._go_on(host)

    def add(self, asked: Asked) -> None:
        """Let a robots.txt be fetched from the host that its URL names."""
        name, url, _ = asked
        self._set_asking(self._find(name)[1], True)
        host = self._host_of(url)
        self.put(host, asked)
        self._go_on(host)

    def _go_on(self, host: Host) -> None:
        """A host has one thing more to ask."""
        if host.state is State.BLOCKED:  # what it waits for may wait for this
            host.state = State.IDLE
        self._roster.schedule(host)

    def put(self, host: Host, asked: Asked) -> None:
        """A task of a host: before its pages, or after them if it is for the sake of another domain."""
        if self._host_of(asked[0]).pld == host.pld:
            host.robots += (asked,)
        else:
            host.errands += (asked,)

    def errand(self, host: Host, now: float) -> Asked | None:
        """The next errand of a host, or its own robots.txt if that is to be asked first whether it may be run.

        Its own robots.txt needs no permission (RFC 9309, 2.2.2). What that forbids is not fetched for others either:
        to them it is unavailable. Where it is elsewhere itself it is not waited for, or two would wait for each other.
        """
        while host.errands:
            asked, *rest = host.errands
            name, url, _ = asked
            place = origin(url)
            if url != f"{place}/robots.txt":
                known = host.origin(place)
                if known is not None and known.until <= now and not known.asking:
                    return self.want(known)
                refusal = self.refusal(host, known, url, now)
                if refusal:
                    host.errands = tuple(rest)
                    self._learn(name, ALLOW_ALL if refusal == ROBOTS else None, None, now)
                    continue
            host.errands = tuple(rest)
            return asked
        return None

    def want(self, known: Origin) -> Asked:
        """The task of fetching an origin's robots.txt, which its own host will be given."""
        self._set_asking(known, True)
        return _first_ask(known.name)

    def permit(
        self, name: str, until: float, learned: float, refusal: str, rules: bytes, host_key: int = 0
    ) -> None:
        """What is known elsewhere of an origin's robots.txt, its rules encoded; what is known here counts if it
        is newer. The key of its host is given by whoever knows it, and puts URLs of it."""
        host = self._roster.host(host_key) if host_key else self._host_of(name)
        known = host.origin(name)
        if known is not None and until > known.until:
            try:
                known.rules = RobotsRules.decode(rules)
            except ValueError as error:
                raise StorageError(f"the rules of {name} that were kept are damaged") from error
            known.refusal, known.learned, known.until = refusal, learned, until
            self._heed_delay(host, -math.inf)

    def knows(self, row: UrlRow, now: float) -> bool:
        """Whether the rules for a URL are here and in force."""
        host = self._roster.find(row.host_key)
        known = None if host is None else host.find_origin(row.url.decode())
        return known is not None and known.until > now

    def refusal(self, host: Host, known: Origin | None, url: str, now: float) -> str:
        """Why a URL of an origin, None for one too many, must not be fetched, as far as is known; "" when it may."""
        if known is None:
            return TOO_MANY
        if known.until <= now:
            return ""
        most = self._politeness.max_crawl_delay
        return refusal_of(url, known.rules, known.refusal, host.crawl_delay, most)

    def answered(self, outcome: RobotsFetched, now: float) -> None:
        """A robots.txt arrived, sent us elsewhere, or failed (RFC 9309, 2.3.1)."""
        asked = outcome.asked
        if outcome.redirect and asked.hops < MOST_REDIRECTS:
            if len(self._host_of(outcome.redirect).errands) < _MOST_ERRANDS:
                self.add((asked.origin, outcome.redirect, asked.hops + 1))
            else:
                self._learn(asked.origin, None, None, now)
        else:
            own = 0 if asked.hops else asked.host_key
            rules = rules_of(outcome.status, outcome.body, self._agent, asked.origin)
            self._learn(asked.origin, rules, outcome.max_age, now, own)

    def unanswerable(self, host: Host, now: float) -> None:
        """A host has no address. Nobody can be asked, or a redirect led nowhere: as if there were no robots.txt."""
        led_here = (*host.robots, *host.errands)
        host.robots = host.errands = ()
        for name, _, _ in led_here:
            self._learn(name, ALLOW_ALL, None, now)

    def leave(self, host: Host, now: float) -> None:
        """A host is left alone: nobody is asked, and a redirect to it led nowhere. Who waits for its own robots.txt is to come
        up and be judged."""
        own, errands, host.robots, host.errands = host.robots, host.errands, (), ()
        for name, _, _ in errands:
            self._learn(name, ALLOW_ALL, None, now)
        for name, _, _ in own:
            if self._host_of(name) is not host:
                self._learn(name, ALLOW_ALL, None, now)
                continue
            known = host.origin(name)
            if known is not None:
                self._set_asking(known, False)
                known.rules, known.refusal, known.learned, known.until = (
                    DISALLOW_ALL,
                    ROBOTS,
                    -math.inf,
                    now + LEFT_ALONE,
                )
                self.learned(host, known, NOBODY_ASKED)
                known.until = now

    def validate(self) -> None:
        """Check the invariant."""
        assert self.asking == sum(known.asking for host in self._roster for known in host.origins)

    def _host_of(self, url: str) -> Host:
        """The host of a URL or an origin, which has its domain."""
        name = split(url if url.count("/") > 2 else url + "/").host
        host = self._roster.host(self._keys.of(name))
        if not host.pld:
            host.pld = self._keys.of(self._domains.pay_level(name))
        return host

    def _find(self, name: str, host_key: int = 0) -> tuple[Host, Origin]:
        """An origin that was asked for, and its host."""
        host = self._roster.find(host_key)
        if host is None or not host.pld:
            host = self._host_of(name)
        known = host.origin(name)
        if known is None:  # an earlier run asked for it, when the host had fewer origins
            known = Origin(name)
            host.origins += (known,)
        return host, known

    def _learn(
        self, name: str, rules: RobotsRules | None, max_age: float | None, now: float, host_key: int = 0
    ) -> None:
        """Keep an origin's rules and go on with its host; None means that they could not be had."""
        host, known = self._find(name, host_key)
        self._set_asking(known, False)
        pause = 0.0
        if rules is None:
            pause = miss(known, self._politeness, now, host.next_time)
            host.wait_until(now + pause)
            if pause:
                host.robots += (self.want(known),)
        else:
            learn(known, rules, max_age, self._politeness, now)
            # The pause that began with this answer did not know of the Crawl-delay in it.
            self._heed_delay(host, now)
        self._go_on(host)
        self.learned(host, known, pause)

    def _set_asking(self, known: Origin, asking: bool) -> None:
        self.asking += asking - known.asking
        known.asking = asking

    def _heed_delay(self, host: Host, contacted: float) -> None:
        host.crawl_delay = max(each.rules.crawl_delay or 0.0 for each in host.origins)
        if host.crawl_delay <= self._politeness.max_crawl_delay:
            host.wait_until(max(contacted, self._roster.restarted) + host.crawl_delay)


def _first_ask(name: str) -> Asked:
    return name, f"{name}/robots.txt", 0
