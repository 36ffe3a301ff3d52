"""The last page that an archive holds of a URL: what a request to fetch it again begins with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barkspider.archive import Original, Record
from barkspider.archive.captures import read_capture
from barkspider.archive.cdxj import INDEX, key_of, merge, parse_line
from barkspider.archive.records import payload_start
from barkspider.core.errors import StorageError
from barkspider.fetch import Validators, read_whole
from barkspider.storage.env import Env

_PIECE = 1024  # bytes: a line of an index or two


class Earlier(NamedTuple):
    """A page that is stored: what its server said about its version, if it did, where it is, and its HTTP header."""

    validators: Validators
    original: Original
    head: bytes


class EarlierPages:
    """Finds the newest page of a URL in an archive, as of when this was made. One thread.

    A URL is looked up in the index of all files, by about as many small reads as the index's length has bits.
    """

    def __init__(self, env: Env, archive: Path) -> None:
        """Makes the index first if it does not have the lines of all others, as after a crash."""
        self._env, self._archive = env, archive
        names = [name for name in env.list(archive) if name.endswith(".cdxj")]
        sizes = {name: env.size(archive / name) for name in names}
        if 2 * sizes.get(INDEX, -1) != sum(sizes.values()):
            merge(env, archive)
        self._index = env.open(archive / INDEX)

    def find(self, url: str) -> Earlier | None:
        """The newest answer of 2xx to a canonical URL, if it is there and whole.

        What was found unchanged later counts as such an answer: it has the same version and the same header.
        """
        try:
            lines = [parse_line(line) for line in self._lines(f"{key_of(url)} ".encode())]
            pages = [line for line in lines if line["url"] == url and line["status"].startswith("2")]
            if not pages:
                return None
            newest = max(pages, key=lambda line: (line["timestamp"], line["filename"], int(line["offset"])))
            return _earlier(read_capture(self._env, self._archive, newest))
        except (StorageError, KeyError):  # its file was moved away, or others wrote it
            return None

    def close(self) -> None:
        """Let go of the index."""
        self._index.close()

    def _lines(self, start: bytes) -> Iterator[bytes]:
        """The lines of the index that begin with this."""
        low, high = 0, self._index.size
        while low < high:
            middle = (low + high) // 2
            begin, line = self._line_from(middle)
            if line and line < start:
                low = begin + len(line)
            else:
                high = middle
        begin, line = self._line_from(low)
        while line.startswith(start):
            yield line
            begin, line = self._line_from(begin + len(line))

    def _line_from(self, place: int) -> tuple[int, bytes]:
        """Where the first line begins that does so at a place or behind it, and the line; b"" if there is none."""
        before = max(place - 1, 0)  # a line begins where another ends
        length = _PIECE
        while True:
            data = self._index.pread(before, length)
            begin = data.find(b"\n") + 1 if place else 0
            end = data.find(b"\n", begin) + 1 if begin or not place else 0
            if end or len(data) < length:
                return before + begin, data[begin:end]
            length *= 2


def _earlier(record: Record) -> Earlier | None:
    if "warc-truncated" in record.header:
        return None  # that a part of a page is still valid is of no use
    headers = {name.lower(): value.decode("latin-1") for name, value in read_whole(record.block).headers}
    validators = Validators(headers.get(b"etag", ""), headers.get(b"last-modified", ""))
    return Earlier(validators, Original.of(record.header), record.block[: payload_start(record.block)])
