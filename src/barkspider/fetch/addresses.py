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

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # the well-known prefix (RFC 6052)


class AddressRules:
    """The rules of one crawl. Public addresses need a contact; others must be opened by name.

    >>> rules = AddressRules(Network(allow=("127.0.0.0/8",), ports=("127.0.0.0/8:80=8080",)), contact="")
    >>> rules.refusal("127.0.0.1"), rules.refusal("10.0.0.1"), rules.refusal("192.0.0.1")
    ('', 'refused_address', 'refused_address')
    >>> rules.refusal("8.8.8.8"), rules.port("127.3.4.5", 80), rules.port("127.3.4.5", 443)
    ('no_contact', 8080, 443)
    """

    def __init__(self, network: Network, contact: str) -> None:
        self._allowed = [parse_network(text) for text in network.allow]
        self._ports = [parse_port_rule(text) for text in network.ports]
        self._contact = contact
        # Bounded: a crawl meets millions of addresses.
        self.refusal = lru_cache(maxsize=65536)(self._refusal)
        self.port = lru_cache(maxsize=65536)(self._port)

    def _refusal(self, text: str) -> str:
        """Why an address must not be contacted: refused_address, no_contact, or "" when it may be."""
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return "refused_address"
        if any(address in network for network in self._allowed):
            return ""
        behind = embedded(address)
        forms = behind if address in _NAT64 else [address, *behind]  # NAT64 only stands for another address
        if not all(map(is_public, forms)):
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
    """Whether an address is one of the open Internet's.

    >>> [is_public(ipaddress.ip_address(text)) for text in ("8.8.8.8", "169.254.169.254", "fec0::1", "224.0.0.1")]
    [True, False, False, False]
    """
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def embedded(address: Address) -> list[Address]:
    """The IPv4 addresses that an IPv6 address stands for: mapped, 6to4, Teredo, NAT64.

    >>> embedded(ipaddress.ip_address("64:ff9b::7f00:1"))
    [IPv4Address('127.0.0.1')]
    """
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found: list[Address] = [form for form in (address.ipv4_mapped, address.sixtofour) if form is not None]
    found += address.teredo or ()
    if address in _NAT64:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return found
