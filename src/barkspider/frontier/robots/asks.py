"""Asks: which origins are to be asked for their robots.txt, each once until that is answered or expires.

    want ─► DRUM requested, check+update ─ not asked yet ─► Q_D ─► take ─► Ready fetches it ─► settle
                                         └ asked before: nothing

Filled by `Permits` with the origins whose URLs wait, emptied into `Ready`. Asks are numbered in the order of Q_D, so
that a round of URLs can tell when those it waits for are settled (`rounds`).

`requested` has the time at which an origin was asked for last. It is asked again in two cases. Either that time is
longer ago than `expiry`: then the ask was lost, since none takes so long. Or the answer to that ask is out of date: then
the time is before the `until` that the URL has seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.events import Prepared
from barkspider.core.texts import Rows
from barkspider.frontier.robots.permit import heads, second
from barkspider.storage.drum.repository import CHECK_UPDATE, Drum
from barkspider.storage.drum.sizing import Allowance, Sizing
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import DiskQueue

_WANTED = np.dtype([("seen", "<u8"), ("round", "<u4")])  # before the origin; see `_spent`
_LATEST = (1 << 32) - 1
NO_ROUND = _LATEST  # of origins for which no round waits
_TIME = np.uint64(_LATEST)
_SHIFT = np.uint64(32)

Seen = npt.NDArray[np.uint64]


class Asks:
    """See the module. Part of `Permits`, in its thread.

    Invariants: asks are made, then handed out, then settled, in the order of their numbers but for the last step; no
    origin is handed out twice before it is settled.
    """

    def __init__(
        self,
        env: Env,
        folder: Path,
        *,
        expiry: float,
        block: int,
        sizing: Sizing | Allowance | None,
        background: bool,
        state: Callable[[str], dict[str, Any] | None],
        kept: dict[str, Any],
    ) -> None:
        """`expiry`: seconds after which an ask without an answer is made again; `state` is that of a store, `kept`
        what `prepare` gave. Raises what wrong types raise when that is damaged."""
        self._expiry = math.ceil(expiry)
        self._handed = int(kept.get("handed", 0))  # asks taken out of Q_D
        self.made = int(kept.get("made", 0))  # asks put into it
        # Asks without an answer by their numbers, ascending; and those that a crash made us forget.
        self._asked: dict[str, int] = {name: int(number) for name, number in kept.get("asked", [])}
        self._again = list(self._asked)[::-1]
        # Answers that came before a crash to asks that are made after it, and until when they hold.
        self._ahead: dict[str, int] = {name: int(until) for name, until in kept.get("ahead", [])}
        self._to_ask = DiskQueue(env, folder, "queues/Q_D", block=block, state=kept.get("to_ask"))
        self.requested = Drum(
            env,
            folder,
            "robots/requested",
            value=np.dtype("<u8"),
            aux=True,
            update=self._remember,
            sizing=sizing,
            background=background,
            state=state("robots/requested"),
        )

    def __len__(self) -> int:
        """Asks that are made and were not handed out."""
        return len(self._to_ask)

    @property
    def under_way(self) -> int:
        """Asks that were handed out and are not settled."""
        return len(self._asked)

    @property
    def settled(self) -> int:
        """All asks with a number below this one are settled."""
        return next(iter(self._asked.values()), self._handed)

    def want(
        self,
        keys: npt.NDArray[np.uint64],
        names: Sequence[str],
        until: Rows,
        rounds: npt.NDArray[np.uint32],
        now: float,
    ) -> None:
        """URLs wait for these origins, each in a round or `NO_ROUND`; `until` is when the rules that they have seen
        were outdated, 0 for none."""
        wanted = np.empty(len(keys), _WANTED)
        wanted["seen"] = until.astype(np.uint64) << _SHIFT | np.uint64(second(now))
        wanted["round"] = rounds
        heads, size = wanted.tobytes(), _WANTED.itemsize
        aux = [heads[size * row : size * (row + 1)] + name.encode() for row, name in enumerate(names)]
        self.requested.feed(CHECK_UPDATE, keys, wanted["seen"], aux)

    def decide(self) -> Iterator[tuple[int, int]]:
        """Make the asks that a merge found to be new. Yields the number of a round, and of how many of its origins it
        is known now that they are asked, each time `made` has grown by them."""
        for found in self.requested.results():
            assert isinstance(found.values, np.ndarray)
            assert found.aux is not None
            wanted = heads(found.aux, np.arange(len(found)), _WANTED)
            new = np.flatnonzero(found.unique | self._spent(found.values, wanted["seen"]))
            for text in found.aux.take(new).tolist():
                self._to_ask.append(text[_WANTED.itemsize :])
            self.made += len(new)
            numbers, counts = np.unique(wanted["round"], return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                if number != NO_ROUND:
                    yield number, count

    def take(self, most: int, now: float) -> list[str]:
        """Origins, so many at most, whose robots.txt is to be fetched; each is to be settled in the end."""
        taken: list[str] = []
        while self._again and len(taken) < most:
            name = self._again.pop()
            if name in self._asked:
                taken.append(name)
        while len(self._to_ask) and len(taken) < most:
            name = self._to_ask.pop().decode()
            if name not in self._asked and self._ahead.pop(name, 0) <= now:
                self._asked[name] = self._handed
                taken.append(name)
            self._handed += 1
        return taken

    def expunge(self, now: float) -> None:
        """Forget asks that no longer count, whoever asks, in a merge that goes on in the background."""
        oldest = second(now - self._expiry)
        self.requested.merge(wait=False, expunge=lambda _, asked: (asked & _TIME) <= np.uint64(oldest))

    def settle(self, name: str) -> bool:
        """Nothing waits for this answer any more. Whether it was asked for."""
        return self._asked.pop(name, None) is not None

    def expect(self, name: str, until: int) -> None:
        """An answer that holds `until` a time came before its ask is made: then it need not be made."""
        self._ahead[name] = until

    def prepare(self) -> Prepared:
        """What `Permits` keeps of this, beside the DRUM."""
        to_ask = self._to_ask.prepare()
        state = {
            "handed": self._handed,
            "made": self.made,
            "asked": list(self._asked.items()),
            "ahead": list(self._ahead.items()),
        }
        return lambda: {"to_ask": to_ask(), **state}

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self._to_ask.committed()

    def validate(self) -> None:
        """Check the invariants."""
        assert self.made - self._handed == len(self._to_ask)
        assert list(self._asked.values()) == sorted(set(self._asked.values()))
        assert max(self._asked.values(), default=-1) < self._handed
        self.requested.validate()
        self._to_ask.validate()

    def close(self) -> None:
        """Close the files; what was committed stays."""
        self.requested.close()
        self._to_ask.close()

    def _spent(self, stored: Seen, seen: Seen) -> npt.NDArray[np.bool_]:
        """Whether an earlier ask no longer counts. Both have the time of asking in the lower 32 bits. The
        upper 32 have the time until which the rules held that those who ask had seen; 0 if they had seen none."""
        before = (stored & _TIME).astype(np.int64)
        until, now = (seen >> _SHIFT).astype(np.int64), (seen & _TIME).astype(np.int64)
        spent: npt.NDArray[np.bool_] = (before < until) | (now - before >= self._expiry)
        return spent

    def _remember(self, stored: Seen, seen: Seen) -> Seen:
        return np.where(self._spent(stored, seen), seen, stored)
