"""Outcomes as rows with named columns: all that is needed to apply one again after a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from barkspider.archive import as_batch
from barkspider.core.batch import UrlBatch
from barkspider.core.events import (
    FetchPage,
    FetchRobots,
    HostResolved,
    Outcome,
    PageFetched,
    Redirect,
    RobotsFetched,
    Seeds,
)
from barkspider.core.records import pack_row, unpack_row

Kept = PageFetched | RobotsFetched | Seeds

# One row for each outcome; `kind` says which columns count. What a later version adds is null for older ones.
SCHEMA = pa.schema(
    [
        ("kind", pa.string()),  # page, robots, seeds
        ("status", pa.uint16()),
        ("seconds", pa.float64()),
        ("retry_after", pa.float64()),
        ("cookies", pa.list_(pa.string())),
        ("address", pa.string()),
        # of a page; `row` and `target` are rows as docs/formats/rows.md has them
        ("row", pa.binary()),
        ("trail", pa.list_(pa.uint64())),
        ("failure", pa.string()),
        ("temporary", pa.bool_()),
        ("target", pa.binary()),
        ("exact", pa.binary()),
        ("digest", pa.uint64()),
        ("links", pa.uint32()),  # how many of the harvest's; null when the page's links do not count
        # of a robots.txt
        ("origin", pa.string()),
        ("url", pa.string()),
        ("host_key", pa.uint64()),
        ("hops", pa.uint8()),
        ("body", pa.binary()),
        ("redirect", pa.string()),
        ("max_age", pa.float64()),
        # of seeds
        ("batch", pa.binary()),
    ]
)


def is_kept(outcome: Outcome) -> bool:
    """Whether an outcome goes into the journal: a name can be looked up again, and so can what was never answered."""
    return not isinstance(outcome, HostResolved) and (isinstance(outcome, Seeds) or not outcome.stale)


def as_rows(outcomes: Sequence[Outcome]) -> pa.RecordBatch:
    """The outcomes that are kept, in order, without the links of their pages; `from_rows` is the way back."""
    return as_batch(SCHEMA, [_row(outcome) for outcome in outcomes if is_kept(outcome)])


def from_rows(rows: pa.RecordBatch, links: UrlBatch) -> list[Kept]:
    """The outcomes again; `links` are those of all pages. Raises what wrong types raise."""
    found: list[Kept] = []
    place = 0
    for row in rows.to_pylist():
        count = row.get("links") or 0
        found.append(_READ[row["kind"]](row, links.slice(place, place + count)))
        place += count
    if place != len(links):
        raise ValueError(f"{len(links)} links for {place} that pages have")
    return found


def _row(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, PageFetched):
        return _page(outcome)
    if isinstance(outcome, RobotsFetched):
        return _robots(outcome)
    assert isinstance(outcome, Seeds)
    return {"kind": "seeds", "batch": outcome.batch.encode()}


def _page(outcome: PageFetched) -> dict[str, Any]:
    asked, redirect, links = outcome.asked, outcome.redirect, outcome.links
    return {
        "kind": "page",
        "row": pack_row(asked.row),
        "address": asked.address,
        "trail": asked.trail or None,
        "status": outcome.status,
        "failure": outcome.failure,
        "temporary": outcome.temporary,
        "retry_after": outcome.retry_after,
        "target": pack_row(redirect.row) if redirect else None,
        "exact": redirect.exact if redirect else None,
        "digest": outcome.digest,
        "seconds": outcome.seconds,
        "cookies": outcome.cookies or None,
        "links": None if links is None else len(links),
    }


def _read_page(row: dict[str, Any], links: UrlBatch) -> PageFetched:
    return PageFetched(
        FetchPage(unpack_row(row["row"]), row["address"], tuple(row["trail"] or ())),
        row["status"],
        row["failure"],
        row["temporary"],
        row["retry_after"],
        None if row["links"] is None else links,
        Redirect(unpack_row(row["target"]), row["exact"]) if row["target"] is not None else None,
        row["digest"],
        seconds=row["seconds"],
        cookies=tuple(row["cookies"] or ()),
    )


def _robots(outcome: RobotsFetched) -> dict[str, Any]:
    asked = outcome.asked
    return {
        "kind": "robots",
        "origin": asked.origin,
        "url": asked.url,
        "address": asked.address,
        "host_key": asked.host_key,
        "hops": asked.hops,
        "status": outcome.status,
        "body": outcome.body,
        "redirect": outcome.redirect,
        "retry_after": outcome.retry_after,
        "max_age": outcome.max_age,
        "seconds": outcome.seconds,
        "cookies": outcome.cookies or None,
    }


def _read_robots(row: dict[str, Any], links: UrlBatch) -> RobotsFetched:  # noqa: ARG001
    return RobotsFetched(
        FetchRobots(row["origin"], row["url"], row["address"], row["host_key"], row["hops"]),
        row["status"],
        row["body"],
        row["redirect"],
        row["retry_after"],
        max_age=row["max_age"],
        seconds=row["seconds"],
        cookies=tuple(row["cookies"] or ()),
    )


def _read_seeds(row: dict[str, Any], links: UrlBatch) -> Seeds:  # noqa: ARG001
    return Seeds(UrlBatch.decode(row["batch"]))


_READ: dict[str, Callable[[dict[str, Any], UrlBatch], Kept]] = {
    "page": _read_page,
    "robots": _read_robots,
    "seeds": _read_seeds,
}
