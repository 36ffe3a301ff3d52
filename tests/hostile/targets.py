"""Thousands of ways to lead a crawler to an address, and a record of every address it then connects to.

No packet leaves: `recorded` notes each attempt to connect and refuses it, so everything before that, from the
text of a URL to the socket, is the crawler's own.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import ipaddress
import random
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from barkspider.core.errors import UrlError
from barkspider.core.load import load_settings
from barkspider.engine.links import LinkMaker
from barkspider.fetch import Fetcher
from barkspider.url import Domains, Normaliser, split
from tests.hostile.names import Script
from tests.hostile.registry import SPECIAL_4, SPECIAL_6, is_public
from tests.hostile.server import hostile_server

_SEED = "http://seed.example/"
_AT_ONCE = 50
_PUBLIC_PREFIX = 0x2A00_1450_4001_0800


@dataclass(frozen=True)
class Case:
    """A URL or, from `_SEED`, a redirect to it; what the name server says; an address given by force."""

    kind: str
    url: str
    answers: Script = ()
    told: str = ""


@dataclass
class Result:
    """Every attempt to connect by number of the case, and how many cases ended in which way."""

    attempts: list[tuple[int, str]] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)

    @property
    def not_public(self) -> list[tuple[int, str]]:
        """What must be empty."""
        return [(case, address) for case, address in self.attempts if not is_public(address)]

    @property
    def connected(self) -> int:
        """Cases that led to an attempt."""
        return len({case for case, _ in self.attempts})


# ── making cases ───────────────────────────────────────────────────────────────────────────────────


def make_cases(count: int, seed: int) -> list[Case]:
    """Cases of every kind in turn, always the same for a seed."""
    chance = random.Random(seed)
    makers = (_literal, _literal, _name, _alias, _rebinding, _redirect, _told)
    return [makers[number % len(makers)](chance, number) for number in range(count)]


def _literal(chance: random.Random, _number: int) -> Case:
    if chance.random() < 0.5:
        return Case("IPv4 literal", f"{_scheme(chance)}://{_written_4(chance, _pick_4(chance))}/")
    return Case("IPv6 literal", f"{_scheme(chance)}://[{_written_6(chance, _pick_6(chance))}]/")


def _name(chance: random.Random, number: int) -> Case:
    """A name with one to four addresses, of which some may be public."""
    answers = [_pick(chance) for _ in range(chance.randint(1, 4))]
    return Case("name", f"{_scheme(chance)}://n{number}.example/", (answers,))


def _alias(chance: random.Random, number: int) -> Case:
    names = [f"n{number}.example", *(f"alias{step}-{number}.example" for step in range(chance.randint(1, 3)))]
    chain = [f"{name}={behind}" for name, behind in pairwise(names)]
    answers = [*chain, *(f"{names[-1]}={_pick(chance)}" for _ in range(chance.randint(1, 3)))]
    return Case("alias", f"{_scheme(chance)}://n{number}.example/", (answers,))


def _rebinding(chance: random.Random, number: int) -> Case:
    public = str(ipaddress.IPv4Address(chance.randrange(0x08000000, 0x09000000)))
    later = ([_pick(chance)] for _ in range(3))
    return Case("rebinding", f"{_scheme(chance)}://n{number}.example/", ([public], *later))


def _redirect(chance: random.Random, number: int) -> Case:
    """The same targets behind a redirect, in ways that mislead careless readers."""
    target = chance.choice((_literal, _name, _alias))(chance, number)
    place = target.url.partition("://")[2]
    ways = (
        target.url,
        f"//{place}",
        f"\\\\{place}",
        f"http:\\\\public.example\\@{place}",
        f"http://public.example@{place}",
        f"http://8.8.8.8:80@{place}",
        f"ht\ttp://{place}",
        f"http:{place}",
        f"HTTP://{place.replace('/', ':80/')}",
        f"http://{place.replace('/', '%2f@8.8.8.8/')}",
    )
    return Case("redirect", chance.choice(ways), target.answers)


def _told(chance: random.Random, number: int) -> Case:
    return Case("told", f"{_scheme(chance)}://n{number}.example/", told=_pick(chance))


def _scheme(chance: random.Random) -> str:
    return chance.choice(("http", "https"))


def _pick(chance: random.Random) -> str:
    address = _pick_4(chance) if chance.random() < 0.6 else _pick_6(chance)
    return str(address)


def _pick_4(chance: random.Random) -> ipaddress.IPv4Address:
    if chance.random() < 0.3:
        return ipaddress.IPv4Address(chance.randrange(1 << 32))
    return ipaddress.IPv4Address(_near(chance, chance.choice(SPECIAL_4), 1 << 32))


def _pick_6(chance: random.Random) -> ipaddress.IPv6Address:
    way = chance.randrange(10)
    inner, tail = int(_pick_4(chance)), chance.getrandbits(16)
    prefix = chance.choice((_PUBLIC_PREFIX, 0xFE80 << 48))
    embedded = (
        inner,
        0xFFFF << 32 | inner,
        0xFFFF << 48 | inner,
        0x64FF9B << 96 | inner,
        0x64FF9B0001 << 80 | inner,
        0x2002 << 112 | inner << 80 | tail,
        0x20010000 << 96 | inner << 64 | tail << 32 | (~int(_pick_4(chance)) & 0xFFFFFFFF),
        prefix << 64 | chance.choice((0, 0x0200)) << 48 | 0x5EFE << 32 | inner,
    )
    if way < len(embedded):
        return ipaddress.IPv6Address(embedded[way])
    if way == len(embedded):
        return ipaddress.IPv6Address(_near(chance, chance.choice(SPECIAL_6), 1 << 128))
    return ipaddress.IPv6Address(0x2 << 124 | chance.getrandbits(125))


def _near(chance: random.Random, network: ipaddress.IPv4Network | ipaddress.IPv6Network, size: int) -> int:
    """An address of a network, often its first or last, or the neighbour on either side."""
    first, last = int(network[0]), int(network[-1])
    edges = (first - 1, first, first + 1, last - 1, last, last + 1)
    return (chance.choice(edges) if chance.random() < 0.4 else chance.randint(first, last)) % size


def _written_4(chance: random.Random, address: ipaddress.IPv4Address) -> str:
    """One of the ways that the WHATWG standard reads as this address."""
    bits = int(address)
    parts = list(address.packed)
    kept = chance.randint(0, 3)  # so many bytes stand alone, the last number is all the others
    numbers = [*parts[:kept], bits & ((1 << (8 * (4 - kept))) - 1)]
    forms = ("{}", "{:#x}", "{:#X}", "0{:o}", "0x{:012x}")
    ways = (
        str(address),
        f"{address}.",
        ".".join(chance.choice(forms).format(number) for number in numbers),
        ".".join(f"0{byte:03o}" for byte in parts),
        "".join(f"%{ord(letter):02x}" if chance.random() < 0.5 else letter for letter in str(address)),
        "".join(chr(ord(letter) + 0xFEE0) if letter.isdigit() else letter for letter in str(address)),
        str(address).replace(".", chance.choice("。．｡")),
    )
    return chance.choice(ways)


def _written_6(chance: random.Random, address: ipaddress.IPv6Address) -> str:
    dotted = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    upper = address.exploded.rpartition(":")[0].rpartition(":")[0]
    return chance.choice((str(address), address.exploded, str(address).upper(), f"{upper}:{dotted}"))


# ── running them ───────────────────────────────────────────────────────────────────────────────────

_current: contextvars.ContextVar[int] = contextvars.ContextVar("case")


@contextmanager
def recorded(attempts: list[tuple[int, str]]) -> Iterator[None]:
    """Note every attempt of this process to connect a socket of the Internet, and refuse it."""
    kept: dict[str, Any] = {name: vars(socket.socket).get(name) for name in ("connect", "connect_ex")}

    def connect_ex(_opened: socket.socket, address: tuple[Any, ...]) -> int:
        attempts.append((_current.get(-1), address[0]))
        return errno.ECONNREFUSED

    def connect(opened: socket.socket, address: tuple[Any, ...]) -> None:
        raise ConnectionRefusedError(connect_ex(opened, address), "refused by the recorder")

    socket.socket.connect, socket.socket.connect_ex = connect, connect_ex  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        for name, method in kept.items():
            if method is None:  # it was inherited
                delattr(socket.socket, name)
            else:
                setattr(socket.socket, name, method)


def run(cases: Sequence[Case]) -> Result:
    """Lead a crawler along every case."""
    result = Result()
    records = {f"n{number}.example": case.answers for number, case in enumerate(cases) if case.answers}
    with hostile_server({}, records) as server, recorded(result.attempts):
        asyncio.run(_run(cases, server.dns_port, result))
    return result


async def _run(cases: Sequence[Case], dns_port: int, result: Result) -> None:
    options = [f"dns.servers=127.0.0.1:{dns_port}", "agent.contact=https://example.org/", "scope.level=web"]
    settings = load_settings(options=[*options, "seed=3", "dns.timeout=2s"])
    fetcher, normalise = Fetcher(settings), Normaliser(settings.url, Domains())
    links = LinkMaker(settings, [_SEED])
    source = links.seeds().rows()[0]
    numbers = iter(range(len(cases)))

    async def lead(case: Case) -> str:
        if case.kind == "redirect":
            made = links.redirect(case.url, source)
            if made is None:
                return "refused as a link"
            url = made[0].url.decode()
        else:
            try:
                url = normalise(case.url)
            except UrlError as error:
                return error.reason
        if case.told:
            return (await fetcher.fetch(url, case.told)).exchange.outcome
        end = ""
        for _ in range(2 if case.kind == "rebinding" else 1):
            found = await fetcher.resolve(split(url).host)
            end = found.error
            for address in found.addresses:
                end = (await fetcher.fetch(url, address)).exchange.outcome
        return end

    async def worker() -> None:
        for number in numbers:
            _current.set(number)
            result.ends[await lead(cases[number])] += 1

    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))
    await fetcher.aclose()
