"""A small web for parallel crawls: sites of equal size, links mostly within them, a few pages that all link to."""

from __future__ import annotations

import numpy as np

from barkspider.lab.webgraph import WebGraph

SITES, PAGES, LINKS = 250, 40, 10


def small_web(outside: float = 0.2, seed: int = 7) -> WebGraph:
    """10,000 pages with 10 links each; a share of them lead to other sites, to pages popular by Zipf's law."""
    random = np.random.default_rng(seed)
    nodes = SITES * PAGES
    source = np.repeat(np.arange(nodes), LINKS)
    near = source // PAGES * PAGES + random.integers(0, PAGES, len(source))
    popular = random.permutation(nodes)[np.minimum(random.zipf(1.4, len(source)) - 1, nodes - 1)]
    target = np.where(random.random(len(source)) < outside, popular, near)
    return WebGraph(
        np.arange(nodes + 1, dtype=np.int64) * LINKS,
        target.astype(np.int32),
        (np.arange(nodes) // PAGES).astype(np.int32),
    )


def between_sites(web: WebGraph) -> float:
    """The share of links that lead to another site."""
    return float((np.repeat(web.site, np.diff(web.indptr)) != web.site[web.indices]).mean())
