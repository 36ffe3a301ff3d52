"""WARC/1.1 files: every exchange exactly as it went over the wire.

An exchange is a request record and, right behind it, the response record; each is a gzip member of its
own, so that a reader can begin at any record's offset. A file is named `….warc.gz.open` while it grows and
loses the `.open` when it is complete.

Digests are SHA-1 in base 32. The block digest covers the whole block. The payload digest covers the bytes
behind the HTTP header *as stored*: when a server sent chunks, the chunk lines are part of it. ISO 28500
would have the transfer coding taken off first, but the archives that exist and the tools that check them
(`warcio check` among them) hash what is stored, and a digest is there to be checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from isal import igzip_lib

from barkspider.core.settings import Archive
from barkspider.storage.env import AppendFile, Env

_VERSION = "1.1"
_OPEN = ".open"
_SUFFIX = ".warc.gz"
# The values that the WARC standard gives for WARC-Truncated.
_TRUNCATIONS = frozenset(("length", "time", "disconnect", "unspecified"))
_HEADER_END = re.compile(rb"\n\r?\n")
# What may stand in a WARC header as it is: all printable ASCII but the space.
_PLAIN = "".join(map(chr, range(0x21, 0x7F)))

_BASE_32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_PAIRS = [first + second for first in _BASE_32 for second in _BASE_32]


class Place(NamedTuple):
    """Where an exchange was written: the response record is file[offset:end], and the file ended at `end`.

    `file` is the name the file will have once it is complete, without `.open`.
    """

    file: str
    offset: int
    end: int


class WarcWriter:
    """Writes the exchanges of one crawl process into numbered files. One thread uses it.

    Files appear with the first exchange, never empty, and numbers go on from those already in the folder, so
    that no file is ever written to twice. A file left `.open` by a crash is left alone: only the journal
    knows how much of it counts.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> writer = WarcWriter(Env(), folder, "news", Archive(), {"operator": "someone@example.com"})
    >>> request = b"GET / HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n"
    >>> response = b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi"
    >>> place = writer.write_exchange("http://example.com/", request, response, "192.0.2.1", 1e9)
    >>> place.file
    'news-20010909014640-00000.warc.gz'
    >>> writer.close()
    >>> [path.name for path in folder.iterdir()]
    ['news-20010909014640-00000.warc.gz']
    """

    def __init__(
        self, env: Env, folder: Path, prefix: str, settings: Archive, info: Mapping[str, str]
    ) -> None:
        """`info` are the fields of the warcinfo record that begins each file, such as operator and robots."""
        self._env = env
        self._folder = folder
        self._prefix = prefix
        self._settings = settings
        self._info = {"software": "barkspider", "format": f"WARC File Format {_VERSION}", **info}
        self._file: AppendFile | None = None
        self._name = ""
        self._next_number = self._first_free_number()

    def write_exchange(
        self,
        url: str,
        request: bytes,
        response: bytes,
        address: str,
        date: datetime | float,
        truncated: str | None = None,
    ) -> Place:
        """Append a request and its response, both as the exact bytes on the wire.

        `date` is when the request was sent, with its time zone, or in seconds since 1970. `truncated` says
        why the response is not whole: length, time, disconnect or unspecified. What has been written is
        safe from the end of this process after `flush`, and from the end of the machine after `sync`.
        """
        if truncated is not None and truncated not in _TRUNCATIONS:
            raise ValueError(f"{truncated!r} is no reason for truncation; one of {sorted(_TRUNCATIONS)} is")
        moment = datetime.fromtimestamp(date, UTC) if isinstance(date, int | float) else date.astimezone(UTC)
        file = self._file_for(moment)
        request_id, response_id = _record_ids()
        common = (
            f"WARC-Target-URI: {_header_value(url)}\r\n"
            f"WARC-Date: {_warc_date(moment)}\r\n"
            f"WARC-IP-Address: {_header_value(address)}\r\n"
        )
        asked = self._record(
            f"WARC-Type: request\r\nWARC-Record-ID: {request_id}\r\nWARC-Concurrent-To: {response_id}\r\n"
            f"{common}Content-Type: application/http; msgtype=request\r\n",
            request,
        )
        cut = f"WARC-Truncated: {truncated}\r\n" if truncated is not None else ""
        payload = _payload(response)
        digest = f"WARC-Payload-Digest: {_digest(payload)}\r\n" if payload is not None else ""
        answered = self._record(
            f"WARC-Type: response\r\nWARC-Record-ID: {response_id}\r\nWARC-Concurrent-To: {request_id}\r\n"
            f"{common}{cut}{digest}Content-Type: application/http; msgtype=response\r\n",
            response,
        )
        file.write(asked + answered)
        return Place(self._name, file.size - len(answered), file.size)

    def flush(self) -> None:
        """Hand everything written to the operating system."""
        if self._file is not None:
            self._file.flush()

    def sync(self) -> None:
        """Make everything written survive a power loss."""
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Complete the file that is open; the next exchange would begin another."""
        if self._file is None:
            return
        self._file.sync()
        self._file.close()
        self._file = None
        self._env.rename(self._folder / (self._name + _OPEN), self._folder / self._name)

    def _file_for(self, moment: datetime) -> AppendFile:
        if self._file is not None and self._file.size >= self._settings.warc_size:
            self.close()
        if self._file is None:
            self._name = f"{self._prefix}-{moment:%Y%m%d%H%M%S}-{self._next_number:05d}{_SUFFIX}"
            self._next_number += 1
            file = self._env.append(self._folder / (self._name + _OPEN))
            file.write(self._warcinfo(moment))
            self._file = file  # only now: a file without its warcinfo is never gone on with
        return self._file

    def _warcinfo(self, moment: datetime) -> bytes:
        # A line break in a value would begin another field.
        fields = "".join(f"{name}: {' '.join(value.split())}\r\n" for name, value in self._info.items())
        return self._record(
            f"WARC-Type: warcinfo\r\nWARC-Record-ID: {_record_ids()[0]}\r\nWARC-Date: {_warc_date(moment)}\r\n"
            f"WARC-Filename: {_header_value(self._name)}\r\nContent-Type: application/warc-fields\r\n",
            fields.encode(),
        )

    def _record(self, fields: str, block: bytes) -> bytes:
        head = f"WARC/{_VERSION}\r\n{fields}WARC-Block-Digest: {_digest(block)}\r\nContent-Length: {len(block)}\r\n\r\n"
        record = b"".join((head.encode("ascii"), block, b"\r\n\r\n"))
        member: bytes = igzip_lib.compress(record, self._settings.compression, igzip_lib.COMP_GZIP)
        return member

    def _first_free_number(self) -> int:
        highest = -1
        for name in self._env.list(self._folder):
            stem = name.removesuffix(_OPEN)
            if stem.startswith(f"{self._prefix}-") and stem.endswith(_SUFFIX):
                number = stem.removesuffix(_SUFFIX).rpartition("-")[2]
                highest = max(highest, int(number) if number.isdecimal() else -1)
        return highest + 1


