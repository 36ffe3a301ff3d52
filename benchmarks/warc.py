"""WARC files: MB of page content per CPU-second, ours beside warcio and fastwarc, and the sizes of the files.

Every writer stores a request and a response record of each page, with block and payload digests, packed one
by one. warcio packs at level 9, fastwarc at level 9 unless told otherwise, and at 1 for comparison. Ours also
looks each payload up among the recent ones and writes the sorted CDXJ index. `synthetic` are pages of 25 KB of
the synthetic web, `real` those that readers saved (where that folder of data is there). Then what the tables
cost: a row of `pages`, a link, and merging the indexes of ten files. `encoded` are the synthetic pages as servers send
them, packed by gzip: the record of one as it is written, with the payload as it came, beside the same record packed by
ISA-L as a whole; and the whole exchange.
"""

from __future__ import annotations

import gc
import gzip
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from isal import igzip_lib

from barkspider.archive import ArchiveWriter, Fetched, PageFacts, WarcWriter, batches_of, encode_batch
from barkspider.archive.cdxj import merge
from barkspider.archive.notes import located
from barkspider.archive.packing import Gzip
from barkspider.archive.records import END, header, micros, payload_start, warc_date
from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.records import UrlRow
from barkspider.core.settings import Archive, Settings
from barkspider.lab.synthweb import Web, WebSpec
from barkspider.storage.env import Env
from barkspider.url import KeyMaker

_REAL = Path(__file__).parents[2] / "shared" / "data" / "html" / "real-pages.zip"
_NOW = 1_800_000_000.0
_HARVEST = 80  # pages, as in a fast crawl; divides the number of rows
_Page = tuple[str, bytes, bytes]  # URL, request, response
_Writer = Callable[[Sequence[_Page], Path], None]


def run(quick: bool) -> dict[str, Any]:
    """See the module."""
    count = 2_000
    figures: dict[str, Any] = {}
    workloads = {"synthetic": _synthetic(count), "real": _real(count * 25_000)}
    for name, pages in workloads.items():
        for writer, write in _WRITERS.items():
            # The best of several short rounds, so that others at work on the machine count for less.
            ours = writer.startswith("barkspider")
            rounds = (8 if ours else 1) if quick else (20 if ours else 3)
            speed, ratio = _measure(write, pages, rounds) if pages else (None, None)
            figures[f"{name}_{writer}_mb_per_cpu_second"] = speed
            figures[f"{name}_{writer}_size_ratio"] = ratio
    figures |= _tables(workloads["synthetic"], 5 if quick else 20)
    figures |= _index(10_000 if quick else 100_000)
    figures |= _encoded(workloads["synthetic"], 8 if quick else 20)
    speeds = {name: figures[f"{name}_barkspider_mb_per_cpu_second"] for name in workloads}
    targets = [
        _target("MB per CPU-second, synthetic", speeds["synthetic"], 150.0),
        _target("MB per CPU-second, real pages", speeds["real"], 150.0),
        _target("µs of CPU for the note of a page", figures["page_note_us"], 10.0, most=True),
        _target("µs of CPU for a row of pages", figures["page_row_us"], 10.0, most=True),
        _target(
            "time of a record of an encoded page by that of ISA-L",
            figures["encoded_time_ratio"],
            0.8,
            most=True,
        ),
        _target(
            "size of a record of an encoded page by that of ISA-L",
            figures["encoded_size_ratio"],
            1.0,
            most=True,
        ),
        _target(
            "µs of CPU for the exchange of an encoded page", figures["encoded_exchange_us"], 60.0, most=True
        ),
    ]
    for name in workloads:
        for peer in ("warcio", "fastwarc", "fastwarc_level_1"):
            theirs = figures[f"{name}_{peer}_mb_per_cpu_second"]
            figures[f"{name}_times_{peer}"] = round(speeds[name] / theirs, 2) if theirs else None
    return {"figures": figures, "targets": targets}


def _target(name: str, value: float | None, target: float, most: bool = False) -> dict[str, Any]:
    holds = None if value is None else value <= target if most else value >= target
    return {"name": name, "value": value, "target": target, "holds": holds}


def _synthetic(count: int) -> list[_Page]:
    web = Web(WebSpec(seed=1, pages=100_000, page_bytes=25_000))
    return [_page(url, web.page(url).body) for url in web.urls(np.arange(count))]


