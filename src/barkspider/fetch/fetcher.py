"""Fetching one URL from one address, with every limit, and keeping connections for their hosts."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from dataclasses import dataclass

from barkspider.core.errors import SettingsError
from barkspider.core.settings import Settings
from barkspider.fetch.addresses import AddressRules
from barkspider.fetch.connection import Connection, Exchange
from barkspider.fetch.deadlines import Deadlines
from barkspider.fetch.decoding import decode
from barkspider.fetch.dns import Resolution, Resolver
from barkspider.fetch.headers import common_headers, request_bytes
from barkspider.url import Parts, split

STALE = "stale_connection"  # an idle connection died before it carried a request
# What another try may cure. Everything else is the same tomorrow.
TEMPORARY = frozenset({"timeout_connect", "timeout_headers", "connect_failed", "disconnected"})


@dataclass(slots=True)
class Response:
    """The end of one fetch: the exchange, what was sent, and the body without its encoding."""

    url: str
    address: str
    request: bytes
    exchange: Exchange
    body: bytes
    whole: bool

    @property
    def truncated(self) -> str:
        """Why the body is not whole in the words of WARC-Truncated, or ""."""
        return self.exchange.truncated


class Fetcher:
    """Fetches for one crawl, on one loop. Whoever calls it keeps politeness and the number in flight.

    Idle connections are kept per host and address until `fetch.keep_alive` is over or there are too many.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.fetch
        self.rules = AddressRules(settings.network, settings.agent.contact)
        self._resolver = Resolver(settings.dns, self.rules)
        self._headers = common_headers(settings)
        self._tls = _tls_context(settings)
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines()
        self._idle: OrderedDict[tuple[str, str, int, str], tuple[Connection, float]] = OrderedDict()

    async def resolve(self, host: str) -> Resolution:
        """The addresses of a host that may be contacted."""
        return await self._resolver.resolve(host)

    async def fetch(self, url: str, address: str, cookie: str = "") -> Response:
        """GET a canonical URL from exactly this address; never raises for what a server does."""
        parts = split(url)
        default = 443 if parts.scheme == "https" else 80
        authority = parts.host if parts.port == default else f"{parts.host}:{parts.port}"
        request = request_bytes(authority, parts.target, self._headers, cookie)
        exchange = await self._exchange(parts, address, request)
        body, whole = decode(exchange.body, exchange.header(b"content-encoding"), self._settings.max_size)
        return Response(url, address, request, exchange, body, whole and not exchange.truncated)

    async def close(self) -> None:
        """Hang up everywhere."""
        while self._idle:
            self._idle.popitem()[1][0].close()
        self._deadlines.close()
        await self._resolver.close()

    async def _exchange(self, parts: Parts, address: str, request: bytes) -> Exchange:
        refusal = self.rules.refusal(address)  # again: nothing connects to what was not checked here
        if refusal:
            return Exchange(failure=refusal)
        deadline = self._loop.time() + self._settings.timeout
        key = (parts.scheme, parts.host, parts.port, address)
        kept, _ = self._idle.pop(key, (None, 0.0))
        if kept is not None and kept.open:
            exchange = await _carry(kept, request, deadline)
            if exchange.failure == "disconnected" and not exchange.raw:
                # The server may have closed the idle connection before our request came, or upon it: nobody
                # knows, so asking again is for whoever keeps the pauses.
                exchange.failure = STALE
            return self._keep(key, kept, exchange)
        connection = Connection(self._settings, self._deadlines, self._loop)
        tls = self._tls if parts.scheme == "https" else None
        try:
            await connection.connect(
                address, self.rules.port(address, parts.port), tls, parts.host.strip("[]")
            )
        except TimeoutError:
            return Exchange(failure="timeout_connect")
        except ssl.SSLError:
            return Exchange(failure="tls_error")
        except OSError:
            return Exchange(failure="connect_failed")
        return self._keep(key, connection, await _carry(connection, request, deadline))

    def _keep(self, key: tuple[str, str, int, str], connection: Connection, exchange: Exchange) -> Exchange:
        if connection.reusable and connection.open:
            now = self._loop.time()
            self._idle[key] = (connection, now + self._settings.keep_alive)
            while self._idle:
                oldest, (idle, until) = next(iter(self._idle.items()))
                if until > now and len(self._idle) <= self._settings.idle_connections:
                    break
                del self._idle[oldest]
                idle.close()
        return exchange


async def _carry(connection: Connection, request: bytes, deadline: float) -> Exchange:
    try:
        return await connection.exchange(request, deadline)
    except asyncio.CancelledError:  # the crawl was told to stop at once: leave no open connection behind
        connection.close()
        raise


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
