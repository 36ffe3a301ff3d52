"""Fetching one URL from one address, with every limit, and keeping connections for their hosts."""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from barkspider.core.errors import SettingsError
from barkspider.core.settings import Fetch, Network, Settings
from barkspider.fetch.addresses import AddressRules
from barkspider.fetch.connection import Connection, Shared, Target
from barkspider.fetch.cookies import CookieJar
from barkspider.fetch.cookies_file import read_cookies
from barkspider.fetch.decoding import decode
from barkspider.fetch.dns import Resolution, Resolver
from barkspider.fetch.exchange import NO_FILES, REDIRECTS, STALE, Exchange
from barkspider.fetch.headers import Validators, common_headers, own_headers, request_bytes
from barkspider.fetch.intake import Intake, local_hour
from barkspider.fetch.poll import Poller
from barkspider.fetch.proxy import Proxy
from barkspider.url import Domains, Parts, origin, split

_ANYWHERE = Network(allow=("0.0.0.0/0", "::/0"))
_MEMORY_SHARE = 8  # messages that nobody has read yet may take so small a part of `memory`
# Seconds until another try where there was no file handle, and until others may have the place in flight.
_NO_FILES_PAUSE, _NO_FILES_PATIENCE = 0.25, 10.0
_LEAST_CONNECTIONS = 8  # that are never shed
_SCARCE = 60.0  # seconds until as many connections as before may be tried
_Key = tuple[str, str, int, str]  # scheme, host, port, address


@dataclass(slots=True)
class Response:
    """The end of one fetch: the exchange, what was sent, and the body without its encodings.

    These come off when the body is first looked at, up to `most` bytes, or as many as `limits` allow.
    `cookies` are the values of Set-Cookie that were taken.
    """

    url: str
    address: str
    request: bytes
    exchange: Exchange
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


class Fetcher:
    """Fetches for one crawl, on one loop. Whoever calls it keeps politeness and the number in flight.

    Idle connections are kept per host and address until `fetch.keep_alive` is over or there are too many.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.fetch
        self.rules = AddressRules(settings.network, settings.agent.contact)
        self._resolver = Resolver(settings.dns, self.rules)
        self._headers, self._own_headers = common_headers(settings), own_headers(settings.fetch)
        self.cookies = CookieJar(
            settings.cookies, Domains(private=True)
        )  # users of a hosting domain are kept apart
        self._given = read_cookies(settings.cookies.file)
        self.give_cookies()
        self._tls = _tls_context(settings)
        self._proxy = Proxy.parse(settings.network.proxy) if settings.network.proxy else None
        # The proxy is the operator's word, wherever it is; it has names of its own.
        self._proxy_names = Resolver(settings.dns, AddressRules(_ANYWHERE, contact="operator"))
        self._loop = asyncio.get_running_loop()
        poller = Poller(self._loop)
        intake = Intake(settings.fetch, settings.memory // _MEMORY_SHARE, self._loop, local_hour)
        self._shared = Shared(settings.fetch, self._loop, poller, intake)
        self._scarce: asyncio.TimerHandle | None = None
        self._idle: OrderedDict[_Key, tuple[Connection, float]] = OrderedDict()

    def give_cookies(self) -> None:
        """Put the cookies of `cookies.file` into the jar, in the place of others."""
        self.cookies.give(self._given)

    async def resolve(self, host: str) -> Resolution:
        """The addresses of a host that may be contacted."""
        return await self._resolver.resolve(host)

    async def fetch(
        self,
        url: str,
        address: str,
        validators: Validators | None = None,
        any_type: bool = True,
        most: int | None = None,
    ) -> Response:
        """GET a canonical URL from exactly this address; never raises for what a server does.

        With `validators` of an earlier fetch the server may answer that nothing has changed (304). Unless
        `any_type`, a body whose type is not among `fetch.types` is left at the headers. `most` is for `Response`.
        """
        parts = split(url)
        default = 443 if parts.scheme == "https" else 80
        authority = parts.host if parts.port == default else f"{parts.host}:{parts.port}"
        cookie = self.cookies.header(parts, time.time())
        headers = self._headers + (self._own_headers.get(origin(url), "") if self._own_headers else "")
        request = request_bytes(authority, parts.target, headers, cookie, validators)
        exchange = await self._exchange(parts, address, request, any_type)
        cookies = self.cookies.take(parts, exchange.all_headers(b"set-cookie"), time.time())
        return Response(url, address, request, exchange, self._settings, most, cookies)

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
        if self._scarce is not None:
            self._scarce.cancel()
        self._drop_idle(0)
        self._shared.intake.close()
        self._shared.deadlines.close()
        self._shared.poller.close()
        await self._resolver.close()
        await self._proxy_names.close()

    async def _exchange(self, parts: Parts, address: str, request: bytes, any_type: bool) -> Exchange:
        refusal = self.rules.refusal(address)  # again: nothing connects to what was not checked here
        if refusal:
            return Exchange(failure=refusal)
        key = (parts.scheme, parts.host, parts.port, address)
        connection, _ = self._idle.pop(key, (None, 0.0))
        kept = connection is not None and connection.is_quiet()
        if connection is None or not kept:
            target = await self._target(parts, address)
            if target is None:
                return Exchange(failure="proxy_error", detail="the name of the proxy has no address")
            connection = Connection(self._shared, target)
        try:
            exchange = await connection.exchange(request, any_type)
            patience = self._loop.time() + _NO_FILES_PATIENCE
            while exchange.failure == NO_FILES and self._loop.time() < patience:
                if not self._shared.poller.is_full:  # whoever needs a handle beside us finds some again
                    self.shed(_LEAST_CONNECTIONS)
                await asyncio.sleep(_NO_FILES_PAUSE)
                exchange = await connection.exchange(request, any_type)
        except asyncio.CancelledError:  # the crawl was told to stop at once: leave no open connection behind
            connection.close()
            raise
        if kept and exchange.failure == "disconnected" and not exchange.head:
            # The server may have closed the idle connection before our request came, or upon it: nobody
            # knows, so asking again is for whoever keeps the pauses.
            exchange.failure = STALE
        elif connection.idle and self._settings.idle_connections:
            self._keep(key, connection)
        return exchange

    async def _target(self, parts: Parts, address: str) -> Target | None:
        tls = self._tls if parts.scheme == "https" else None
        way = None
        if self._proxy is not None:
            found = await self._proxy_names.resolve(self._proxy.host)
            if not found.addresses:
                return None
            way = (self._proxy, found.addresses[0])
        return Target(address, self.rules.port(address, parts.port), parts.host.strip("[]"), tls, way)

    def _keep(self, key: _Key, connection: Connection) -> None:
        now = self._loop.time()
        self._idle[key] = (connection, now + self._settings.keep_alive)
        while self._idle and next(iter(self._idle.values()))[1] <= now:
            self._idle.popitem(last=False)[1][0].close()
        self._drop_idle(self._settings.idle_connections)

    def _drop_idle(self, most: int) -> None:
        while len(self._idle) > most:
            self._idle.popitem(last=False)[1][0].close()


def _tls_context(settings: Settings) -> ssl.SSLContext:
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
