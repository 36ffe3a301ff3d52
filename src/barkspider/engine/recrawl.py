"""Fetching old pages again: they are written to the journal of a stopped job, for the next run to begin with.

    table of pages ─► those whose newest answer is old, and of a kind ─► journal ─► resume ─► a request for each

| kind of the newest answer | asked for again |
| --- | --- |
| a page, whole or found unchanged | when it is old |
| temporary: 429, or 5xx | when it is old |
| cut: only a part of a page | when it is old, or with `cut` |
| missed: 404, and the answer before it was another, or there was none | when it is old, or with `gone` |
| gone: 410, or 404 twice in a row | with `gone` |

With a budget, pages are chosen by how often each seems to change (`choosing`), whatever else is old.

Redirects and the other answers of 4xx are not asked for again. Requests are conditional where a page is stored whole: that
a part of one is still valid is of no use.

JOB/recrawl.json remembers from before when answers were asked for last, JOB/recrawl.keys which pages a budget was spent on: while some
may still be queued, they are not asked for once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from barkspider.archive import open_table
from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError, UsageError
from barkspider.core.events import SERVER_ERROR, TOO_MANY_REQUESTS, Counters
from barkspider.engine.adding import check_again, write_seeds
from barkspider.engine.checkpoint import JOURNAL, Checkpoint
from barkspider.engine.choosing import Budget, Choice, Keys, Rated, visits
from barkspider.engine.folder import earlier_folders, part_folders
from barkspider.engine.job import Job
from barkspider.engine.links import LinkMaker
from barkspider.frontier.ownership import slot_of
from barkspider.storage.env import Env
from barkspider.storage.store.journal import Journal
from barkspider.url.partition import by_hash

LAST, ASKED = "recrawl.json", "recrawl.keys"
_BUDGET = "budget"  # the name in recrawl.json under which the time is at which a budget was spent last
_PART = 1_000_000  # rows of the table whose keys are looked at together
_ROWS = 4_096  # in a record of the journal: half a megabyte

_OLD = """
    SELECT key, url, depth, coalesce(parent, 0) AS parent FROM stored_pages
    JOIN (
        SELECT key, max(fetch_time) AS newest, max_by(fetch_status, fetch_time, 2)[2] AS status_before
        FROM stored_pages WHERE key % {parts} = {part} GROUP BY key
    ) USING (key)
    WHERE key % {parts} = {part} AND fetch_time = newest AND newest < TIMESTAMP '{before}' AND ({chosen})
