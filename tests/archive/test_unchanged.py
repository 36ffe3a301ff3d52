"""Pages that a server says have not changed: revisit records, rows, lines, and reading them back."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from barkspider.archive import (
    ArchiveWriter,
    Fetched,
    Original,
    PageFacts,
    Stored,
    WarcFile,
    batches_of,
    open_table,
)
from barkspider.archive.captures import captures, read_capture, whole_response
from barkspider.archive.cdxj import index_lines, index_name
from barkspider.archive.records import frame
from barkspider.archive.verify import verify_archive
from barkspider.core.batch import NO_URLS
from barkspider.core.errors import StorageError
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.storage.env import Env

NOW = 1_800_000_000.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
PAGE = HEAD + b"some words " * 200


def test_a_page_that_has_not_changed_refers_to_what_it_was(tmp_path: Path) -> None:
    archive = ArchiveWriter(Env(), tmp_path, Settings(), {})
    url, answer = "http://a.com/page", b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n'
    before = Fetched(url, "192.0.2.1", b"GET /page", PAGE, "", NOW + 0.123457, 0.1)
    stored = archive.keep_page(before)
    row = UrlRow(7, 1, 1, 0, 0, 0, 0, url.encode())
    first = archive.describe_page(row, before, stored, "ok", PageFacts())
    asked = b'GET /page HTTP/1.1\r\nIf-None-Match: "v1"\r\n\r\n'
    now = Fetched(url, "192.0.2.1", asked, answer, "", NOW + 1000, 0.1)
    again = archive.keep_unchanged(now, _original(archive, tmp_path, stored), HEAD)
    second = archive.describe_page(row, now, again, "unchanged", PageFacts())
    archive.add(batches_of([first, second]), NO_URLS)
    archive.close()
    path = tmp_path / stored.file
    with path.open("rb") as stream:
        records = {
            record.rec_headers.get_header("WARC-Record-ID"): (record, record.content_stream().read())
            for record in ArchiveIterator(stream, check_digests="raise")
        }
    revisit, payload = records[again.record_id]
    header = revisit.rec_headers.get_header
    assert (revisit.rec_type, payload, revisit.http_headers.get_statuscode()) == ("revisit", b"", "200")
    assert header("WARC-Profile") == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert header("WARC-Refers-To-Target-URI") == url
    first = records[stored.record_id][0].rec_headers.get_header
    for mine, its in (("Refers-To-Date", "Date"), ("Refers-To", "Record-ID"), *[("Payload-Digest",) * 2]):
        assert header(f"WARC-{mine}") == first(f"WARC-{its}")
    # That it was a 304, and how the server said it, is in the metadata and in the table.
    (said,) = (block for record, block in records.values() if record.rec_type == "metadata")
    assert b'outcome: unchanged\r\nanswer: HTTP/1.1 304 Not Modified\r\nanswer: ETag: "v1"\r\n' in said
    pages = open_table(Env(), tmp_path, "pages").read().to_pylist()
    columns = ("fetch_status", "outcome", "revisit", "content_digest", "content_length", "content_mime_type")
    assert [pages[1][name] for name in columns] == [304, "unchanged", True, stored.digest, 0, "text/html"]
    assert pages[0]["fetch_time"].isoformat() + "Z" == first("WARC-Date")
    _, new = captures(Env(), tmp_path, url)
    assert (new["status"], new["mime"], new["digest"]) == ("200", "warc/revisit", stored.digest)
    # A reader gets what the page still is.
    assert whole_response(Env(), tmp_path, read_capture(Env(), tmp_path, new)) == PAGE
    assert list(verify_archive(Env(), tmp_path)) == []
    index = (tmp_path / index_name(stored.file)).read_bytes()
    assert index == b"".join(index_lines(Env(), path))


def test_an_unchanged_page_that_was_a_revisit_itself_refers_to_the_response(tmp_path: Path) -> None:
    archive = ArchiveWriter(Env(), tmp_path, Settings(), {})
    for number, url in enumerate(("http://a.com/", "http://b.com/")):
        fetched = Fetched(url, "192.0.2.1", b"GET /", PAGE, "", NOW + number, 0.1)
        stored = archive.keep_page(fetched)
    assert stored.revisit
    answer = b"HTTP/1.1 304 Not Modified\r\n\r\n"
    for _ in range(2):  # the second refers to what the first has found
        fetched = fetched._replace(response=answer, time=fetched.time + 9)
        stored = archive.keep_unchanged(fetched, _original(archive, tmp_path, stored), HEAD)
    archive.close()
    found = [read_capture(Env(), tmp_path, line) for line in captures(Env(), tmp_path, "http://b.com/")]
    assert [record.header["warc-refers-to-target-uri"] for record in found] == ["http://a.com/"] * 3
    assert [whole_response(Env(), tmp_path, record) for record in found] == [PAGE] * 3


def test_revisits_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """They have the header of the 304, and refer to the last answer of the same URL, a revisit or not."""
    record = "WARC-Type: {}\r\nWARC-Record-ID: <urn:uuid:{}>\r\nWARC-Target-URI: {}\r\nWARC-Date: {}\r\n"
    other = "WARC-Refers-To-Target-URI: {}\r\nWARC-Refers-To-Date: {}\r\nWARC-Profile: x/{}\r\n"
    a, b, times = "http://a.com/", "http://b.com/", [f"2027-01-0{day}T00:00:00Z" for day in range(1, 5)]
    same, unchanged = "identical-payload-digest", "server-not-modified"
    refused = b"HTTP/1.1 304 Not Modified\r\n\r\n"
    records = [
        frame(record.format("response", 1, a, times[0]), PAGE),
        frame(record.format("revisit", 2, b, times[1]) + other.format(a, times[0], same), HEAD),
        frame(record.format("revisit", 3, b, times[2]) + other.format(b, times[1], unchanged), refused),
        frame(record.format("revisit", 4, b, times[3]) + other.format(b, times[3], unchanged), refused),
    ]
    (tmp_path / "pages-0.warc.gz").write_bytes(b"".join(map(gzip.compress, records)))
    found = [read_capture(Env(), tmp_path, line) for line in captures(Env(), tmp_path, b)]
    assert [whole_response(Env(), tmp_path, each) for each in found[:2]] == [PAGE] * 2
    with pytest.raises(StorageError, match="which is not in"):  # it refers to itself
        whole_response(Env(), tmp_path, found[2])


def _original(archive: ArchiveWriter, folder: Path, stored: Stored) -> Original:
    archive.flush()
    with WarcFile.find(Env(), folder / stored.file) as file:
        return Original.of(file.header(stored.offset))
