"""A crawl in a thread of its own, whose pages are read while they come: in a script, in a notebook, beside another one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple, Self
from weakref import WeakSet

import uvloop

from barkspider.engine.feed import PAGES, Feed, News
from barkspider.engine.job import Job
from barkspider.engine.loop import Crawl
from barkspider.engine.pages import CrawledPage, Exchanges
from barkspider.engine.statistics import Statistics
from barkspider.engine.stored import StoredJob

_RUNNING = WeakSet["RunningCrawl"]()
_PATIENCE = 0.1  # seconds until it is looked whether somebody who is to answer is still there


class Link(NamedTuple):
    """A link in scope, from one page to another, as canonical URLs."""

    source: str
    target: str


class RunningCrawl:
    """A crawl that has begun, in a thread of its own, and its pages as they are archived.

    A page comes when the archive and the journal have it. Some hundred wait for a slow reader, then the crawl pauses until
    it has read some: nothing piles up. Whoever stops reading before the end stops the crawl; `resume` goes on later. What is
    killed in between may miss pages: for each exactly once there is `StoredJob.changes`.

    Any thread, or any event loop, may own it, one at a time. `barkspider.start` makes one.
    """

    def __init__(self, opening: Callable[[], Awaitable[Job]], wanted: Iterable[str] = (PAGES,)) -> None:
        self.feed = Feed(wanted)
        self._opening = opening
        self._job: Job | None = None
        self._crawl: Crawl | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened = threading.Event()
        self._error: BaseException | None = None
        self._final: Statistics | None = None
        self._exchanges: Exchanges | None = None
        # A process may end at any time, as it may be killed: a crawl that nobody waits for does not keep it.
        self._thread = threading.Thread(target=self._run, name="crawl", daemon=True)
        self._thread.start()
        _RUNNING.add(self)

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def __iter__(self) -> Iterator[CrawledPage]:
        """The pages as they come."""
        self._wait_open()
        try:
            while (news := self.feed.take()) is not None:
                yield from self.pages_of(news)
            self._raise()
        finally:
            self._leave()

    async def pages(self) -> AsyncIterator[CrawledPage]:
        """The pages as they come, on the running loop. To read `text` or `body` of a page takes this loop's time."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(news.set)

        await asyncio.to_thread(self._wait_open)
        self.feed.wake = wake
        try:
            while True:
                news.clear()
                found = self.feed.take(wait=False)
                if found is not None:
                    for page in self.pages_of(found):
                        yield page
                elif self.feed.ended:
                    break
                else:
                    await news.wait()
            await asyncio.to_thread(self._thread.join)
            self._raise()
        finally:
            self._leave()

    def pages_of(self, news: News) -> Iterator[CrawledPage]:
        """The pages of what the feed gave."""
        assert self._job is not None
        if self._exchanges is None:
            self._exchanges = Exchanges(StoredJob(self._job.path))
        for row in () if news.pages is None else news.pages.to_pylist():
            yield CrawledPage(self._exchanges, self._job.archive, row)

    # ── what else may be asked ─────────────────────────────────────────────────────────────────

    def statistics(self) -> Statistics:
        """What was done so far, or in the end."""
        self._wait_open()
        found = self._ask(lambda: self._running.statistics()) or self._final
        assert isinstance(found, Statistics)
        return found

    def state(self) -> str:
        """What the crawl is doing, in a word or two: `paused (reader)` when it waits for its reader."""
        self._wait_open()
        return self._ask(lambda: self._running.state()) or "ended"

    def stop(self) -> None:
        """Start nothing new; what is in flight still comes. Any thread."""
        self._later(lambda: self._running.stop())

    def tell(self, event: str, **details: Any) -> None:
        """Write an event into the job's log."""
        self._later(lambda: self._running.tell(event, **details))

    def wait(self) -> Statistics:
        """Let the crawl run to its end; what of it was not read by now is let go. Raises what ended it, if it was a fault."""
        self.feed.close()
        self._thread.join()
        self._raise()
        assert self._final is not None
        return self._final

    def close(self) -> None:
        """Stop the crawl and wait for its end; a second call does nothing."""
        self._opened.wait()
        self._leave()
        self._thread.join()

    def __enter__(self) -> Self:
        self._wait_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._wait_open)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    # ── the thread ─────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            uvloop.run(self._crawl_on())
        except BaseException as error:  # for whoever reads; nobody else would see it
            self._error = error
        finally:
            self.feed.end()
            self._opened.set()

    async def _crawl_on(self) -> None:
        self._loop = asyncio.get_running_loop()
        job = self._job = await self._opening()
        try:
            crawl = self._crawl = Crawl.open(job)
            crawl.told, job.told = self.feed.hear, self.feed.note
            self.feed.hold = lambda: crawl.pause(True, "reader")
            self.feed.release = lambda: self._later(lambda: crawl.pause(False, "reader"))
            self._opened.set()
            final = await crawl.run()
            self._final = final
            self.feed.end()
            await asyncio.to_thread(self.feed.drained.wait)  # what the reader meets still goes to the log
            self._final = replace(final, hook_errors=crawl.hook_errors)
        finally:
            job.close()
        if crawl.fault is not None:
            raise crawl.fault

    def _later(self, do: Callable[[], object]) -> None:
        """Have it done in the thread, if that is still there."""
        if self._loop is not None and self._crawl is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(do)

    def _ask(self, question: Callable[[], Any]) -> Any:
        """What the crawl answers in its thread; None when it has ended."""
        answer = Future[Any]()
        self._later(lambda: answer.set_result(None if self._final else question()))
        while self._thread.is_alive():
            with suppress(TimeoutError):
                return answer.result(_PATIENCE)
        return None

    @property
    def _running(self) -> Crawl:
        assert self._crawl is not None
        return self._crawl

    def _wait_open(self) -> None:
        self._opened.wait()
        if self._crawl is None:
            self._raise()

    def _raise(self) -> None:
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _leave(self) -> None:
        """Whoever read has gone."""
        if not self.feed.ended:
            self.stop()
        self.feed.close()
        if self._exchanges is not None:
            self._exchanges.close()


def _close_all() -> None:
    for crawl in list(_RUNNING):
        crawl.close()


# Before the pools of threads end, without which no crawl can be closed: what `atexit` calls comes after that.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]
