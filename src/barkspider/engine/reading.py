"""From a response to what a harvest takes in: read it, judge it, archive it, say how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, overload

from barkspider.archive import ArchiveWriter, Fetched, Note, Original, PageFacts, error_note
from barkspider.archive.writer import UNCHANGED
from barkspider.core.clock import Clock
from barkspider.core.events import FetchPage, FetchRobots, PageFetched, Redirect, RobotsFetched, is_temporary
from barkspider.core.records import Flag
from barkspider.core.settings import Settings
from barkspider.engine.contents import Content, Contents
from barkspider.engine.earlier import Earlier
from barkspider.engine.harvest import Reaped
from barkspider.engine.links import LinkMaker, Links
from barkspider.engine.statistics import Tally
from barkspider.fetch import OURS, REDIRECTS, TEMPORARY, Response, retry_after
from barkspider.page import Candidate, Classifier, Hrefs, Verdict
from barkspider.url import split
from barkspider.url.robots import RobotsRules

_LOGGED = 100  # pages on which a classifier failed that the log names: the table `errors` has them all


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


# A seed is recommended by who gave it.
_LINKED = int(Flag.LINKED | Flag.SEED)
_AGAIN = int(Flag.AGAIN)  # a plain number: arithmetic on flags is slow
_KEPT = Verdict(True, True)
_NONE: Mapping[str, str] = MappingProxyType({})


class _Judged(NamedTuple):
    """What is known of a page, what was decided about it, its links, if these count, and the texts of links."""

    facts: PageFacts
    verdict: Verdict
    links: list[Links] | None
    anchors: Mapping[str, str]


class _Urls(Sequence[bytes]):
    """The URLs of links, for whoever wants to see them; most often only their number is wanted."""

    def __init__(self, links: Sequence[Links]) -> None:
        self._links, self._count = links, sum([len(part.urls) for part in links])

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(part.urls.url.tolist() for part in self._links)

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | Sequence[bytes]:
        return list(self)[place]


class ResponseReader:
    """Reads responses, one at a time, on the loop. What it returns puts their exchanges into the archive."""

    def __init__(
        self,
        settings: Settings,
        contents: Contents,
        links: LinkMaker,
        archive: ArchiveWriter,
        clock: Clock,
        tally: Tally,
        log: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        """`log` takes the time, the name and the details of an event."""
        self._links, self._clock, self._tally = links, clock, tally
        self._archive, self._log, self._contents = archive, log, contents
        self._classifier = Classifier(settings.page)
        self._agent, self._reads_sitemaps = settings.agent.name, settings.scope.sitemaps != "never"

    def page(
        self,
        asked: FetchPage,
        response: Response,
        earlier: Earlier | None = None,
        content: Content | None = None,
    ) -> Reaped:
        """How the fetch of a page ended; `earlier` is what is stored of it, for the request to ask for a newer version,
        `content` what is in it, if that is known."""
        exchange, seconds = response.exchange, response.exchange.timing.first_byte
        if exchange.failure:
            return self._no_answer(asked, response)
        self._tally.timings.add(exchange.timing)
        fetched = self._fetched(response)
        if exchange.status == 304 and earlier is not None and any(earlier.validators):
            self._tally.pages += 1
            self._tally.unchanged += 1
            outcome = PageFetched(asked, 304, seconds=seconds, cookies=response.cookies)
            return Reaped(outcome, keep=partial(self._keep_unchanged, asked, fetched, earlier))
        if 200 <= exchange.status < 300:
            content = content or self._contents.read(response)
            return self._success(asked, response, fetched, content, earlier.original if earlier else None)
        location = ""
        if exchange.status in REDIRECTS:
            location = exchange.header(b"location")
            made = self._links.redirect(location, asked.row) if location else None
            # It leads nowhere, or out of scope: the URL counts as answered.
            redirect = None if made is None else Redirect(*made)
            outcome = PageFetched(
                asked, exchange.status, redirect=redirect, seconds=seconds, cookies=response.cookies
            )
        else:
            outcome = PageFetched(
                asked,
                exchange.status,
                failure=f"http_{exchange.status}",
                temporary=is_temporary(exchange.status),
                retry_after=retry_after(exchange, self._clock.wall()),
                seconds=seconds,
                cookies=response.cookies,
            )
        return Reaped(
            outcome, keep=partial(self._keep, asked, fetched, exchange.outcome, PageFacts(), location)
        )

    def _success(
        self,
        asked: FetchPage,
        response: Response,
        fetched: Callable[[], Fetched],
        content: Content,
        original: Original | None,
    ) -> Reaped:
        exchange = response.exchange
        self._tally.pages += 1
        phases = self._tally.phases
        phases.end("read")
        facts, verdict, links, anchors = self._judge(asked, content)
        phases.end("links")
        outcome = PageFetched(
            asked,
            exchange.status,
            digest=0 if asked.row.flags & _AGAIN else content.digest,
            seconds=exchange.timing.first_byte,
            cookies=response.cookies,
        )
        notes = []
        if not content.decoded:
            notes.append(self._error(asked, "undecoded"))
        listing = content.page.listing
        if listing is not None:
            notes += self._archive.describe_listing(asked.row, listing.pages)
            if listing.damage:
                notes.append(self._error(asked, "listing_damaged"))
        if verdict.error:
            self._note_failure(asked, verdict.error)
        if verdict.reason:
            reason = verdict.reason if verdict.keep else f"rejected_{verdict.reason}"
            notes.append(self._error(asked, reason))
        if not verdict.keep:
            self._tally.rejected[verdict.reason] += 1
            return Reaped(outcome, links, notes)
        keep = partial(
            self._keep, asked, fetched, exchange.outcome, facts, "", original, links=links, anchors=anchors
        )
        return Reaped(outcome, links, notes, keep)

    def _keep(
        self,
        asked: FetchPage,
        received: Callable[[], Fetched],
        outcome: str,
        facts: PageFacts,
        location: str,
        original: Original | None = None,
        links: Sequence[Links] | None = None,
        anchors: Mapping[str, str] = _NONE,
    ) -> list[Note]:
        phases, fetched = self._tally.phases, received()
        stored = self._archive.keep_page(fetched, original)
        phases.end("warc")
        notes = [self._archive.describe_page(asked.row, fetched, stored, outcome, facts, location)]
        if links is not None:
            outside = [url for part in links for url in part.outside]
            linking = self._archive.describe_links(asked.row, facts.links or (), outside, anchors)
            notes += [linking] if linking is not None else []
        phases.end("tables")
        return notes

    def _keep_unchanged(
        self, asked: FetchPage, received: Callable[[], Fetched], earlier: Earlier
    ) -> list[Note]:
        fetched = received()
        stored = self._archive.keep_unchanged(fetched, earlier.original, earlier.head)
        return [self._archive.describe_page(asked.row, fetched, stored, UNCHANGED, PageFacts())]

    def robots(self, asked: FetchRobots, response: Response) -> Reaped:
        """How the fetch of a robots.txt ended."""
        exchange, seconds = response.exchange, response.exchange.timing.first_byte
        if exchange.failure:
            stale = exchange.failure in OURS
            outcome = RobotsFetched(asked, 0, stale=stale, seconds=seconds, cookies=response.cookies)
            if outcome.stale:
                return Reaped(outcome)
            self._tally.robots_failed[exchange.failure] += 1
            host = split(asked.url).host
            note = error_note(self._clock.wall(), "robots", exchange.failure, host, asked.url)
            return Reaped(outcome, None, [note])
        location = exchange.header(b"location") if exchange.status in REDIRECTS else ""
        fetched = self._fetched(response)
        self._tally.robots_files += 1
        if is_temporary(exchange.status):
            self._tally.robots_failed[f"http_{exchange.status}"] += 1
        outcome = RobotsFetched(
            asked,
            exchange.status,
            response.body,
            self._links.robots_at(location, asked) if location else "",
            retry_after(exchange, self._clock.wall()),
            max_age=max_age(exchange.all_headers(b"cache-control")),
            seconds=seconds,
            cookies=response.cookies,
        )
        named: Sequence[str] = ()
        if self._reads_sitemaps and exchange.status == 200:
            named = RobotsRules.parse(response.body, self._agent, asked.origin).sitemaps
        return Reaped(
            outcome,
            self._links.sitemaps(named, asked.origin) if named else None,
            keep=lambda: [self._archive.keep_robots(asked.origin, fetched(), exchange.outcome, location)],
        )

    def _no_answer(self, asked: FetchPage, response: Response) -> Reaped:
        failure = response.exchange.failure
        outcome = PageFetched(
            asked,
            failure=failure,
            temporary=failure in TEMPORARY,
            stale=failure in OURS,
            seconds=response.exchange.timing.first_byte,
            cookies=response.cookies,
        )
        return Reaped(outcome, None, [] if outcome.stale else [self._error(asked, failure)])

    def _error(self, asked: FetchPage, outcome: str) -> Note:
        row, url = asked.row, asked.row.url.decode()
        return error_note(self._clock.wall(), "page", outcome, split(url).host, url, row.key, row.tries)

    def _judge(self, asked: FetchPage, content: Content) -> _Judged:
        page = content.page
        language = page.detected_language or page.language
        verdict = _KEPT if self._classifier.keeps_all else self._verdict(asked, content, language)
        listing = page.listing
        # A sitemap may lie out of scope: what it names is judged by itself.
        counts = (listing is not None and listing.is_sitemap) or self._links.counts(asked.row)
        follows = page.follow and verdict.follow and counts
        followed = page.hrefs if follows else Hrefs()
        # A page that asks not to be followed is shown all the same; one that is not kept is not.
        needed = page.requisites if verdict.keep else []
        if page.too_long and follows:
            self._links.refused["too_long"] += page.too_long
        links, anchors, cut = None, _NONE, page.links_cut
        if followed or needed:
            self._tally.links += len(followed) + len(needed)
            if listing is None:
                links = self._links.links(followed, page.base, asked.row, needed)
            else:
                links = self._links.listed(followed, page.base, asked.row, needed, listing.is_sitemap)
            cut = cut or any(part.cut for part in links)
            if page.anchors:
                anchors = self._links.anchors(page.anchors, page.base)
        facts = PageFacts(
            content.media_type,
            page.charset,
            language,
            page.title,
            page.description,
            page.simhash,
            cut,
            page.body_cut,
            None if links is None else _Urls(links),
            content.sha1,
        )
        return _Judged(facts, verdict, links, anchors)

    def _verdict(self, asked: FetchPage, content: Content, language: str) -> Verdict:
        page, url = content.page, asked.row.url.decode()
        return self._classifier.judge(
            Candidate(
                url,
                self._links.domain(url),
                content.media_type,
                page.charset,
                page.title,
                language,
                len(page.hrefs),
                content.text,
            ),
            bool(asked.row.flags & _LINKED),
        )

    def _note_failure(self, asked: FetchPage, error: str) -> None:
        """A function of the user's failed on a page: it is counted, and the first ones are in the log."""
        self._tally.classifier_errors += 1
        if self._tally.classifier_errors <= _LOGGED:
            self._log(self._clock.wall(), "classifier_error", url=asked.row.url.decode(), error=error)

    def _fetched(self, response: Response) -> Callable[[], Fetched]:
        """Counts an answer; gives what the archive takes, which is another copy of it, when that is wanted."""
        exchange = response.exchange
        self._tally.bytes += len(exchange.head) + len(exchange.payload)
        url, address, request, now = response.url, response.address, response.request, self._clock.wall()

        def fetched() -> Fetched:
            seconds = sum(exchange.timing)
            return Fetched(
                url,
                address,
                request,
                exchange.head,
                exchange.truncated,
                now - seconds,
                seconds,
                exchange.timing._asdict(),
                exchange.repaired,
                exchange.payload,
                exchange.digests,
            )

        return fetched
