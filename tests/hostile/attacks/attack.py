"""One attack: what its hosts do, what they are called, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.hostile.attacks.good import GOOD_NETWORK, GOOD_RECORDS
from tests.hostile.names import Script
from tests.hostile.server import ADDRESS, Serve, hostile_server
from tests.hostile.silent import mute

FLEET = "127.66.0.0/16"  # where attackers listen
DEAD = "127.77.0.0/16"  # where nobody answers


@dataclass(frozen=True)
class Attackers:
    """The hosts of an attack: what each does (`*.name` for all below), their names, and the seeds that lead to them.

    They listen on `addresses`; on those in `dead` connections are never answered.
    """

    seeds: Sequence[str]
    scripts: Mapping[str, Serve] = field(default_factory=dict)
    records: Mapping[str, Script] = field(default_factory=dict)
    addresses: Sequence[str] = (ADDRESS,)
    dead: Sequence[str] = ("127.77.0.1",)


@dataclass(frozen=True)
class Attack:
    """`make(count)` gives so many attackers. A test has `few` of them and so many slots (`fetch.in_flight`); at full
    size there are `many`, and all settings but the delays and `options` are the defaults."""

    name: str
    make: Callable[[int], Attackers]
    few: int = 80
    slots: int = 20
    many: int = 2_000  # four for each slot
    options: tuple[str, ...] = ()


NOBODY = Attack("nobody", lambda _: Attackers(seeds=()))


@contextmanager
def attacked(attackers: Attackers, good_port: int) -> Iterator[list[str]]:
    """The attackers at work: the options with which a crawl finds them, and the good hosts at their port."""
    records = {**attackers.records, **GOOD_RECORDS}
    with (
        mute(attackers.dead) as dead_port,
        hostile_server(attackers.scripts, records, attackers.addresses) as server,
    ):
        places = {f"{GOOD_NETWORK}:80": good_port, f"{FLEET}:80": server.http_port, f"{DEAD}:80": dead_port}
        yield [
            f"network.allow={GOOD_NETWORK},{FLEET},{DEAD}",
            f"network.ports={','.join(f'{place}={port}' for place, port in places.items())}",
            f"dns.servers=127.0.0.1:{server.dns_port}",
        ]


def addresses(network: str, count: int) -> list[str]:
    """The first addresses of a network of 65,536.

    >>> addresses("127.77", 3), addresses("127.77", 300)[-1]
    (['127.77.1.1', '127.77.1.2', '127.77.1.3'], '127.77.2.50')
    """
    return [f"{network}.{number // 250 + 1}.{number % 250 + 1}" for number in range(count)]
