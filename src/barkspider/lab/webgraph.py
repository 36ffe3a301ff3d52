"""A stored web for simulations: who links to whom, and which site each page belongs to.

Sites come from, in this order: an array `site` in the file; the hosts of the pages' URLs; the order of the
nodes. The last is for graphs that were sorted by URL and lost their URLs, where a site is a range of nodes
(`linked_ranges`).
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barkspider.core.errors import UsageError
from barkspider.graph.importing import read_graph, read_npz
from barkspider.storage.env import Env

_MOST_NODES = 2**31 - 1
# The length of a link that still counts as one within a site. On cnr-2000 it leaves 6% of the links between
# sites, on the pages of Parallel Crawlers (section 5.1) one in ten; with 100 it were 44%, with 10,000 1%.
_NEAR = 1000
_NEWLINE, _RETURN = 10, 13


@dataclass(frozen=True)
class WebGraph:
    """Pages and links in compressed sparse rows. Immutable: its arrays are read-only. Any thread.

    Page v links to indices[indptr[v] : indptr[v + 1]], in the order of the file, and belongs to site[v],
    a number from 0 to `sites` - 1.

    >>> web = WebGraph.of([[1, 2], [0], [2]], site=[0, 0, 1])
    >>> web.nodes, web.arcs, web.sites, web.links(0).tolist()
    (3, 4, 2, [1, 2])
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    site: npt.NDArray[np.int32]
    urls: pa.StringArray | None = None

    def __post_init__(self) -> None:
        for array in (self.indptr, self.indices, self.site):
            array.flags.writeable = False

    @classmethod
    def of(
        cls, links: list[list[int]], site: list[int] | None = None, urls: list[str] | None = None
    ) -> WebGraph:
        """A small web, written out: the links of each page."""
        indptr = np.cumsum([0, *map(len, links)], dtype=np.int64)
        indices = np.array([target for targets in links for target in targets], np.int32)
        texts = None if urls is None else pa.array(urls, pa.string())
        return cls(indptr, indices, _sites(indptr, indices, site, texts, "auto"), texts)

    @property
    def nodes(self) -> int:
        """How many pages there are."""
        return len(self.indptr) - 1

    @property
    def arcs(self) -> int:
        """How many links there are."""
        return len(self.indices)

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return int(self.site.max()) + 1

    def first(self, count: int) -> WebGraph:
        """Its first pages, at most `count`, with the links among them.

        >>> WebGraph.of([[1, 2], [0], [2]], site=[4, 4, 9]).first(2).links(0).tolist()
        [1]
        """
        if count >= self.nodes:
            return self
        targets = self.indices[: self.indptr[count]]
        inside = targets < count
        indptr = np.concatenate([[0], np.cumsum(inside)])[self.indptr[: count + 1]]
        urls = None if self.urls is None else self.urls.slice(0, count)
        return WebGraph(indptr, targets[inside], _numbered(self.site[:count]), urls)

    def links(self, node: int) -> npt.NDArray[np.int32]:
        """The pages that a page links to."""
        return self.indices[self.indptr[node] : self.indptr[node + 1]]


def load_web(path: Path, *, sites: str = "auto") -> WebGraph:
    """The web in a file: npz with `indptr` and `indices`, or any other form that `graph.importing` reads.

    An npz file may have arrays `site` (a number a node) and `url` (a text a node) too; otherwise the lines of
    `NAME.names.txt` beside `NAME.npz` are the URLs. `sites` is auto, as the module says, or a number: then
    every so many nodes in a row are a site.
    """
    if path.suffix != ".npz":
        return _load_other(path, sites)
    if not path.is_file():
        raise UsageError(f"cannot read {path}: no such file")
    try:
        indptr, targets = read_npz(path)
        nodes = _checked(len(indptr) - 1)
        with np.load(path, allow_pickle=False) as data:
            site = _site_array(data["site"], nodes) if "site" in data else None
            urls = _url_array(data["url"], nodes) if "url" in data else None
        names = path.with_suffix(".names.txt")
        if urls is None and names.is_file():
            urls = _read_lines(names, nodes)
        indices = np.ascontiguousarray(targets, np.int32)
        return WebGraph(indptr, indices, _sites(indptr, indices, site, urls, sites), urls)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except ValueError as error:
        raise UsageError(f"{path}: its arrays site and url cannot be read: {error}") from None


def store_web(web: WebGraph, path: Path) -> None:
    """Write a web as a file that `load_web` reads."""
    named: dict[str, Any] = {} if web.urls is None else {"url": np.array(web.urls.to_pylist(), np.str_)}
    with path.open("wb") as file:
        np.savez(file, indptr=web.indptr, indices=web.indices, site=web.site, **named)


