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
from typing import Any

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
        owners, known, decisions = self._decide(links)
        if self.census is not None and not self.sends:
            self.census.taken.add(links.key[decisions == self._modes.TAKE])
            self.census.left.add(links.key[decisions != self._modes.TAKE])
        self._follow_redirects(found, links, owners, decisions)
        if not self._counts_apart and not decisions.any():
            return [*found, *more]
        counted = self._count_edges(found, links, decisions, now)
        self._hold(found, links, decisions == self._modes.HOLD)
        self._send(found, links, owners, known, decisions == self._modes.SEND, now)
        self._drop(links, owners, decisions == self._modes.DROP)
        own = self._taken(found, links, decisions == self._modes.TAKE)
        own += [Found(None, NO_URLS, edges=counted)] if len(counted[0]) else []
        return [*own, *more]

    def _decide(self, links: UrlBatch) -> tuple[OwnerColumn, npt.NDArray[np.bool_] | None, Any]:
        """For each link its owner, where hosts are assigned whether that is known to have its host, and what becomes of it."""
        owners, replicated = self._ownership.of(links), self._ownership.replicated(links)
        if self.assigning is None:
            return owners, None, self._modes.decide(self._rule, self._part, owners, replicated)
        replicated &= owners != self._part  # the owner of a name has got them for whoever has the host
        owners, known = self.assigning.of(links)
        decisions = self._modes.decide(self._rule, self._part, owners, replicated)
        decisions[owners == UNASSIGNED] = self._modes.HOLD
        return owners, known, decisions

    def _taken(self, found: Sequence[Found], links: UrlBatch, taken: npt.NDArray[np.bool_]) -> list[Found]:
        """What was found with the links that are ours, as slices of one batch: the source joins them again."""
        ours, ends = links.where(taken), np.cumsum([len(each.links) for each in found])
        own, start, stops = list[Found](), 0, np.concatenate([[0], np.cumsum(taken)])[ends].tolist()
        for each, end, stop in zip(found, ends.tolist(), stops, strict=True):
            counts = None if each.counts is None else each.counts[taken[end - len(each.links) : end]]
            each = each._replace(links=ours.slice(start, stop), counts=counts)
            own.append(each._replace(edges=_NO_EDGES) if self._counts_apart and each.page else each)
            start = stop
        return own

    def _hold(self, found: Sequence[Found], links: UrlBatch, held: npt.NDArray[np.bool_]) -> None:
        """Links that wait until own ones run out, or until it is known whose their hosts are."""
        if held.any():
            waiting = self.strays if self.assigning is None else self.assigning
            assert waiting is not None
            waiting.hold(self._counted(found, links, held))

    def _send(
        self,
        found: Sequence[Found],
        links: UrlBatch,
        owners: OwnerColumn,
        known: npt.NDArray[np.bool_] | None,
        sent: npt.NDArray[np.bool_],
        now: float,
    ) -> None:
        """Collect links for their owners; these hear which hosts are theirs."""
        for to in np.unique(owners[sent]).tolist():
            chosen = sent & (owners == to)
            self.boxes[to].put(self._counted(found, links, chosen), now)
            if known is not None:
                hosts = np.unique(links.host_key[chosen & known]).tolist()
                self.boxes[to].assigned |= dict.fromkeys(hosts, to)

    def _counted(self, found: Sequence[Found], links: UrlBatch, chosen: Any) -> UrlBatch:
        """Some of the links that were found; those that another process has sent, and that go on, as often as it found them."""
        if self.assigning is None or all(each.counts is None for each in found):
            return links.where(chosen)
        ones = (np.ones(len(each.links), np.uint32) if each.counts is None else each.counts for each in found)
        return links.take(np.repeat(np.flatnonzero(chosen), np.concatenate([*ones])[chosen]))

    def _drop(self, links: UrlBatch, owners: OwnerColumn, dropped: npt.NDArray[np.bool_]) -> None:
        """Links that a firewall stops, or that their owners have known from the beginning."""
        if not self.sends:
            self.dropped += int(dropped.sum())
            return
        for to in np.unique(owners[dropped]).tolist():
            self.boxes[to].save_sending(links.key[dropped & (owners == to)])

    def _tell_scope(self, found: Sequence[Found], now: float) -> None:
        """What a seed redirects to is in the scope in every process, whoever owns it: all may find links to it."""
        for each in found:
            if each.target is not None and each.target.flags & Flag.SEED:
                for to, box in enumerate(self.boxes):
                    if to != self._part:
                        box.extend_scope(each.target.url.decode(), now)

    # ── links between domains ──────────────────────────────────────────────────────────────────

    def _count_edges(self, found: Sequence[Found], links: UrlBatch, decisions: Any, now: float) -> Any:
        """Links between domains go to whoever counts them; those that are counted here, beside those of the links that we
        take. A redirect makes no edge: it recommends nobody."""
        sources, targets = edge_sources(found), links.pld_key
        between = (sources != 0) & (sources != targets)
        if not self.sends:
            between &= decisions == self._modes.HOLD
            return sources[between], targets[between]
        if not self._counts_apart:  # who takes a link counts its domain
            between &= decisions != self._modes.TAKE
        sources, targets = sources[between], targets[between]
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

    def _follow_redirects(
        self, found: Sequence[Found], links: UrlBatch, owners: OwnerColumn, decisions: Any
    ) -> None:
        """The trail of a redirect goes with it; so do cookies, where a domain may have several processes."""
        for each in found if self._counts_apart else ():
            if each.target is None or each.page is None or not len(each.links):
                continue
            cookies = self._carried.pop(each.page.key, [])
            if each.cookies:
                cookies = [*cookies, (each.page.url.decode(), each.cookies)]
            if cookies:
                self.carry({each.target.key: cookies})
        sent = (decisions == self._modes.SEND) & ((links.flags & np.uint8(Flag.REDIRECT)) != 0)
        for row in np.flatnonzero(sent).tolist():
            key, box = int(links.key[row]), self.boxes[owners[row]]
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