def _real(size: int) -> list[_Page]:
    """Real pages, again and again up to `size` bytes, each time a little different so that none is a repeat."""
    if not _REAL.exists():
        return []
    with zipfile.ZipFile(_REAL) as saved:
        bodies = [saved.read(name) for name in saved.namelist() if name.endswith(".html")]
    pages: list[_Page] = []
    while size > 0:
        body = bodies[len(pages) % len(bodies)] + b"<!-- %d -->" % len(pages)
        pages.append(_page(f"http://example.com/{len(pages)}.html", body))
        size -= len(body)
    return pages


def _page(url: str, body: bytes) -> _Page:
    host = url.split("/")[2]
    request = f"GET / HTTP/1.1\r\nHost: {host}\r\nUser-Agent: barkspider/0.1\r\nAccept: text/html\r\n\r\n"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
    return url, request.encode(), head.encode() + body


def _measure(write: _Writer, pages: Sequence[_Page], rounds: int) -> tuple[float, float]:
    """The best of the rounds, and bytes of files per byte of content."""
    content = sum(len(response) for _, _, response in pages)
    best, stored = 0.0, 0
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            before = time.process_time()
            write(pages, Path(folder))
            best = max(best, content / (time.process_time() - before) / 1e6)
            stored = sum(path.stat().st_size for path in Path(folder).glob("*.warc*"))
    return round(best, 1), round(stored / content, 4)


def _barkspider(compression: str) -> _Writer:
    def write(pages: Sequence[_Page], folder: Path) -> None:
        writer = WarcWriter(Env(), folder, "bench", Archive(compression=compression), {})
        for url, request, response in pages:
            writer.write_exchange(url, request, response, "192.0.2.1", _NOW)
        writer.close()

    return write


def _warcio(pages: Sequence[_Page], folder: Path) -> None:
    from warcio.statusandheaders import StatusAndHeadersParser
    from warcio.warcwriter import WARCWriter

    with (folder / "bench.warc.gz").open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="1.1")
        for url, request, response in pages:
            asked, answered = BytesIO(request), BytesIO(response)
            # Its writer wants the HTTP header apart from the rest.
            answer = writer.create_warc_record(
                url,
                "response",
                payload=answered,
                http_headers=StatusAndHeadersParser(["HTTP/1.1"]).parse(answered),
                warc_headers_dict={"WARC-IP-Address": "192.0.2.1"},
            )
            question = writer.create_warc_record(
                url, "request", payload=asked, http_headers=StatusAndHeadersParser(["GET"]).parse(asked)
            )
            writer.write_request_response_pair(question, answer)


def _fastwarc(level: int) -> _Writer:
    def write(pages: Sequence[_Page], folder: Path) -> None:
        from fastwarc.stream_io import GzipWriter
        from fastwarc.warc import WarcRecord, WarcRecordType

        with (folder / "bench.warc.gz").open("wb") as file:
            stream = GzipWriter(file, compression_level=level)
            for url, request, response in pages:
                for name, block in (("request", request), ("response", response)):
                    record = WarcRecord()
                    record.init_headers(record_type=getattr(WarcRecordType, name))
                    record.headers["WARC-Target-URI"] = url
                    record.headers["WARC-IP-Address"] = "192.0.2.1"
                    record.headers["Content-Type"] = f"application/http; msgtype={name}"
                    record.set_bytes_content(block)
                    record.parse_http()
                    record.write(stream, checksum_data=True)
                    stream.finish()  # each record is a member of its own

    return write


_WRITERS: dict[str, _Writer] = {
    "barkspider": _barkspider("gzip"),
    "barkspider_zstd": _barkspider("zstd"),
    "warcio": _warcio,
    "fastwarc": _fastwarc(9),
    "fastwarc_level_1": _fastwarc(1),
}


def _tables(pages: Sequence[_Page], rounds: int) -> dict[str, float]:
    """CPU of a page's part of a journal record, of its row in `pages` and of a link in `links`, to the Parquet file.

    The best of several rounds.
    """
    linked = [page[0].encode() for page in pages[:60]]
    links = UrlBatch.of(
        linked, key=KeyMaker(1).column(linked), host_key=1, pld_key=np.arange(len(linked)), depth=1
    )
    gc.freeze()  # as a crawl does
    gc.set_threshold(50_000, 20, 20)
    notes, rows = zip(*(_describe(pages[0], PageFacts(title="A title")) for _ in range(rounds)), strict=True)
    alone = min(rows)
    facts = PageFacts(title="A title", links=linked)
    linking = min(_describe(pages[0], facts, links)[1] for _ in range(rounds))
    return {
        "page_note_us": round(min(notes) * 1e6, 2),
        "page_row_us": round(alone * 1e6, 2),
        "link_us": round((linking - alone) / len(linked) * 1e6, 3),
    }


