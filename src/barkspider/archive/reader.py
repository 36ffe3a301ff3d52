"""Reading WARC files back: record by record, or one record at its place.

A file that is still being written, or was when its process died, ends in `.open`: it is read up to its last
complete record. In a closed file whatever is not a record is damage and is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from barkspider.archive.packing import UNPACKING_ERRORS, first_frame, unpackers
from barkspider.core.errors import StorageError
from barkspider.storage.env import Env

OPEN = ".open"
SUFFIXES = (".warc.gz", ".warc.zst")
_PIECE, _LARGE_PIECE = 1 << 16, 1 << 20
_END = b"\r\n\r\n"
LARGEST = 1 << 28  # bytes of a record, unpacked: `fetch.max_size` and the largest header fit
_LONGEST_HEAD = 1 << 20  # bytes: URLs have 65,535 characters at most
_HEAD = 4096  # of packed bytes: more than a header needs, unless its URL is very long or zstd packed it


@dataclass(frozen=True, slots=True)
class Record:
    """One record: file[offset:end], its header by name in lower case, and its block."""

    offset: int
    end: int
    header: dict[str, str]
    block: bytes

    @property
    def kind(self) -> str:
        """WARC-Type: response, revisit, request, metadata, warcinfo …"""
        return self.header.get("warc-type", "")

    @property
    def url(self) -> str:
        """WARC-Target-URI, or ""."""
        return self.header.get("warc-target-uri", "")


class WarcFile:
    """A WARC file to read from. One thread.

    >>> import tempfile
    >>> from barkspider.archive import WarcWriter
    >>> from barkspider.core.settings import Archive
    >>> folder = Path(tempfile.mkdtemp())
    >>> writer = WarcWriter(Env(), folder, "news", Archive(), {})
    >>> place = writer.write_exchange("http://example.com/", b"GET /", b"HTTP/1.1 200 OK", "192.0.2.1", 1e9)
    >>> writer.close()
    >>> with WarcFile(Env(), folder / place.file) as file:
    ...     [record.kind for record in file], file.record(place.offset).block
    (['warcinfo', 'request', 'response'], b'HTTP/1.1 200 OK')
    """

    def __init__(self, env: Env, path: Path) -> None:
        self.name = path.name.removesuffix(OPEN)
        self._suffix = next((suffix for suffix in SUFFIXES if self.name.endswith(suffix)), SUFFIXES[0])
        self._growing = path.name.endswith(OPEN)
        self._path = path
        self._file = env.open(path)
        self._start, dictionary = self._dictionary()
        self._unpacker = unpackers(self._suffix, dictionary)

    @classmethod
    def find(cls, env: Env, path: Path) -> WarcFile:
        """The file of this name, complete or growing; a writer may complete it at this very moment."""
        closed = path.with_name(path.name.removesuffix(OPEN))
        for name in (closed.name, closed.name + OPEN):
            if name in env.list(path.parent):
                with suppress(StorageError):
                    return cls(env, path.with_name(name))
        return cls(env, closed)

    @property
    def size(self) -> int:
        """The length at this moment, whole records or not."""
        return self._file.size

    def __iter__(self) -> Iterator[Record]:
        """Every record in order; raises StorageError where a closed file is damaged."""
        place = self._start
        for record in self.records():
            place = record.end
            yield record
        if not self._growing and place != self._file.size:
            raise self._damage(place)

    def record(self, offset: int) -> Record:
        """The record that begins there."""
        for record in self.records(offset):
            return record
        raise self._damage(offset)

    def header(self, offset: int) -> dict[str, str]:
        """The header alone of the record that begins there; {} when it cannot be read."""
        unpacker, head = self._unpacker(), b""
        try:
            while _END not in head and not unpacker.ended and (data := self._file.pread(offset, _HEAD)):
                offset += len(data)
                head += unpacker.feed(data, _LONGEST_HEAD)
                if len(head) > _LONGEST_HEAD:
                    return {}
        except UNPACKING_ERRORS:
            return {}
        return _header(head[: max(head.find(_END), 0)]) or {}

    def valid_length(self) -> int:
        """The end of the last complete record; what lies behind it is a tail that a crash cut."""
        place = self._start
        for record in self.records():
            place = record.end
        return min(place, self._file.size)

    def packed(self, end: int) -> Iterator[bytes]:
        """The file as it is, in pieces, up to a place that it is known to reach."""
        place = 0
        while place < end:
            data = self._file.pread(place, min(end - place, _LARGE_PIECE))
            if not data:
                raise StorageError(f"{self._path} is cut off at byte {place}; it had {end}")
            yield data
            place += len(data)

    def close(self) -> None:
        """Close; a second call does nothing."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _dictionary(self) -> tuple[int, bytes]:
        if self._suffix != ".warc.zst":
            return 0, b""
        size, content = first_frame(self._file.pread(0, 8), str(self._path))
        if size > 8:
            size, content = first_frame(self._file.pread(0, size), str(self._path))
        if content is None:  # cut inside of the dictionary: there is no record at all
            return 0, b""
        return size, content

    def records(self, offset: int = 0) -> Iterator[Record]:
        """Records from the one that begins there, until one is not whole, too large or not a record."""
        place = max(offset, self._start)
        read, data = place, b""
        while True:
            offset, unpacker, pieces, left = place, self._unpacker(), [], LARGEST
            try:
                while not unpacker.ended:
                    if not data:
                        data = self._file.pread(read, _PIECE)
                        read += len(data)
                    if not data:
                        return
                    pieces.append(unpacker.feed(data, left))
                    left -= len(pieces[-1])
                    if left < 0:  # a few bytes may stand for gigabytes
                        return
                    data = b""
            except UNPACKING_ERRORS:
                return
            data = unpacker.rest
            place = read - len(data)
            record = parse_record(b"".join(pieces), offset, place)
            if record is None:
                return
            yield record

    def _damage(self, place: int) -> StorageError:
        return StorageError(f"{self._path} is damaged at byte {place}: there is no record")


