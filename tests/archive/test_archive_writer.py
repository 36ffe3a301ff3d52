"""The archive as a whole: what the engine tells it, and what SQL and other tools then see."""

from __future__ import annotations

import threading
from gzip import compress
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.archive import (
    ArchiveWriter,
    Fetched,
    PageFacts,
    WarcFile,
    batches_of,
    decode_batch,
    encode_batch,
    error_note,
    open_table,
    warc_files,
)
from barkspider.archive.duplicates import find_duplicates
from barkspider.archive.notes import schema_of
from barkspider.archive.records import base_32
from barkspider.archive.views import ask
from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.errors import StorageError, UsageError
from barkspider.core.load import replace
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from barkspider.url import KeyMaker
from tests.archive.journalled import describe
from tests.storage.faulty import FaultyEnv

NOW = 1_800_000_000.0
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + b"some words " * 200
KEYS = KeyMaker(7)


def links_to(*urls: str) -> UrlBatch:
    texts = [url.encode() for url in urls]
    domains = [KEYS.of(".".join(url.split("/")[2].split(".")[-2:])) for url in urls]
    return UrlBatch.of(texts, key=KEYS.column(texts), host_key=domains, pld_key=domains, depth=1)


def open_archive(folder: Path, env: Env | None = None, **chosen: Any) -> ArchiveWriter:
    settings_ = replace(Settings(), {f"archive.{name}": value for name, value in chosen.items()})
    return ArchiveWriter(env or Env(), folder, settings_, {})


def keep(
    archive: ArchiveWriter, url: str, body: bytes, *links: str, number: int = 0, **chosen: Any
) -> UrlRow:
    response = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    fetched = Fetched(url, "192.0.2.1", b"GET /", response, "", NOW + number, 0.25, {"connect": 0.25})
    row = UrlRow(KEYS.of(url), 1, 1, 2, 1, 0, 0, url.encode())
    urls = [link.encode() for link in links] or None
    facts = PageFacts("text/html", "utf-8", title="A title", body_cut=True, links=urls)
    notes = describe(archive, row, fetched, "ok", facts, **chosen)
    archive.add(batches_of(notes), links_to(*links))
    return row


def test_every_column_of_a_page_is_filled_in(tmp_path: Path) -> None:
    archive = open_archive(tmp_path)
    row = keep(archive, "https://www.example.co.uk:8443/a/B?x=1", b"hello", "http://b.example.org/")
    archive.close()
    (page,) = open_table(Env(), tmp_path, "pages").read().to_pylist()
    (warc,) = tmp_path.glob("pages-*.warc.gz")
    with WarcFile(Env(), warc) as file:
        record = file.record(page["warc_record_offset"])
    assert record.end - record.offset == page.pop("warc_record_length")
    assert record.header["warc-payload-digest"] == f"sha1:{page.pop('content_digest')}"
    assert record.offset == page.pop("warc_record_offset")
    assert page.pop("fetch_time").isoformat() == "2027-01-15T08:00:00"
    assert page == {
        "key": row.key,
        "url": "https://www.example.co.uk:8443/a/B?x=1",
        "url_surtkey": "uk,co,example:8443)/a/b?x=1",
        "url_protocol": "https",
        "url_host_name": "www.example.co.uk",
        "url_host_registered_domain": "example.co.uk",
        "url_host_tld": "uk",
        "url_port": 8443,
        "url_path": "/a/B",
        "url_query": "x=1",
        "fetch_seconds": 0.25,
        "fetch_status": 200,
        "fetch_redirect": None,
        "outcome": "ok",
        "content_length": 5,
        "content_mime_type": "text/html",
        "content_truncated": None,
        "warc_filename": warc.name,
        "content_mime_detected": "text/html",
        "content_charset": "utf-8",
        "content_languages": None,
        "revisit": False,
        "parent": None,
        "depth": 2,
        "hops": 1,
        "tries": 0,
        "links": 1,
        "links_cut": False,
        "body_cut": True,
        "title": "A title",
        "description": None,
        "simhash": None,
        "content_decoded_digest": None,
        "fetch_repaired": None,
        "fetch_address": "192.0.2.1",
    }


