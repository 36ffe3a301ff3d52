"""Graphs as simulations see them: read from files, divided into sites, refused when they are none."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barkspider.core.errors import UsageError
from barkspider.lab.simulate.quality import directory_depths, home_pages
from barkspider.lab.synthweb import Web, WebSpec, write_graph
from barkspider.lab.webgraph import WebGraph, linked_ranges, load_web


def write(path: Path, indptr: Any = (0, 2, 3, 3), indices: Any = (1, 2, 0), **more: Any) -> Path:
    np.savez(path, indptr=np.array(indptr), indices=np.array(indices, np.int64), **more)
    return path


def test_links_keep_the_order_of_the_file_and_arrays_cannot_be_changed(tmp_path: Path) -> None:
    web = load_web(write(tmp_path / "a.npz", indices=(2, 1, 0)))
    assert (web.nodes, web.arcs, web.links(0).tolist()) == (3, 3, [2, 1])
    assert web.urls is None
    for array in (web.indptr, web.indices, web.site):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"indices": (1, 2, 3)}, "indices names node 3; the nodes are 0 to 2"),
        ({"indices": (1, 2, -1)}, "indices names node -1"),
        ({"indptr": (0, 3, 2, 3)}, "indptr does not rise"),
        ({"indptr": (0, 1, 2, 2)}, "indptr does not rise from 0 to the length of indices"),
        ({"indptr": (0,), "indices": ()}, "the graph is empty"),
        ({"indptr": (0.0, 2.0, 3.0, 3.0)}, "indptr is not a row of whole numbers"),
        ({"site": np.array([0, 1])}, "site is not a number of 0 or more for each of 3 nodes"),
        ({"site": np.array([0, 1, -1])}, "site is not a number of 0 or more"),
        ({"url": np.array([1, 2, 3])}, "url is not a text for each of 3 nodes"),
        ({"url": np.array([b"\xff", b"", b""])}, "url is not text in UTF-8"),
        ({"url": np.array([None, None, None])}, "arrays site and url cannot be read"),
    ],
)
def test_what_is_no_graph_is_refused_in_one_line(tmp_path: Path, arrays: Any, message: str) -> None:
    path = write(tmp_path / "a.npz", **arrays)
    with pytest.raises(UsageError, match=message) as caught:
        load_web(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.npz", "a.csv", "a.pdf"])
def test_text_that_is_no_graph_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("this is no graph\nat all\n")
    with pytest.raises(UsageError, match="a\\."):
        load_web(tmp_path / name)
    with pytest.raises(UsageError, match="no such file"):
        load_web(tmp_path / f"missing-{name}")


def test_edges_are_read_too_with_names_as_urls(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "http://a.example/,http://b.example/x\nhttp://b.example/x,http://b.example/\n"
    )
    web = load_web(tmp_path / "a.csv")
    assert (web.nodes, web.arcs, web.site.tolist()) == (3, 2, [0, 1, 1])


def test_sites_are_given_or_hosts_or_ranges(tmp_path: Path) -> None:
    urls = np.array(["http://b.example/1", "HTTP://A.example/", "http://a.example/x"])
    assert load_web(write(tmp_path / "a.npz", url=urls, site=np.array([7, 7, 3]))).site.tolist() == [1, 1, 0]
    by_host = load_web(write(tmp_path / "b.npz", url=urls))
    assert (by_host.sites, by_host.site.tolist()) == (2, [0, 1, 1])
    assert load_web(tmp_path / "b.npz", sites="2").site.tolist() == [0, 0, 1]
    (tmp_path / "c.names.txt").write_bytes(b"a.example\r\nb.example\r\na.example")
    assert load_web(write(tmp_path / "c.npz")).site.tolist() == [0, 1, 0]
    with pytest.raises(UsageError, match="give auto, or how many nodes"):
        load_web(tmp_path / "b.npz", sites="many")
    (tmp_path / "c.names.txt").write_text("a.example\n")
    with pytest.raises(UsageError, match=r"c.names.txt has 1 lines for 3 nodes"):
        load_web(tmp_path / "c.npz")


def test_ranges_are_cut_where_no_short_link_leads_across() -> None:
    random = np.random.default_rng(1)
    sizes = random.integers(2, 40, 50)
    first = np.concatenate([[0], np.cumsum(sizes)])
    links: list[list[int]] = []
    for begin, end in pairwise(first.tolist()):
        # Each page links to its home page, and now and then far away.
        links += [
            [int(begin)] + [int((page + 5000) % first[-1])] * (page % 7 == 0) for page in range(begin, end)
        ]
    web = WebGraph.of(links)
    site = linked_ranges(web.indptr, web.indices, near=40)
    expected = np.repeat(np.arange(50), sizes)
    far = [abs(target - page) for page, targets in enumerate(links) for target in targets[1:]]
    assert min(far) > 40
    assert site.tolist() == expected.tolist()


def test_a_synthetic_web_is_read_with_its_urls(tmp_path: Path) -> None:
    pages, links = write_graph(
        Web(WebSpec(pages=2000)), tmp_path / "web.npz", tmp_path / "web.names.txt", limit=500
    )
    web = load_web(tmp_path / "web.npz")
    assert (web.nodes, web.arcs) == (pages, links)
    assert web.urls is not None
    hosts = [url.split("/")[2] for url in web.urls.to_pylist()]
    assert web.sites == len(set(hosts)) > 1
    same = [hosts[a] == hosts[b] for a in range(40) for b in range(40)]
    assert same == [web.site[a] == web.site[b] for a in range(40) for b in range(40)]
    assert home_pages(web, np.zeros(web.nodes, np.int64)).sum() == sum(
        url.count("/") == 3 and url.endswith("/") for url in web.urls.to_pylist()
    )
    assert directory_depths(web.urls).max() >= 1
