"""CDXJ indexes: a line for each page in a WARC file, sorted by SURT key and time.

    com,example)/a 20270115080000 {"url": "http://example.com/a", "mime": "text/html", "status": "200", …}

Each closed WARC file has an index of its own beside it; `merge` makes one of them all. Lines are compared
byte by byte, as every reader of such files expects.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any

from barkspider.archive.reader import OPEN, SUFFIXES, Record, WarcFile, warc_files
from barkspider.archive.records import header_value, payload_start, status_and_type
from barkspider.archive.surt import surt
from barkspider.core.errors import StorageError
from barkspider.storage.env import AppendFile, Env, ReadFile

INDEX = "index.cdxj"
REVISIT = "warc/revisit"
NEW = ".new"  # ends the names of files that are not yet whole
_PIECE = 1 << 20
_LINE_COST = 41  # bytes that a list and its items take beside theirs
_LINES = 1_000  # written at a time: 4 MB where URLs are of the longest
# Indexes that are merged together, each read in pieces of this size: ten megabytes, with what Python adds to a line.
_MOST, _SMALL_PIECE = 64, 1 << 16
_NAME = re.compile(r"[\w.-]+", re.ASCII)  # of a WARC file, beside its index
_DIGITS = str.maketrans("", "", "-:TZ")


def key_of(url: str) -> str:
    """The SURT key of a URL; of what is none, the text itself: it is kept all the same."""
    try:
        return header_value(surt(url))
    except (KeyError, ValueError):
        return header_value(url)


def timestamp(date: str) -> str:
    """The digits of a WARC-Date, to the second.

    >>> timestamp("2027-01-15T08:00:00.25Z")
    '20270115080000'
    """
    return date[:19].translate(_DIGITS)


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
        f'{key} {timestamp(date)} {{"url": {encode_basestring_ascii(url)}, '
        f'"mime": "{media_type or "unk"}", "status": "{status or "-"}",{found} '
        f'"length": "{end - offset}", "offset": "{offset}", "filename": "{file}"}}\n'
    )
    return text.encode()


def parse_line(text: bytes) -> dict[str, Any]:
    """What a line says: its JSON, with the key as `urlkey` and the time as `timestamp`.

    Raises `StorageError` for one that does not say where in this folder a record is.
    """
    try:
        key, time, fields = text.decode().split(" ", 2)
        found = {"urlkey": key, "timestamp": time, **json.loads(fields)}
        name, place = found["filename"], found["offset"]
        sound = _NAME.fullmatch(name) and place.isascii() and place.isdecimal() and len(place) < 19
        if sound and isinstance(found["url"], str) and isinstance(found["status"], str):
            return found
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    start = text[:120].decode("utf-8", "replace")
    raise StorageError(f"a line of an index is damaged: {start!r}; `barkspider verify` tells of which")


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

    Takes some ten megabytes of memory, however many files there are and however long. An index that is missing is made
    first; one whose WARC file was moved away is merged all the same. The old index is replaced in one step.
    """
    names = {name for name in env.list(folder) if name.endswith(".cdxj") and name != INDEX}
    for path in warc_files(env, folder):
        name = index_name(path.name)
        if name not in names and not path.name.endswith(OPEN):
            _write(env, folder / name, iter(index_lines(env, path)))
            names.add(name)
    return _write(env, folder / INDEX, merged(env, [folder / name for name in sorted(names)], folder))


class Lines:
    """Lines of an index that is not whole yet, in any order. One thread.

    So many bytes of them are in memory, with what Python takes beside them; the others wait beside the index as sorted
    runs, which a crash leaves: their names say that they do not count.

    >>> import tempfile
    >>> lines = Lines(Env(), Path(tempfile.mkdtemp()) / "a.cdxj", memory=1)
    >>> lines.append(b"b\\n"), lines.append(b"a\\n"), lines.size
    (None, None, 86)
    >>> lines.finish(), lines._path.read_bytes()
    (None, b'a\\nb\\n')
    """

    def __init__(self, env: Env, path: Path, memory: int = _PIECE) -> None:
        self._env, self._path, self._memory = env, path, memory
        self._waiting: list[bytes] = []
        self._runs: list[Path] = []
        self._spilled = 0  # the size at which lines were last written to disk
        self.size = 0  # of all lines, in memory or not, as if they were

    def append(self, line: bytes) -> None:
        """Add a line with its end."""
        self._waiting.append(line)
        self.size += len(line) + _LINE_COST
        if self.size - self._spilled >= self._memory:
            run = self._path.with_name(f"{self._path.name}.{len(self._runs)}{NEW}")
            self._env.remove(run)
            with self._env.append(run) as file:
                _fill(file, iter(self._sorted()))
            self._runs.append(run)
            self._spilled = self.size

    def finish(self) -> None:
        """Write the index in one step."""
        runs, last = merged(self._env, self._runs, self._path.parent), self._sorted()
        _write(self._env, self._path, heapq.merge(runs, last) if self._runs else iter(last))
        for run in self._runs:
            self._env.remove(run)

    def _sorted(self) -> list[bytes]:
        """What waits in memory, which it leaves."""
        lines, self._waiting = self._waiting, []
        lines.sort()
        return lines


def _write(env: Env, path: Path, lines: Iterator[bytes]) -> int:
    """Write sorted lines in one step; how many there were."""
    new = path.with_name(path.name + NEW)
    env.remove(new)
    with env.append(new) as file:
        count = _fill(file, lines)
        file.sync()
    env.rename(new, path)
    return count


def _fill(file: AppendFile, lines: Iterator[bytes]) -> int:
    count = 0
    while batch := list(islice(lines, _LINES)):
        file.write(b"".join(batch))
        count += len(batch)
    return count


def merged(env: Env, sources: Sequence[Path], scratch: Path) -> Iterator[bytes]:
    """The lines of sorted indexes in one order.

    Of many indexes, `_MOST` at a time are merged into one in the folder `scratch` first, which is removed at the end.
    """
    waiting, made = deque(sources), list[Path]()
    try:
        while len(waiting) > _MOST:
            made.append(scratch / f"merged-{len(made)}{NEW}")
            env.remove(made[-1])
            lines = _merged(env, [waiting.popleft() for _ in range(_MOST)])
            with env.append(made[-1]) as file:
                _fill(file, lines)
            waiting.append(made[-1])
        yield from _merged(env, waiting)
    finally:
        for path in made:
            env.remove(path)


def _merged(env: Env, paths: Iterable[Path]) -> Iterator[bytes]:
    with ExitStack() as stack:
        files = [stack.enter_context(env.open(path)) for path in paths]
        yield from heapq.merge(*map(read_lines, files)) if len(files) != 1 else read_lines(files[0])


def read_lines(file: ReadFile, place: int = 0) -> Iterable[bytes]:
    """Lines with their ends, from a place where one begins."""
    rest = b""
    while data := file.pread(place, _SMALL_PIECE):
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