"""
_KINDS = {
    "whole": "outcome = 'unchanged' OR outcome = 'ok' AND fetch_status BETWEEN 200 AND 299",
    "temporary": f"fetch_status >= {SERVER_ERROR} OR fetch_status = {TOO_MANY_REQUESTS}",  # as `is_temporary`
    "cut": "content_truncated IS NOT NULL AND fetch_status BETWEEN 200 AND 299",
    "missed": "fetch_status = 404 AND status_before IS DISTINCT FROM 404",
    "gone": "fetch_status = 410 OR fetch_status = 404 AND status_before = 404",
}
_ORDERS = {  # as recrawl.json calls them
    "before": ("whole", "temporary", "cut", "missed"),
    "cut": ("cut",),
    "gone": ("missed", "gone"),
}


class Again(NamedTuple):
    """What a job is to fetch again: so many `pages`, and perhaps some that an earlier call asked for (`unfinished`)."""

    pages: int
    unfinished: bool


def fetch_again(job: Job, before: float, cut: bool = False, gone: bool = False) -> Again:
    """Have the pages of a job fetched again whose newest answer is from before a time, in seconds since 1970.

    With `cut` or `gone`, only these. This process holds the job; a `Crawl` of it, or `resume` later, does the
    fetching. Raises `UsageError` when the job has all the pages that it may have.
    """
    return _in_parts(job, lambda parts: [_fetch_again(part, before, cut, gone) for part in parts])


def spend(job: Job, budget: Budget, now: float) -> Again:
    """Have so many pages fetched again as the budget has, those that are most overdue at a time, in seconds since 1970."""

    def choose(parts: Sequence[Job]) -> list[Again]:
        choice, shelves = Choice(budget, now), [_Shelf(part) for part in parts]
        for shelf in shelves:
            for _, pages in shelf.pages():
                choice.count(pages)
        choice.decide()
        return [shelf.take(choice) for shelf in shelves]

    return _in_parts(job, choose)


def _in_parts(job: Job, work: Callable[[Sequence[Job]], list[Again]]) -> Again:
    """What comes of some work on all parts of a job, which may be one."""
    check_again(job.path, job.settings)
    folders = part_folders(job.path)
    pages = sum(_checkpoint(job.env, folder)[0].pages for folder in folders)
    limit = job.settings.limits.pages
    if 0 < limit <= pages:
        raise UsageError(
            f"{job.path} has the {limit:,} pages that it may have; allow more with --set limits.pages=0"
        )
    if folders == [job.path]:
        return work([job])[0]
    parts = list[Job]()
    try:
        parts += (Job.open(folder, job.env, part=True) for folder in folders)
        found = work(parts)
    finally:
        for part in parts:
            part.close()
    return Again(sum(each.pages for each in found), any(each.unfinished for each in found))


def _fetch_again(job: Job, before: float, cut: bool, gone: bool) -> Again:
    asked, pending = _asked(job)
    unfinished = bool(asked)
    orders = [name for name, given in (("cut", cut), ("gone", gone)) if given] or ["before"]
    chosen = _chosen(orders, asked)
    asked |= {name: max(before, asked.get(name, 0.0)) for name in orders}
    job.env.write_whole(job.path / LAST, json.dumps(asked).encode())
    count = 0

    def make(links: LinkMaker) -> Iterator[UrlBatch]:
        nonlocal count
        for pages in _old_pages(job, before, chosen):
            own = _own(job, links.again(pages))
            own = own.where(~np.isin(own.key, pending)) if len(pending) else own
            count += len(own)
            yield own

    write_seeds(job, make)
    return Again(count, unfinished)


def _own(job: Job, batch: UrlBatch) -> UrlBatch:
    """What was fetched before the crawl was divided anew may be anybody's; else a part has what is its own."""
    if not earlier_folders(job.path):
        return batch
    parallel = job.settings.parallel
    return batch.where(by_hash(getattr(batch, slot_of(parallel)), parallel.processes) == parallel.part)


