"""`barkspider query`, `show` and `export` as people and programs use them, and a crawl that was killed."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from barkspider import crawl, load_settings, open_job
from barkspider.archive import valid_length
from barkspider.core.settings import Settings
from barkspider.engine import Job
from barkspider.lab.synthweb import WebSpec, running_web
from barkspider.storage.env import Env
from tests.archive.jobs import BODY, PAGES, edges, make_job
from tests.cli.program import complaint, run


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("jobs") / "job"
    make_job(folder)
    return str(folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "JOB", "SELEC 1"], "cannot answer: Parser Error"),
        (["query", "JOB", "SELECT x FROM pages"], "cannot answer: Binder Error"),
        (["query", "JOB", "DROP TABLE pages"], "only one SELECT can be asked"),
        (["query", "JOB", "SELECT * FROM 'secret.csv'"], "cannot answer"),
        (["query", "JOB", "SELECT 1", "--json", "--csv"], "--json and --csv exclude each other"),
        (["query", "nowhere", "SELECT 1"], "nowhere is not the folder of a crawl"),
        (["query", "JOB"], "Missing argument"),
        (["show", "JOB", "http://c.example/"], "http://c.example/ is not in"),
        (["show", "JOB", "c.example"], "'c.example' is not a URL (malformed)"),
        (["show", "JOB", "http://a.example/", "--body", "--raw"], "exclude each other"),
        (["show", "nowhere", "http://a.example/"], "nowhere is not the folder of a crawl"),
        (["export", "JOB", "--what", "robots"], "--what is 'robots'; it is pages or corpus or graph"),
        (["export", "JOB", "--format", "npz"], "--format is 'npz'; for pages it is jsonl or parquet or log"),
        (["export", "JOB", "--format", "parquet"], "needs a file to write to"),
        (["export", "JOB", "--output", "JOB/settings.toml"], "exists; name another file"),
        (["export", "JOB", "--format", "log", "--newest"], "--newest is for pages as jsonl or parquet"),
        (["export", "nowhere"], "nowhere is not the folder of a crawl"),
    ],
)
def test_wrong_usage_gets_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    job: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *(argument.replace("JOB", job) for argument in arguments)) == 2
    assert message in complaint(capsys)
    assert list(tmp_path.iterdir()) == []


def test_an_answer_as_json_csv_and_table(
    job: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT fetch_status, count(*) AS n, max(fetch_time) AS last FROM pages GROUP BY 1 ORDER BY 1"
    assert run(monkeypatch, "query", job, sql, "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"fetch_status": 200, "n": 4, "last": "2027-01-15 08:00:03"},
        {"fetch_status": 404, "n": 1, "last": "2027-01-15 08:00:04"},
    ]
    assert run(monkeypatch, "query", job, sql, "--csv") == 0
    found = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert found[0] == ["fetch_status", "n", "last"]
    assert found[1][:2] == ["200", "4"]
    assert run(monkeypatch, "query", job, "SELECT chr(27) || '[31m[bold]' AS \"x[red]\"") == 0
    table = capsys.readouterr().out
    assert "\x1b[31m" not in table
    assert "\\x1b[31m[bold]" in table
    assert "x[red]" in table


def test_rows_that_are_wider_than_the_terminal_stand_upright(
    job: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    assert run(monkeypatch, "query", job, "SELECT * FROM pages ORDER BY url LIMIT 2") == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[:2] for line in lines if line.startswith("row ")] == [["row", "1"], ["row", "2"]]
    assert any(re.fullmatch(r"fetch_status +200 *", line) for line in lines)
    assert run(monkeypatch, "query", job, "SELECT count(*) AS n FROM pages") == 0
    assert "│ 5 │" in re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)


def test_a_page_with_what_is_known_its_body_and_its_bytes(
    job: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(monkeypatch, "show", job, "http://b.example/") == 0
    shown = capfdbinary.readouterr().out.decode()
    assert "title      Größe \\x1b[31m\n" in shown  # harmless on a terminal
    assert "revisit    True\n" in shown
    assert run(monkeypatch, "show", job, "http://b.example/", "--json") == 0
    known = json.loads(capfdbinary.readouterr().out)
    assert (known["status"], known["captures"], known["index"][0]["mime"]) == (200, 1, "warc/revisit")
    assert run(monkeypatch, "show", job, "http://b.example/", "--body") == 0
    assert capfdbinary.readouterr().out.decode("windows-1252") == BODY
    assert run(monkeypatch, "show", job, "http://b.example/", "--raw") == 0
    head, body = PAGES["http://b.example/"]
    assert capfdbinary.readouterr().out == b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + body


def test_json_has_no_numbers_that_are_none_and_no_bytes(
    job: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT 'NaN'::double AS a, '\\xAA'::blob AS b, [1.5] AS c, DATE '2027-01-15' AS d"
    assert run(monkeypatch, "query", job, sql, "--json") == 0
    expected = [{"a": None, "b": "aa", "c": [1.5], "d": "2027-01-15"}]
    assert json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name)) == expected


def test_pages_are_exported_with_their_text(
    job: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "export", job) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["url"] for line in lines] == list(PAGES)[:3]
    assert lines[0]["text"].startswith("Some words, all of them.\nmore")
    assert (lines[2]["title"], lines[2]["text"]) == ("P", "été")
    output = tmp_path / "pages.parquet"
    assert run(monkeypatch, "export", job, "--format", "parquet", "--output", str(output), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"output": str(output), "pages": 3}
    rows = pq.read_table(output).to_pylist()
    assert [row["text"] for row in rows] == [line["text"] for line in lines]
    assert rows[0]["fetch_time"].isoformat() == lines[0]["fetch_time"]


def test_the_graph_is_exported_as_edges_and_as_sparse_rows(
    job: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "export", job, "--what", "graph") == 0
    assert capsys.readouterr().out == "a.example\tb.example\t1\nb.example\ta.example\t3\n"
    output = tmp_path / "graph.npz"
    assert run(monkeypatch, "export", job, "--what", "graph", "--format", "npz", "--output", str(output)) == 0
    with np.load(output) as graph:
        names = (tmp_path / "graph.names.txt").read_text().splitlines()
        assert edges(graph["indptr"], graph["indices"], names) == {
            ("a.example", "b.example"),
            ("b.example", "a.example"),
        }
        assert graph["indptr"].dtype == graph["indices"].dtype == np.int32


def test_a_log_has_a_line_for_each_url(
    job: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "export", job, "--format", "log") == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[-1] for line in lines] == [*PAGES, "http://a.example/none"]
    assert lines[0][:3] == ["2027-01-15T08:00:00.000000Z", "200", "ok"]
    assert lines[-1][1:3] == ["404", "http_404"]


def test_a_graph_without_an_edge_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Job.create(tmp_path / "job", Settings(seed=3), ["http://a.example/"], Env()).close()
    assert run(monkeypatch, "export", tmp_path / "job", "--what", "graph") == 0
    assert "no link from one domain to another was found" in complaint(capsys)


def test_help_has_an_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("query", "show", "export"):
        assert run(monkeypatch, command, "--help") == 0
        assert f"Example: barkspider {command}" in capsys.readouterr().out


def test_a_killed_crawl_can_be_read_up_to_its_last_record(tmp_path: Path) -> None:
    with running_web(WebSpec(seed=2, pages=3_000, page_bytes=5_000)) as served:
        chosen = served.settings() | {
            "politeness.host_delay": "1ms",
            "politeness.server_delay": "0s",
            "scope.level": "web",
            "memory": "64MB",
        }
        settings = load_settings(options=[f"{name}={value}" for name, value in chosen.items()])
        child = os.fork()
        if not child:
            try:
                crawl(served.web.seeds(1), tmp_path / "j", settings)
            finally:
                os._exit(1)  # it was to be killed
        try:
            limit = time.monotonic() + 60
            while sum(path.stat().st_size for path in tmp_path.glob("j/archive/pages-*.open")) < 100_000:
                assert time.monotonic() < limit
                time.sleep(0.02)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    (left,) = (tmp_path / "j" / "archive").glob("pages-*.open")
    assert 0 < valid_length(left) <= left.stat().st_size
    pages = list(open_job(tmp_path / "j").pages())
    assert len(pages) > 5
    assert open_job(tmp_path / "j").page(pages[-1].url).raw == pages[-1].raw
