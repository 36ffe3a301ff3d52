"""Pay-level domains: the part of a host name that somebody pays a registrar for.

Only the ICANN section of the public suffix list counts unless asked otherwise, so that all of blogspot.com is one domain, as in
IRLbot's Table 4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from barkspider.url.suffixes import registered

# A name and its domain take about 250 bytes, so that a full cache stays near 16 MB.
_REMEMBERED = 65_536


def is_address(host: str) -> bool:
    """Whether a canonical host is an IP address; the WHATWG parser leaves no other all-digit ending.

    >>> is_address("127.0.0.1"), is_address("[::1]"), is_address("a1.example2")
    (True, True, False)
    """
    return host.startswith("[") or host.rstrip(".").rpartition(".")[2].isdigit()


class Domains:
    """Finds pay-level domains; remembers the most recent names.

    `pay_level(host)` gives the domain of a canonical host name without a final dot. What has none is its
    own domain: addresses, single labels, public suffixes themselves.

    >>> domains = Domains()
    >>> domains.pay_level("www.det.wa.edu.au"), domains.pay_level("a.blogspot.com")
    ('det.wa.edu.au', 'blogspot.com')
    >>> domains.pay_level("127.0.0.1"), domains.pay_level("localhost"), domains.pay_level("co.uk")
    ('127.0.0.1', 'localhost', 'co.uk')
    >>> Domains(private=True).pay_level("www.a.blogspot.com")
    'a.blogspot.com'
    """

    pay_level: Callable[[str], str]

    def __init__(self, private: bool = False, remembered: int = _REMEMBERED) -> None:
        self._private = private
        # The cache itself is the method: one Python call less for each link of each page.
        self.pay_level = lru_cache(remembered)(self._pay_level)

    def is_registered(self, host: str) -> bool:
        """Whether the host is itself a name under a public suffix: example.com, not co.uk or 10.0.0.1.

        >>> domains = Domains()
        >>> [domains.is_registered(host) for host in ("example.com", "www.example.com", "co.uk", "10.0.0.1")]
        [True, False, False, False]
        """
        return not is_address(host) and registered(host, self._private) == host

    def _pay_level(self, host: str) -> str:
        if is_address(host):
            return host
        name = host.rstrip(".")
        return registered(name, self._private) or name or host
