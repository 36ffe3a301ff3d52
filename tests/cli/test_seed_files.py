"""Seeds come from lists, zone files, indexes, archives, tables and earlier jobs; what cannot be read is one line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barkspider.cli.seed_files import read_seeds
from barkspider.core.errors import UsageError
from tests.cli.program import complaint, run
from tests.cli.small_job import make_small_job

ZONE = """$TTL 86400
$ORIGIN example.
@        IN SOA ns.example. admin.example. 1 2 3 4 5
         IN NS ns.example.
first    3600 IN NS ns.first.example. ; delegated
         IN NS ns2.first.example.
second.example. NS ns.second.example.
www      IN A 192.0.2.1
$ORIGIN sub.example.
third    IN NS ns.third.example.
"""


def found(file: Path) -> list[str]:
    return [text for text, _ in read_seeds([], file)]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_job(tmp_path_factory.mktemp("jobs") / "job")


def test_lists_may_name_domains_and_be_packed(tmp_path: Path) -> None:
    lines = (
        "example.org\n\rhttps://b.example/x # mine\n\n  a.b.example. \nbücher.example\nword\na.example/path\n"
    )
    (tmp_path / "list.txt").write_text(lines, newline="")
    with gzip.open(tmp_path / "list.txt.gz", "wt") as packed:
        packed.write(lines)
    names = ["http://example.org/", "https://b.example/x", "http://a.b.example/", "http://bücher.example/"]
    assert found(tmp_path / "list.txt") == [*names, "word", "a.example/path"]
    assert found(tmp_path / "list.txt.gz") == found(tmp_path / "list.txt")
    assert [where for _, where in read_seeds([], tmp_path / "list.txt")][1].endswith("list.txt:2: ")


def test_a_zone_file_gives_the_names_that_it_delegates(tmp_path: Path) -> None:
    (tmp_path / "example.zone").write_text(ZONE)
    assert found(tmp_path / "example.zone") == [
        "http://first.example/",
        "http://second.example/",
        "http://third.sub.example/",
    ]


def test_tables_give_urls_or_hosts(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"n": [1, 2, 3], "url": ["http://a.example/", None, "b.example"]}), tmp_path / "1.parquet"
    )
    assert found(tmp_path / "1.parquet") == ["http://a.example/", "http://b.example/"]
    pq.write_table(pa.table({"n": [1]}), tmp_path / "2.parquet")
    with pytest.raises(UsageError, match="has no column of URLs"):
        found(tmp_path / "2.parquet")


def test_an_earlier_job_gives_its_home_pages_and_its_archive_all_pages(job: Path) -> None:
    homes = found(job)
    assert len(homes) == len(set(homes)) > 1
    assert all(home.startswith("http://") and home.count("/") == 3 for home in homes)
    warcs = sorted((job / "archive").glob("pages-*.warc.gz"))
    urls = [url for path in warcs for url in found(path)]
    assert len(urls) >= 25
    assert {url[: url.index("/", 8) + 1] for url in urls} >= set(homes)
    assert set(found(job / "archive" / "index.cdxj")) == set(urls)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.parquet", b"no table"),
        ("a.txt.gz", b"not packed"),
        ("a.txt.gz", gzip.compress(b"http://a.example/", mtime=0)[:-9]),
        ("a.warc.gz", b"no archive"),
        ("missing.txt", None),
    ],
)
def test_what_cannot_be_read_is_one_line(
    tmp_path: Path,
    name: str,
    content: bytes | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert run(monkeypatch, "crawl", "--seeds", tmp_path / name, "--job", tmp_path / "job") == 2
    assert str(tmp_path / name) in complaint(capsys)
    assert not (tmp_path / "job").exists()


def test_a_folder_that_is_no_job_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "crawl", "--seeds", tmp_path, "--job", tmp_path / "job") == 2
    assert "is no job to take home pages from" in complaint(capsys)