def linked_ranges(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], near: int = _NEAR
) -> npt.NDArray[np.int32]:
    """Sites of a graph that was sorted by URL: the ranges of nodes that short links hold together.

    Two nodes in a row are of different sites if no link with a length of at most `near` leads across the gap
    between them, from a lower number to a higher one or back: pages of a site link to each other and to its
    home page, which is the first of them, and sites of similar name have little to do with each other. Whole
    numbers only, so it gives the same everywhere. O(nodes + arcs).

    >>> linked_ranges(np.array([0, 1, 2, 2, 4, 4]), np.array([1, 0, 4, 0], np.int32), near=2).tolist()
    [0, 0, 1, 2, 2]
    """
    nodes = len(indptr) - 1
    spans = np.zeros(nodes + 1, np.int64)  # at a node: short links that begin there minus those that end
    step = 1 << 22
    for begin in range(0, len(indices), step):
        targets = indices[begin : begin + step].astype(np.int64)
        places = np.arange(begin, begin + len(targets))
        sources = np.searchsorted(indptr, places, "right") - 1
        short = np.abs(sources - targets) <= near
        low, high = np.minimum(sources, targets)[short], np.maximum(sources, targets)[short]
        spans += np.bincount(low, minlength=nodes + 1) - np.bincount(high, minlength=nodes + 1)
    across = np.cumsum(spans)[: nodes - 1]
    site = np.zeros(nodes, np.int32)
    np.cumsum(across == 0, out=site[1:])
    return site


def _sites(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], given: Any, urls: Any, rule: str
) -> npt.NDArray[np.int32]:
    if re.fullmatch(r"[1-9]\d{0,9}", rule):
        return (np.arange(len(indptr) - 1) // int(rule)).astype(np.int32)
    if rule != "auto":
        raise UsageError(f"sites are {rule!r}; give auto, or how many nodes in a row are a site")
    if given is not None:
        return _numbered(np.asarray(given))
    if urls is not None:
        hosts = pc.struct_field(pc.extract_regex(urls, r"^(?:[A-Za-z][\w+.-]*://)?(?P<host>[^/?#]*)"), "host")
        return _numbered(pc.utf8_lower(hosts).dictionary_encode().indices.to_numpy())
    return linked_ranges(indptr, indices)


def _numbered(values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    return np.unique(values, return_inverse=True)[1].astype(np.int32)


def _checked(nodes: int) -> int:
    if nodes > _MOST_NODES:
        raise UsageError(f"{nodes:,} nodes are more than a simulation holds ({_MOST_NODES:,})")
    return nodes


def _site_array(array: npt.NDArray[Any], nodes: int) -> npt.NDArray[Any]:
    if array.shape != (nodes,) or array.dtype.kind not in "iu" or int(array.min()) < 0:
        raise UsageError(f"site is not a number of 0 or more for each of {nodes:,} nodes")
    return array


def _url_array(array: npt.NDArray[Any], nodes: int) -> pa.StringArray:
    if array.shape != (nodes,) or array.dtype.kind not in "SU":
        raise UsageError(f"url is not a text for each of {nodes:,} nodes")
    return _text(pa.array(array), "url")


def _read_lines(path: Path, count: int) -> pa.StringArray:
    data = np.fromfile(path, np.uint8)
    data = data[data != _RETURN]
    if len(data) and data[-1] != _NEWLINE:
        data = np.append(data, np.uint8(_NEWLINE))
    ends = np.flatnonzero(data == _NEWLINE)
    if len(ends) != count:
        raise UsageError(f"{path.name} has {len(ends):,} lines for {count:,} nodes")
    offsets = np.concatenate([[0], ends - np.arange(count)])
    text = data[data != _NEWLINE]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return _text(pa.Array.from_buffers(pa.large_binary(), count, buffers), path.name)


def _text(array: Any, name: str) -> pa.StringArray:
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise UsageError(f"{name} is not text in UTF-8 of at most 2 GB: {error}") from None


def _load_other(path: Path, sites: str) -> WebGraph:
    with tempfile.TemporaryDirectory(prefix="barkspider-simulate-") as folder:
        graph = read_graph(Env(), path, Path(folder))
        nodes = _checked(graph.nodes)
        indptr, indices = graph.out.offsets.copy(), graph.out.neighbours.astype(np.int32)
        urls = pa.array(map(graph.name, range(nodes)), pa.string()) if graph.named else None
    return WebGraph(indptr, indices, _sites(indptr, indices, None, urls, sites), urls)
