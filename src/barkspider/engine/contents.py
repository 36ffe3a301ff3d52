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
from barkspider.page import Bounds, Hrefs, Page, PageReader, sniff
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
        self._waiting = 0
        self._has_room = asyncio.Event()
        self._has_room.set()

    async def room(self) -> None:
        """Wait until the thread has not too much to do."""
        await self._has_room.wait()

    def read(self, response: Response) -> Content:
        """Read an answer here and now."""
        if is_large(response):
            return self._here.read_whole(response)
        return self._here.read(response, response.body, response.decoded)

    async def read_aside(self, response: Response) -> Content:
        """Read an answer in the thread."""
        size = len(response.exchange.payload)
        self._set_waiting(self._waiting + size)
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._aside.read_whole, response
            )
        finally:
            self._set_waiting(self._waiting - size)

    def close(self) -> None:
        """Read nothing more."""
        self._thread.shutdown(cancel_futures=True)

    def _set_waiting(self, size: int) -> None:
        self._waiting = size
        (self._has_room.set if size <= _MOST_WAITING else self._has_room.clear)()


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
        page = Page(Hrefs(), response.url, "")
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
