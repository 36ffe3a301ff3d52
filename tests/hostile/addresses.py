"""Hazards 24 to 30 and 32: where a URL or a name may lead."""

from __future__ import annotations

from tests.hostile.hazard import DOMAIN, Hazard, host_of, says
from tests.hostile.server import ADDRESS, ok

# What a URL may write for its host, and what it stands for; nothing here may be contacted.
_REFUSED = {
    24: (
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.1.1", "0.0.0.0", "0.1.2.3"),
        *("100.64.0.1", "198.18.0.1", "192.0.2.1", "240.0.0.1", "255.255.255.255", "224.0.0.1", "192.0.0.100"),
        *("[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[2001:db8::1]", "[3fff::1]", "[100::1]"),
        *("localhost", "a.localhost", "LOCALHOST"),
    ),
    25: ("169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
    26: (
        *("[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a00:1]", "[2002:7f00:1::]", "[2002:a00:1::1]"),
        *("[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]", "[::ffff:0:10.0.0.1]", "[fec0::1]"),
        *("[ff02::1]", "[2001:0:7f00:1::1]", "[2001:0:808:808::80ff:fffe]", "[fe80::5efe:10.0.0.1]"),
    ),
    28: (
        *("2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "0x7f.0.0.1", "017700000001", "127.0.1"),
        *("0xA9FEA9FE", "0251.0376.0251.0376", "%31%32%37.0.0.1", "127。0。0。1", "127.0.0.1.", "0"),
        *("1２7.0.0.1", "[::FFFF:7F00:0001]", "[0:0:0:0:0:0:0:1]"),
    ),
}  # fmt: skip


def _literal(number: int, host: str) -> Hazard:
    return Hazard(number, host, url=f"http://{host}/", connects=False, expect={"outcome": "refused_address"})


def _named(number: int, name: str, outcome: str, *answers: tuple[str, ...], connects: bool = False) -> Hazard:
    host = host_of(number, name)
    return Hazard(
        number,
        name,
        {host: says(ok())},
        {host: answers},
        url=f"http://{host}/",
        connects=connects,
        expect={"outcome": outcome} | ({"address": ADDRESS} if connects else {}),
    )


_REBINDING = _named(29, "rebinding, the first answer", "ok", (ADDRESS,), ("169.254.169.254",), connects=True)
_MIXED = ("10.0.0.1", ADDRESS, "169.254.169.254", "192.168.0.1")
_ALIAS = f"alias.{DOMAIN}"

ADDRESSES = [
    *(_literal(number, host) for number, hosts in _REFUSED.items() for host in hosts),
    _named(24, "a name for loopback", "refused_address", ("127.0.0.1",)),
    _named(24, "a name for a private IPv6 address", "refused_address", ("fc00::1",)),
    _named(25, "a name for cloud metadata", "refused_address", ("169.254.169.254",)),
    _named(26, "a name for mapped loopback", "refused_address", ("::ffff:127.0.0.1",)),
    _named(26, "a name for NAT64 metadata", "refused_address", ("64:ff9b::a9fe:a9fe",)),
    _named(30, "an alias for loopback", "refused_address", (_ALIAS, f"{_ALIAS}=127.0.0.1")),
    *(
        Hazard(
            27,
            f"fetching from {address} all the same",
            url=f"http://{DOMAIN}/",
            address=address,
            expect={"outcome": "refused_address"},
        )
        for address in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1", "nonsense")
    ),
    _REBINDING,
    Hazard(
        29,
        "rebinding, the second answer",
        url=_REBINDING.url,
        options=("seed=2",),  # another crawl, which remembers no names of the first
        connects=False,
        expect={"outcome": "refused_address"},
    ),
    _named(30, "private and public answers mixed", "ok", _MIXED, connects=True),
    _named(30, "only private answers", "refused_address", ("10.0.0.1", "127.0.0.1")),
]
