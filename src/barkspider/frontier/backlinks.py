"""The order by backlinks: the URL to which most links were found so far comes first (Parallel Crawlers, sections 5.3 and 9).

    every link, with its number ─► DRUM backlinks, add ──────────────────────┐
    URLs that budgets let through ─► DRUM backlinks, check ─ their counts ─► window ─ the highest ─► permits
                                                     links to what is in it ──┘

What is sorted is a *window*: URLs that may be fetched now, in RAM, as many as a share of `memory` holds. To sort all that
is known would be a pass over all of it for each URL that is fetched. A web that fits into the window is crawled exactly in
this order; of a larger one those come first that have waited longest for the window, and of these the most linked ones.
Counts on disk go on while a URL waits, so it enters the window with all links that were found until then; those that are
found later raise it there.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Prepared
from barkspider.core.records import UrlRow
from barkspider.storage.drum.repository import CHECK, UPDATE, Drum
from barkspider.storage.drum.sizing import Allowance
from barkspider.storage.env import Env
from barkspider.url.partition import slotted

_ROWS, _COUNTS = "window", "window counts"
_WORTH = 16  # a pass over all counts is made for no fewer rows than this part of them, so that each row costs the same
_SLACK = 1_000  # entries of the heap that are outdated, beyond as many as count


class Backlinks:
    """See the module. A `Structure`; one thread. Filled with links and from `beast`, emptied into `permits`.

    Invariants: `_waiting` has the URLs of the window; the heap has an entry with the present count for each of them, and
    maybe others, which are passed over. `_coming` are URLs whose counts are asked for, with the links found since.

    >>> import tempfile
    >>> urls = UrlBatch.of([b"http://a.example/", b"http://b.example/"], key=[1 << 20, 2 << 20])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     order = Backlinks(Env(), Path(folder), most=9, background=False)
    ...     order.learn(urls.take(np.array([0, 1, 1])), None); order.check(urls); order.merge(); _ = order.move()
    ...     [row.url for row in order.take(9).rows()], order.close()
    ([b'http://b.example/', b'http://a.example/'], None)
    """

    name = "backlinks"

    def __init__(
        self,
        env: Env,
        folder: Path,
        most: int,
        *,
        slot_of: str = "pld_key",
        sizing: Allowance | None = None,
        background: bool = True,
        state: dict[str, Any] | None = None,
    ) -> None:
        """`most` URLs are in the window; the others are as for `budget.seen`."""
        self._most, self._slot_of = most, slot_of
        self.drum = Drum(
            env,
            folder,
            self.name,
            value=np.dtype("<u4"),
            aux=True,
            update="add",
            sizing=sizing,
            background=background,
            state=state,
        )
        # By key: count, the order in which they came, row.
        self._waiting: dict[int, tuple[int, int, UrlRow]] = {}
        self._coming: dict[int, int] = {}
        self._heap: list[tuple[int, int, int]] = []  # count, negative, order, key
        self._order = count()

    def __len__(self) -> int:
        """URLs in the window."""
        return len(self._waiting)

    @property
    def space(self) -> int:
        """How many more URLs may come."""
        return self._most - len(self._waiting) - len(self._coming)

    @property
    def checking(self) -> int:
        """URLs whose counts are asked for."""
        return len(self._coming)

    @property
    def is_worth_merging(self) -> bool:
        """Whether enough waits for a pass over all counts."""
        return self.drum.pending * _WORTH > len(self.drum)

    def learn(self, links: UrlBatch, counts: npt.NDArray[np.uint32] | None) -> None:
        """Links were found, each as often as `counts` says, or once."""
        keys = self._keys(links)
        counts = np.ones(len(keys), np.uint32) if counts is None else counts
        self.drum.feed(UPDATE, keys, counts)
        for key, more in zip(keys.tolist(), counts.tolist(), strict=True):
            if key in self._waiting:
                before, order, row = self._waiting[key]
                self._enter(key, before + more, order, row)
            elif key in self._coming:
                self._coming[key] += more
        if len(self._heap) > 2 * len(self._waiting) + _SLACK:
            self._heap = [(-links, order, key) for key, (links, order, _) in self._waiting.items()]
            heapq.heapify(self._heap)

    def check(self, batch: UrlBatch) -> None:
        """Ask how many links URLs have; they come into the window with the answer."""
        keys = self._keys(batch)
        self._coming.update(dict.fromkeys(keys.tolist(), 0))
        self.drum.feed(CHECK, keys, aux=batch.packed)

    def merge(self, wait: bool = True) -> None:
        """Count all links so far, and answer for all URLs; with `wait` return when that is done."""
        self.drum.merge(wait)

    def move(self) -> bool:
        """Let those into the window whose counts are known; whether there were any."""
        moved = False
        for found in self.drum.results():
            assert found.aux is not None
            assert isinstance(found.values, np.ndarray)
            batch = UrlBatch.checked(found.aux)
            keys = self._keys(batch).tolist()
            for key, links, row in zip(keys, found.values.tolist(), batch.rows(), strict=True):
                self._enter(key, links + self._coming.pop(key, 0), next(self._order), row)
                moved = True
        return moved

    def take(self, most: int) -> UrlBatch:
        """The URLs with the most links; of equal ones those that came first."""
        rows = list[UrlRow]()
        while self._heap and len(rows) < most:
            links, order, key = heapq.heappop(self._heap)
            if self._waiting.get(key, ())[:2] == (-links, order):
                rows.append(self._waiting.pop(key)[2])
        return UrlBatch.from_rows(rows)

    def save(self) -> dict[str, Any]:
        """What is in RAM, for `load`."""
        rows = UrlBatch.from_rows([row for _, _, row in self._waiting.values()])
        return {
            _ROWS: rows.encode(),
            _COUNTS: np.array([links for links, _, _ in self._waiting.values()], np.uint32),
        }

    def load(self, arrays: Mapping[str, bytes]) -> None:
        """Take what `save` gave, before anything else is done."""
        rows, counts = UrlBatch.decode(arrays[_ROWS]), np.frombuffer(arrays[_COUNTS], np.uint32)
        for key, links, row in zip(self._keys(rows).tolist(), counts.tolist(), rows.rows(), strict=True):
            self._enter(key, links, next(self._order), row)

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        return self.drum.prepare()

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self.drum.committed()

    def validate(self) -> None:
        """Check the invariants."""
        self.drum.validate()
        entries = set(self._heap)
        assert all((-links, order, key) in entries for key, (links, order, _) in self._waiting.items())

    def close(self) -> None:
        """Close the files; what was committed stays."""
        self.drum.close()

    def _enter(self, key: int, links: int, order: int, row: UrlRow) -> None:
        self._waiting[key] = links, order, row
        heapq.heappush(self._heap, (-links, order, key))

    def _keys(self, batch: UrlBatch) -> npt.NDArray[np.uint64]:
        return slotted(batch.key, getattr(batch, self._slot_of))
