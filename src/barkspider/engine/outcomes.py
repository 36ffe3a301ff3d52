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
_KIND = pa.struct(list(SCHEMA))
_NO_ROBOTS, _NO_PAGE = (None,) * 7, (None,) * 8  # the columns of the other kind


def is_kept(outcome: Outcome) -> bool:
    """Whether an outcome goes into the journal: a name can be looked up again, and so can what was never answered."""
    return not isinstance(outcome, HostResolved) and (isinstance(outcome, Seeds) or not outcome.stale)


def as_rows(outcomes: Sequence[Outcome]) -> pa.RecordBatch:
    """The outcomes that are kept, in order, without the links of their pages; `from_rows` is the way back."""
    return as_batch(_KIND, [_row(outcome) for outcome in outcomes if is_kept(outcome)])


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


def _row(outcome: Outcome) -> tuple[Any, ...]:
    """In the order of `SCHEMA`."""
    if isinstance(outcome, PageFetched):
        return _page(outcome)
    if isinstance(outcome, RobotsFetched):
        return _robots(outcome)
    assert isinstance(outcome, Seeds)
    return ("seeds", *(None,) * (len(SCHEMA) - 2), outcome.batch.encode())


def _page(outcome: PageFetched) -> tuple[Any, ...]:
    asked, redirect, links = outcome.asked, outcome.redirect, outcome.links
    return (
        "page",
        outcome.status,
        outcome.seconds,
        outcome.retry_after,
        outcome.cookies or None,
        asked.address,
        pack_row(asked.row),
        asked.trail or None,
        outcome.failure,
        outcome.temporary,
        pack_row(redirect.row) if redirect else None,
        redirect.exact if redirect else None,
        outcome.digest,
        None if links is None else len(links),
        *_NO_ROBOTS,
        None,
    )


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


def _robots(outcome: RobotsFetched) -> tuple[Any, ...]:
    asked = outcome.asked
    return (
        "robots",
        outcome.status,
        outcome.seconds,
        outcome.retry_after,
        outcome.cookies or None,
        asked.address,
        *_NO_PAGE,
        asked.origin,
        asked.url,
        asked.host_key,
        asked.hops,
        outcome.body,
        outcome.redirect,
        outcome.max_age,
        None,
    )


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
