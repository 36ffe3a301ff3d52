"""WARC/1.1 files: every exchange exactly as it went over the wire.

An exchange is a request record and, right behind it, a response record, or a revisit record when the same
payload was stored before or the server says that nothing has changed; each is packed by itself, so that
a reader can begin at any record's offset. A revisit refers to a response record, never to another revisit: those who
replay an archive look no further.
A file is named `….open` while it grows; when it is complete it loses that, and its CDXJ index appears.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from barkspider.archive import cdxj
from barkspider.archive.packing import packer
from barkspider.archive.payloads import Payloads
from barkspider.archive.reader import OPEN, WarcFile, warc_files, warc_number
from barkspider.archive.records import (
    END,
    HEADER_ENDS,
    TRUNCATIONS,
    VERSION,
    base_32,
    digest,
    first_bits,
    frame,
    header,
    header_value,
    micros,
    payload_start,
    record_ids,
    status_and_type,
    warc_date,
    warc_fields,
)
from barkspider.core.errors import StorageError
from barkspider.core.settings import Archive
from barkspider.storage.env import AppendFile, Env

# For pages that their servers say have not changed, too: nobody replays the standard's `server-not-modified`.
_PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
# Whoever checks a file has the lines of its index in memory: so many bytes at most. A file of small answers, or of long
# URLs, ends by this before it is large.
_MOST_INDEX = 40_000_000
_OFFSET_BITS = 40
_EPOCH = datetime.fromtimestamp(0, UTC)

WarcEnd = tuple[str, int]  # a WARC file, without `.open`, and an end of a record in it
NOWHERE: WarcEnd = ("", 0)


class Stored(NamedTuple):
    """An exchange in the archive: its response or revisit record is file[offset:end].

    `file` is the name the file will have once it is complete, without `.open`. `digest` is that of the
    payload, in base 32, or "" when the response had none; `size` counts the payload's bytes. `status` is what the
    server answered, 304 also where the record has the header of an earlier answer.
    """

    file: str
    offset: int
    end: int
    record_id: str
    url_key: str
    status: int
    media_type: str
    digest: str
    size: int
    revisit: bool


class Original(NamedTuple):
    """The response record that has a payload already: the fields of its header, `digest` without its `sha1:`."""

    url: str
    date: str
    digest: str
    record_id: str

    @classmethod
    def of(cls, header: Mapping[str, str]) -> Original:
        """From the header of a response record, or of a revisit, which says the same of the one it refers to.

        Raises KeyError when the header does not say it.
        """
        kind = "warc-refers-to-" if header["warc-type"] == "revisit" else "warc-"
        return cls(
            header[f"{kind}target-uri"],
            header[f"{kind}date"],
            header["warc-payload-digest"].removeprefix("sha1:"),
            header["warc-refers-to" if kind == "warc-refers-to-" else "warc-record-id"],
        )


class _Answer(NamedTuple):
    """A response or revisit record: what is its own of the header, the HTTP header and what of the record follows it, the
    payload's digest and size, and the digest of the block, if it is known."""

    kind: str
    fields: str
    http: bytes
    rest: bytes | memoryview
    digest: str
    size: int
    block_digest: bytes | None = None


