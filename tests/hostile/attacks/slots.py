"""Attacks on slots: requests that take long, from hosts that are many."""

from __future__ import annotations

import asyncio
from functools import partial

from tests.hostile.attacks.attack import Attack, Attackers, addresses
from tests.hostile.crawls import page
from tests.hostile.hazard import site
from tests.hostile.names import SILENT
from tests.hostile.server import ADDRESS, Line, Request, ok

_LED = 500  # links on a page that leads to attackers


def _silent_subdomains(count: int) -> Attackers:
    """One domain whose first page links to hosts of its own that take a connection, or do not, and say nothing."""
    names = [f"s{number}.silent.example" for number in range(count)]
    dead = addresses("127.77", count)
    pages = {
        "/": page(*(f"/{first}" for first in range(0, count, _LED))),
        **{f"/{first}": page(*(f"http://{name}/" for name in names[first : first + _LED])) for first in range(0, count, _LED)},
    }  # fmt: skip
    return Attackers(
        seeds=["http://www.silent.example/"],
        scripts={"www.silent.example": site(pages)},
        records={
            "www.silent.example": [[ADDRESS]],
            **{name: [[address]] for name, address in zip(names, dead, strict=True)},
        },
        dead=dead,
    )


def _silent_domains(count: int) -> Attackers:
    """As many domains, each with an address of its own."""
    names = [f"www.silent-{number}.example" for number in range(count)]
    dead = addresses("127.77", count)
    return Attackers(
        seeds=[f"http://{name}/" for name in names],
        records={name: [[address]] for name, address in zip(names, dead, strict=True)},
        dead=dead,
    )


def _silent_address(count: int) -> Attackers:
    """As many domains, all with the same address."""
    names = [f"www.hushed-{number}.example" for number in range(count)]
    return Attackers(
        seeds=[f"http://{name}/" for name in names], records={name: [["127.77.0.1"]] for name in names}
    )


def _silent_names(one_domain: bool, count: int) -> Attackers:
    """Hosts whose names nobody answers for."""
    names = [
        f"n{number}.nameless.example" if one_domain else f"nameless-{number}.example"
        for number in range(count)
    ]
    return Attackers(seeds=[f"http://{name}/" for name in names], records=dict.fromkeys(names, SILENT))


async def _drip(line: Line, request: Request) -> None:
    """A body that comes just fast enough not to be cut."""
    if request.target == "/robots.txt":
        return await line.send(ok(b"", kind="text/plain"))
    await line.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n")
    while True:
        await line.send(b"x" * 600)
        await asyncio.sleep(1.0)


def _dripping(count: int) -> Attackers:
    names = [f"www.drip-{number}.example" for number in range(count)]
    fleet = addresses("127.66", min(count, 500))
    return Attackers(
        seeds=[f"http://{name}/" for name in names],
        scripts={"*.example": _drip},
        records={name: [[fleet[number % len(fleet)]]] for number, name in enumerate(names)},
        addresses=fleet,
    )


SLOTS = [
    Attack("silent subdomains of one domain", _silent_subdomains),
    Attack("silent domains", _silent_domains),
    Attack("silent domains at one address", _silent_address),
    Attack("dripping bodies", _dripping),
    Attack("subdomains without name servers", partial(_silent_names, True)),
    Attack("domains without name servers", partial(_silent_names, False)),
]
