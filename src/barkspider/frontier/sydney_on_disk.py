"""The Sydney strategy with its set of seen URLs on disk, so that its memory is bounded however many there are.

    links ─► N, until a merge has told which are new ─ at most t of a page ─► P ─► fetch
             ▲                                        └─ the others ─► S ─┐
             └────────────────────────────────────────────────────────────┘

It decides as `sydney` does, page by page in the order in which they were fetched; only later, since `inquiries` answers for
many pages at once. What waits in N keeps its place: a page that was fetched, and a page of S that is looked at again. P is a
queue, so what its pages bring in comes up in the same order as if it had been put there at once: with one request at a time
the crawl is the same one.

A merge begins when a round is full, or when fetchers are idle and P has nothing for them; while something is still being
fetched no more than a fifth of the time goes into these, and there is one a second at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.events import Instruction, Structure
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.gate import Gate, Saved, States
from barkspider.frontier.inquiries import Asked, Inquiries
from barkspider.frontier.source import Found
from barkspider.frontier.sydney import Sydney
from barkspider.storage.env import Env

# What an entry of N is: seeds, links of a page, the target of a redirect, links that are barred, a page of S that is looked
# at because P is empty, and one that is searched for links to free hosts. The last two come from S; with the pages that were
# fetched they keep a place.
_SEEDS, _BARRED, _PAGE, _TARGET, _STORED, _SEARCHED = range(6)
_KINDS = 6
_FETCHED = UrlRow(0, 0, 0, 0, 0, 0, 0, b"")  # stands for a page that will not be fetched again
_SEEDS_AT_ONCE = 10_000  # in an entry
_SLICE = 256  # entries placed in one step: some ten milliseconds
_RESTS, _LEAST_REST = 4.0, 1.0  # between merges for idle fetchers: times as long as one took, and seconds
_LOOK_AGAIN = 0.02  # seconds until a merge that runs is looked at again


class SydneyOnDisk(Sydney):
    """A `Source`; see the module. N is filled with what was found and from S, and emptied into P and S."""

    def __init__(
        self, settings: Settings, env: Env, folder: Path, gate: Gate, state: States, background: bool
    ) -> None:
        super().__init__(settings, env, folder, gate, state)
        self._asked = Inquiries(env, folder, settings.memory, state, background, self._slot_of)
        self._seen = self._asked.recent
        self._waiting = [0] * _KINDS  # entries of N by what they are
        self._began: float | None = None  # when the merge began that runs
        self._rests_until = -math.inf

    @property
    def structures(self) -> Sequence[Structure]:
        """Those of P and S, N and the DRUM."""
        return (*super().structures, *self._asked.structures)

    def save(self) -> Saved:
        """See `Source`."""
        saved, (asked, more), waiting = super().save(), self._asked.save(), list(self._waiting)

        def joined() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
            head, arrays = saved()
            return {**head, "inquiries": asked, "waiting": waiting}, {**arrays, **more}

        return joined

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """See `Source`."""
        super().load(head, arrays)
        self._asked.load(head["inquiries"], arrays)
        self._waiting = [int(count) for count in head["waiting"]]

    def queues(self) -> dict[str, int]:
        """See `core.events.Frontier`."""
        return {**super().queues(), "N": len(self._asked)}

    def gauges(self) -> dict[str, int]:
        """Those of `Sydney`, and how many pages wait in N."""
        return {**super().gauges(), "seen": self._asked.seen, "unchecked": len(self._asked)}

    def traffic(self) -> dict[str, dict[str, Any]]:
        """That of its DRUM."""
        return {"drum": {"seen": self._asked.traffic()}}

    def waiting(self) -> bool:
        """Whether there is anything in S or N."""
        return len(self._asked) > 0 or super().waiting()

    def validate(self) -> None:
        """Check the invariants."""
        super().validate()
        self._asked.validate()
        assert min(self._waiting) >= 0
        assert sum(self._waiting) == len(self._asked)
        assert self._seen is self._asked.recent

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        super().close()
        self._asked.close()

    def complete(self, now: float) -> None:
        """See `Source`: nothing waits in N, and Z has all that was seen."""
        while len(self._asked) or self._asked.unmerged or not self._asked.is_open:
            if self._asked.is_open:
                self._begin(now)
            self._asked.wait()
            self._place(now, 0)
        super().complete(now)

    def _known(self) -> Iterator[npt.NDArray[np.uint64]]:
        return self._asked.known()

    def _know(self, keys: npt.NDArray[np.uint64]) -> None:
        self._asked.know(keys)

    def take(self, found: Sequence[Found], now: float) -> None:  # noqa: ARG002
        """Ask which of the links are new."""
        entries = []
        for each in found:
            if len(each.barred):
                entries.append(Asked(_BARRED, NO_URLS, each.barred))
            if each.page is not None:
                kind = _PAGE if each.target is None else _TARGET
                page = UrlBatch.from_rows([each.page]) if self._refetch else NO_URLS
                entries.append(Asked(kind, page, each.links))
                continue
            for first in range(0, len(each.links), _SEEDS_AT_ONCE):
                some = each.links.slice(first, min(first + _SEEDS_AT_ONCE, len(each.links)))
                entries.append(Asked(_SEEDS, NO_URLS, some))
        self._ask(entries)

    def give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        """As `Sydney` does, with what merges have told; nothing while the next round is full and this one is not placed."""
        self._place(now, room)
        instructions: list[Instruction] = []
        wake = math.inf
        # S is emptied as a whole before what it gives is fetched.
        if (self._emptying or not self._waiting[_STORED]) and (
            self._asked.is_open or not self._asked.is_full
        ):
            instructions, wake = super().give(now, room)
        idle = len(instructions) < room and not len(self._queue) and not self._emptying
        if len(self._asked) and self._asked.is_open:
            if self._asked.is_full or (idle and (now >= self._rests_until or super()._is_drained())):
                self._begin(now)
            elif idle:
                wake = min(wake, self._rests_until)
        if not self._asked.is_open:
            wake = min(wake, now + _LOOK_AGAIN * self._asked.merging)
        return instructions, wake

    # ── N ──────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, entries: Sequence[Asked]) -> None:
        self._asked.ask(entries)
        for entry in entries:
            self._waiting[entry.kind] += 1

    def _begin(self, now: float) -> None:
        self._asked.merge()
        self._seen, self._began = self._asked.recent, now

    def _place(self, now: float, room: int) -> None:
        """Place some of what a merge has told about, in the order in which it was asked."""
        if self._began is not None and not self._asked.merging:
            self._rests_until = now + max(_RESTS * (now - self._began), _LEAST_REST)
            self._began = None
        pages: list[Asked] = []
        for entry in self._asked.answered(_SLICE):
            if entry.kind in (_PAGE, _TARGET):
                pages.append(entry)
                continue
            self._place_pages(pages, now)
            pages = []
            self._waiting[entry.kind] -= 1
            if entry.kind == _BARRED:
                self._refuse(entry.links)
            elif entry.kind == _SEEDS:
                self._put([(None, entry.links, self._sample_of(Found(None, entry.links)), self._keeps)], now)
            elif entry.kind == _STORED:
                super()._look_at(entry.links, now)
            else:
                room -= self._take_free(entry.links, room, now)
        self._place_pages(pages, now)

    def _place_pages(self, pages: Sequence[Asked], now: float) -> None:
        """What was fetched, one behind the other."""
        placed = []
        for kind, kept, links in pages:
            self._waiting[kind] -= 1
            page = kept.rows()[0] if len(kept) else _FETCHED
            placed.append((page, links, self._t, self._keeps) if kind == _PAGE else (page, links, 0, False))
        self._put(placed, now)

    def _take_free(self, entry: UrlBatch, room: int, now: float) -> int:
        """Of an entry that was searched, links to hosts that are free now go into P; how many."""
        most = min(room, self._limit - self._held() - len(self._secondary) - 1)
        if most <= 0:
            left = entry.where(self._seen.missing(self._keys(entry)))
            if len(left):
                self._secondary.append(left.encode())
            return 0
        hosts = np.unique(entry.host_key)
        free = [self._ready.unoccupied(key, now) for key in hosts.tolist()]
        return super()._take_from(entry, hosts[free], most, now)

    # ── what `Sydney` does at once ─────────────────────────────────────────────────────────────

    def _held(self) -> int:
        return super()._held() + self._waiting_pages()

    def _size(self) -> int:
        return super()._size() + self._waiting_pages()

    def _waiting_pages(self) -> int:
        return sum(self._waiting[_PAGE:])

    def _is_drained(self) -> bool:
        return not len(self._asked) and super()._is_drained()

    def _may_search(self, now: float) -> bool:
        # With nothing left to fetch N comes first, which is what P would be.
        return not self._waiting[_SEARCHED] and not super()._is_drained() and super()._may_search(now)

    def _look_at(self, entry: UrlBatch, now: float) -> None:  # noqa: ARG002
        self._ask([Asked(_STORED, NO_URLS, entry)])

    def _take_from(self, entry: UrlBatch, free: npt.NDArray[np.uint64], room: int, now: float) -> int:  # noqa: ARG002
        self._ask([Asked(_SEARCHED, NO_URLS, entry)])
        return 1

    def _admit(self, new: UrlBatch, now: float) -> None:
        self._asked.marked(self._keys(new))
        super()._admit(new, now)

    def _mark(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        return self._asked.mark(keys)
