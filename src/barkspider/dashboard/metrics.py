"""The metrics of a crawl for Prometheus and whoever reads OpenMetrics; docs/metrics.md says what each is.

No label has a host or a URL: their number has no bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

from barkspider.dashboard.watcher import View
from barkspider.engine.samples import Samples
from barkspider.engine.timings import BOUNDS, PHASES

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Name in the history, name of the metric without `_total`, meaning.
COUNTERS = (
    ("pages", "pages", "Pages fetched"),
    ("bytes", "received_bytes", "Bytes received"),
    ("links", "links", "Links found"),
    ("discovered", "urls_discovered", "URLs found that were not known"),
    ("redirects", "redirects", "Redirects"),
    ("unchanged", "unchanged", "Pages fetched again that have not changed"),
    ("robots_files", "robots_files", "robots.txt read"),
    ("dropped", "dropped", "Links that a full queue had no place for"),
    ("cpu_seconds", "cpu_seconds", "CPU of the crawl"),
    ("checkpoints", "checkpoints", "Checkpoints made"),
    ("checkpoint_seconds", "checkpoint_pause_seconds", "For how long checkpoints of this run held the loop"),
    (
        "checkpoint_written_seconds",
        "checkpoint_written_seconds",
        "For how long checkpoints of this run were written beside it",
    ),
)
GAUGES = (
    ("in_flight", "in_flight", "Requests under way"),
    ("queued", "queued_urls", "URLs that wait for their hosts"),
    ("deferred", "deferred_urls", "URLs that wait on disk"),
    ("hosts", "hosts", "Hosts in RAM"),
    ("domains", "domains", "Domains that others link to"),
    ("over_budget", "over_budget_urls", "URLs beyond the budget of their domain"),
    ("budget", "budget_mean", "Mean budget of the domains known"),
    ("rss", "resident_memory_bytes", "RAM of the crawl's processes"),
    ("disk_free", "disk_free_bytes", "Bytes left on the disk of the job"),
    ("loop_held", "loop_held_seconds", "Longest time of this run without a look at the network"),
)
REASONS = (
    ("refused", "URLs that are not to be fetched, by reason"),
    ("failed", "URLs that could not be fetched, by reason"),
    ("out_of_scope", "Links that never became URLs, by reason"),
    ("robots_failed", "robots.txt that could not be had, by reason"),
    ("rejected", "Pages that were not kept, by reason"),
)


def exposition(view: View) -> bytes:
    """All metrics of a job at this moment, in the OpenMetrics format."""
    return bytes(generate_latest(registry(view)))  # type: ignore[no-untyped-call]


def registry(view: View) -> CollectorRegistry:
    """The same for whoever writes another format."""
    found = CollectorRegistry(auto_describe=False)
    found.register(_Collector(view))
    return found


class _Collector:
    """One look, as metrics."""

    def __init__(self, view: View) -> None:
        self._view = view

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client."""
        samples = self._view.samples
        yield GaugeMetricFamily("barkspider_up", "Whether the crawl runs", value=float(self._view.running))
        yield GaugeMetricFamily(
            "barkspider_paused", "Whether it pauses", value=float("paused" in self._view.state)
        )
        for name, metric, about in COUNTERS:
            yield CounterMetricFamily(f"barkspider_{metric}", about, value=samples.last(name))
        for name, metric, about in GAUGES:
            value = samples.last(name) / (1000 if name == "loop_held" else 1)
            yield GaugeMetricFamily(f"barkspider_{metric}", about, value=value)
        for group, about in REASONS:
            yield _labelled(
                CounterMetricFamily(f"barkspider_{group}", about, labels=["reason"]), samples, group
            )
        yield _labelled(
            GaugeMetricFamily("barkspider_queue_urls", "What waits, by queue or stage", labels=["queue"]),
            samples,
            "queues",
        )
        yield _labelled(
            GaugeMetricFamily("barkspider_stage_memory_bytes", "RAM in use, by stage", labels=["stage"]),
            samples,
            "ram",
        )
        yield _labelled(
            GaugeMetricFamily(
                "barkspider_stage_memory_limit_bytes", "RAM that a stage may use", labels=["stage"]
            ),
            samples,
            "ram_share",
        )
        yield _labelled(
            CounterMetricFamily(
                "barkspider_phase_cpu_seconds", "CPU of this run, by phase", labels=["phase"]
            ),
            samples,
            "phases",
        )
        yield from _drums(samples)
        yield _fetches(samples)


def _labelled(family: Metric, samples: Samples, group: str) -> Metric:
    for name, numbers in samples.group(group).items():
        if len(numbers):
            family.add_metric([name], float(numbers[-1]))  # type: ignore[attr-defined]
    return family


def _drums(samples: Samples) -> Iterator[Metric]:
    for member, metric, about, unit in (
        ("moved", "drum_moved_bytes", "Bytes that a DRUM moved", 1.0),
        ("predicted", "drum_predicted_bytes", "The same by equation (5) of IRLbot", 1.0),
        ("rows", "drum_rows", "Rows given to a DRUM", 1.0),
        ("merges", "drum_merges", "Merges of a DRUM", 1.0),
        ("merge_microseconds", "drum_merge_seconds", "Time of its merges", 1e6),
    ):
        family = CounterMetricFamily(f"barkspider_{metric}", about, labels=["drum"])
        for name, numbers in samples.group("drums").items():
            drum, _, what = name.rpartition(".")
            if what == member and len(numbers):
                family.add_metric([drum], float(numbers[-1]) / unit)
        yield family


def _fetches(samples: Samples) -> Metric:
    """Histograms of the phases of fetches in this run."""
    family = HistogramMetricFamily(
        "barkspider_fetch_seconds", "Phases of fetches in this run", labels=["phase"]
    )
    for phase in PHASES:
        below, buckets = 0.0, list[tuple[str, float]]()
        for bound in (*map(str, BOUNDS), "inf"):
            below += samples.last(f"fetches.{phase}.{bound}")
            buckets.append(("+Inf" if bound == "inf" else bound, below))
        family.add_metric([phase], buckets, samples.last(f"fetches.{phase}.sum"))
    return family
