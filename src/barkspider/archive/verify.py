"""Checking an archive: every record, every line of an index, every row of a table.

Each WARC file is read in order, and once more record by record as rows point to it, in bounded memory: the
lines of one file's index at a time, 40 MB at most. The archive may be growing: what reaches a file after it was
read is not looked at.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from barkspider.archive.cdxj import INDEX, index_name, line_of, read_lines
from barkspider.archive.payloads import FOLDER as PAYLOADS
from barkspider.archive.payloads import damaged_runs
from barkspider.archive.reader import OPEN, Record, WarcFile, warc_files, warc_number
from barkspider.archive.records import base_32, digest, header_value, payload_start
from barkspider.archive.schemas import SCHEMAS
from barkspider.archive.tables import TableFile, TableFolder, open_table
from barkspider.core.errors import StorageError
from barkspider.storage.env import Env, ReadFile
from barkspider.storage.store.verify import DAMAGE, RECOVERABLE, Fault

NOTE = "note"  # a kind of `Fault` beside damage and what resuming the crawl mends
_POINTING = ("pages", "robots")  # tables whose rows say where a record is
_KNOWN = 50_000  # records remembered, of a few hundred bytes each
_PLACE = ("url", "warc_filename", "warc_record_offset", "warc_record_length")


@dataclass(slots=True)
class Checked:
    """How much was looked at so far."""

    files: int = 0
    records: int = 0
    lines: int = 0
    rows: int = 0


def verify_archive(env: Env, folder: Path, checked: Checked | None = None) -> Iterator[Fault]:
    """Go through an archive and give what is wrong with it, as it is found; `checked` is kept up to date.

    >>> import tempfile
    >>> list(verify_archive(Env(), Path(tempfile.mkdtemp())))
    []
    """
    checked = checked or Checked()
    yield from _check_numbers(env, folder)
    for path in warc_files(env, folder):
        yield from _check_warc(env, path, checked)
    yield from _check_merged(env, folder, checked)
    for name, what in damaged_runs(env, folder):
        yield Fault(DAMAGE, f"{PAYLOADS}/{name}", what)
    for name in SCHEMAS:
        yield from _check_table(env, folder, name, checked)


def _check_numbers(env: Env, folder: Path) -> Iterator[Fault]:
    """Each number of a series is one file; the others in the folder are known."""
    seen: dict[tuple[str, int], str] = {}
    warcs = [path.name for path in warc_files(env, folder)]
    for name in warcs:
        place = name.partition("-")[0], warc_number(name)
        if place in seen:
            yield Fault(DAMAGE, name, f"has the same number as {seen[place]}")
        seen[place] = name
    indexed = {index_name(name) for name in warcs}
    growing = {index_name(name) for name in warcs if name.endswith(OPEN)}
    for name in env.list(folder):
        if name.endswith(".cdxj") and name != INDEX and name not in indexed:
            yield Fault(NOTE, name, "its WARC file was moved away")
        elif name.endswith(".new") and name.partition(".cdxj")[0] + ".cdxj" not in growing:
            yield Fault(RECOVERABLE, name, "was left half written")


def _check_warc(env: Env, path: Path, checked: Checked) -> Iterator[Fault]:
    """Every record of a file, and that its index is what follows from them."""
    checked.files += 1
    expected, place = [], 0
    try:
        with WarcFile.find(env, path) as file:
            for record in file.records():
                checked.records += 1
                place = record.end
                if wrong := _wrong_digest(record):
                    yield Fault(DAMAGE, path.name, f"the {wrong} of the record at {record.offset} is wrong")
                if line := line_of(record, file.name):
                    expected.append(line)
            rest = file.size - place
    except StorageError as error:
        yield Fault(DAMAGE, path.name, str(error))
        return
    growing = path.name.endswith(OPEN)
    if rest:
        kind = RECOVERABLE if growing else DAMAGE
        yield Fault(kind, path.name, f"there is no whole record at byte {place}; {rest} bytes were not read")
    if growing:
        return
    index = path.with_name(index_name(path.name))
    if index.name not in env.list(path.parent):
        yield Fault(RECOVERABLE, path.name, "has no index yet")
        return
    with env.open(index) as source:
        for change, line in _differences(sorted(expected), _counted(source, checked)):
            what = "points to no such record" if change > 0 else "is missing"
            yield Fault(DAMAGE, index.name, f"the line {_start_of(line)} {what}")


def _wrong_digest(record: Record) -> str:
    """Which digest of a record is not that of its bytes, or ""."""
    payload = record.block[payload_start(record.block) :] if record.kind == "response" else None
    for name, data in (("block", record.block), ("payload", payload)):
        said = record.header.get(f"warc-{name}-digest", "")
        if data is not None and said.startswith("sha1:") and said != f"sha1:{base_32(digest(data))}":
            return f"{name} digest"
    return ""


def _check_merged(env: Env, folder: Path, checked: Checked) -> Iterator[Fault]:
    """The merged index has lines of the others only, in order; it may be older than they are."""
    names = [name for name in env.list(folder) if name.endswith(".cdxj") and name != INDEX]
    if INDEX not in env.list(folder):
        return
    files = [env.open(folder / name) for name in (*names, INDEX)]
    missing = 0
    try:
        lines = heapq.merge(*(read_lines(file) for file in files[:-1]))
        for change, line in _differences(lines, _counted(files[-1], checked)):
            if change < 0:
                missing += 1
            else:
                yield Fault(DAMAGE, INDEX, f"the line {_start_of(line)} is in no other index")
    finally:
        for file in files:
            file.close()
    if missing:
        yield Fault(NOTE, INDEX, f"lacks {missing} lines; it is made anew when the crawl ends")


def _check_table(env: Env, folder: Path, name: str, checked: Checked) -> Iterator[Fault]:
    """The files of a table can be read, hold each write once, and point to records of their URLs."""
    table = open_table(env, folder, name)
    parts = table.parts()
    for before, part in pairwise([TableFile(-1, -1, ""), *parts]):
        if part.first > before.last + 1:
            missing = f"{before.last + 1} to {part.first - 1}"
            yield Fault(DAMAGE, _name(table, part), f"the writes {missing} before it are missing")
        elif part.first <= before.last:
            yield Fault(DAMAGE, _name(table, part), f"holds rows that {before.name} holds too")
    for left in sorted(set(env.list(table.folder)) - {part.name for part in parts}):
        yield Fault(NOTE, f"{name}/{left}", "is left over and does not count")
    places = _Places(env, folder)
    try:
        for part in parts:
            checked.files += 1
            try:
                if not table.fits(part):
                    yield Fault(DAMAGE, _name(table, part), "has other columns")
                    continue
                for batch in table.batches(table.schema.names, parts=[part]):
                    checked.rows += len(batch)
                    if name in _POINTING:
                        for kind, what in places.wrong(batch):
                            yield Fault(kind, _name(table, part), what)
            except StorageError as error:
                yield Fault(DAMAGE, _name(table, part), str(error))
    finally:
        places.close()


class _Found(NamedTuple):
    """What lies at a place of a WARC file."""

    url: str
    kind: str
    end: int


class _Places:
    """Follows rows to their records. Rows come nearly in the order of the files: one is open at a time."""

    def __init__(self, env: Env, folder: Path) -> None:
        self._env, self._folder = env, folder
        self._name = ""
        self._file: WarcFile | None = None
        self._known: dict[int, _Found] = {}  # rows may point to one large record again and again

    def wrong(self, batch: pa.RecordBatch) -> Iterator[tuple[str, str]]:
        """What is wrong with each row that points to no record of its URL."""
        revisits = batch["revisit"].to_pylist() if "revisit" in batch.schema.names else [None] * len(batch)
        columns = (batch[name].to_pylist() for name in _PLACE)
        for url, name, offset, length, revisit in zip(*columns, revisits, strict=True):
            if name != self._name:
                yield from self._open(name)
            if self._file is None:
                continue
            found = self._find(self._file, offset)
            kind = found.kind if found.url == header_value(url) else ""
            if kind not in ("response", "revisit"):
                yield DAMAGE, f"there is no answer of {url} at byte {offset} of {name}"
            elif revisit is not None and revisit != (kind == "revisit"):
                yield DAMAGE, f"the answer of {url} at byte {offset} of {name} is a {kind}"
            elif found.end != offset + length:
                yield DAMAGE, f"the answer of {url} at byte {offset} of {name} ends at {found.end}"

    def _find(self, file: WarcFile, offset: int) -> _Found:
        found = self._known.get(offset)
        if found is None:
            record = next(file.records(offset), None)
            found = _Found(record.url, record.kind, record.end) if record else _Found("", "", -1)
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[offset] = found
        return found

    def _open(self, name: str) -> Iterator[tuple[str, str]]:
        self.close()
        self._name = name
        if {name, name + OPEN} & set(self._env.list(self._folder)):
            try:
                self._file = WarcFile.find(self._env, self._folder / name)
            except StorageError as error:
                yield DAMAGE, str(error)
        else:
            yield NOTE, f"rows point to {name}, which was moved away"

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._known = None, {}


def _differences(expected: Iterable[bytes], found: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Lines that one of two sorted files lacks: below 0 those that were expected, above 0 those that were found."""
    marked = heapq.merge(((line, -1) for line in expected), ((line, 1) for line in found))
    for line, group in groupby(marked, itemgetter(0)):
        if change := sum(side for _, side in group):
            yield change, line


def _counted(file: ReadFile, checked: Checked) -> Iterator[bytes]:
    for line in read_lines(file):
        checked.lines += 1
        yield line


def _start_of(line: bytes) -> str:
    return line[:120].decode("utf-8", "replace").partition(" {")[0]


def _name(table: TableFolder, part: TableFile) -> str:
    return f"{table.folder.name}/{part.name}"
