"""What Scrapy calls: requests in, and out again when their hosts and servers may be asked.

    enqueue_request ─► waiting ─► Keeper.step ─► due ─► next_request ─► Scrapy ─► no longer in progress ─► an outcome

A request is done when Scrapy is through with it: its callback has ended and its items went through the pipelines. Then its
outcome is written down, in one record with the requests that it led to, as far as their Referer says so. So a process that
is killed has each request either done, with all that came of it, or still to do.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import tempfile
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.job import job_dir

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import UrlError
from barkspider.core.events import (
    FetchPage,
    FetchRobots,
    Outcome,
    PageFetched,
    ResolveHost,
    Seeds,
    is_temporary,
)
from barkspider.core.records import Flag, UrlRow
from barkspider.scrapy.asking import Asking, wait
from barkspider.scrapy.choosing import options
from barkspider.scrapy.codec import decode, encode
from barkspider.scrapy.keeper import Keeper
from barkspider.url import Domains, KeyMaker, parse, split
from barkspider.url.partition import slotted

_GATHERED = 0.5  # seconds for which what a request led to waits for the end of that request
_MOST_GATHERED = 10_000  # requests that wait so
_TURN = 0.01  # seconds from a turn to the next: what happens meanwhile costs no more than one of it
_NO_RETRY = 255  # tries: to ask again, or to give up, is for Scrapy's middleware to decide
_IN_RAM = "#!"  # begins what stands for a request that cannot be written
_MOST_DEPTH = 65_535

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sent:
    """A request that Scrapy has, and what is known of it."""

    asked: FetchPage
    since: float
    reached: bool = False  # whether it was sent at all: a cache may have answered
    response: Any = None
    seconds: float = 0.0
    led_to: list[UrlRow] = field(default_factory=list)


class Scheduler(BaseScheduler):
    """A scheduler and a filter of duplicates for Scrapy, on our frontier. One thread, that of Scrapy's loop.

    `BARKSPIDER_JOB` names its folder (else one below `JOBDIR`; without either it is a temporary one), `BARKSPIDER_SETTINGS` has
    settings of ours by name, such as `{"politeness.host_delay": "5s"}`.
    """

    def __init__(self, crawler: Any) -> None:
        if not is_asyncio_available():
            raise NotConfigured(
                "barkspider.scrapy needs asyncio: leave TWISTED_REACTOR and TWISTED_REACTOR_ENABLED as they are"
            )
        self._crawler = crawler
        self._temporary = ""
        folder = crawler.settings["BARKSPIDER_JOB"] or (
            Path(found) / "barkspider" if (found := job_dir(crawler.settings)) else ""
        )
        if not folder:
            self._temporary = tempfile.mkdtemp(prefix="barkspider-")
        self._folder = Path(folder or self._temporary) / ("" if folder else "job")
        self._started = Counter[bytes]()  # how often a request was among the first ones
        self._waiting = list[UrlRow]()  # filled by `enqueue_request`, emptied by `_turn`
        self._happened = list[Outcome]()  # filled by `Asking`, emptied by `_turn`
        self._due = deque[FetchPage]()  # filled by `_turn`, emptied by `next_request`
        self._sent: dict[Request, _Sent] = {}  # what Scrapy has
        self._by_url: dict[bytes, _Sent] = {}  # the same by URL, for Referers
        self._led_to = 0  # rows in all `led_to`
        self._in_ram: dict[int, Request] = {}  # what cannot be written, by number
        self._others = deque[Request]()  # of schemes that are not on the web
        self._wake, self._next_turn, self._gather_until = 0.0, 0.0, float("inf")
        self._timer: Any = None

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """As Scrapy makes it."""
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Make the job, or go on with it."""
        self._spider = spider
        ours = logging.getLogger("barkspider.storage")
        if ours.level == logging.NOTSET:  # sizes of buckets are news to nobody here
            ours.setLevel(logging.WARNING)
        self._keeper = Keeper(self._folder, options(self._crawler.settings))
        settings = self._keeper.settings
        self._obeys = settings.politeness.obey_robots
        self._keys, self._domains = KeyMaker(settings.seed), Domains(settings.url.private_suffixes)
        self._asking = Asking(self._crawler, settings, self._take)
        connect = self._crawler.signals.connect
        connect(self._reached, signals.request_reached_downloader)
        connect(self._downloaded, signals.response_downloaded)

    async def _closed(self) -> None:
        await self._asking.close()
        for request in list(self._sent):
            self._end(request)
        self._keeper.step(self._outcomes())
        self._report()
        self._keeper.close()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def close(self, reason: str) -> Any:  # noqa: ARG002 (it is Scrapy's word)
        """Make all safe; what has not come up yet is there at the next start."""
        from scrapy.utils.defer import deferred_from_coro

        if self._timer is not None:
            self._timer.cancel()
        return deferred_from_coro(self._closed())

    def has_pending_requests(self) -> bool:
        """Whether anything may still come."""
        return bool(
            self._waiting or self._happened or self._due or self._others or not self._keeper.finished()
        )

    def enqueue_request(self, request: Request) -> bool:
        """Take a request. Whether it is a duplicate shows later, when many are looked up together."""
        stats = self._crawler.stats
        try:
            fragment = encode(request, self._spider)
        except ValueError as error:
            if not stats.get_value("scheduler/unserializable"):
                logger.warning(
                    "Unable to serialize request: %s - reason: %s - it is kept in memory and lost with the process; "
                    "no more of these will be logged (stats being collected)",
                    request,
                    error,
                    extra={"spider": self._spider},
                )
            stats.inc_value("scheduler/unserializable")
            number = secrets.randbits(62)
            self._in_ram[number], fragment = request, f"!{number}"
        if not self._put(request, fragment):
            self._others.append(request)
        stats.inc_value("scheduler/enqueued")
        return True

    def next_request(self) -> Request | None:
        """What may be sent now."""
        if self._others:
            return self._others.popleft()
        self._turn()
        while self._due:
            asked = self._due.popleft()
            try:
                request = self._read(asked.row.url.decode())
            except ValueError as error:
                logger.error(
                    "Request to %s %s", asked.row.url.decode(), error, extra={"spider": self._spider}
                )
                self._take(PageFetched(_final(asked), failure="request_unreadable"))
                continue
            if self._obeys:
                request.meta["dont_obey_robotstxt"] = True  # it is obeyed already
            sent = self._sent[request] = _Sent(asked, time.monotonic())
            self._by_url[_referer(request.url)] = sent
            self._crawler.stats.inc_value("scheduler/dequeued")
            return request
        return None

    # ── requests as rows ───────────────────────────────────────────────────────────────────────

    def _put(self, request: Request, fragment: str) -> bool:
        """Let a request wait to be given to the frontier; False for what no host has."""
        try:
            url = str(parse(request.url).with_fragment(None))
            host = split(url).host
        except (UrlError, ValueError):
            return False
        if not url.startswith(("http://", "https://")) or not host:
            return False
        domain, meta = self._keys.of(self._domains.pay_level(host)), request.meta
        print_ = self._crawler.request_fingerprinter.fingerprint(request)
        flags = 0
        if meta.get("is_start_request"):  # is asked for again at each start, and was not filtered by anybody
            self._started[print_] += 1
            print_ += b"%d" % (self._started[print_] if request.dont_filter else 0)
            flags = int(Flag.SEED)
        elif request.dont_filter:
            print_ += secrets.token_bytes(8)  # so it is new, whatever was seen
        # As it was written, where that differs; a space is in no URL.
        exact = "" if request.url == url else f"@{request.url.encode().hex()}"
        row = UrlRow(
            slotted(self._keys.of(print_), domain),
            self._keys.of(host),
            domain,
            min(int(meta.get("depth", 0)), _MOST_DEPTH),
            0,
            0,
            flags,
            f"{url}#{fragment}{exact}".encode(),
            found=int(time.time()),
        )
        parent = self._by_url.get(request.headers.get(b"Referer") or b"")
        if parent is not None and not flags and self._led_to < _MOST_GATHERED:
            if not self._led_to:
                self._gather_until = time.monotonic() + _GATHERED
            parent.led_to.append(row._replace(parent=parent.asked.row.key))
            self._led_to += 1
        else:
            self._waiting.append(row)
        return True

    def _read(self, text: str) -> Request:
        url, _, rest = text.partition("#")
        fragment, _, exact = rest.partition("@")
        if fragment.startswith("!"):
            request = self._in_ram.pop(int(fragment[1:]), None)
            if request is None:
                raise ValueError("was only in the memory of a process that is gone")
            return request
        return decode(bytes.fromhex(exact).decode() if exact else url, fragment, self._spider)

    # ── turns ──────────────────────────────────────────────────────────────────────────────────

    def _turn(self) -> None:
        """Tell the frontier what happened and do what it says, if there is any reason to."""
        now = time.monotonic()
        if now < self._next_turn:
            if not self._due:
                self._set_timer(self._next_turn - now)
            return
        self._next_turn = now + _TURN
        under_way = self._crawler.engine._slot.inprogress
        for request in [each for each in self._sent if each not in under_way]:
            self._end(request)
        if now >= self._gather_until:
            self._scatter()
        if self._waiting or self._happened or self._keeper.now >= self._wake:
            instructions, self._wake = self._keeper.step(self._outcomes())
            for instruction in instructions:
                if isinstance(instruction, FetchPage):
                    self._due.append(instruction)
                elif isinstance(instruction, ResolveHost | FetchRobots):
                    self._asking.begin(instruction)
        self._set_timer(min(self._wake - self._keeper.now, self._gather_until - now))

    def _outcomes(self) -> list[Outcome]:
        happened, self._happened = self._happened, []
        rows, self._waiting = self._waiting, []
        return [Seeds(UrlBatch.from_rows(rows)), *happened] if rows else happened

    def _end(self, request: Request) -> None:
        """Scrapy is through with a request."""
        sent = self._sent.pop(request)
        name = _referer(request.url)
        if self._by_url.get(name) is sent:
            del self._by_url[name]
        self._led_to -= len(sent.led_to)
        status = 0 if sent.response is None else sent.response.status
        failure = f"http_{status}" if status >= 400 else ""
        if sent.reached and not status:
            failure = "no_answer"
        outcome = PageFetched(
            _final(sent.asked),
            status or 200,
            failure,
            temporary=failure == "no_answer" or is_temporary(status),
            retry_after=None if sent.response is None else wait(sent.response),
            seconds=sent.seconds,
        )
        if outcome.failure or outcome.status >= 300:  # to the frontier such a page has no links
            self._waiting += sent.led_to
        elif sent.led_to:
            outcome = outcome.with_links(UrlBatch.from_rows(sent.led_to))
        self._happened.append(outcome)

    def _scatter(self) -> None:
        """Give out what was gathered for requests that go on for long."""
        for sent in self._sent.values():
            self._waiting += sent.led_to
            sent.led_to = []
        self._led_to, self._gather_until = 0, float("inf")

    def _take(self, outcome: Outcome) -> None:
        self._happened.append(outcome)
        self._call()

    def _set_timer(self, seconds: float) -> None:
        """Come back after so long, if nothing happens before."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds < float("inf"):
            self._timer = call_later(max(seconds, 0.001), self._call)

    def _call(self) -> None:
        """Have Scrapy ask for a request."""
        slot = self._crawler.engine._slot
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()

    # ── what Scrapy tells ──────────────────────────────────────────────────────────────────────

    def _reached(self, request: Request) -> None:
        if (sent := self._sent.get(request)) is not None:
            sent.reached, sent.since = True, time.monotonic()

    def _downloaded(self, response: Any, request: Request) -> None:
        if (sent := self._sent.get(request)) is not None:
            sent.response, sent.seconds = response, time.monotonic() - sent.since

    def _report(self) -> None:
        counters, stats = self._keeper.counters, self._crawler.stats
        for name in ("discovered", "pages", "deferred", "queued"):
            stats.set_value(f"barkspider/{name}", getattr(counters, name))
        for reason, count in {**counters.refused, **counters.failed}.items():
            stats.set_value(f"barkspider/{reason}", count)
        enqueued = stats.get_value("scheduler/enqueued", 0)
        stats.set_value("dupefilter/filtered", max(enqueued - counters.discovered, 0))


def _final(asked: FetchPage) -> FetchPage:
    """The same, which the frontier does not ask for again."""
    return FetchPage(asked.row._replace(tries=_NO_RETRY), asked.address, asked.trail)


def _referer(url: str) -> bytes:
    """How a Referer calls a page."""
    return url.partition("#")[0].encode()
