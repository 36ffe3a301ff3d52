"""`barkspider rank` as people and programs use it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from barkspider.archive.tables import open_table
from barkspider.cli.rank import rank
from barkspider.core.errors import BarkspiderError, UsageError
from barkspider.core.settings import Settings
from barkspider.engine import Job
from barkspider.engine.stored import open_job
from barkspider.graph.rank import METHODS
from barkspider.storage.env import Env
from barkspider.url import split
from tests.archive.jobs import make_job

_FIELDS = [
    "method", "nodes", "edges", "seconds", "cpu_seconds", "ram_hits", "operations", "bytes_read",
    "bytes_written", "peak_rss", "top",
]  # fmt: skip


def run(*arguments: str | Path) -> str:
    app = typer.Typer()
    app.command()(rank)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, BarkspiderError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "edges.csv"
    lines = [f"fan{number}.net,hub{number % 5}.net" for number in range(100)]
    lines += [f"hub{number}.net,star.org" for number in range(5)] + ["star.org,spam.com"]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("method", METHODS)
def test_every_method_prints_its_top_list(edges: Path, method: str) -> None:
    found = json.loads(run(edges, "--method", method, "--p", "1", "--top", "3", "--json"))
    assert list(found) == _FIELDS
    assert (found["method"], found["nodes"], found["edges"]) == (method, 107, 106)
    assert len(found["top"]) == 3
    if method in ("supp", "tse", "qvs"):
        assert found["top"][0] == ["star.org", 100.0]


def test_a_tiny_graph_is_ranked_exactly_unless_a_sample_is_asked_for(edges: Path) -> None:
    found = json.loads(run(edges, "--json"))
    assert (found["method"], found["top"][0]) == ("supp", ["star.org", 100.0])
    assert json.loads(run(edges, "--method", "tse", "--json"))["method"] == "tse"


def test_as_many_are_printed_as_are_asked_for(edges: Path) -> None:
    assert [line.split()[0] for line in run(edges, "--top", "40").splitlines()[:40]] == [
        str(place) for place in range(1, 41)
    ]
    shown = run(edges)
    assert "  15  " in shown
    assert "  16  " not in shown
    assert "and 92 more with --top or --json" in shown


@pytest.mark.parametrize("method", ["supp", "supp-a", "supp-b", "qvs", "tse"])
def test_from_disk_it_is_the_same_and_bytes_are_counted(edges: Path, tmp_path: Path, method: str) -> None:
    run(edges, "--save", tmp_path / "graph", "--method", "in")
    found = json.loads(
        run(tmp_path / "graph", "--method", method, "--p", "1", "--memory", "1MB", "--top", "2", "--json")
    )
    assert found["top"] == [["star.org", 100.0], ["spam.com", 5.0]]
    assert found["bytes_read"] > 0


def test_a_job_is_ranked_by_the_links_that_it_found(tmp_path: Path) -> None:
    make_job(tmp_path / "job")
    found = json.loads(run(tmp_path / "job", "--method", "in", "--json"))
    assert (found["nodes"], found["edges"]) == (2, 2)
    assert sorted(found["top"]) == [["a.example", 1.0], ["b.example", 1.0]]
    Job.create(tmp_path / "new", Settings(seed=7), ["http://a.example/"], Env()).close()
    with pytest.raises(UsageError, match=r"new: the graph is empty"):
        run(tmp_path / "new")


def test_domains_of_a_job_that_only_redirect_are_counted_with_the_others(tmp_path: Path) -> None:
    Job.create(tmp_path / "job", Settings(seed=7), ["http://a.example/"], Env()).close()
    answers = [
        ("http://moved.example/", 301, "https://www.new.example/"),
        ("http://moved.example/old", 302, "//new.example/other"),
        ("http://moved.example/gone", 404, None),
        ("http://older.example/", 302, "http://moved.example/"),
        ("http://within.example/", 302, "/home"),
        ("http://page.example/", 301, "http://new.example/"),
        ("http://page.example/own", 200, None),
        ("http://same.example/", 301, "http://new.example/"),
        ("http://same.example/as-before", 304, None),
        ("http://unkept.example/", 301, "http://new.example/"),
        ("http://torn.example/", 301, "http://new.example/"),
        ("http://torn.example/other", 301, "http://page.example/"),
        ("http://mail.example/", 301, "mailto:a@new.example"),
        ("http://left.example/", 301, "http://right.example/"),
        ("http://right.example/", 301, "http://left.example/"),
    ]
    sources = [split(url).host for url, *_ in answers]
    tables = {
        "pages": [
            {
                "url": url,
                "url_host_registered_domain": source,
                "fetch_status": status,
                "fetch_redirect": target,
                "outcome": "unchanged" if status == 304 else "redirect" if target else "ok",
            }
            for source, (url, status, target) in zip(sources, answers, strict=True)
        ],
        "errors": [{"url_host_name": "www.unkept.example", "outcome": "rejected_type"}],
        "links": [
            {"source_domain": f"fan{number}.example", "target_domain": source}
            for number, source in enumerate(sources)
        ],
    }
    for name, rows in tables.items():
        table = open_table(Env(), tmp_path / "job" / "archive", name)
        blank = dict.fromkeys(table.schema.names)
        table.write(pa.Table.from_pylist([blank | row for row in rows], table.schema))
    found = dict(json.loads(run(tmp_path / "job", "--merge-redirects", "--method", "in", "--json"))["top"])
    assert (found["new.example"], found["page.example"], found["torn.example"]) == (4, 2, 2)
    assert not found.keys() & {"moved.example", "older.example"}
    assert found.keys() >= {
        f"{name}.example" for name in ("within", "same", "unkept", "mail", "left", "right")
    }
    plain = dict(json.loads(run(tmp_path / "job", "--method", "in", "--json"))["top"])
    assert (plain["moved.example"], "new.example" in plain) == (3, False)


def test_links_of_a_crawl_that_goes_on_are_read_again_when_files_of_the_table_were_merged(
    tmp_path: Path,
) -> None:
    Job.create(tmp_path / "job", Settings(seed=7), ["http://a.example/"], Env()).close()
    table = open_table(Env(), tmp_path / "job" / "archive", "links")
    wanted = {(f"{number}.example", "hub.example") for number in range(4)}
    for source, target in sorted(wanted):
        row = dict.fromkeys(table.schema.names) | {"source_domain": source, "target_domain": target}
        table.write(pa.Table.from_pylist([row], table.schema))
    batches = open_job(tmp_path / "job").domain_links()
    found = [tuple(row.values()) for row in next(batches).to_pylist()]
    table.compact()
    found += [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert set(found) == wanted
    assert len(found) == 5


def test_scores_of_all_nodes_go_to_a_file(edges: Path, tmp_path: Path) -> None:
    output = tmp_path / "scores.parquet"
    assert "star.org" in run(edges, "--method", "supp", "--output", output)
    table = pq.read_table(output)
    assert table.column_names == ["node", "name", "score"]
    scores = dict(zip(table["name"].to_pylist(), table["score"].to_pylist(), strict=True))
    assert scores["star.org"] == 100
    assert scores["fan0.net"] == 0
    assert len(scores) == 107


def test_compare_counts_spam_and_scores_and_draws(edges: Path, tmp_path: Path) -> None:
    (tmp_path / "spam.txt").write_text("# a list\nspam.com\n")
    (tmp_path / "outside.txt").write_text("star.org 9\nspam.com,0\n")
    given = (
        "--compare",
        "--p",
        "1",
        "--spam-list",
        tmp_path / "spam.txt",
        "--scores",
        tmp_path / "outside.txt",
    )
    found = json.loads(run(edges, *given, "--top", "10", "--json"))
    assert [each["method"] for each in found["methods"]] == list(METHODS)
    assert found["agreement"]["supp"]["tse"] == 1
    assert found["mean_error"]["tse"] == 0
    assert found["spam"]["supp"][:3] == [0, 1, 1]
    assert found["outside"]["supp"][:3] == [9, 0, None]
    assert found["spam_by_score"] == {"0": 1.0, "9": 0.0, "none": 0.0}
    shown = run(edges, *given)
    assert "Top of each list (S is spam)" in shown
    assert "speed-up" in shown


def test_compare_draws_a_picture(edges: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures are optional")
    (tmp_path / "spam.txt").write_text("spam.com\n")
    picture = tmp_path / "compare.svg"
    run(edges, "--compare", "--spam-list", tmp_path / "spam.txt", "--output", picture)
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "0,1\n-3,2\n", "names node -3"),
        ("a.csv", "0,1\n1,99999999999\n", "names node 99999999999"),
        ("a.csv", "0,4000000000\n", "number the nodes from 0 without large gaps"),
        ("a.csv", "", "the graph is empty"),
        ("a.csv", "source,target\n", "not an edge list|the graph is empty"),
        ("a.csv", "0,0\n", "has one node"),
        ("a.csv", "1,1\n", "no edge between two different nodes"),
        ("a.txt", "It was a dark night.\nNothing\n", "not an edge list"),
        ("a.csv", "0,1\nx,y\n", "not an edge list"),
        ("a.csv", "0,1\n0,\n", "lacks its source or its target|not an edge list"),
        ("a.csv", "\0\1\2", "not text"),
        ("a.npz", "no archive", "no npz file with arrays indptr and indices"),
        ("a.parquet", "no", "not a Parquet file"),
        ("a.doc", "no", "is no graph that can be read"),
    ],
)
def test_bad_graphs_are_refused_in_one_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=message) as error:
        run(tmp_path / name)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("indptr", "indices", "message"),
    [
        ([0, 2, 1, 2], [1, 2], "indptr does not rise"),
        ([0, 1, 5], [1], "indptr does not rise"),
        ([0, 1, 2], [1, -1], "names node -1; the nodes are 0 to 1"),
        ([0, 1, 2], [1, 7], "names node 7; the nodes are 0 to 1"),
        ([0], [], "is empty"),
        ([0, 0], [], "one node"),
        ([0.5, 1.0], [1], "not a row of whole numbers"),
    ],
)
def test_bad_arrays_are_refused_in_one_line(
    tmp_path: Path, indptr: list[float], indices: list[int], message: str
) -> None:
    np.savez(tmp_path / "a.npz", indptr=np.array(indptr), indices=np.array(indices, np.int64))
    with pytest.raises(UsageError, match=message):
        run(tmp_path / "a.npz")


def test_who_is_asked_about_a_header_can_answer(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("linker,linkee\na.org,b.org\nb.org,c.org\n")
    with pytest.raises(UsageError, match="say --header or --no-header") as error:
        run(tmp_path / "a.csv")
    assert error.value.exit_code == 2
    for option, edges in (("--header", 2), ("--no-header", 3)):
        assert json.loads(run(tmp_path / "a.csv", option, "--method", "in", "--json"))["edges"] == edges


def test_wrong_usage_is_refused_before_anything_is_read(tmp_path: Path, edges: Path) -> None:
    pq.write_table(pa.table({"x": [1.5], "y": [2.5]}), tmp_path / "float.parquet")
    for arguments, message in (
        ((tmp_path / "none.csv",), "no such file or folder"),
        ((tmp_path,), "is not a graph"),
        ((tmp_path / "float.parquet",), "not numbers or names"),
        ((edges, "--method", "hits"), "'hits' is no method"),
        ((edges, "--p", "2"), "above 0 and at most 1"),
        ((edges, "--depth", "0"), "distance 1 or more"),
        ((edges, "--top", "0"), "give 1 or more"),
        ((edges, "--memory", "much"), "is not a size"),
        ((edges, "--method", "pagerank", "--memory", "1KB"), "four numbers of every node take .*: give more"),
        ((edges, "--method", "supp-a"), "say with --memory"),
        ((edges, "--method", "supp-a", "--depth", "3", "--memory", "1MB"), "distance two only"),
        ((edges, "--compare", "--memory", "1MB"), "in RAM only"),
        ((edges, "--spam-list", edges), "for --compare"),
        ((tmp_path / "float.parquet", "--header"), "has no lines: --header and --no-header are for .csv"),
        ((edges, "--merge-redirects"), "is for jobs, and .* is none"),
        ((edges, "--output", "x.csv"), "does not end in .parquet"),
        ((edges, "--output", "no/x.parquet"), "the folder of no/x.parquet does not exist"),
        ((edges, "--save", edges), "is a file; name a folder"),
        ((edges, "--compare", "--scores", edges), "is not a name and a number"),
        ((edges, "--compare", "--spam-list", tmp_path / "float.parquet"), "no name of the spam list is in"),
        ((edges, "--compare", "--spam-list", "/dev/null"), "has no names"),
    ):
        with pytest.raises(UsageError, match=message):
            run(*arguments)
