"""What a crawl has for its reader, from its own thread to another, bounded: a slow reader slows the crawl.

harvest, safe in archive and journal ─► `Feed.hear` ─► waiting, some hundred pages ─► `take` ─► the reader
                                             └─ too many: the crawl pauses ◄─ half of them taken: it goes on
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from barkspider.core.batch import UrlBatch
from barkspider.core.events import PageFetched
from barkspider.engine.harvest import Harvest

PAGES, LINKS, EVENTS = "pages", "links", "events"
_MOST = 256  # pages that wait for their reader, a kilobyte each, before the crawl pauses
_LINKS_WORTH = 64  # links that count as a page


class News(NamedTuple):
    """Of one harvest: rows of the table `pages`, and the links of pages with the URLs of these; or an event of the log."""

    pages: pa.RecordBatch | None
    links: tuple[tuple[str, UrlBatch], ...] = ()
    event: dict[str, Any] | None = None

    def weight(self) -> int:
        """How much waits with it, in pages."""
        pages = 0 if self.pages is None else len(self.pages)
        return 1 + pages + sum(len(links) for _, links in self.links) // _LINKS_WORTH


class Feed:
    """See the module. The thread of the crawl calls `hear`, `note` and `end`; another one calls `take` and `close`."""

    def __init__(self, wanted: Iterable[str]) -> None:
        """`wanted` are some of `PAGES`, `LINKS` and `EVENTS`."""
        self._wanted = frozenset(wanted)
        self._waiting = deque[News]()
        self._weight = 0
        self._changed = threading.Condition()
        self._full = self._ended = self._closed = False
        self.drained = threading.Event()  # whether the reader has seen the end, or has gone
        # Both are set by whoever runs the crawl: to hold it (called in its thread), and to let it go on (in the reader's).
        self.hold: Callable[[], None] = lambda: None
        self.release: Callable[[], None] = lambda: None
        self.wake: Callable[[], None] = lambda: None  # set by a reader that does not wait in `take`

    def hear(self, harvest: Harvest) -> None:
        """Take what a harvest has of what is wanted."""
        pages = harvest.batches.get("pages") if PAGES in self._wanted else None
        links: tuple[tuple[str, UrlBatch], ...] = ()
        if LINKS in self._wanted:
            links = tuple(
                (outcome.asked.row.url.decode(), outcome.links)
                for outcome in harvest.outcomes
                if isinstance(outcome, PageFetched) and outcome.links
            )
        if links or pages is not None:
            self._put(News(pages, links))

    def note(self, event: dict[str, Any]) -> None:
        """Take an event of the log."""
        if EVENTS in self._wanted:
            self._put(News(None, event=event))

    def end(self) -> None:
        """Nothing more will come."""
        with self._changed:
            self._ended = True
            if self._closed:
                self.drained.set()
            self._changed.notify()
        self.wake()

    def take(self, wait: bool = True) -> News | None:
        """The next; None at the end, or, without `wait`, when there is nothing at the moment (`ended` tells)."""
        with self._changed:
            while wait and not self._waiting and not self._ended:
                self._changed.wait()
            if not self._waiting:
                if self._ended:
                    self.drained.set()
                return None
            news = self._waiting.popleft()
            self._weight -= news.weight()
            released = self._full and self._weight <= _MOST // 2
            self._full = self._full and not released
        if released:
            self.release()
        return news

    @property
    def ended(self) -> bool:
        """Whether nothing is left, and nothing more will come."""
        with self._changed:
            return self._ended and not self._waiting

    def close(self) -> None:
        """Nobody reads any more: what comes is let go. A second call does nothing."""
        with self._changed:
            self._closed, held = True, self._full
            self._waiting.clear()
            self._weight, self._full = 0, False
            self.drained.set()
            self._changed.notify()
        if held:
            self.release()

    def _put(self, news: News) -> None:
        with self._changed:
            if self._closed:
                return
            self._waiting.append(news)
            self._weight += news.weight()
            if not self._full and self._weight >= _MOST:
                self._full = True
                self.hold()  # here, so that a release comes after it
            self._changed.notify()
        self.wake()
