"""Functions of one's own that a crawl calls with its pages, links and events, in the thread of whoever called `crawl`.

What one of them raises goes to the log with its page (`hook_failed`), is counted (`hook_errors`), and ends nothing; one that
takes long is named there as well (`hook_slow`). They are called one after the other: as long as one works the crawl goes
on, until some hundred pages wait.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

from barkspider.engine.feed import EVENTS, LINKS, PAGES, News
from barkspider.engine.pages import CrawledPage
from barkspider.engine.running import Link, RunningCrawl

OnPage = Callable[[CrawledPage], object]  # which may be awaitable
OnLink = Callable[[Link], object]
OnEvent = Callable[[dict[str, Any]], object]

_SLOW = 1.0  # seconds: what is worth a line; a further one for what takes twice as long
_TEXT = 300  # letters of an error in the log


class Hooks:
    """The functions for one crawl. One thread, in which no loop runs: awaitables run on one of its own."""

    def __init__(self, on_page: OnPage | None, on_link: OnLink | None, on_event: OnEvent | None) -> None:
        self._on_page, self._on_link, self._on_event = on_page, on_link, on_event
        hooks = {PAGES: on_page, LINKS: on_link, EVENTS: on_event}
        self.wanted = [name for name, hook in hooks.items() if hook is not None]
        self._slow: dict[
            str, float
        ] = {}  # seconds of the slowest call that was logged, by the name of the hook

    def follow(self, crawl: RunningCrawl) -> None:
        """Call them with all that a crawl has, to its end."""
        with asyncio.Runner() as runner:
            while (news := crawl.feed.take()) is not None:
                self._hear(crawl, runner, news)

    def _hear(self, crawl: RunningCrawl, runner: asyncio.Runner, news: News) -> None:
        if self._on_page is not None:
            for page in crawl.pages_of(news):
                self._call(crawl, runner, ("on_page", page.url), self._on_page, page)
        if self._on_link is not None:
            for source, links in news.links:
                for target in links.url.tolist():
                    self._call(
                        crawl, runner, ("on_link", source), self._on_link, Link(source, target.decode())
                    )
        # It hears nothing of itself, or it would hear that for ever.
        if self._on_event is not None and news.event is not None and news.event.get("hook") != "on_event":
            self._call(crawl, runner, ("on_event", news.event["event"]), self._on_event, news.event)

    def _call(
        self,
        crawl: RunningCrawl,
        runner: asyncio.Runner,
        name: tuple[str, str],
        hook: Callable[[Any], object],
        what: Any,
    ) -> None:
        """Call one of them; `name` is its own, and what the call is about."""
        begin = time.monotonic()
        try:
            result = hook(what)
            if inspect.isawaitable(result):
                runner.run(_awaited(result))
        except Exception as error:  # whatever a stranger's function raises concerns this page alone
            text = f"{type(error).__name__}: {error}"[:_TEXT]
            crawl.tell("hook_failed", hook=name[0], about=name[1], error=text)
        seconds = time.monotonic() - begin
        if seconds >= 2 * self._slow.get(name[0], _SLOW / 2):
            self._slow[name[0]] = seconds
            crawl.tell("hook_slow", hook=name[0], about=name[1], seconds=round(seconds, 3))


async def _awaited(result: Awaitable[object]) -> object:
    return await result
