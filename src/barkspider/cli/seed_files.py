"""Where seeds may come from: lists of URLs or of domains, zone files, indexes and archives, tables, earlier jobs.

What a file is, its name says; each form gives texts with where they stand, a piece of the file at a time.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from barkspider.core.errors import BarkspiderError, StorageError, UsageError

Seeds: TypeAlias = Iterator[tuple[str, str]]

STDIN = Path("-")
_COMMENT = re.compile(r"(?:^|\s)#.*")  # a # within a URL begins a fragment
_DOMAIN = re.compile(r"(?!.*://)[^\s/:?#@.]++(?:\.[^\s/:?#@.]++)++\.?")
_LONGEST_LINE = 1 << 24  # bytes; a file with other line ends is one line, and a packed one may be gigabytes
_ROWS = 1024  # of a table at a time: each may be as long as its maker wants
_URL_COLUMNS = ("url", "url_host_name", "host", "domain")  # of a table, the first that it has


def read_seeds(urls: list[str], file: Path | None) -> Seeds:
    """Seeds from the command line and from a file, each with where it stands."""
    yield from ((url, "") for url in urls)
    if file is None:
        return
    if file.is_dir():
        yield from _read_job(file)
        return
    name = file.name.lower()
    read = next((form for ending, form in _FORMS if name.endswith(ending)), _read_list)
    try:
        yield from read(file)
    except (OSError, EOFError, zlib.error, StorageError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"cannot read seeds file {file}: {said}") from error


def as_url(text: str) -> str:
    """A bare name of a domain as the URL of its home page; everything else as it is.

    >>> as_url("example.org"), as_url("https://example.org/a"), as_url("word")
    ('http://example.org/', 'https://example.org/a', 'word')
    """
    return f"http://{text.rstrip('.')}/" if _DOMAIN.fullmatch(text) else text


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    if file == STDIN:
        yield from _decoded(sys.stdin.buffer)
        return
    packed = file.name.lower().endswith(".gz")
    with gzip.open(file) if packed else file.open("rb") as opened:
        yield from _decoded(opened)


def _decoded(file: IO[bytes] | gzip.GzipFile) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
        if len(line) == _LONGEST_LINE:
            raise EOFError(f"line {number} has no end")
        data = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        # What is not UTF-8 is no URL, and concerns this line alone. A file may have the line ends of another system.
        for part in data.splitlines():
            yield number, part.decode("utf-8", "surrogateescape")


def _read_list(file: Path) -> Seeds:
    """URLs, or names of domains, one to a line."""
    for number, line in _lines(file):
        text = _COMMENT.sub("", line).strip()
        if text:
            yield as_url(text), f"{file_name(file)}:{number}: "


def _read_zone(file: Path) -> Seeds:
    """The names below a zone that are delegated, as its NS records say (RFC 1035, section 5)."""
    origin, owner, last = "", "", ""
    for number, line in _lines(file):
        words = line.partition(";")[0].split()
        if not words:
            continue
        if words[0].upper() == "$ORIGIN" and len(words) > 1:
            origin = words[1].strip(".")
            continue
        if not line[0].isspace():
            absolute = words[0].endswith(".") or not origin
            owner = origin if words[0] == "@" else words[0].rstrip(".") + ("" if absolute else f".{origin}")
        delegates = "NS" in (word.upper() for word in words[1 if not line[0].isspace() else 0 : 4])
        if delegates and owner not in (origin, last):
            last = owner
            yield f"http://{owner}/", f"{file_name(file)}:{number}: "


def _read_index(file: Path) -> Seeds:
    """The URLs of an index of an archive (CDXJ)."""
    for number, line in _lines(file):
        text = line[line.find("{") :] if "{" in line else ""
        url: Any = None
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            url = json.loads(text)["url"]
        url = url if isinstance(url, str) else line
        # Lines that begin like this say something of the index; files of rules are no pages.
        if not line.startswith("!") and not url.endswith("/robots.txt"):
            yield url, f"{file_name(file)}:{number}: "


def _read_archive(file: Path) -> Seeds:
    """The URLs of what was answered, in a WARC file."""
    from barkspider.archive.reader import WarcFile
    from barkspider.storage.env import Env

    with WarcFile(Env(), file) as warc:
        for record in warc:
            if record.kind in ("response", "revisit"):
                yield record.url, f"{file_name(file)} at {record.offset}: "


def _read_table(file: Path) -> Seeds:
    """A column of URLs, hosts or domains of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file)
        column = next((name for name in _URL_COLUMNS if name in table.schema_arrow.names), "")
        if not column:
            raise UsageError(f"{file} has no column of URLs; name one of its columns {_URL_COLUMNS[0]}")
        if not _is_text(table.schema_arrow.types[table.schema_arrow.names.index(column)]):
            raise UsageError(
                f"the column {column} of {file} has no texts; name one of URLs {_URL_COLUMNS[0]}"
            )
        row = 0
        for batch in table.iter_batches(_ROWS, columns=[column]):
            for value in batch.column(0).to_pylist():
                row += 1
                if value is not None:
                    text = value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
                    yield as_url(text), f"{file_name(file)}, row {row}: "
    except (pa.ArrowException, ValueError) as error:  # the second: texts that are not UTF-8
        raise UsageError(f"cannot read seeds file {file}: it is no Parquet file ({error})") from error


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_binary))


def _read_job(folder: Path) -> Seeds:
    """The home pages of all hosts of an earlier job that had a page."""
    from barkspider.engine import open_job

    homes = "select distinct regexp_extract(url, '^https?://[^/]+/') as url from pages where outcome = 'ok' order by 1"
    try:
        found = open_job(folder).query(homes)
    except BarkspiderError as error:
        raise UsageError(f"{folder} is no job to take home pages from: {error}") from error
    for url in found["url"].to_pylist():
        yield url, f"{folder}: "


_FORMS: tuple[tuple[str, Callable[[Path], Seeds]], ...] = (
    (".zone", _read_zone),
    (".zone.gz", _read_zone),
    (".cdxj", _read_index),
    (".cdxj.gz", _read_index),
    (".warc", _read_archive),
    (".warc.gz", _read_archive),
    (".warc.zst", _read_archive),
    (".parquet", _read_table),
)


def file_name(file: Path | None) -> str:
    """A file of seeds as complaints call it."""
    return "standard input" if file == STDIN else str(file)
