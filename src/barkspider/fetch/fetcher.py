"""Fetching one URL from one address, with every limit, and keeping connections for their hosts."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial

from barkspider.core.allotment import names
from barkspider.core.errors import SettingsError
from barkspider.core.settings import Fetch, Network, Settings
from barkspider.fetch.addresses import AddressRules
from barkspider.fetch.connection import Connection
from barkspider.fetch.cookies import CookieJar
from barkspider.fetch.cookies_file import read_cookies
from barkspider.fetch.decoding import decode
from barkspider.fetch.dns import Resolution, Resolver
from barkspider.fetch.exchange import NO_FILES, REDIRECTS, STALE, HttpExchange
from barkspider.fetch.headers import Validators, common_headers, own_headers, request_bytes
from barkspider.fetch.intake import Intake, local_hour
from barkspider.fetch.poll import Poller
from barkspider.fetch.proxy import Proxy
from barkspider.fetch.target import Shared, Target
from barkspider.url import Domains, UrlParts, origin, split

_ANYWHERE = Network(allow=("0.0.0.0/0", "::/0"))
_MEMORY_SHARE = 8  # messages that nobody has read yet may take so small a part of `memory`
_IDLE_SHARE = 16  # and idle connections this one
# Seconds until another try where there was no file handle, and until others may have the place in flight.
_NO_FILES_PAUSE, _NO_FILES_PATIENCE = 0.25, 10.0
_LEAST_CONNECTIONS = 8  # that are never shed
_SCARCE = 60.0  # seconds until as many connections as before may be tried
_Key = tuple[str, str, int, str]  # scheme, host, port, address


@dataclass(slots=True)
class Response:
    """The end of one fetch: the exchange, what was sent, and the body without its encodings.

    These come off when the body is first looked at, up to `most` bytes, or as many as `limits` allow.
    `cookies` are the values of Set-Cookie that were taken (`Fetcher.take_cookies`).
    """

    url: str
    address: str
    request: bytes
    exchange: HttpExchange
    limits: Fetch
    most: int | None = None
    cookies: tuple[str, ...] = ()
    _unpacked: tuple[bytes, bool] | None = field(default=None, repr=False)

    @property
    def body(self) -> bytes:
        """The body, as far as its encodings came off, or as sent."""
        return self._beginning()[0]

    @property
    def decoded(self) -> bool:
        """Whether the encodings came off whole."""
        return self._beginning()[1]

    def pack(self) -> None:
        """Forget the body without its encodings until it is looked at again: many may wait to be read."""
        self._unpacked = None

    def unpack(self, most: int | None = None) -> tuple[bytes, bool]:
        """The body without its encodings, at most so many bytes of it, and whether that is all. Any thread."""
        if self.exchange.status in REDIRECTS:  # nobody reads those
            return self.exchange.body, True
        if most is None:
            most = max(self.limits.max_decoded, len(self.exchange.body))
        return decode(self.exchange.body, self.exchange.header(b"content-encoding"), self.limits, most)

    def _beginning(self) -> tuple[bytes, bool]:
        if self._unpacked is None:
            self._unpacked = self.unpack(self.most)
        return self._unpacked

    @property
    def whole(self) -> bool:
        """Whether the body is all that the server had to give."""
        return self.decoded and not self.exchange.cut


class Fetching:
    """One fetch that is under way: `done` is told its end, unless it is cancelled before."""

    __slots__ = (
        "address",
        "any_type",
        "connection",
        "done",
        "kept",
        "most",
        "parts",
        "patience",
        "request",
        "url",
    )

    def __init__(
        self, url: str, parts: UrlParts, address: str, request: bytes, any_type: bool, most: int | None
    ) -> None:
        self.url, self.parts, self.address, self.request = url, parts, address, request
        self.any_type, self.most = any_type, most
        self.connection: Connection | None = None
        self.done: Callable[[Response], None] | None = None
        self.kept = False  # whether the connection has carried a request before
        self.patience = 0.0  # until when file handles are waited for

    @property
    def key(self) -> _Key:
        """What its connection is kept under."""
        return (self.parts.scheme, self.parts.host, self.parts.port, self.address)

    def cancel(self) -> None:
        """Hang up and tell nobody."""
        self.done = None
        if self.connection is not None:
            self.connection.close()


class Fetcher:
    """Fetches for one crawl, on one loop. Whoever calls it keeps politeness and the number in flight.

    Idle connections are kept per host and address until `fetch.keep_alive` is over or they are too many, or take too much
    memory.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.fetch
        self.rules = AddressRules(settings.network, settings.agent.contact, names(settings.memory))
        self._resolver = Resolver(settings.dns, self.rules)
        self._headers, self._own_headers = common_headers(settings), own_headers(settings.fetch)
        self.cookies = CookieJar(
            settings.cookies, Domains(private=True)
        )  # users of a hosting domain are kept apart
        self._given = read_cookies(settings.cookies.file)
        self.give_cookies()
        # Reading the system's authorities takes 40 ms, and many crawls meet no https; a file of the user's is checked now.
        self._tls = cache(partial(_tls_context, settings))
        if settings.fetch.tls_authority:
            self._tls()
        self._proxy = Proxy.parse(settings.network.proxy) if settings.network.proxy else None
        # The proxy is the operator's word, wherever it is; it has names of its own.
        self._proxy_names = Resolver(settings.dns, AddressRules(_ANYWHERE, contact="operator"))
        self._loop = asyncio.get_running_loop()
        poller = Poller(self._loop)
        intake = Intake(settings.fetch, settings.memory // _MEMORY_SHARE, self._loop, local_hour)
        self._shared = Shared(settings.fetch, self._loop, poller, intake)
        self._scarce: asyncio.TimerHandle | None = None
        self._under_way: set[Fetching] = set()
        self._idle: OrderedDict[_Key, tuple[Connection, float]] = OrderedDict()
        self._idle_bytes, self._most_idle_bytes = 0, settings.memory // _IDLE_SHARE

    def give_cookies(self) -> None:
        """Put the cookies of `cookies.file` into the jar, in the place of others."""
        self.cookies.give(self._given)

    def received(self) -> tuple[int, int]:
        """Bytes in messages that nobody has read yet, and how many there may be."""
        return self._shared.intake.held, self._shared.intake.memory

    def look_up(self, host: str, done: Callable[[Resolution], None]) -> None:
        """Tell `done`, maybe at once, the addresses of a host that may be contacted."""
        self._resolver.look_up(host, done)

    async def resolve(self, host: str) -> Resolution:
        """The same, to be awaited."""
        return await self._resolver.resolve(host)

    def begin(
        self,
        url: str,
        address: str,
        done: Callable[[Response], None],
        validators: Validators | None = None,
        any_type: bool = True,
        most: int | None = None,
    ) -> Fetching:
        """GET a canonical URL from exactly this address and tell `done`, maybe at once, whatever the server does.

        With `validators` of an earlier fetch the server may answer that nothing has changed (304). Unless
        `any_type`, a body whose type is not among `fetch.types` is left at the headers. `most` is for `Response`.
        `done` must open no socket, and cookies are left to `take_cookies`.
        """
        parts = split(url)
        default = 443 if parts.scheme == "https" else 80
        authority = parts.host if parts.port == default else f"{parts.host}:{parts.port}"
        cookie = self.cookies.header(parts, time.time())
        headers = self._headers + (self._own_headers.get(origin(url), "") if self._own_headers else "")
        request = request_bytes(authority, parts.target, headers, cookie, validators)
        fetching = Fetching(url, parts, address, request, any_type, most)
        fetching.done = done
        self._under_way.add(fetching)
        refusal = self.rules.refusal(address)  # again: nothing connects to what was not checked here
        if refusal:
            self._end(fetching, HttpExchange(failure=refusal))
        elif self._take_idle(fetching):
            self._send(fetching)
        elif self._proxy is not None:
            self._proxy_names.look_up(self._proxy.host, partial(self._connect, fetching))
        else:
            self._connect(fetching)
        return fetching

    async def fetch(
        self,
        url: str,
        address: str,
        validators: Validators | None = None,
        any_type: bool = True,
        most: int | None = None,
    ) -> Response:
        """The same as `begin`, to be awaited; cookies are taken."""
        answer: asyncio.Future[Response] = self._loop.create_future()

        def done(response: Response) -> None:
            if not answer.done():
                answer.set_result(response)

        fetching = self.begin(url, address, done, validators, any_type, most)
        try:
            response = await answer
        except asyncio.CancelledError:  # leave no open connection behind
            self._under_way.discard(fetching)
            fetching.cancel()
            raise
        self.take_cookies(response)
        return response

    def take_cookies(self, response: Response) -> None:
        """Take the cookies that an answer sets: once for each, in the order in which answers count."""
        values = response.exchange.all_headers(b"set-cookie")
        if values:
            response.cookies = self.cookies.take(split(response.url), values, time.time())

    def abort(self) -> None:
        """Give up all that is under way: nobody is told of it."""
        for fetching in self._under_way:
            fetching.cancel()
        self._under_way.clear()

    def shed(self, count: int) -> int:
        """Close so many connections, as file handles are needed for something else: idle ones, then those that were told
        nothing yet, whose requests wait. Returns how many there may be for the next minute."""
        poller = self._shared.poller
        poller.most = max(len(poller) - count, _LEAST_CONNECTIONS)
        if self._scarce is not None:
            self._scarce.cancel()
        self._scarce = self._loop.call_later(_SCARCE, self._forget_scarcity)
        self._drop_idle(max(len(self._idle) - count, 0))
        for connection in poller.owners():
            if len(poller) <= poller.most:
                break
            connection.give_up()
        return poller.most

    def _forget_scarcity(self) -> None:
        self._shared.poller.most = sys.maxsize

    async def aclose(self) -> None:
        """Hang up everywhere."""
        self.abort()
        if self._scarce is not None:
            self._scarce.cancel()
        self._drop_idle(0)
        self._shared.intake.close()
        self._shared.deadlines.close()
        self._shared.poller.close()
        await self._resolver.close()
        await self._proxy_names.close()

    def _take_idle(self, fetching: Fetching) -> bool:
        """Whether there is a connection from an earlier fetch that still stands."""
        if not self._idle or fetching.key not in self._idle:
            return False
        connection, _ = self._idle.pop(fetching.key)
        self._idle_bytes -= connection.weight
        if not connection.is_quiet():
            return False
        fetching.connection, fetching.kept = connection, True
        return True

    def _connect(self, fetching: Fetching, proxy: Resolution | None = None) -> None:
        if proxy is not None and not proxy.addresses:
            detail = "the name of the proxy has no address"
            return self._end(fetching, HttpExchange(failure="proxy_error", detail=detail))
        parts, address = fetching.parts, fetching.address
        tls = self._tls() if parts.scheme == "https" else None
        way = (self._proxy, proxy.addresses[0]) if self._proxy is not None and proxy is not None else None
        target = Target(address, self.rules.port(address, parts.port), parts.host.strip("[]"), tls, way)
        fetching.connection = Connection(self._shared, target)
        return self._send(fetching)

    def _send(self, fetching: Fetching) -> None:
        if fetching.done is not None:
            assert fetching.connection is not None
            fetching.connection.exchange(fetching.request, fetching.any_type, partial(self._ended, fetching))

    def _ended(self, fetching: Fetching, exchange: HttpExchange) -> None:
        connection = fetching.connection
        assert connection is not None
        if exchange.failure == NO_FILES:
            now = self._loop.time()
            fetching.patience = fetching.patience or now + _NO_FILES_PATIENCE
            if now < fetching.patience:
                if not self._shared.poller.is_full:  # whoever needs a handle beside us finds some again
                    self.shed(_LEAST_CONNECTIONS)
                self._loop.call_later(_NO_FILES_PAUSE, self._send, fetching)
                return
        if fetching.kept and exchange.failure == "disconnected" and not exchange.head:
            # The server may have closed the idle connection before our request came, or upon it: nobody
            # knows, so asking again is for whoever keeps the pauses.
            exchange.failure = STALE
        elif connection.idle:
            if self._settings.idle_connections:
                self._hold_idle(fetching.key, connection)
            else:
                connection.close()
        self._end(fetching, exchange)

    def _end(self, fetching: Fetching, exchange: HttpExchange) -> None:
        self._under_way.discard(fetching)
        done, fetching.done = fetching.done, None
        if done is not None:
            done(
                Response(
                    fetching.url,
                    fetching.address,
                    fetching.request,
                    exchange,
                    self._settings,
                    fetching.most,
                )
            )

    def _hold_idle(self, key: _Key, connection: Connection) -> None:
        now = self._loop.time()
        if key in self._idle:  # two were asked at a time, and one is enough
            self._idle.move_to_end(key, last=False)
            self._drop_oldest()
        self._idle[key] = (connection, now + self._settings.keep_alive)
        self._idle_bytes += connection.weight
        while self._idle and (
            self._idle_bytes > self._most_idle_bytes or next(iter(self._idle.values()))[1] <= now
        ):
            self._drop_oldest()
        self._drop_idle(self._settings.idle_connections)

    def _drop_idle(self, most: int) -> None:
        while len(self._idle) > most:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, (connection, _) = self._idle.popitem(last=False)
        self._idle_bytes -= connection.weight
        connection.close()


def _tls_context(settings: Settings) -> ssl.SSLContext:
    # Without a file handle, which this raises, authorities would be missing in silence.
    os.close(os.open(os.devnull, os.O_RDONLY))
    context = ssl.create_default_context()
    if settings.fetch.tls_authority:
        try:
            context.load_verify_locations(settings.fetch.tls_authority)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"fetch.tls_authority: cannot use {settings.fetch.tls_authority}: {error}"
            ) from error
    if not settings.fetch.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
