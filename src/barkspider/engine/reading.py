"""From a response to an outcome: archive it, read its links, say how it ended."""

from __future__ import annotations

from collections.abc import Iterable

from barkspider.archive import WarcWriter
from barkspider.core.clock import Clock
from barkspider.core.events import FetchPage, FetchRobots, PageFetched, Redirect, RobotsFetched
from barkspider.core.records import UrlBatch
from barkspider.core.settings import Settings
from barkspider.engine.links import LinkMaker
from barkspider.engine.statistics import Tally
from barkspider.fetch import REDIRECTS, STALE, TEMPORARY, Response, retry_after
from barkspider.page import PageReader, is_html
from barkspider.url import Keys, landing


def max_age(cache_control: Iterable[str]) -> float | None:
    """For how many seconds an answer may be kept, from its Cache-Control headers; None if they do not say.

    >>> max_age(["public, max-age=600"]), max_age(["max-age=600", "no-cache"]), max_age(["public"])
    (600.0, 0.0, None)
    """
    ages = []
    for directive in ",".join(cache_control).lower().split(","):
        name, _, value = directive.strip().partition("=")
        if name in ("no-store", "no-cache"):
            return 0.0
        digits = value.strip('"')
        if name == "max-age" and digits.isascii() and digits.isdecimal():
            ages.append(float(digits))
    return min(ages, default=None)


class Reader:
    """Turns responses into outcomes for the frontier. Runs on the loop, one response at a time."""

    def __init__(
        self,
        settings: Settings,
        links: LinkMaker,
        pages: WarcWriter,
        robots: WarcWriter,
        clock: Clock,
        tally: Tally,
    ) -> None:
        self._settings, self._links, self._clock, self._tally = settings, links, clock, tally
        self._pages, self._robots = pages, robots
        self._keys = Keys(settings.seed)
        self._page_reader = PageReader(settings.page, settings.agent.name, settings.limits.page_links)

    def page(self, asked: FetchPage, response: Response) -> PageFetched:
        """How the fetch of a page ended."""
        exchange, seconds = response.exchange, response.exchange.timing.first_byte
        if exchange.failure:
            return PageFetched(
                asked,
                failure=exchange.failure,
                temporary=exchange.failure in TEMPORARY,
                stale=exchange.failure == STALE,
                seconds=seconds,
            )
        wall = self._archive(self._pages, response)
        if exchange.status in REDIRECTS:
            return self._redirect(asked, response)
        if not 200 <= exchange.status < 300:
            return PageFetched(
                asked,
                exchange.status,
                failure=f"http_{exchange.status}",
                temporary=exchange.status >= 500 or exchange.status == 429,
                retry_after=retry_after(exchange, wall),
                seconds=seconds,
            )
        self._tally.pages += 1
        found = None
        content_type = exchange.header(b"content-type") or None
        if is_html(content_type, response.body):
            found = self._read(asked, response, content_type)
        digest = self._keys.of(response.body) if self._settings.limits.site_duplicates else 0
        return PageFetched(asked, exchange.status, links=found, digest=digest, seconds=seconds)

    def robots(self, asked: FetchRobots, response: Response) -> RobotsFetched:
        """How the fetch of a robots.txt ended."""
        exchange, seconds = response.exchange, response.exchange.timing.first_byte
        if exchange.failure:
            if exchange.failure != STALE:
                self._tally.robots_failed[exchange.failure] += 1
            return RobotsFetched(asked, 0, stale=exchange.failure == STALE, seconds=seconds)
        wall = self._archive(self._robots, response)
        self._tally.robots_files += 1
        if exchange.status >= 500 or exchange.status == 429:
            self._tally.robots_failed[f"http_{exchange.status}"] += 1
        redirected = exchange.status in REDIRECTS
        target = landing(exchange.header(b"location"), asked.url) if redirected else ""
        return RobotsFetched(
            asked,
            exchange.status,
            response.body,
            target,
            retry_after(exchange, wall),
            max_age=max_age(exchange.all_headers(b"cache-control")),
            seconds=seconds,
        )

    def _redirect(self, asked: FetchPage, response: Response) -> PageFetched:
        exchange = response.exchange
        location = exchange.header(b"location")
        made = self._links.redirect(location, asked.row) if location else None
        # Nowhere, or out of scope: then it ends here, answered.
        redirect = None if made is None else Redirect(*made)
        return PageFetched(asked, exchange.status, redirect=redirect, seconds=exchange.timing.first_byte)

    def _read(self, asked: FetchPage, response: Response, content_type: str | None) -> UrlBatch | None:
        page = self._page_reader.read(
            response.body,
            content_type,
            asked.row.url.decode(),
            robots_header="\n".join(response.exchange.all_headers(b"x-robots-tag")) or None,
            content_language=response.exchange.header(b"content-language") or None,
        )
        if not page.follow:
            return None
        self._tally.links += len(page.links)
        return self._links.links(page.links, page.base, asked.row)

    def _archive(self, warc: WarcWriter, response: Response) -> float:
        wall = self._clock.wall()
        exchange = response.exchange
        warc.write_exchange(
            response.url,
            response.request,
            exchange.head + exchange.payload,
            response.address,
            wall,
            exchange.truncated or None,
        )
        self._tally.bytes += len(exchange.head) + len(exchange.payload)
        return wall
