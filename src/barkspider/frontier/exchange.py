"""What processes that divide a crawl send each other: links to pages of others, and edges to their domains, in batches.

    others' ─ `sorting` ─► outbox of each ─ Sealed ─► batch (to, number) ─► another process ─ Received ─► its source

What is for others is collected; when it is time, a batch is asked for (`Seal`), and made when `Sealed` comes back. That is a
record of the journal, and so is all that enters it, so a batch is a function of the journal: after a crash the same batch is
made again, under the same number.

A batch is a file (`batches`). It stays, named by each checkpoint, until the other process has committed what it took from it.
The numbers of a sender are taken in order, each once; so whatever is sent twice counts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared, Received, Seal, Sealed
from barkspider.core.settings import Settings
from barkspider.frontier.batches import NAME, batch_name, checksum_of, inbox, read_batch
from barkspider.frontier.sorting import Sorting
from barkspider.frontier.source import Found
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import SUFFIX, read_snapshot, write_snapshot

_OPEN = "open-"  # the file of what is in no batch yet
_LARGE = 4_000_000  # bytes of links to one process: a batch is due, however few pages they are of
_TOTALS = ("batches", "sent", "sent_bytes", "received", "saved")


class Exchange:
    """See the module. A `Structure`; one thread: the driver's. Its I/O is its own files, and reading those of others."""

    name = NAME

    def __init__(
        self, settings: Settings, env: Env, folder: Path, sorting: Sorting, state: dict[str, Any] | None
    ) -> None:
        """`sorting` collects what is sent here; `state` is what the last checkpoint has."""
        self._settings, self._env, self._folder, self.sorting = settings.parallel, env, folder, sorting
        self._inbox, processes = inbox(folder, settings.parallel.part), settings.parallel.processes
        self._asked: set[int] = set()  # for whom a batch was asked for, and is not made yet
        self._pages = [0] * processes  # fetched when the last batch was made
        kept = state or {}
        self.sealed: list[int] = list(kept.get("sealed", [0] * processes))
        self.applied: list[int] = list(kept.get("applied", [0] * processes))
        self.acknowledged: list[int] = list(kept.get("acknowledged", [0] * processes))
        self.committed_applied, self.committed_sealed = list(self.applied), list(self.sealed)
        self.sent, self.received = int(kept.get("sent", 0)), int(kept.get("received", 0))  # URLs
        self.sent_bytes = int(kept.get("sent_bytes", 0))
        self.batches = int(kept.get("batches", sum(self.sealed)))
        self.saved = int(kept.get("saved", 0))  # URLs that were not sent because they are replicated
        sorting.dropped = int(kept.get("dropped", 0))
        self._sizes: dict[str, int] = {
            name.rpartition("/")[2]: size for name, size in kept.get("files", {}).items() if _OPEN not in name
        }
        self._number = int(kept.get("number", 0))
        self._unsynced: set[str] = set()  # batches that no checkpoint has
        self._prepared = list(self.applied), list(self.sealed)
        env.make_folder(folder / NAME)
        if state is not None:
            sorting.load(*read_snapshot(env, self._open_path()))

    # ── batches ────────────────────────────────────────────────────────────────────────────────

    def due(self, pages: int, is_idle: bool, now: float) -> list[Seal]:
        """The batches that are to be made now: so many pages were fetched, so much time is over, or nothing is left to do."""
        seals = []
        for to, box in enumerate(self.sorting.boxes):
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
        waiting = (box.since for to, box in enumerate(self.sorting.boxes) if to not in self._asked)
        return min(waiting, default=math.inf) + self._settings.interval

    @property
    def is_full(self) -> bool:
        """Whether others have so much to take in that nothing more should be found for them."""
        size = sum(self._sizes.values()) + sum(box.size for box in self.sorting.boxes)
        assigning = self.sorting.assigning
        return size > self._settings.outbox or (assigning is not None and assigning.is_full)

    def waiting(self) -> list[int]:
        """How many rows for each process are in no batch yet."""
        return [len(box) for box in self.sorting.boxes]

    def seal(self, outcome: Sealed, pages: int) -> None:
        """Make a batch of what was collected for a process."""
        to, number = outcome.asked.to, outcome.asked.number
        self._asked.discard(to)
        if number != self.sealed[to] + 1:
            raise StorageError(f"batch {number} for process {to} comes after {self.sealed[to]}")
        box, name = self.sorting.take_box(to), batch_name(to, number)
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
        batch = read_batch(self._env, path)
        self.sorting.learn(outcome.sender, batch)
        self.applied[outcome.sender] = outcome.number
        self.received += len(batch.links)
        standing = batch.standing if len(batch.standing) else None
        taken = Found(
            *(None, batch.links), edges=batch.edges, standing=standing, news=batch.news, counts=batch.counts
        )
        return [taken]

    def sync_inbox(self) -> None:
        """Make the names of batches that have arrived survive a power loss. Any thread."""
        self._env.sync_folder(self._inbox)

    def sizes(self, batch: Received) -> tuple[int, int, int, int]:
        """How much is in a batch that has arrived: URLs, the links that they stand for, edges, bytes."""
        path = self._inbox / batch_name(batch.sender, batch.number)
        found = read_batch(self._env, path)
        return len(found.counts), int(found.counts.sum()), len(found.edges[0]), self._env.size(path)

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
        collected = self.sorting.save()
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
            files = sizes | {path.name: write_snapshot(self._env, path, *collected())}
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

    def _open_path(self) -> Path:
        return self._folder / NAME / f"{_OPEN}{self._number:08d}{SUFFIX}"

    def totals(self) -> dict[str, int]:
        """What was counted since the crawl began."""
        return {"dropped": self.sorting.dropped, **{name: getattr(self, name) for name in _TOTALS}}

    def begin_with(self, totals: Mapping[str, int]) -> None:
        """Count on from what others had counted."""
        self.sorting.dropped = totals.get("dropped", 0)
        for name in _TOTALS:
            setattr(self, name, totals.get(name, 0))

    def gauges(self) -> dict[str, int]:
        """What was sent, received, dropped, and what waits."""
        sorting = self.sorting
        return {
            "sent": self.sent,
            "sent_bytes": self.sent_bytes,
            "batches": self.batches,
            "received": self.received,
            "not_ours": sorting.dropped,
            "not_sent": self.saved + sum(box.saved for box in sorting.boxes),
            "strays": 0 if sorting.strays is None else len(sorting.strays),
            **({} if sorting.assigning is None else {"unassigned": len(sorting.assigning)}),
            "to_send": sum(self.waiting()),
            "unacknowledged": sum(1 for _ in self.unacknowledged()),
        }
