"""CDXJ indexes: a line for each page in a WARC file, sorted by SURT key and time.

    com,example)/a 20270115080000 {"url": "http://example.com/a", "mime": "text/html", "status": "200", …}

Each closed WARC file has an index of its own beside it; `merge` makes one of them all. Lines are compared
byte by byte, as every reader of such files expects.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any

from barkspider.archive.reader import OPEN, SUFFIXES, Record, WarcFile, warc_files
from barkspider.archive.records import header_value, payload_start, status_and_type
from barkspider.archive.surt import surt
from barkspider.storage.env import Env, ReadFile

INDEX = "index.cdxj"
REVISIT = "warc/revisit"
_PIECE = 1 << 20
_LINES = 10_000
_DIGITS = str.maketrans("", "", "-:TZ")


def key_of(url: str) -> str:
    """The SURT key of a URL; of what is none, the text itself: it is kept all the same."""
    try:
        return header_value(surt(url))
    except (KeyError, ValueError):
        return header_value(url)


def line(
    key: str, date: str, url: str, media_type: str, status: int, digest: str, place: tuple[str, int, int]
) -> bytes:
    """One line of an index. `date` is a WARC-Date, `place` the file, the offset and the end of the record.

    >>> line("com,example)/", "2027-01-15T08:00:00Z", "http://example.com/", "text/html", 200, "", ("a", 1, 9))[:29]
    b'com,example)/ 20270115080000 '
    """
    file, offset, end = place
    found = f' "digest": "{digest}",' if digest else ""
    text = (
        f'{key} {date[:19].translate(_DIGITS)} {{"url": {encode_basestring_ascii(url)}, '
        f'"mime": "{media_type or "unk"}", "status": "{status or "-"}",{found} '
        f'"length": "{end - offset}", "offset": "{offset}", "filename": "{file}"}}\n'
    )
    return text.encode()


def parse_line(text: bytes) -> dict[str, Any]:
    """What a line says: its JSON, with the key as `urlkey` and the time as `timestamp`."""
    key, time, fields = text.decode().split(" ", 2)
    return {"urlkey": key, "timestamp": time, **json.loads(fields)}


def index_name(warc: str) -> str:
    """The name of the index of a WARC file.

    >>> index_name("pages-20270115080000-00000.warc.gz")
    'pages-20270115080000-00000.cdxj'
    """
    stem = warc.removesuffix(OPEN)
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    return f"{stem}.cdxj"


def index_lines(env: Env, path: Path) -> list[bytes]:
    """The sorted index of a WARC file, made from its records: for one that is open, or lost its index."""
    with WarcFile.find(env, path) as file:
        return sorted(found for record in file if (found := line_of(record, file.name)))


def line_of(record: Record, file: str) -> bytes | None:
    """The line for a record of a file; None for a record that no index has."""
    if record.kind not in ("response", "revisit"):
        return None
    start = payload_start(record.block)
    status, media_type = status_and_type(record.block[: max(start, 0)])
    return line(
        key_of(record.url),
        record.header.get("warc-date", ""),
        record.url,
        REVISIT if record.kind == "revisit" else media_type,
        status,
        record.header.get("warc-payload-digest", "").removeprefix("sha1:"),
        (file, record.offset, record.end),
    )


def merge(env: Env, folder: Path) -> int:
    """Merge the indexes of all closed WARC files of a folder into one; how many lines it has.

    Takes a megabyte of memory for each file, however long. An index that is missing is made first; one whose
    WARC file was moved away is merged all the same. The old index is replaced in one step.
    """
    names = {name for name in env.list(folder) if name.endswith(".cdxj") and name != INDEX}
    for path in warc_files(env, folder):
        name = index_name(path.name)
        if name not in names and not path.name.endswith(OPEN):
            env.write_whole(folder / name, b"".join(index_lines(env, path)))
            names.add(name)
    sources = [folder / name for name in sorted(names)]
    new = folder / f"{INDEX}.new"
    env.remove(new)
    files = [env.open(path) for path in sources]
    count = 0
    try:
        with env.append(new) as merged:
            lines = heapq.merge(*(read_lines(file) for file in files)) if len(files) > 1 else _only(files)
            while batch := list(islice(lines, _LINES)):
                merged.write(b"".join(batch))
                count += len(batch)
            merged.sync()
    finally:
        for file in files:
            file.close()
    env.rename(new, folder / INDEX)
    return count


def _only(files: list[ReadFile]) -> Iterator[bytes]:
    return iter(read_lines(files[0])) if files else iter(())


def read_lines(file: ReadFile, place: int = 0) -> Iterable[bytes]:
    """Lines with their ends, from a place where one begins."""
    rest = b""
    while data := file.pread(place, _PIECE):
        place += len(data)
        *lines, rest = (rest + data).split(b"\n")
        for text in lines:
            yield text + b"\n"


def look_up(env: Env, path: Path, key: str) -> list[bytes]:
    """The lines of a sorted index that have this key, by binary search.

    A line of the index is found by the last line break before any place in it.
    """
    start = f"{key} ".encode()
    with env.open(path) as file:
        low, high = 0, file.size  # the first line wanted begins in low … high
        while high - low > _PIECE:
            middle = (low + high) // 2
            skipped = file.pread(middle, _PIECE).partition(b"\n")
            if skipped[1] and skipped[2][: len(start)] < start:
                low = middle + len(skipped[0]) + 1
            else:
                high = middle
        found = []
        for text in read_lines(file, low):
            if text.startswith(start):
                found.append(text)
            elif text > start:
                break
        return found
