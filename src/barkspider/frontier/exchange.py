"""What processes that divide a crawl send each other: links to pages of others, and edges to their domains.

    found ─► split ─ own ─► source
               └ others' ─► outbox of each ─ Sealed ─► batch (to, number) ─► another process ─ Received ─► its source

A process owns a range of slots, and with it whole domains (`url.partition`). What is for others is collected; when it is
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

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared, Received, Seal, Sealed, Trail
from barkspider.core.records import Flag
from barkspider.core.settings import Settings
from barkspider.frontier.modes import SEND, bundle, rule
from barkspider.frontier.source import Found
from barkspider.frontier.trails import Trails
from barkspider.storage.env import Env
from barkspider.storage.format import checksum
from barkspider.storage.store.snapshot import SUFFIX, read_snapshot, write_snapshot
from barkspider.url.partition import KeyColumn, by_hash, slotted

NAME, MAIL = "exchange", "mail"
_OPEN = "open-"  # the file of what is in no batch yet
_LARGE = 4_000_000  # bytes of links to one process: a batch is due, however few pages they are of
_NO_EDGES = np.empty((2, 0), np.uint64)


def batch_name(process: int, number: int) -> str:
    """The file of a batch: in the folder of its sender by whom it is for, in that of its receiver by who sent it."""
    return f"{process:04d}-{number:08d}{SUFFIX}"


def inbox(folder: Path, part: int) -> Path:
    """Where batches for a process arrive, by the folder of any part of the job."""
    return folder.parent / MAIL / f"{part:04d}"


class Outbox:
    """What is collected for one process, in RAM: links, edges, trails of redirects, what belongs to the scope from now on."""

    def __init__(self) -> None:
        self.links: list[UrlBatch] = []
        self.edges: list[tuple[KeyColumn, KeyColumn]] = []
        self.trails: dict[int, Trail] = {}
        self.scope: list[str] = []  # what redirects of seeds have added to it
        self.size = 0  # bytes of links
        self.since = math.inf  # when the first of it came

    def __len__(self) -> int:
        return sum(map(len, self.links)) + len(self.scope)

    def put(self, links: UrlBatch, sources: KeyColumn, now: float) -> None:
        """Take links, and the domains of their pages, one each or none."""
        self.links.append(links)
        self.edges.append((sources, links.pld_key[: len(sources)]))
        self.size += int(links.packed.lengths().sum())
        self.since = min(self.since, now)

    def __copy__(self) -> Outbox:
        """What is in it now, while more comes into the other."""
        other = Outbox()
        other.links, other.edges, other.scope = list(self.links), list(self.edges), list(self.scope)
        other.trails, other.size, other.since = dict(self.trails), self.size, self.since
        return other

    def save(self) -> dict[str, Any]:
        """All of it as it came, for `load`: then the same batch is made of it."""
        trails = Trails(len(self.trails))
        for key, trail in self.trails.items():
            trails.put(key, trail)
        pairs = np.concatenate([np.stack(edge) for edge in self.edges] or [_NO_EDGES], axis=1)
        return {"links": UrlBatch.join(self.links).encode(), "edges": pairs, "trails": trails.save()}

    def batch(self) -> dict[str, Any]:
        """All of it as others get it: equal links once, with their number, and different edges."""
        raw = self.save()
        links = UrlBatch.join(self.links)
        counts = bundle(slotted(links.key, links.pld_key))
        first, edges = counts > 0, raw["edges"]
        edges = np.ascontiguousarray(np.unique(edges[:, edges[0] != edges[1]], axis=1))
        return raw | {"links": links.where(first).encode(), "counts": counts[first], "edges": edges}

    def load(self, saved: Mapping[str, bytes], scope: Sequence[str], now: float) -> None:
        """Take what `save` gave."""
        links = UrlBatch.decode(saved["links"])
        self.links, self.edges = [links], [_edges(saved["edges"])]
        self.trails = dict(Trails.pairs(np.frombuffer(saved["trails"], np.uint64)))
        self.scope = list(scope)
        self.size, self.since = int(links.packed.lengths().sum()), now


class Exchange:
    """See the module. A `Structure`; one thread: the driver's. Its I/O is its own files, and reading those of others."""

    name = NAME

    def __init__(
        self, settings: Settings, env: Env, folder: Path, trails: Trails, state: dict[str, Any] | None
    ) -> None:
        self._settings = settings.parallel
        self._env, self._folder, self._trails = env, folder, trails
        self._part, self._processes = settings.parallel.part, settings.parallel.processes
        self._inbox = inbox(folder, self._part)
        self.sends = rule(settings.parallel.mode)[0, 0] == SEND
        self._outboxes = [Outbox() for _ in range(self._processes)]
        self._asked: set[int] = set()  # for whom a batch was asked for, and is not made yet
        self._pages = [0] * self._processes  # fetched when the last batch was made
        kept = state or {}
        self.sealed: list[int] = list(kept.get("sealed", [0] * self._processes))
        self.applied: list[int] = list(kept.get("applied", [0] * self._processes))
        self.acknowledged: list[int] = list(kept.get("acknowledged", [0] * self._processes))
        self.committed_applied = list(self.applied)
        self.sent, self.received = int(kept.get("sent", 0)), int(kept.get("received", 0))  # URLs
        self.sent_bytes = int(kept.get("sent_bytes", 0))
        self.dropped = int(kept.get("dropped", 0))  # by a firewall
        self._sizes: dict[str, int] = {
            name.rpartition("/")[2]: size for name, size in kept.get("files", {}).items() if _OPEN not in name
        }
        self._number = int(kept.get("number", 0))
        self._unsynced: set[str] = set()  # batches that no checkpoint has
        self._prepared = list(self.applied)
        env.make_folder(folder / NAME)
        if state is not None:
            self._recall()

    # ── what is found ──────────────────────────────────────────────────────────────────────────

    def own(self, batch: UrlBatch) -> UrlBatch:
        """The URLs of a batch that every process is given, such as seeds, that are this one's."""
        return batch.where(by_hash(batch.pld_key, self._processes) == self._part)

    def split(self, found: Sequence[Found], now: float) -> list[Found]:
        """What is found without the links to pages of others, which are collected for these."""
        links = UrlBatch.join([each.links for each in found])
        owners = by_hash(links.pld_key, self._processes)
        if (owners == self._part).all():
            return list(found)
        own, end = [], 0
        for each in found:
            start, end = end, end + len(each.links)
            others = owners[start:end]
            mine = others == self._part
            if mine.all():
                own.append(each)
                continue
            own.append(each._replace(links=each.links.where(mine)))
            if self.sends:
                self._collect(each, others, now)
            else:
                self.dropped += int((~mine).sum())
        return own

    def _collect(self, found: Found, owners: Any, now: float) -> None:
        for to in np.unique(owners).tolist():
            if to == self._part:
                continue
            links, box = found.links.where(owners == to), self._outboxes[to]
            # A redirect makes no edge: it recommends nobody. Its trail goes with it.
            is_edge = found.page is not None and found.target is None
            domain = found.page.pld_key if found.page is not None else 0
            box.put(links, np.full(len(links) if is_edge else 0, domain, np.uint64), now)
            if found.target is not None:
                box.trails[found.target.key] = self._trails.pop(found.target.key)
        if found.target is not None and found.target.flags & Flag.SEED:
            for to, box in enumerate(self._outboxes):
                if to != self._part:
                    box.scope.append(found.target.url.decode())
                    box.since = min(box.since, now)

    # ── batches ────────────────────────────────────────────────────────────────────────────────

    def due(self, pages: int, is_idle: bool, now: float) -> list[Seal]:
        """The batches that are to be made now: so many pages were fetched, so much time is over, or nothing is left to do."""
        seals = []
        for to, box in enumerate(self._outboxes):
            if to in self._asked or not len(box):
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
        return sum(self._sizes.values()) + sum(box.size for box in self._outboxes) > self._settings.outbox

    @property
    def is_empty(self) -> bool:
        """Whether nothing is collected for others that is in no batch."""
        return not any(map(len, self._outboxes))

    def seal(self, outcome: Sealed, pages: int) -> None:
        """Make a batch of what was collected for a process."""
        to, number = outcome.asked.to, outcome.asked.number
        self._asked.discard(to)
        if number != self.sealed[to] + 1:
            raise StorageError(f"batch {number} for process {to} comes after {self.sealed[to]}")
        box, self._outboxes[to] = self._outboxes[to], Outbox()
        name = batch_name(to, number)
        arrays = box.batch()
        self.sent += len(arrays["counts"])
        path = self._folder / NAME / name
        self._sizes[name] = write_snapshot(self._env, path, {"scope": box.scope}, arrays, sync=False)
        self._unsynced.add(name)
        self.sent_bytes += self._sizes[name]
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
        _, arrays = read_snapshot(self._env, path)
        links = UrlBatch.decode(arrays["links"])
        for key, trail in Trails.pairs(np.frombuffer(arrays["trails"], np.uint64)):
            self._trails.put(key, trail)
        self.applied[outcome.sender] = outcome.number
        self.received += len(links)
        return [Found(None, links, edges=_edges(arrays["edges"]))]

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
        boxes = {to: copy(box) for to, box in enumerate(self._outboxes) if len(box)}
        path, sizes, unsynced = self._open_path(), dict(self._sizes), self._unsynced
        self._unsynced, self._prepared = set(), list(self.applied)
        state = {
            "number": self._number,
            "sealed": list(self.sealed),
            "applied": list(self.applied),
            "acknowledged": list(self.acknowledged),
            "sent": self.sent,
            "sent_bytes": self.sent_bytes,
            "received": self.received,
            "dropped": self.dropped,
        }

        def describe() -> dict[str, Any]:
            self.sync(unsynced & sizes.keys())
            arrays = {f"{to} {name}": data for to, box in boxes.items() for name, data in box.save().items()}
            scopes = {str(to): box.scope for to, box in boxes.items()}
            files = sizes | {path.name: write_snapshot(self._env, path, {"scope": scopes}, arrays)}
            return {**state, "files": {f"{NAME}/{name}": size for name, size in files.items()}}

        return describe

    def sync(self, names: Iterable[str]) -> None:
        """Make batches survive a power loss. Any thread."""
        for name in names:
            self._env.sync(self._folder / NAME / name)

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self.committed_applied = self._prepared
        kept = {*self._sizes, self._open_path().name}  # those that were made since, too
        for name in self._env.list(self._folder / NAME):
            if name not in kept:
                self._env.remove(self._folder / NAME / name)

    def _recall(self) -> None:
        head, arrays = read_snapshot(self._env, self._open_path())
        for number, scope in head["scope"].items():
            saved = {name: arrays[f"{number} {name}"] for name in ("links", "edges", "trails")}
            self._outboxes[int(number)].load(saved, scope, 0.0)

    def _open_path(self) -> Path:
        return self._folder / NAME / f"{_OPEN}{self._number:08d}{SUFFIX}"

    def gauges(self) -> dict[str, int]:
        """What was sent, received, dropped, and what waits."""
        return {
            "sent": self.sent,
            "sent_bytes": self.sent_bytes,
            "batches": sum(self.sealed),
            "received": self.received,
            "not_ours": self.dropped,
            "to_send": sum(map(len, self._outboxes)),
            "unacknowledged": sum(1 for _ in self.unacknowledged()),
        }


def _edges(saved: bytes) -> tuple[KeyColumn, KeyColumn]:
    sources, targets = np.frombuffer(saved, np.uint64).reshape(2, -1)
    return sources, targets


def scope_of(env: Env, path: Path) -> list[str]:
    """What a batch adds to the scope of the crawl."""
    return [str(url) for url in read_snapshot(env, path)[0]["scope"]]


def checksum_of(env: Env, path: Path) -> int:
    """The checksum of a file as `Received` has it."""
    return checksum(env.read(path))
