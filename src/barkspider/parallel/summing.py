"""What the parts of a crawl tell of themselves, as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from barkspider.engine.statistics import Problem, Statistics
from barkspider.frontier.census import KeySample
from barkspider.parallel.metrics import measure

_REASONS = ("refused", "failed", "decided", "out_of_scope", "robots_failed", "rejected")
_NUMBERS = (
    *(
        "pages",
        "unchanged",
        "bytes",
        "links",
        "unique_urls",
        "cpu_seconds",
        "peak_rss",
        "queue_max",
        "discovered",
    ),
    *(
        "redirects",
        "queued",
        "deferred",
        "in_flight",
        "dropped",
        "ahead",
        "robots_files",
        "classifier_errors",
        "hook_errors",
    ),
)
_SHOWN = 5  # problems


def sum_up(
    parts: Sequence[Mapping[str, Any]],
    seconds: float,
    stopped_by: str,
    censuses: Sequence[Mapping[str, KeySample]] | None = None,
) -> Statistics:
    """One `Statistics` of those of all parts, as dictionaries: sums, but for the longest pause of a loop; with the samples of
    all parts, their metrics too.

    `peak_rss` and `queue_max` are sums of what each had at most, not at the same moment.
    """
    gauges: Counter[str] = Counter()
    for part in parts:
        gauges.update(part["gauges"])
    gauges["loop_held"] = max((part["gauges"]["loop_held"] for part in parts), default=0)
    for name in ("primary", "secondary", "hosts", "seen", "largest"):
        gauges.setdefault(name, 0)
    reasons: dict[str, Any] = {
        name: dict(sum((Counter(part[name]) for part in parts), Counter())) for name in _REASONS
    }
    numbers: dict[str, Any] = {name: sum(part[name] for part in parts) for name in _NUMBERS}
    phases = {
        name: round(sum(part["phases"].get(name, 0.0) for part in parts), 3)
        for name in (parts[0]["phases"] if parts else ())
    }
    problems = [Problem(**problem) for part in parts for problem in part["problems"]]
    rate = round(numbers["pages"] / seconds, 2) if seconds > 0 else 0.0
    return Statistics(
        seconds=round(seconds, 3),
        pages_per_second=rate,
        gauges=dict(gauges),
        phases=phases,
        problems=tuple(problems[-_SHOWN:]),
        stopped_by=stopped_by,
        parallel=None if censuses is None or not parts else measure(parts, censuses),
        **numbers,
        **reasons,
    )