def test_rows_wait_for_their_notes_to_come_back_and_may_come_from_another_writer(tmp_path: Path) -> None:
    archive, other = open_archive(tmp_path / "one"), open_archive(tmp_path / "two")
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    url, links = "http://a.com/", links_to("http://b.org/", "http://c.net/")
    fetched = Fetched(url, "192.0.2.1", b"GET /", PAGE, "", NOW, 0.1)
    facts = PageFacts(title='half \ud800, "ü" \x00', links=links.url.tolist())
    assert archive.warc_ends()["pages"] == ("", 0)
    row = UrlRow(2**64 - 1, 1, 1, 0, 0, 0, 0, url.encode(), parent=2**63)
    notes = describe(archive, row, fetched, "ok", facts, anchors=[None, "C’s \ud800"])
    file, offset, length = (
        notes[0].value(f"warc_{name}") for name in ("filename", "record_offset", "record_length")
    )
    assert archive.warc_ends() == {"pages": (file, offset + length), "robots": ("", 0)}
    assert archive.prepare()()["tables"] == dict.fromkeys(
        ("pages", "robots", "errors", "listings", "batches", "decisions", "links"), -1
    )
    written = {name: encode_batch(batch) for name, batch in batches_of(notes).items()}
    other.add({name: decode_batch(data, schema_of(name)) for name, data in written.items()}, links)
    assert other.prepare()()["tables"] == {
        "pages": 0,
        "robots": -1,
        "errors": -1,
        "listings": -1,
        "batches": -1,
        "decisions": -1,
        "links": 0,
    }
    (page,) = open_table(Env(), tmp_path / "two", "pages").read().to_pylist()
    assert (page["key"], page["parent"], page["title"]) == (2**64 - 1, 2**63, 'half ?, "ü" \x00')
    found = open_table(Env(), tmp_path / "two", "links").read().to_pylist()
    assert [row["anchor"] for row in found] == [None, "C’s ?"]
    assert {row["source"] for row in found} == {2**64 - 1}
    archive.close()
    assert archive.warc_ends()["pages"] == (file, offset + length)


def test_robots_and_errors_have_tables_of_their_own(tmp_path: Path) -> None:
    archive = open_archive(tmp_path)
    moved = Fetched(
        "http://a.example/robots.txt", "192.0.2.1", b"GET", b"HTTP/1.1 301 Moved\r\n\r\n", "", NOW, 0.1
    )
    notes = [
        archive.keep_robots("http://a.example", moved, "redirect", "/other.txt"),
        error_note(NOW, "page", "timeout_connect", "b.example", "http://b.example/", 9, 2),
        error_note(NOW, "dns", "dns_no_name", "c.example"),
    ]
    archive.add(batches_of(notes), NO_URLS)
    archive.close()
    (robots,) = ask(
        Env(), [tmp_path], "SELECT origin, fetch_status, fetch_redirect, outcome, warc_filename FROM robots"
    ).to_pylist()
    assert robots.pop("warc_filename").startswith("robots-")
    assert list(robots.values()) == ["http://a.example", 301, "/other.txt", "redirect"]
    errors = ask(Env(), [tmp_path], "SELECT what, outcome, url, key, tries FROM errors").to_pylist()
    assert [tuple(row.values()) for row in errors] == [
        ("page", "timeout_connect", "http://b.example/", 9, 2),
        ("dns", "dns_no_name", None, None, 0),
    ]


def test_domains_follow_from_pages_and_links(tmp_path: Path) -> None:
    archive = open_archive(tmp_path)
    keep(
        archive,
        "http://www.a.com/",
        b"1",
        "http://b.org/",
        "http://x.b.org/2",
        "http://c.net/",
        "http://a.com/z",
    )
    keep(archive, "http://a.com/z", b"222", "http://b.org/", number=60)
    keep(archive, "http://b.org/", b"33")
    archive.close()
    found = ask(Env(), [tmp_path], "SELECT * FROM domains ORDER BY domain").to_pylist()
    plain = [{name: value for name, value in row.items() if "time" not in name} for row in found]
    names = ("domain", "pages", "bytes", "hosts", "links_out", "links_in", "domains_out", "domains_in")
    assert [tuple(row[name] for name in names) for row in plain] == [
        ("a.com", 2, 4, 2, 4, 0, 2, 0),
        ("b.org", 1, 2, 1, 0, 3, 0, 1),
        ("c.net", 0, 0, 0, 0, 1, 0, 1),
    ]
    assert str(found[0]["last_time"] - found[0]["first_time"]) == "0:01:00"
    (file,) = (tmp_path / "tables" / "domains").iterdir()
    assert sorted(pq.read_table(file).to_pylist(), key=lambda row: row["domain"]) == found


