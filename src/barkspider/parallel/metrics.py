"""What it costs to divide a crawl, and what it loses: the metrics of *Parallel Crawlers*, section 4, as it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barkspider.frontier.census import KeySample


def measure(
    parts: Sequence[Mapping[str, Any]], censuses: Sequence[Mapping[str, KeySample]]
) -> dict[str, Any]:
    """Overlap, coverage, what was sent a page, and what has not arrived, from what the parts told last and their samples.

    `overlap` is (N - I) / I: pages that another process fetched too, for each different page. `coverage` is I / U, where U
    are the pages to fetch. They are known when nothing is left anywhere and nothing was dropped; else U is an estimate, as
    `coverage_is` says: of the URLs that are known and were not tried as many are taken to be pages as of those that were, and
    what these would lead to is not in it. So while a crawl runs, and behind firewalls, coverage is at most that. Both are None
    before there is a page; `sampled` is the share of URLs that they were found by, 1 for all.

    Two processes with a page each, one of which has left a URL to the other that this does not know:

    >>> def part(**more):
    ...     return {"pages": 1, "redirects": 0, "failed": {}, "refused": {}, "queued": 0, "deferred": 0, "in_flight": 0,
    ...         "dropped": 0, "gauges": {"sent": 0, "sent_bytes": 0, "batches": 0, "to_send": 0}, "others": more}
    >>> others = {"sealed": [0, 0], "applied": [0, 0], "waiting": [0, 0]}
    >>> one = {"fetched": KeySample([1]), "taken": KeySample([1]), "left": KeySample([2, 3])}
    >>> two = {"fetched": KeySample([2]), "taken": KeySample([2]), "left": KeySample()}
    >>> found = measure([part(**others), part(**others)], [one, two])
    >>> found["overlap"], round(found["coverage"], 3), found["coverage_is"]
    (0.0, 0.667, 'estimate')
    """
    pages = sum(part["pages"] for part in parts)
    sent = {name: sum(part["gauges"][name] for part in parts) for name in ("sent", "batches", "sent_bytes")}
    names = dict(zip(sent, ("urls", "messages", "bytes"), strict=True))
    return {
        **_fetched(parts, censuses),
        **{names[name]: count for name, count in sent.items()},
        **{f"{names[name]}_a_page": round(count / max(pages, 1), 4) for name, count in sent.items()},
        "backlog": _backlog(parts),
    }


def _fetched(
    parts: Sequence[Mapping[str, Any]], censuses: Sequence[Mapping[str, KeySample]]
) -> dict[str, Any]:
    """Overlap and coverage."""
    known = [each for each in censuses if each]
    last = min((sample.last for each in known for sample in each.values()), default=0)
    sampled = KeySample(last=last).share
    fetched = [each["fetched"].up_to(last) for each in known]
    times, different = sum(map(len, fetched)), len(set().union(*fetched))
    if not different or len(known) < len(parts):
        return {"overlap": None, "coverage": None, "coverage_is": "unknown", "sampled": sampled}
    left = set().union(*(each["left"].up_to(last) for each in known))
    unknown = len(left.difference(*(each["taken"].up_to(last) for each in known))) / sampled
    pages = sum(part["pages"] for part in parts)
    tried = sum(
        part["pages"] + part["redirects"] + sum(part["failed"].values()) + sum(part["refused"].values())
        for part in parts
    )
    untried = unknown + sum(
        part["queued"] + part["deferred"] + part["in_flight"] + part["dropped"] + part["gauges"]["to_send"]
        for part in parts
    )
    unique = pages * different / times
    wanted = unique + untried * pages / max(tried, 1)
    return {
        "overlap": round(times / different - 1, 4),
        "coverage": round(unique / wanted, 4),
        "coverage_is": "estimate" if untried else "exact",
        "sampled": sampled,
    }


def _backlog(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, int]]:
    """For each pair of processes between which something is under way: batches that were not taken in, and URLs that are in
    none yet."""
    found = []
    for sender, one in enumerate(parts):
        for receiver, other in enumerate(parts):
            batches = one["others"]["sealed"][receiver] - other["others"]["applied"][sender]
            urls = one["others"]["waiting"][receiver]
            if batches or urls:
                found.append({"sender": sender, "receiver": receiver, "batches": batches, "urls": urls})
    return found