class _Shelf:
    """The pages of one part of a job on which a budget may be spent."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._asked, self._pending = _asked(job)
        self._links = LinkMaker(job.settings, job.seeds()) if earlier_folders(job.path) else None

    def pages(self) -> Iterator[tuple[pa.Table, Rated]]:
        """Its pages but for those that were asked for and may still be queued, some at a time, with their last visits."""
        from barkspider.archive.views import ask  # here: it loads DuckDB

        archives, parts = _archives(self._job)
        for table, pages in visits(
            lambda sql: ask(self._job.env, archives, sql), parts, "key, url, depth, parent"
        ):
            kept = ~(np.isin(pages.keys, self._pending) & (pages.last < self._asked.get(_BUDGET, 0.0)))
            if self._links is not None:
                batch = self._links.again(_rows(table, pages.rows))
                kept &= np.isin(pages.keys, _own(self._job, batch).key)
            yield table, pages.where(kept)

    def take(self, choice: Choice) -> Again:
        """Have those fetched again that are due. JOB/recrawl.keys is written first: what it names and nobody asked for is taken for
        queued until the job has nothing left."""
        chosen = list[pa.RecordBatch]()
        keys = [self._pending]
        for table, pages in self.pages():
            due = choice.due(pages)
            chosen.append(_rows(table, pages.rows[due]))
            keys.append(pages.keys[due])
        env, path = self._job.env, self._job.path
        env.write_whole(path / ASKED, np.concatenate(keys).tobytes())
        env.write_whole(path / LAST, json.dumps({**self._asked, _BUDGET: choice.now}).encode())
        count = 0

        def make(links: LinkMaker) -> Iterator[UrlBatch]:
            nonlocal count
            for rows in chosen:
                for start in range(0, len(rows), _ROWS):
                    batch = links.again(rows.slice(start, _ROWS))
                    count += len(batch)
                    yield batch

        write_seeds(self._job, make)
        return Again(count, bool(self._asked))


def _rows(table: pa.Table, rows: Any) -> pa.RecordBatch:
    """Some rows, as `LinkMaker.again` takes them."""
    columns = table.select(["key", "url", "depth", "parent"]).take(pa.array(rows))
    whole: pa.RecordBatch = columns.combine_chunks().to_batches()[0] if len(rows) else _no_rows(columns)
    return whole


def _no_rows(columns: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], columns.schema)


def _asked(job: Job) -> tuple[dict[str, float], Keys]:
    """What was asked for and may still be queued: from before when, by the order that asked for it, and the keys of the pages on which
    a budget was spent."""
    counters, more = _checkpoint(job.env, job.path)
    if not (more or counters.queued + counters.deferred + counters.in_flight):
        return {}, np.empty(0, np.uint64)
    asked, names = _last(job), job.env.list(job.path)
    there = _BUDGET in asked and ASKED in names
    return asked, read_asked(job.env, job.path) if there else np.empty(0, np.uint64)


def read_asked(env: Env, folder: Path) -> Keys:
    """What JOB/recrawl.keys says; `StorageError` when that is damaged."""
    data = env.read(folder / ASKED)
    if len(data) % 8:
        raise StorageError(f"{folder / ASKED} is damaged; remove it to spend a budget on any page")
    return np.frombuffer(data, np.uint64)


def _chosen(orders: list[str], asked: dict[str, float]) -> str:
    """Which newest answers these orders mean: of their kinds, and not of those that some order has asked for already."""
    parts = []
    for kind in dict.fromkeys(kind for name in orders for kind in _ORDERS[name]):
        since = max(asked.get(name, 0.0) for name, kinds in _ORDERS.items() if kind in kinds)
        parts.append(f"newest >= TIMESTAMP '{_sql_time(since)}' AND ({_KINDS[kind]})")
    return " OR ".join(parts)


def _checkpoint(env: Env, folder: Path) -> tuple[Counters, bool]:
    """What the last checkpoint has counted, and whether the journal has more than that."""
    found = Checkpoint.read(env, folder)
    counters = found.counters(env, folder) if found else Counters()
    applied = found.progress.sequence if found else 0
    return counters, any(True for _ in Journal(env, folder / JOURNAL, applied).tail())


def _last(job: Job) -> dict[str, float]:
    """From before when answers were asked for last, by the order that asked for them."""
    if LAST not in job.env.list(job.path):
        return {}
    return read_last(job.env, job.path)


def read_last(env: Env, folder: Path) -> dict[str, float]:
    """What JOB/recrawl.json says; `StorageError` when that is damaged."""
    try:
        found = {name: float(time) for name, time in json.loads(env.read(folder / LAST)).items()}
        for time in found.values():
            _sql_time(time)
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError, OSError) as error:
        raise StorageError(f"{folder / LAST} is damaged; remove it to fetch all old pages again") from error
    return found


def _archives(job: Job) -> tuple[list[Path], int]:
    """The archives with the pages of a job, and in how many parts of about a million rows their pages can be looked at."""
    archives = [*(folder / "archive" for folder in earlier_folders(job.path)), job.archive]
    rows = sum(
        len(batch)
        for archive in archives
        for batch in open_table(job.env, archive, "pages").batches(["depth"])
    )
    return archives, rows // _PART + 1


def _old_pages(job: Job, before: float, chosen: str) -> Iterator[pa.RecordBatch]:
    """key, url, depth and parent of pages, some thousands at a time. As columns, of a million at most at once."""
    from barkspider.archive.views import ask  # here: it loads DuckDB

    archives, parts = _archives(job)
    for part in range(parts):
        sql = _OLD.format(parts=parts, part=part, before=_sql_time(before), chosen=chosen)
        yield from ask(job.env, archives, sql).to_batches(_ROWS)


def _sql_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(" ")
