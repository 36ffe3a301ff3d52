"""A crawl as one WACZ 1.1.1 file: a ZIP that browsers and archives replay from wherever it lies.

    WARC files ──► archive/                              stored as they are, so that a reader can begin at any record
    their indexes ─► indexes/index.cdx.gz, index.idx       lines in order, in blocks packed one by one; where each begins
    table pages ─► pages/pages.jsonl                     the HTML pages, in the order they were fetched
                     datapackage.json, datapackage-digest.json       the SHA-256 of all these

It holds what the crawl last committed: of a crawl that runs, or was killed, the state of its last checkpoint. Everything
passes through in pieces, whatever its size.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from itertools import islice, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from isal import igzip

from barkspider.archive.cdxj import index_name, line_of, merged
from barkspider.archive.reader import OPEN, WarcFile, warc_files, warc_number
from barkspider.archive.recovery import Committed
from barkspider.archive.tables import open_table
from barkspider.core.errors import StorageError, UsageError
from barkspider.storage.env import Env

_VERSION = "1.1.1"
_HTML = ("text/html", "application/xhtml+xml")
_BLOCK = 3000  # lines, as pywb packs them: what a reader unpacks to find one
_PIECE = 1 << 20
_ROWS = 1000  # pages in a piece of their list
_COLUMNS = ["url", "fetch_time", "title", "depth", "fetch_status", "content_mime_detected"]
_PLACE = ["warc_filename", "warc_record_offset"]


class _Source(NamedTuple):
    """An archive: the WARC files that are taken of it and how much of each, and what goes before their names where there
    are several archives, which may have files of one name."""

    archive: Path
    ends: Mapping[str, int]
    prefix: str


def write_wacz(
    env: Env, archives: Sequence[tuple[Path, Mapping[str, Any] | None]], output: Path, title: str
) -> dict[str, int]:
    """Make a WACZ file of an archive, or of those of all parts of a crawl; how many WARC files, captures and pages it has.

    Each archive comes with what it last committed. The file appears when it is whole. Raises `UsageError` when there is
    nothing to pack, or nothing that a WACZ file can hold.
    """
    sources = [
        _Source(
            archive,
            _ends(env, archive, Committed.read(state)) if state is not None else {},
            f"part-{number:04d}-" if len(archives) > 1 else "",
        )
        for number, (archive, state) in enumerate(archives)
    ]
    names = [name for source in sources for name in source.ends]
    if not names:
        raise UsageError(
            "there is nothing to export yet: nothing was fetched before the crawl's last checkpoint"
        )
    if not all(name.endswith(".warc.gz") for name in names):
        raise UsageError("WACZ holds WARC files packed by gzip; this crawl has archive.compression = zstd")
    new = output.with_name(f"{output.name}.new")
    try:
        with ZipFile(new, "w") as file:
            written = _Package(file, env, sources).write(title, output.absolute().parent)
        new.replace(output)
    finally:
        new.unlink(missing_ok=True)
    return written


class _Package:
    """A WACZ file while it is written."""

    def __init__(self, file: ZipFile, env: Env, sources: Sequence[_Source]) -> None:
        self._file, self._env, self._sources = file, env, sources
        self._resources: list[dict[str, Any]] = []
        self._captures = self._pages = 0
        self._main: dict[str, str] = {}  # the first page of a seed

    def write(self, title: str, scratch: Path) -> dict[str, int]:
        """Write all of it; files that are needed meanwhile lie in `scratch`."""
        self._add("pages/pages.jsonl", self._page_list())
        with TemporaryDirectory(dir=scratch, prefix=".wacz-") as folder, TemporaryFile(dir=scratch) as idx:
            idx.write(b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n')
            blocks = ((block, idx.write(entry))[0] for block, entry in self._blocks(Path(folder)))
            self._add("indexes/index.cdx.gz", blocks)
            idx.seek(0)
            self._add("indexes/index.idx", iter(lambda: idx.read(_PIECE), b""))
        warcs = [(source, name, end) for source in self._sources for name, end in source.ends.items()]
        for source, name, end in warcs:
            with WarcFile.find(self._env, source.archive / name) as warc:
                self._add(f"archive/{source.prefix}{name}", warc.packed(end))
        package = {
            "profile": "data-package",
            "wacz_version": _VERSION,
            "title": title,
            "software": f"barkspider {version('barkspider')}",
            "created": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            **self._main,
            "resources": list(self._resources),
        }
        self._add("datapackage.json", [json.dumps(package, indent=1).encode()])
        digest = {"path": "datapackage.json", "hash": self._resources[-1]["hash"]}
        self._add("datapackage-digest.json", [json.dumps(digest).encode()])
        return {"warc_files": len(warcs), "captures": self._captures, "pages": self._pages}

    def _add(self, path: str, pieces: Iterable[bytes]) -> None:
        """Add a file, and what the data package says of it."""
        member = ZipInfo(path, datetime.now(UTC).timetuple()[:6])
        member.compress_type = ZIP_DEFLATED if path.endswith((".json", ".jsonl")) else ZIP_STORED
        member.external_attr = 0o644 << 16
        digest, size = sha256(), 0
        with self._file.open(member, "w", force_zip64=True) as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
                size += len(piece)
        self._resources.append(
            {
                "name": path.rpartition("/")[2],
                "path": path,
                "hash": f"sha256:{digest.hexdigest()}",
                "bytes": size,
            }
        )

    def _blocks(self, scratch: Path) -> Iterator[tuple[bytes, bytes]]:
        """Packed blocks of the index, each with its line of `index.idx`."""
        indexes = [path for source in self._sources for path in self._indexes(source, scratch)]
        lines, offset = merged(self._env, indexes, scratch), 0
        while block := list(islice(lines, _BLOCK)):
            packed = igzip.compress(b"".join(block), mtime=0)
            digest = f"sha256:{sha256(packed).hexdigest()}"
            place = {"offset": offset, "length": len(packed), "digest": digest, "filename": "index.cdx.gz"}
            yield packed, b"%s %s %s\n" % (*block[0].split(b" ", 2)[:2], json.dumps(place).encode())
            offset += len(packed)
            self._captures += len(block)

    def _indexes(self, source: _Source, scratch: Path) -> list[Path]:
        """Sorted indexes of the WARC files of an archive; one of them all, with the names that these get, if they get
        others."""
        found = [self._index(source, name, end, scratch) for name, end in source.ends.items()]
        if not source.prefix:
            return found
        path, prefix = scratch / f"{source.prefix}index.cdxj", b'"filename": "' + source.prefix.encode()
        with self._env.append(path) as file:
            # Nothing behind the name of a file has a quote, and it comes last: lines stay in their order.
            lines = (
                prefix.join(line.rsplit(b'"filename": "', 1)) for line in merged(self._env, found, scratch)
            )
            while piece := list(islice(lines, _BLOCK)):
                file.write(b"".join(piece))
        return [path]

    def _index(self, source: _Source, name: str, end: int, scratch: Path) -> Path:
        """The sorted index of a WARC file: its own, or one that is made when it has none or grows."""
        found = index_name(name)
        with WarcFile.find(self._env, source.archive / name) as warc:
            if warc.size == end and found in self._env.list(source.archive):
                return source.archive / found
            records = takewhile(lambda record: record.end <= end, warc.records())
            lines = sorted(line for record in records if (line := line_of(record, name)))
        path = scratch / f"{source.prefix}{found}"
        self._env.write_whole(path, b"".join(lines))
        return path

    def _page_list(self) -> Iterator[bytes]:
        yield b'{"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}\n'
        rows = self._rows()
        while piece := list(islice(rows, _ROWS)):
            yield b"".join(piece)

    def _rows(self) -> Iterator[bytes]:
        parts = [self._table_rows(source) for source in self._sources]
        for url, time, title, depth, status, media_type in heapq.merge(*parts, key=lambda row: row[1]):
            if 200 <= status < 300 and media_type in _HTML:
                page = {"url": url, "ts": f"{time:%Y-%m-%dT%H:%M:%SZ}"}
                if depth == 0 and not self._main:
                    self._main = {"mainPageUrl": page["url"], "mainPageDate": page["ts"]}
                self._pages += 1
                yield json.dumps(page | ({"title": title} if title else {})).encode() + b"\n"

    def _table_rows(self, source: _Source) -> Iterator[tuple[Any, ...]]:
        """What the table of pages says of each that is taken; a crawl that runs may merge files of it meanwhile."""
        table, done = open_table(self._env, source.archive, "pages"), 0
        while True:
            parts = table.parts()
            try:
                for batch in table.batches(_COLUMNS + _PLACE, done):
                    for piece in (batch.slice(start, _ROWS) for start in range(0, len(batch), _ROWS)):
                        for *row, file, offset in zip(
                            *(column.to_pylist() for column in piece.columns), strict=True
                        ):
                            if offset < source.ends.get(file, 0):
                                yield tuple(row)
                    done += len(batch)
                return
            except StorageError:
                if (
                    parts == table.parts()
                ):  # else the rows of a file that is gone are in another, in the same order
                    raise


def _ends(env: Env, archive: Path, committed: Committed) -> dict[str, int]:
    """How much of each WARC file is committed: all of those before the last one of their series."""
    found = {}
    for path in warc_files(env, archive):
        name = path.name.removesuffix(OPEN)
        last, end = committed.warc_ends.get(name.partition("-")[0], ("", 0))
        if warc_number(name) < warc_number(last):
            found[name] = env.size(path)
        elif name == last and end:
            found[name] = end
    return found
