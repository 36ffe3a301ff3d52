"""Checking an archive: one in order has no problems, and whatever is wrong with one is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barkspider.archive import open_table, warc_files
from barkspider.archive.cdxj import INDEX
from barkspider.archive.verify import Checked, verify_archive
from barkspider.storage.env import Env
from barkspider.storage.store.verify import Fault
from tests.archive.journalled import Crawl

CHOSEN = {"warc_size": "2KB", "revisit_size": "1B", "duplicates": False}


def archive(folder: Path, **chosen: object) -> Path:
    """A closed archive of several files, with revisits."""
    crawl = Crawl(Env(), folder, **{**CHOSEN, **chosen})
    for number in range(8):
        crawl.page(number % 6)
        if number % 4 == 0:
            crawl.robots(number)
        crawl.error(number)
    crawl.close()
    return crawl.archive_folder


def problems(folder: Path) -> list[Fault]:
    return list(verify_archive(Env(), folder))


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_an_archive_in_order_has_no_problems(tmp_path: Path, compression: str) -> None:
    folder, checked = archive(tmp_path, compression=compression), Checked()
    assert list(verify_archive(Env(), folder, checked)) == []
    warcs = len(warc_files(Env(), folder))
    tables = ("pages", "robots", "errors", "links", "domains")
    rows = sum(open_table(Env(), folder, name).read().num_rows for name in tables)
    assert checked == Checked(warcs + len(tables), warcs + 2 * 10, 2 * 10, rows)


def first(folder: Path, pattern: str) -> Path:
    return min(folder.glob(pattern))


def change(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def swap_bytes(folder: Path) -> None:
    path = first(folder, "pages-*.warc.gz")
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)


def exchange_tables(folder: Path) -> None:
    (folder / "tables" / "pages").rename(folder / "tables" / "other")
    (folder / "tables" / "robots").rename(folder / "tables" / "pages")


def shift_records(folder: Path) -> None:
    one, two = sorted(folder.glob("pages-*.warc.gz"))[:2]
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)


DAMAGES: list[tuple[Callable[[Path], object], str, str]] = [
    (swap_bytes, "damage", "there is no whole record at byte"),
    (shift_records, "damage", "there is no answer of http://a.example/"),
    (
        lambda folder: change(first(folder, "pages-*.cdxj"), b'"offset": "', b'"offset": "1'),
        "damage",
        "points to no such record",
    ),
    (
        lambda folder: first(folder, "pages-*.cdxj").write_bytes(b""),
        "damage",
        "the line example,a)/0 20270115080000 is missing",
    ),
    (lambda folder: first(folder, "pages-*.cdxj").unlink(), "recoverable", "has no index yet"),
    (lambda folder: change(folder / INDEX, b"200", b"201"), "damage", "is in no other index"),
    (lambda folder: (folder / INDEX).write_bytes(b""), "note", "lacks 10 lines"),
    (lambda folder: first(folder, "pages-*.warc.gz").unlink(), "note", "which was moved away"),
    (
        lambda folder: first(folder, "robots-*.warc.gz").rename(first(folder, "pages-*.warc.gz")),
        "damage",
        "no answer of",
    ),
    (
        lambda folder: first(folder, "pages-*.warc.gz").rename(folder / "pages-20270115080000-00001.warc.gz"),
        "damage",
        "has the same number as",
    ),
    (lambda folder: (folder / "x.cdxj.new").touch(), "recoverable", "was left half written"),
    (
        lambda folder: first(folder, "tables/pages/*").write_bytes(b"PAR1 and no more PAR1"),
        "damage",
        "is damaged: ",
    ),
    (
        lambda folder: first(folder, "tables/links/*").rename(folder / "tables/links/000004-000005.parquet"),
        "damage",
        "the writes 0 to 3 before it are missing",
    ),
    (
        lambda folder: (folder / "tables/links/000000-000009.parquet.new").touch(),
        "note",
        "does not count",
    ),
    (exchange_tables, "damage", "has other columns"),
]


@pytest.mark.parametrize(("damage", "kind", "what"), DAMAGES)
def test_what_is_wrong_is_said(
    tmp_path: Path, damage: Callable[[Path], object], kind: str, what: str
) -> None:
    folder = archive(tmp_path)
    damage(folder)
    assert any(problem.kind == kind and what in problem.what for problem in problems(folder))


def test_overlapping_writes_are_said(tmp_path: Path) -> None:
    folder = archive(tmp_path)
    (name,) = (folder / "tables" / "errors").iterdir()
    name.with_name("000000-000003.parquet").write_bytes(name.read_bytes())
    name.with_name("000002-000004.parquet").write_bytes(name.read_bytes())
    (found,) = [problem for problem in problems(folder) if problem.kind == "damage"]
    assert found == (
        "damage",
        "errors/000002-000004.parquet",
        "holds rows that 000000-000003.parquet holds too",
    )


def test_a_torn_tail_of_an_open_file_is_recoverable_and_recovery_mends_it(tmp_path: Path) -> None:
    crawl = Crawl(Env(), tmp_path, **CHOSEN)
    crawl.page(1)
    crawl.apply()
    crawl.store.commit()
    (warc,) = warc_files(Env(), crawl.archive_folder)
    assert problems(crawl.archive_folder) == []
    with warc.open("ab") as file:
        file.write(b"\x1f\x8b torn")
    (found,) = problems(crawl.archive_folder)
    assert (found.kind, found.file) == ("recoverable", warc.name)
    assert found.what.endswith("; 7 bytes were not read")
    Crawl(Env(), tmp_path, crawl.journal, **CHOSEN)
    assert problems(crawl.archive_folder) == []


def test_a_wrong_digest_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("barkspider.archive.warc.digest", lambda _: bytes(20))
        folder = archive(tmp_path, revisit_size="1MB")
    found = problems(folder)
    assert len(found) == 10
    assert {problem.what.split(" of ")[0] for problem in found} == {"the payload digest"}
