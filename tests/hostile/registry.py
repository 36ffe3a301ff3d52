"""Which addresses are public: a slow judgement of its own, straight from IANA's registries.

It shares no code with what it judges: the networks are those of the special-purpose registries for IPv4 and
IPv6 (RFC 6890 and successors), multicast, and what no registry has given out.
"""

from __future__ import annotations

import ipaddress

_NOT_GLOBAL_4 = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.2/32", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
    *("203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32", "224.0.0.0/4"),
    "168.63.129.16/32",  # in no registry, but inside of a large cloud it is the machine's own host
)
_GLOBAL_4 = ("192.0.0.9/32", "192.0.0.10/32")  # anycast, inside of 192.0.0.0/24
_NOT_GLOBAL_6 = (
    *("::1/128", "::/128", "::ffff:0:0/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23"),
    *("2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
)
_GLOBAL_6 = (
    *("2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:3::/32", "2001:4:112::/48", "2001:20::/28"),
    *("2001:30::/28", "2001::/32"),  # the last is Teredo: as public as what it stands for
)
_UNICAST_6 = "2000::/3"  # the only block from which public addresses are given out
_NAT64 = "64:ff9b::/96"

SPECIAL_4 = [ipaddress.IPv4Network(text) for text in (*_NOT_GLOBAL_4, *_GLOBAL_4)]
SPECIAL_6 = [ipaddress.IPv6Network(text) for text in (*_NOT_GLOBAL_6, *_GLOBAL_6, _NAT64, "2002::/16")]


def is_public(text: str) -> bool:
    """Whether a packet to this address goes out to the open Internet, and to no other place.

    >>> [is_public(text) for text in ("8.8.8.8", "10.0.0.1", "2a00::1", "64:ff9b::a00:1", "2002:808:808::1")]
    [True, False, True, False, True]
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv4Address):
        return not _within(address, _NOT_GLOBAL_4) or _within(address, _GLOBAL_4)
    if not all(is_public(inner) for inner in inside(address)):
        return False
    if _within(address, (_NAT64,)):
        return True
    if _within(address, _NOT_GLOBAL_6) and not _within(address, _GLOBAL_6):
        return False
    return _within(address, (_UNICAST_6,))


def inside(address: ipaddress.IPv6Address) -> list[str]:
    """The IPv4 addresses that an IPv6 address leads to."""
    bits = int(address)
    found = []
    if bits >> 32 in (0, 0xFFFF, 0xFFFF0000, 0x64FF9B << 64):  # compatible, mapped, translated, NAT64
        found.append(bits)
    if bits >> 112 == 0x2002:  # 6to4
        found.append(bits >> 80)
    if bits >> 96 == 0x20010000:  # Teredo: the server, and the client with its bits turned over
        found += [bits >> 64, ~bits]
    if bits >> 32 & 0xFDFFFFFF == 0x00005EFE:  # ISATAP
        found.append(bits)
    return [str(ipaddress.IPv4Address(number & 0xFFFFFFFF)) for number in found]


def _within(address: ipaddress.IPv4Address | ipaddress.IPv6Address, networks: tuple[str, ...]) -> bool:
    return any(address in ipaddress.ip_network(network) for network in networks)
