"""What becomes of all that a process finds, where several divide a crawl: it is its own, or somebody else's.

    found ─► split ─ own ─► source
               ├ others' ─► the outbox of each
               └ or, by the mode, held back until own URLs run out (`strays`), taken, or dropped

Who owns a URL is said by `ownership`, or by `assigning`; what becomes of it, by `modes`. What enters an outbox depends on
nothing that may change, neither on limits nor on what was seen: these are for its owner to say. So `exchange` can make a
batch again after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.events import HostResolved, Score
from barkspider.core.records import Flag
from barkspider.core.settings import Settings
from barkspider.frontier.assigning import UNASSIGNED, Assigning
from barkspider.frontier.batches import Batch
from barkspider.frontier.budget.domain_redirects import NOWHERE
from barkspider.frontier.budget.star import RANKER
from barkspider.frontier.census import Census
from barkspider.frontier.gate import Saved
from barkspider.frontier.outbox import Cookies, Outbox, cookies_in, load_boxes, saved_boxes
from barkspider.frontier.ownership import Ownership, slot_of
from barkspider.frontier.source import Found, edge_sources
from barkspider.frontier.standing import Standing
from barkspider.frontier.strays import Strays
from barkspider.frontier.trails import Trails
from barkspider.storage.env import Env
from barkspider.url.partition import KeyColumn, OwnerColumn, by_hash

_CARRIED = 1_000  # redirects on their way through other processes whose cookies are remembered
_TOLD = 4_096  # hosts of which a batch tells whose they are, beside those of its URLs
_NO_EDGES = np.empty(0, np.uint64), np.empty(0, np.uint64)


class _Others(NamedTuple):
    """URLs of others, by their places among all that was found. `known` is whether an owner is known to have its host, where hosts
    are assigned."""

    places: npt.NDArray[np.int64]
    links: UrlBatch
    owners: OwnerColumn
    decisions: npt.NDArray[np.uint8]
    known: npt.NDArray[np.bool_] | None


class Sorting:
    """See the module. One thread: the driver's. `boxes` are filled here, one for each process, and emptied by `exchange`."""

    def __init__(
        self,
        settings: Settings,
        env: Env,
        folder: Path,
        trails: Trails,
        census: Census | None = None,
        strays: Strays | None = None,
        assigning: Assigning | None = None,
    ) -> None:
        """`folder` is that of the part. `census` is told what is fetched here, and what is taken and left where nothing is
        sent; `strays` are for a mode in which URLs of others are held back, `assigning` for a partition that has to find out
        whose a host is."""
        parallel = settings.parallel
        self._part, self._processes = parallel.part, parallel.processes
        # Imported where they are needed: they take a second to compile, and one process alone needs none.
        from barkspider.frontier import modes

        self._modes, self._rule = modes, modes.rule(parallel.mode)
        self.sends = self._rule[0, 0] == modes.SEND
        self._ownership, self._trails = Ownership(settings, env, folder), trails
        self.census, self.strays, self.assigning = census, strays, assigning
        # Whether who owns a page may not be who counts the links to its domain.
        self._counts_apart = self.sends and parallel.partition != "domain"
        # Whether one process ranks the domains of all, and is told of redirects too.
        self._ranks = (
            self.sends and settings.frontier == "irlbot" and settings.budget.reputation == "supporters"
        )
        self._follows = settings.budget.merge_redirects
        self._slot_of = slot_of(parallel)
        self.boxes = [Outbox(self._slot_of) for _ in range(self._processes)]
        self.dropped = 0  # URLs of others, where nothing is sent
        # Cookies of the redirects that led to a URL which is being fetched, by its key.
        self._carried: dict[int, Cookies] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is collected for others."""
        return not any(self.boxes)

    def take_box(self, to: int) -> Outbox:
        """All that is collected for a process; from now on nothing is."""
        box, self.boxes[to] = self.boxes[to], Outbox(self._slot_of)
        return box

    # ── what is found ──────────────────────────────────────────────────────────────────────────

    def own(self, batch: UrlBatch) -> UrlBatch:
        """The URLs of a batch that every process is given, such as seeds, that are this one's; where nothing is sent, so is
        what it has fetched itself and is to fetch again."""
        again = (batch.flags & np.uint8(Flag.AGAIN | Flag.SEED)) == np.uint8(Flag.AGAIN)
        kept = not self.sends or self.assigning is not None
        own = batch.where((self._ownership.of(batch) == self._part) | (again & kept))
        if self.census is not None and not self.sends:
            self.census.taken.add(own.key)
        return own

    def split(self, found: Sequence[Found], now: float) -> list[Found]:
        """What is found without what is not for us, which is collected for others, held back or dropped (`modes`)."""
        if self.sends:
            self._tell_scope(found, now)
        links = UrlBatch.join([each.links for each in found])
        more = self._report(found, links.pld_key, now) if self._ranks else []
        if not len(links):
            return [*found, *more]
        others = self._others(links)
        taken = np.ones(len(links), np.bool_)  # own URLs are, in every mode
        taken[others.places] = others.decisions == self._modes.TAKE
        if self.census is not None and not self.sends:
            self.census.taken.add(links.key[taken])
            self.census.left.add(links.key[~taken])
        self._follow_redirects(found, others)
        if not self._counts_apart and not others.decisions.any():
            return [*found, *more]
        counted = self._count_edges(found, links, others, now)
        self._hold(found, others)
        self._send(found, others, now)
        self._drop(others)
        own = self._taken(found, links, taken)
        own += [Found(None, NO_URLS, edges=counted)] if len(counted[0]) else []
        return [*own, *more]

    def _others(self, links: UrlBatch) -> _Others:
        """The URLs of others among those that were found, which are mostly few."""
        if self.assigning is None:
            owners, known = self._ownership.of(links), None
        else:
            owners, known = self.assigning.of(links)
        places = np.flatnonzero(owners != self._part)
        others, owners = links.take(places), owners[places]
        replicated = self._ownership.replicated(others)
        if known is not None:  # the owner of a name has got replicas for whoever has the host
            known, replicated = known[places], replicated & (self._ownership.of(others) != self._part)
        decisions = self._modes.decide(self._rule, self._part, owners, replicated)
        decisions[owners == UNASSIGNED] = self._modes.HOLD
        return _Others(places, others, owners, decisions, known)

    def _taken(self, found: Sequence[Found], links: UrlBatch, taken: npt.NDArray[np.bool_]) -> list[Found]:
        """What was found with the links that are ours, as slices of one batch: the source joins them again."""
        ours, own, start, end = links.where(taken), list[Found](), 0, 0
        for each in found:
            first, end = end, end + len(each.links)
            stop = start + int(np.count_nonzero(taken[first:end]))
            edges = _NO_EDGES if self._counts_apart and each.page else each.edges
            counts = None if each.counts is None else each.counts[taken[first:end]]
            own.append(each._replace(links=ours.slice(start, stop), edges=edges, counts=counts))
            start = stop
        return own

    def _hold(self, found: Sequence[Found], others: _Others) -> None:
        """Let URLs wait until own ones run out, or until it is known whose their hosts are."""
        held = others.decisions == self._modes.HOLD
        if held.any():
            waiting = self.strays if self.assigning is None else self.assigning
            assert waiting is not None
            waiting.hold(self._counted(found, others, held))

    def _send(self, found: Sequence[Found], others: _Others, now: float) -> None:
        """Collect URLs for their owners; these hear which hosts are theirs."""
        sent = others.decisions == self._modes.SEND
        for to in np.unique(others.owners[sent]).tolist():
            chosen = sent & (others.owners == to)
            self.boxes[to].put(self._counted(found, others, chosen), now)
            if others.known is not None:
                hosts = np.unique(others.links.host_key[chosen & others.known]).tolist()
                self.boxes[to].assigned |= dict.fromkeys(hosts, to)

    def _counted(self, found: Sequence[Found], others: _Others, chosen: npt.NDArray[np.bool_]) -> UrlBatch:
        """Some of the URLs; those that another process has sent, and that go on, as often as it found them."""
        if self.assigning is None or all(each.counts is None for each in found):
            return others.links.where(chosen)
        ones = (np.ones(len(each.links), np.uint32) if each.counts is None else each.counts for each in found)
        counts = np.concatenate([*ones])[others.places[chosen]]
        return others.links.take(np.repeat(np.flatnonzero(chosen), counts))

    def _drop(self, others: _Others) -> None:
        """URLs that a firewall stops, or that their owners have known from the beginning."""
        dropped = others.decisions == self._modes.DROP
        if not self.sends:
            self.dropped += int(dropped.sum())
            return
        for to in np.unique(others.owners[dropped]).tolist():
            self.boxes[to].save_sending(others.links.key[dropped & (others.owners == to)])

    def _tell_scope(self, found: Sequence[Found], now: float) -> None:
        """What a seed redirects to is in the scope in every process, whoever owns it: all may find links to it."""
        for each in found:
            if each.target is not None and each.target.flags & Flag.SEED:
                for to, box in enumerate(self.boxes):
                    if to != self._part:
                        box.extend_scope(each.target.url.decode(), now)

    # ── links between domains ──────────────────────────────────────────────────────────────────

    def _count_edges(
        self, found: Sequence[Found], links: UrlBatch, others: _Others, now: float
    ) -> tuple[KeyColumn, KeyColumn]:
        """Links between domains go to whoever counts them; those that are counted here, beside those of the links that we
        take. A redirect makes no edge: it recommends nobody."""
        sources, targets = edge_sources(found), links.pld_key if self._counts_apart else others.links.pld_key
        between = np.ones(len(targets), np.bool_)
        if (
            not self._counts_apart
        ):  # who takes a link counts its domain; if nothing is sent, who holds it back
            sources = sources[others.places]
            between = (others.decisions == self._modes.HOLD) | self.sends
        between &= (sources != 0) & (sources != targets)
        sources, targets = sources[between], targets[between]
        if not self.sends:
            return sources, targets
        counters = self._ownership.of_domains(targets)
        for to in np.unique(counters).tolist():
            if to != self._part:
                self.boxes[to].put_edges(sources[counters == to], targets[counters == to], now)
        return sources[counters == self._part], targets[counters == self._part]

    def _report(self, found: Sequence[Found], targets: KeyColumn, now: float) -> list[Found]:
        """Collect for whoever ranks what else it has to know of domains; if that is this process, what it does not see itself."""
        sources = edge_sources(found)
        between = (sources != 0) & (sources != targets)
        if self._part == RANKER:
            between &= self._ownership.of_domains(targets) != self._part
            edges = sources[between], targets[between]
            return [Found(None, NO_URLS, edges=edges)] if len(edges[0]) else []
        pages = [(each.page.pld_key, each.target) for each in found if each.page is not None]
        answers = [(domain, NOWHERE if to is None else to.pld_key) for domain, to in pages]
        box = self.boxes[RANKER]
        box.standing.report((sources[between], targets[between]), _pairs(answers if self._follows else ()))
        if len(box.standing):
            box.since = min(box.since, now)
        return []

    def spread(self, score: Score, now: float) -> list[Found]:
        """What a ranking has found, for the owners of the domains; our own are to be taken."""
        own, owners = Standing(), by_hash(score.keys, self._processes)
        for to, box in enumerate(self.boxes):
            mine = owners == to
            standing = own if to == self._part else box.standing
            standing.scores.append(Score(score.keys[mine], score.supporters[mine], score.in_force))
            if to != self._part:
                box.size += 12 * int(mine.sum())  # bytes
                box.since = min(box.since, now)
        return [Found(None, NO_URLS, standing=own)]

    # ── what goes with links ───────────────────────────────────────────────────────────────────

    def _follow_redirects(self, found: Sequence[Found], others: _Others) -> None:
        """The trail of a redirect goes with it; so do cookies, where a domain may have several processes."""
        for each in found if self._counts_apart else ():
            if each.target is None or each.page is None or not len(each.links):
                continue
            cookies = self._carried.pop(each.page.key, [])
            if each.cookies:
                cookies = [*cookies, (each.page.url.decode(), each.cookies)]
            if cookies:
                self.carry({each.target.key: cookies})
        redirects = (others.links.flags & np.uint8(Flag.REDIRECT)) != 0
        for row in np.flatnonzero(redirects & (others.decisions == self._modes.SEND)).tolist():
            key, box = int(others.links.key[row]), self.boxes[others.owners[row]]
            if trail := self._trails.pop(key):
                box.trails[key] = trail
            if key in self._carried:
                box.cookies[key] = self._carried.pop(key)

    @property
    def carried(self) -> Mapping[int, Cookies]:
        """The cookies of redirects that led to URLs which wait here, by the keys of these."""
        return self._carried

    def carry(self, cookies: Mapping[int, Cookies]) -> None:
        """Remember such cookies; of too many the oldest are forgotten."""
        self._carried |= cookies
        while len(self._carried) > _CARRIED:
            del self._carried[next(iter(self._carried))]

    def learn(self, sender: int, batch: Batch) -> None:
        """Take what came with the links of a batch: trails and cookies of redirects, and whose hosts are. Whoever has sent
        URLs of others' hosts the long way is told whose they are."""
        for key, trail in batch.trails.items():
            self._trails.put(key, trail)
        self.carry(batch.cookies)
        if self.assigning is None:
            return
        self.assigning.learn(batch.assigned)
        owners, known = self.assigning.of(batch.links)
        box, hosts = self.boxes[sender].assigned, batch.links.host_key
        elsewhere = known & (owners != self._part)
        for host, owner in zip(hosts[elsewhere].tolist(), owners[elsewhere].tolist(), strict=True):
            if len(box) < _TOLD:
                box[host] = owner

    def assign(self, outcome: HostResolved) -> list[Found]:
        """A host was looked up; what has waited for that, to be split once more."""
        assert self.assigning is not None
        free = self.assigning.assign(outcome)
        return [Found(None, free)] if len(free) else []

    # ── what a checkpoint keeps ────────────────────────────────────────────────────────────────

    def save(self) -> Saved:
        """Hold on to what is in RAM at this moment, for `load`."""
        boxes = {to: copy(box) for to, box in enumerate(self.boxes) if box or box.saved or box.assigned}
        carried = list(self._carried.items())
        names, hosts = ({}, {}) if self.assigning is None else self.assigning.save()

        def whole() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
            head, arrays = saved_boxes(boxes)
            return {**head, "cookies": carried, **names}, {**arrays, **hosts}

        return whole

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Take what `save` gave."""
        load_boxes(self.boxes, head, arrays)
        self._carried = cookies_in(head)
        if self.assigning is not None:
            self.assigning.load(head, arrays)


def _pairs(pairs: Sequence[tuple[int, int]]) -> tuple[KeyColumn, KeyColumn]:
    found = np.array(pairs, np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1])
