"""A crawl that is divided anew: what the frontiers of its old parts hold is handed on to those of the new ones, by slots.

    each old one, complete ─► lots: what was seen, edges, in-degrees, queues ─ by slot ─► new ones
                          └► what is in RAM: done, trails, shares, hosts in trouble ─┘
    what was sent and not taken in ─────────────────────────────────────── take ─────► new ones

Everything goes by in batches, and lies on disk on both sides but for what a frontier has in RAM anyway. The files of the
old ones are only read. What was counted is spread evenly, since nobody knows which URLs it was about: the counters of each
new one add up, and those of all together are those of all old ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Counters, Trail
from barkspider.core.settings import Settings
from barkspider.frontier.batches import read_batch
from barkspider.frontier.census import Census
from barkspider.frontier.driver import Driver
from barkspider.frontier.gate import Form, Gate, form
from barkspider.frontier.lots import LEFT, WAITING, Lot
from barkspider.frontier.outbox import Cookies
from barkspider.frontier.ownership import divides_domains, shares_hosts, slot_of
from barkspider.frontier.politeness.delays import Delays
from barkspider.frontier.politeness.hosts import Host
from barkspider.frontier.politeness.pauses import HostPace
from barkspider.frontier.source import Found
from barkspider.frontier.trails import Trails
from barkspider.storage.env import Env
from barkspider.url.partition import KeyColumn, by_hash, slotted

_OUTCOMES = ("pages", "redirects", "dropped")
_REASONS = ("refused", "failed", "decided")  # counted by rule


class Dividing:
    """See the module. One thread. Use: `take` each old frontier, `finish`, then `deliver` what was under way between them.

    After an error the new frontiers are of no use.
    """

    def __init__(
        self, heirs: Sequence[Driver], settings: Settings, tell: Callable[[int], None] = lambda _: None
    ) -> None:
        """`heirs` are new frontiers that know the time, one for each process, with the settings of the new job; `tell` is given
        how many rows were moved."""
        self._slot_of = slot_of(settings.parallel)
        self._shares_hosts, self._divides_domains = (
            shares_hosts(settings.parallel),
            divides_domains(settings.parallel),
        )
        self._came_up = {name: Counter[int]() for name in ("hosts", "domains")}  # what shares have counted
        self._heirs = [heir.holdings for heir in heirs]
        self._frontiers, self._tell = heirs, tell
        self._totals, self._sent = Counters(), Counter[str]()
        self._moved = 0  # URLs that count as deferred

    def take(self, old: Driver) -> None:
        """Hand on all that a frontier holds, which is complete (`Source.complete`); it is of no use after that."""
        gate, source = old.holdings
        _add(self._totals, gate.counters)
        if old.exchange is not None:
            self._sent.update(old.exchange.totals())
            self._take_census(old.exchange.sorting.census)
            self._carry(old.exchange.sorting.carried)
        done, trails = Counter(gate.done), dict(Trails.pairs(gate.trails.save()))
        forms = np.array(sorted({key for key, _, _ in done}), np.uint64)
        tracked = np.array(sorted(trails), np.uint64)
        for lot in chain(source.lots(), _waiting(gate.delays)):
            self._tell(len(lot.keys))
            for part, some in self._split(lot):
                heir = self._heirs[part]
                if some.kind == WAITING:
                    heir[0].delays.put(some.values, some.urls)
                else:
                    heir[1].adopt(some)
                if len(some.urls):
                    if some.kind != LEFT:
                        heir[0].counters.deferred += len(some.urls)
                        self._moved += len(some.urls)
                    _follow(heir[0], some.urls, tracked, trails)
                    _mark_done(heir[0], some.urls, forms, done, self._slot_of)
        for found, count in done.items():  # of URLs that no queue has
            if count:
                self._heirs[self._owner(found[0])][0].done[found] += count
        for name, counts in self._came_up.items():
            for key, count in gate.shares.counters()[name].items():
                counts[key] = max(counts[key], count) if self._is_for_all(name) else counts[key] + count
        for new, _ in self._heirs:  # a server's domains may go to any of them: each counts as if it had all
            new.ready.by_address.update(gate.ready.by_address)
            if gate.ready.wildcards is not None and new.ready.wildcards is not None:
                new.ready.wildcards.load(gate.ready.wildcards.save())
            if gate.mirrors is not None and new.mirrors is not None:
                new.mirrors.adopt(gate.mirrors)
        for host in gate.ready.hosts():
            if host.next_time > gate.now or host.trouble or host.duplicates:
                self._take_host(host)

    def finish(self) -> None:
        """All old ones were taken: count, and have the new ones sort what they were given."""
        totals, count = self._totals, len(self._heirs)
        if self._moved != totals.deferred:
            raise StorageError(
                f"{totals.deferred} URLs should wait, and {self._moved} were found: nothing is changed"
            )
        aheads = [gate.done.total() for gate, _ in self._heirs]
        aheads[0] += totals.ahead - sum(aheads)
        self._share_out()
        for part, (gate, source) in enumerate(self._heirs):
            counters = gate.counters
            for name in _OUTCOMES:
                setattr(counters, name, spread(getattr(totals, name), count, part))
            for name in _REASONS:
                reasons = getattr(totals, name)
                shares = {reason: spread(number, count, part) for reason, number in reasons.items()}
                setattr(counters, name, shares)
            counters.ahead = aheads[part]
            outcomes = sum(getattr(counters, name) for name in _OUTCOMES)
            outcomes += sum(counters.refused.values()) + sum(counters.failed.values())
            counters.discovered = outcomes + counters.deferred - counters.ahead
            exchange = self._frontiers[part].exchange
            if exchange is not None:
                exchange.begin_with(
                    {name: spread(number, count, part) for name, number in self._sent.items()}
                )
            source.complete(gate.now)

    def deliver(self, env: Env, path: Path) -> list[str]:
        """Hand on a batch that one old part sent to another and that was not taken in; what it adds to the scope."""
        batch = read_batch(env, path)
        links, edges = batch.links, batch.edges
        self._carry(batch.cookies)
        owners, targets = self._owners(getattr(links, self._slot_of)), self._owners(edges[1])
        tracked = np.array(sorted(batch.trails), np.uint64)
        for part, (gate, source) in enumerate(self._heirs):
            mine, linked = owners == part, targets == part
            own, counts = links.where(mine), batch.counts[mine]
            _follow(gate, own, tracked, batch.trails)
            if len(own) or linked.any():
                pairs = edges[0][linked], edges[1][linked]
                source.take([Found(None, own, edges=pairs, counts=counts)], gate.now)
                gate.write_off()
            exchange = self._frontiers[part].exchange
            if exchange is not None:
                exchange.received += len(own)
        return batch.scope

    def _owners(self, keys: KeyColumn) -> Any:
        return by_hash(keys, len(self._heirs))

    def _own(self, part: int, keys: KeyColumn) -> KeyColumn:
        own: KeyColumn = keys[self._owners(keys) == part]
        return own

    def _owner(self, key: int) -> int:
        return int(self._owners(np.array([key], np.uint64))[0])

    def _split(self, lot: Lot) -> Iterator[tuple[int, Lot]]:
        if lot.shared and self._divides_domains:
            yield from ((part, lot) for part in range(len(self._heirs)))
            return
        owners = self._owners(getattr(lot.urls, self._slot_of) if len(lot.urls) else lot.keys)
        for part in np.unique(owners).tolist():
            yield part, lot.where(owners == part)

    def _is_for_all(self, name: str) -> bool:
        """Counts of sites where domains are owned: nobody can tell the domain of a host's key, so all get the count, which
        only the owner uses; whoever was not has an old one, which is no larger."""
        return name == "hosts" and self._slot_of == "pld_key"

    def _share_out(self) -> None:
        """What came up of sites and domains counts for those who have URLs of them. Where these are several it is divided as
        `Shares.most_of` divides a limit: so all together have as much left as before. Of what is done, `_mark_done` counts
        anew."""
        count, divided = len(self._heirs), {"hosts": self._shares_hosts, "domains": self._divides_domains}
        for name, counts in self._came_up.items():
            for part, (gate, _) in enumerate(self._heirs):
                found = gate.shares.counters()[name]
                for key, number in counts.items():
                    if divided[name]:
                        found[key] = spread(number, count, (part + key) % count)
                    elif self._is_for_all(name) or self._owner(key) == part:
                        found[key] = number

    def _carry(self, cookies: Mapping[int, Cookies]) -> None:
        """Those of redirects whose targets are on their way: nobody can tell the host of a URL's key, so all get them."""
        for heir in self._frontiers:
            if heir.exchange is not None:
                heir.exchange.sorting.carry(cookies)

    def _take_census(self, census: Census | None) -> None:
        """What was fetched is in the sample of one of the new ones, whichever: in two it would count as fetched twice."""
        for part, heir in enumerate(self._frontiers):
            own = None if heir.exchange is None else heir.exchange.sorting.census
            if census is not None and own is not None:
                own.take(census.samples(), partial(self._own, part))

    def _take_host(self, host: Host) -> None:
        """A host in trouble goes to its owner; where that is not known, or there are several, to all: then nobody is too
        quick."""
        pace = HostPace()
        pace.trouble, pace.crawl_delay, pace.next_time = host.trouble, host.crawl_delay, host.next_time
        key = {"pld_key": host.pld, "host_key": host.key}.get(self._slot_of, 0)
        heirs = [self._heirs[self._owner(key)]] if key else self._heirs
        for gate, _ in heirs:
            gate.ready.restore(host.key, pace, host.duplicates, host.pld)


