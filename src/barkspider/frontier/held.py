"""Held: URLs that a rule keeps from being fetched, on disk, so that nothing is lost when the rule is taken back.

    a URL comes up ─ a list blocks it, or it is part of a trap ─► hold ─► Q_B or Q_T
    rules have changed ─► release ─► take ─► it comes up once more, and is judged anew

What is held counts as refused, by its rule: a crawl ends though there is any. After a crash a queue is what it was at the
checkpoint, and so is what was counted; every run judges anew what the one before has held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Prepared
from barkspider.core.records import UrlRow
from barkspider.core.texts import Texts
from barkspider.frontier.decisions import Decisions
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import DiskQueue

_AT_ONCE = 2_000


class Held:
    """One such queue; a `Structure`. Part of `Gate`, in its thread. Invariant: it has no more URLs than are counted as refused
    by its rule.

    >>> import tempfile
    >>> from barkspider.core.settings import Trace
    >>> row, decisions = UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/"), Decisions(Trace())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     held = Held(Env(), Path(folder), "queues/Q_B", "blocked", decisions, None)
    ...     held.hold([row])
    ...     print(len(held), decisions.counters.refused, len(held.take(9)))
    ...     held.release(now=5.0)
    ...     print(held.due(4.0), held.due(5.0), held.take(9).rows() == [row], decisions.counters.refused, held.close())
    1 {'blocked': 1} 0
    False True True {'blocked': 0} None
    """

    def __init__(
        self, env: Env, folder: Path, name: str, rule: str, decisions: Decisions, state: dict[str, Any] | None
    ) -> None:
        self.name, self._rule, self._decisions = name, rule, decisions
        self._queue = DiskQueue(env, folder, name, state=state)
        self._left = 0  # of those that are released
        self._time = 0.0  # when they may come up

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def left(self) -> int:
        """How many are yet to be judged anew."""
        return self._left

    def hold(self, rows: Sequence[UrlRow]) -> None:
        """Keep URLs that are counted nowhere; they are refused now."""
        if rows:
            for row in rows:
                self._decisions.refuse(row, self._rule)
            self._queue.append_batch(UrlBatch.from_rows(rows).packed.to_arrow())

    def release(self, now: float) -> None:
        """Rules have changed: all that are here are to be judged anew, from a time on."""
        self._left, self._time = len(self._queue), now

    def due(self, now: float) -> bool:
        """Whether there is any to be judged anew at this time."""
        return self._left > 0 and now >= self._time

    def next_time(self) -> float:
        """When that begins; inf if there is none."""
        return self._time if self._left else float("inf")

    def take(self, most: int) -> UrlBatch:
        """Some of those that are released, those that wait longest; they are counted nowhere then."""
        batch = UrlBatch.checked(Texts.from_arrow(self._queue.pop_batch(min(most, self._left))))
        self._left -= len(batch)
        self._decisions.take_back(self._rule, len(batch))
        return batch

    def drain(self) -> Iterator[UrlBatch]:
        """All, for whoever hands them on; they are counted nowhere from the first on."""
        self._left = 0
        self._decisions.take_back(self._rule, len(self._queue))
        while len(self._queue):
            yield UrlBatch.checked(Texts.from_arrow(self._queue.pop_batch(_AT_ONCE)))

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        return self._queue.prepare()

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self._queue.committed()

    def validate(self) -> None:
        """Check the invariant."""
        self._queue.validate()
        assert 0 <= self._left <= len(self._queue) <= self._decisions.counters.refused.get(self._rule, 0)

    def close(self) -> None:
        """Let go of the file; what was committed stays."""
        self._queue.close()
