"""What every frontier of a live crawl has in common: outcomes, redirects and limits, around `Ready`.

Where URLs come from when `Ready` wants more, and where new links go, is what tells frontiers apart.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

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
    Trail,
)
from barkspider.core.records import Flag, UrlBatch, UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.hosts import Host
from barkspider.frontier.ready import Ready
from barkspider.storage.keyset import KeySet
from barkspider.url import Keys

_LATE = 5.0  # seconds after which a page under way no longer counts as coming
_REMEMBERED_HOSTS = 100_000  # robots.txt and address of hosts with nothing queued: about 80 MB


class PoliteFrontier(ABC):
    """A `Frontier` without its queues. One thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.counters = Counters()
        self._ready = Ready(
            settings.politeness, settings.agent.name, Keys(settings.seed), self.counters, _REMEMBERED_HOSTS
        )
        self._contents = KeySet()
        self._given: dict[int, float] = {}  # pages being fetched and since when, for limits.pages
        self._held = False

    def step(self, now: float, outcomes: Sequence[Outcome]) -> tuple[list[Instruction], float]:
        """Apply the outcomes in order, then give out what may be done at this moment."""
        for outcome in outcomes:
            if isinstance(outcome, PageFetched):
                self._page(outcome, now)
            elif isinstance(outcome, RobotsFetched):
                self._ready.robots(outcome, now)
            elif isinstance(outcome, HostResolved):
                self._ready.resolved(outcome, now)
            else:
                assert isinstance(outcome, Seeds)
                self._seeds(outcome.batch)
        room = self._room(now)
        if room == 0:
            return [], now + _LATE if self._given else math.inf
        instructions, wake = self._give(now, room)
        if self._settings.limits.pages:
            self._given |= {item.row.key: now for item in instructions if isinstance(item, FetchPage)}
            if self._given:
                wake = min(wake, now + _LATE)
        return instructions, wake

    def hold(self) -> None:
        """Give out nothing more."""
        self._held = True

    def finished(self) -> bool:
        """Whether nothing is under way and nothing is left, or nothing more may be given out."""
        if self._enough():
            return True
        return not self._ready.under_way and (self._held or not self._waiting())

    def drums(self) -> dict[str, dict[str, int]]:
        """What its DRUMs counted, by name."""
        return {}

    @abstractmethod
    def _seeds(self, batch: UrlBatch) -> None:
        """Take URLs that the user gave."""

    @abstractmethod
    def _links(self, page: UrlRow, host: Host, links: UrlBatch) -> None:
        """Take the links of a page."""

    @abstractmethod
    def _lead(self, target: UrlRow, trail: Trail) -> None:
        """Take the target of a redirect, which is not in its own trail."""

    @abstractmethod
    def _give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        """At most `room` instructions, and when to be called again."""

    @abstractmethod
    def _waiting(self) -> bool:
        """Whether there are URLs anywhere that are not under way."""

    def _enough(self) -> bool:
        """Whether the limit of pages is reached; what is still under way is not needed then."""
        return 0 < self._settings.limits.pages <= self.counters.pages

    def _room(self, now: float) -> int:
        """How many more instructions may be under way.

        No more pages are asked for than are wanted, but for those that are late: one slow server must not
        hold up the end.
        """
        if self._held or self._enough():
            return 0
        room = self._settings.fetch.in_flight - self._ready.under_way
        if self._settings.limits.pages:
            coming = sum(now - since < _LATE for since in self._given.values())
            room = min(room, self._settings.limits.pages - self.counters.pages - coming)
        return max(room, 0)

    def _page(self, outcome: PageFetched, now: float) -> None:
        row = outcome.asked.row
        self._given.pop(row.key, None)
        if outcome.stale:
            self._ready.put_back(outcome, row, outcome.asked.trail, now)
            return
        if outcome.redirect is not None:
            outcome = self._redirected(outcome, outcome.redirect, now)
            if outcome.redirect is not None:
                return
        self._ready.page_fetched(outcome, now)
        if outcome.failure:
            return
        host = self._ready.host(row.host_key)
        if self._settings.limits.site_duplicates and outcome.digest:
            host.duplicates += not self._contents.add(np.array([outcome.digest], np.uint64))[0]
        if outcome.links is not None:
            self._links(row, host, outcome.links)

    def _redirected(self, outcome: PageFetched, redirect: Redirect, now: float) -> PageFetched:
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
            exact = target._replace(url=redirect.exact, flags=target.flags | Flag.EXACT)
            self._ready.put_back(outcome, exact, trail, now)
            return outcome
        self._ready.page_fetched(outcome, now)
        self._lead(target, trail)
        return outcome

    def _put(self, row: UrlRow, trail: Trail = (), budget: float = 1.0) -> None:
        """Let a URL wait for its host, unless that has had its share."""
        most = self._settings.limits.site_urls
        if most and self._ready.host(row.host_key).taken >= most:
            self.counters.refused["site_limit"] = self.counters.refused.get("site_limit", 0) + 1
        else:
            self._ready.put(row, trail, budget)

    def _follows(self, page: UrlRow, host: Host, links: UrlBatch) -> tuple[UrlBatch, UrlBatch]:
        """The links to follow, and those within a site that has shown too many duplicates."""
        duplicates = self._settings.limits.site_duplicates
        if not duplicates or host.duplicates < duplicates:
            return links, links.take(np.empty(0, np.int64))
        inside = links.host_key == page.host_key
        return links.where(~inside), links.where(inside)
