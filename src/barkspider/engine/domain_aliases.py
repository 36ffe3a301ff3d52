"""Which domains of a job only redirect to another, by its tables; of a running crawl `frontier.budget.domain_redirects`
knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barkspider.graph.aliases import Aliases
from barkspider.url import Domains, landing, split

PAGES = ["url", "url_host_registered_domain", "fetch_status", "fetch_redirect", "outcome"]
ERRORS = ["url_host_name", "outcome"]
_REJECTED = "rejected_"  # begins the outcome of a page that was there and not kept
_NOWHERE = ""


def domain_aliases(
    pages: Iterable[pa.RecordBatch], errors: Iterable[pa.RecordBatch], domains: Domains
) -> dict[str, str]:
    """Domains all of whose pages redirect to one other, and to which, from the columns of two tables.

    Redirects within a domain and failures say nothing; chains are followed to their ends.
    """
    leads: dict[str, str] = {}
    for batch in errors:
        hosts = batch.filter(pc.starts_with(batch["outcome"], _REJECTED))["url_host_name"].unique()
        leads |= {domains.pay_level(host): _NOWHERE for host in hosts.to_pylist()}
    for batch in pages:
        status = batch["fetch_status"]
        answered = pc.and_(pc.greater_equal(status, 200), pc.less(status, 300))
        there = batch.filter(pc.or_(answered, pc.equal(batch["outcome"], "unchanged")))
        leads |= dict.fromkeys(there["url_host_registered_domain"].unique().to_pylist(), _NOWHERE)
        led = batch.filter(pc.is_valid(batch["fetch_redirect"]))
        for row in led.to_pylist():
            domain, place = row["url_host_registered_domain"], landing(row["fetch_redirect"], row["url"])
            target = domains.pay_level(split(place).host) if place else domain
            if target != domain and leads.setdefault(domain, target) != target:
                leads[domain] = _NOWHERE
    return _resolved({domain: target for domain, target in leads.items() if target != _NOWHERE})


def renamed(column: pa.Array, names: Mapping[str, str]) -> pa.Array:
    """A column of names, some of which are replaced.

    >>> renamed(pa.array(["a", "b", "a"]), {"a": "c"}).to_pylist()
    ['c', 'b', 'c']
    """
    encoded = column.dictionary_encode()
    new = [names.get(name, name) for name in encoded.dictionary.to_pylist()]
    return pa.array(new, column.type).take(encoded.indices)


def _resolved(leads: dict[str, str]) -> dict[str, str]:
    names = sorted({*leads, *leads.values()})
    numbers = {name: number for number, name in enumerate(names)}
    keys = sorted(leads)  # in the order of their numbers
    aliases = Aliases.resolved(
        np.array([numbers[key] for key in keys], np.uint64),
        np.array([numbers[leads[key]] for key in keys], np.uint64),
    )
    pairs = zip(aliases.keys.tolist(), aliases.targets.tolist(), strict=True)
    return {names[key]: names[target] for key, target in pairs}
