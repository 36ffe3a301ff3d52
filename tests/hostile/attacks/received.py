"""Attacks on the memory for what is received: answers that are large, and take their time to end."""

from __future__ import annotations

import asyncio
import gzip

from tests.hostile.attacks.attack import Attack, Attackers, addresses
from tests.hostile.server import Line, Request, Serve, ok

_NEARLY_ALL = 1_900_000  # of 2 MB, where a body is cut
_BOMB = gzip.compress(bytes(8_000_000), 9)


async def _hog(line: Line, request: Request) -> None:
    """Nearly all of a body at once, and then just enough not to be cut."""
    await line.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2000000\r\n\r\n")
    await line.send(bytes(_NEARLY_ALL))
    while True:
        await line.send(b"x" * 600)
        await asyncio.sleep(1.0)


async def _headers(line: Line, request: Request) -> None:
    """As many headers as fit, and no end of them until time is up."""
    await line.send(b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 1_900)
    while True:
        await line.send(b"a:\r\n")
        await asyncio.sleep(1.0)


async def _bomb(line: Line, request: Request) -> None:
    """Eight megabytes in eight kilobytes, and links to more of them."""
    await line.send(ok(_BOMB, headers="Content-Encoding: gzip\r\n"))


def _fleet(name: str, serve: Serve, count: int) -> Attackers:
    """So many domains that do this at every path but that of robots.txt."""

    async def both(line: Line, request: Request) -> None:
        if request.target == "/robots.txt":
            return await line.send(ok(b"", kind="text/plain"))
        return await serve(line, request)

    names = [f"www.{name}-{number}.example" for number in range(count)]
    fleet = addresses("127.66", min(count, 500))
    return Attackers(
        seeds=[f"http://{host}/{path}" for path in range(3) for host in names],
        scripts={"*.example": both},
        records={host: [[fleet[number % len(fleet)]]] for number, host in enumerate(names)},
        addresses=fleet,
    )


# Fewer than there are slots in the small form: what many hosts do to slots is another matter.
RECEIVED = [
    Attack("hogs", lambda count: _fleet("hog", _hog, count), few=30, slots=40),
    Attack("endless headers", lambda count: _fleet("header", _headers, count), few=30, slots=40),
    Attack("bombs", lambda count: _fleet("bomb", _bomb, count), few=30, slots=40),
]
