"""A part of the web as a graph file, for simulators and ranking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from barkspider.core.errors import UsageError
from barkspider.synthweb.reach import LINK_SPACE, explore, inner_links
from barkspider.synthweb.text import MAX_URL, write_urls
from barkspider.synthweb.web import Web

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
