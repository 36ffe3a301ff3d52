"""What a frontier wants to know before a request goes out: the address of a host, and its robots.txt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from scrapy import Request

from barkspider.core.events import FetchRobots, HostResolved, Outcome, ResolveHost, RobotsFetched
from barkspider.core.settings import Network, Settings
from barkspider.fetch import AddressRules, HttpExchange, retry_after
from barkspider.fetch.dns import Resolver
from barkspider.url.robots import MAX_SIZE

_ANYWHERE = AddressRules(Network(allow=("0.0.0.0/0", "::/0")), contact="operator")
_REDIRECTS = range(300, 400)


class Asking:
    """Answers `ResolveHost` and `FetchRobots` on the running loop, each by a call of `done` with one outcome.

    Addresses only say which hosts share a server; Scrapy's downloader makes its own connections, maybe through a proxy. So
    a host that has none stands for itself.
    """

    def __init__(self, crawler: Any, settings: Settings, done: Callable[[Outcome], None]) -> None:
        self._crawler, self._done = crawler, done
        self._resolver = Resolver(settings.dns, _ANYWHERE)
        self._tasks = set[asyncio.Task[None]]()

    def begin(self, asked: ResolveHost | FetchRobots) -> None:
        """Find it out."""
        work: Coroutine[Any, Any, None] = (
            self._resolve(asked) if isinstance(asked, ResolveHost) else self._robots(asked)
        )
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._resolver.close()

    async def _resolve(self, asked: ResolveHost) -> None:
        found = await self._resolver.resolve(asked.host)
        self._done(HostResolved(asked, found.addresses or (asked.host,), ttl=max(found.ttl, 60.0)))

    async def _robots(self, asked: FetchRobots) -> None:
        # As Scrapy's own middleware asks for it, but at the turn that the frontier has given it.
        meta = {
            "dont_obey_robotstxt": True,
            "dont_redirect": True,
            "dont_retry": True,
            "handle_httpstatus_all": True,
        }
        start = time.monotonic()
        try:
            request = Request(asked.url, meta=meta, dont_filter=True)
            answer = await self._crawler.engine.download_async(request)
        except Exception:  # whatever a downloader raises means that there was no answer
            self._done(RobotsFetched(asked, 0))
            return
        redirect = ""
        if answer.status in _REDIRECTS:
            redirect = answer.headers.get("Location", b"").decode("latin-1")
            redirect = answer.urljoin(redirect) if redirect else ""
        self._done(
            RobotsFetched(
                asked,
                answer.status,
                answer.body[:MAX_SIZE],
                redirect,
                wait(answer),
                seconds=time.monotonic() - start,
            )
        )


def wait(answer: Any) -> float | None:
    """For how many seconds an answer asks to be left alone, if it does."""
    said = answer.headers.get("Retry-After")
    return None if said is None else retry_after(HttpExchange(headers=[(b"Retry-After", said)]), time.time())