def _describe(page: _Page, facts: PageFacts, links: UrlBatch = NO_URLS) -> tuple[float, float]:
    """CPU seconds of what is noted of a page, 80 in a harvest, and of its row in `pages`, 40 pages a host."""
    rows = 10_000
    url, request, response = page
    fetched = Fetched(url, "192.0.2.1", request, response, "", _NOW, 0.25)
    given = []
    for number in range(rows):
        address = f"http://www.site-{number % (rows // 40)}.example/path/{number}.html"
        given.append((UrlRow(number, 1, 1, 3, 0, 0, 0, address.encode()), fetched._replace(url=address)))
    with tempfile.TemporaryDirectory() as folder:
        archive = ArchiveWriter(Env(), Path(folder), Settings(), {})
        stored = archive.keep_page(fetched)
        before = time.process_time()
        harvests = []
        for start in range(0, rows, _HARVEST):
            notes = []
            for number, (row, one) in enumerate(given[start : start + _HARVEST]):
                notes.append(archive.describe_page(row, one, stored, "page", facts))
                linking = archive.describe_links(row, facts.links or ()) if len(links) else None
                if linking is not None:
                    notes.append(located(linking, number * len(links), len(links)))
            batches = batches_of(notes)
            harvests.append((batches, [encode_batch(batch) for batch in batches.values()]))
        found = UrlBatch.join([links] * _HARVEST)
        noted = time.process_time()
        for batches, _ in harvests:
            archive.add(batches, found)
        archive.prepare()()
        return (noted - before) / rows, (time.process_time() - noted) / rows


def _encoded(pages: Sequence[_Page], rounds: int) -> dict[str, float]:
    """CPU and bytes of the record of a page that came packed, and CPU of its exchange with its part of the index."""
    packed = [(url, request, _pack(response)) for url, request, response in pages]
    records = []
    for url, _, response in packed:
        start = payload_start(response)
        fields = f"WARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {warc_date(micros(_NOW))}\r\n"
        records.append((header(fields, response) + response[:start], memoryview(response)[start:], END))
    ours = Gzip(1).pack
    whole = [b"".join(parts) for parts in records]
    theirs = partial(igzip_lib.compress, level=1, flag=igzip_lib.COMP_GZIP)
    count = len(pages)
    as_is, again = (
        _seconds(lambda: [ours(*parts) for parts in records], rounds),
        _seconds(lambda: [theirs(record) for record in whole], rounds),
    )
    sizes = sum(len(ours(*parts)) for parts in records), sum(len(theirs(record)) for record in whole)
    speed, _ = _measure(_barkspider("gzip"), packed, rounds)
    content = sum(len(response) for _, _, response in packed)
    return {
        "encoded_record_us": round(as_is / count * 1e6, 2),
        "encoded_record_isal_1_us": round(again / count * 1e6, 2),
        "encoded_record_bytes": round(sizes[0] / count),
        "encoded_record_isal_1_bytes": round(sizes[1] / count),
        "encoded_time_ratio": round(as_is / again, 3),
        "encoded_size_ratio": round(sizes[0] / sizes[1], 4),
        "encoded_exchange_us": round(content / speed / count, 1),
    }


def _pack(response: bytes) -> bytes:
    start = payload_start(response)
    body = gzip.compress(response[start:], 6, mtime=0)
    head = f"Content-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}"
    return f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body


def _seconds(work: Callable[[], object], rounds: int) -> float:
    """CPU of the best of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        before = time.process_time()
        work()
        best = min(best, time.process_time() - before)
    return best


def _index(lines: int) -> dict[str, float]:
    """CPU of a line while the indexes of ten files are merged."""
    with tempfile.TemporaryDirectory() as folder:
        for part in range(10):
            (Path(folder) / f"a-20270115080000-{part:05d}.warc.gz").touch()
            text = [
                f'com,example)/{number * 10 + part:09d} 20270115080000 {{"url": "http://example.com/{number}", '
                f'"mime": "text/html", "status": "200", "length": "7000", "offset": "{number}"}}\n'
                for number in range(lines // 10)
            ]
            (Path(folder) / f"a-20270115080000-{part:05d}.cdxj").write_text("".join(sorted(text)))
        before = time.process_time()
        assert merge(Env(), Path(folder)) == lines // 10 * 10
        return {"merge_us_per_line": round((time.process_time() - before) / lines * 1e6, 2)}
