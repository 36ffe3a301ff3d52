"""From a description of a web to the tables that its kernels read."""

from __future__ import annotations

import numpy as np

from barkspider.lab.synthweb import prose
from barkspider.lab.synthweb.kernels import kernel, types
from barkspider.lab.synthweb.model import FOR_HOSTS, FOR_NAME, FOR_SIZE, Int32s, Int64s, Tables, draw, unit
from barkspider.lab.synthweb.names import Strings, name_digits
from barkspider.lab.synthweb.render import SNIPPET_TEXTS
from barkspider.lab.synthweb.spec import WebSpec
from barkspider.lab.synthweb.text import STRINGS

# Names that hazards owned when this was first counted. Those that came later are left out: a web near the limit
# would change all its names, and there is room for them.
_NAMES_COUNTED = 224


def build(spec: WebSpec) -> Tables:
    """The tables of a web: about 16 bytes a host; 1.5 million hosts for a billion pages.

    >>> tables = build(WebSpec(pages=1_000))
    >>> int(tables.start[-1])
    1000
    """
    digits = name_digits(spec.domains + _NAMES_COUNTED)
    first_host = np.zeros(spec.domains + 1, np.int32)
    # At least half of the pages are left over after each host has its home page.
    _count_hosts(spec.seed, max(1, spec.pages // (2 * spec.domains)), first_host)
    hosts = int(first_host[-1])
    weights = np.zeros(hosts, np.int64)
    domain_of = np.zeros(hosts, np.int32)
    _weigh_hosts(spec.seed, first_host, weights, domain_of)
    shares = np.zeros(hosts + 1, np.int64)
    np.cumsum(weights, out=shares[1:])
    spare = (shares * ((spec.pages - hosts) / shares[-1])).astype(np.int64)
    spare[-1] = spec.pages - hosts
    start = spare + np.arange(hosts + 1)
    strings = Strings(STRINGS + SNIPPET_TEXTS)
    text, sentences = prose.build(spec.seed)
    return Tables(
        seed=spec.seed,
        pages=spec.pages,
        domains=spec.domains,
        links=spec.links_per_page,
        page_bytes=spec.page_bytes,
        https_per_million=round(spec.https_share * 1_000_000),
        name_digits=digits,
        name_offset=draw(spec.seed, FOR_NAME, 0) % 100**digits,
        first_host=first_host,
        start=start,
        domain_of=domain_of,
        chars=strings.chars,
        at=strings.at,
        prose=text,
        sentences=sentences,
    )


@kernel(types.void(types.int64, types.int64, types.int32[::1]))
def _count_hosts(seed: int, most: int, first_host: Int32s) -> None:
    # Hosts per domain: seven in ten have one, the mean is two, a few have hundreds (Pareto, exponent 1.4).
    for domain in range(first_host.size - 1):
        random = unit(draw(seed, FOR_HOSTS, domain))
        count = int(0.3 + 0.7 * random**-0.7)
        first_host[domain + 1] = first_host[domain] + max(1, min(count, most, 500))


@kernel(types.void(types.int64, types.int32[::1], types.int64[::1], types.int32[::1]))
def _weigh_hosts(seed: int, first_host: Int32s, weights: Int64s, domain_of: Int32s) -> None:
    # Popular domains are larger (exponent 0.6: 464 domains share a web with 4% for the largest), and hosts
    # of one domain differ by a Pareto factor (exponent 1.6). Whole numbers, so that rounding in the last
    # place of a power cannot move a page on another machine.
    for domain in range(first_host.size - 1):
        base = 1e6 * (domain + 1.0) ** -0.6
        for host in range(first_host[domain], first_host[domain + 1]):
            random = unit(draw(seed, FOR_SIZE, host))
            factor = min(200.0, random**-0.625)
            if host > first_host[domain]:
                factor *= 0.4  # the main host is usually the largest
            weights[host] = int(base * factor) + 1
            domain_of[host] = domain
