"""All that a report says of one crawl, collected once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barkspider.core.load import describe_settings
from barkspider.core.settings import Settings
from barkspider.engine import StoredJob, open_job
from barkspider.engine.folder import events
from barkspider.engine.samples import Samples
from barkspider.report.figures import CUTS, ERRORS, LARGEST_HOSTS, distributions, totals
from barkspider.report.limits import Limit, limits
from barkspider.report.servers import servers
from barkspider.report.top import Standing, Top, standing, top

_REASONS = ("refused", "failed", "out_of_scope", "robots_failed", "rejected")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is said of one crawl. `counted` are counters by the names of `Statistics`, as far as its last checkpoint;
    `reasons` counts by reason; `disk` bytes by folder of the job."""

    name: str
    settings: Settings
    samples: Samples
    counted: dict[str, float]
    reasons: dict[str, dict[str, int]]
    totals: dict[str, Any]
    distributions: dict[str, dict[str, int]]
    servers: tuple[dict[str, int], int]
    standing: Standing
    top: list[Top]
    limits: list[Limit]
    errors: list[dict[str, Any]]
    cuts: list[dict[str, Any]]
    hosts: list[dict[str, Any]]
    disk: dict[str, int]
    stopped_by: str

    @property
    def changed(self) -> list[tuple[str, str, str]]:
        """The settings that are not the defaults: name, value, meaning."""
        usual = describe_settings()
        return [
            own
            for own, each in zip(describe_settings(self.settings), usual, strict=True)
            if own != each and own[0] != "seed"  # with it a page could aim at collisions of keys
        ]


def collect(path: Path) -> Facts:
    """Read a job, which may be running; takes seconds for a million pages."""
    job = open_job(path)
    samples = job.history()
    ended = _last_end(path)
    among = standing(job, job.settings.budget)
    names = (
        "pages",
        "bytes",
        "links",
        "unique_urls",
        "discovered",
        "seconds",
        "cpu_seconds",
        "robots_files",
        "redirects",
    )
    counted = {name: samples.last(name) or float(ended.get(name, 0)) for name in names}
    reasons = {name: _reasons(samples, ended, name) for name in _REASONS}
    return Facts(
        name=path.absolute().name,
        settings=job.settings,
        samples=samples,
        counted=counted,
        reasons=reasons,
        totals=totals(job),
        distributions=distributions(job),
        servers=servers(job),
        standing=among,
        top=top(job, among),
        limits=limits(job, reasons["out_of_scope"], int(counted["links"])),
        errors=job.query(ERRORS).to_pylist(),
        cuts=job.query(CUTS).to_pylist(),
        hosts=job.query(LARGEST_HOSTS).to_pylist(),
        disk=_disk(job),
        stopped_by=str(ended.get("stopped_by", "")),
    )


def _last_end(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for event in events(path):
        if event["event"] == "ended":
            found = event
    return found


def _reasons(samples: Samples, ended: dict[str, Any], name: str) -> dict[str, int]:
    """Counts by reason, the largest first; a job from before there was a history has them in its log."""
    found = {reason: int(counts[-1]) for reason, counts in samples.group(name).items() if len(counts)}
    if not len(samples):
        told = ended.get(name, {})
        found = {str(reason): int(count) for reason, count in told.items()} if isinstance(told, dict) else {}
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def _disk(job: StoredJob) -> dict[str, int]:
    """Bytes by what they are for."""
    sizes = {"WARC files": 0, "tables and indexes": 0, "frontier and journal": 0}
    for archive in job.archives:
        for file in archive.parent.rglob("*"):
            try:
                size = file.stat().st_size if file.is_file() and not file.is_symlink() else 0
            except OSError:  # a crawl that runs gives its files other names
                continue
            if ".warc" in file.name:
                sizes["WARC files"] += size
            elif archive in file.parents:
                sizes["tables and indexes"] += size
            else:
                sizes["frontier and journal"] += size
    return sizes
