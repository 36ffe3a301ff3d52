"""What processes that divide a crawl send each other: links to pages of others, and edges to their domains.

    found ─► split ─ own ─► source
               ├ others' ─► outbox of each ─ Sealed ─► batch (to, number) ─► another process ─ Received ─► its source
               └ or, by the mode, held back until own URLs run out (`strays`), taken, or dropped

Who owns a URL is said by `ownership`, what becomes of it by `modes`. What is for others is collected; when it is
time, a batch is asked for (`Seal`), and made when `Sealed` comes back. That is a record of the journal, so a batch is a
function of the journal: after a crash the same batch is made again, under the same number. What enters it depends on
nothing else that may change, neither on limits nor on what was seen: these are for its owner to say.

A batch is a file. It stays, named by each checkpoint, until the other process has committed what it took from it. The
numbers of a sender are taken in order, each once; so whatever is sent twice counts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import HostResolved, Prepared, Received, Score, Seal, Sealed, Trail
from barkspider.core.records import Flag
from barkspider.core.settings import Settings
from barkspider.frontier.assigning import UNASSIGNED, Assigning
from barkspider.frontier.budget.domain_redirects import NOWHERE
from barkspider.frontier.budget.star import RANKER
from barkspider.frontier.census import Census
from barkspider.frontier.outbox import (
    Cookies,
    Outbox,
    assigned_in,
    cookies_in,
    edges_of,
    load_boxes,
    saved_boxes,
)
from barkspider.frontier.ownership import Ownership, slot_of
from barkspider.frontier.source import Found, edge_sources
from barkspider.frontier.standing import Standing
from barkspider.frontier.strays import Strays
from barkspider.frontier.trails import Trails
from barkspider.storage.env import Env
from barkspider.storage.format import checksum
from barkspider.storage.store.snapshot import SUFFIX, read_snapshot, write_snapshot
from barkspider.url.partition import KeyColumn, by_hash

NAME, MAIL = "exchange", "mail"
_OPEN = "open-"  # the file of what is in no batch yet
_LARGE = 4_000_000  # bytes of links to one process: a batch is due, however few pages they are of
_LARGEST = 1 << 28  # bytes of a batch: far more than that makes
_CARRIED = 1_000  # redirects on their way through other processes whose cookies are remembered
_TOLD = 4_096  # hosts of which a batch tells whose they are, beside those of its URLs
_NO_EDGES = np.empty(0, np.uint64), np.empty(0, np.uint64)
_TOTALS = ("batches", "sent", "sent_bytes", "received", "dropped", "saved")


def batch_name(process: int, number: int) -> str:
    """The file of a batch: in the folder of its sender by whom it is for, in that of its receiver by who sent it."""
    return f"{process:04d}-{number:08d}{SUFFIX}"


def inbox(folder: Path, part: int) -> Path:
    """Where batches for a process arrive, by the folder of any part of the job."""
    return folder.parent / MAIL / f"{part:04d}"


class Exchange:
    """See the module. A `Structure`; one thread: the driver's. Its I/O is its own files, and reading those of others."""

    name = NAME

    def __init__(
        self,
        settings: Settings,
        env: Env,
        folder: Path,
        trails: Trails,
        state: dict[str, Any] | None,
        census: Census | None = None,
        strays: Strays | None = None,
        assigning: Assigning | None = None,
    ) -> None:
        """`census` is told what is fetched here, and what is taken and left where nothing is sent; `strays` are for a mode in
        which URLs of others are held back, `assigning` for a partition that has to find out whose a host is."""
        self._settings = settings.parallel
        self._env, self._folder, self._trails = env, folder, trails
        self._part, self._processes = settings.parallel.part, settings.parallel.processes
        self._inbox, self.census = inbox(folder, self._part), census
        # Imported where they are needed: they take a second to compile, and one process alone needs none.
        from barkspider.frontier import modes

        self._modes, self._rule = modes, modes.rule(settings.parallel.mode)
        self.sends = self._rule[0, 0] == modes.SEND
        self._ownership, self.strays, self.assigning = Ownership(settings, env, folder), strays, assigning
        # Whether who owns a page may not be who counts the links to its domain.
        self._counts_apart = self.sends and settings.parallel.partition != "domain"
        # Whether one process ranks the domains of all, and is told of redirects too.
        self._ranks = (
            self.sends and settings.frontier == "irlbot" and settings.budget.reputation == "supporters"
        )
        self._follows = settings.budget.merge_redirects
        self._slot_of = slot_of(settings.parallel)
        self._outboxes = [Outbox(self._slot_of) for _ in range(self._processes)]
        # Cookies of the redirects that led to a URL which is being fetched, by its key.
        self._carried: dict[int, Cookies] = {}
        self._asked: set[int] = set()  # for whom a batch was asked for, and is not made yet
        self._pages = [0] * self._processes  # fetched when the last batch was made
        kept = state or {}
        self.sealed: list[int] = list(kept.get("sealed", [0] * self._processes))
        self.applied: list[int] = list(kept.get("applied", [0] * self._processes))
        self.acknowledged: list[int] = list(kept.get("acknowledged", [0] * self._processes))
        self.committed_applied, self.committed_sealed = list(self.applied), list(self.sealed)
        self.sent, self.received = int(kept.get("sent", 0)), int(kept.get("received", 0))  # URLs
        self.sent_bytes, self.batches = (
            int(kept.get("sent_bytes", 0)),
            int(kept.get("batches", sum(self.sealed))),
        )
        self.dropped = int(kept.get("dropped", 0))  # by a firewall
        self.saved = int(kept.get("saved", 0))  # URLs that were not sent because they are replicated
        self._sizes: dict[str, int] = {
            name.rpartition("/")[2]: size for name, size in kept.get("files", {}).items() if _OPEN not in name
        }
        self._number = int(kept.get("number", 0))
        self._unsynced: set[str] = set()  # batches that no checkpoint has
        self._prepared = list(self.applied), list(self.sealed)
        env.make_folder(folder / NAME)
        if state is not None:
            self._recall()

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
        counted_here = self._ownership.of_domains(links.pld_key) == self._part
        more = (
            self._report(found, edge_sources(found), links.pld_key, counted_here, now) if self._ranks else []
        )
        if not len(links):
            return [*found, *more]
        owners, replicated = self._ownership.of(links), self._ownership.replicated(links)
        assigned = None
        if self.assigning is not None:
            replicated &= owners != self._part  # the owner of a name has got them for whoever has the host
            owners, assigned = self.assigning.of(links)
        decisions = self._modes.decide(self._rule, self._part, owners, replicated)
        if self.assigning is not None:
            decisions[owners == UNASSIGNED] = self._modes.HOLD
        if self.census is not None and not self.sends:
            self.census.taken.add(links.key[decisions == self._modes.TAKE])
            self.census.left.add(links.key[decisions != self._modes.TAKE])
        self._follow_redirects(found, links, owners, decisions)
        if not self._counts_apart and not decisions.any():
            return [*found, *more]
        own, end = [], 0
        for each in found:
            start, end = end, end + len(each.links)
            taken = decisions[start:end] == self._modes.TAKE
            counts = None if each.counts is None else each.counts[taken]
            each = each._replace(links=each.links.where(taken), counts=counts)
            own.append(each._replace(edges=_NO_EDGES) if self._counts_apart and each.page else each)
        counted = self._count_edges(found, links, decisions, now)
        if (decisions == self._modes.HOLD).any():
            waiting = self.strays if self.assigning is None else self.assigning
            assert waiting is not None
            waiting.hold(self._counted(found, links, decisions == self._modes.HOLD))
        for to in np.unique(owners[decisions == self._modes.SEND]).tolist():
            chosen = (decisions == self._modes.SEND) & (owners == to)
            self._outboxes[to].put(self._counted(found, links, chosen), now)
            if assigned is not None:
                hosts = np.unique(links.host_key[chosen & assigned]).tolist()
                self._outboxes[to].assigned |= dict.fromkeys(hosts, to)
        self._drop(links, owners, decisions == self._modes.DROP)
        own += [Found(None, NO_URLS, edges=counted)] if len(counted[0]) else []
        return [*own, *more]

    def _counted(self, found: Sequence[Found], links: UrlBatch, chosen: Any) -> UrlBatch:
        """Some of the links that were found; those that another process has sent, and that go on, as often as it found them."""
        if self.assigning is None or all(each.counts is None for each in found):
            return links.where(chosen)
        ones = (np.ones(len(each.links), np.uint32) if each.counts is None else each.counts for each in found)
        return links.take(np.repeat(np.flatnonzero(chosen), np.concatenate([*ones])[chosen]))

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
                self._outboxes[to].put_edges(sources[counters == to], targets[counters == to], now)
        return sources[counters == self._part], targets[counters == self._part]

    def _follow_redirects(self, found: Sequence[Found], links: UrlBatch, owners: Any, decisions: Any) -> None:
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
            key, box = int(links.key[row]), self._outboxes[owners[row]]
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

    def _report(
        self, found: Sequence[Found], sources: KeyColumn, targets: KeyColumn, mine: Any, now: float
    ) -> list[Found]:
        """Collect for whoever ranks what else it has to know of domains; if that is this process, what it does not see itself."""
        between = (sources != 0) & (sources != targets)
        if self._part == RANKER:
            between &= ~mine
            edges = sources[between], targets[between]
            return [Found(None, NO_URLS, edges=edges)] if len(edges[0]) else []
        pages = [(each.page.pld_key, each.target) for each in found if each.page is not None]
        answers = [(domain, NOWHERE if to is None else to.pld_key) for domain, to in pages]
        box = self._outboxes[RANKER]
        box.standing.report((sources[between], targets[between]), _pairs(answers if self._follows else ()))
        if len(box.standing):
            box.since = min(box.since, now)
        return []

    def spread(self, score: Score, now: float) -> list[Found]:
        """What a ranking has found, for the owners of the domains; our own are to be taken."""
        own, owners = Standing(), by_hash(score.keys, self._processes)
        for to, box in enumerate(self._outboxes):
            mine = owners == to
            standing = own if to == self._part else box.standing
            standing.scores.append(Score(score.keys[mine], score.supporters[mine], score.in_force))
            if to != self._part:
                box.size += 12 * int(mine.sum())  # bytes
                box.since = min(box.since, now)
        return [Found(None, NO_URLS, standing=own)]

    def _tell_scope(self, found: Sequence[Found], now: float) -> None:
        """What seeds redirect to belongs to the scope in every process, whoever owns it: all may find links to it."""
        for each in found:
            if each.target is not None and each.target.flags & Flag.SEED:
                for to, box in enumerate(self._outboxes):
                    if to != self._part:
                        box.extend_scope(each.target.url.decode(), now)

    def _drop(self, links: UrlBatch, owners: Any, dropped: Any) -> None:
        """Links that a firewall stops, or that their owners have known from the beginning."""
        if not self.sends:
            self.dropped += int(dropped.sum())
            return
        for to in np.unique(owners[dropped]).tolist():
            self._outboxes[to].save_sending(links.key[dropped & (owners == to)])

    # ── batches ────────────────────────────────────────────────────────────────────────────────

    def due(self, pages: int, is_idle: bool, now: float) -> list[Seal]:
        """The batches that are to be made now: so many pages were fetched, so much time is over, or nothing is left to do."""
        seals = []
        for to, box in enumerate(self._outboxes):
            if to in self._asked or not box:
                continue
            since = pages - self._pages[to]
            late = now >= box.since + self._settings.interval
            if is_idle or late or since >= self._settings.batch or box.size >= _LARGE:
                self._asked.add(to)
                seals.append(Seal(to, self.sealed[to] + 1))
        return seals

    def next_time(self) -> float:
        """When a batch is due if nothing happens."""
        waiting = (box.since for to, box in enumerate(self._outboxes) if to not in self._asked)
        return min(waiting, default=math.inf) + self._settings.interval

    @property
    def is_full(self) -> bool:
        """Whether others have so much to take in that nothing more should be found for them."""
        size = sum(self._sizes.values()) + sum(box.size for box in self._outboxes)
        return size > self._settings.outbox or (self.assigning is not None and self.assigning.is_full)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is collected for others that is in no batch."""
        return not any(self._outboxes)

    def waiting(self) -> list[int]:
        """How many rows for each process are in no batch yet."""
        return [len(box) for box in self._outboxes]

    def seal(self, outcome: Sealed, pages: int) -> None:
        """Make a batch of what was collected for a process."""
        to, number = outcome.asked.to, outcome.asked.number
        self._asked.discard(to)
        if number != self.sealed[to] + 1:
            raise StorageError(f"batch {number} for process {to} comes after {self.sealed[to]}")
        box, self._outboxes[to] = self._outboxes[to], Outbox(self._slot_of)
        name = batch_name(to, number)
        arrays = box.batch() | {"news": outcome.asked.news}
        self.sent += len(arrays["counts"])
        self.saved += box.saved
        path = self._folder / NAME / name
        self._sizes[name] = write_snapshot(self._env, path, box.head(), arrays, sync=False)
        self._unsynced.add(name)
        self.sent_bytes += self._sizes[name]
        self.batches += 1
        self.sealed[to], self._pages[to] = number, pages

    def receive(self, outcome: Received) -> list[Found]:
        """What is in a batch of another process; nothing if it was taken before."""
        if outcome.number <= self.applied[outcome.sender]:
            return []
        path = self._inbox / batch_name(outcome.sender, outcome.number)
        if (
            outcome.number != self.applied[outcome.sender] + 1
            or checksum_of(self._env, path) != outcome.checksum
        ):
            raise StorageError(f"{path} is not the batch that came after {self.applied[outcome.sender]}")
        head, arrays = read_snapshot(self._env, path)
        links = UrlBatch.decode(arrays["links"])
        for key, trail in Trails.pairs(np.frombuffer(arrays["trails"], np.uint64)):
            self._trails.put(key, trail)
        self.carry(cookies_in(head))
        if self.assigning is not None:
            self._hear_of_hosts(outcome.sender, links, assigned_in(head))
        self.applied[outcome.sender] = outcome.number
        self.received += len(links)
        counts, standing = np.frombuffer(arrays["counts"], np.uint32), Standing.read(arrays)
        return [
            Found(
                None,
                links,
                edges=edges_of(arrays["edges"]),
                standing=standing if len(standing) else None,
                news=arrays["news"],
                counts=counts,
            )
        ]

    def _hear_of_hosts(self, sender: int, links: UrlBatch, assigned: Mapping[int, int]) -> None:
        """Take assignments of hosts; whoever has sent URLs of others' hosts the long way is told whose they are."""
        assert self.assigning is not None
        self.assigning.learn(assigned)
        owners, known = self.assigning.of(links)
        box = self._outboxes[sender].assigned
        elsewhere = known & (owners != self._part)
        for host, owner in zip(links.host_key[elsewhere].tolist(), owners[elsewhere].tolist(), strict=True):
            if len(box) < _TOLD:
                box[host] = owner

    def assign(self, outcome: HostResolved) -> list[Found]:
        """A host was looked up; what has waited for that, to be split once more."""
        assert self.assigning is not None
        free = self.assigning.assign(outcome)
        return [Found(None, free)] if len(free) else []

    def sync_inbox(self) -> None:
        """Make the names of batches that have arrived survive a power loss. Any thread."""
        self._env.sync_folder(self._inbox)

    def sizes(self, batch: Received) -> tuple[int, int, int, int]:
        """How much is in a batch that has arrived: URLs, the links that they stand for, edges, bytes."""
        path = self._inbox / batch_name(batch.sender, batch.number)
        _, arrays = read_snapshot(self._env, path)
        counts = np.frombuffer(arrays["counts"], np.uint32)
        return len(counts), int(counts.sum()), len(edges_of(arrays["edges"])[0]), self._env.size(path)

    def acknowledge(self, to: int, number: int) -> None:
        """Another process has committed what it took from batches up to this one; they go with the next checkpoint."""
        self.acknowledged[to] = max(self.acknowledged[to], number)

    def unacknowledged(self) -> Iterable[tuple[int, int]]:
        """The batches, by whom they are for and their number, of which nobody has said that they are safe elsewhere."""
        return [
            (to, number)
            for to, last in enumerate(self.sealed)
            for number in range(self.acknowledged[to] + 1, last + 1)
        ]

    # ── what a checkpoint keeps ────────────────────────────────────────────────────────────────

    def prepare(self) -> Prepared:
        """See `core.events.Structure`: what is collected, and the batches that others have not taken for good."""
        kept = {batch_name(to, number) for to, number in self.unacknowledged()}
        self._sizes = {name: size for name, size in self._sizes.items() if name in kept}
        self._number += 1
        boxes = {to: copy(box) for to, box in enumerate(self._outboxes) if box or box.saved or box.assigned}
        carried = list(self._carried.items())
        names, hosts = ({}, {}) if self.assigning is None else self.assigning.save()
        path, sizes, unsynced = self._open_path(), dict(self._sizes), self._unsynced
        self._unsynced, self._prepared = set(), (list(self.applied), list(self.sealed))
        state = {
            "number": self._number,
            "sealed": list(self.sealed),
            "applied": list(self.applied),
            "acknowledged": list(self.acknowledged),
            **self.totals(),
        }

        def describe() -> dict[str, Any]:
            self.sync(unsynced & sizes.keys())
            head, arrays = saved_boxes(boxes)
            head |= {"cookies": carried, **names}
            files = sizes | {path.name: write_snapshot(self._env, path, head, arrays | hosts)}
            return {**state, "files": {f"{NAME}/{name}": size for name, size in files.items()}}

        return describe

    def sync(self, names: Iterable[str]) -> None:
        """Make batches survive a power loss. Any thread."""
        for name in names:
            self._env.sync(self._folder / NAME / name)

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self.committed_applied, self.committed_sealed = self._prepared
        kept = {*self._sizes, self._open_path().name}  # those that were made since, too
        for name in self._env.list(self._folder / NAME):
            if name not in kept:
                self._env.remove(self._folder / NAME / name)

    def _recall(self) -> None:
        head, arrays = read_snapshot(self._env, self._open_path())
        load_boxes(self._outboxes, head, arrays)
        self._carried = cookies_in(head)
        if self.assigning is not None:
            self.assigning.load(head, arrays)

    def _open_path(self) -> Path:
        return self._folder / NAME / f"{_OPEN}{self._number:08d}{SUFFIX}"

    def totals(self) -> dict[str, int]:
        """What was counted since the crawl began."""
        return {name: getattr(self, name) for name in _TOTALS}

    def begin_with(self, totals: Mapping[str, int]) -> None:
        """Count on from what others had counted."""
        for name in _TOTALS:
            setattr(self, name, totals.get(name, 0))

    def gauges(self) -> dict[str, int]:
        """What was sent, received, dropped, and what waits."""
        return {
            "sent": self.sent,
            "sent_bytes": self.sent_bytes,
            "batches": self.batches,
            "received": self.received,
            "not_ours": self.dropped,
            "not_sent": self.saved + sum(box.saved for box in self._outboxes),
            "strays": 0 if self.strays is None else len(self.strays),
            **({} if self.assigning is None else {"unassigned": len(self.assigning)}),
            "to_send": sum(self.waiting()),
            "unacknowledged": sum(1 for _ in self.unacknowledged()),
        }


