"""What is in an answer: its encodings taken off, told what it is, and read.

    Response ─► read, on the loop ─► Content
       └ a large one ─► read_aside, in a thread ─┘

An answer of some kilobytes may unpack to megabytes, and those take as long as a hundred pages: while they are read
sockets would wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from barkspider.core.settings import Settings
from barkspider.fetch import Response
from barkspider.page import Bounds, Page, PageReader, sniff
from barkspider.url import Keys

# Bytes, unpacked: more are read in the thread. Markup of this size takes 25 ms at worst, links aside.
LARGE = 1 << 19
_HTML = frozenset(("text/html", "application/xhtml+xml"))
# What waits for the thread, as received, before no further page is asked for; a thread reads that in a second or two.
_MOST_WAITING = 32_000_000


class Content(NamedTuple):
    """What reading a page has shown. `decoded` says whether its encodings came off whole, `digest` is the key of its
    bytes, or 0 if nobody counts duplicates, and `text` gives what people read of it."""

    media_type: str
    page: Page
    decoded: bool
    digest: int
    text: Callable[[], str]


class Contents:
    """Reads the answers of one crawl, on its loop and in one thread beside it. `close` waits for that thread."""

    def __init__(self, settings: Settings) -> None:
        self._here, self._aside = _ContentReader(settings), _ContentReader(settings)
        self._thread = ThreadPoolExecutor(1, "pages")
        self._loop = asyncio.get_running_loop()
        self._waiting = 0  # bytes, as received, that the thread has not read

    @property
    def has_room(self) -> bool:
        """Whether the thread has not too much to do."""
        return self._waiting <= _MOST_WAITING

    def read(self, response: Response) -> Content:
        """Read an answer here and now."""
        if is_large(response):
            return self._here.read_whole(response)
        return self._here.read(response, response.body, response.decoded)

    def read_aside(self, response: Response, done: Callable[[Content | Exception], None]) -> None:
        """Read an answer in the thread; `done` is told on the loop, also what went wrong."""
        self._waiting += len(response.exchange.payload)
        self._thread.submit(self._read_in_thread, response, done)

    def close(self) -> None:
        """Read nothing more."""
        self._thread.shutdown(cancel_futures=True)

    def _read_in_thread(self, response: Response, done: Callable[[Content | Exception], None]) -> None:
        try:
            found: Content | Exception = self._aside.read_whole(response)
        except Exception as error:
            found = error
        self._loop.call_soon_threadsafe(self._was_read, len(response.exchange.payload), found, done)

    def _was_read(
        self, size: int, found: Content | Exception, done: Callable[[Content | Exception], None]
    ) -> None:
        self._waiting -= size
        done(found)


def is_large(response: Response) -> bool:
    """Whether an answer takes long to read; it was fetched for its first `LARGE` bytes."""
    return len(response.body) >= LARGE


class _ContentReader:
    """One thread's."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keys = Keys(settings.seed)
        bounds = Bounds(settings.limits.page_links, settings.url.max_length)
        self._pages = PageReader(settings.page, settings.agent.name, bounds)

    def read_whole(self, response: Response) -> Content:
        content = self.read(response, *response.unpack())
        page = self._settings.page
        if not (page.keep_words or page.classifier):
            return content._replace(text=str)  # nobody will ask, and the body can go
        text = content.text()
        return content._replace(text=lambda: text)

    def read(self, response: Response, body: bytes, decoded: bool) -> Content:
        exchange, pages, settings = response.exchange, self._pages, self._settings
        content_type = exchange.header(b"content-type") or None
        media_type = sniff(content_type, body)
        page = Page([], response.url, "")
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
        digest = self._keys.of(body) if settings.limits.site_duplicates else 0
        return Content(media_type, page, decoded, digest, text)
