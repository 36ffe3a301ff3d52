"""The Sydney strategy (Castillo, Nelli, Panconesi: Crawling the Web with Limited Memory).

P, the primary queue, is `Ready` with Q_W: URLs by host, fetched as politeness allows. Of a page's new links at
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
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Instruction, Structure
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.memory import load_origins, save_origins
from barkspider.frontier.polite import PoliteFrontier, States
from barkspider.frontier.politeness.hosts import Host
from barkspider.frontier.sampling import sample
from barkspider.storage.env import Env
from barkspider.storage.keyset import KeySet
from barkspider.storage.queue.disk_queue import DiskQueue

_SLICE = 64  # pages of S looked at in one step: about a millisecond
_LOOK_AGAIN = 0.25  # seconds until S is searched again for free hosts when a slice of it held none


class Sydney(PoliteFrontier):
    """A `Frontier`; see the module. One thread; its only I/O is the file of S.

    P is filled by links and refills and emptied by `step`; S is filled by pages with more than t new
    links and emptied by refills.
    """

    def __init__(
        self,
        settings: Settings,
        env: Env,
        folder: Path,
        *,
        state: States = lambda _: None,
        resumed: float | None = None,
    ) -> None:
        self._t, self._limit = settings.sydney.sample, settings.sydney.queue_limit
        self._secondary = DiskQueue(env, folder, "queues/S", state=state("queues/S"))
        self._seen = KeySet()
        self._random = np.array([settings.seed], np.uint64)
        self._search_at = -math.inf  # when S may be searched for free hosts
        self._largest = 0
        self._revisits = 0
        super().__init__(settings, env, folder, state, resumed)

    def structures(self) -> Sequence[Structure]:
        """P, S and Q_W."""
        return [*super().structures(), self._secondary]

    def _keep(self) -> tuple[dict[str, Any], dict[str, Any]]:
        head = {"largest": self._largest, "revisits": self._revisits, "random": int(self._random[0])}
        return head, {"seen": self._seen.keys(), "origins": save_origins(self._ready)}

    def _recalled(self, head: dict[str, Any], arrays: dict[str, bytes]) -> None:
        self._largest, self._revisits = int(head["largest"]), int(head["revisits"])
        self._random = np.array([head["random"]], np.uint64)
        self._seen.add(np.frombuffer(arrays["seen"], np.uint64))
        load_origins(self._ready, arrays["origins"])

    def gauges(self) -> dict[str, int]:
        """Sizes of P, S and the set of seen URLs, and the largest that P and S together ever were."""
        return {
            "primary": self._primary(),
            "secondary": len(self._secondary),
            "largest": self._largest,
            "seen": len(self._seen),
            "hosts": len(self._ready),
            "refetched": self._revisits,
        }

    def validate(self) -> None:
        """Check the invariants."""
        assert self.counters.balanced(), self.counters
        for part in (self._ready, self._secondary, self._delays):
            part.validate()

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        self._secondary.close()
        self._delays.close()

    def _waiting(self) -> bool:
        return bool(self._primary() or len(self._secondary))

    def _seeds(self, batch: UrlBatch) -> None:
        self._admit(batch)

    def _lead(self, target: UrlRow) -> None:
        self._admit(UrlBatch.from_rows([target]))

    def _back(self, batch: UrlBatch, now: float) -> None:
        self.counters.deferred -= len(batch)
        for row in batch.rows():
            self._put(row, now)

    def _give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        unread = self._refill()
        instructions = self._ready.take(now, room)
        wake = self._ready.next_time()
        if not instructions and self._searches(now):
            self._search(now)
            instructions = self._ready.take(now, room)
            if not instructions:
                self._search_at = now + _LOOK_AGAIN
            wake = min(self._ready.next_time(), self._search_at)
        # What was taken may all have been refused by robots.txt: then no outcome comes that would call us.
        drained = not self._primary() and not self._ready.under_way and len(self._secondary) > 0
        return instructions, now if unread or drained else wake

    def _links(self, page: UrlRow, host: Host, links: UrlBatch) -> None:
        """Lines 7 to 12 of figure 2."""
        new, repeated = self._follows(page, host, links.where(self._seen.missing(links.key)))
        self._refuse(repeated, "site_duplicates")
        chosen = sample(len(new), self._t, self._random)
        rest = new.where(~chosen)
        if len(rest):
            # With nothing in P the last place is for a link: else a full S would give back the same pages for ever.
            if self._queued() + (not self._primary()) >= self._limit:
                self._drop(len(rest))
            elif self._settings.sydney.refetch:
                again = page._replace(flags=page.flags | Flag.REVISIT)
                self._secondary.append(UrlBatch.from_rows([again]).encode())
            else:
                self._secondary.append(rest.encode())
        self._admit(new.where(chosen))

    # ── the queues ─────────────────────────────────────────────────────────────────────────────

    def _primary(self) -> int:
        return self.counters.queued + self.counters.deferred

    def _queued(self) -> int:
        return self._primary() + len(self._secondary)

    def _admit(self, batch: UrlBatch) -> None:
        """Put new URLs into P and mark them as seen, as far as there is room."""
        room = max(self._limit - self._queued(), 0)
        if len(batch) > room:
            batch = batch.where(self._seen.missing(batch.key))
            self._drop(max(len(batch) - room, 0))
            batch = batch.take(np.arange(min(room, len(batch))))
        new = batch.where(self._seen.add(batch.key))
        for row in new.rows():
            self.counters.discovered += 1
            if self._admits(row):
                self._put(row, self._now)
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
            if self._primary():
                return False
            stored = UrlBatch.decode(self._secondary.pop())
            if self._settings.sydney.refetch:
                self._revisit(stored.rows()[0])
            else:
                new = stored.where(self._seen.missing(stored.key))
                self._take_from(new, np.arange(len(new)))
        return not self._primary() and len(self._secondary) > 0

    def _searches(self, now: float) -> bool:
        return len(self._secondary) > 0 and now >= self._search_at and not self._settings.sydney.refetch

    def _search(self, now: float) -> None:
        """P has URLs but none whose host may be contacted: move links to hosts that are free."""
        for _ in range(min(_SLICE, len(self._secondary))):
            block = self._secondary.pop()
            stored = UrlBatch.decode(block)
            free = {key for key in set(stored.host_key.tolist()) if self._ready.unoccupied(key, now)}
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
        self._put(page, self._now)
