"""Figures as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def reasons(counts: dict[str, int]) -> str:
    """Counts by reason, largest first.

    >>> reasons({"robots": 3, "http_404": 1200})
    'http_404 1,200 · robots 3'
    """
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return " · ".join(f"{name} {count:,}" for name, count in ordered)


def problem(host: str, what: str, why: str, times: int) -> str:
    """Why a host could not be reached, as `engine.statistics.Problem` has it.

    >>> problem("a.example", "robots", "connect_failed", 2)
    'a.example: robots.txt connect_failed (2 times)'
    """
    what = {"dns": "name", "robots": "robots.txt"}.get(what, what)
    return f"{host}: {what} {why}" + (f" ({times:,} times)" if times > 1 else "")


def classifier(errors: int) -> dict[str, str]:
    """The row about a classifier of one's own, if there is something to say of it.

    >>> classifier(20), classifier(0)
    ({'classifier': 'failed on 20 pages, which are kept: see log.jsonl'}, {})
    """
    return {"classifier": f"failed on {errors:,} pages, which are kept: see log.jsonl"} if errors else {}


def exchanged(gauges: Mapping[str, int], pages: int) -> dict[str, str]:
    """The row about what several processes sent each other, or kept to themselves; none for one process.

    >>> exchanged({"sent": 300, "sent_bytes": 24_000, "batches": 6, "not_ours": 0}, 100)
    {'exchanged': '300 URLs in 6 batches, 3.00 and 240 bytes a page'}
    >>> exchanged({}, 100)
    {}
    """
    if "sent" not in gauges:
        return {}
    told = f"{gauges['sent']:,} URLs in {gauges['batches']:,} batches"
    if pages and gauges["sent"]:
        told += f", {gauges['sent'] / pages:.2f} and {gauges['sent_bytes'] / pages:.0f} bytes a page"
    dropped = f"; {gauges['not_ours']:,} links of others were dropped" if gauges["not_ours"] else ""
    spared = f"; {gauges['not_sent']:,} replicated ones were not sent" if gauges.get("not_sent") else ""
    return {"exchanged": told + dropped + spared}


def divided(parallel: Mapping[str, Any] | None) -> dict[str, str]:
    """The row about what dividing a crawl has lost, if several processes did.

    >>> divided({"overlap": 0.0, "coverage": 0.8125, "coverage_is": "estimate", "backlog": [{"batches": 2, "urls": 30}]})
    {'divided': 'overlap 0, coverage at most about 0.812; 2 batches and 30 URLs are on their way'}
    >>> divided({"overlap": 0.0, "coverage": 1.0, "coverage_is": "exact", "backlog": []})
    {'divided': 'overlap 0, coverage 1'}
    >>> divided(None)
    {}
    """
    if not parallel or parallel["overlap"] is None:
        return {}
    about = "at most about " if parallel["coverage_is"] == "estimate" else ""
    told = f"overlap {parallel['overlap']:.3g}, coverage {about}{parallel['coverage']:.3g}"
    batches, urls = (sum(pair[name] for pair in parallel["backlog"]) for name in ("batches", "urls"))
    return {
        "divided": told
        + (f"; {batches:,} batches and {urls:,} URLs are on their way" if batches or urls else "")
    }


def loop_held(gauges: Mapping[str, int]) -> str:
    """The longest time for which a crawl looked at no socket.

    >>> loop_held({"loop_held": 1234})
    '1,234 ms without a look at the network'
    """
    return f"{gauges['loop_held']:,} ms without a look at the network"


def volume(size: float) -> str:
    """A size for people.

    >>> volume(12_345_678)
    '12.3 MB'
    """
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
