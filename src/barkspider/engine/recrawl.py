"""Fetching old pages again: they are written to the journal of a stopped job, for the next run to begin with.

    table of pages ─► those whose newest exchange is old, or was cut ─► journal ─► resume ─► a request for each

Requests are conditional, but for pages that were cut: that these are still valid is of no use.

JOB/recrawl.json remembers which pages were asked for last: while some may still be queued, they are not asked for
once more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa

from barkspider.archive import open_table
from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError, UsageError
from barkspider.core.events import Counters
from barkspider.engine.adding import write_seeds
from barkspider.engine.checkpoint import JOURNAL, Checkpoint
from barkspider.engine.job import Job
from barkspider.engine.links import LinkMaker
from barkspider.storage.store.journal import Journal

_LAST = "recrawl.json"
_PART = 1_000_000  # rows of the table whose keys are looked at together
_ROWS = 4_096  # in a record of the journal: half a megabyte

_OLD = """
    SELECT key, url, depth, coalesce(parent, 0) AS parent FROM stored_pages
    JOIN (SELECT key, max(fetch_time) AS newest FROM stored_pages WHERE key % {parts} = {part} GROUP BY key)
    USING (key)
    WHERE key % {parts} = {part} AND fetch_time = newest
        AND newest >= TIMESTAMP '{since}' AND newest < TIMESTAMP '{before}'
        AND ({chosen})
"""
_WHOLE = "outcome = 'unchanged' OR outcome = 'ok' AND fetch_status BETWEEN 200 AND 299"
_CUT = "content_truncated IS NOT NULL AND fetch_status BETWEEN 200 AND 299"


class Again(NamedTuple):
    """What a job is to fetch again: so many `pages`, and perhaps some that an earlier call asked for (`unfinished`)."""

    pages: int
    unfinished: bool


def fetch_again(job: Job, before: float, cut: bool = False) -> Again:
    """Have the pages of a job fetched again whose newest exchange is from before a time, in seconds since 1970.

    They are those that are whole, or those that were `cut`. This process holds the job; a `Crawl` of it, or `resume` later, does the fetching. Raises `UsageError` when the
    job has all the pages that it may have.
    """
    counters, more = _checkpoint(job)
    limit = job.settings.limits.pages
    if 0 < limit <= counters.pages:
        raise UsageError(
            f"{job.path} has the {limit:,} pages that it may have; allow more with --set limits.pages=0"
        )
    asked = _last(job) if more or counters.queued + counters.deferred + counters.in_flight else {}
    unfinished, name = bool(asked), "cut" if cut else "before"
    since = asked.get(name, 0.0)
    asked[name] = max(before, since)
    job.env.write_whole(job.path / _LAST, json.dumps(asked).encode())
    count = 0

    def make(links: LinkMaker) -> Iterator[UrlBatch]:
        nonlocal count
        for pages in _old_pages(job, since, before, _CUT if cut else _WHOLE):
            count += len(pages)
            yield links.again(pages)

    write_seeds(job, make)
    return Again(count, unfinished)


def _checkpoint(job: Job) -> tuple[Counters, bool]:
    """What the last checkpoint has counted, and whether the journal has more than that."""
    found = Checkpoint.read(job.env, job.path)
    counters = found.counters(job.env, job.path) if found else Counters()
    applied = found.progress.sequence if found else 0
    return counters, any(True for _ in Journal(job.env, job.path / JOURNAL, applied).tail())


def _last(job: Job) -> dict[str, float]:
    """From before when pages were asked for last: whole ones (`before`) and others (`cut`), if they ever were."""
    if _LAST not in job.env.list(job.path):
        return {}
    try:
        return {name: float(time) for name, time in json.loads(job.env.read(job.path / _LAST)).items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise StorageError(
            f"{job.path / _LAST} is damaged; remove it to fetch all old pages again"
        ) from error


def _old_pages(job: Job, since: float, before: float, chosen: str) -> Iterator[pa.RecordBatch]:
    """key, url, depth and parent of pages, some thousands at a time. As columns, of a million at most at once."""
    from barkspider.archive.views import ask  # here: it loads DuckDB

    rows = sum(len(batch) for batch in open_table(job.env, job.archive, "pages").batches(["depth"]))
    parts = rows // _PART + 1
    for part in range(parts):
        sql = _OLD.format(
            parts=parts, part=part, since=_sql_time(since), before=_sql_time(before), chosen=chosen
        )
        yield from ask(job.env, job.archive, sql).to_batches(_ROWS)


def _sql_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(" ")
