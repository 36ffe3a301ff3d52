"""Which addresses may be contacted, and at which port they really listen.

The rules look at the address that a connection goes to, never at a name, so neither a name that
resolves to a private address nor one that changes its mind between two look-ups gets through.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from barkspider.core.load import parse_network, parse_port_rule
from barkspider.core.settings import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# The special-purpose registries of IANA (RFC 6890), complete, and what else is no place for a crawler. Our own
# list, since the tables of `ipaddress` change from one version of Python to the next.
SPECIAL = {
    "0.0.0.0/8": "this network, and unspecified",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared behind carriers; 100.100.100.200 is the metadata of Alibaba's cloud",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "the host of a machine in Azure, though the address is public",
    "169.254.0.0/16": "link-local; 169.254.169.254 is the metadata of most clouds",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "protocols of the IETF; 192.0.0.192 is the metadata of Oracle's cloud",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112, a sink for reverse look-ups",
    "192.52.193.0/24": "multicast tunnels (AMT)",
    "192.88.99.0/24": "6to4 relays, deprecated",
    "192.168.0.0/16": "private",
    "192.175.48.0/24": "AS112",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved, and broadcast",
    "::/128": "unspecified",
    "::1/128": "loopback",
    "::/96": "IPv4-compatible, deprecated",
    "::ffff:0:0/96": "IPv4-mapped: another way to write an IPv4 address",
    "::ffff:0:0:0/96": "IPv4-translated",
    "64:ff9b:1::/48": "NAT64 for local use",
    "100::/64": "discarded",
    "100:0:0:1::/64": "dummy prefix",
    "2001::/23": "protocols of the IETF: Teredo, benchmarking (2001:2::), ORCHID",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4, deprecated: a tunnel to any IPv4 address",
    "2620:4f:8000::/48": "AS112",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "private; fd00:ec2::254 is the metadata of Amazon's cloud, fd20:ce::254 of Google's",
    "fe80::/10": "link-local",
    "fec0::/10": "site-local, deprecated",
    "ff00::/8": "multicast",
    # Global unicast is 2000::/3; these three are all the rest.
    "::/3": "not assigned",
    "4000::/2": "not assigned",
    "8000::/1": "not assigned",
}
_SPECIAL = [ipaddress.ip_network(text) for text in SPECIAL]
# How hosts with IPv6 alone reach IPv4 (RFC 6052): it stands for the address in its last four bytes.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)  # the third quarter of an address that tunnels to its last (RFC 5214)


class AddressRules:
    """The rules of one crawl. Public addresses need a contact; others must be opened by name.

    >>> rules = AddressRules(Network(allow=("127.0.0.0/8",), ports=("127.0.0.0/8:80=8080",)), contact="")
    >>> rules.refusal("127.0.0.1"), rules.refusal("10.0.0.1"), rules.refusal("192.0.0.1")
    ('', 'refused_address', 'refused_address')
    >>> rules.refusal("8.8.8.8"), rules.port("127.3.4.5", 80), rules.port("127.3.4.5", 443)
    ('no_contact', 8080, 443)
    """

    def __init__(self, network: Network, contact: str, remembered: int = 65_536) -> None:
        """`remembered` are how many verdicts are kept: a crawl meets millions of addresses."""
        self._allowed = [parse_network(text) for text in network.allow]
        self._ports = [parse_port_rule(text) for text in network.ports]
        self._contact = contact
        self.refusal = lru_cache(remembered)(self._refusal)
        self.port = lru_cache(remembered)(self._port)

    def _refusal(self, text: str) -> str:
        """Why an address must not be contacted: refused_address, no_contact, or "" when it may be."""
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return "refused_address"
        if "%" in text:  # a zone names a link of this machine, and no URL or name server can mean that
            return "refused_address"
        if any(address in network for network in self._allowed):
            return ""
        if not is_public(address):
            return "refused_address"
        return "" if self._contact else "no_contact"

    def _port(self, text: str, port: int) -> int:
        """The port to connect to for a port in a URL."""
        address = ipaddress.ip_address(text)
        for network, given, real in self._ports:
            if port == given and address in network:
                return real
        return port


def is_public(address: Address) -> bool:
    """Whether an address, and the one that it tunnels to if any, is one of the open Internet's.

    >>> [is_public(ipaddress.ip_address(text)) for text in ("8.8.8.8", "169.254.169.254", "fec0::1", "224.0.0.1")]
    [True, False, False, False]
    >>> [is_public(ipaddress.ip_address(text)) for text in ("64:ff9b::8.8.8.8", "64:ff9b::127.0.0.1")]
    [True, False]
    """
    if isinstance(address, ipaddress.IPv6Address):
        behind = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if address in _NAT64:
            return is_public(behind)
        if int(address) >> 32 & 0xFFFFFFFF in _ISATAP and not is_public(behind):
            return False
    return not any(address in network for network in _SPECIAL)
