"""Site by site: the hybrid frontier of Viúva Negra (Gomes, Silva: The Viúva Negra crawler, sections 3 and 4).

    CheckedOut ─► a Local Frontier each ─ in order, a few at a time ─► gate, Ready ─► fetch
                    ▲ links within the site                                            │
                    ├──────────────────────────────────────────────────────────────────┤
                    └ links to other sites ─► kept ─ all URLs have ended ─► CheckIn ◄──┘

What sites there are, and who crawls which, is known to the Global Frontier, a database. This source asks for some (`CheckOut`)
and gives each back (`CheckIn`) with the URLs of other sites that were found there. Both are answered by outcomes that the
journal keeps: so after a crash the same sites are here as before, at the same place, and what was checked in is checked in
once more, which the number of the visit makes harmless. A site that somebody else has got meanwhile is dropped (`LeaseLost`).

URLs that no page of a site has linked to, such as seeds, go to the Global Frontier at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.errors import JobError
from barkspider.core.events import (
    CheckedIn,
    CheckedOut,
    CheckIn,
    CheckOut,
    Instruction,
    LeaseLost,
    SiteLeased,
    Structure,
)
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.decisions import (
    LEASE_LOST,
    RECOVERING,
    SITE_DUPLICATES,
    SITE_ENDED,
    SITE_LIMIT,
    SITE_MEMORY,
)
from barkspider.frontier.gate import Gate, Saved
from barkspider.frontier.local import LocalFrontier
from barkspider.frontier.lots import Lot
from barkspider.frontier.memory import load_origins, save_origins
from barkspider.frontier.source import Found
from barkspider.model.budgets import Distribution

_SHARE = (
    4  # of `memory`: all sites that are here; new ones are asked for while they have less than half of that
)
_MOST_OUT = 16  # sites asked for at once: several processes that begin together get as many each
_POLL = 1.0  # seconds until sites are asked for again when all that are left are with others
_QUEUED = 2  # URLs of a site in `Ready`: the next one, and one behind it
_OPEN = (
    64  # URLs of a site without their last answer: no more are handed on while so many are to be tried again
)
_PARTS = 7  # arrays of a Local Frontier


class SiteBySite:
    """A `Source`; see the module. One thread, no files."""

    def __init__(self, settings: Settings, gate: Gate) -> None:
        self._gate, self._ready, self._counters = gate, gate.ready, gate.counters
        self._most, self._limit = settings.site.at_once, settings.limits.site_urls or math.inf
        self._share = settings.memory // _SHARE
        self._sites: dict[int, LocalFrontier] = {}
        self._size = 0  # bytes of all of them
        # To be looked at: something has ended there, or has come up. A dictionary keeps the order.
        self._due: dict[int, None] = {}
        self._given = NO_URLS  # of no page: to be checked in, and being so
        self._giving = False
        # URLs of sites that are not here any more, which are under way or in Q_W.
        self._orphans = Counter[int]()
        self._asked, self._ask_at, self._exhausted = False, -math.inf, False
        # Whether others may still bring sites when there are none any more: the first ones, or those that a user adds.
        self._shared = settings.parallel.processes > 1
        self._checked_in = self._lost = self._late = 0
        gate.decisions.ended = self._ended

    @property
    def structures(self) -> Sequence[Structure]:
        """It has no files."""
        return ()

    @property
    def held(self) -> dict[int, int]:
        """The sites that are here, with the numbers of their visits."""
        return {key: site.fence for key, site in self._sites.items()}

    # ── what comes in ──────────────────────────────────────────────────────────────────────────

    def tell(self, outcome: CheckedOut | CheckedIn | LeaseLost, now: float) -> None:
        """What has become of sites; before anything else that comes in with it."""
        if isinstance(outcome, CheckedOut):
            self._asked, self._ask_at = False, now
            self._exhausted = not outcome.left and not outcome.sites
            if not outcome.sites:
                self._ask_at = now + _POLL
            for leased in outcome.sites:
                self._begin(leased)
        elif isinstance(outcome, LeaseLost):
            for key, fence in outcome.sites:
                if self._has(key, fence):
                    self._lose(key, now)
        else:
            self._exhausted, self._ask_at = False, now
            if not outcome.key:
                self._giving, self._given = False, self._given.slice(outcome.fence, len(self._given))
            elif self._has(outcome.key, outcome.fence):
                self._forget(outcome.key, SITE_ENDED, now)
                self._checked_in += outcome.counts
                self._lost += not outcome.counts

    def take(self, found: Sequence[Found], now: float) -> None:  # noqa: ARG002
        """Links within a site go to its Local Frontier, others are kept for its check-in."""
        for each in found:
            if each.page is None:
                self._given = UrlBatch.join([self._given, each.links]) if len(each.links) else self._given
                continue
            site = self._sites.get(each.page.host_key)
            if site is None:  # whoever has it now finds them too
                self._late += 1
                continue
            before = site.size
            if len(each.barred):
                self._refuse(site, site.new(each.barred), SITE_DUPLICATES)
            inside = each.links.host_key == site.key
            site.find(each.links.where(~inside))
            self._size += site.size - before
            self._admit(site, each.links.where(inside))

    def give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        """At most `room` requests, and what is to be said to the Global Frontier."""
        back = self._gate.come_back(now)
        self._counters.deferred -= len(back)
        for row in back.rows():
            self._come_back(row, now)
        errands = self._serve_due(now)
        instructions: list[Instruction] = list(self._ready.take(now, room))
        if len(self._given) and not self._giving:
            self._giving = True
            errands.append(CheckIn(0, len(self._given), self._given))
        if not self._asked and self._wants_more() and now >= self._ask_at:
            self._asked = True
            errands.append(CheckOut(min(self._most - len(self._sites), _MOST_OUT)))
        wake = min(self._ready.next_time(), self._gate.next_time())
        if not self._asked and self._wants_more():
            wake = min(wake, self._ask_at)
        return instructions + errands, now if self._due else wake

    def _wants_more(self) -> bool:
        has_room = len(self._sites) < self._most and (2 * self._size < self._share or not self._sites)
        return has_room and (self._shared or not self._exhausted)

    def _begin(self, leased: SiteLeased) -> None:
        if leased.key in self._sites:  # an earlier visit that nobody has said is lost
            self._lose(leased.key, self._gate.now)
        site = self._sites[leased.key] = LocalFrontier(leased)
        self._size += site.size
        self._admit(site, leased.links)

    def _admit(self, site: LocalFrontier, links: UrlBatch) -> None:
        """Queue URLs of a site that are new, as far as it may have so many."""
        before, known = site.size, site.seen
        new = site.new(links)
        room = max(self._limit - known, 0)
        kept = new if len(new) <= room else new.slice(0, int(room))
        if len(new) > len(kept):
            self._refuse(site, new.slice(len(kept), len(new)), SITE_LIMIT)
        if self._size >= self._share:
            self._refuse(site, kept, SITE_MEMORY)
        elif len(kept):
            self._counters.discovered += len(kept)
            self._counters.deferred += len(kept)
            site.add(kept)
        self._size += site.size - before
        self._due[site.key] = None

    def _refuse(self, site: LocalFrontier, batch: UrlBatch, rule: str) -> None:
        if len(batch):
            self._counters.discovered += len(batch)
            site.refuse(len(batch))
            self._gate.decisions.refuse_all(batch, rule)

    # ── what goes out ──────────────────────────────────────────────────────────────────────────

    def _serve_due(self, now: float) -> list[Instruction]:
        """Hand on URLs of sites to which something has happened; the check-ins of those that are done."""
        errands: list[Instruction] = []
        due, self._due = self._due, {}
        for key in due:
            site = self._sites.get(key)
            if site is None:
                continue
            before = site.size
            self._hand_on(site, now)
            self._size += site.size - before
            if site.is_done and not site.asked:
                site.asked = True
                errands.append(site.check_in())
        return errands

    def _hand_on(self, site: LocalFrontier, now: float) -> None:
        while len(site.open) < _OPEN:
            host = self._ready.find(site.key)
            if host is not None and host.length >= _QUEUED:
                return
            row = site.next()
            if row is None:
                return
            self._counters.deferred -= 1
            self._gate.put(row, now)

    def _come_back(self, row: UrlRow, now: float) -> None:
        """A URL comes back from Q_W, counted as waiting nowhere."""
        rule = SITE_ENDED
        if self._orphans[row.key]:
            self._drop_orphan(row.key)
            rule = LEASE_LOST
        elif (site := self._sites.get(row.host_key)) is not None:
            if not self._gate.has_answer(row):  # else it is dropped now
                site.reopen(row)
            self._gate.put(row, now)
            return
        if not self._gate.drop_done(row):
            self._gate.decisions.refuse(row, rule)

    def _ended(self, row: UrlRow, rule: str, refused: bool) -> None:
        """See `Decisions.ended`."""
        if rule in (LEASE_LOST, SITE_ENDED):
            return
        site = self._sites.get(row.host_key)
        if self._orphans[row.key]:
            self._drop_orphan(row.key)
        elif site is not None:
            site.ended(row, rule, refused)
            self._due[site.key] = None

    def _drop_orphan(self, key: int) -> None:
        self._orphans[key] -= 1
        if not self._orphans[key]:
            del self._orphans[key]

    def _lose(self, key: int, now: float) -> None:
        """Somebody else has a site, or will: what waits is refused here, what is under way is the last that we ask for."""
        site, host = self._sites[key], self._ready.find(key)
        while host is not None and host.first is not None:
            site.open.discard(host.first.row.key)
            self._ready.withdraw(host, LEASE_LOST)
        self._orphans.update(site.open)
        self._forget(key, LEASE_LOST, now)
        self._lost += 1

    def _forget(self, key: int, rule: str, now: float) -> None:
        """A site is not here any more. One that was checked in has nothing in its queue, but when that is applied again:
        then it has what was refused since the checkpoint, and what was answered, which is dropped when it comes up."""
        site = self._sites.pop(key)
        self._size -= site.size
        left = site.left()
        self._counters.deferred -= len(left)
        for row in left:
            if self._gate.has_answer(row):
                self._gate.put_off(now, row, (), RECOVERING)
            else:
                self._gate.decisions.refuse(row, rule)

    def _has(self, key: int, fence: int) -> bool:
        site = self._sites.get(key)
        return site is not None and site.fence == fence

    # ── checkpoints ────────────────────────────────────────────────────────────────────────────

    def save(self) -> Saved:
        """See `Source`."""
        saved = [site.save() for site in self._sites.values()]
        head = {
            "sites": [about for about, _ in saved],
            "orphans": dict(self._orphans),
            "counts": [self._checked_in, self._lost, self._late],
        }
        parts = {
            f"site {place} {part}": data
            for place, (_, parts) in enumerate(saved)
            for part, data in enumerate(parts)
        }
        given, origins = self._given, save_origins(self._ready)
        return lambda: (head, {**parts, "given": given.encode(), "origins": origins()})

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """See `Source`."""
        for place, about in enumerate(head["sites"]):
            parts = tuple(arrays[f"site {place} {part}"] for part in range(_PARTS))
            site = LocalFrontier.load(about, parts)
            self._sites[site.key] = site
            self._size += site.size
            self._due[site.key] = None
        self._orphans.update({int(key): count for key, count in head["orphans"].items()})
        self._checked_in, self._lost, self._late = head["counts"]
        self._given = UrlBatch.decode(arrays["given"])
        load_origins(self._ready, arrays["origins"])

    def complete(self, now: float) -> None:
        """See `Source`."""

    def lots(self) -> Iterator[Lot]:
        """See `Source`: such a crawl is not divided, its processes take sites as they can."""
        raise JobError("a crawl site by site is not divided anew")

    def adopt(self, lot: Lot) -> None:  # noqa: ARG002
        """See `lots`."""
        raise JobError("a crawl site by site is not divided anew")

    # ── what others ask ────────────────────────────────────────────────────────────────────────

    def waiting(self) -> bool:
        """Whether there are sites here, or any that may still be had."""
        return bool(self._sites or len(self._given) or not self._exhausted)

    def ranks(self) -> Distribution | None:
        """It goes by none."""
        return None

    def news(self, to: int) -> bytes:  # noqa: ARG002
        """It has none."""
        return b""

    def hear(self, sender: int, news: bytes) -> None:
        """It has no use for any."""

    def learn_ranks(self, elsewhere: Distribution) -> None:
        """It goes by none."""

    def gauges(self) -> dict[str, int]:
        """URLs that wait, and sites: here, given back, lost to others; and answers that came too late for that."""
        return {
            "primary": self._counters.queued + self._counters.deferred,
            "secondary": 0,
            "largest": 0,
            "seen": self._counters.discovered,
            "sites": len(self._sites),
            "sites_checked_in": self._checked_in,
            "sites_lost": self._lost,
            "late_answers": self._late,
        }

    def queues(self) -> dict[str, int]:
        """URLs in the queues of all sites."""
        return {"sites": sum(map(len, self._sites.values()))}

    def traffic(self) -> dict[str, dict[str, Any]]:
        """It moves nothing on disk."""
        return {}

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """It has none."""
        return []

    def validate(self) -> None:
        """Check the invariants."""
        assert self._size == sum(site.size for site in self._sites.values())
        assert sum(map(len, self._sites.values())) <= self._counters.deferred
        assert all(count > 0 for count in self._orphans.values())
        assert all(site.key == key for key, site in self._sites.items())

    def close(self) -> None:
        """See `Source`."""
