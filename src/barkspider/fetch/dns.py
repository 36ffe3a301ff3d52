"""Names to addresses, without ever blocking the loop: c-ares, and a cache of our own.

    host ─► address literal? ─► remembered? ─► being asked? ─► c-ares: A, AAAA ─► address rules ─► remembered

What comes out has passed the address rules; a name with public and private addresses keeps the public ones only, as far
as they are among the first 32 of an answer: one that hides a public address behind so many private ones wants something
other than to be visited. Names go out as plain queries, for which c-ares reads neither /etc/hosts nor search domains:
`foo` is asked as `foo.` and nothing else.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from weakref import WeakSet

import pycares
from pycares.errno import ARES_EBADNAME, ARES_ENODATA, ARES_ENOTFOUND

from barkspider.core.settings import Dns
from barkspider.fetch.addresses import AddressRules
from barkspider.fetch.channel import Channel
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
_RENEWED = 60.0  # seconds until a channel reads anew which name servers the system has


@dataclass(frozen=True, slots=True)
class Resolution:
    """Addresses that may be contacted, or the reason why there are none.

    `error` is "" or one of dns_no_name, dns_failure (worth another try), refused_address, no_contact.
    `ttl` is for how many seconds from now this is so.
    """

    addresses: tuple[str, ...]
    error: str
    ttl: float


class Resolver:
    """Asks the name servers of the settings, or the system's, and remembers what they said.

    Belongs to one loop. A name is in `_known` until `dns.cache_size` others were used after it, in the order
    of last use; while it is asked for it is in `_lookups`, with everyone who wants to be told.

    A name in the cache costs about 360 bytes. c-ares has a cache too, which nothing bounds and pycares cannot
    switch off: 1.3 KB a name for up to an hour. So a channel is replaced after `_MOST_QUERIES` or `_RENEWED`; the old one
    closes itself when the last who asked it is told.
    """

    def __init__(
        self, settings: Dns, rules: AddressRules, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._rules = rules
        self._clock = clock
        self._known: OrderedDict[str, tuple[tuple[str, ...], str, float]] = OrderedDict()
        self._lookups: dict[str, list[Callable[[Resolution], None]]] = {}
        self._waiting: deque[str] = (
            deque()
        )  # filled by `look_up`, emptied when fewer than `dns.in_flight` are asked for
        self._asking = 0
        self._channels: WeakSet[Channel] = WeakSet()
        self._channel, self._given, self._opened = self._open(), 0, clock()

    def look_up(self, host: str, done: Callable[[Resolution], None]) -> None:
        """Tell `done`, maybe at once. Literals are checked like names; what cannot be a name does not exist."""
        name = host.removesuffix(".")
        if is_address(name):
            return done(self._judge([name.strip("[]")], self._settings.max_ttl))
        if name == "localhost" or name.endswith(".localhost"):  # never asked of a name server (RFC 6761)
            return done(self._judge(["127.0.0.1"], self._settings.max_ttl))
        if not _ASKABLE.fullmatch(name):
            return done(self._nothing("dns_no_name"))
        if name in self._known:
            addresses, error, until = self._known[name]
            left = until - self._clock()
            if left > 0:
                # Another one first each time, so that whoever comes back from a dead address gets the next.
                self._known[name] = (addresses[1:] + addresses[:1], error, until)
                self._known.move_to_end(name)
                return done(Resolution(self._known[name][0], error, left))
        askers = self._lookups.get(name)
        if askers is not None:
            return askers.append(done)
        self._lookups[name] = [done]
        self._waiting.append(name)
        return self._ask_more()

    async def resolve(self, host: str) -> Resolution:
        """The same, to be awaited."""
        answer: asyncio.Future[Resolution] = asyncio.get_running_loop().create_future()
        # One who gives up must not take the answer from the others.
        self.look_up(host, lambda found: None if answer.done() else answer.set_result(found))
        return await answer

    async def close(self) -> None:
        """Give up what is under way: whoever waits is told dns_failure. Nothing is resolved afterwards."""
        self._waiting.clear()
        self._asking = 0
        for name in list(self._lookups):
            self._tell(name, self._nothing("dns_failure"))
        for channel in list(self._channels):
            channel.close()

    def validate(self) -> None:
        """Check the invariants; for tests."""
        assert len(self._known) <= self._settings.cache_size
        assert 0 <= self._asking <= self._settings.in_flight
        assert len(self._lookups) == len(self._waiting) + self._asking
        assert all(len(addresses) <= _MOST_ADDRESSES for addresses, _, _ in self._known.values())
        assert all(bool(addresses) != bool(error) for addresses, error, _ in self._known.values())

    def _ask_more(self) -> None:
        while self._waiting and self._asking < self._settings.in_flight:
            self._asking += 1
            self._ask(self._waiting.popleft(), _KINDS[self._settings.family], "dns_no_name")

    def _ask(self, name: str, kinds: tuple[str, ...], error: str) -> None:
        """Ask for the first of these kinds of addresses, and for the others if it has none; `error` is what is known if
        none has."""
        now = self._clock()
        if self._given >= min(_MOST_QUERIES, self._settings.cache_size) or now - self._opened >= _RENEWED:
            self._channel, self._given, self._opened = self._open(), 0, now
        self._given += 1
        self._channel.ask(name, kinds[0], partial(self._answered, name, kinds, error))

    def _answered(
        self, name: str, kinds: tuple[str, ...], error: str, said: pycares.DNSResult | None, code: int
    ) -> None:
        if name not in self._lookups:  # closed meanwhile
            return None
        answer = [] if said is None else said.answer[:_MOST_RECORDS]
        found = [
            record.data.addr
            for record in answer
            if isinstance(record.data, pycares.ARecordData | pycares.AAAARecordData)
        ]
        if found:
            return self._remember(name, self._judge(found, min(record.ttl for record in answer)))
        code = code or ARES_ENODATA
        if code not in _NO_NAME:
            error = "dns_failure"
        # A name without A may have AAAA; one that does not exist, or whose servers fail, is done. Not
        # so for AAAA, which many servers get wrong in just these ways (RFC 4074).
        if len(kinds) == 1 or (kinds[0] == "A" and code != ARES_ENODATA):
            return self._remember(name, self._nothing(error))
        return self._ask(name, kinds[1:], error)

    def _remember(self, name: str, found: Resolution) -> None:
        self._known[name] = (found.addresses, found.error, self._clock() + found.ttl)
        self._known.move_to_end(name)
        if len(self._known) > self._settings.cache_size:
            self._known.popitem(last=False)
        self._asking -= 1
        self._tell(name, found)
        self._ask_more()

    def _tell(self, name: str, found: Resolution) -> None:
        for done in self._lookups.pop(name):
            done(found)

    def _open(self) -> Channel:
        channel = Channel(self._settings.servers, self._settings.timeout, self._settings.tries)
        self._channels.add(channel)
        return channel

    def _judge(self, addresses: list[str], ttl: float) -> Resolution:
        judged = islice(dict.fromkeys(addresses), _MOST_JUDGED)
        allowed = tuple(islice((each for each in judged if not self._rules.refusal(each)), _MOST_ADDRESSES))
        ttl = min(max(ttl, self._settings.min_ttl), self._settings.max_ttl)
        return Resolution(allowed, "" if allowed else self._rules.refusal(addresses[0]), ttl)

    def _nothing(self, error: str) -> Resolution:
        failed = error == "dns_failure"
        return Resolution((), error, self._settings.failure_ttl if failed else self._settings.negative_ttl)
