"""The pages of a job behind a cursor: what feeds an index or a database with each page exactly once.

    tables/pages, in the order of their rows ─► those of the last checkpoint ─► behind the cursor ─► pages

Rows of the table `pages` are only ever appended, and merging files keeps their order: so the number of a row, in each
part of the job by itself, is a place that no restart, merge or resizing moves. Only rows that a checkpoint has are
given: what came later may, after a loss of power, be fetched anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import xxhash

from barkspider.archive.recovery import Committed
from barkspider.archive.tables import TableFile, TableFolder, open_table
from barkspider.core.errors import StorageError, UsageError
from barkspider.engine.pages import CrawledPage, Exchanges
from barkspider.engine.stored import StoredJob
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import MANIFEST, read_manifest

_TABLE = "pages"
_VERSION = 1


class Place(NamedTuple):
    """So many rows of a part are behind us; `before` of them lie in the writes before number `write`, so that files of
    these need not be opened."""

    rows: int = 0
    write: int = 0
    before: int = 0


_START = Place()


def changes(job: StoredJob, since: str = "") -> Iterator[CrawledPage]:
    """The pages of a job behind a cursor, as far as it has committed them; see `StoredJob.changes`."""
    env, name = Env(), _name_of(job)
    places = _parse(since, name)
    exchanges = Exchanges(job)
    try:
        for archive in job.archives:
            part = str(archive.parent.relative_to(job.path))
            for place, row in _rows(env, archive, places.get(part, _START)):
                cursor = partial(_format, name, dict(places), part, place)
                yield CrawledPage(exchanges, archive, row, cursor)
                places[part] = place
    finally:
        exchanges.close()


def _rows(env: Env, archive: Path, place: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The committed rows of a part behind a place, each with the place behind it."""
    table = open_table(env, archive, _TABLE)
    while True:
        parts = _committed(env, archive, table)
        if not parts and place.rows:
            raise _ahead(archive)
        try:
            for behind, row in _rows_of(table, parts, place):
                place = behind
                yield behind, row
            return
        except StorageError:
            if parts == _committed(env, archive, table):  # else files were merged: their rows are in another
                raise


def _rows_of(
    table: TableFolder, parts: list[TableFile], place: Place
) -> Iterator[tuple[Place, dict[str, Any]]]:
    first = next((number for number, part in enumerate(parts) if part.first == place.write), 0)
    # Where the writes that are known lie in a file with others now, rows are counted from the beginning.
    before = place.before if parts and parts[first].first == place.write else 0
    rows = place.rows
    for part in parts[first:]:
        length = table.length(part)
        if before + length > rows:
            for batch in table.batches(table.schema.names, rows - before, [part]):
                for row in batch.to_pylist():
                    rows += 1
                    yield Place(rows, part.first, before), row
        before += length
    if before < rows:
        raise _ahead(table.folder.parents[1])


def _committed(env: Env, archive: Path, table: TableFolder) -> list[TableFile]:
    """The files that the last checkpoint stands on. Listed first: what is merged then was committed before."""
    parts, folder = table.parts(), archive.parent
    if MANIFEST not in env.list(folder):
        return []
    state = read_manifest(env, folder)[1].get("kept")
    last = Committed.read(state).tables.get(_TABLE, -1) if state else -1
    return [part for part in parts if part.last <= last]


def _name_of(job: StoredJob) -> str:
    """What tells a job from others, and from itself made anew; nobody learns its seed from that."""
    return xxhash.xxh3_64_hexdigest(str(job.settings.seed).encode(), seed=_VERSION)


def _format(name: str, places: Mapping[str, Place], part: str, place: Place) -> str:
    at = {**places, part: place}
    return json.dumps({"version": _VERSION, "job": name, "at": at}, separators=(",", ":"))


def _parse(cursor: str, name: str) -> dict[str, Place]:
    if not cursor:
        return {}
    try:
        said = json.loads(cursor)
        version, job = said["version"], said["job"]
        places = {str(part): Place(*place) for part, place in said["at"].items()}
        if not all(type(number) is int and number >= 0 for place in places.values() for number in place):
            raise ValueError("a place is no number")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{cursor[:60]!r} is no cursor: give `since` what a page had as its cursor, or nothing to begin"
        ) from error
    if version != _VERSION:
        raise UsageError(f"the cursor has version {version}, not {_VERSION}: begin without one")
    if job != name:
        raise UsageError("the cursor is that of another job: begin without one")
    return places


def _ahead(folder: Path) -> UsageError:
    return UsageError(
        f"{folder} has fewer pages than the cursor says were read: it was brought back from an older copy. "
        "Begin without a cursor"
    )
