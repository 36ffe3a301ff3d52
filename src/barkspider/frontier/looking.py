"""What the frontier holds of a host in RAM, as JSON for people: it changes nothing."""

from __future__ import annotations

import math
from typing import Any

from barkspider.frontier.politeness.hosts import Host, Origin
from barkspider.frontier.robots.rules import UNREACHABLE


def about_host(host: Host | None, now: float) -> dict[str, Any]:
    """Its state, what is queued for it, for how long it is left alone, and which robots.txt counts. Waits are in seconds.

    >>> about_host(None, 0.0)
    {'known': False}
    >>> about_host(Host(7), 0.0)["state"]
    'idle'
    """
    if host is None:
        return {"known": False}
    server = host.server
    return {
        "known": True,
        "state": host.state.value,
        "queued": host.length,
        "wait": _wait(host.next_time, now),
        "address": "" if server is None else server.address,
        "server_wait": 0.0 if server is None else _wait(server.next_time, now),
        "crawl_delay": host.crawl_delay,
        "trouble": host.trouble,
        "error": host.error,
        "origins": [_about_origin(origin, now) for origin in host.origins],
    }


def _about_origin(origin: Origin, now: float) -> dict[str, Any]:
    in_force, missed = origin.until > now, origin.refusal == UNREACHABLE
    known = "could not be had: nothing is asked for" if missed else "rules are in force"
    verdict = known if in_force else "to be asked for"
    return {
        "name": origin.name,
        "asking": origin.asking,
        "verdict": verdict,
        "until": origin.until if in_force and math.isfinite(origin.until) else None,
    }


def _wait(until: float, now: float) -> float:
    return max(until - now, 0.0) if math.isfinite(until) else 0.0
