"""The hazards of the web, each by a name, on domains of their own that regular pages link to.

| name | what it does |
| --- | --- |
| spam_farm | a few paid domains with endless subdomains and pages, linking to each other and to two targets |
| calendar | every month links to the next one, without end |
| session_ids | links carry a fresh PHPSESSID unless the client sends the cookie that it was given |
| growing_paths | every page links one level deeper into itself: /chapter/chapter/chapter/ |
| listings | Apache directory listings with links that re-order them |
| mirrors | four domains with the same pages, byte for byte |
| redirects | relative, absolute, chains, loops, to HTTPS; and four that lead back to their own normal form |
| soft_404 | pages that do not exist answer 200 |
| wrong_types | HTML as text/plain, as octets, without a type; binary data as HTML |
| slow | waits before answering, or sends headers or body drop by drop |
| dead | refused connections, names that do not resolve or never do, connections closed early |
| throttled | 429 and 503 with Retry-After in seconds, as a date, absurdly long, negative |
| wildcard_dns | every subdomain resolves, to the same page with links to other subdomains |
| broken_robots | robots.txt with 5xx, one that never comes, one that closes the connection |
| link_exchange | 300 paid domains that link to nearly all of each other, and bought a few links from others |

All stand on `base`. `traps` are endless or repeated places, `redirects` redirects, `servers` those that misbehave, and
`link_exchange` the exchange.
"""

from __future__ import annotations

from barkspider.lab.synthweb.hazards.base import Ground, Hazard, server_address
from barkspider.lab.synthweb.hazards.link_exchange import LinkExchange
from barkspider.lab.synthweb.hazards.redirects import Redirects
from barkspider.lab.synthweb.hazards.servers import BrokenRobots, Dead, Slow, Soft404, Throttled, WrongTypes
from barkspider.lab.synthweb.hazards.traps import (
    Calendar,
    GrowingPaths,
    Listings,
    Mirrors,
    SessionIds,
    SpamFarm,
    WildcardDns,
)

KINDS: dict[str, type[Hazard]] = {
    kind.name: kind
    for kind in (
        SpamFarm, Calendar, SessionIds, GrowingPaths, Listings, Mirrors, Redirects, Soft404, WrongTypes, Slow, Dead,
        Throttled, WildcardDns, BrokenRobots, LinkExchange,
    )
}  # fmt: skip

__all__ = ["KINDS", "Ground", "Hazard", "LinkExchange", "server_address"]
