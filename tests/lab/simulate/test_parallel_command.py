"""`barkspider simulate parallel` as people and programs use it, and what it gives to `barkspider papers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from barkspider.cli.papers import markdown
from barkspider.cli.simulate_parallel import parallel
from barkspider.core.errors import BarkspiderError, UsageError
from barkspider.lab.simulate.parallel_tables import half_of_sites, tables
from tests.lab.simulate.parallel_web import PAGES, between_sites, small_web

FIGURES = [
    "mode", "processes", "partition", "seeds", "order", "pages", "batch", "exchanges", "replicated",
    "downloaded", "coverage", "overlap", "overlap_when_covered", "exchanged_per_page", "sendings",
    "coverage_without_overlap", "crossing_links", "largest_part", "dns_lookups", "connections",
    "shared_servers", "robots_fetches", "lookups_to_assign",
]  # fmt: skip


def run(*arguments: str | Path) -> str:
    app = typer.Typer()
    app.command()(parallel)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, BarkspiderError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def results(*arguments: str | Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(*arguments, "--json"))["results"]
    return found


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, web = tmp_path_factory.mktemp("graph"), small_web()
    np.savez(folder / "web.npz", indptr=web.indptr, indices=web.indices)
    urls = [f"http://site{page // PAGES}.{'com' if page % 3 else 'de'}/{page}" for page in range(web.nodes)]
    (folder / "web.names.txt").write_text("\n".join(urls))
    hosts = sorted({url.split("/")[2] for url in urls})
    (folder / "addresses.txt").write_text(
        "\n".join(f"{host} 192.0.2.{place % 99}" for place, host in enumerate(hosts))
    )
    return folder / "web.npz"


def test_json_has_one_entry_for_each_configuration(graph: Path) -> None:
    found = results(graph, "--processes", "2,4", "--repeat", "2")
    assert [(entry["mode"], entry["processes"]) for entry in found] == [
        (mode, processes) for mode in ("firewall", "cross-over", "exchange") for processes in (2, 4)
    ]
    for entry in found:
        assert list(entry) == [*FIGURES, "reachable", "spread", "curve"]
        assert list(entry["spread"]) == [*FIGURES[9:], "reachable"]
        coverages, overlaps = zip(*entry["curve"], strict=True)
        assert list(coverages) == sorted(coverages)
        assert (overlaps[-1] > 0) == (entry["mode"] == "cross-over")
    assert found[5]["coverage"] == found[5]["reachable"]
    assert found[0]["spread"]["coverage"] > 0


def test_what_is_for_exchange_does_not_multiply_other_modes(graph: Path) -> None:
    arguments = ["--mode", "firewall,exchange", "--processes", "2", "--repeat", "1", "--replicate", "0,0.25%"]
    found = results(graph, *arguments, "--batch", "1,50")
    assert [(entry["mode"], entry["batch"], entry["replicated"]) for entry in found] == [
        ("firewall", 1, 0),
        ("exchange", 1, 0),
        ("exchange", 1, 25),
        ("exchange", 50, 0),
        ("exchange", 50, 25),
    ]
    sent = [entry["exchanged_per_page"] for entry in found]
    assert sent[0] == 0 < sent[4] < min(sent[2], sent[3]) < max(sent[2], sent[3]) < sent[1]


def test_quality_is_told_where_the_crawl_ends_early(graph: Path) -> None:
    arguments = ["--mode", "exchange", "--processes", "8", "--order", "backlinks", "--repeat", "2"]
    never, often = results(graph, *arguments, "--pages", "5%", "--exchanges", "0,50")
    assert (never["pages"], never["exchanges"], often["exchanges"]) == (500, 0, 50)
    assert never["quality"] < often["quality"]
    assert "reachable" not in never


def test_all_partitions_run_where_urls_and_addresses_are_known(graph: Path) -> None:
    arguments = [
        "--mode",
        "exchange",
        "--processes",
        "4",
        "--partition",
        "site,domain,url,hierarchical,address",
    ]
    shown = run(graph, *arguments, "--repeat", "1", "--addresses", graph.with_name("addresses.txt"))
    assert "What the partitions cost" in shown
    for name in ("site", "domain", "url", "hierarchical", "address"):
        assert sum(line.split()[:1] == [name] for line in shown.splitlines()) == 2


def test_the_same_seed_prints_the_same(graph: Path) -> None:
    arguments = [graph, "--processes", "4", "--repeat", "2", "--seed"]
    assert run(*arguments, "7") == run(*arguments, "7") != run(*arguments, "8")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--processes", "1,4"],
        ["--processes", "4", "--mode", "firewall", "--seeds", "1,5"],
        ["--processes", "4", "--mode", "exchange", "--replicate", "0,25", "--batch", "1,10"],
        ["--processes", "2,4", "--mode", "exchange", "--pages", "5%", "--exchanges", "0,1,9"],
        ["--processes", "4", "--mode", "firewall"],
    ],
    ids=" ".join,
)
def test_a_picture_is_drawn_and_the_same_each_time(graph: Path, tmp_path: Path, arguments: list[str]) -> None:
    for name in ("one.svg", "two.svg"):
        run(graph, *arguments, "--repeat", "1", "--plot", tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (
        b"coverage" in (tmp_path / "one.svg").read_bytes()
        or b"exchanged" in (tmp_path / "one.svg").read_bytes()
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--processes", "two"], "--processes is 'two'"),
        (["--processes", "5%"], "whole numbers, with"),
        (["--processes", "0"], "1 to 4096"),
        (["--replicate", "-1"], "or shares such as 5%"),
        (["--replicate", "inf%"], "--replicate"),
        (["--replicate", "200%"], "--replicate"),
        (["--mode", "walls"], "'walls' is no mode"),
        (["--partition", "colour"], "'colour' is no partition"),
        (["--mode", "exchange", "--exchanges", "3"], "known number of pages"),
        (["--plot", "picture.gif"], "no name for a picture"),
        (["--addresses", "missing.txt"], "cannot read missing.txt"),
    ],
)
def test_wrong_usage_is_one_line(graph: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(graph, *arguments)


def test_a_line_of_addresses_that_is_none_is_named(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "addresses.txt").write_text("a.example 192.0.2.1\n\nb.example\n")
    with pytest.raises(UsageError, match="entry 2"):
        run(graph, "--addresses", tmp_path / "addresses.txt")


def test_papers_get_figures_4_to_11_and_table_1() -> None:
    web = small_web()
    found = {table.name: table for table in tables(web, repeat=2)}
    assert list(found) == [*(f"Figure {number}" for number in range(4, 12)), "Table 1"]
    for table in found.values():
        assert markdown(table).count("\n") > 4
        assert (table.picture is None) == (table.name == "Table 1")
    figure_7 = {row: cells[0] for row, cells in found["Figure 7"].rows}
    ratio = figure_7["site-hash over URL-hash, 64 processes"]
    assert ratio is not None
    assert ratio.ours == pytest.approx(between_sites(web), rel=0.1)
    assert all(cell.agrees for _, _, cell in found["Table 1"].cells())
    for number in (9, 10, 11):
        assert found[f"Figure {number}"].cells()[0][2].ours < 100


def test_half_of_the_sites_keep_their_pages_and_inner_links() -> None:
    web = small_web()
    half = half_of_sites(web)
    assert (half.sites, half.nodes) == (web.sites // 2, web.nodes // 2)
    assert half.indptr[-1] == half.arcs
    # Links within sites stay; of the others about half of the targets do.
    kept = half.arcs / (web.arcs / 2)
    assert kept == pytest.approx(1 - between_sites(web) / 2, rel=0.05)
