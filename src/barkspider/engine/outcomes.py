"""Outcomes as rows with named columns: all that is needed to apply one again after a crash."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from barkspider.archive import as_batch
from barkspider.core.batch import UrlBatch
from barkspider.core.events import (
    CheckedIn,
    CheckedOut,
    Denied,
    DomainProbed,
    FetchPage,
    FetchRobots,
    Granted,
    HostResolved,
    LeaseLost,
    Outcome,
    PageFetched,
    ProbeDomain,
    Ranked,
    Received,
    Redirect,
    ResolveHost,
    RobotsFetched,
    Ruled,
    Score,
    Scored,
    Seal,
    Sealed,
    Seeds,
    SiteLeased,
)
from barkspider.core.records import pack_row, unpack_row

Journalled = (
    PageFetched
    | RobotsFetched
    | HostResolved
    | DomainProbed
    | Seeds
    | Ruled
    | Sealed
    | Received
    | Granted
    | Scored
    | CheckedOut
    | CheckedIn
    | LeaseLost
)

# One row for each outcome; `kind` says which columns count. What a later version adds is null for older ones.
SCHEMA = pa.schema(
    [
        # page, robots, resolved, probed, seeds, ruled, sealed, received, granted, scored, checked_out, checked_in, lease_lost
        ("kind", pa.string()),
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
        (
            "links",
            pa.uint32(),
        ),  # how many of the harvest's, also for a robots.txt; null when links do not count
        # of a robots.txt; `origin` is the name of a host that was looked up, to be assigned, or of a domain that was probed
        # by the name in `url`, with all addresses in `address`
        ("origin", pa.string()),
        ("url", pa.string()),
        ("host_key", pa.uint64()),
        ("hops", pa.uint8()),
        ("body", pa.binary()),
        ("redirect", pa.string()),
        ("max_age", pa.float64()),
        # of seeds, of rulings as JSON, and of scores: the keys of domains, then their supporters. Of sites: `_SITE` of each, in `news`; of those that
        # were checked out, the URLs to begin with in `batch`, and behind `news` what was seen of each. For one that was checked in
        # `pages` is 1 if that counts.
        ("batch", pa.binary()),
        # of a batch for another process, or from one; and of a grant. Of scores, `number` is 1 for in force, 0 for not
        ("process", pa.uint16()),
        ("number", pa.uint32()),
        ("checksum", pa.uint64()),
        ("pages", pa.uint64()),
        ("news", pa.binary()),
        # of a page: what it says
        ("gist", pa.uint64()),
    ]
)
_SITE = struct.Struct("<QQII")  # a site, the number of its visit, how many URLs and bytes are told of it
_KIND = pa.struct(list(SCHEMA))
# The columns of other kinds.
_NO_ROBOTS, _NO_PAGE, _NO_EVENT = (None,) * 7, (None,) * 7, (None,) * 7
_NO_ANSWER = (None,) * (len(SCHEMA) - 1 - len(_NO_EVENT))


def is_kept(outcome: Outcome) -> bool:
    """Whether an outcome goes into the journal: a name can be looked up again, unless its host is assigned by it, and so can
    what was never answered."""
    if isinstance(outcome, PageFetched | RobotsFetched):
        return not outcome.stale
    if isinstance(outcome, HostResolved):
        return outcome.asked.assigns
    if isinstance(outcome, CheckedOut):
        return bool(outcome.sites)
    return not isinstance(outcome, Denied | Ranked)


def as_rows(outcomes: Sequence[Outcome]) -> pa.RecordBatch:
    """The outcomes that are kept, in order, without the links of their pages; `from_rows` is the way back."""
    return as_batch(_KIND, [_row(outcome) for outcome in outcomes if is_kept(outcome)])


def from_rows(rows: pa.RecordBatch, links: UrlBatch) -> list[Journalled]:
    """The outcomes again; `links` are those of all pages. Raises what wrong types raise."""
    found: list[Journalled] = []
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
    if isinstance(outcome, HostResolved):
        return _resolved(outcome)
    if isinstance(outcome, DomainProbed):
        return _probed(outcome)
    if isinstance(outcome, Sealed):
        asked = outcome.asked
        return ("sealed", *_NO_ANSWER, None, asked.to, asked.number, None, None, asked.news or None, None)
    if isinstance(outcome, Received):
        return ("received", *_NO_ANSWER, None, outcome.sender, outcome.number, outcome.checksum, *(None,) * 3)
    if isinstance(outcome, Granted):
        return ("granted", *_NO_ANSWER, None, None, None, None, outcome.pages, None, None)
    if isinstance(outcome, Scored):
        score = outcome.asked
        found = score.keys.tobytes() + score.supporters.tobytes()
        decision = None if score.in_force is None else int(score.in_force)
        return ("scored", *_NO_ANSWER, found, None, decision, *(None,) * 4)
    if isinstance(outcome, Ruled):
        said = json.dumps(outcome.changes).encode()
        return ("ruled", *_NO_ANSWER, said, *_NO_EVENT[1:])
    if isinstance(outcome, CheckedOut):
        heads = (_SITE.pack(site.key, site.fence, len(site.links), len(site.seen)) for site in outcome.sites)
        told = b"".join((*heads, *(site.seen for site in outcome.sites)))
        urls = UrlBatch.join([site.links for site in outcome.sites]).encode()
        return (
            "checked_out",
            *_NO_ANSWER,
            urls,
            None,
            len(outcome.sites),
            None,
            int(outcome.left),
            told,
            None,
        )
    if isinstance(outcome, CheckedIn):
        told = _SITE.pack(outcome.key, outcome.fence, 0, 0)
        return ("checked_in", *_NO_ANSWER, None, None, None, None, int(outcome.counts), told, None)
    if isinstance(outcome, LeaseLost):
        told = b"".join(_SITE.pack(key, fence, 0, 0) for key, fence in outcome.sites)
        return ("lease_lost", *_NO_ANSWER, None, None, len(outcome.sites), None, None, told, None)
    assert isinstance(outcome, Seeds)
    return ("seeds", *_NO_ANSWER, outcome.batch.encode(), *_NO_EVENT[1:])


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
        *_NO_EVENT[1:],
        outcome.gist or None,
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
        gist=row.get("gist") or 0,
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
        None if outcome.links is None else len(outcome.links),
        asked.origin,
        asked.url,
        asked.host_key,
        asked.hops,
        outcome.body,
        outcome.redirect,
        outcome.max_age,
        *_NO_EVENT,
    )


def _read_robots(row: dict[str, Any], links: UrlBatch) -> RobotsFetched:
    return RobotsFetched(
        FetchRobots(row["origin"], row["url"], row["address"], row["host_key"], row["hops"]),
        row["status"],
        row["body"],
        row["redirect"],
        row["retry_after"],
        max_age=row["max_age"],
        seconds=row["seconds"],
        cookies=tuple(row["cookies"] or ()),
        links=None if row.get("links") is None else links,
    )


def _resolved(outcome: HostResolved) -> tuple[Any, ...]:
    address, *_ = (*outcome.addresses, None)
    host, key = outcome.asked.host, outcome.asked.host_key
    return (
        *("resolved", None, None, None, None, address, *_NO_PAGE, None),
        *(host, None, key, None, None, None, None, *_NO_EVENT),
    )


def _read_resolved(row: dict[str, Any], links: UrlBatch) -> HostResolved:  # noqa: ARG001
    addresses = () if row["address"] is None else (row["address"],)
    return HostResolved(ResolveHost(row["origin"], row["host_key"], assigns=True), addresses)


def _probed(outcome: DomainProbed) -> tuple[Any, ...]:
    asked = outcome.asked
    return (
        *("probed", None, None, None, None, " ".join(outcome.addresses), *_NO_PAGE, None),
        *(asked.domain, asked.host, asked.host_key, None, None, None, None, *_NO_EVENT),
    )


def _read_probed(row: dict[str, Any], links: UrlBatch) -> DomainProbed:  # noqa: ARG001
    asked = ProbeDomain(row["url"], row["origin"], row["host_key"])
    return DomainProbed(asked, tuple(row["address"].split()))


def _read_seeds(row: dict[str, Any], links: UrlBatch) -> Seeds:  # noqa: ARG001
    return Seeds(UrlBatch.decode(row["batch"]))


def _read_ruled(row: dict[str, Any], links: UrlBatch) -> Ruled:  # noqa: ARG001
    return Ruled(tuple((str(what), str(about)) for what, about in json.loads(row["batch"])))


def _read_sealed(row: dict[str, Any], links: UrlBatch) -> Sealed:  # noqa: ARG001
    return Sealed(Seal(row["process"], row["number"], row.get("news") or b""))


def _read_received(row: dict[str, Any], links: UrlBatch) -> Received:  # noqa: ARG001
    return Received(row["process"], row["number"], row["checksum"])


def _read_granted(row: dict[str, Any], links: UrlBatch) -> Granted:  # noqa: ARG001
    return Granted(row["pages"])


def _read_scored(row: dict[str, Any], links: UrlBatch) -> Scored:  # noqa: ARG001
    found, number = row["batch"], row["number"]
    count = len(found) // (8 + 4)
    keys, supporters = (
        np.frombuffer(found, np.uint64, count),
        np.frombuffer(found, np.uint32, count, 8 * count),
    )
    return Scored(Score(keys, supporters, None if number is None else bool(number)))


def _read_checked_out(row: dict[str, Any], links: UrlBatch) -> CheckedOut:  # noqa: ARG001
    told, urls, sites = row["news"], UrlBatch.decode(row["batch"]), []
    first, place = 0, row["number"] * _SITE.size
    for number in range(row["number"]):
        key, fence, count, size = _SITE.unpack_from(told, number * _SITE.size)
        sites.append(SiteLeased(key, fence, told[place : place + size], urls.slice(first, first + count)))
        first, place = first + count, place + size
    return CheckedOut(tuple(sites), bool(row["pages"]))


def _read_checked_in(row: dict[str, Any], links: UrlBatch) -> CheckedIn:  # noqa: ARG001
    key, fence, _, _ = _SITE.unpack(row["news"])
    return CheckedIn(key, fence, bool(row["pages"]))


def _read_lease_lost(row: dict[str, Any], links: UrlBatch) -> LeaseLost:  # noqa: ARG001
    return LeaseLost(tuple((key, fence) for key, fence, _, _ in _SITE.iter_unpack(row["news"])))


_READ: dict[str, Callable[[dict[str, Any], UrlBatch], Journalled]] = {
    "page": _read_page,
    "robots": _read_robots,
    "resolved": _read_resolved,
    "probed": _read_probed,
    "seeds": _read_seeds,
    "ruled": _read_ruled,
    "sealed": _read_sealed,
    "received": _read_received,
    "granted": _read_granted,
    "scored": _read_scored,
    "checked_out": _read_checked_out,
    "checked_in": _read_checked_in,
    "lease_lost": _read_lease_lost,
}
