"""How good a page is, by the three measures of figure 9 of Castillo et al.: PageRank, in-degree, home page."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barkspider.graph.build import build_graph
from barkspider.graph.importing import edges_of
from barkspider.graph.methods import pagerank
from barkspider.lab.webgraph import WebGraph
from barkspider.storage.env import Env

MEASURES = ("pagerank", "in_degree", "home_pages")
_LEAST_SITE = 10  # pages
_PATH = r"^(?:[A-Za-z][\w+.-]*://)?[^/?#]*(?P<path>(?s:.*))"


def scores(web: WebGraph) -> dict[str, npt.NDArray[np.float64]]:
    """What each page is worth by each measure.

    >>> urls = ["http://a.example/", "http://a.example/x", "http://b.example"]
    >>> found = scores(WebGraph.of([[1, 2], [0, 2], [0]], urls=urls))
    >>> found["in_degree"].tolist(), found["home_pages"].tolist(), int(found["pagerank"].argmax())
    ([2.0, 1.0, 2.0], [1.0, 0.0, 1.0], 0)
    """
    with tempfile.TemporaryDirectory(prefix="barkspider-simulate-") as folder:
        ranks = pagerank(
            build_graph(Env(), Path(folder), edges_of(web.indptr, web.indices), nodes=web.nodes)
        ).scores
    degrees = np.bincount(web.indices, minlength=web.nodes)
    homes = home_pages(web, degrees)
    return dict(zip(MEASURES, (ranks, degrees.astype(float), homes.astype(float)), strict=True))


def home_pages(web: WebGraph, degrees: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which pages are home pages: those at the root of a host; without URLs, of each site with 10 pages or more
    the one of the highest in-degree. Smaller sites of a graph without URLs are mostly no sites but pages that
    lie apart.

    >>> web = WebGraph.of([[]] * 12, site=[0] * 11 + [1])
    >>> np.flatnonzero(home_pages(web, np.arange(12) % 7)).tolist()
    [6]
    """
    if web.urls is not None:
        path = pc.struct_field(pc.extract_regex(web.urls, _PATH), "path")
        return np.asarray(pc.is_in(path, pa.array(["", "/"])).to_numpy(zero_copy_only=False))
    by_site = np.lexsort((-degrees, web.site))
    begins = np.flatnonzero(np.diff(web.site[by_site], prepend=-1))
    homes = np.zeros(web.nodes, np.bool_)
    homes[by_site[begins[np.bincount(web.site) >= _LEAST_SITE]]] = True
    return homes


def directory_depths(urls: pa.StringArray) -> npt.NDArray[np.int32]:
    """How many directories deep a page lies: 0 for what is in the root of its host.

    >>> directory_depths(pa.array(["http://a.example", "http://a.example/x?y=/z", "http://a.example/x/y/z"])).tolist()
    [0, 0, 2]
    """
    path = pc.struct_field(pc.extract_regex(urls, _PATH), "path")
    directory = pc.replace_substring_regex(path, "[?#].*", "")
    return np.asarray(pc.max_element_wise(pc.subtract(pc.count_substring(directory, "/"), 1), 0).to_numpy())