class WarcWriter:
    """Writes the exchanges of one crawl process into numbered files. One thread uses it.

    Files appear with the first exchange, never empty, and numbers go on from those already in the folder, so
    that no file is ever written to twice. A file left `.open` by a crash is left alone: only the journal
    knows how much of it counts (see `recover`).

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> writer = WarcWriter(Env(), folder, "news", Archive(), {"operator": "someone@example.com"})
    >>> request = b"GET / HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n"
    >>> response = b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi"
    >>> place = writer.write_exchange("http://example.com/", request, response, "192.0.2.1", 1e9)
    >>> place.file
    'news-20010909014640-00000.warc.gz'
    >>> writer.close()
    >>> sorted(path.name for path in folder.iterdir())
    ['news-20010909014640-00000.cdxj', 'news-20010909014640-00000.warc.gz']
    """

    def __init__(
        self,
        env: Env,
        folder: Path,
        prefix: str,
        settings: Archive,
        info: Mapping[str, str],
        last: WarcEnd = NOWHERE,
        earlier: Sequence[Path] = (),
    ) -> None:
        """`info` are the fields of the warcinfo record that begins each file, such as operator and robots.

        `last` is the end that an earlier writer of the folder reached, whose files may have been moved away.
        Payloads that are in archives in the folders `earlier` are not stored again; these are only read.
        """
        self._env = env
        self._folder = folder
        self._prefix = prefix
        self._settings = settings
        self._info = {"software": "barkspider", "format": f"WARC File Format {VERSION}", **info}
        self._packer = packer(settings)
        self._file: AppendFile | None = None
        self._named = True  # whether the name of the open file would survive a power loss
        self._name, self._size = last  # the last file, and its size when it is not open
        self._lines: cdxj.Lines | None = None  # of the index of the open file
        # By number, those of earlier writers too.
        self._names = {
            warc_number(path.name): path.name.removesuffix(OPEN)
            for path in warc_files(env, folder, f"{prefix}-")
        }
        self._number = max(warc_number(self._name), *self._names, -1)
        self._payloads: Payloads | None = None
        if settings.recent_digests:
            self._payloads = Payloads(env, folder, prefix, settings.recent_digests)
            self._catch_up(self._payloads)
        # A farm of equal pages refers to the same few records again and again.
        self._original = lru_cache(1024)(self._read_original)
        self._earlier = [WarcWriter(env, each, prefix, settings, info) for each in earlier]

    def write_exchange(
        self,
        url: str,
        request: bytes,
        response: bytes,
        address: str,
        date: datetime | float,
        truncated: str | None = None,
        earlier: Original | None = None,
        payload: bytes = b"",
        digests: tuple[bytes, bytes] | None = None,
    ) -> Stored:
        """Append a request and its response, both as the exact bytes on the wire.

        `payload` is what follows in the response, for whoever has the bytes behind its header by themselves; `digests` are
        then those of the payload and of the whole, if they are known.
        `date` is when the request was sent, with its time zone, or in seconds since 1970. `truncated` says
        why the response is not whole: length, time, disconnect or unspecified. `earlier` is what the URL gave
        before, which need not be remembered to be referred to. What has been written is safe from the end of
        this process after `flush`, and from the end of the machine after `sync`.
        """
        if truncated is not None and truncated not in TRUNCATIONS:
            raise ValueError(f"{truncated!r} is no reason for truncation; one of {sorted(TRUNCATIONS)} is")
        http, rest = response, memoryview(payload)
        if not payload or not response.endswith(HEADER_ENDS):
            response += payload
            start = max(payload_start(response), 0)
            http, rest, digests = response[:start], memoryview(response)[start:], None
        payload_digest, block_digest = digests or (digest(rest) if http else b"", None)
        size = len(rest) if http else 0
        worth = truncated is None and size >= self._settings.revisit_size
        text = base_32(payload_digest) if payload_digest else ""
        original = self._seen(payload_digest) if worth else None
        if original is None and worth and earlier is not None and earlier.digest == text:
            original = earlier
        fields = "" if truncated is None else f"WARC-Truncated: {truncated}\r\n"
        answer = _Answer("response", fields, http, rest, text, size, block_digest)
        if original is not None:
            answer = _revisit(original, http, size)
        stored = self._append(url, request, address, _micros(date), answer)
        if worth and original is None and self._payloads is not None:
            self._payloads.put(_short(payload_digest), self._number << _OFFSET_BITS | stored.offset)
        return stored

    def write_unchanged(
        self,
        url: str,
        request: bytes,
        head: bytes,
        address: str,
        date: datetime | float,
        original: Original,
    ) -> Stored:
        """Append a conditional request to which the answer was 304, and a revisit of what the URL gave before.

        `head` is the HTTP header that it had then: with that of a 304, the page would be shown empty.
        """
        stored = self._append(url, request, address, _micros(date), _revisit(original, head, 0))
        return stored._replace(status=304)

    def _append(self, url: str, request: bytes, address: str, time: int, answer: _Answer) -> Stored:
        file = self._file_for(time)
        request_id, response_id = record_ids()
        target, when, kind, http = header_value(url), warc_date(time), answer.kind, answer.http
        common = (
            f"WARC-Target-URI: {target}\r\nWARC-Date: {when}\r\nWARC-IP-Address: {header_value(address)}\r\n"
            "Content-Type: application/http; msgtype="
        )
        asked = (
            f"WARC-Type: request\r\nWARC-Record-ID: {request_id}\r\nWARC-Concurrent-To: {response_id}\r\n"
            f"{common}request\r\n"
        )
        said = f"WARC-Payload-Digest: sha1:{answer.digest}\r\n" if answer.digest else ""
        fields = (
            f"WARC-Type: {kind}\r\nWARC-Record-ID: {response_id}\r\nWARC-Concurrent-To: {request_id}\r\n"
            f"{common}response\r\n{answer.fields}{said}"
        )
        head = header(fields, http, answer.rest, answer.block_digest)
        answered = self._packer.pack(head + http, answer.rest, END)
        file.write(*self._packer.pack(frame(asked, request)), *answered)
        offset, key = file.size - sum(map(len, answered)), cdxj.key_of(url)
        status, media_type = status_and_type(http)
        place = (self._name, offset, file.size)
        assert self._lines is not None
        is_revisit = kind == "revisit"
        mime = cdxj.REVISIT if is_revisit else media_type
        self._lines.append(cdxj.line(key, when, target, mime, status, answer.digest, place))
        return Stored(*place, response_id, key, status, media_type, answer.digest, answer.size, is_revisit)

    def write_metadata(self, url: str, stored: Stored, date: float, fields: list[tuple[str, str]]) -> None:
        """Append what is known about an exchange that was just written, as a metadata record.

        A fault between the two leaves an exchange without its metadata, never the other way round.
        """
        time = micros(date)
        lines = (
            f"WARC-Type: metadata\r\nWARC-Record-ID: {record_ids()[0]}\r\n"
            f"WARC-Concurrent-To: {stored.record_id}\r\nWARC-Target-URI: {header_value(url)}\r\n"
            f"WARC-Date: {warc_date(time)}\r\nContent-Type: application/warc-fields\r\n"
        )
        self._file_for(time).write(*self._packer.pack(frame(lines, warc_fields(fields))))

    def end(self) -> WarcEnd:
        """The file that was written to last, and how many bytes it has by now."""
        return self._name, self._size if self._file is None else self._file.size

    def flush(self) -> None:
        """Hand everything written to the operating system."""
        if self._file is not None:
            self._file.flush()

    def syncing(self) -> Callable[[], None]:
        """What makes everything written so far survive a power loss; see `AppendFile.syncing`."""
        file, named = self._file, self._named
        sync = None if file is None else file.syncing()

        def work() -> None:
            if sync is not None:
                sync()
                if not named:
                    self._env.sync_folder(self._folder)
                    self._named |= self._file is file

        return work

    def close(self) -> None:
        """Complete the file that is open, and its index; the next exchange would begin another."""
        if self._file is None or self._lines is None:
            return
        self._file.sync()
        self._file.close()
        self._size = self._file.size
        self._file, lines, self._lines = None, self._lines, None
        self._env.rename(self._folder / (self._name + OPEN), self._folder / self._name)
        lines.finish()
        if self._payloads is not None:
            self._payloads.spill()

    def _file_for(self, time: int) -> AppendFile:
        if self._file is not None and (
            self._file.size >= self._settings.warc_size
            or (self._lines is not None and self._lines.size >= _MOST_INDEX)
            or self._packer.wants_new_file()
        ):
            self.close()
        if self._file is None:
            number = self._number + 1
            name = f"{self._prefix}-{cdxj.timestamp(warc_date(time))}-{number:05d}{self._packer.suffix}"
            file = self._env.append(self._folder / (name + OPEN))
            file.write(self._packer.start(), *self._packer.pack(self._warcinfo(name, time)))
            # Only now: a file without its warcinfo is never gone on with.
            self._file, self._name, self._named = file, name, False
            index = self._folder / cdxj.index_name(name)
            self._lines = cdxj.Lines(self._env, index, self._settings.table_memory)
            self._number, self._names[number] = number, name
        return self._file

    def _warcinfo(self, name: str, time: int) -> bytes:
        fields = (
            f"WARC-Type: warcinfo\r\nWARC-Record-ID: {record_ids()[0]}\r\nWARC-Date: {warc_date(time)}\r\n"
            f"WARC-Filename: {header_value(name)}\r\nContent-Type: application/warc-fields\r\n"
        )
        return frame(fields, warc_fields(list(self._info.items())))

    def _seen(self, payload_digest: bytes) -> Original | None:
        """The record that has this payload already, if it is remembered and can be found."""
        place = self._payloads.find(_short(payload_digest)) if self._payloads is not None else -1
        original = self._original(place) if place >= 0 else None
        if original and original.digest == base_32(payload_digest):
            return original
        return next((found for each in self._earlier if (found := each._seen(payload_digest))), None)

    def _catch_up(self, payloads: Payloads) -> None:
        """Take payloads from the indexes of files that an earlier writer did not get to note."""
        until = payloads.until
        for number in sorted(number for number in self._names if number >= until >> _OFFSET_BITS):
            path = self._folder / cdxj.index_name(self._names[number])
            if path.name not in self._env.list(self._folder):
                continue
            said = [cdxj.parse_line(text) for text in self._env.read(path).splitlines()]
            stored = [each for each in said if "digest" in each and each["mime"] != cdxj.REVISIT]
            for offset, found in sorted((int(each["offset"]), each["digest"]) for each in stored):
                place = number << _OFFSET_BITS | offset
                if place > until:
                    payloads.put(first_bits(found), place)

    def _read_original(self, place: int) -> Original | None:
        self.flush()
        try:
            name = self._names[place >> _OFFSET_BITS]
            with WarcFile.find(self._env, self._folder / name) as file:
                return Original.of(file.header(place & (1 << _OFFSET_BITS) - 1))
        except (StorageError, KeyError):
            return None  # a closed file may have been moved away: the payload is stored once more


def _micros(date: datetime | float) -> int:
    return micros(date) if isinstance(date, int | float) else (date - _EPOCH) // timedelta(microseconds=1)


def _revisit(original: Original, head: bytes, size: int) -> _Answer:
    fields = (
        f"WARC-Profile: {_PROFILE}\r\nWARC-Refers-To: {original.record_id}\r\n"
        f"WARC-Refers-To-Target-URI: {original.url}\r\nWARC-Refers-To-Date: {original.date}\r\n"
    )
    return _Answer("revisit", fields, head, b"", original.digest, size)


def _short(payload_digest: bytes) -> int:
    return int.from_bytes(payload_digest[:8])