def test_links_and_metadata_can_be_switched(tmp_path: Path) -> None:
    archive = open_archive(tmp_path, links=False, metadata=True)
    keep(archive, "http://a.com/", b"1", "http://b.org/")
    archive.close()
    assert ask(Env(), [tmp_path], "SELECT count(*) AS n FROM links").to_pylist() == [{"n": 0}]
    (warc,) = tmp_path.glob("pages-*.warc.gz")
    with WarcFile(Env(), warc) as file:
        *_, metadata = file
    assert metadata.kind == "metadata"
    assert metadata.block == (
        b"hopsFromSeed: LLR\r\nfetchTimeMs: 250\r\nfetchPhasesMs: connect=250.0\r\noutcome: ok\r\n"
        b"outlink: http://b.org/\r\n"
    )


@pytest.mark.parametrize(
    ("flags", "way"),
    [
        (Flag.REDIRECT, b"LLR"),
        (Flag.REQUISITE, b"LLEE"),
        (Flag.REQUISITE | Flag.REDIRECT, b"LLER"),
        (Flag.SEED, b"LLR"),
    ],
)
def test_metadata_says_what_led_to_a_page(tmp_path: Path, flags: Flag, way: bytes) -> None:
    archive = open_archive(tmp_path, metadata=True)
    fetched = Fetched("http://a.com/", "192.0.2.1", b"GET /", b"HTTP/1.1 200 OK\r\n\r\n", "", 1e9, 0.1)
    row = UrlRow(1, 2, 3, 2, 1, 0, int(flags), b"http://a.com/")
    archive.describe_page(row, fetched, archive.keep_page(fetched), "ok", PageFacts())
    archive.close()
    (warc,) = tmp_path.glob("pages-*.warc.gz")
    with WarcFile(Env(), warc) as file:
        *_, metadata = file
    assert metadata.block.startswith(b"hopsFromSeed: " + way + b"\r\n")


def test_what_could_not_be_synced_ends_all_writing() -> None:
    env = FaultyEnv()
    env.make_folder(Path("/a"))
    archive = open_archive(Path("/a"), env, sync_interval="10s", duplicates=False)
    keep(archive, "http://a.com/", b"1")
    archive.tick(0.0)
    env.kinds["sync"] = "EIO"
    archive.tick(10.0)
    archive._pool.submit(int).result()
    env.kinds.clear()
    with pytest.raises(StorageError, match="cannot sync"):
        archive.flush()


def test_what_is_due_is_synced_and_written(tmp_path: Path) -> None:
    env = FaultyEnv()
    env.make_folder(Path("/a"))
    archive = open_archive(Path("/a"), env, sync_interval="10s", table_interval="60s", duplicates=False)
    keep(archive, "http://a.com/", b"1")

    def syncs() -> int:
        return sum(operation.kind == "sync" and "warc" in operation.path.name for operation in env.operations)

    for now, expected in ((100.0, 0), (109.0, 0), (110.0, 1), (119.0, 1), (125.0, 2)):
        archive.tick(now)
        archive._pool.submit(int).result()  # the thread has done all before
        assert syncs() == expected
    assert open_table(env, Path("/a"), "pages").parts() == []
    archive.tick(160.0)
    archive.prepare()()
    assert open_table(env, Path("/a"), "pages").read()["url"].to_pylist() == ["http://a.com/"]
    never = open_archive(Path("/b"), env, sync_interval="0s")
    env.make_folder(Path("/b"))
    before = syncs()
    keep(never, "http://a.com/", b"1")
    for now in (1.0, 1000.0):
        never.tick(now)
    assert syncs() == before


def test_a_disk_that_refuses_is_said_and_the_rest_is_kept() -> None:
    env = FaultyEnv()
    env.make_folder(Path("/a"))
    archive = open_archive(Path("/a"), env, duplicates=False)
    keep(archive, "http://a.com/", b"1")
    env.kinds["rename"] = "EIO"
    with pytest.raises(StorageError, match="cannot rename"):
        archive.close()
    env.kinds.clear()
    (warc,) = warc_files(env, Path("/a"))
    with WarcFile(env, warc) as file:
        assert [record.kind for record in file] == ["warcinfo", "request", "response"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM pages", "nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT 1; SELECT 2", "only one SELECT"),
        ("", "only one SELECT"),
        ("COPY (SELECT 1) TO 'x.csv'", "only one SELECT"),
        ("CREATE TABLE t (a INT)", "only one SELECT"),
        ("ATTACH 'x.db'", "only one SELECT"),
        ("SET enable_external_access = true", "only one SELECT"),
        ("SELECT * FROM read_text('/etc/hostname')", "disabled"),
        ("SELECT * FROM '/etc/hostname'", "nowhere|disabled|not exist"),
        ("SELECT * FROM glob('/*')", "disabled"),
    ],
)
def test_a_question_cannot_do_more_than_read_the_tables(sql: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message) as error:
        ask(Env(), [tmp_path], sql)
    assert "\n" not in str(error.value)


