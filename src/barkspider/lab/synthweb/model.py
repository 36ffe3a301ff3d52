"""The web in integers: which host a page lies on, and where its links lead.

Pages are numbered 0 to N-1, host after host; a page's place within its host is its *rank*, and rank 0 is
the home page. Every property is drawn by hashing (seed, purpose, number), so nothing is stored but the
sizes of hosts. A page's links, in document order, are

    navigation   the same on every page of the host: its home and a window of its upper pages
    body         children in the host's tree of pages, parent and neighbours, upper pages of the host, the
                 domain's other hosts, other domains by Zipf popularity; on home pages also the children in
                 the tree of hosts and of domains, through which all of the web is reachable from page 0
    footer       the same on every page of the host: partner sites
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from barkspider.lab.synthweb.kernels import int64, kernel, types, uint64

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


class Tables(NamedTuple):
    """All that kernels read. Made by `sites.build`; never written afterwards."""

    seed: int
    pages: int
    domains: int
    links: int
    page_bytes: int
    https_per_million: int
    name_digits: int
    name_offset: int
    first_host: Int32s
    """Domain d has the hosts first_host[d] to first_host[d + 1] - 1."""
    start: Int64s
    """Host h has the pages start[h] to start[h + 1] - 1."""
    domain_of: Int32s
    chars: Bytes
    at: Int32s
    prose: Bytes
    """Running text in three charsets, one after the other."""
    sentences: Int64s
    """Where sentences of `prose` begin: as many for each charset."""


TABLES = types.NamedTuple(
    (
        *(types.int64,) * 8, types.int32[::1], types.int64[::1], types.int32[::1], types.uint8[::1],
        types.int32[::1], types.uint8[::1], types.int64[::1],
    ),
    Tables,
)  # fmt: skip

# What a draw is for, so that draws for different purposes are independent; each has 2,000 numbers of its own.
(
    FOR_HOSTS, FOR_SIZE, FOR_SERVER, FOR_STYLE, FOR_PATH, FOR_ROBOTS, FOR_NAV, FOR_FOOTER, FOR_BODY, FOR_FORM,
    FOR_LENGTH, FOR_NAME, FOR_PROSE, FOR_HAZARD, FOR_DEGREE, FOR_EDITION, FOR_CHANGES,
) = range(0, 34_000, 2_000)  # fmt: skip

# No page has more links: the heavy tail is cut where it stops being a page.
MAX_LINKS = 1_000
# Children of a home in the trees of hosts and of domains: few clicks to any home, few links for it.
FANOUT = 4
# Other domains that the texts of one host link to.
CIRCLE = 20

# Kinds of robots.txt (texts in `robots`), and how many hosts in 100 have each.
(
    NO_ROBOTS, EMPTY, ALLOW_ALL, SECTIONS, OTHER_AGENTS, OWN_GROUP, WILDCARD, ALLOW_WINS, CRAWL_DELAY, BOM, CRLF,
    COMMENTS, NONSENSE, HTML, REDIRECTED, MERGED, TIE,
) = range(17)  # fmt: skip
ROBOTS_SHARES = (28, 6, 14, 14, 6, 4, 5, 4, 2, 2, 3, 3, 2, 2, 2, 2, 1)
_ROBOTS_KINDS = np.repeat(np.arange(17), ROBOTS_SHARES)
# A host that asks for a delay is at most so large, or it alone would decide how long a crawl takes.
MAX_DELAYED = 50
_SECTIONS_PER_SITE = 8

_GOLDEN = uint64(0x9E3779B97F4A7C15)
_MIX_1 = uint64(0xBF58476D1CE4E5B9)
_MIX_2 = uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S11 = uint64(27), uint64(30), uint64(31), uint64(11)


@kernel(types.uint64(types.int64, types.int64, types.int64))
def draw(seed: int, purpose: int, number: int) -> int:
    """A uniform 64-bit number for (seed, purpose, number): SplitMix64's finisher, twice."""
    x = uint64(seed) * _GOLDEN + uint64(purpose) * _MIX_1 + uint64(number)
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    x = (x ^ (x >> _S31)) + _GOLDEN
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    result: int = x ^ (x >> _S31)
    return result