def valid_length(path: Path, env: Env | None = None) -> int:
    """How much of a WARC file, open or closed, is complete records.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x.warc.gz.open"
    >>> path.write_bytes(b"torn")
    4
    >>> valid_length(path)
    0
    """
    with WarcFile(env or Env(), path) as file:
        return file.valid_length()


def warc_files(env: Env, folder: Path, prefix: str = "") -> list[Path]:
    """The WARC files of an archive in the order of their names, open ones too."""
    names = [name for name in env.list(folder) if name.removesuffix(OPEN).endswith(SUFFIXES)]
    return [folder / name for name in names if name.startswith(prefix)]


def warc_number(name: str) -> int:
    """The number of a WARC file, or of its index, within its series; -1 when the name has none.

    >>> warc_number("pages-20270115080000-00012.warc.gz.open"), warc_number("")
    (12, -1)
    """
    number = name.partition(".")[0].rpartition("-")[2]
    return int(number) if number.isascii() and number.isdecimal() else -1


def parse_record(data: bytes, offset: int, end: int) -> Record | None:
    """The record that these unpacked bytes are; None when they are not exactly one."""
    border = data.find(_END)
    header = _header(data[: max(border, 0)])
    if header is None:
        return None
    start, length = border + len(_END), header.get("content-length", "")
    if not length.isdecimal() or start + int(length) + len(_END) != len(data) or not data.endswith(_END):
        return None
    return Record(offset, end, header, data[start : -len(_END)])


def _header(head: bytes) -> dict[str, str] | None:
    first, *lines = head.decode("utf-8", "replace").split("\r\n")
    if not first.startswith("WARC/1."):
        return None
    fields = [line.partition(":") for line in lines]
    return {name.strip().lower(): value.strip() for name, _, value in fields}
