"""Names to addresses, without ever blocking the loop: c-ares through aiodns.

What comes out has passed the address rules; a name with public and private addresses keeps the public
ones only. Nothing is cached here: a frontier keeps an address with its host for as long as it lives.
"""

from __future__ import annotations

from dataclasses import dataclass

import aiodns
import pycares

from barkspider.core.settings import Dns
from barkspider.fetch.addresses import AddressRules
from barkspider.url import is_address

_NO_NAME = {aiodns.error.ARES_ENOTFOUND, aiodns.error.ARES_ENODATA, aiodns.error.ARES_EBADNAME}
_LEAST_TTL, _MOST_TTL = 60.0, 86400.0  # neither ask for every page nor trust for a week
_FOR_LITERALS = 86400.0


@dataclass(frozen=True, slots=True)
class Resolution:
    """Addresses that may be contacted, or the reason why there are none.

    `error` is "" or one of dns_no_name, dns_failure (worth another try), refused_address, no_contact.
    """

    addresses: tuple[str, ...]
    error: str = ""
    ttl: float = _LEAST_TTL


class Resolver:
    """Asks the name servers of the settings, or the system's. Belongs to one loop."""

    def __init__(self, settings: Dns, rules: AddressRules) -> None:
        self._rules = rules
        self._resolver = aiodns.DNSResolver(
            list(settings.servers) or None, timeout=settings.timeout, tries=settings.tries
        )

    async def resolve(self, host: str) -> Resolution:
        """Look a host up: IPv4 first, IPv6 when there is none. Address literals are checked like names."""
        if is_address(host):
            return self._judge([host.strip("[]")], _FOR_LITERALS)
        if host == "localhost" or host.endswith(".localhost"):  # never asked of a name server (RFC 6761)
            return self._judge(["127.0.0.1"], _FOR_LITERALS)
        error = "dns_no_name"
        for kind in ("A", "AAAA"):
            try:
                result = await self._resolver.query_dns(host, kind)
            except aiodns.error.DNSError as failure:
                if failure.args[0] not in _NO_NAME:
                    error = "dns_failure"
                continue
            found = [
                (record.data.addr, record.ttl)
                for record in result.answer
                if isinstance(record.data, pycares.ARecordData | pycares.AAAARecordData)
            ]
            if found:
                return self._judge([address for address, _ in found], min(ttl for _, ttl in found))
        return Resolution((), error)

    async def close(self) -> None:
        """Give up what is under way."""
        await self._resolver.close()

    def _judge(self, addresses: list[str], ttl: float) -> Resolution:
        refusals = {address: self._rules.refusal(address) for address in addresses}
        allowed = tuple(address for address in addresses if not refusals[address])
        error = "" if allowed else refusals[addresses[0]]
        return Resolution(allowed, error, min(max(ttl, _LEAST_TTL), _MOST_TTL))
