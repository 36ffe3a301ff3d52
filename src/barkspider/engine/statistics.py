"""What a crawl has done so far, as one immutable object."""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from barkspider.core.events import Counters
from barkspider.engine.phases import Phases
from barkspider.engine.timings import Timings


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a host could not be reached: `what` is dns, robots or page, `why` an outcome as the table `errors` has it."""

    host: str
    what: str
    why: str
    times: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """A moment of a crawl. Rates are over the whole time; `refused` and `failed` are by reason.

    `discovered` + `ahead` = `pages` + `redirects` + `queued` + `deferred` + `in_flight` + all `refused` + all `failed`
    + `dropped`; `ahead` counts what is known from before a crash and has not come up again. `decided` counts how often
    URLs were put off, held back and dropped, by decision and rule. `out_of_scope` counts links that never became URLs
    of this crawl, `robots_failed` requests for a robots.txt that were not answered or answered with an error,
    `rejected` pages that a classifier did not keep, all by reason; `classifier_errors` pages on which one's own failed,
    which are kept; `hook_errors` calls of functions that read along which raised. `unchanged` of the pages were fetched again and have not changed. `problems` are the last ones that
    this run had in reaching hosts, the newest last. `gauges` are how things stand; `loop_held` among them is the
    longest time, in milliseconds, for which this run looked at no socket. `phases` are the CPU seconds of this run by
    what they were spent on (`engine.phases`). `parallel` are the metrics of a crawl by several processes
    (`parallel.metrics`), and else not there.
    """

    seconds: float
    pages: int
    unchanged: int
    bytes: int
    links: int
    unique_urls: int
    pages_per_second: float
    cpu_seconds: float
    phases: dict[str, float]
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
    decided: dict[str, int]
    out_of_scope: dict[str, int]
    robots_files: int
    robots_failed: dict[str, int]
    rejected: dict[str, int]
    classifier_errors: int
    hook_errors: int
    gauges: dict[str, int]
    problems: tuple[Problem, ...]
    stopped_by: str
    parallel: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = asdict(self)
        return {name: value for name, value in found.items() if value is not None}


_NUMBERS = ("pages", "unchanged", "bytes", "links", "robots_files", "classifier_errors", "hook_errors")
_REASONS = ("robots_failed", "rejected", "out_of_scope")


class Tally:
    """Counts what the engine sees; the frontier counts what becomes of URLs."""

    def __init__(self) -> None:
        self.pages = self.unchanged = self.bytes = self.links = 0
        self.robots_files = self.classifier_errors = self.hook_errors = 0
        self.robots_failed: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.out_of_scope: Counter[str] = Counter()
        self.before = 0.0  # seconds that earlier runs took
        self._cpu = time.process_time()
        self.phases = Phases()
        self.timings = Timings()

    def save(self) -> dict[str, Any]:
        """For the journal and the checkpoints."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        reasons = {name: dict(getattr(self, name)) for name in _REASONS}
        return numbers | reasons | {"cpu_seconds": round(time.process_time() - self._cpu, 3)}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Take what `save` gave; what a later version counts begins at 0."""
        for name in _NUMBERS:
            setattr(self, name, int(saved.get(name, 0)))
        for name in _REASONS:
            getattr(self, name).update(saved.get(name, {}))
        self._cpu -= float(saved.get("cpu_seconds", 0.0))  # that of earlier runs counts as well

    def statistics(
        self,
        seconds: float,
        counters: Counters,
        gauges: dict[str, int],
        stopped_by: str,
        problems: tuple[Problem, ...] = (),
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
            phases=self.phases.seconds(),  # first, so that they are no more than what follows
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
            decided=dict(counters.decided),
            out_of_scope=dict(self.out_of_scope),
            robots_files=self.robots_files,
            robots_failed=dict(self.robots_failed),
            rejected=dict(self.rejected),
            classifier_errors=self.classifier_errors,
            hook_errors=self.hook_errors,
            gauges=gauges,
            problems=problems,
            stopped_by=stopped_by,
        )
