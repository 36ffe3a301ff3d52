"""The Sydney strategy (Castillo, Nelli, Panconesi: Crawling the Web with Limited Memory).

P, the primary queue, is `Ready`: URLs by host, fetched as politeness allows. Of a page's new links at
most t, chosen at random, go into P; the others are written to S, the secondary queue on disk, as one
entry a page. When P is empty, S gives back at most t links of each stored page, one page after the
other, until P has something. A link in S is not marked as seen, so most have been found elsewhere
by the time their page comes up, and S stays small (section 3.1).

Three things that figure 2 does not say: with at most t new links all are taken; when P has URLs but no
host that may be contacted now, S gives links to hosts that are free; with a queue limit (section 3.3)
links beyond it are dropped, counted, and not marked as seen, so they may come back later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

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
from barkspider.frontier.sampling import sample
from barkspider.storage.env import Env
from barkspider.storage.keyset import KeySet
from barkspider.storage.queue import DiskQueue
from barkspider.url import Keys

_SLICE = 64  # pages of S looked at in one step: about a millisecond
_LOOK_AGAIN = 0.25  # seconds until S is searched again for free hosts when a slice of it held none
_LATE = 5.0  # seconds after which a page under way no longer counts as coming
_REMEMBERED_HOSTS = 100_000  # robots.txt and address of hosts with nothing queued: about 200 MB at most


class Sydney:
    """A `Frontier`; see the module. One thread; its only I/O is the file of S.

    P is filled by links and refills and emptied by `step`; S is filled by pages with more than t new
    links and emptied by refills.
    """

    def __init__(self, settings: Settings, env: Env, folder: Path) -> None:
        self._settings = settings
        self._t, self._limit = settings.sydney.sample, settings.sydney.queue_limit
        self.counters = Counters()
        self._primary = Ready(
            settings.politeness, settings.agent.name, Keys(settings.seed), self.counters, _REMEMBERED_HOSTS
        )
        self._secondary = DiskQueue(env, folder, "secondary")
        self._seen = KeySet()
        self._contents = KeySet()
        self._random = np.array([settings.seed], np.uint64)
        self._given: dict[int, float] = {}  # pages being fetched and since when, for limits.pages
        self._held = False
        self._search_at = -math.inf  # when S may be searched for free hosts
        self._largest = 0
        self._revisits = 0

    def step(self, now: float, outcomes: Sequence[Outcome]) -> tuple[list[Instruction], float]:
        """Apply the outcomes in order, then give out what may be done at this moment."""
        for outcome in outcomes:
            if isinstance(outcome, PageFetched):
                self._page(outcome, now)
            elif isinstance(outcome, RobotsFetched):
                self._primary.robots(outcome, now)
            elif isinstance(outcome, HostResolved):
                self._primary.resolved(outcome, now)
            else:
                assert isinstance(outcome, Seeds)
                self._admit(outcome.batch)
        room = self._room(now)
        if room == 0:
            return [], now + _LATE if self._given else math.inf
        unread = self._refill()
        instructions = self._primary.take(now, room)
        wake = self._primary.next_time()
        if not instructions and self._searches(now):
            self._search(now)
            instructions = self._primary.take(now, room)
            if not instructions:
                self._search_at = now + _LOOK_AGAIN
            wake = min(self._primary.next_time(), self._search_at)
        if self._settings.limits.pages:
            self._given |= {item.row.key: now for item in instructions if isinstance(item, FetchPage)}
            if self._given:
                wake = min(wake, now + _LATE)
        # What was taken may all have been refused by robots.txt: then no outcome comes that would call us.
        drained = not self.counters.queued and not self._primary.under_way and len(self._secondary) > 0
        return instructions, now if unread or drained else wake

    def hold(self) -> None:
        """Give out nothing more."""
        self._held = True

    def finished(self) -> bool:
        """Whether nothing is under way and nothing is left, or nothing more may be given out."""
        if self._enough():
            return True
        if self._primary.under_way:
            return False
        return self._held or not (self.counters.queued or len(self._secondary))

    def gauges(self) -> dict[str, int]:
        """Sizes of P, S and the set of seen URLs, and the largest that P and S together ever were."""
        return {
            "primary": self.counters.queued,
            "secondary": len(self._secondary),
            "largest": self._largest,
            "seen": len(self._seen),
            "hosts": len(self._primary),
            "revisits": self._revisits,
        }

    def validate(self) -> None:
        """Check the invariants."""
        assert self.counters.balanced(), self.counters
        self._primary.validate()
        self._secondary.validate()

    def close(self) -> None:
        """Remove the file of S."""
        self._secondary.close()

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
        room = self._settings.fetch.in_flight - self._primary.under_way
        if self._settings.limits.pages:
            coming = sum(now - since < _LATE for since in self._given.values())
            room = min(room, self._settings.limits.pages - self.counters.pages - coming)
        return max(room, 0)

    # ── outcomes ───────────────────────────────────────────────────────────────────────────────

    def _page(self, outcome: PageFetched, now: float) -> None:
        row = outcome.asked.row
        self._given.pop(row.key, None)
        if outcome.stale:
            self._primary.put_back(outcome, row, outcome.asked.trail, now)
            return
        if outcome.redirect is not None:
            outcome = self._redirected(outcome, outcome.redirect, now)
            if outcome.redirect is not None:
                return
        self._primary.page_fetched(outcome, now)
        if outcome.failure:
            return
        host = self._primary.host(row.host_key)
        if self._settings.limits.site_duplicates and outcome.digest:
            host.duplicates += not self._contents.add(np.array([outcome.digest], np.uint64))[0]
        if outcome.links is not None:
            self._links(row, host, outcome.links)

    def _redirected(self, outcome: PageFetched, redirect: Redirect, now: float) -> PageFetched:
        """Take a redirect as a link; one back into its own trail is fetched once more as written.

        Returns the outcome unchanged when it was dealt with, or as a failure to be counted.
        """
        source, target, behind = outcome.asked.row, redirect.row, outcome.asked.trail
        if target.hops > self._settings.limits.redirects:
            return replace(outcome, redirect=None, failure="too_many_redirects")
        trail = (*behind, source.key)
        if target.key in trail:
            if source.flags & Flag.EXACT:
                return replace(outcome, redirect=None, failure="redirect_loop")
            exact = target._replace(url=redirect.exact, flags=target.flags | Flag.EXACT)
            self._primary.put_back(outcome, exact, trail, now)
            return outcome
        self._primary.page_fetched(outcome, now)
        self._admit(UrlBatch.from_rows([target]), trail)
        return outcome

    def _links(self, page: UrlRow, host: Host, links: UrlBatch) -> None:
        """Lines 7 to 12 of figure 2."""
        new = links.where(self._seen.missing(links.key))
        duplicates = self._settings.limits.site_duplicates
        if duplicates and host.duplicates >= duplicates:
            inside = new.host_key == page.host_key
            self._refuse(new.where(inside), "site_duplicates")
            new = new.where(~inside)
        chosen = sample(len(new), self._t, self._random)
        rest = new.where(~chosen)
        if len(rest):
            if self._queued() >= self._limit:
                self._drop(len(rest))
            elif self._settings.sydney.refetch:
                again = page._replace(flags=page.flags | Flag.REVISIT)
                self._secondary.append(UrlBatch.from_rows([again]).encode())
            else:
                self._secondary.append(rest.encode())
        self._admit(new.where(chosen))

    # ── the queues ─────────────────────────────────────────────────────────────────────────────

    def _queued(self) -> int:
        return self.counters.queued + len(self._secondary)

    def _admit(self, batch: UrlBatch, trail: Trail = ()) -> None:
        """Put new URLs into P and mark them as seen, as far as there is room."""
        room = max(self._limit - self._queued(), 0)
        if len(batch) > room:
            batch = batch.where(self._seen.missing(batch.key))
            self._drop(max(len(batch) - room, 0))
            batch = batch.take(np.arange(min(room, len(batch))))
        new = batch.where(self._seen.add(batch.key))
        most = self._settings.limits.site_urls
        for row in new.rows():
            self.counters.discovered += 1
            if most and self._primary.host(row.host_key).taken >= most:
                self.counters.refused["site_limit"] = self.counters.refused.get("site_limit", 0) + 1
            else:
                self._primary.put(row, trail)
        self._largest = max(self._largest, self._queued())

    def _refuse(self, batch: UrlBatch, reason: str) -> None:
        count = int(self._seen.add(batch.key).sum())
        if count:
            self.counters.discovered += count
            self.counters.refused[reason] = self.counters.refused.get(reason, 0) + count

    def _drop(self, count: int) -> None:
        self.counters.discovered += count
        self.counters.dropped += count

    def _refill(self) -> bool:
        """Move links from S to P while P is empty, at most t of each page (lines 13 to 16 of figure 2).

        Returns whether P is still empty and S is not: then there is more to do at once.
        """
        for _ in range(min(_SLICE, len(self._secondary))):
            if self.counters.queued:
                return False
            stored = UrlBatch.decode(self._secondary.pop())
            if self._settings.sydney.refetch:
                self._revisit(stored.rows()[0])
            else:
                new = stored.where(self._seen.missing(stored.key))
                self._take_from(new, np.arange(len(new)))
        return not self.counters.queued and len(self._secondary) > 0

    def _searches(self, now: float) -> bool:
        return len(self._secondary) > 0 and now >= self._search_at and not self._settings.sydney.refetch

    def _search(self, now: float) -> None:
        """P has URLs but none whose host may be contacted: move links to hosts that are free."""
        for _ in range(min(_SLICE, len(self._secondary))):
            block = self._secondary.pop()
            stored = UrlBatch.decode(block)
            free = {key for key in set(stored.host_key.tolist()) if self._primary.unoccupied(key, now)}
            if not free:
                self._secondary.append(block)
                continue
            new = stored.where(self._seen.missing(stored.key))
            self._take_from(new, np.flatnonzero([key in free for key in new.host_key.tolist()]))

    def _take_from(self, stored: UrlBatch, candidates: npt.NDArray[np.intp]) -> None:
        """At most t of the candidates go into P, all the other links back into S."""
        chosen = candidates[sample(len(candidates), self._t, self._random)]
        rest = np.setdiff1d(np.arange(len(stored)), chosen)
        if len(rest):
            self._secondary.append(stored.take(rest).encode())
        self._admit(stored.take(chosen))

    def _revisit(self, page: UrlRow) -> None:
        """Queue a page again for the links that were left: it counts as one more discovery."""
        self._revisits += 1
        self.counters.discovered += 1
        self._primary.put(page)
