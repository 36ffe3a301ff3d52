"""Pages that a server says have not changed: revisit records, rows, lines, and reading them back."""

from __future__ import annotations

from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from barkspider.archive import ArchiveWriter, Facts, Fetched, Original, batches_of, open_table
from barkspider.archive.captures import captures, read_capture, whole_response
from barkspider.archive.cdxj import index_lines, index_name
from barkspider.archive.verify import verify_archive
from barkspider.core.batch import NO_URLS
from barkspider.core.errors import StorageError
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.storage.env import Env

NOW = 1_800_000_000.0
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + b"some words " * 200


@pytest.mark.parametrize("known", [True, False])
def test_a_page_that_has_not_changed_refers_to_what_it_was(tmp_path: Path, known: bool) -> None:
    archive = ArchiveWriter(Env(), tmp_path, Settings(), {})
    url, answer = "http://a.com/page", b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n'
    before = Fetched(url, "192.0.2.1", b"GET /page", PAGE, "", NOW + 0.123457, 0.1)
    stored = archive.keep_page(before)
    row = UrlRow(7, 1, 1, 0, 0, 0, 0, url.encode())
    first = archive.describe_page(row, before, stored, "ok", Facts())
    asked = b'GET /page HTTP/1.1\r\nIf-None-Match: "v1"\r\n\r\n'
    now = Fetched(url, "192.0.2.1", asked, answer, "", NOW + 1000, 0.1)
    original = Original(before.time, stored.digest, stored.record_id) if known else Original(before.time)
    again = archive.keep_unchanged(now, original)
    second = archive.describe_page(row, now, again, "unchanged", Facts())
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
    assert (revisit.rec_type, payload, revisit.http_headers.get_statuscode()) == ("revisit", b"", "304")
    assert header("WARC-Profile") == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert header("WARC-Refers-To-Target-URI") == url
    first = records[stored.record_id][0].rec_headers.get_header
    assert header("WARC-Refers-To-Date") == first("WARC-Date")
    assert header("WARC-Refers-To") == (first("WARC-Record-ID") if known else None)
    assert header("WARC-Payload-Digest") == (first("WARC-Payload-Digest") if known else None)
    digest = stored.digest if known else None
    _, new = captures(Env(), tmp_path, url)
    assert (new["status"], new["mime"], new.get("digest")) == ("304", "warc/revisit", digest)
    pages = open_table(Env(), tmp_path, "pages").read().to_pylist()
    columns = ("fetch_status", "outcome", "revisit", "content_digest", "content_length")
    assert [pages[1][name] for name in columns] == [304, "unchanged", True, digest, 0]
    assert pages[0]["fetch_time"].isoformat() + "Z" == first("WARC-Date")
    # A reader gets what the page still is.
    assert whole_response(Env(), tmp_path, read_capture(Env(), tmp_path, new)) == PAGE
    assert list(verify_archive(Env(), tmp_path)) == []
    index = (tmp_path / index_name(stored.file)).read_bytes()
    assert index == b"".join(index_lines(Env(), path))


def test_an_unchanged_page_that_was_a_revisit_itself_is_found(tmp_path: Path) -> None:
    archive = ArchiveWriter(Env(), tmp_path, Settings(), {})
    for number, url in enumerate(("http://a.com/", "http://b.com/")):
        fetched = Fetched(url, "192.0.2.1", b"GET /", PAGE, "", NOW + number, 0.1)
        stored = archive.keep_page(fetched)
    assert stored.revisit
    answer = b"HTTP/1.1 304 Not Modified\r\n\r\n"
    archive.keep_unchanged(fetched._replace(response=answer, time=NOW + 9), Original(NOW + 1, stored.digest))
    archive.keep_unchanged(
        fetched._replace(response=answer, time=NOW + 10), Original(NOW + 10, stored.digest)
    )
    archive.close()
    found = [read_capture(Env(), tmp_path, line) for line in captures(Env(), tmp_path, "http://b.com/")]
    assert whole_response(Env(), tmp_path, found[1]) == PAGE
    with pytest.raises(StorageError, match="which is not in"):  # it refers to itself
        whole_response(Env(), tmp_path, found[2])
