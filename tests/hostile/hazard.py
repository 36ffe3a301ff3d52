"""One entry of the table: a hazard, what the server does, and what must come out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.hostile.names import Script
from tests.hostile.server import End, Line, Request, Serve

DOMAIN = "hostile.example"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\n\r\n"


@dataclass(frozen=True)
class Found:
    """What a crawl came to: its statistics, the URLs in its archive, and what the server saw."""

    statistics: Mapping[str, Any]
    pages: Sequence[str]
    robots: Sequence[str]
    requests: Sequence[Request]

    def paths(self, host: str) -> list[str]:
        """The targets that were asked of a host, in order, but for its robots.txt."""
        return [
            request.target
            for request in self.requests
            if request.host == host and request.target != "/robots.txt"
        ]


@dataclass(frozen=True)
class Hazard:
    """`number` is that of the list of hazards. Either `url` is fetched, and `expect` holds what must come

    out; or `seeds` are crawled, and `check` says whether the crawl did what it must. `scripts` are the hosts
    of the hazard, `records` their names. A fetch goes to `address` if there is one; with `connects` false the
    host is resolved and judged, no more.
    """

    number: int
    name: str
    scripts: Mapping[str, Serve] = field(default_factory=dict)
    records: Mapping[str, Script] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    url: str = ""
    address: str = ""
    connects: bool = True
    expect: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[str, ...] = ()
    check: Callable[[Found], None] | None = None

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.number}: {self.name}"


def host_of(number: int, name: str) -> str:
    """A host name for a hazard.

    >>> host_of(1, "No answer, at all")
    'no-answer-at-all-1.hostile.example'
    """
    return f"{re.sub('[^a-z0-9]+', '-', name.lower())[:50]}-{number}.{DOMAIN}"


def fetched(
    number: int, name: str, serve: Serve, *options: str, scheme: str = "http", **expect: Any
) -> Hazard:
    """A hazard of one page of one host."""
    host = host_of(number, name)
    return Hazard(number, name, {host: serve}, options=options, url=f"{scheme}://{host}/", expect=expect)


def says(*pieces: bytes, stay: bool = False) -> Serve:
    """Writes these pieces, then hangs up, or stays silent."""

    async def serve(line: Line, _request: Request) -> None:
        for piece in pieces:
            await line.send(piece)
        if stay:
            await line.silence()
        raise End

    return serve


def endless(head: bytes, piece: bytes) -> Serve:
    """Writes the same for as long as anyone listens."""

    async def serve(line: Line, _request: Request) -> None:
        await line.send(head)
        while True:
            await line.send(piece)

    return serve


def drips(head: bytes, tail: bytes, pause: float) -> Serve:
    """Writes a head at once and the rest byte by byte."""

    async def serve(line: Line, _request: Request) -> None:
        await line.send(head)
        await line.drip(tail, pause)
        await line.silence()

    return serve


def site(pages: Mapping[str, bytes]) -> Serve:
    """A host with these answers by path; 404 for all others."""

    async def serve(line: Line, request: Request) -> None:
        missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        await line.send(pages.get(request.target, missing))

    return serve
