"""Graph files, and the command that writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from barkspider.cli.web import web as web_command
from barkspider.core.errors import UsageError
from barkspider.graph.build import build_graph
from barkspider.graph.importing import read_graph
from barkspider.graph.methods import in_degree, supporters
from barkspider.lab.synthweb import Web, WebSpec, domain_edges, write_graph
from barkspider.lab.synthweb.names import split_host
from barkspider.storage.env import Env


def test_a_graph_is_the_web(small: Web, tmp_path: Path) -> None:
    pages, links = write_graph(small, tmp_path / "g.npz", tmp_path / "g.txt", limit=2_000)
    assert pages == 2_000
    urls = (tmp_path / "g.txt").read_text().splitlines()
    with np.load(tmp_path / "g.npz") as stored:
        indptr, indices = stored["indptr"], stored["indices"]
    assert indptr.dtype == np.int64
    assert indices.dtype == np.int32
    assert len(urls) == pages == len(indptr) - 1
    assert len(indices) == indptr[-1] == links
    assert urls == small.urls(small.reachable_pages(small.seeds(1), limit=2_000))
    number = {url: n for n, url in enumerate(urls)}
    for n in range(0, pages, 31):
        inner = [number[link] for link in small.links(urls[n]) if link in number and link != urls[n]]
        assert indices[indptr[n] : indptr[n + 1]].tolist() == list(dict.fromkeys(inner))


def test_all_that_is_reachable(tmp_path: Path) -> None:
    web = Web(WebSpec(pages=1_000))
    done: list[int] = []
    pages, _ = write_graph(web, tmp_path / "g.npz", tmp_path / "g.txt", progress=done.append)
    assert pages == web.reachable(web.seeds(1)) == done[-1]


def test_domain_edges_are_the_links_of_all_pages() -> None:
    web = Web(WebSpec(pages=500, domains=40, hazards=frozenset({"link_exchange"})))
    exchange = web.hazards["link_exchange"]
    names = [web.domain_name(domain) for domain in range(40)] + exchange.names
    number = {name: domain for domain, name in enumerate(names)}

    def domain_of(url: str) -> int:
        _, word, suffix = split_host(url.split("/")[2])
        return number[f"{word}.{suffix}"]

    urls = web.urls(np.arange(500))
    for name in exchange.names[:10]:
        urls += [f"http://www.{name}/{page}" for page in ("", "friends-1.html", "friends-2.html")]
    wanted = {(domain_of(url), domain_of(link)) for url in urls for link in web.links(url)}
    found = [pair for batch in domain_edges(web) for pair in np.transpose(batch).tolist()]
    assert sorted((a, b) for a, b in found if a < 50) == sorted((a, b) for a, b in wanted if a != b)
    assert {a for a, _ in found} == set(range(340))


def test_supporters_keep_the_link_exchange_out_of_the_top_where_in_degree_lets_it_in(tmp_path: Path) -> None:
    """Section V-A: hundreds of domains that link to each other have many links, but few stand behind them."""
    web = Web(WebSpec(pages=50_000, domains=5_000, hazards=frozenset({"link_exchange"})))
    graph = build_graph(Env(), tmp_path, domain_edges(web))
    members = [int((rank(graph).top(300) >= 5_000).sum()) for rank in (in_degree, supporters)]
    assert members[0] > 200
    assert members[1] == 0


def _run(*arguments: str) -> object:
    app = typer.Typer()
    app.command()(web_command)
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, UsageError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if "--json" in arguments else result.stdout


def test_the_command_writes_a_graph(tmp_path: Path) -> None:
    graph, urls = str(tmp_path / "g.npz"), str(tmp_path / "g.txt")
    told = _run("--pages", "5000", "--graph", graph, "--urls", urls, "--limit", "300", "--json")
    assert isinstance(told, dict)
    assert told["pages"] == 300
    assert "300 pages" in str(_run("--pages", "5000", "--graph", graph, "--urls", urls, "--limit", "300"))


def test_the_command_writes_a_domain_graph_that_can_be_ranked(tmp_path: Path) -> None:
    file = tmp_path / "d.npz"
    options = ("--pages", "2000", "--domains", "200", "--domain-graph", str(file))
    told = _run(*options, "--hazards", "link_exchange", "--json")
    assert isinstance(told, dict)
    graph = read_graph(Env(), file, tmp_path / "read")
    assert (graph.nodes, graph.edges) == (told["domains"], told["links"])
    assert graph.nodes == 500
    spam = (tmp_path / "d.spam.txt").read_text().splitlines()
    assert [graph.name(node) for node in range(200, 500)] == spam
    (tmp_path / "d.spam.txt").unlink()
    assert "200 domains" in str(_run(*options))
    assert not (tmp_path / "d.spam.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--urls", "x.txt"), "--urls"),
        (("--pages", "0"), "pages"),
        (("--servers", "5000"), "servers"),
        (("--hazards", "calender"), "calendar"),
        (("--http-port", "70000"), "--http-port"),
        (("--log", "/no/such/folder/x"), "folder"),
        (("--graph", "x", "--urls", "y", "--limit", "-1"), "--limit"),
        (("--graph", "x", "--domain-graph", "y"), "--domain-graph"),
        (("--domain-graph", "y"), "does not end in .npz"),
    ],
)
def test_wrong_values_get_one_clear_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message) as caught:
        _run(*arguments)
    assert "\n" not in str(caught.value)
