"""What a crawl measured, for `barkspider plan --from JOB`; it may still be running."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barkspider.core.errors import JobError
from barkspider.core.load import load_settings
from barkspider.engine.control import ask
from barkspider.model.irlbot import drum_bytes
from barkspider.storage.drum.counters import Counters

_NEEDED = {
    "pages",
    "links",
    "unique_urls",
    "pages_per_second",
    "bytes",
    "cpu_seconds",
    "gauges",
    "out_of_scope",
}
_IRLBOT_PAGES, _IRLBOT_DOMAINS = 6_380_051_942, 33_755_361


@dataclass(frozen=True, slots=True)
class Measured:
    """Parameters of the planner by name, the pages they were measured on, and what the crawl's DRUM moved beside
    what the model says."""

    measured_pages: int
    parameters: dict[str, float]
    drum_counted_bytes: float | None = None
    drum_predicted_bytes: float | None = None


def measure(job: Path, pages: float) -> Measured:
    """Read the last `ended` event of JOB/log.jsonl, or what a crawl that runs says of itself, JOB/settings.toml and the
    size of JOB/archive, for a crawl of so many `pages`.

    Where the crawl kept its URLs in DRUMs, the event has their counters (`storage.counters`, as a dict) under the key
    `drum`, by name; URLseen is `seen`. Then b is measured, and the bytes that it moved can be predicted from its
    merges and the hits of its front set. Hosts stand for domains; budgets are not measured.
    """
    ended = _running(job) or _last_ended(job)
    fetched = ended["pages"]
    if not fetched:
        raise JobError(f"the crawl in {job} got no page; there is nothing to plan from")
    links = max(ended["links"] - sum(ended["out_of_scope"].values()), ended["unique_urls"], 1)
    parameters = {
        "rate": ended["pages_per_second"],
        "links_per_page": links / fetched,
        "unique": ended["unique_urls"] / links,
        "unique_per_page": ended["unique_urls"] / fetched,
        "page_size": ended["bytes"] / fetched,
        "cpu_per_page": ended["cpu_seconds"] / fetched,
        "cores": float(os.cpu_count() or 1),
        "domains": _domains(job, fetched, ended["gauges"].get("hosts") or 1, pages),
        "known": 0.0,
    }
    kept = sum(map(_size, (job / "archive").rglob("*")))
    if kept:  # closed archives may have been moved away
        parameters["compression"] = ended["bytes"] / kept
    seen = ended.get("drum", {}).get("seen")
    if not (seen and seen["rows"]):
        return Measured(fetched, parameters)
    counters = Counters(**seen)
    url = counters.aux_bytes / counters.rows
    parameters |= {
        "url_bytes": url,
        "links_per_page": counters.rows / fetched,
        "unique": counters.unique / counters.rows,
        "unique_per_page": counters.unique / fetched,
    }
    # When a crawl is stopped, rows wait in buckets for a merge that never comes: neither side counts them.
    merged = min(counters.aux_read / url, counters.rows - counters.sifted)
    waiting = counters.pairs_written + counters.aux_written - counters.pairs_read - counters.aux_read
    predicted = drum_bytes(merged, counters.unique, _passes(counters.merges, counters.unique), url)
    return Measured(fetched, parameters, counters.moved() - waiting, predicted)


def _passes(merges: int, unique: int) -> float:
    """To how many passes over the final cache so many merges come, as `model.irlbot.drum_bytes` counts them.

    A crawl merges early while fetchers are idle, and later when buckets are full. If the cache grew evenly it would be
    one for each merge; if every merge let it grow by the same factor, hardly more than two in all. What is between
    is taken: the geometric mean.

    >>> _passes(1, 1000), round(_passes(14, 52_000), 1)
    (1.0, 6.2)
    """
    if merges < 2 or unique < 2:
        return float(merges)
    factor = unique ** (1 / merges)
    return math.sqrt(merges * (1 + 2 / (factor - 1)))


def _domains(job: Path, fetched: int, hosts: int, pages: float) -> float:
    """V of a crawl of so many pages: a crawl of chosen sites meets no others; one of the web meets more and more, by
    the power of its size that leads from what this crawl met to what IRLbot met."""
    settings = load_settings(file=job / "settings.toml")
    if settings.scope.level != "web" or fetched >= _IRLBOT_PAGES:
        return float(hosts)
    power = math.log(max(_IRLBOT_DOMAINS / hosts, 1)) / math.log(_IRLBOT_PAGES / fetched)
    return float(hosts * (max(pages, fetched) / fetched) ** min(power, 1.0))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # a crawl that runs gives its files other names
        return 0


def _running(job: Path) -> dict[str, Any] | None:
    """The statistics of the crawl that runs in a job's folder, if one does."""
    found = ask(job, "status") if job.is_dir() else None
    return found if found is not None and found.keys() >= _NEEDED else None


def _last_ended(job: Path) -> dict[str, Any]:
    path = job / "log.jsonl"
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise JobError(f"{job} is not a job: cannot read {path}: {error.strerror}") from error
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:  # a line that a killed crawl did not finish
            continue
        if isinstance(event, dict) and event.get("event") == "ended" and event.keys() >= _NEEDED:
            return event
    raise JobError(f"the crawl in {job} has not ended; --from needs its statistics")