def spread(total: int, count: int, part: int) -> int:
    """What one of `count` parts gets of a number that nobody can divide by what it is about.

    >>> [spread(11, 3, part) for part in range(3)]
    [4, 4, 3]
    """
    return total // count + (part < total % count)


def _waiting(delays: Delays) -> Iterator[Lot]:
    for times, urls in delays.drain():
        yield Lot.of(WAITING, urls, times)


def _follow(gate: Gate, urls: UrlBatch, tracked: KeyColumn, trails: Mapping[int, Trail]) -> None:
    """The redirects that led to URLs go with them."""
    if len(tracked) and len(urls):
        keys = urls.key
        for key in keys[np.isin(keys, tracked)].tolist():
            gate.trails.put(key, trails[key])


def _mark_done(gate: Gate, urls: UrlBatch, forms: KeyColumn, done: Counter[Form], slot_of: str) -> None:
    """URLs with an outcome that will come up again are dropped then by whoever has them."""
    if not len(forms):
        return
    for row in urls.where(np.isin(slotted(urls.key, getattr(urls, slot_of)), forms)).rows():
        found = form(row, slot_of)
        while done[found] > 0:
            done[found] -= 1
            gate.add_done(row)


def _add(totals: Counters, more: Counters) -> None:
    assert not more.queued + more.in_flight, "what was in RAM is in Q_W after a restart"
    for name in (*_OUTCOMES, "discovered", "deferred", "ahead"):
        setattr(totals, name, getattr(totals, name) + getattr(more, name))
    for name in _REASONS:
        reasons, others = getattr(totals, name), getattr(more, name)
        for reason, count in others.items():
            reasons[reason] = reasons.get(reason, 0) + count
