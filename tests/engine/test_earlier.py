"""Looking up what an archive holds of a page: the same as reading every index through."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from barkspider.archive import ArchiveWriter, Fetched, Original, PageFacts, Stored, WarcFile, batches_of
from barkspider.archive.captures import captures, read_capture
from barkspider.archive.records import payload_start
from barkspider.core.batch import NO_URLS
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.engine.earlier import Earlier, EarlierPages
from barkspider.fetch import Validators
from barkspider.storage.env import Env

NOW = 1_800_000_000.0
_FORMS = (
    "http://{}.example/",
    "http://{0}.example/a?q={0}",
    "https://x.example/{}",
    "http://x.example/{}",
    "http://long.example/" + "path/" * 600 + "{}",
)


def answer(body: str, *headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, "", body)).encode()


class Pages:
    """An archive that is written to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.time = folder, NOW
        self.open()

    def open(self) -> None:
        self.writer = ArchiveWriter(Env(), self.folder, Settings(), {})

    def keep(
        self, url: str, response: bytes, original: Original | None = None, truncated: str = ""
    ) -> Stored:
        self.time += 0.25  # several in a second, whose order the index does not tell
        fetched = Fetched(url, "192.0.2.1", b"GET /", response, truncated, self.time, 0.1)
        if original:
            head = read_capture(Env(), self.folder, captures(Env(), self.folder, url)[-1]).block
            stored = self.writer.keep_unchanged(fetched, original, head[: payload_start(head)])
        else:
            stored = self.writer.keep_page(fetched)
        row = UrlRow(1, 2, 3, 0, 0, 0, 0, url.encode())
        note = self.writer.describe_page(row, fetched, stored, "ok", PageFacts())
        self.writer.add(batches_of([note]), NO_URLS)
        self.writer.flush()
        return stored

    def original(self, stored: Stored) -> Original:
        with WarcFile.find(Env(), self.folder / stored.file) as file:
            return Original.of(file.header(stored.offset))

    def find(self, url: str) -> Earlier | None:
        earlier = EarlierPages(Env(), self.folder)
        try:
            return earlier.find(url)
        finally:
            earlier.close()


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    return Pages(tmp_path)


def test_every_page_of_an_archive_is_found_and_nothing_else(pages: Pages) -> None:
    random = Random(1)
    urls = sorted({random.choice(_FORMS).format(random.randrange(10**6)) for _ in range(300)})
    kept = random.sample(urls, 200)
    for number, url in enumerate(kept):
        pages.keep(url, answer(f"page {number}", f'ETag: "{number}"'))
        if number == 100:
            pages.writer.close()
            pages.open()
    pages.writer.close()
    earlier = EarlierPages(Env(), pages.folder)
    for url in urls:
        found = earlier.find(url)
        if url not in kept:
            assert found is None
            continue
        assert found is not None
        assert found.validators == Validators(f'"{kept.index(url)}"', "")
        (capture,) = captures(Env(), pages.folder, url)
        record = read_capture(Env(), pages.folder, capture)
        assert found.original.record_id == record.header["warc-record-id"]
    earlier.close()


def test_the_newest_page_counts_whatever_came_behind_it(pages: Pages) -> None:
    url = "http://a.example/"
    pages.keep(url, answer("one", 'ETag: "1"'))
    head = ('etag: "2"', "Last-Modified: Mon, 05 Jan 2026 08:00:00 GMT")
    newest = pages.original(pages.keep(url, answer("two", *head)))
    pages.keep(url, answer("", 'ETag: "3"', status="304 Not Modified"), newest)
    pages.keep(url, answer("sorry", 'ETag: "4"', status="503 Service Unavailable"))
    pages.writer.close()
    validators = Validators('"2"', "Mon, 05 Jan 2026 08:00:00 GMT")
    assert pages.find(url) == Earlier(validators, newest, answer("", *head))


def test_what_is_the_same_as_another_page_has_a_version_of_its_own(pages: Pages) -> None:
    first = pages.original(pages.keep("http://a.example/", answer("same " * 500, 'ETag: "a"')))
    assert pages.keep("http://b.example/", answer("same " * 500, 'ETag: "b"')).revisit
    pages.writer.close()
    expected = Earlier(Validators('"b"', ""), first, answer("", 'ETag: "b"'))
    assert pages.find("http://b.example/") == expected


def test_what_has_no_version_is_found_too_but_not_what_is_not_whole_or_was_moved_away(pages: Pages) -> None:
    first = pages.original(pages.keep("http://a.example/", answer("page")))
    pages.keep("http://b.example/", answer("page", 'ETag: "b"'), truncated="length")
    pages.writer.close()
    assert pages.find("http://a.example/") == Earlier(Validators("", ""), first, answer(""))
    assert pages.find("http://b.example/") is None
    for path in pages.folder.glob("*.warc.gz"):
        path.unlink()
    assert pages.find("http://a.example/") is None


@pytest.mark.parametrize("stale", [b"", None])
def test_an_index_that_is_missing_or_not_complete_is_made(pages: Pages, stale: bytes | None) -> None:
    pages.keep("http://a.example/", answer("page", 'ETag: "a"'))
    pages.writer.close()
    index = pages.folder / "index.cdxj"
    whole = index.read_bytes()
    index.unlink() if stale is None else index.write_bytes(stale)
    assert pages.find("http://a.example/") is not None
    assert index.read_bytes() == whole


def test_in_an_archive_without_pages_nothing_is_found(pages: Pages) -> None:
    pages.writer.close()
    assert pages.find("http://a.example/") is None
