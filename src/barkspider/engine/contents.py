"""What is in an answer: its encodings taken off, told what it is, and read.

    Response ─► read, on the loop ─► Content
       └ one that pays ─► read_aside, in a thread ─┘

An answer of some kilobytes may unpack to megabytes, and those take as long as a hundred pages: while they are read
sockets would wait. Where the process has another core, pages of today's size are read there as well: unpacking, scanning
and hashing release the GIL. The threads are given little more than they can do at once, and the loop reads the rest.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from barkspider.archive.records import digest
from barkspider.core.allotment import begin_threads
from barkspider.core.settings import Settings
from barkspider.fetch import Response
from barkspider.page import Bounds, Hrefs, Page, PageReader, sniff
from barkspider.page.listings import Listing, read_listing
from barkspider.url import KeyMaker

# Bytes, unpacked: more are read in the thread. Markup of this size takes 25 ms at worst, links aside.
LARGE = 1 << 19
_HTML = frozenset(("text/html", "application/xhtml+xml"))
# What waits for threads, as received, before no further page is asked for; a thread reads that in a second or two.
_MOST_WAITING = 32_000_000
# Bytes, as received, of a page of some 100 KB. A thread for a smaller one saves the loop nothing.
_WORTH_A_THREAD = 32_000
_MOST_THREADS = 3  # more threads would only wait for the GIL
_AHEAD = 16  # answers that a thread has before it: it must not run dry while the loop reads a harvest


class Content(NamedTuple):
    """What reading a page has shown. `decoded` says whether its encodings came off whole, `sha1` is of its bytes then, b""
    if it had none; `digest` is the key of its bytes, or 0 if nobody counts duplicates, and `text` gives what people read."""

    media_type: str
    page: Page
    decoded: bool
    sha1: bytes | None
    digest: int
    text: Callable[[], str]


class Contents:
    """Reads the answers of one crawl, on its loop and in threads beside it. `close` waits for those."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._here = settings, _ContentReader(settings)
        self._spare = min(len(os.sched_getaffinity(0)) - 1, _MOST_THREADS)  # cores beside the loop's
        threads = max(self._spare, 1)
        self._threads = begin_threads(ThreadPoolExecutor(threads, "pages"), threads)
        self._own = threading.local()  # a reader for each thread
        self._loop = asyncio.get_running_loop()
        self._waiting = self._handed = 0  # bytes, as received, and answers that threads have not read

    @property
    def has_room(self) -> bool:
        """Whether the threads have not too much to do."""
        return self._waiting <= _MOST_WAITING

    def pays_aside(self, response: Response) -> bool:
        """Whether an answer is better read in a thread."""
        worth = len(response.exchange.payload) >= _WORTH_A_THREAD
        return (worth and self._handed < self._spare * _AHEAD) or is_large(response)

    def read(self, response: Response) -> Content:
        """Read an answer here and now."""
        return self._here.read(response)

    def read_aside(self, response: Response, done: Callable[[Content | Exception], None]) -> None:
        """Read an answer in a thread; `done` is told on the loop, also what went wrong."""
        self._waiting += len(response.exchange.payload)
        self._handed += 1
        self._threads.submit(self._read_in_thread, response, done)

    def close(self) -> None:
        """Read nothing more."""
        self._threads.shutdown(cancel_futures=True)

    def _read_in_thread(self, response: Response, done: Callable[[Content | Exception], None]) -> None:
        exchange = response.exchange
        try:
            if not hasattr(self._own, "reader"):
                self._own.reader = _ContentReader(self._settings)
            found: Content | Exception = self._own.reader.read(response)
            # The archive wants these, and half of its time goes into them.
            exchange.digests = digest(exchange.payload), digest(exchange.head, exchange.payload)
        except Exception as error:
            found = error
        response.pack()
        self._loop.call_soon_threadsafe(self._was_read, len(exchange.payload), found, done)

    def _was_read(
        self, size: int, found: Content | Exception, done: Callable[[Content | Exception], None]
    ) -> None:
        self._waiting -= size
        self._handed -= 1
        done(found)


def is_large(response: Response) -> bool:
    """Whether an answer takes long to read; it was fetched for its first `LARGE` bytes."""
    return len(response.body) >= LARGE


class _ContentReader:
    """One thread's."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keys = KeyMaker(settings.seed)
        bounds = Bounds(settings.limits.page_links, settings.url.max_length)
        self._pages = PageReader(settings.page, settings.agent.name, bounds)

    def read(self, response: Response) -> Content:
        if not is_large(response):
            return self._read(response, response.body, response.decoded)
        response.pack()
        content = self._read(response, *response.unpack())
        page = self._settings.page
        if not (page.keep_words or page.classifier):
            return content._replace(text=str)  # nobody will ask, and the body can go
        text = content.text()
        return content._replace(text=lambda: text)

    def _read(self, response: Response, body: bytes, decoded: bool) -> Content:
        exchange, pages, settings = response.exchange, self._pages, self._settings
        content_type = exchange.header(b"content-type") or None
        media_type = sniff(content_type, body)
        text: Callable[[], str] = str
        if media_type in _HTML:
            page = pages.read(
                body,
                content_type,
                response.url,
                "\n".join(exchange.all_headers(b"x-robots-tag")) or None,
                exchange.header(b"content-language") or None,
            )
            text = partial(pages.text, body, content_type)
        elif media_type == "text/css" and settings.page.requisites:
            page = pages.read_style(body, content_type, response.url)
        elif (listing := self._listing(media_type, body)) is not None:
            page = pages.list_of(listing, response.url)
        else:
            page = Page(Hrefs(), response.url, "")
        counts = settings.limits.site_duplicates or settings.scope.stop_mirrors
        key = self._keys.of(body) if counts else 0
        sha1 = None
        if decoded and body:
            sha1 = b"" if body is exchange.payload else digest(body)
        return Content(media_type, page, decoded, sha1, key, text)

    def _listing(self, media_type: str, body: bytes) -> Listing | None:
        """The sitemap or the feed that a body is, if such are read."""
        page, sitemaps = self._settings.page, self._settings.scope.sitemaps != "never"
        listing = read_listing(media_type, body, page.max_parse) if sitemaps or page.feeds else None
        if listing is None or not (sitemaps if listing.is_sitemap else page.feeds):
            return None
        return listing
