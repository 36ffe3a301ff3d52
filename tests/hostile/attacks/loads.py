"""Attacks on the loop and the disk: answers that cost little to send and much to read."""

from __future__ import annotations

import gzip

import zstandard

from tests.hostile.attacks.attack import Attack, Attackers, addresses
from tests.hostile.crawls import page
from tests.hostile.server import Line, Request, Serve, ok

_HTML = "text/html; charset=windows-1252"
_LINKS = 20  # further pages of an attacker that a page leads to


def _sites(name: str, serve: Serve) -> Attack:
    """As many domains that all do the same, each at an address of its own."""

    def make(count: int) -> Attackers:
        hosts = [f"www.{name.replace(' ', '-')}-{number}.example" for number in range(count)]
        fleet = addresses("127.66", min(count, 100))
        return Attackers(
            seeds=[f"http://{host}/0" for host in hosts],
            scripts={"*.example": serve},
            records={host: [[fleet[number % len(fleet)]]] for number, host in enumerate(hosts)},
            addresses=fleet,
        )

    return Attack(name, make, few=10, many=100)


def _packed(body: bytes, kind: str = _HTML) -> bytes:
    return ok(gzip.compress(body), kind=kind, headers="Content-Encoding: gzip\r\n")


def _pages(body: bytes) -> Serve:
    """A site without rules whose every page has links to others and then this."""
    start = "".join(f"<a href=/{number}>" for number in range(_LINKS)).encode()
    answer = _packed(start + body)

    async def serve(line: Line, request: Request) -> None:
        await line.send(ok(b"", kind="text/plain") if request.target == "/robots.txt" else answer)

    return serve


def _sitemaps(body: bytes) -> Serve:
    """A site whose every page is a sitemap of further ones, and then this."""
    start = b"<urlset>" + b"".join(b"<url><loc>/%d</loc></url>" % number for number in range(_LINKS))
    answer = _packed(start + body, "application/xml")

    async def serve(line: Line, request: Request) -> None:
        await line.send(ok(b"", kind="text/plain") if request.target == "/robots.txt" else answer)

    return serve


_RELATIVE = b"".join(b"<a href=%d>" % number for number in range(10_000))


async def _long_base(line: Line, request: Request) -> None:
    """Ten thousand links that are short in the page and two kilobytes long as URLs, others on each page."""
    if request.target == "/robots.txt":
        return await line.send(ok(b"", kind="text/plain"))
    base = f"/{len(request.target)}{request.target[-8:].replace('/', '-')}"
    return await line.send(_packed(f"<base href={base}{'b' * (1_950 - len(base))}/>".encode() + _RELATIVE))


def _robots(answer: bytes) -> Serve:
    links = page(*(f"/{'a' * 200}{number}" for number in range(500)))

    async def serve(line: Line, request: Request) -> None:
        await line.send(answer if request.target == "/robots.txt" else links)

    return serve


_STARS = "".join(f"Disallow: /{'*a' * 245}*{number}\n" for number in range(1000))
_TWICE_PACKED = zstandard.compress(zstandard.compress(b"User-agent: *\nAllow: /\n" + b"#" * 8_000_000))


def _many_addresses(count: int) -> Attackers:
    """Names with as many addresses as an answer holds, none of them public but for one at the end."""
    hosts = [f"h{number}.addresses.example" for number in range(count)]
    private = [f"10.{number // 250}.{number % 250}.1" for number in range(4_049)]
    return Attackers(
        seeds=[f"http://{host}/" for host in hosts],
        records={host: [[*private, "127.66.1.1"]] for host in hosts},
    )


LOADS = [
    _sites("one letter for eight megabytes", _pages(b"<a href='?" + b"\x81" * 7_900_000 + b"'>")),
    _sites("references for eight megabytes", _pages(b"<a href='" + b"&lt;" * 1_990_000 + b"'>")),
    _sites("stars in robots txt", _robots(_packed(b"User-agent: *\n" + _STARS.encode(), "text/plain"))),
    _sites(
        "robots txt packed twice",
        _robots(ok(_TWICE_PACKED, kind="text/plain", headers="Content-Encoding: zstd, zstd\r\n")),
    ),
    _sites("long base", _long_base),
    _sites("elements of four bytes", _sitemaps(b"<a/>" * 1_990_000)),
    _sites("a comment without end", _sitemaps(b"<!--" + b"-" * 7_900_000)),
    Attack("many addresses", _many_addresses, few=10, many=500),
]
