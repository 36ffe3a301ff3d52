"""Origins: which robots.txt are asked for, what they say, and what they refuse.

    ask, or the first URL of an origin ─► FetchRobots ─► answered ─ rules, or none ─► known, `learned` is told
                                              ▲              ├ a redirect: a task of the host it leads to
                                              └── a pause ───┘ no answer (RFC 9309, 2.3.1; see `rules`)

A robots.txt to fetch is a task of a host (`Host.robots`), at the same politeness as pages and before them: filled
here, emptied by `Ready`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from barkspider.core.errors import StorageError
from barkspider.core.events import RobotsFetched
from barkspider.core.records import UrlRow
from barkspider.core.settings import Politeness
from barkspider.frontier.politeness.hosts import Asked, Host, Origin, State
from barkspider.frontier.politeness.roster import Roster
from barkspider.frontier.robots.rules import MOST_REDIRECTS, learn, miss, rules_of
from barkspider.url import ALLOW_ALL, Keys, RobotsRules, origin, split

# Told when the robots.txt of an origin is known or given up (0), or else after which pause it is asked for again.
Learned: TypeAlias = Callable[[Origin, float], None]


class Origins:
    """See the module. Part of `Ready`, in its thread; what is known of an origin is kept with its host.

    Invariant: `asking` origins are being asked for, or about to be. `learned` may be set by whoever wants to be told.
    """

    def __init__(self, politeness: Politeness, agent: str, keys: Keys, roster: Roster) -> None:
        self._politeness, self._agent, self._keys, self._roster = politeness, agent, keys, roster
        self.learned: Learned = lambda *_: None
        self.asking = 0

    def ask(self, name: str, now: float) -> None:
        """Fetch the robots.txt of an origin, unless it is known or under way."""
        known = self._find(name)[1]
        if known.until > now:
            self.learned(known, 0.0)
        elif not known.asking:
            self.add(_first_ask(name))

    def add(self, asked: Asked) -> None:
        """Let a robots.txt be fetched from the host that its URL names."""
        name, url, _ = asked
        self._set_asking(self._find(name)[1], True)
        host = self._roster.host(self._keys.of(split(url).host))
        host.robots += (asked,)
        self._roster.schedule(host)

    def want(self, known: Origin) -> Asked:
        """The task of fetching an origin's robots.txt, which its own host will be given."""
        self._set_asking(known, True)
        return _first_ask(known.name)

    def permit(self, name: str, until: float, learned: float, refusal: str, rules: bytes) -> None:
        """What is known elsewhere of an origin's robots.txt, its rules encoded; what is known here counts if it
        is newer."""
        host, known = self._find(name)
        if until > known.until:
            try:
                known.rules = RobotsRules.decode(rules)
            except ValueError as error:
                raise StorageError(f"the rules of {name} that were kept are damaged") from error
            known.refusal, known.learned, known.until = refusal, learned, until
            self._heed_delay(host, -math.inf)

    def knows(self, name: str, host_key: int, now: float) -> bool:
        """Whether the rules of an origin are here and in force."""
        host = self._roster.find(host_key)
        return host is not None and _in_force(host, name, now) is not None

    def refusal(self, host: Host, row: UrlRow, now: float) -> str:
        """Why robots.txt forbids a URL, as far as it is known; "" when it does not."""
        if not self._politeness.obey_robots:
            return ""
        url = row.url.decode()
        known = _in_force(host, origin(url), now)
        if known is None:
            return ""
        if host.crawl_delay > self._politeness.max_crawl_delay:
            return "crawl_delay"
        target = url[url.index("/", 8) :].partition("#")[0]  # as `split`, at a fifth of the cost
        return "" if known.rules.allows(target) else known.refusal

    def answered(self, outcome: RobotsFetched, now: float) -> None:
        """A robots.txt arrived, sent us elsewhere, or failed (RFC 9309, 2.3.1)."""
        asked = outcome.asked
        if outcome.redirect and asked.hops < MOST_REDIRECTS:
            self.add((asked.origin, outcome.redirect, asked.hops + 1))
        else:
            self._learn(asked.origin, rules_of(outcome, self._agent), outcome.max_age, now)

    def unanswerable(self, host: Host, now: float) -> None:
        """A host has no address. Nobody can be asked, or a redirect led nowhere: as if there were no robots.txt."""
        led_here, host.robots = host.robots, ()
        for name, _, _ in led_here:
            self._learn(name, ALLOW_ALL, None, now)

    def validate(self) -> None:
        """Check the invariant."""
        assert self.asking == sum(known.asking for host in self._roster for known in host.origins)

    def _find(self, name: str) -> tuple[Host, Origin]:
        host = self._roster.host(self._keys.of(split(name + "/").host))
        return host, host.origin(name)

    def _learn(self, name: str, rules: RobotsRules | None, max_age: float | None, now: float) -> None:
        """Keep an origin's rules and go on with its host; None means that they could not be had."""
        host, known = self._find(name)
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
        if host.state is State.BLOCKED:
            host.state = State.IDLE
        self._roster.schedule(host)
        self.learned(known, pause)

    def _set_asking(self, known: Origin, asking: bool) -> None:
        self.asking += asking - known.asking
        known.asking = asking

    def _heed_delay(self, host: Host, contacted: float) -> None:
        host.crawl_delay = max(each.rules.crawl_delay or 0.0 for each in host.origins)
        if host.crawl_delay <= self._politeness.max_crawl_delay:
            host.wait_until(max(contacted, self._roster.restarted) + host.crawl_delay)


def _first_ask(name: str) -> Asked:
    return name, f"{name}/robots.txt", 0


def _in_force(host: Host, name: str, now: float) -> Origin | None:
    for known in host.origins:
        if known.name == name and known.until > now:
            return known
    return None
