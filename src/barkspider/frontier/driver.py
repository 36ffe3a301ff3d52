"""The driver: a frontier around any source of URLs. It applies outcomes, follows redirects and keeps to limits.

    step ─► outcomes ─► Ready: counted, pauses begin, retries are put off
               └─ links, seeds, targets of redirects ─► source.take ─► source.give ─► instructions

A checkpoint keeps what is in RAM as one file (`memory`), beside the files of the source and of Q_W. After a crash a
driver recalls the last one, and is given the outcomes since then once more (`replay`); see `gate` for their URLs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.events import (
    CheckedIn,
    CheckedOut,
    Decision,
    Denied,
    DomainProbed,
    FetchPage,
    Granted,
    HostResolved,
    Instruction,
    LeaseLost,
    Outcome,
    PageFetched,
    Prepared,
    Ranked,
    Received,
    Redirect,
    RobotsFetched,
    Ruled,
    Scored,
    Sealed,
    Seeds,
    Structure,
)
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.decisions import RECOVERING
from barkspider.frontier.exchange import Exchange
from barkspider.frontier.gate import Gate
from barkspider.frontier.looking import about_host
from barkspider.frontier.memory import Memory
from barkspider.frontier.mirrors import MIRROR, Mirrors, Stopped
from barkspider.frontier.rulings import ScopeJudge
from barkspider.frontier.site_by_site import SiteBySite
from barkspider.frontier.source import Found, Source
from barkspider.frontier.traps import as_seen
from barkspider.model.budgets import Distribution
from barkspider.storage.keyset import RecentKeys
from barkspider.url.lists import Rule

# Pages whose content is remembered, to find others of their site with the same: 10 to 50 MB. A site that shows the same
# page again and again does so within its next few thousand pages, and after a restart soon enough.
_CONTENTS = 1_000_000
_ASTRAY = 1_000  # URLs of others taken at once when our own run out, at most
_OF_HOSTS = b"\xff\xff\xff\xff"  # begins news that are not of domains alone: no number of these
_LATE = 5.0  # seconds after which a page under way no longer counts as coming


class Driver:
    """A `core.events.Frontier`; see the module. One thread; it owns its gate and its source."""

    name = "frontier"

    def __init__(
        self,
        settings: Settings,
        gate: Gate,
        source: Source,
        memory: Memory,
        exchange: Exchange | None = None,
    ) -> None:
        """`exchange` is for a process that divides a crawl with others."""
        self._limits, self._in_flight = settings.limits, settings.fetch.in_flight
        self._gate, self._source, self._memory = gate, source, memory
        self._most_pages: float = settings.limits.pages or math.inf
        self.counters, self.exchange = gate.counters, exchange
        self._ready, self._mirrors = gate.ready, gate.mirrors
        self._stopped: list[Stopped] = []  # mirrors of which nobody has been told
        self._contents = RecentKeys(_CONTENTS)  # what sites have shown, if duplicates are limited
        self._given: dict[int, float] = {}  # pages being fetched and since when, if pages are limited
        self._pages: list[tuple[UrlRow, UrlBatch, int]] = []  # read in this step
        self._held = self._paused = False
        self._sorting = None if exchange is None else exchange.sorting
        self._census = None if self._sorting is None else self._sorting.census
        self._strays = None if self._sorting is None else self._sorting.strays
        self._assigning = None if self._sorting is None else self._sorting.assigning
        self._astray, self._discovered = (
            1,
            -1,
        )  # URLs of others that were taken last, and what was known before

    def step(self, now: float, outcomes: Sequence[Outcome]) -> tuple[list[Instruction], float]:
        """Apply the outcomes in order, then give out what may be done at this moment."""
        self._gate.now = self._gate.decisions.now = now
        self._gate.begun = True
        found: list[Found] = []
        for outcome in outcomes:
            if isinstance(outcome, PageFetched):
                found += self._page(outcome, now)
            elif isinstance(outcome, RobotsFetched):
                self._ready.robots(outcome, now)
                found += self._named(outcome)
            elif isinstance(outcome, HostResolved) and not outcome.asked.assigns:
                self._ready.resolved(outcome, now)
            elif isinstance(outcome, DomainProbed):
                self._ready.probed(outcome)
            elif isinstance(outcome, Denied):
                self._denied(outcome, now)
            else:
                found += self._event(outcome, now)
        self._hand_over(found)
        room = self._room(now)
        if room == 0:
            instructions, wake = list[Instruction](), now + _LATE if self._given else math.inf
        else:
            instructions, wake = self._source.give(now, room)
            self._gate.write_off()
        if self._stray(now, room - len(instructions)):
            wake = now
        if self.exchange is not None:
            instructions[:0] = (
                self._ready.rests()
            )  # first: a server without a pause may be asked again at once
            if not self._held:
                due = self.exchange.due(self.counters.pages, self.is_idle(), now)
                instructions += (replace(seal, news=self._news(seal.to)) for seal in due)
                if self._assigning is not None and not self._paused:
                    instructions += self._assigning.lookups()
                wake = min(wake, self.exchange.next_time())
        if self._most_pages < math.inf:
            self._given |= {item.row.key: now for item in instructions if isinstance(item, FetchPage)}
            if self._given:
                wake = min(wake, now + _LATE)
        return instructions, wake

    def _stray(self, now: float, room: int) -> bool:
        """Take URLs of other processes while nothing of our own waits; whether there were any."""
        counters = self.counters
        if not self._strays or room <= 0 or counters.queued or counters.deferred or self._source.waiting():
            return False
        # Most of what waits was found elsewhere meanwhile: the longer nothing new comes of it, the more is looked at.
        news = counters.discovered > self._discovered
        self._astray = room if news else min(2 * self._astray, _ASTRAY)
        self._discovered = counters.discovered
        self._source.take([Found(None, self._strays.take(self._astray))], now)
        return True

    def replay(self, time: float, outcomes: Sequence[Outcome]) -> None:
        """Apply outcomes of an earlier run; their URLs are dropped when they come up."""
        time = min(time, self._gate.now)  # a clock may have been set back meanwhile
        self._gate.decisions.now = time
        found: list[Found] = []
        for outcome in outcomes:
            if isinstance(outcome, PageFetched):
                self._gate.add_done(outcome.asked.row)
                found += self._page(outcome, time, again=True)
            elif isinstance(outcome, RobotsFetched):
                self._ready.replay_robots(outcome, time)
                found += self._named(outcome)
            elif isinstance(outcome, DomainProbed):
                self._ready.probed(outcome)
            elif not isinstance(outcome, Denied):
                found += self._event(outcome, time)
        self._hand_over(found)

    def hold(self) -> None:
        """Give out nothing more."""
        self._held = True

    def pause(self, on: bool) -> None:
        """Give out nothing for a while."""
        self._paused = on

    def finished(self) -> bool:
        """Whether nothing is under way and nothing is left, or nothing more may be given out."""
        if self._enough():
            return True
        return not self._ready.under_way and (self._held or not self.waits)

    @property
    def waits(self) -> bool:
        """Whether any URL waits to be fetched, or to be known as new: one that may give out nothing looks at none."""
        counters = self.counters
        return bool(
            counters.queued
            or counters.deferred
            or self._source.waiting()
            or any(held.left for held in self._gate.held)
            or (self._strays and len(self._strays))
            or (self._assigning and len(self._assigning))
        )

    @property
    def granted(self) -> int | None:
        """How many pages it may fetch in all; None for any number."""
        return None if self._most_pages == math.inf else int(self._most_pages)

    @property
    def least_grant(self) -> int:
        """The pages that it has, and those that may come from what is under way."""
        return self.counters.pages + self.counters.in_flight

    def limit_pages(self, pages: int) -> None:
        """Fetch no more pages than these in all; 0 means any number."""
        self._most_pages = pages or math.inf

    def follow_lists(self, block: Mapping[Rule, str], allow: Mapping[Rule, str]) -> None:
        """Go by what the user's files say from now on, each rule with the file that it counts for."""
        self._gate.rulings.follow(block, allow)
        self._gate.judge_anew()

    def judge_scope_by(self, judge: ScopeJudge) -> None:
        """Let somebody say what is in scope, if that is not what it was when the job was begun."""
        self._gate.rulings.judge_scope_by(judge)

    def about_rules(self) -> dict[str, Any]:
        """The rules that people gave one by one, and how many URLs each rule has blocked."""
        rulings = self._gate.rulings
        return {"given": rulings.given(), "blocked": dict(rulings.counts)}

    def about_host(self, name: str, now: float) -> dict[str, Any]:
        """What is known of a host in RAM, for people; see `looking`."""
        return about_host(self._ready.find(self._gate.key_of(name)), now)

    def ranks(self) -> Distribution | None:
        """The in-degrees of the domains that this process counts; None where nobody goes by them."""
        return self._source.ranks()

    def is_idle(self) -> bool:
        """Whether nothing is left to do but what others may send."""
        return not self._held and self.finished()

    def gauges(self) -> dict[str, int]:
        """Those of its source, and how many hosts are known."""
        others = {} if self.exchange is None else self.exchange.gauges()
        return {**self._source.gauges(), "hosts": len(self._ready), **others}

    def queues(self) -> dict[str, int]:
        """Those of its source, Q_W, and what is in RAM."""
        return {**self._source.queues(), "Q_W": len(self._gate.delays), "ready": self.counters.queued}

    def traffic(self) -> dict[str, dict[str, Any]]:
        """That of its source."""
        return self._source.traffic()

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """Those of its source, mirrors, and wildcards of DNS."""
        stopped, self._stopped = self._stopped, []
        mirrors = [(MIRROR, {"replica": found.replica, "original": found.original}) for found in stopped]
        wildcards = [] if self._ready.wildcards is None else self._ready.wildcards.notices()
        return [*self._source.notices(), *mirrors, *wildcards]

    def trap_news(self) -> list[tuple[str, dict[str, Any]]]:
        """What became of traps since the last call: one was found (trap), released or pardoned."""
        news = [] if self._gate.traps is None else self._gate.traps.notices()
        return [(event, as_seen(asdict(trap))) for event, trap in news]

    def about_traps(self) -> list[dict[str, Any]]:
        """The traps that are known, as people see them."""
        traps = [] if self._gate.traps is None else self._gate.traps.traps.values()
        return [as_seen(asdict(trap)) for trap in traps]

    def traced(self) -> list[Decision]:
        """Those of its gate."""
        return self._gate.decisions.traced()

    def validate(self) -> None:
        """Check the invariants, those of all parts included."""
        self._gate.validate()
        self._source.validate()
        if self._strays is not None:
            self._strays.validate()
        if self._assigning is not None:
            self._assigning.validate()

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        self._source.close()
        self._gate.close()
        if self._strays is not None:
            self._strays.close()
        if self._assigning is not None:
            self._assigning.close()

    @property
    def leases(self) -> Mapping[int, int] | None:
        """The sites that it has, with the numbers of their visits; None where it does not go site by site."""
        return self._source.held if isinstance(self._source, SiteBySite) else None

    @property
    def holdings(self) -> tuple[Gate, Source]:
        """All that it holds, for whoever hands it on (`dividing`)."""
        return self._gate, self._source

    # ── what a checkpoint keeps ────────────────────────────────────────────────────────────────

    def structures(self) -> Sequence[Structure]:
        """Its own, that of Q_W, and those of its source."""
        others = (self.exchange, self._census, self._strays, self._assigning)
        there = (each for each in others if each is not None)
        return [self, self._gate.delays, *self._gate.held, *self._source.structures, *there]

    def prepare(self) -> Prepared:
        """See `core.events.Structure`: all that is in RAM."""
        self._gate.write_off()
        saved, granted, rulings = self._source.save(), self.granted, self._gate.rulings.save()
        traps, evidence = ({}, {}) if self._gate.traps is None else self._gate.traps.save()
        mirrors = {} if self._mirrors is None else self._mirrors.save()
        wildcards = {} if self._ready.wildcards is None else self._ready.wildcards.save()
        by_address = dict(self._ready.by_address)

        def whole() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
            head, arrays = saved()
            more = {"granted": granted, "rulings": rulings, "traps": traps}
            more |= {"wildcards": wildcards, "by address": by_address}
            return {**head, **more}, {**arrays, **evidence, **mirrors}

        return self._memory.prepare(self._gate, whole)

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self._memory.committed()

    def recall(self) -> None:
        """Take back what the last checkpoint has, before anything else is done; the gate knows the time."""
        remembered = self._memory.read()
        remembered.restore(self._gate)
        self._source.load(remembered.head, remembered.arrays)
        self._gate.rulings.load(remembered.head.get("rulings", {}))
        if self._gate.traps is not None:
            self._gate.traps.load(remembered.head.get("traps", {}), remembered.arrays)
        self._gate.judge_anew()
        if self._mirrors is not None:
            self._mirrors.load(remembered.arrays, self._gate.now)
        self._ready.by_address.update(remembered.head.get("by address", {}))
        if self._ready.wildcards is not None:
            self._ready.wildcards.load(remembered.head.get("wildcards", {}))
        if self.exchange is not None:
            granted = remembered.head["granted"]
            self._most_pages = math.inf if granted is None else int(granted)

    # ── limits ─────────────────────────────────────────────────────────────────────────────────

    def _enough(self) -> bool:
        """Whether the limit of pages is reached; what is still under way is not needed then."""
        return self._most_pages <= self.counters.pages

    def _room(self, now: float) -> int:
        """How many more instructions may be under way.

        No more pages are asked for than are wanted, but for those that are late: one slow server must not
        hold up the end.
        """
        if self._held or self._paused or self._enough() or (self.exchange and self.exchange.is_full):
            return 0
        room = self._in_flight - self._ready.under_way
        if self._most_pages < math.inf:
            wanted = int(self._most_pages) - self.counters.pages
            if wanted < room + len(self._given):  # else it does not matter who is late
                room = min(room, wanted - sum(now - since < _LATE for since in self._given.values()))
        return max(room, 0)

    # ── outcomes ───────────────────────────────────────────────────────────────────────────────

    def _hand_over(self, found: list[Found]) -> None:
        if self._pages:
            self._gate.learn(self._pages)
            self._pages = []
        if found and self._sorting is not None:
            found = self._sorting.split(found, self._gate.now)
            if self._assigning is not None:
                found = [self._put_again(each) for each in found]
        if found and self._gate.later is not None:
            self._gate.later.learn(UrlBatch.join([each.links for each in found]))
        if found:
            self._source.take(found, self._gate.now)
        self._gate.write_off()

    def _event(
        self,
        outcome: Seeds
        | Ruled
        | Sealed
        | Received
        | Granted
        | Ranked
        | Scored
        | HostResolved
        | CheckedOut
        | CheckedIn
        | LeaseLost,
        now: float,
    ) -> list[Found]:
        """What nobody on the web has answered."""
        if isinstance(outcome, Seeds):
            return self._seeds(outcome.batch)
        if isinstance(outcome, Ruled):
            self._gate.rule(outcome.changes)
            return []
        if isinstance(outcome, CheckedOut | CheckedIn | LeaseLost):
            assert isinstance(self._source, SiteBySite)
            self._source.tell(outcome, now)
            return []
        if isinstance(outcome, Granted):
            self._most_pages = math.inf if outcome.pages is None else outcome.pages
            return []
        if isinstance(outcome, Ranked):
            self._source.learn_ranks(Distribution(outcome.degrees, outcome.counts))
            return []
        assert self.exchange is not None
        assert self._sorting is not None
        if isinstance(outcome, Received):
            found = self.exchange.receive(outcome)
            for each in found:
                self._hear(outcome.sender, each.news, now)
            return found
        if isinstance(outcome, HostResolved):
            return self._sorting.assign(outcome)
        if isinstance(outcome, Scored):
            return self._sorting.spread(outcome.asked, now)
        self.exchange.seal(outcome, self.counters.pages)
        return []

    def _news(self, to: int) -> bytes:
        """What another process is to hear with its next batch: of domains, and of what hosts have shown."""
        news = self._source.news(to)
        more = b"" if self._mirrors is None else self._mirrors.news(to)
        return _OF_HOSTS + len(news).to_bytes(4, "little") + news + more if more else news

    def _hear(self, sender: int, news: bytes, now: float) -> None:
        if news.startswith(_OF_HOSTS):
            start = len(_OF_HOSTS) + 4
            end = start + int.from_bytes(news[start - 4 : start], "little")
            if self._mirrors is not None:
                self._mirrors.hear(news[end:], now)
                self._tell_of_mirrors(self._mirrors)
            news = news[start:end]
        self._source.hear(sender, news)

    @staticmethod
    def _named(outcome: RobotsFetched) -> list[Found]:
        """The sitemaps that a robots.txt names. No page links to them."""
        return [Found(None, outcome.links)] if outcome.links else []

    def _denied(self, outcome: Denied, now: float) -> None:
        if isinstance(outcome.asked, FetchPage):
            self._given.pop(outcome.asked.row.key, None)
        self._ready.denied(outcome, now)

    def _seeds(self, batch: UrlBatch) -> list[Found]:
        """URLs that the user gave, to every process; those to be fetched again pass by what was seen."""
        if self._sorting is not None:
            batch = self._sorting.own(batch)
        found = Found(None, batch)
        return [found if self._assigning is not None else self._put_again(found)]

    def _put_again(self, found: Found) -> Found:
        """Without what is to be fetched again, which passes by what was seen; where hosts are assigned, when it is where it
        belongs."""
        again = (found.links.flags & Flag.AGAIN) != 0
        if found.page is not None or not again.any():
            return found
        self._gate.put_again(found.links.where(again), self._gate.now)
        return found._replace(links=found.links.where(~again), counts=None)

    def _page(self, outcome: PageFetched, now: float, again: bool = False) -> list[Found]:
        """Count how the fetch of a page ended; what it brought in, if anything.

        `again` says that it is replayed: then nothing is under way that would end here.
        """
        row = outcome.asked.row
        self._given.pop(row.key, None)
        if outcome.stale:
            self._ready.put_back(outcome, row, outcome.asked.trail, now)
            return []
        if self._mirrors is not None:
            self._look_for_mirrors(outcome, now)
        if outcome.redirect is not None:
            return [self._redirected(outcome, outcome.redirect, now, again)]
        self._end(outcome, now, again)
        if outcome.failure or (outcome.status >= 300 and outcome.status != 304):
            return []  # it failed, or redirects out of scope or nowhere
        if self._census is not None and not row.flags & Flag.AGAIN:
            self._census.fetched.add_one(row.key)
        links = NO_URLS if outcome.links is None else outcome.links
        if outcome.gist and not row.flags & Flag.AGAIN:
            self._pages.append((row, links, outcome.gist))
        return [self._followed(row, links, outcome.digest)]

    def _look_for_mirrors(self, outcome: PageFetched, now: float) -> None:
        """What a page says of whether its host is a mirror, or of who is one of it."""
        assert self._mirrors is not None
        if not outcome.temporary and outcome.status != 304:
            self._mirrors.fetched(outcome.asked.row, outcome.digest, now)
            self._tell_of_mirrors(self._mirrors)

    def _tell_of_mirrors(self, mirrors: Mirrors) -> None:
        for found in mirrors.told():
            self._gate.decisions.stop(self._gate.key_of(found.url), found.url, MIRROR, found.original)
            self._stopped.append(found)

    def _followed(self, page: UrlRow, links: UrlBatch, digest: int) -> Found:
        """The links of a page, without those within a site that has shown too many duplicates."""
        most = self._limits.site_duplicates
        if not most:
            return Found(page, links)
        host = self._ready.host(page.host_key)
        if digest:  # of this site: a mirror shows what another one has, and is no trap
            host.duplicates += not self._contents.add(digest ^ page.host_key)
        if host.duplicates < most:
            return Found(page, links)
        inside = links.host_key == page.host_key
        return Found(page, links.where(~inside), barred=links.where(inside))

    def _redirected(self, outcome: PageFetched, redirect: Redirect, now: float, again: bool) -> Found:
        """Take a redirect as a link; one back into its own trail is fetched once more as written."""
        source, target = outcome.asked.row, redirect.row
        trail = (*outcome.asked.trail, source.key)
        # What is on another site is for whoever has that: one that has been there is not asked again.
        is_back = target.key in trail and (self.leases is None or target.host_key == source.host_key)
        links, failure = NO_URLS, ""
        if target.hops > self._limits.redirects:
            failure = "too_many_redirects"
        elif is_back and source.flags & Flag.EXACT:
            failure = "redirect_loop"
        if failure:
            self._end(replace(outcome, redirect=None, failure=failure), now, again)
        elif not is_back:
            self._end(outcome, now, again)
            self._gate.trails.put(target.key, trail)
            links = UrlBatch.from_rows([target])
        else:
            exact = target._replace(url=redirect.exact, flags=target.flags | Flag.EXACT)
            if again:
                self.counters.ahead += 1
                self._gate.put_off(now, exact, trail, RECOVERING)
            else:
                self._ready.put_back(outcome, exact, trail, now)
        return Found(source, links, target=target, cookies=outcome.cookies)

    def _end(self, outcome: PageFetched, now: float, again: bool) -> None:
        if again:
            self._ready.replay_page(outcome, now)
        else:
            self._ready.page_fetched(outcome, now)
