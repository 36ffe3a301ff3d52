"""`barkspider simulate` as people and programs use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from barkspider.cli.app import app
from barkspider.core.errors import BarkspiderError, UsageError
from barkspider.lab.simulate.farms import FarmSpec, make_web

SMALL = ("--domains", "40", "--largest", "12000", "--farms", "4", "--farm-pages", "20000", "--pages", "4000")


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if isinstance(result.exception, BarkspiderError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "web.npz"
    web = make_web(FarmSpec(domains=30, largest=1000))
    np.savez(path, indptr=web.indptr, indices=web.indices, site=web.site)
    return path


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("web") / "web.npz"
    run("web", "--pages", "3000", "--graph", path, "--limit", "1000", "--json")
    return path


def configurations(found: dict[str, Any]) -> list[tuple[str, int | None, float | None]]:
    return [(entry["strategy"], entry["t"], entry["limit"]) for entry in found["results"]]


def test_every_strategy_is_one_entry_with_mean_and_spread(graph: Path) -> None:
    found = json.loads(
        run(
            "simulate",
            "order",
            graph,
            "--t",
            "2,4",
            "--limits",
            "5%",
            "--seeds",
            "5",
            "--repeat",
            "3",
            "--json",
        )
    )
    assert configurations(found) == [
        ("bfs", None, None), ("dfs", None, None), ("sydney", 2, None), ("sydney", 4, None), ("sydney", 2, 0.05),
        ("sydney", 4, 0.05), ("random", 2, None), ("random", 4, None), ("backlink", None, None),
    ]  # fmt: skip
    assert (found["seeds"], found["repeat"], found["graph"]["nodes"]) == (5, 3, 3983)
    assert sum(pages for _, pages in found["graph"]["out_degrees"]) == 3983
    bfs, _, sydney = found["results"][:3]
    assert bfs["coverage"] == sydney["coverage"] == 1
    assert bfs["max_queue_fraction"] == pytest.approx(bfs["max_queue"] / bfs["reachable"], rel=0.01)
    assert (bfs["revisits"], bfs["spread"]["coverage"]) == (0, 0)
    assert sydney["revisits"] > 0
    assert bfs["spread"]["max_queue"] > 0
    assert len(sydney["curves"]["pagerank"]) == 100


def test_the_same_seed_prints_the_same(graph: Path) -> None:
    again = [
        run("simulate", "order", graph, "--seeds", "5", "--seed", seed, "--json") for seed in ("4", "4", "5")
    ]
    assert again[0] == again[1] != again[2]


def test_a_table_and_a_picture_of_the_papers_figures(graph: Path, tmp_path: Path) -> None:
    text = run("simulate", "order", graph, "--seeds", "5", "--repeat", "2", "--plot", tmp_path / "a.svg")
    assert "sydney 16, ≤ 3%" in text
    assert "mean ± deviation of 2" in text
    picture = (tmp_path / "a.svg").read_text("utf-8")
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    for title in ("fraction of pages visited", "Queue limits, t = 8", "Out-degrees", "cumulative PageRank"):
        assert title in picture


def test_the_graph_of_a_synthetic_web_has_urls_and_directories(synthetic: Path) -> None:
    assert len(synthetic.with_suffix(".names.txt").read_text().splitlines()) == 1000
    found = json.loads(run("simulate", "order", synthetic, "--seeds", "2", "--limits", "", "--json"))
    (entry,) = [entry for entry in found["results"] if entry["strategy"] == "directory"]
    assert (entry["levels"], entry["share"]) == (2, 0.5)
    assert 0 < entry["coverage"] <= 1
    assert found["graph"]["sites"] > 1
    with pytest.raises(UsageError, match="--urls goes with --graph"):
        run("web", "--urls", "a.txt")


def test_budgets_are_compared_on_a_made_up_web(tmp_path: Path) -> None:
    arguments = ("simulate", "budget", *SMALL, "--repeat", "2", "--seeds", "10")
    found = json.loads(run(*arguments, "--json", "--plot", tmp_path / "a.png"))
    entries = {entry["strategy"]: entry for entry in found["results"]}
    assert list(entries) == ["bfs", "naive", "beast"]
    assert entries["bfs"]["farm_share"] > entries["beast"]["farm_share"]
    assert entries["naive"]["disk_bytes"] > entries["beast"]["disk_bytes"]
    assert entries["naive"]["lambda"] == pytest.approx(entries["naive"]["lambda_theorem"], rel=0.3)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "4,000 pages each, mean ± deviation of 2" in run(*arguments)


def test_farms_are_planted_into_a_given_web(graph: Path) -> None:
    found = json.loads(run("simulate", "budget", graph, *SMALL, "--repeat", "1", "--seeds", "5", "--json"))
    assert found["results"][0]["domains"] == 34
    assert found["results"][0]["farm_share"] > 0.1


def test_papers_are_compared_on_a_graph(graph: Path) -> None:
    assert "### Limited Memory, Table 1" in run("papers", "--graph", graph)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("order", "missing.npz"), "missing.npz: no such file"),
        (("order", "GRAPH", "--t", "8,x"), "--t is '8,x'; give whole numbers"),
        (("order", "GRAPH", "--t", "0"), "--t is '0'"),
        (("order", "GRAPH", "--limits", "300%"), "--limits is '300%'; give shares"),
        (("order", "GRAPH", "--strategies", "bfs,best"), "'best' is no strategy"),
        (("order", "GRAPH", "--strategies", "directory"), "directory needs the URLs"),
        (("order", "GRAPH", "--strategies", "directory", "--share", ""), "directory takes a share"),
        (("order", "GRAPH", "--seeds", "100000"), "100,000 seeds; 3,983 pages have links"),
        (("order", "GRAPH", "--repeat", "0"), "0 repetitions"),
        (("order", "GRAPH", "--plot", "a.txt"), "a.txt is no name for a picture"),
        (("order", "GRAPH", "--sites", "x"), "sites are 'x'"),
        (("budget", "--branching", "0"), "branching is 0"),
        (("budget", "--function", "best"), "budget.function 'best' is unknown"),
        (("budget", "--pages", "0"), "of 0 pages"),
    ],
)
def test_wrong_options_are_refused_in_one_line(graph: Path, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        run("simulate", *[str(graph) if argument == "GRAPH" else argument for argument in arguments])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
