"""Domains whose DNS has an answer for any name (Viúva Negra, sections 2.1 and 4.5): names are free there, and so are hosts.

    a host is looked up ─ the first of its top-level domain ─► probed: an absurd name below it is asked for ─► its addresses are barred
                        └ many of its domain ─► probed ─► at those addresses its hosts share one pause, and a bound; others do not

It is no ban: blogspot.com has such names and thousands of sites. The budget of a pay-level domain is one in any case. What was
probed is a record of the journal; of look-ups, which are none, a restart forgets those since the last checkpoint.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from barkspider.core.events import DomainProbed, ProbeDomain
from barkspider.url import KeyMaker, is_address

_UNUSUAL = 16  # hosts of a domain that were looked up, when it is probed; and again at eight times as many
_AGAIN = 8
_DOMAINS, _REFUSED = 10_000, 100_000  # domains whose hosts are counted, hosts that are refused: the latest
WILDCARD_HOSTS, WILDCARD_TLD, PROBING = "wildcard_hosts", "wildcard_tld", "probing"


class _Domain:
    """Hosts of a domain that were looked up: how many, at how many it is probed, and where the first ones are."""

    __slots__ = ("count", "hosts", "probed_at")

    def __init__(self, count: int = 0, probed_at: int = _UNUSUAL) -> None:
        self.count, self.probed_at = count, probed_at
        self.hosts: dict[int, str] = {}


class Wildcards:
    """See the module. Part of `Ready`, in its thread; `most` is the bound of hosts.

    >>> wildcards = Wildcards(seed=1, most=2)
    >>> wildcards.probed(DomainProbed(ProbeDomain("x.example", "example", 0), ()))
    >>> domain = KeyMaker(1).of("w.example")
    >>> for host in range(16):
    ...     assert not wildcards.located(host, domain, f"h{host}.w.example", "192.0.2.1")
    >>> (probe,) = wildcards.probes(); probe.domain
    'w.example'
    >>> wildcards.probed(DomainProbed(probe, ("192.0.2.1",)))
    >>> [wildcards.refusal(host) for host in (0, 1, 2)]
    ['', '', 'wildcard_hosts']
    >>> wildcards.located(99, domain, "blog.w.example", "192.0.2.7")
    ''
    """

    def __init__(self, seed: int, most: int) -> None:
        self._keys, self._most = KeyMaker(seed), most
        self._domains = OrderedDict[int, _Domain]()
        self._due: list[ProbeDomain] = []
        self._asked: set[str] = set()  # names that are being probed
        self._tops: dict[str, tuple[str, ...]] = {}  # top-level domains that were probed, and their addresses
        self._barred: frozenset[str] = frozenset()
        self._wild: dict[int, tuple[str, ...]] = {}  # domains that have an answer for any name, and which
        self._members: dict[int, set[int]] = {}  # hosts of these at those addresses
        self._member_of: dict[int, int] = {}
        self._free: dict[int, float] = {}  # when the next request may go to any of them
        self._refused = OrderedDict[int, str]()
        self._told: list[tuple[str, dict[str, Any]]] = []

    # ── names that were looked up ──────────────────────────────────────────────────────────────

    def located(self, host: int, domain: int, name: str, address: str) -> str:
        """A host was found at an address: `PROBING` if it is to be looked up again in a moment, "" if it may be contacted, or the
        rule by which it is refused."""
        if is_address(name) or "." not in name:
            return ""
        top = name.rpartition(".")[2]
        if top not in self._tops:
            self._probe(top, 0)
            return PROBING
        if address in self._barred:
            return self._refuse(host, WILDCARD_TLD)
        if domain in self._wild:
            return self._join(host, domain) if address in self._wild[domain] else ""
        known = self._domains.pop(domain, None) or _Domain()
        self._domains[domain] = known
        if len(self._domains) > _DOMAINS:
            self._domains.popitem(last=False)
        if host not in known.hosts:
            known.count += 1
            if len(known.hosts) < max(_UNUSUAL, self._most):
                known.hosts[host] = address
        if known.count >= known.probed_at:
            self._probe(self._name_of(domain, name), domain)
        return ""

    def visited(self, host: int, domain: int, address: str) -> None:
        """A host was contacted at an address in an earlier run, so it was one of those that may be."""
        if address in self._wild.get(domain, ()):
            self._members.setdefault(domain, set()).add(host)
            self._member_of[host] = domain

    def refusal(self, host: int) -> str:
        """The rule by which URLs of a host are refused, or ""."""
        return self._refused.get(host, "")

    def _join(self, host: int, domain: int) -> str:
        members = self._members.setdefault(domain, set())
        if host not in members and len(members) >= self._most:
            return self._refuse(host, WILDCARD_HOSTS)
        members.add(host)
        self._member_of[host] = domain
        return ""

    def _refuse(self, host: int, rule: str) -> str:
        self._refused[host] = rule
        if len(self._refused) > _REFUSED:
            self._refused.popitem(last=False)
        return rule

    def _name_of(self, domain: int, host: str) -> str:
        """The name of a domain by its key and a host of it."""
        while host and self._keys.of(host) != domain:
            host = host.partition(".")[2]
        return host

    # ── one pause ──────────────────────────────────────────────────────────────────────────────

    def free_at(self, host: int) -> float:
        """When a host may be contacted as far as the others of its domain go."""
        return self._free.get(self._member_of.get(host, 0), -math.inf)

    def keep_free(self, host: int, until: float) -> None:
        """Somebody of a host's domain is contacted, or was: the others wait until then."""
        domain = self._member_of.get(host)
        if domain is not None:
            self._free[domain] = max(until, self._free.get(domain, -math.inf))

    # ── probes ─────────────────────────────────────────────────────────────────────────────────

    def _probe(self, domain: str, key: int) -> None:
        if domain and domain not in self._asked:
            self._asked.add(domain)
            label = f"{self._keys.of(f'nobody has {domain}'):016x}"
            self._due.append(ProbeDomain(f"{label}.{domain}", domain, key))

    def probes(self) -> Sequence[ProbeDomain]:
        """What is to be asked for, each once."""
        due, self._due = self._due, []
        return due

    def probed(self, outcome: DomainProbed) -> None:
        """An absurd name has addresses, or none."""
        name, domain, found = outcome.asked.domain, outcome.asked.host_key, outcome.addresses
        self._asked.discard(name)
        if found:
            self._told.append(("wildcard", {"domain": name, "addresses": list(found)}))
        if "." not in name:
            self._tops[name] = found
            self._barred = frozenset(address for each in self._tops.values() for address in each)
            return
        known = self._domains.setdefault(domain, _Domain())
        if not found:
            known.probed_at = _AGAIN * max(known.count, known.probed_at)
            return
        del self._domains[domain]
        self._wild[domain] = found
        for host, address in known.hosts.items():
            if address in found:
                self._join(host, domain)

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """What was found since the last call."""
        told, self._told = self._told, []
        return told

    # ── what a checkpoint keeps ────────────────────────────────────────────────────────────────

    def save(self) -> dict[str, Any]:
        """All that was found, for JSON."""
        return {
            "tops": dict(self._tops),
            "wild": [
                [key, addresses, sorted(self._members.get(key, ()))] for key, addresses in self._wild.items()
            ],
            "refused": list(self._refused.items()),
            "domains": [
                [key, each.count, each.probed_at, list(each.hosts.items())]
                for key, each in self._domains.items()
            ],
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Take what `save` gave; of another process, too."""
        self._tops |= {name: tuple(addresses) for name, addresses in saved.get("tops", {}).items()}
        self._barred = frozenset(address for each in self._tops.values() for address in each)
        for key, addresses, members in saved.get("wild", ()):
            self._wild[key] = tuple(addresses)
            for host in members:
                self._join(host, key)
        self._refused.update(dict(saved.get("refused", ())))
        for key, count, probed_at, hosts in saved.get("domains", ()):
            known = self._domains[key] = _Domain(count, probed_at)
            known.hosts.update(dict(hosts))