@kernel(types.int64(types.uint64, types.int64))
def below(random: int, limit: int) -> int:
    """A number of 0 to limit - 1 from a draw."""
    result: int = int64(random % uint64(limit))
    return result


@kernel(types.float64(types.uint64))
def unit(random: int) -> float:
    """A number between 0 and 1, neither included, from a draw."""
    return (np.float64(random >> _S11) + 0.5) / 9007199254740992.0


@kernel(types.int64(types.uint64, types.int64))
def popular(random: int, limit: int) -> int:
    """A number of 0 to limit - 1, number n with a chance of about 1/(n + 1): Zipf's law."""
    return min(limit - 1, int(exp(unit(random) * log(limit + 1.0))) - 1)


@kernel(types.int64(TABLES, types.int64))
def host_of(t: Tables, page: int) -> int:
    """The host that a page lies on, by binary search."""
    low, high = 0, t.start.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if t.start[middle] <= page:
            low = middle
        else:
            high = middle
    return low


@kernel(types.int64(TABLES, types.int64, types.int64[::1]))
def nav_links(t: Tables, host: int, out: Int64s) -> int:
    """Writes the host's navigation links to `out` and gives their number."""
    start = t.start[host]
    size = t.start[host + 1] - start
    random = draw(t.seed, FOR_NAV, host)
    # 35% to 85% of the mean number of links: most links of a page are its site's template.
    count: int = min(size, (t.links * (35 + below(random, 51))) // 100)
    out[0] = start
    if size > 1:
        first = below(random >> _S30, min(size - 1, 2 * count + 1))
        for k in range(1, count):
            out[k] = start + 1 + (first + k) % (size - 1)
    return count


@kernel(types.int64(TABLES, types.int64, types.int64[::1]))
def footer_links(t: Tables, host: int, out: Int64s) -> int:
    """Writes the host's footer links to `out` and gives their number."""
    domain = t.domain_of[host]
    count = 0
    if host != t.first_host[domain]:
        out[count] = t.start[t.first_host[domain]]
        count += 1
    partners = below(draw(t.seed, FOR_FOOTER, host), 8)
    for k in range(partners):
        random = draw(t.seed, FOR_FOOTER + 100 + k, host)
        out[count] = t.start[t.first_host[popular(random, t.domains)]]
        count += 1
    return count


@kernel(types.int64(TABLES, types.int64, types.int64, types.int64[::1]))
def body_links(t: Tables, page: int, host: int, out: Int64s) -> int:
    """Writes the links in a page's text to `out` and gives their number."""
    start = t.start[host]
    size = t.start[host + 1] - start
    rank = page - start
    domain = t.domain_of[host]
    first_host = t.first_host[domain]
    hosts = t.first_host[domain + 1] - first_host
    count = 0

    fanout = 2 + below(draw(t.seed, FOR_BODY, host), 2)
    for child in range(rank * fanout + 1, min(rank * fanout + fanout + 1, size)):
        out[count] = start + child
        count += 1
    if rank > 0:
        out[count] = start + (rank - 1) // fanout
        out[count + 1] = page - 1
        out[count + 2] = start + (rank + 1) % size
        count += 3
    else:
        place = host - first_host
        for child in range(place * FANOUT + 1, min(place * FANOUT + FANOUT + 1, hosts)):
            out[count] = t.start[first_host + child]
            count += 1
        if place == 0:
            for child in range(domain * FANOUT + 1, min(domain * FANOUT + FANOUT + 1, t.domains)):
                out[count] = t.start[t.first_host[child]]
                count += 1

    # Upper pages of the host. Pareto with exponent 1.6: the mean is 8/3 of the least number, which
    # with the template makes up the mean of all, and a few pages are lists of hundreds.
    random = draw(t.seed, FOR_DEGREE, page)
    least = t.links * 0.07
    extra = int(least * exp(-log(unit(random)) / 1.6))
    extra = min(extra, 2 * size, MAX_LINKS - 100)
    for k in range(extra):
        # Most go to pages that are well known on the site, one in sixteen to any.
        reach = size if k & 15 == 15 else min(size, 2 * t.links)
        out[count] = start + popular(draw(t.seed, FOR_BODY + 1_000 + k, page), reach)
        count += 1

    random = draw(t.seed, FOR_BODY + 100, page)
    if hosts > 1:
        out[count] = t.start[first_host + popular(random, hosts)]
        count += 1
    outside = below(random >> _S30, t.links // 10 + 1)
    for k in range(outside):
        # A site links to the same few others again and again.
        random = draw(t.seed, FOR_BODY + 400 + k, page)
        other = popular(draw(t.seed, FOR_BODY + 200 + below(random, CIRCLE), host), t.domains)
        random = draw(t.seed, FOR_BODY + 500 + k, page)
        if below(random, 10) < 7:
            out[count] = t.start[t.first_host[other]]
        else:
            deep_host = t.first_host[other] + popular(
                random >> _S11, t.first_host[other + 1] - t.first_host[other]
            )
            deep_size = t.start[deep_host + 1] - t.start[deep_host]
            out[count] = t.start[deep_host] + popular(draw(t.seed, FOR_BODY + 600 + k, page), deep_size)
        count += 1
    return count


@kernel(types.int64(TABLES, types.int64, types.int64[::1]))
def page_links(t: Tables, page: int, out: Int64s) -> int:
    """Writes all links of a page to `out`, in document order, and gives their number."""
    host = host_of(t, page)
    count = nav_links(t, host, out)
    count += body_links(t, page, host, out[count:])
    return count + footer_links(t, host, out[count:])


@kernel(types.int64(TABLES, types.int64))
def robots_kind(t: Tables, host: int) -> int:
    """Which kind of robots.txt a host has."""
    kind: int = _ROBOTS_KINDS[below(draw(t.seed, FOR_ROBOTS, host), 100)]
    if kind == CRAWL_DELAY and t.start[host + 1] - t.start[host] > MAX_DELAYED:
        return SECTIONS
    return kind


@kernel(types.int64(TABLES, types.int64, types.int64))
def section_of(t: Tables, host: int, rank: int) -> int:
    """In which of its host's eight sections a page lies; the home page is in none, -1."""
    if rank == 0:
        return -1
    return below(draw(t.seed, FOR_PATH, t.start[host] + rank), _SECTIONS_PER_SITE)


@kernel(types.int64(TABLES, types.int64))
def closed_section(t: Tables, host: int) -> int:
    """The section that the host's robots.txt is about, where its kind closes one."""
    return below(draw(t.seed, FOR_ROBOTS + 100, host), _SECTIONS_PER_SITE)


@kernel(types.boolean(TABLES, types.int64))
def is_allowed(t: Tables, page: int) -> bool:
    """Whether robots.txt lets `barkspider` fetch a page: known by kind, without reading the text."""
    host = host_of(t, page)
    kind = robots_kind(t, host)
    rank = page - t.start[host]
    if rank == 0 or kind in (NO_ROBOTS, EMPTY, ALLOW_ALL, CRAWL_DELAY, HTML, TIE):
        return True
    if kind == WILDCARD:
        return bool(rank % 10 != 7)
    section = section_of(t, host, rank)
    closed = closed_section(t, host)
    if kind == ALLOW_WINS:
        return bool(section != closed or rank % 10 == 3)
    if kind == MERGED:
        return section not in (closed, (closed + 1) % _SECTIONS_PER_SITE)
    return section != closed
