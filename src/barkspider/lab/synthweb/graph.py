"""A part of the web as a graph file, or all its domains: for simulators and ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from barkspider.core.errors import UsageError
from barkspider.lab.synthweb.hazards import LinkExchange
from barkspider.lab.synthweb.model import Int64s
from barkspider.lab.synthweb.reach import LINK_SPACE, domain_links, explore, inner_links
from barkspider.lab.synthweb.text import MAX_URL, write_urls
from barkspider.lab.synthweb.web import Web

# Links and URLs made at a time: 64 MB and 50 MB.
_LINKS_AT_A_TIME = 1 << 24
_URLS_AT_A_TIME = 200_000


def write_graph(
    web: Web,
    graph: Path,
    urls: Path,
    limit: int | None = None,
    seeds: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[int, int]:
    """Writes the first `limit` pages of a breadth-first crawl that obeys robots.txt, and their links.

    `graph` is an npz file with `indptr` (int64) and `indices` (int32): page n, whose URL is line n of `urls`,
    links to the pages indices[indptr[n]:indptr[n + 1]]. Only links within the subset, each target once a
    page, in the order of the page, none to itself. Gives the numbers of pages and links. Costs about 500
    bytes of memory a page.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pages, links = write_graph(Web(), Path(folder) / "web.npz", Path(folder) / "web.txt", limit=100)
    >>> pages
    100
    """
    most = web.spec.pages if limit is None else min(limit, web.spec.pages)
    if not 1 <= most < 2**31 - 1:
        raise UsageError(f"a graph file holds 1 to {2**31 - 2:,} pages, not {most:,}; set a limit")
    first = np.array([web.page_id(url) for url in web.seeds(seeds)], np.int64)
    order, keys, values = explore(web.tables, first, -1, most, True)
    pages = len(order)
    indptr = np.zeros(pages + 1, np.int64)
    last = np.full(pages, -1, np.int32)
    buffer = np.empty(max(LINK_SPACE, min(_LINKS_AT_A_TIME, pages * LINK_SPACE)), np.int32)
    parts = []
    node = 0
    while node < pages:
        node, written = inner_links(web.tables, order, keys, values, node, indptr, last, buffer)
        parts.append(buffer[:written].copy())
        progress(node)
    with graph.open("wb") as file:
        np.savez(file, indptr=indptr, indices=np.concatenate(parts))
    out = np.empty(min(pages, _URLS_AT_A_TIME) * (MAX_URL + 1), np.uint8)
    with urls.open("wb") as file:
        for begin in range(0, pages, _URLS_AT_A_TIME):
            file.write(out[: write_urls(web.tables, order[begin : begin + _URLS_AT_A_TIME], out)].data)
    return pages, int(indptr[-1])


def domain_edges(web: Web) -> Iterator[tuple[Int64s, Int64s]]:
    """Batches of links between domains, of all pages of the web, whoever may fetch them; none twice.

    Regular domains have their numbers, in order of popularity; the members of the link exchange come next, if
    the web has it. Other hazards are left out. A million pages take about 1.3 seconds.

    >>> from barkspider.lab.synthweb import WebSpec
    >>> web = Web(WebSpec(pages=1_000, hazards=frozenset({"link_exchange"})))
    >>> max(int(targets.max()) for _, targets in domain_edges(web)) - web.spec.domains
    299
    """
    domains = web.spec.domains
    last = np.full(domains, -1, np.int64)
    room = max(domains, min(_LINKS_AT_A_TIME // 4, domains * domains))
    sources, targets = np.empty(room, np.int64), np.empty(room, np.int64)
    domain = 0
    while domain < domains:
        domain, written = domain_links(web.tables, domain, last, sources, targets)
        yield sources[:written].copy(), targets[:written].copy()
    exchange = _exchange(web)
    if exchange is not None:
        bought = [
            (domain, domains + member) for domain in range(domains) for member in exchange.buyers(domain)
        ]
        among = [
            (domains + member, domains + other)
            for member in range(exchange.domains)
            for page in range(exchange.pages)
            for other in exchange.partners(member, page)
        ]
        pairs = np.array(bought + among)
        yield pairs[:, 0], pairs[:, 1]


def write_domain_graph(web: Web, graph: Path, names: Path, spam: Path) -> tuple[int, int]:
    """Writes `domain_edges` in the form of `write_graph`, and the names of domains in place of URLs.

    Those of the link exchange also go to `spam`, if the web has it. Gives the numbers of domains and links.
    """
    sources, targets = (np.concatenate(parts) for parts in zip(*domain_edges(web), strict=True))
    exchange = _exchange(web)
    members = [] if exchange is None else exchange.names
    called = [web.domain_name(domain) for domain in range(web.spec.domains)] + members
    order = np.argsort(sources, kind="stable")
    indptr = np.searchsorted(sources[order], np.arange(len(called) + 1))
    with graph.open("wb") as file:
        np.savez(file, indptr=indptr, indices=targets[order].astype(np.int32))
    names.write_text("".join(f"{name}\n" for name in called))
    if members:
        spam.write_text("".join(f"{name}\n" for name in members))
    return len(called), len(targets)


def _exchange(web: Web) -> LinkExchange | None:
    found = web.hazards.get(LinkExchange.name)
    return found if isinstance(found, LinkExchange) else None
