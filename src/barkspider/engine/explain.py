"""One fetch, explained: what an operator asks when a site misbehaves.

The same steps as a crawl takes for a URL (name, robots.txt, page), with the same parts and the same rules,
one after the other and without the pauses between them.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

from barkspider.core.credentials import OURS
from barkspider.core.settings import Settings
from barkspider.fetch import REDIRECTS, Fetcher, Resolution, Response
from barkspider.frontier.robots.rules import MOST_REDIRECTS, ROBOTS, UNREACHABLE, refusal_of, rules_of
from barkspider.url import DISALLOW_ALL, landing, origin, split


@dataclass(frozen=True, slots=True)
class RobotsVerdict:
    """What robots.txt says: where it was found at last, how that ended, and what it means for the URL."""

    url: str
    outcome: str
    detail: str
    allowed: bool
    refusal: str  # the name under which a crawl counts it, or ""
    crawl_delay: float | None
    sitemaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one fetch. `response` is None when nothing was asked for, and `outcome` says why."""

    url: str
    outcome: str
    resolution: Resolution
    resolving: float
    robots: RobotsVerdict | None
    response: Response | None

    @property
    def redirect(self) -> str:
        """Where the answer leads, or ""."""
        if self.response is None or self.response.exchange.status not in REDIRECTS:
            return ""
        return _target(self.response)

    @property
    def request(self) -> str:
        """What was sent, without what only the user and the server are to know."""
        if self.response is None:
            return ""
        lines = self.response.request.decode("latin-1").split("\r\n")
        return "\r\n".join([lines[0], *map(_without_secret, lines[1:])])

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found: dict[str, Any] = {
            "url": self.url,
            "outcome": self.outcome,
            "addresses": list(self.resolution.addresses),
            "dns_error": self.resolution.error,
            "robots": asdict(self.robots) if self.robots is not None else None,
        }
        if self.response is None:
            return found
        exchange = self.response.exchange
        return found | {
            "detail": exchange.detail,
            "address": self.response.address,
            "request": self.request,
            "status": exchange.status,
            "headers": [
                [name.decode("latin-1"), value.decode("latin-1")] for name, value in exchange.headers
            ],
            "redirect": self.redirect,
            "seconds": {"dns": round(self.resolving, 6)}
            | {name: round(value, 6) for name, value in exchange.timing._asdict().items()},
            "bytes": len(exchange.head) + len(exchange.payload),
            "body_bytes": len(self.response.body),
            "cut": exchange.cut,
            "repaired": exchange.repaired,
            "decoded": self.response.decoded,
        }


async def explain(url: str, settings: Settings) -> Explanation:
    """Fetch a canonical URL as a crawl would, once; robots.txt is obeyed if the settings say so."""
    async with aclosing(Fetcher(settings)) as fetcher:
        before = time.perf_counter()
        found = await fetcher.resolve(split(url).host)
        resolving = time.perf_counter() - before
        if not found.addresses:
            return Explanation(url, found.error, found, resolving, None, None)
        robots = await _robots(fetcher, url, found.addresses[0], settings)
        if settings.politeness.obey_robots and not robots.allowed:
            return Explanation(url, f"refused_{robots.refusal}", found, resolving, robots, None)
    # Another one, so that the page has a connection of its own and every phase is seen.
    async with aclosing(Fetcher(settings)) as fetcher:
        response = await fetcher.fetch(url, found.addresses[0], any_type=False)
        return Explanation(url, response.exchange.outcome, found, resolving, robots, response)


async def _robots(fetcher: Fetcher, url: str, address: str, settings: Settings) -> RobotsVerdict:
    where = f"{origin(url)}/robots.txt"
    for _ in range(MOST_REDIRECTS + 1):
        response = await fetcher.fetch(where, address)
        target = _target(response) if response.exchange.status in REDIRECTS else ""
        found = await fetcher.resolve(split(target).host) if target else None
        if found is None or not found.addresses:
            break
        where, address = target, found.addresses[0]
    exchange = response.exchange
    given = rules_of(exchange.status, response.body, settings.agent.name, origin(url))
    rules, name = (DISALLOW_ALL, UNREACHABLE) if given is None else (given, ROBOTS)
    refusal = refusal_of(url, rules, name, rules.crawl_delay or 0.0, settings.politeness.max_crawl_delay)
    return RobotsVerdict(
        where, exchange.outcome, exchange.detail, not refusal, refusal, rules.crawl_delay, rules.sitemaps
    )


def _without_secret(line: str) -> str:
    """A header of a request; of those that a user gave, and of cookies, the name alone."""
    name, colon, _ = line.partition(":")
    if not colon or (name.lower() in OURS and name.lower() != "cookie"):
        return line
    return f"{name}: (not shown)"


def _target(response: Response) -> str:
    location = response.exchange.header(b"location")
    return landing(location, response.url) if location else ""
