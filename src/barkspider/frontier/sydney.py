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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Instruction, Structure
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.gate import Gate, States
from barkspider.frontier.memory import load_origins, save_origins
from barkspider.frontier.sampling import sample
from barkspider.frontier.source import Found
from barkspider.storage.env import Env
from barkspider.storage.keyset import KeySet
from barkspider.storage.queue.disk_queue import DiskQueue
from barkspider.url.partition import slotted

_SLICE = 64  # pages of S looked at in one step: about a millisecond
_LOOK_AGAIN = 0.25  # seconds until S is searched again for free hosts when a slice of it held none


class Sydney:
    """A `Source`; see the module. One thread; its only I/O is the file of S.

    P is filled by links and refills; S is filled by pages with more than t new links and emptied by refills. Keys of
    seen URLs tell the slots of their domains (`url.partition`).
    """

    def __init__(self, settings: Settings, env: Env, folder: Path, gate: Gate, state: States) -> None:
        self._t, self._limit = settings.sydney.sample, settings.sydney.queue_limit
        self._refetch = settings.sydney.refetch
        self._gate, self._ready, self._counters = gate, gate.ready, gate.counters
        self._secondary = DiskQueue(env, folder, "queues/S", state=state("queues/S"))
        self._seen = KeySet()
        self._random = np.array([settings.seed], np.uint64)
        self._search_at = -math.inf  # when S may be searched for free hosts
        self._largest = 0
        self._revisits = 0

    @property
    def structures(self) -> Sequence[Structure]:
        """S."""
        return (self._secondary,)

    def save(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """See `Source`."""
        head = {"largest": self._largest, "revisits": self._revisits, "random": int(self._random[0])}
        return head, {"seen": self._seen.keys(), "origins": save_origins(self._ready)}

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """See `Source`."""
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
            "refetched": self._revisits,
        }

    def drums(self) -> dict[str, dict[str, int]]:
        """It has none."""
        return {}

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """It has none."""
        return []

    def waiting(self) -> bool:
        """Whether there is anything in S."""
        return len(self._secondary) > 0

    def validate(self) -> None:
        """Check the invariants."""
        self._secondary.validate()

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        self._secondary.close()

    def take(self, found: Sequence[Found], now: float) -> None:
        """Sample the links of pages; seeds and targets of redirects all go into P."""
        for page, links, target, barred in found:
            if page is None or target is not None:
                if len(links):
                    self._admit(links, now)
            else:
                self._refuse(barred)
                self._sample(page, links, now)

    def give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        """Refill P when it is empty, search S when nobody in P may be contacted."""
        back = self._gate.come_back(now)
        self._counters.deferred -= len(back)
        for row in back.rows():
            self._gate.put(row, now)
        unread = self._refill(now)
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
        return instructions, min(now if unread or drained else wake, self._gate.next_time())

    def _sample(self, page: UrlRow, links: UrlBatch, now: float) -> None:
        """Lines 7 to 12 of figure 2."""
        new = links.where(self._seen.missing(_keys(links)))
        chosen = sample(len(new), self._t, self._random)
        rest = new.where(~chosen)
        if len(rest):
            # With nothing in P the last place is for a link: else a full S would give back the same pages for ever.
            if self._queued() + (not self._primary()) >= self._limit:
                self._drop(len(rest))
            elif self._refetch:
                again = page._replace(flags=page.flags | Flag.REVISIT)
                self._secondary.append(UrlBatch.from_rows([again]).encode())
            else:
                self._secondary.append(rest.encode())
        self._admit(new.where(chosen), now)

    # ── the queues ─────────────────────────────────────────────────────────────────────────────

    def _primary(self) -> int:
        return self._counters.queued + self._counters.deferred

    def _queued(self) -> int:
        return self._primary() + len(self._secondary)

    def _admit(self, batch: UrlBatch, now: float) -> None:
        """Put new URLs into P and mark them as seen, as far as there is room."""
        room = max(self._limit - self._queued(), 0)
        if len(batch) > room:
            batch = batch.where(self._seen.missing(_keys(batch)))
            self._drop(max(len(batch) - room, 0))
            batch = batch.take(np.arange(min(room, len(batch))))
        new = batch.where(self._seen.add(_keys(batch)))
        for row in new.rows():
            self._counters.discovered += 1
            if self._gate.admits(row, now):
                self._gate.put(row, now)
        self._largest = max(self._largest, self._queued())

    def _refuse(self, batch: UrlBatch) -> None:
        """Links within a site that has shown too many duplicates are seen, and refused, if they are new."""
        count = int(self._seen.add(_keys(batch)).sum())
        if count:
            self._counters.discovered += count
            self._gate.refuse("site_duplicates", count)

    def _drop(self, count: int) -> None:
        self._counters.discovered += count
        self._counters.dropped += count

    def _refill(self, now: float) -> bool:
        """Move links from S to P while P is empty, at most t of each page (lines 13 to 16 of figure 2).

        Returns whether P is still empty and S is not: then there is more to do at once.
        """
        for _ in range(min(_SLICE, len(self._secondary))):
            if self._primary():
                return False
            stored = UrlBatch.decode(self._secondary.pop())
            if self._refetch:
                self._revisit(stored.rows()[0], now)
            else:
                new = stored.where(self._seen.missing(_keys(stored)))
                self._take_from(new, np.arange(len(new)), now)
        return not self._primary() and len(self._secondary) > 0

    def _searches(self, now: float) -> bool:
        return len(self._secondary) > 0 and now >= self._search_at and not self._refetch

    def _search(self, now: float) -> None:
        """P has URLs but none whose host may be contacted: move links to hosts that are free."""
        for _ in range(min(_SLICE, len(self._secondary))):
            block = self._secondary.pop()
            stored = UrlBatch.decode(block)
            free = {key for key in set(stored.host_key.tolist()) if self._ready.unoccupied(key, now)}
            if not free:
                self._secondary.append(block)
                continue
            new = stored.where(self._seen.missing(_keys(stored)))
            self._take_from(new, np.flatnonzero([key in free for key in new.host_key.tolist()]), now)

    def _take_from(self, stored: UrlBatch, candidates: npt.NDArray[np.intp], now: float) -> None:
        """At most t of the candidates go into P, all the other links back into S."""
        chosen = candidates[sample(len(candidates), self._t, self._random)]
        rest = np.setdiff1d(np.arange(len(stored)), chosen)
        if len(rest):
            self._secondary.append(stored.take(rest).encode())
        self._admit(stored.take(chosen), now)

    def _revisit(self, page: UrlRow, now: float) -> None:
        """Queue a page again for the links that were left: it counts as one more discovery."""
        self._revisits += 1
        self._counters.discovered += 1
        self._gate.put(page, now)


def _keys(batch: UrlBatch) -> npt.NDArray[np.uint64]:
    return slotted(batch.key, batch.pld_key)