def _payload(response: bytes) -> memoryview | None:
    """What follows the HTTP header: None when the header never ended."""
    # Some servers end lines with a bare line feed, so the first empty line of either kind ends the header.
    end = _HEADER_END.search(response)
    return memoryview(response)[end.end() :] if end else None


def _digest(data: bytes | memoryview) -> str:
    # 160 bits are 16 pairs of base-32 digits; the standard library takes six times as long.
    number = int.from_bytes(sha1(data, usedforsecurity=False).digest())
    return "sha1:" + "".join([_PAIRS[number >> shift & 1023] for shift in range(150, -1, -10)])


def _record_ids() -> tuple[str, str]:
    """Two random UUIDs (RFC 9562, version 4) as WARC writes them, from one call to the system."""
    bits = os.urandom(32).hex()
    return _record_id(bits[:32]), _record_id(bits[32:])


def _record_id(bits: str) -> str:
    variant = "89ab"[int(bits[16], 16) & 3]
    return f"<urn:uuid:{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-{variant}{bits[17:20]}-{bits[20:]}>"


def _warc_date(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _header_value(text: str) -> str:
    """The text with all that could end a line, or is not ASCII, percent-encoded."""
    if text.isascii() and text.isprintable() and " " not in text:
        return text
    return quote(text, safe=_PLAIN, errors="replace")
