"""Decisions: what becomes of URLs that are not fetched now. Counted by rule, and traced for a sample.

    refused     must not be fetched: robots.txt, a share, a trap       counted in `refused`
    failed      was asked for in vain, for the last time               counted in `failed`
    put off     comes back from Q_W at a time                          counted in `decided`
    held back   waits on disk: beyond its budget, left in S, ...       counted in `decided`
    dropped     a link that nobody remembers: a queue was full, ...    counted in `dropped`, and in `decided`
    stopped     a host is left alone from now on: a mirror             counted in `decided`, and always told

Whoever makes such a decision says so here, with the rule that made it. Whether a URL is traced depends on its key alone:
so all decisions about it are traced or none, in every run of a job. What is traced goes to the table `decisions`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Counters, Decision
from barkspider.core.records import UrlRow
from barkspider.core.settings import Trace

REFUSED, FAILED, PUT_OFF, HELD_BACK, DROPPED = "refused", "failed", "put_off", "held_back", "dropped"
STOPPED = "stopped"

# Rules; those of robots.txt are in `robots.rules`, those of shares in `shares`, of mirrors in `mirrors`, failures are named by who fetches.
BLOCKED, TRAP = "blocked", "trap"  # by a list; of a place that has nothing to say: both are held (`held`)
SCOPE = "scope"  # found before the scope was changed
ADDRESS_LIMIT = "address_limit"  # so many URLs were taken from its server
RETRY, FAR_TURN = "retry", "far_turn"  # a failure that may pass; a host or server that is busy for long
ROBOTS_UNKNOWN = "robots_unknown"  # its robots.txt is not in RAM, and perhaps has to be asked for
SHARE_UNKNOWN, RECOVERING = "share_unknown", "recovering"  # after a crash: see `shares` and `gate`
BUDGET, SAMPLE = "budget", "sample"  # beyond the budget of its domain; a link that Sydney left with its page
QUEUE_FULL, SITE_DUPLICATES = "queue_full", "site_duplicates"
# Of a site that is in RAM as a whole: it has too many URLs, all sites take too much, somebody else has it now; what was refused
# or failed before a crash, of a site that was given back then.
SITE_LIMIT, SITE_MEMORY, LEASE_LOST, SITE_ENDED = "site_limit", "site_memory", "lease_lost", "site_ended"

Mask = npt.NDArray[np.bool_]


class Decisions:
    """See the module. Part of `Gate`, in its thread; the driver sets `now`.

    >>> decisions = Decisions(Trace(sample=2))
    >>> rows = [UrlRow(key, 1, 1, 0, 0, 0, 0, b"http://a.example/") for key in (1 << 62, 1 << 63)]
    >>> for row in rows:
    ...     decisions.put_off(row, RETRY, until=9.0)
    >>> decisions.counters.decided, [(each.key == 1 << 62, each.rule, each.until) for each in decisions.traced()]
    ({'put_off.retry': 2}, [(True, 'retry', 9.0)])
    """

    def __init__(self, trace: Trace) -> None:
        self.counters = Counters()
        self.now = 0.0
        # Keys below this are traced: they are hashes.
        self._below = (1 << 64) // trace.sample if trace.sample else 0
        self._left = trace.most
        # Who is told of each URL, by its row, when its last answer has come, or none will: with the rule if it was refused or
        # failed, and which of these. Only a frontier that has to know when it is done with a site sets this.
        self.ended: Callable[[UrlRow, str, bool], None] | None = None
        self._traced: list[Decision] = []

    def refuse(self, row: UrlRow, rule: str) -> None:
        """A URL must not be fetched."""
        refused = self.counters.refused
        refused[rule] = refused.get(rule, 0) + 1
        if self.ended is not None:
            self.ended(row, rule, True)
        if row.key < self._below:
            self._trace(row, REFUSED, rule)

    def refuse_all(self, batch: UrlBatch, rule: str) -> None:
        """So must none of these."""
        refused = self.counters.refused
        refused[rule] = refused.get(rule, 0) + len(batch)
        if self._below:
            self._trace_all(batch, REFUSED, rule)

    def take_back(self, rule: str, count: int) -> None:
        """So many that were refused by a rule may be fetched after all, or are to be judged anew."""
        self.counters.refused[rule] = self.counters.refused.get(rule, 0) - count

    def fail(self, row: UrlRow, failure: str) -> None:
        """A URL was asked for in vain, and is not asked for again."""
        failed = self.counters.failed
        failed[failure] = failed.get(failure, 0) + 1
        if self.ended is not None:
            self.ended(row, failure, False)
        if row.key < self._below:
            self._trace(row, FAILED, failure)

    def put_off(self, row: UrlRow, rule: str, until: float) -> None:
        """A URL comes back at a time."""
        self._count(PUT_OFF, rule, 1)
        if row.key < self._below:
            self._trace(row, PUT_OFF, rule, until)

    def hold_back(self, batch: UrlBatch, rule: str, which: Mask | None = None) -> None:
        """URLs, or those of them that are marked, wait on disk until others have had their turn."""
        count = len(batch) if which is None else int(np.count_nonzero(which))
        if count:
            self._count(HELD_BACK, rule, count)
            if self._below:
                self._trace_all(batch if which is None else batch.where(which), HELD_BACK, rule)

    def drop(self, batch: UrlBatch, rule: str, which: Mask | None = None) -> None:
        """Links, or those of them that are marked, are not remembered: they count again when they are found again."""
        count = len(batch) if which is None else int(np.count_nonzero(which))
        if count:
            self.counters.discovered += count
            self.counters.dropped += count
            self._count(DROPPED, rule, count)
            if self._below:
                self._trace_all(batch if which is None else batch.where(which), DROPPED, rule)

    def stop(self, key: int, url: str, rule: str, of: str) -> None:
        """A host, by the key and the URL of its home page, is left alone, for the sake of another."""
        self._count(STOPPED, rule, 1)
        self._traced.append(Decision(self.now, STOPPED, f"{rule} of {of}", key, url.encode(), None))

    def traced(self) -> list[Decision]:
        """Take what was traced since the last call."""
        if not self._traced:
            return []
        traced, self._traced = self._traced, []
        return traced

    def _count(self, decision: str, rule: str, count: int) -> None:
        decided, name = self.counters.decided, f"{decision}.{rule}"
        decided[name] = decided.get(name, 0) + count

    def _trace_all(self, batch: UrlBatch, decision: str, rule: str) -> None:
        for row in batch.where(batch.key <= np.uint64(self._below - 1)).rows():
            self._trace(row, decision, rule)

    def _trace(self, row: UrlRow, decision: str, rule: str, until: float | None = None) -> None:
        if self._left > 0:
            self._left -= 1
            self._traced.append(Decision(self.now, decision, rule, row.key, row.url, until))