def _pairs(pairs: Sequence[tuple[int, int]]) -> tuple[KeyColumn, KeyColumn]:
    found = np.array(pairs, np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1])


def read_batch(
    env: Env, path: Path
) -> tuple[list[str], UrlBatch, tuple[KeyColumn, KeyColumn], dict[int, Trail], dict[int, Cookies]]:
    """What is in a batch: for the scope, links, edges between domains, and the trails and cookies of links that redirects
    led to."""
    head, arrays = read_snapshot(env, path)
    trails = dict(Trails.pairs(np.frombuffer(arrays["trails"], np.uint64)))
    links, edges = UrlBatch.decode(arrays["links"]), edges_of(arrays["edges"])
    return head["scope"], links, edges, trails, cookies_in(head)


def check_batch(env: Env, path: Path) -> None:
    """Raise `StorageError` for what is no batch, though its checksum may be right: it may come from anybody."""
    if env.size(path) > _LARGEST:
        raise StorageError(f"{path} is larger than any batch")
    head, arrays = read_snapshot(env, path)
    try:
        links, _ = UrlBatch.decode(arrays["links"]), edges_of(arrays["edges"])
        if len(np.frombuffer(arrays["counts"], np.uint32)) != len(links):
            raise ValueError("a count for each link")
        for _ in Trails.pairs(np.frombuffer(arrays["trails"], np.uint64)):
            pass
        Standing.read(arrays), cookies_in(head), arrays["news"]
        if not all(isinstance(url, str) for url in head["scope"]):
            raise TypeError("URLs of the scope")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StorageError(f"{path} is no batch: {error!r}") from error


def scope_of(env: Env, path: Path) -> list[str]:
    """What a batch adds to the scope of the crawl."""
    return [str(url) for url in read_snapshot(env, path)[0]["scope"]]


def cookies_of(env: Env, path: Path) -> Cookies:
    """The cookies that redirects in a batch have set."""
    return [each for cookies in cookies_in(read_snapshot(env, path)[0]).values() for each in cookies]


def checksum_of(env: Env, path: Path) -> int:
    """The checksum of a file as `Received` has it."""
    return checksum(env.read(path))
