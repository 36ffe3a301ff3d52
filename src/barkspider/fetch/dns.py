"""Names to addresses, without ever blocking the loop: c-ares through aiodns, and a cache of our own.

    host ─► address literal? ─► remembered? ─► being asked? ─► c-ares: A, AAAA ─► address rules ─► remembered

What comes out has passed the address rules; a name with public and private addresses keeps the public
ones only, as far as they are among the first 32 of an answer: one that hides a public address behind so many private
ones wants something other than to be visited. Names go out as plain queries, for which c-ares reads neither /etc/hosts nor search domains:
`foo` is asked as `foo.` and nothing else.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import aiodns
import pycares
from aiodns.error import ARES_EBADNAME, ARES_ENODATA, ARES_ENOTFOUND, DNSError

from barkspider.core.settings import Dns
from barkspider.fetch.addresses import AddressRules
from barkspider.url import is_address

_NO_NAME = {ARES_ENOTFOUND, ARES_ENODATA, ARES_EBADNAME}
_KINDS = {"prefer4": ("A", "AAAA"), "prefer6": ("AAAA", "A"), "4": ("A",), "6": ("AAAA",)}
# c-ares would end a name at a NUL, unescape a backslash, and ask for the root when nothing is left.
_ASKABLE = re.compile(r"[\x21-\x5b\x5d-\x7e]{1,253}(?<!\.)")
# Nobody tries more, and an answer over TCP may list four thousand, each of which takes 30 µs to judge.
_MOST_ADDRESSES, _MOST_JUDGED = 8, 32
# Of one answer: aliases come first, and a chain of these is short.
_MOST_RECORDS = 64
# To one channel of c-ares: 13 MB of answers that we remember anyway.
_MOST_QUERIES = 10_000


@dataclass(frozen=True, slots=True)
class Resolution:
    """Addresses that may be contacted, or the reason why there are none.

    `error` is "" or one of dns_no_name, dns_failure (worth another try), refused_address, no_contact.
    `ttl` is for how many seconds from now this is so.
    """

    addresses: tuple[str, ...]
    error: str
    ttl: float


@dataclass(slots=True)
class _Channel:
    """A channel of c-ares, how many queries it was given and how many are under way."""

    queries: aiodns.DNSResolver
    given: int = 0
    pending: int = 0


class Resolver:
    """Asks the name servers of the settings, or the system's, and remembers what they said.

    Belongs to one loop. A name is in `_known` until `dns.cache_size` others were used after it, in the order
    of last use; while it is asked for it is in `_lookups`, whose task everyone who wants the name awaits.

    A name in the cache costs about 360 bytes. c-ares has a cache too, which nothing bounds and pycares cannot
    switch off: 1.3 KB a name for up to an hour. So a channel is replaced after `_MOST_QUERIES`.
    """

    def __init__(
        self, settings: Dns, rules: AddressRules, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._rules = rules
        self._clock = clock
        self._known: OrderedDict[str, tuple[tuple[str, ...], str, float]] = OrderedDict()
        self._lookups: dict[str, asyncio.Task[Resolution]] = {}
        self._slots = asyncio.Semaphore(settings.in_flight)  # wakes those who wait in their order
        self._channel = self._open()

    async def resolve(self, host: str) -> Resolution:
        """Look a canonical host up. Literals are checked like names; what cannot be a name does not exist."""
        name = host.removesuffix(".")
        if is_address(name):
            return self._judge([name.strip("[]")], self._settings.max_ttl)
        if name == "localhost" or name.endswith(".localhost"):  # never asked of a name server (RFC 6761)
            return self._judge(["127.0.0.1"], self._settings.max_ttl)
        if not _ASKABLE.fullmatch(name):
            return self._nothing("dns_no_name")
        if name in self._known:
            addresses, error, until = self._known[name]
            left = until - self._clock()
            if left > 0:
                # Another one first each time, so that whoever comes back from a dead address gets the next.
                self._known[name] = (addresses[1:] + addresses[:1], error, until)
                self._known.move_to_end(name)
                return Resolution(self._known[name][0], error, left)
        lookup = self._lookups.get(name)
        if lookup is None:
            lookup = self._lookups[name] = asyncio.create_task(self._look_up(name))
            lookup.add_done_callback(lambda _: self._lookups.pop(name))
        try:
            return await asyncio.shield(lookup)  # one who gives up must not take the answer from the others
        except asyncio.CancelledError:
            if lookup.cancelled():  # by `close`
                return self._nothing("dns_failure")
            raise

    async def close(self) -> None:
        """Give up what is under way: whoever waits is told dns_failure. Nothing is resolved afterwards."""
        lookups = list(self._lookups.values())
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)
        await self._channel.queries.close()

    def validate(self) -> None:
        """Check the invariants; for tests."""
        assert len(self._known) <= self._settings.cache_size
        assert 0 <= self._channel.pending <= min(self._channel.given, self._settings.in_flight)
        assert all(len(addresses) <= _MOST_ADDRESSES for addresses, _, _ in self._known.values())
        assert all(bool(addresses) != bool(error) for addresses, error, _ in self._known.values())

    async def _look_up(self, name: str) -> Resolution:
        async with self._slots:
            found = await self._ask(name)
        self._known[name] = (found.addresses, found.error, self._clock() + found.ttl)
        self._known.move_to_end(name)
        if len(self._known) > self._settings.cache_size:
            self._known.popitem(last=False)
        return found

    async def _ask(self, name: str) -> Resolution:
        error = "dns_no_name"
        for kind in _KINDS[self._settings.family]:
            try:
                answer = (await self._query(name, kind)).answer[:_MOST_RECORDS]
            except DNSError as failure:
                code = failure.args[0]
                if code not in _NO_NAME:
                    error = "dns_failure"
                # A name without A may have AAAA; one that does not exist, or whose servers fail, is done. Not
                # so for AAAA, which many servers get wrong in just these ways (RFC 4074).
                if kind == "A" and code != ARES_ENODATA:
                    break
                continue
            found = [
                record.data.addr
                for record in answer
                if isinstance(record.data, pycares.ARecordData | pycares.AAAARecordData)
            ]
            if found:
                return self._judge(found, min(record.ttl for record in answer))
        return self._nothing(error)

    async def _query(self, name: str, kind: str) -> pycares.DNSResult:
        if self._channel.given >= min(_MOST_QUERIES, self._settings.cache_size):
            retired, self._channel = self._channel, self._open()
            await self._close_if_idle(retired)
        channel = self._channel
        channel.given += 1
        channel.pending += 1
        try:
            return await channel.queries.query_dns(name, kind)
        finally:
            channel.pending -= 1
            await self._close_if_idle(channel)

    def _open(self) -> _Channel:
        return _Channel(
            aiodns.DNSResolver(
                list(self._settings.servers) or None,
                timeout=self._settings.timeout,
                tries=self._settings.tries,
            )
        )

    async def _close_if_idle(self, channel: _Channel) -> None:
        if channel is not self._channel and not channel.pending:
            await channel.queries.close()

    def _judge(self, addresses: list[str], ttl: float) -> Resolution:
        judged = islice(dict.fromkeys(addresses), _MOST_JUDGED)
        allowed = tuple(islice((each for each in judged if not self._rules.refusal(each)), _MOST_ADDRESSES))
        ttl = min(max(ttl, self._settings.min_ttl), self._settings.max_ttl)
        return Resolution(allowed, "" if allowed else self._rules.refusal(addresses[0]), ttl)

    def _nothing(self, error: str) -> Resolution:
        failed = error == "dns_failure"
        return Resolution((), error, self._settings.failure_ttl if failed else self._settings.negative_ttl)
