"""What a crawl has done so far, as one immutable object."""

from __future__ import annotations

import resource
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from barkspider.core.events import Counters


@dataclass(frozen=True, slots=True)
class Statistics:
    """A moment of a crawl. Rates are over the whole time; `refused` and `failed` are by reason.

    `discovered` + `ahead` = `pages` + `redirects` + `queued` + `deferred` + `in_flight` + all `refused` + all `failed` +
    `dropped`; `ahead` counts what is known from before a crash and has not come up again.
    `out_of_scope` counts links that never became URLs of this crawl, `robots_failed` requests for a robots.txt
    that were not answered or answered with an error, `rejected` pages that a classifier did not keep, all by
    reason. `unchanged` of the pages were fetched again and have not changed.
    """

    seconds: float
    pages: int
    unchanged: int
    bytes: int
    links: int
    unique_urls: int
    pages_per_second: float
    cpu_seconds: float
    peak_rss: int
    queue_max: int
    discovered: int
    redirects: int
    queued: int
    deferred: int
    in_flight: int
    dropped: int
    ahead: int
    refused: dict[str, int]
    failed: dict[str, int]
    out_of_scope: dict[str, int]
    robots_files: int
    robots_failed: dict[str, int]
    rejected: dict[str, int]
    gauges: dict[str, int]
    stopped_by: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Tally:
    """Counts what the engine sees; the frontier counts what becomes of URLs."""

    def __init__(self) -> None:
        self.pages = self.unchanged = self.bytes = self.links = self.robots_files = 0
        self.robots_failed: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.before = 0.0  # seconds that earlier runs took
        self._cpu = time.process_time()

    def save(self) -> dict[str, Any]:
        """For the journal and the checkpoints."""
        return {
            "numbers": [self.pages, self.bytes, self.links, self.robots_files],
            "unchanged": self.unchanged,
            "robots_failed": self.robots_failed,
            "rejected": self.rejected,
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take what `save` gave."""
        self.pages, self.bytes, self.links, self.robots_files = saved["numbers"]
        self.unchanged = saved.get("unchanged", 0)  # jobs from before there was a re-crawl do not say
        self.robots_failed, self.rejected = Counter(saved["robots_failed"]), Counter(saved["rejected"])

    def statistics(
        self,
        seconds: float,
        counters: Counters,
        gauges: dict[str, int],
        out_of_scope: Counter[str],
        stopped_by: str,
    ) -> Statistics:
        """The present moment."""
        seconds += self.before
        return Statistics(
            seconds=round(seconds, 3),
            pages=counters.pages,
            unchanged=self.unchanged,
            bytes=self.bytes,
            links=self.links,
            unique_urls=gauges["seen"],
            pages_per_second=round(counters.pages / seconds, 2) if seconds > 0 else 0.0,
            cpu_seconds=round(time.process_time() - self._cpu, 3),
            # Linux counts in KiB.
            peak_rss=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            queue_max=gauges["largest"],
            discovered=counters.discovered,
            redirects=counters.redirects,
            queued=counters.queued,
            deferred=counters.deferred,
            in_flight=counters.in_flight,
            dropped=counters.dropped,
            ahead=counters.ahead,
            refused=dict(counters.refused),
            failed=dict(counters.failed),
            out_of_scope=dict(out_of_scope),
            robots_files=self.robots_files,
            robots_failed=dict(self.robots_failed),
            rejected=dict(self.rejected),
            gauges=gauges,
            stopped_by=stopped_by,
        )
