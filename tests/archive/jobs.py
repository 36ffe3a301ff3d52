"""A small job, made without a crawl."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from barkspider.archive import ArchiveWriter, Fetched, PageFacts, batches_of
from barkspider.core.batch import UrlBatch
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.engine import Job
from barkspider.storage.env import Env
from barkspider.url import KeyMaker
from tests.archive.journalled import describe

NOW = 1_800_000_000.0
BODY = (
    "<title>Größe \x1b[31m</title><p>Some words, <b>all</b> of them.</p><script>no()</script>"
    + "<p>more" * 400
)
PAGES = {
    "http://a.example/": (b"Content-Type: text/html; charset=windows-1252\r\n", BODY.encode("windows-1252")),
    "http://b.example/": (b"Content-Type: text/html; charset=windows-1252\r\n", BODY.encode("windows-1252")),
    "http://a.example/packed": (
        b"Content-Type: text/html\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        gzip.compress("<title>P</title>été".encode(), mtime=0),
    ),
    "http://a.example/notes.txt": (b"Content-Type: text/plain\r\n", b"plain <b>text</b>"),
}


def make_job(folder: Path, close: bool = True) -> ArchiveWriter:
    """A job with four pages, one of them a revisit, and a page that was not found."""
    job = Job.create(folder, Settings(seed=7), ["http://a.example/"], Env())
    archive = ArchiveWriter(job.env, job.archive, job.settings, {})
    keys = KeyMaker(7)
    for number, (url, (head, body)) in enumerate([*PAGES.items(), ("http://a.example/none", (b"", b"gone"))]):
        status = b"404 Not Found" if url.endswith("none") else b"200 OK"
        if b"chunked" in head:
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        response = b"HTTP/1.1 %s\r\n%s\r\n%s" % (status, head, body)
        fetched = Fetched(url, "192.0.2.1", b"GET /", response, "", NOW + number, 0.1)
        row = UrlRow(keys.of(url), 1, 1, 0, 0, 0, 0, url.encode())
        found = [other.encode() for other in PAGES if other != url]
        domains = [keys.of(other.split(b"/")[2]) for other in found]
        links = UrlBatch.of(found, key=keys.column(found), host_key=domains, pld_key=domains, depth=1)
        facts = PageFacts("text/html", "utf-8", title=f"Page {number}", links=found if number < 2 else None)
        notes = describe(archive, row, fetched, "ok" if number < 4 else "http_404", facts)
        archive.add(batches_of(notes), links)
    archive.tick(0.0)
    if close:
        archive.close()
    job.close()
    return archive


def edges(indptr: np.ndarray, indices: np.ndarray, names: list[str]) -> set[tuple[str, str]]:
    """The edges of a graph in compressed sparse rows."""
    return {
        (names[row], names[column])
        for row in range(len(names))
        for column in indices[indptr[row] : indptr[row + 1]]
    }