def test_a_quote_in_the_name_of_the_folder_is_part_of_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "it's; DROP TABLE pages"
    folder.mkdir()
    archive = open_archive(folder)
    keep(archive, "http://a.com/", b"1")
    archive.close()
    assert ask(Env(), [folder], "SELECT url FROM pages").to_pylist() == [{"url": "http://a.com/"}]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(4, 9))
def test_duplicates_are_all_found_whatever_the_batches(bodies: list[int], step: int) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        first: dict[int, int] = {}
        expected = {}
        for start in range(0, len(bodies), step):
            archive = open_archive(folder, duplicates=False, recent_digests=0)
            for number, body in list(enumerate(bodies))[start : start + step]:
                row = keep(archive, f"http://a.com/{number}", b"x" * body, number=number)
                if body in first:
                    expected[row.key] = first[body]
                first.setdefault(body, row.key)
            archive.prepare()()
            find_duplicates(Env(), folder)
        pages = ask(Env(), [folder], "SELECT key, duplicate_of FROM pages").to_pylist()
        assert {row["key"]: row["duplicate_of"] for row in pages if row["duplicate_of"]} == expected
        assert len(pages) == len(bodies)


def test_a_page_that_is_sent_in_another_way_is_the_same_page(tmp_path: Path) -> None:
    archive = open_archive(tmp_path)
    body = b"The same page. " * 100
    sent = (
        b"\r\n" + body,
        b"Content-Encoding: gzip\r\n\r\n" + compress(body, 1),
        b"Content-Encoding: gzip\r\n\r\n" + compress(body, 9),
    )
    for number, rest in enumerate(sent):
        url = f"http://a.example/{number}"
        fetched = Fetched(url, "192.0.2.1", b"GET /", b"HTTP/1.1 200 OK\r\n" + rest, "", NOW + number, 0.25)
        row = UrlRow(KEYS.of(url), 1, 1, 0, 0, 0, 0, url.encode())
        facts = PageFacts(sha1=sha1(body).digest() if number else b"")
        archive.add(batches_of(describe(archive, row, fetched, "ok", facts)), links_to())
    archive.close()
    pages = open_table(Env(), tmp_path, "pages").read()
    assert len(set(pages["content_digest"].to_pylist())) == 3
    assert set(pages["content_decoded_digest"].to_pylist()) == {base_32(sha1(body).digest())}
    found = open_table(Env(), tmp_path, "duplicates").read().to_pylist()
    first, *others = pages["key"].to_pylist()
    assert sorted(row["key"] for row in found) == sorted(others)
    assert {row["duplicate_of"] for row in found} == {first}


def test_duplicates_survive_a_crash_before_their_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = open_archive(tmp_path, duplicates=False, recent_digests=0)
    keys = [keep(archive, f"http://a.com/{number}", b"same", number=number).key for number in range(3)]
    archive.prepare()()

    def crash(_: Store) -> None:
        raise StorageError("power loss")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "commit", crash)
        with pytest.raises(StorageError, match="power loss"):
            find_duplicates(Env(), tmp_path)
    assert find_duplicates(Env(), tmp_path) == 2
    assert find_duplicates(Env(), tmp_path) == 0
    pages = ask(Env(), [tmp_path], "SELECT duplicate_of FROM pages ORDER BY fetch_time").to_pylist()
    assert [row["duplicate_of"] for row in pages] == [None, keys[0], keys[0]]


def test_a_reader_beside_a_writer_sees_every_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barkspider.archive.tables._MANY", 4)
    archive = open_archive(tmp_path, duplicates=False)
    done = threading.Event()
    seen: list[list[int]] = []

    def watch() -> None:
        while not done.is_set():
            seen.append(
                [row["depth"] for row in ask(Env(), [tmp_path], "SELECT depth FROM pages").to_pylist()]
            )

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for number in range(24):
            keep(archive, f"http://a.com/{number}", b"1", number=number)
            archive.prepare()()
            archive.committed()
    finally:
        done.set()
        watcher.join()
    archive.close()
    counts = [len(rows) for rows in seen]
    assert counts == sorted(counts)
    assert ask(
        Env(), [tmp_path], "SELECT count(DISTINCT url) AS n, count(*) AS m FROM pages"
    ).to_pylist() == [{"n": 24, "m": 24}]
