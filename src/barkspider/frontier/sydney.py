"""The Sydney strategy (Castillo, Nelli, Panconesi: Crawling the Web with Limited Memory).

    links ─ at most t of a page ─► P ─ in order ─► Ready, Q_W ─► fetch
              └─ the others ─► S ─ when P is empty ─┘

P, the primary queue, is a queue on disk and behind it `Ready` with Q_W: URLs go there in their order as fetchers are free,
and wait for their hosts. Of a page's new links at most t, chosen at random, go into P; the others are written to S, the
secondary queue, as one entry a page. When P is empty and nothing is under way, S is emptied into P: each page that is
stored is looked at as if it had been fetched again. A link in S is not marked as seen, so most have been found elsewhere
by the time their page comes up, and S stays small (section 3.1). `sampling` says what goes where, also within a limit of
P and S together (section 3.3); what finds no place is dropped, counted, and not marked as seen, so it may come back later.

Politeness makes P wait where the paper's has no reason to: a fetcher may be idle while P has URLs, of hosts that must be
left alone, or P is empty and others are still being fetched. Then S is searched for links to hosts that are free, and
gives one a host, no more than can be fetched at once; but only while P and S are smaller than they have been, because each
such page brings in links that had not come up yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Instruction, Structure
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.core.texts import Texts
from barkspider.frontier.decisions import QUEUE_FULL, SAMPLE, SITE_DUPLICATES
from barkspider.frontier.gate import Gate, Saved, States
from barkspider.frontier.inquiries import keys_of
from barkspider.frontier.lots import LEFT as LEFT_LOT
from barkspider.frontier.lots import Lot
from barkspider.frontier.memory import load_origins, save_origins
from barkspider.frontier.ownership import slot_of
from barkspider.frontier.sampling import LEFT, LOST, TAKEN, place_all
from barkspider.frontier.source import Found
from barkspider.model.budgets import Distribution
from barkspider.storage.env import Env
from barkspider.storage.keyset import KeySet
from barkspider.storage.queue.disk_queue import DiskQueue

_SLICE = 64  # pages of S looked at in one step: about a millisecond
_FED = 2_000  # URLs that go from the queue of P to `Ready` in one step: some ten milliseconds
_URLS_A_SLOT = (
    40  # URLs in `Ready` for each request that may be in flight, as many as hosts are left alone meanwhile
)
_SEEN, _PRIMARY = "seen", "P"  # kinds of lots
_KEYS = 1 << 16  # in a lot
_SHRUNK = 0.9  # S is searched while P and S have less than this of their largest size: docs/simulation.md
_LOOK_AGAIN = 0.25  # seconds until S is searched again for free hosts when a slice of it held none


class Sydney:
    """A `Source`; see the module. One thread; its only I/O are the files of P and S.

    P is filled by links and by S; S is filled by pages with more than t new links and emptied into P. Keys of
    seen URLs tell their slots (`url.partition`).
    """

    def __init__(self, settings: Settings, env: Env, folder: Path, gate: Gate, state: States) -> None:
        self._t, self._limit = settings.sydney.sample, settings.sydney.queue_limit
        self._keeps, self._refetch = settings.sydney.secondary, settings.sydney.refetch
        self._gate, self._ready, self._counters = gate, gate.ready, gate.counters
        self._most_ready = settings.fetch.in_flight * max(
            _URLS_A_SLOT, 4 * int(settings.politeness.host_delay)
        )
        self._queue = DiskQueue(env, folder, "queues/P", state=state("queues/P"))
        self._secondary = DiskQueue(env, folder, "queues/S", state=state("queues/S"))
        self._emptying = 0  # pages of S that belong to P since that was empty
        self._seen, self._slot_of = KeySet(), slot_of(settings.parallel)
        self._random = np.array([settings.seed], np.uint64)
        self._search_at = -math.inf  # when S may be searched for free hosts
        self._largest = 0
        self._revisits = 0

    @property
    def structures(self) -> Sequence[Structure]:
        """P, as far as it is not in `Ready` and Q_W, and S."""
        return (self._queue, self._secondary)

    def save(self) -> Saved:
        """See `Source`."""
        head = {
            "largest": self._largest,
            "revisits": self._revisits,
            "random": int(self._random[0]),
            "emptying": self._emptying,
        }
        seen, origins = self._seen.keys(), save_origins(self._ready)
        return lambda: (head, {"seen": seen, "origins": origins()})

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """See `Source`."""
        self._largest, self._revisits = int(head["largest"]), int(head["revisits"])
        self._random = np.array([head["random"]], np.uint64)
        self._emptying = int(head.get("emptying", 0))  # which jobs of older versions do not have
        self._seen.add(np.frombuffer(arrays["seen"], np.uint64))
        load_origins(self._ready, arrays["origins"])

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
        """Sizes of P, S and the set of seen URLs, and the largest that P and S together ever were."""
        return {
            "primary": self._primary(),
            "secondary": len(self._secondary),
            "largest": self._largest,
            "seen": len(self._seen),
            "refetched": self._revisits,
        }

    def queues(self) -> dict[str, int]:
        """See `core.events.Frontier`."""
        return {"P": self._primary(), "S": len(self._secondary)}

    def traffic(self) -> dict[str, dict[str, Any]]:
        """It has no part that is counted."""
        return {}

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """It has none."""
        return []

    def waiting(self) -> bool:
        """Whether there is anything in S."""
        return len(self._secondary) > 0

    def validate(self) -> None:
        """Check the invariants."""
        self._queue.validate()
        self._secondary.validate()
        assert len(self._queue) <= self._counters.deferred
        assert 0 <= self._emptying <= len(self._secondary)

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        self._queue.close()
        self._secondary.close()

    # ── for a crawl that is divided anew ───────────────────────────────────────────────────────

    def complete(self, now: float) -> None:  # noqa: ARG002
        """See `Source`: nothing is ever being found out. What was adopted counts as the largest that there was."""
        self._largest = max(self._largest, self._size())

    def lots(self) -> Iterator[Lot]:
        """See `Source`: what was seen, P, and S, whose pages fall apart into the links of each process."""
        for keys in self._known():
            yield Lot(_SEEN, keys)
        while len(self._queue):
            yield Lot.of(_PRIMARY, UrlBatch.checked(Texts.from_arrow(self._queue.pop_batch(_FED))))
        while len(self._secondary):
            yield Lot.of(LEFT_LOT, UrlBatch.decode(self._secondary.pop()))

    def adopt(self, lot: Lot) -> None:
        """See `Source`."""
        if lot.kind == _SEEN:
            self._know(lot.keys)
        elif lot.kind == _PRIMARY:
            self._queue.append_batch(lot.urls.packed.to_arrow())
        else:
            self._secondary.append(lot.urls.encode())

    def _known(self) -> Iterator[npt.NDArray[np.uint64]]:
        keys = self._seen.keys()
        yield from (keys[start : start + _KEYS] for start in range(0, len(keys), _KEYS))

    def _know(self, keys: npt.NDArray[np.uint64]) -> None:
        self._seen.add(keys)

    # ── what comes in ──────────────────────────────────────────────────────────────────────────

    def take(self, found: Sequence[Found], now: float) -> None:
        """Sample the links of pages; a target of a redirect goes into P, and so do seeds, or into S if they are too many."""
        for each in found:
            if len(each.barred):
                self._refuse(each.barred)
        self._put(
            [
                (each.page, each.links, self._sample_of(each), self._keeps and each.target is None)
                for each in found
            ],
            now,
        )

    def give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        """Empty S into P when that is empty, search S when nobody in P may be contacted."""
        if self._has_space():
            back = self._gate.come_back(now)
            self._counters.deferred -= len(back)
            for row in back.rows():
                self._gate.put(row, now)
        self._empty(now)
        if self._emptying:  # what its pages give comes after all of them
            return [], now
        instructions, fed = self._feed(now, room)
        wake = self._ready.next_time()
        if not instructions and self._may_search(now):
            self._search(now, room)
            instructions = self._ready.take(now, room)
            if not instructions:
                self._search_at = now + _LOOK_AGAIN
            wake = min(self._ready.next_time(), self._search_at)
        # What was taken may all have been refused by robots.txt: then no outcome comes that would call us.
        if fed >= _FED or (len(self._secondary) and self._is_drained()):
            wake = now
        return instructions, min(wake, self._gate.next_time()) if self._has_space() else wake

    def _feed(self, now: float, room: int) -> tuple[list[Instruction], int]:
        """At most `room` instructions; URLs go from the queue into `Ready` until it gives as many, or is full; how many."""
        instructions, fed = self._ready.take(now, room), 0
        while len(instructions) < room and fed < _FED and len(self._queue) and self._has_space():
            wanted = room - len(instructions)
            batch = UrlBatch.checked(Texts.from_arrow(self._queue.pop_batch(wanted)))
            self._counters.deferred -= len(batch)
            for row in batch.rows():
                self._gate.put(row, now)
            fed += len(batch)
            instructions += self._ready.take(now, wanted)
        return instructions, fed

    def _has_space(self) -> bool:
        return self._counters.queued < self._most_ready

    def _keys(self, batch: UrlBatch) -> npt.NDArray[np.uint64]:
        return keys_of(batch, self._slot_of)

    # ── the queues ─────────────────────────────────────────────────────────────────────────────

    def _primary(self) -> int:
        """The size of P, without what an earlier run has fetched already."""
        counters = self._counters
        return max(counters.queued + counters.deferred - counters.ahead, 0)

    def _size(self) -> int:
        """The size of P and S together."""
        return self._primary() + len(self._secondary)

    def _held(self) -> int:
        """The places that P takes: also those of pages under way, or their links would find others' there."""
        return self._primary() + self._counters.in_flight

    def _is_drained(self) -> bool:
        return not (self._counters.queued or self._counters.deferred or self._ready.under_way)

    def _sample_of(self, found: Found) -> int:
        """How many links to take at most, 0 for all; of seeds as many as find a place beside the others in S."""
        if found.page is not None:
            return self._t if found.target is None else 0
        room = self._limit - self._held() - len(self._secondary)
        return 0 if len(found.links) <= room else max(room - 1, 1)

    def _put(self, pages: Sequence[tuple[UrlRow | None, UrlBatch, int, bool]], now: float) -> None:
        """Pages with their links, how many of these to take at most, and whether the others may go into S."""
        links = UrlBatch.join([batch for _, batch, _, _ in pages])
        if not len(links):
            return
        keys = self._keys(links)
        table, shift = self._seen.lend(len(keys))
        counts = np.array([len(batch) for _, batch, _, _ in pages])
        # What comes out of S has given up its place; a page that was fetched has kept it until now.
        frees = np.array([page is not None for page, *_ in pages])
        fates, largest = place_all(
            table,
            shift,
            keys,
            counts,
            np.array([sample for *_, sample, _ in pages]),
            np.array([keeps for *_, keeps in pages]),
            frees,
            self._held() + self._emptying + int(frees.sum()),
            len(self._secondary) - self._emptying,
            self._limit,
            self._random,
        )
        taken, left = fates == TAKEN, np.flatnonzero(fates == LEFT)
        self._seen.returned(int(taken.sum()))
        self._gate.decisions.drop(links, QUEUE_FULL, fates == LOST)
        if len(left):
            rest, start = links.take(left), 0
            self._gate.decisions.hold_back(rest, SAMPLE)
            for (page, *_), stop in zip(
                pages, np.searchsorted(left, np.cumsum(counts)).tolist(), strict=True
            ):
                if stop > start:
                    self._leave(page, rest.slice(start, stop))
                start = stop
        if taken.any():
            self._admit(links.where(taken), now)
        self._largest = max(self._largest, largest - self._counters.in_flight)

    def _leave(self, page: UrlRow | None, left: UrlBatch) -> None:
        """An entry of S: the links that are left of a page, or the page itself if it is to be fetched again."""
        if self._refetch and page is not None:
            left = UrlBatch.from_rows([page._replace(flags=page.flags | Flag.REVISIT)])
        self._secondary.append(left.encode())

    def _admit(self, new: UrlBatch, now: float) -> None:
        """Put URLs into P that are marked as seen."""
        self._counters.discovered += len(new)
        if self._gate.shares:
            new = UrlBatch.from_rows([row for row in new.rows() if self._gate.admits(row, now)])
        self._queue.append_batch(new.packed.to_arrow())
        self._counters.deferred += len(new)

    def _refuse(self, batch: UrlBatch) -> None:
        """Links within a site that has shown too many duplicates are seen, and refused, if they are new."""
        new = batch.where(self._mark(self._keys(batch)))
        if len(new):
            self._counters.discovered += len(new)
            self._gate.decisions.refuse_all(new, SITE_DUPLICATES)

    def _mark(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Mark as seen; which of them were not."""
        return self._seen.add(keys)

    # ── S ──────────────────────────────────────────────────────────────────────────────────────

    def _empty(self, now: float) -> None:
        """S becomes P when that is empty (lines 13 to 16 of figure 2): its pages are looked at again, some at a time."""
        if self._is_drained() and not self._emptying:
            self._emptying = len(self._secondary)
        for _ in range(min(_SLICE, self._emptying)):
            self._emptying -= 1
            entry = UrlBatch.decode(self._secondary.pop())
            if entry.flags[0] & Flag.REVISIT:
                self._revisit(entry)
            else:
                self._look_at(entry, now)

    def _look_at(self, entry: UrlBatch, now: float) -> None:
        """The links that are left of a page of S, as if it had been fetched again."""
        self._put([(None, entry, self._t, True)], now)

    def _may_search(self, now: float) -> bool:
        shrunk = self._size() < _SHRUNK * self._largest
        return len(self._secondary) > 0 and now >= self._search_at and shrunk

    def _search(self, now: float, room: int) -> None:
        """No host of P may be contacted: take links to hosts that are free from some pages of S, one a host."""
        for _ in range(min(_SLICE, len(self._secondary))):
            if room <= 0 or self._held() + len(self._secondary) >= self._limit:
                return
            self._emptying = max(self._emptying - 1, 0)
            block = self._secondary.pop()
            entry = UrlBatch.decode(block)
            hosts = np.unique(entry.host_key)
            free = [self._ready.unoccupied(key, now) for key in hosts.tolist()]
            if not any(free):
                self._secondary.append(block)
            elif entry.flags[0] & Flag.REVISIT:
                self._revisits += 1
                self._counters.discovered += 1
                self._gate.put(entry.rows()[0], now)
                room -= 1
            else:
                room -= self._take_from(entry, hosts[free], room, now)

    def _take_from(self, entry: UrlBatch, free: npt.NDArray[np.uint64], room: int, now: float) -> int:
        """Of an entry that was taken from S, links to free hosts go into P, one a host, the others back; how many went."""
        new = entry.where(self._seen.missing(self._keys(entry)))
        hosts, firsts = np.unique(new.host_key, return_index=True)
        places = self._limit - self._held() - len(self._secondary) - 1  # one is for the entry
        chosen = np.zeros(len(new), np.bool_)
        chosen[firsts[np.isin(hosts, free)][: min(room, places)]] = True
        if not chosen.all():
            self._secondary.append(new.where(~chosen).encode())
        if chosen.any():
            taken = new.where(chosen)
            self._mark(self._keys(taken))
            self._counters.discovered += len(taken)
            for row in taken.rows():
                if self._gate.admits(row, now):
                    self._gate.put(row, now)
        self._largest = max(self._largest, self._size())
        return int(chosen.sum())

    def _revisit(self, page: UrlBatch) -> None:
        """Queue a page again for the links that were left: it counts as one more discovery."""
        self._revisits += 1
        self._counters.discovered += 1
        self._counters.deferred += 1
        self._queue.append_batch(page.packed.to_arrow())
