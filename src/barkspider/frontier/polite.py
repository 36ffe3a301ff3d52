"""What every frontier of a live crawl has in common: outcomes, redirects and limits, around `Ready`.

Where URLs come from when `Ready` wants more, and where new links go, is what tells frontiers apart.

A checkpoint keeps what is in RAM as one file (`memory`), beside the files of the queues. After a crash a frontier
is made from the last checkpoint and given the outcomes since then once more (`replay`). Their URLs are still where
the checkpoint has them, in some queue or not even found: they are kept as *done*, and when one comes up, it is dropped.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from barkspider.core.batch import UrlBatch
from barkspider.core.events import (
    Counters,
    FetchPage,
    HostResolved,
    Instruction,
    Outcome,
    PageFetched,
    Redirect,
    RobotsFetched,
    Seeds,
    Structure,
    Trail,
)
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.memory import Memory, Trails
from barkspider.frontier.politeness.delays import Delays
from barkspider.frontier.politeness.hosts import Host
from barkspider.frontier.ready import Ready
from barkspider.frontier.robots.rules import Origin
from barkspider.storage.env import Env
from barkspider.storage.keyset import KeySet
from barkspider.url import Keys

_LATE = 5.0  # seconds after which a page under way no longer counts as coming
_REMEMBERED_HOSTS = 100_000  # robots.txt and address of hosts with nothing queued: about 80 MB
_BACK_AT_ONCE = 2_000  # URLs that come back from Q_W in one step: some ten milliseconds
_FORMS = int(Flag.EXACT | Flag.REVISIT | Flag.AGAIN)  # of one URL, each with an outcome of its own
_NOTHING = UrlBatch.from_rows([])

States: TypeAlias = Callable[[str], dict[str, Any] | None]


class PoliteFrontier(ABC):
    """A `Frontier` without its queues. One thread.

    Q_W holds URLs that are to come back at a time: those that failed for now, those whose hosts are parked or busy
    for long. It is filled by `Ready` and emptied by `step`; none of them passes the set of seen URLs again.
    """

    name = "frontier"

    def __init__(
        self, settings: Settings, env: Env, folder: Path, state: States, resumed: float | None
    ) -> None:
        """`state` gives what the last checkpoint has of a structure; `resumed` is the time, if there was one or
        there are outcomes to be replayed."""
        self._settings = settings
        self.counters = Counters()
        self._ready = Ready(
            settings.politeness,
            settings.agent.name,
            Keys(settings.seed),
            self.counters,
            _REMEMBERED_HOSTS,
            self._put_off,
            self._learned,
        )
        self._delays = Delays(env, folder, state=state("queues/Q_W"))
        self._off: list[tuple[float, UrlRow]] = []  # on its way to Q_W: rows are written in batches
        self._trails = Trails()
        self._contents = KeySet()
        self._done: Counter[tuple[int, int, int]] = Counter()  # see `_form`
        self._of_hosts: Counter[int] = Counter()  # URLs taken, by host, if that is limited
        self._of_domains: Counter[int] = Counter()
        self._given: dict[int, float] = {}  # pages being fetched and since when, for limits.pages
        self._held = self._paused = False
        self._begun = False  # whether all outcomes of earlier runs have been replayed
        self._now = 0.0 if resumed is None else resumed
        self._memory = Memory(env, folder, self.name, state(self.name))
        if resumed is not None:
            self._ready.restart(resumed)
            if state(self.name) is not None:
                self._recall(resumed)

    def step(self, now: float, outcomes: Sequence[Outcome]) -> tuple[list[Instruction], float]:
        """Apply the outcomes in order, then give out what may be done at this moment."""
        self._now, self._begun = now, True
        for outcome in outcomes:
            if isinstance(outcome, PageFetched):
                self._page(outcome, now)
            elif isinstance(outcome, RobotsFetched):
                self._ready.robots(outcome, now)
            elif isinstance(outcome, HostResolved):
                self._ready.resolved(outcome, now)
            else:
                assert isinstance(outcome, Seeds)
                self._take_seeds(outcome.batch, now)
        self._write_off()
        room = self._room(now)
        if room == 0:
            return [], now + _LATE if self._given else math.inf
        self._come_back(now)
        instructions, wake = self._give(now, room)
        self._write_off()
        if self._has_space():
            wake = min(wake, self._delays.next_time())
        if self._settings.limits.pages:
            self._given |= {item.row.key: now for item in instructions if isinstance(item, FetchPage)}
            if self._given:
                wake = min(wake, now + _LATE)
        return instructions, wake

    def replay(self, time: float, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            self._replay(time, outcome)

    def _replay(self, time: float, outcome: Outcome) -> None:
        time = min(time, self._now)  # a clock may have been set back meanwhile
        if isinstance(outcome, Seeds):
            self._take_seeds(outcome.batch, time)
        elif isinstance(outcome, RobotsFetched):
            self._ready.replay_robots(outcome, time)
        elif isinstance(outcome, PageFetched):
            self._done[_form(outcome.asked.row)] += 1
            self._page(outcome, time, again=True)
        self._write_off()

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
        return not self._ready.under_way and (self._held or not self._waiting())

    def drums(self) -> dict[str, dict[str, int]]:
        """What its DRUMs counted; there are none here."""
        return {}

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """What the log should say; nothing here."""
        return []

    # ── what a checkpoint keeps ────────────────────────────────────────────────────────────────

    def structures(self) -> Sequence[Structure]:
        """Its own, that of Q_W, and those of its stages."""
        return [self, self._delays]

    def prepare(self) -> dict[str, Any]:
        """See `core.events.Structure`: all that is in RAM."""
        self._write_off()
        head, arrays = self._keep()
        return self._memory.write(
            self._ready,
            self._now,
            {"counters": asdict(self.counters), **head},
            arrays,
            trails=self._trails,
            counts={"done": self._done, "hosts": self._of_hosts, "domains": self._of_domains},
            contents=self._contents.keys(),
        )

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self._memory.committed()

    def _keep(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a frontier of this kind has besides: something for JSON, and arrays."""
        return {}, {}

    def _recall(self, now: float) -> None:
        kept = self._memory.read()
        for name, value in kept.head["counters"].items():
            setattr(self.counters, name, value)
        # What was queued or under way comes back from Q_W, as what it is: not to be found in RAM.
        self.counters.deferred += self.counters.queued + self.counters.in_flight
        self.counters.queued = self.counters.in_flight = 0
        self._delays.put(np.full(len(kept.rows), now), kept.rows)
        self._trails.load(kept.trails)
        self._contents.add(kept.contents)
        self._done = kept.counts["done"]
        self._of_hosts, self._of_domains = kept.counts["hosts"], kept.counts["domains"]
        kept.restore(self._ready, now)
        self._recalled(kept.head, kept.arrays)

    @abstractmethod
    def _recalled(self, head: dict[str, Any], arrays: dict[str, bytes]) -> None:
        """Take what `_keep` gave."""

    # ── what tells frontiers apart ─────────────────────────────────────────────────────────────

    @abstractmethod
    def _seeds(self, batch: UrlBatch) -> None:
        """Take URLs that the user gave."""

    @abstractmethod
    def _links(self, page: UrlRow, host: Host, links: UrlBatch) -> None:
        """Take the links of a page."""

    @abstractmethod
    def _lead(self, target: UrlRow) -> None:
        """Take the target of a redirect, which is not in its own trail."""

    @abstractmethod
    def _give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        """At most `room` instructions, and when to be called again."""

    @abstractmethod
    def _back(self, batch: UrlBatch, now: float) -> None:
        """Take URLs whose time in Q_W is over."""

    @abstractmethod
    def _waiting(self) -> bool:
        """Whether there are URLs anywhere that are not under way."""

    def _has_space(self) -> bool:
        """Whether URLs may come back from Q_W."""
        return True

    def _learned(self, known: Origin, pause: float) -> None:  # noqa: B027
        """An origin's robots.txt is known or given up, or, with a pause, asked for again after it."""

    def _answered(self, page: UrlRow, target: UrlRow | None = None) -> None:  # noqa: B027
        """A page is there, or redirects to a target in scope."""

    # ── outcomes ───────────────────────────────────────────────────────────────────────────────

    def _enough(self) -> bool:
        """Whether the limit of pages is reached; what is still under way is not needed then."""
        return 0 < self._settings.limits.pages <= self.counters.pages

    def _room(self, now: float) -> int:
        """How many more instructions may be under way.

        No more pages are asked for than are wanted, but for those that are late: one slow server must not
        hold up the end.
        """
        if self._held or self._paused or self._enough():
            return 0
        room = self._settings.fetch.in_flight - self._ready.under_way
        if self._settings.limits.pages:
            coming = sum(now - since < _LATE for since in self._given.values())
            room = min(room, self._settings.limits.pages - self.counters.pages - coming)
        return max(room, 0)

    def _page(self, outcome: PageFetched, now: float, again: bool = False) -> None:
        """`again` says that it is replayed: then nothing is under way that would end here."""
        row = outcome.asked.row
        self._given.pop(row.key, None)
        if outcome.stale:
            self._ready.put_back(outcome, row, outcome.asked.trail, now)
            return
        if outcome.redirect is not None:
            self._answered(row, outcome.redirect.row)
            outcome = self._redirected(outcome, outcome.redirect, now, again)
            if outcome.redirect is not None:
                return
        self._end(outcome, now, again)
        if outcome.failure:
            return
        if outcome.status < 300 or outcome.status == 304:  # others lead out of scope, or nowhere
            self._answered(row)
        host = self._ready.host(row.host_key)
        if self._settings.limits.site_duplicates and outcome.digest:
            host.duplicates += not self._contents.add(np.array([outcome.digest], np.uint64))[0]
        if outcome.links is not None:
            self._links(row, host, outcome.links)

    def _redirected(self, outcome: PageFetched, redirect: Redirect, now: float, again: bool) -> PageFetched:
        """Take a redirect as a link; one back into its own trail is fetched once more as written.

        Returns the outcome unchanged when it was dealt with, or as a failure to be counted.
        """
        source, target = outcome.asked.row, redirect.row
        if target.hops > self._settings.limits.redirects:
            return replace(outcome, redirect=None, failure="too_many_redirects")
        trail = (*outcome.asked.trail, source.key)
        if target.key in trail:
            if source.flags & Flag.EXACT:
                return replace(outcome, redirect=None, failure="redirect_loop")
            target = target._replace(url=redirect.exact, flags=target.flags | Flag.EXACT)
            if again:
                self.counters.ahead += 1
                self._put_off(now, target, trail)
            else:
                self._ready.put_back(outcome, target, trail, now)
            return outcome
        self._end(outcome, now, again)
        self._trails.put(target.key, trail)
        self._lead(target)
        return outcome

    def _end(self, outcome: PageFetched, now: float, again: bool) -> None:
        if again:
            self._ready.replay_page(outcome, now)
        else:
            self._ready.page_fetched(outcome, now)

    def _admits(self, row: UrlRow) -> bool:
        """Whether a URL that comes up for the first time is within the share of its site and its domain."""
        limits = self._settings.limits
        for most, counts, key, reason in (
            (limits.site_urls, self._of_hosts, row.host_key, "site_limit"),
            (limits.domain_urls, self._of_domains, row.pld_key, "domain_limit"),
        ):
            if most:
                if counts[key] >= most:
                    self.counters.refused[reason] = self.counters.refused.get(reason, 0) + 1
                    return False
                counts[key] += 1
        return True

    def _put(self, row: UrlRow, now: float, budget: float = 1.0) -> None:
        """Let a URL wait for its host, unless it is done. It is counted as discovered, and as waiting nowhere."""
        form = _form(row)
        if self._begun and self._done and self._done[form]:
            self._done[form] -= 1
            if not self._done[form]:
                del self._done[form]
            self.counters.ahead -= 1
            return  # its trail may be that of another form that waits
        trail = self._trails.pop(row.key)
        if self._begun:
            self._ready.put(row, now, trail, budget)
        else:  # it may turn out to be done
            self._put_off(now, row, trail)

    def _follows(self, page: UrlRow, host: Host, links: UrlBatch) -> tuple[UrlBatch, UrlBatch]:
        """The links to follow, and those within a site that has shown too many duplicates."""
        duplicates = self._settings.limits.site_duplicates
        if not duplicates or host.duplicates < duplicates:
            return links, _NOTHING
        inside = links.host_key == page.host_key
        return links.where(~inside), links.where(inside)

    def _take_seeds(self, batch: UrlBatch, now: float) -> None:
        """URLs that the user gave; those to be fetched again pass by what was seen, each as one more discovery."""
        again = (batch.flags & Flag.AGAIN) != 0
        self._seeds(batch.where(~again))
        if again.any():
            pages = batch.where(again)
            self.counters.discovered += len(pages)
            self.counters.deferred += len(pages)
            self._delays.put(np.full(len(pages), now), pages)

    # ── Q_W ────────────────────────────────────────────────────────────────────────────────────

    def _put_off(self, time: float, row: UrlRow, trail: Trail) -> None:
        self.counters.deferred += 1
        self._off.append((time, row))
        if trail:
            self._trails.put(row.key, trail)

    def _write_off(self) -> None:
        if self._off:
            times, rows = zip(*self._off, strict=True)
            self._off = []
            self._delays.put(np.array(times), UrlBatch.from_rows(rows))

    def _come_back(self, now: float) -> None:
        if self._has_space() and self._delays.next_time() <= now:
            batch = self._delays.take(now, _BACK_AT_ONCE)
            self._back(batch, now)


def _form(row: UrlRow) -> tuple[int, int, int]:
    """What tells the outcomes of one URL apart: it may be tried again, or be fetched in another form."""
    return row.key, row.tries, row.flags & _FORMS
