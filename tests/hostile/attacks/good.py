"""The honest hosts: each has a domain and an address of its own and as many pages as anyone wants."""

from __future__ import annotations

from tests.hostile.crawls import page
from tests.hostile.names import Script
from tests.hostile.server import Line, Request, ok

GOOD_NETWORK = "127.16.9.0/24"
GOOD_RECORDS: dict[str, Script] = {
    f"www.good-{number}.example": [[f"127.16.9.{number + 1}"]] for number in range(10)
}
GOOD_ADDRESSES = [script[0][0] for script in GOOD_RECORDS.values()]
GOOD_SEEDS = [f"http://{host}/0" for host in GOOD_RECORDS]
LED = "/led-"  # begins what only attackers ask of them
_LINKS = 5


async def good(line: Line, request: Request) -> None:
    """Page n links to the next five that no page before it links to."""
    if request.target == "/robots.txt" or request.target.startswith(LED):
        return await line.send(ok(b"", kind="text/plain"))
    number = int(request.target[1:])
    return await line.send(page(*(f"/{_LINKS * number + step}" for step in range(1, _LINKS + 1))))
