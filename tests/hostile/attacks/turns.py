"""Attacks on the turns of others: names at their addresses, a robots.txt that leads to them, ports without number."""

from __future__ import annotations

from tests.hostile.attacks.attack import Attack, Attackers, addresses
from tests.hostile.attacks.good import GOOD_ADDRESSES, GOOD_RECORDS, LED
from tests.hostile.crawls import page
from tests.hostile.hazard import site
from tests.hostile.server import ADDRESS, Line, Request, moved

_LED = 500  # links on a page that leads to attackers


def _names_at_honest_addresses(count: int) -> Attackers:
    """One domain whose hosts are all to be found at the addresses of honest ones."""
    names = [f"s{number}.squat.example" for number in range(count)]
    return Attackers(
        seeds=[f"http://{name}/" for name in names],
        records={name: [[GOOD_ADDRESSES[number % 10]]] for number, name in enumerate(names)},
    )


async def _elsewhere(line: Line, request: Request) -> None:
    """Every robots.txt redirects to a page of an honest host that nobody else asks for."""
    number = int(request.host.split(".")[1].rpartition("-")[2])
    await line.send(moved(f"http://{list(GOOD_RECORDS)[number % 10]}{LED}{number}"))


def _robots_txt_elsewhere(count: int) -> Attackers:
    names = [f"www.led-{number}.example" for number in range(count)]
    fleet = addresses("127.66", min(count, 500))
    return Attackers(
        seeds=[f"http://{name}/" for name in names],
        scripts={"*.example": _elsewhere},
        records={name: [[fleet[number % len(fleet)]]] for number, name in enumerate(names)},
        addresses=fleet,
    )


def _ports(count: int) -> Attackers:
    """A host whose pages link to its own ports."""
    links = [f"http://www.ports.example:{20_000 + number}/" for number in range(count)]
    first = range(0, count, _LED)
    pages = {
        "/": page(*(f"/{place}" for place in first)),
        **{f"/{place}": page(*links[place : place + _LED]) for place in first},
    }
    return Attackers(
        seeds=["http://www.ports.example/"],
        scripts={"www.ports.example": site(pages)},
        records={"www.ports.example": [[ADDRESS]]},
    )


TURNS = [
    Attack("names at honest addresses", _names_at_honest_addresses),
    Attack("robots.txt that leads to honest hosts", _robots_txt_elsewhere),
    Attack("ports of one host", _ports, few=400, many=20_000),
]
