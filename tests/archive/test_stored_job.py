"""A job read back in Python: closed, growing, after a crash; and a whole crawl by the field's own checks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from warcio.checker import Checker

import barkspider
from barkspider import JobError, StoredJob, UsageError, crawl, load_settings, open_job
from barkspider.archive.cdxj import parse_line
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from tests.archive.jobs import BODY, PAGES, make_job
from tests.engine.warcs import check_warcs


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> StoredJob:
    folder = tmp_path_factory.mktemp("jobs") / "closed"
    make_job(folder)
    return open_job(folder)


def test_pages_come_back_decoded_in_order(job: StoredJob) -> None:
    pages = list(job.pages())
    assert [page.url for page in pages] == [*PAGES, "http://a.example/none"]
    assert [page.status for page in pages] == [200, 200, 200, 200, 404]
    assert [page.revisit for page in pages] == [False, True, False, False, False]
    assert pages[0].markup == pages[1].markup == BODY
    assert pages[0].title == "Größe \x1b[31m"
    assert pages[0].text.startswith("Some words, all of them.\nmore")
    assert (pages[2].markup, pages[2].title, pages[2].charset) == ("<title>P</title>été", "P", "utf-8")
    assert (pages[3].text, pages[3].is_html) == ("plain <b>text</b>", False)
    assert pages[0].header("CONTENT-type") == "text/html; charset=windows-1252"
    assert pages[0].time.isoformat() == "2027-01-15T08:00:00+00:00"
    assert list(job.pages("robots")) == []


def test_one_page_is_found_however_its_url_is_written(job: StoredJob) -> None:
    assert job.page("HTTP://B.example:80/a/..#x").markup == BODY
    assert job.page("http://a.example/packed").body.startswith(b"<title>P")
    assert [capture["status"] for capture in job.captures("http://a.example/none")] == ["404"]
    with pytest.raises(UsageError, match="is not in"):
        job.page("http://a.example/other")
    for wrong in ("nonsense", "ftp://a.example/", "http://"):
        with pytest.raises(UsageError, match="is not a URL"):
            job.page(wrong)


def test_tables_can_be_read_and_asked(job: StoredJob) -> None:
    assert job.table("pages")["title"].to_pylist() == [f"Page {number}" for number in range(5)]
    answer = job.query("SELECT outcome, count(*) AS n FROM pages GROUP BY ALL ORDER BY n").to_pylist()
    assert answer == [{"outcome": "http_404", "n": 1}, {"outcome": "ok", "n": 4}]
    (same,) = job.query("SELECT url, duplicate_of = (SELECT key FROM pages WHERE url = 'http://a.example/') AS first "
                        "FROM pages WHERE duplicate_of IS NOT NULL").to_pylist()  # fmt: skip
    assert same == {"url": "http://b.example/", "first": True}
    with pytest.raises(UsageError, match="there is no table 'page'; there are pages"):
        job.table("page")


def test_a_folder_that_is_no_job_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(JobError, match="is not the folder of a crawl"):
            open_job(folder)
    assert barkspider.open_job is open_job


def test_a_job_that_is_being_written_can_be_read(tmp_path: Path) -> None:
    archive = make_job(tmp_path / "running", close=False)
    job = open_job(tmp_path / "running")
    assert len(list(job.pages())) == 5
    assert job.page("http://b.example/").markup == BODY  # a revisit, its original in the same open file
    assert job.query("SELECT count(*) AS n FROM pages").to_pylist() == [{"n": 0}]
    archive.prepare()()
    assert job.query("SELECT count(*) AS n FROM pages").to_pylist() == [{"n": 5}]
    # The process dies in the middle of a record.
    (warc,) = (tmp_path / "running" / "archive").glob("pages-*.open")
    warc.write_bytes(warc.read_bytes()[:-10])
    assert [page.url for page in job.pages()] == list(PAGES)
    assert job.page("http://a.example/").markup == BODY
    archive.close()


def test_a_revisit_whose_original_is_gone_shows_its_header(tmp_path: Path) -> None:
    make_job(tmp_path / "job")
    folder = tmp_path / "job" / "archive"
    (index,) = folder.glob("pages-*.cdxj")
    index.write_text(
        "".join(line for line in index.read_text().splitlines(True) if 'a.example/"' not in line)
    )
    page = open_job(tmp_path / "job").page("http://b.example/")
    assert (page.status, page.body, page.revisit) == (200, b"", True)


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    spec = WebSpec(seed=3, pages=300, page_bytes=3_000, hazards=frozenset(("mirrors", "redirects")))
    with running_web(spec) as web:
        yield web


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_whole_crawl_passes_the_checks_of_the_field(
    served: RunningWeb, tmp_path: Path, compression: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [f"{name}={value}" for name, value in served.settings().items()]
    options += [
        "scope.level=web",
        "frontier=sydney",  # which takes all seeds, and so all mirrors, before it has pages enough
        "politeness.host_delay=1ms",
        "politeness.server_delay=0s",
        "limits.pages=150",
        "memory=64MB",
    ]
    options += [f"archive.compression={compression}", "archive.warc_size=100KB", "archive.metadata=true"]
    statistics = crawl(
        [*served.web.seeds(2), *served.web.hazards["mirrors"].entries()],
        tmp_path / "job",
        load_settings(options=options),
    )
    folder, job = tmp_path / "job" / "archive", open_job(tmp_path / "job")
    names = sorted(path.name for path in folder.iterdir())
    assert not [name for name in names if name.endswith((".open", ".new"))]
    pages = list(job.pages())
    assert sum(page.status == 200 for page in pages) == statistics.pages == 150
    assert any(page.revisit for page in pages)
    assert all(page.title for page in pages if page.status == 200)
    rows = job.query("SELECT url, warc_filename, warc_record_offset, title FROM pages").to_pylist()
    assert sorted(row["url"] for row in rows) == sorted(page.url for page in pages)
    index = [parse_line(line) for line in (folder / "index.cdxj").read_bytes().splitlines()]
    places = {(line["filename"], int(line["offset"])) for line in index}
    assert {(row["warc_filename"], row["warc_record_offset"]) for row in rows} <= places
    assert len(index) == len(pages) + statistics.robots_files
    links = job.query("SELECT count(*) AS n FROM links WHERE source IN (SELECT key FROM pages)").to_pylist()
    assert links[0]["n"] > 1000
    if compression == "gzip":
        assert check_warcs(tmp_path / "job") > 300
        warcs = [str(path) for path in folder.glob("*.warc.gz")]
        assert len(warcs) > 3
        assert Checker(SimpleNamespace(inputs=warcs, verbose=False)).process_all() == 0
        assert capsys.readouterr().out == ""
    else:
        assert [name for name in names if name.endswith(".warc.zst")]
    events = [json.loads(line)["event"] for line in (tmp_path / "job" / "log.jsonl").read_text().splitlines()]
    assert "internal_error" not in events
