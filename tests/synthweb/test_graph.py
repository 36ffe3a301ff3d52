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
from barkspider.synthweb import Web, WebSpec, write_graph


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
    ],
)
def test_wrong_values_get_one_clear_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message) as caught:
        _run(*arguments)
    assert "\n" not in str(caught.value)
