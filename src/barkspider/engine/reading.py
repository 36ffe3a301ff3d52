"""From a response to an outcome: read it, judge it, archive it, say how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barkspider.archive import ArchiveWriter, Facts, Fetched, Original
from barkspider.core.clock import Clock
from barkspider.core.events import FetchPage, FetchRobots, PageFetched, Redirect, RobotsFetched
from barkspider.core.records import Flag
from barkspider.core.settings import Settings
from barkspider.engine.links import LinkMaker
from barkspider.engine.statistics import Tally
from barkspider.fetch import REDIRECTS, STALE, TEMPORARY, Response, retry_after
from barkspider.page import Candidate, Classifier, Page, PageReader, Verdict, sniff
from barkspider.url import Keys, landing, split

_HTML = frozenset(("text/html", "application/xhtml+xml"))


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


class _Reading(NamedTuple):
    """What reading a page has shown, and what was decided about it."""

    facts: Facts
    verdict: Verdict


class Reader:
    """Turns responses into outcomes for the frontier. Runs on the loop, one response at a time."""

    def __init__(
        self, settings: Settings, links: LinkMaker, archive: ArchiveWriter, clock: Clock, tally: Tally
    ) -> None:
        self._settings, self._links, self._clock, self._tally = settings, links, clock, tally
        self._archive = archive
        self._keys = Keys(settings.seed)
        self._page_reader = PageReader(settings.page, settings.agent.name, settings.limits.page_links)
        self._classifier = Classifier(settings.page)

    def page(self, asked: FetchPage, response: Response, original: Original | None = None) -> PageFetched:
        """How the fetch of a page ended; `original` is what the request asked for a newer version of."""
        exchange, seconds = response.exchange, response.exchange.timing.first_byte
        if exchange.failure:
            return self._no_answer(asked, response)
        fetched = self._fetched(response)
        facts = Facts()
        if exchange.status == 304 and original is not None:
            self._tally.pages += 1
            self._tally.unchanged += 1
            stored = self._archive.keep_unchanged(fetched, original)
            self._archive.describe_page(asked.row, fetched, stored, "unchanged", facts)
            return PageFetched(asked, 304, seconds=seconds)
        if exchange.status in REDIRECTS:
            result = self._redirect(asked, response)
        elif not 200 <= exchange.status < 300:
            result = PageFetched(
                asked,
                exchange.status,
                failure=f"http_{exchange.status}",
                temporary=exchange.status >= 500 or exchange.status == 429,
                retry_after=retry_after(exchange, self._clock.wall()),
                seconds=seconds,
            )
        else:
            self._tally.pages += 1
            facts, verdict = self._read(asked, response)
            counts = self._settings.limits.site_duplicates and not asked.row.flags & Flag.AGAIN
            digest = self._keys.of(response.body) if counts else 0
            result = PageFetched(asked, exchange.status, links=facts.links, digest=digest, seconds=seconds)
            if not response.decoded:
                self._note(asked, "undecoded")
            if verdict.reason:
                self._note(asked, f"rejected_{verdict.reason}" if not verdict.keep else verdict.reason)
            if not verdict.keep:
                self._tally.rejected[verdict.reason] += 1
                return result
        stored = self._archive.keep_page(fetched)
        location = exchange.header(b"location") if exchange.status in REDIRECTS else ""
        self._archive.describe_page(asked.row, fetched, stored, exchange.outcome, facts, location)
        return result

    def robots(self, asked: FetchRobots, response: Response) -> RobotsFetched:
        """How the fetch of a robots.txt ended."""
        exchange, seconds = response.exchange, response.exchange.timing.first_byte
        if exchange.failure:
            if exchange.failure != STALE:
                self._tally.robots_failed[exchange.failure] += 1
                host = split(asked.url).host
                self._archive.note_error(self._clock.wall(), "robots", exchange.failure, host, asked.url)
            return RobotsFetched(asked, 0, stale=exchange.failure == STALE, seconds=seconds)
        location = exchange.header(b"location") if exchange.status in REDIRECTS else ""
        self._archive.keep_robots(asked.origin, self._fetched(response), exchange.outcome, location)
        self._tally.robots_files += 1
        if exchange.status >= 500 or exchange.status == 429:
            self._tally.robots_failed[f"http_{exchange.status}"] += 1
        return RobotsFetched(
            asked,
            exchange.status,
            response.body,
            landing(location, asked.url) if location else "",
            retry_after(exchange, self._clock.wall()),
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

    def _no_answer(self, asked: FetchPage, response: Response) -> PageFetched:
        failure = response.exchange.failure
        if failure != STALE:
            self._note(asked, failure)
        return PageFetched(
            asked,
            failure=failure,
            temporary=failure in TEMPORARY,
            stale=failure == STALE,
            seconds=response.exchange.timing.first_byte,
        )

    def _note(self, asked: FetchPage, outcome: str) -> None:
        row, url = asked.row, asked.row.url.decode()
        self._archive.note_error(
            self._clock.wall(), "page", outcome, split(url).host, url, row.key, row.tries
        )

    def _read(self, asked: FetchPage, response: Response) -> _Reading:
        exchange, body, url = response.exchange, response.body, asked.row.url.decode()
        content_type = exchange.header(b"content-type") or None
        media_type = sniff(content_type, body)
        page = Page([], url, "")
        if media_type in _HTML:
            page = self._page_reader.read(
                body,
                content_type,
                url,
                "\n".join(exchange.all_headers(b"x-robots-tag")) or None,
                exchange.header(b"content-language") or None,
            )
        language = page.detected_language or page.language
        verdict = self._classifier.judge(
            Candidate(
                url,
                self._links.domain(url),
                media_type,
                page.charset,
                page.title,
                language,
                len(page.links),
                lambda: self._page_reader.text(body, content_type) if media_type in _HTML else "",
            ),
            self._links.source(asked.row),
        )
        facts = Facts(
            media_type,
            page.charset,
            language,
            page.title,
            page.description,
            page.simhash,
            page.links_cut,
            page.body_cut,
        )
        if page.follow and verdict.follow and (page.links or page.requisites):
            self._tally.links += len(page.links) + len(page.requisites)
            facts = facts._replace(
                links=self._links.links(page.links, page.base, asked.row, page.requisites),
                anchors=self._links.anchors(page.anchors, page.base) if page.anchors else None,
            )
        return _Reading(facts, verdict)

    def _fetched(self, response: Response) -> Fetched:
        exchange = response.exchange
        self._tally.bytes += len(exchange.head) + len(exchange.payload)
        seconds = sum(exchange.timing)
        return Fetched(
            response.url,
            response.address,
            response.request,
            exchange.head + exchange.payload,
            exchange.truncated,
            self._clock.wall() - seconds,
            seconds,
            exchange.timing._asdict(),
        )
