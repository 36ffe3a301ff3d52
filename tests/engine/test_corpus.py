"""A crawl as a corpus: main texts, what they are like, who asks to be left out."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from barkspider import crawl, load_settings, open_job
from barkspider.lab.synthweb import WebSpec, running_web
from barkspider.page.main_text import main_text, opt_out
from tests.cli.program import complaint, run

PROSE = "<p>" + " ".join(f"A sentence of its own, number {number}." for number in range(40)) + "</p>"
MENU = "<nav>" + "".join(f"<a href=/{number}>Menu entry {number}</a> " for number in range(30)) + "</nav>"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "job"
    with running_web(WebSpec(seed=3, pages=60, page_bytes=3_000, crawl_delay=0.01)) as served:
        chosen = served.settings() | {
            "politeness.host_delay": "5ms",
            "politeness.server_delay": "0s",
            "scope.level": "web",
            "memory": "64MB",
            "archive.recent_digests": "1000",
            "limits.pages": "25",
        }
        options = [f"{name}={value}" for name, value in chosen.items()]
        crawl(served.web.seeds(1), folder, load_settings(options=options))
    return folder


def test_main_text_is_without_menus_and_links_are_told() -> None:
    found = main_text(
        f"<body>{MENU}<main><h1>Spiders</h1>{PROSE}<p><a href=/x>Go on reading</a></p></main></body>"
    )
    assert "A sentence of its own, number 39." in found.text
    assert "Menu entry" not in found.text
    assert 0 < found.link_share < 0.1
    assert main_text("").text == ""


def test_opt_outs_of_headers_and_of_metas() -> None:
    metas = main_text(
        "<head><meta name=ROBOTS content='noimageai, nofollow'><meta name=tdm-reservation content=1></head><p>x"
    ).metas
    assert opt_out([], metas) == ("noimageai", True, "")
    assert opt_out([("tdm-reservation", "0")], metas) == ("noimageai", False, "")
    assert opt_out([("x-robots-tag", "otherbot: noai")], {}).any
    assert not opt_out([("X-Robots-Tag", "noindex")], {"robots": "nofollow"}).any


def test_every_format(job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = {name: tmp_path / f"out.{name}" for name in ("jsonl", "parquet", "text", "wet")}
    for name, path in outputs.items():
        assert run(monkeypatch, "export", job, "--what", "corpus", "--format", name, "--output", path) == 0
    rows = [json.loads(line) for line in outputs["jsonl"].read_text().splitlines()]
    pages = {page.url for page in open_job(job).pages() if page.status == 200 and page.is_html}
    assert {row["url"] for row in rows} == pages
    assert min(row["words"] for row in rows) > 50
    texts = [row["text"] for row in rows]
    assert pq.read_table(outputs["parquet"])["text"].to_pylist() == texts
    assert outputs["text"].read_text().split("\n\f\n")[:-1] == [text.strip() for text in texts]
    with outputs["wet"].open("rb") as file:
        records = [
            (record.headers["WARC-Target-URI"], record.reader.read().decode())
            for record in ArchiveIterator(file, record_types=WarcRecordType.conversion)
        ]
    assert records == [(row["url"], row["text"]) for row in rows]


def test_what_is_left_out_is_counted(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = ["--language", "xx", "--without", "opt-outs", "--json", "--output", tmp_path / "none.jsonl"]
    assert run(monkeypatch, "export", job, "--what", "corpus", *choice) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["texts"] == 0
    assert told["left_out"] == {"language": sum(page.status == 200 for page in open_job(job).pages())}
    assert run(monkeypatch, "export", job, "--min-words", "3") == 2
    assert "--what corpus" in complaint(capsys)
    assert run(monkeypatch, "export", job, "--what", "corpus", "--without", "ads") == 2
    assert "opt-outs or near-duplicates" in complaint(capsys)
