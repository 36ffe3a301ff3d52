"""WARC files: read back by warcio and fastwarc, checked by warcio, hostile bytes, roll-over."""

from __future__ import annotations

import base64
import gzip
import hashlib
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker
from warcio.recordloader import ArcWarcRecord

from barkspider.archive import WarcFile, WarcWriter
from barkspider.archive.records import payload_start
from barkspider.core.errors import StorageError
from barkspider.core.settings import Archive
from barkspider.storage.env import AppendFile, Env
from barkspider.storage.raw import Data

URL = "http://example.com/a?b=1"
REQUEST = b"GET /a?b=1 HTTP/1.1\r\nHost: example.com\r\n\r\n"
BODY = b"<html>hello</html>\n" * 50
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
PACKED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(BODY, mtime=0)
BARE = b"HTTP/1.0 200 OK\nContent-Type: text/html\n\n" + BODY
EMPTY = b"HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"
CUT = b"HTTP/1.1 200 OK\r\nContent-Ty"
NOW = 1_800_000_000.25


def writer_in(folder: Path, env: Env | None = None, **chosen: Any) -> WarcWriter:
    return WarcWriter(env or Env(), folder, "test", Archive(**chosen), {"operator": "me\r\nWARC/1.0"})


def records(path: Path) -> Iterator[tuple[ArcWarcRecord, bytes]]:
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, no_record_parse=True):
            yield record, record.content_stream().read()


def faults(*paths: Path) -> int:
    """The exit code of `warcio check`."""
    code: int = Checker(SimpleNamespace(inputs=[str(path) for path in paths], verbose=False)).process_all()
    return code


def sha1(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_exchanges_read_back_exactly(tmp_path: Path, level: int) -> None:
    writer = writer_in(tmp_path, gzip_level=level)
    responses = [PLAIN, CHUNKED, PACKED, BARE, EMPTY]
    places = [writer.write_exchange(URL, REQUEST, response, "192.0.2.7", NOW) for response in responses]
    writer.close()
    path = tmp_path / places[0].file
    assert faults(path) == 0
    found = list(records(path))
    assert [record.rec_type for record, _ in found] == ["warcinfo", *["request", "response"] * len(responses)]
    assert [block for record, block in found if record.rec_type == "response"] == responses
    assert {block for record, block in found if record.rec_type == "request"} == {REQUEST}
    for record, block in found[1:]:
        headers = record.rec_headers
        assert headers.get_header("WARC-Target-URI") == URL
        assert headers.get_header("WARC-Date") == "2027-01-15T08:00:00.250000Z"
        assert headers.get_header("WARC-IP-Address") == "192.0.2.7"
        assert headers.get_header("WARC-Block-Digest") == sha1(block)
        assert headers.get_header("WARC-Truncated") is None
    for (asked, _), (answered, _) in zip(found[1::2], found[2::2], strict=True):
        ids = [record.rec_headers.get_header("WARC-Record-ID") for record in (asked, answered)]
        assert asked.rec_headers.get_header("WARC-Concurrent-To") == ids[1]
        assert answered.rec_headers.get_header("WARC-Concurrent-To") == ids[0]
    assert len({record.rec_headers.get_header("WARC-Record-ID") for record, _ in found}) == len(found)


@pytest.mark.parametrize("response", [PLAIN, CHUNKED, PACKED, BARE])
@pytest.mark.parametrize("hashed", [False, True])
def test_a_response_in_two_parts_is_stored_as_a_whole(tmp_path: Path, response: bytes, hashed: bool) -> None:
    end = payload_start(response)
    head, payload = response[:end], response[end:]
    digests = (hashlib.sha1(payload).digest(), hashlib.sha1(response).digest()) if hashed else None
    writer = writer_in(tmp_path)
    whole = writer.write_exchange(URL, REQUEST, response, "192.0.2.7", NOW)
    parts = writer.write_exchange(URL, REQUEST, head, "192.0.2.7", NOW, payload=payload, digests=digests)
    again = writer.write_exchange(URL, REQUEST, head[:-1], "192.0.2.7", NOW, payload=head[-1:] + payload)
    writer.close()
    path = tmp_path / whole.file
    assert faults(path) == 0
    blocks = [block for record, block in records(path) if record.rec_type in ("response", "revisit")]
    assert blocks[0] == response
    assert blocks[1:] in (
        [response] * 2,
        [head] * 2,
    )  # the same payload is stored once, if it is large enough
    assert {(place.digest, place.size) for place in (whole, parts, again)} == {(whole.digest, len(payload))}


def test_a_payload_digest_covers_what_is_stored_behind_the_header(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    for response in (PLAIN, CHUNKED, EMPTY, CUT):
        place = writer.write_exchange(URL, REQUEST, response, "192.0.2.7", NOW)
    writer.close()
    digests = [
        record.rec_headers.get_header("WARC-Payload-Digest")
        for record, _ in records(tmp_path / place.file)
        if record.rec_type == "response"
    ]
    assert digests == [sha1(BODY), sha1(CHUNKED.partition(b"\r\n\r\n")[2]), sha1(b""), None]
    assert faults(tmp_path / place.file) == 0


def test_the_check_would_find_a_fault(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    place = writer.write_exchange(URL, REQUEST, CHUNKED, "192.0.2.7", NOW)
    writer.close()
    path = tmp_path / place.file
    path.write_bytes(
        gzip.compress(gzip.decompress(path.read_bytes()[place.offset :]).replace(b"hello", b"jello", 1))
    )
    assert faults(path) == 1


def test_fastwarc_reads_it_and_agrees_on_digests(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    for response in (PLAIN, CHUNKED, EMPTY):
        place = writer.write_exchange(URL, REQUEST, response, "2001:db8::1", NOW)
    writer.close()
    seen = []
    with (tmp_path / place.file).open("rb") as stream:
        for record in FastIterator(stream, parse_http=False):
            assert record.verify_block_digest()
            seen.append((record.headers["WARC-Type"], record.reader.read()))
    assert [block for kind, block in seen if kind == "response"] == [PLAIN, CHUNKED, EMPTY]
    with (tmp_path / place.file).open("rb") as stream:
        bodies = [
            record.reader.read()
            for record in FastIterator(stream)
            if record.headers["WARC-Type"] == "response"
        ]
    assert bodies[0] == BODY


def test_a_place_is_one_record(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    first = writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW)
    second = writer.write_exchange(URL, REQUEST, CHUNKED, "192.0.2.7", NOW)
    writer.flush()
    still_open = tmp_path / (second.file + ".open")
    assert still_open.stat().st_size == second.end
    writer.close()
    data = (tmp_path / second.file).read_bytes()
    for place, response in ((first, PLAIN), (second, CHUNKED)):
        member = gzip.decompress(data[place.offset : place.end])
        head, _, block = member.partition(b"\r\n\r\n")
        assert b"WARC-Type: response" in head
        assert block == response + b"\r\n\r\n"


def test_what_was_cut_is_said(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    place = writer.write_exchange(URL, REQUEST, PLAIN[:-5], "192.0.2.7", NOW, truncated="disconnect")
    writer.close()
    *_, (record, _) = records(tmp_path / place.file)
    assert record.rec_headers.get_header("WARC-Truncated") == "disconnect"
    with pytest.raises(ValueError, match="truncation"):
        writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW, truncated="x\r\ny: z")


def test_dates_are_in_utc(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    moment = datetime(2027, 1, 15, 10, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=2)))
    place = writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", moment)
    assert place.file.startswith("test-20270115080000-")
    writer.close()
    *_, (record, _) = records(tmp_path / place.file)
    assert record.rec_headers.get_header("WARC-Date") == "2027-01-15T08:00:00.250000Z"
    assert moment.astimezone(UTC).hour == 8


def test_files_roll_over_and_lose_their_ending(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, warc_size=2000, recent_digests=0)
    places = [writer.write_exchange(f"{URL}&n={n}", REQUEST, PLAIN, "192.0.2.7", NOW) for n in range(12)]
    names = list(dict.fromkeys(place.file for place in places))
    assert len(names) > 2
    assert names == [f"test-20270115080000-{number:05d}.warc.gz" for number in range(len(names))]
    indexes = [name.replace(".warc.gz", ".cdxj") for name in names]
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == sorted([*names[:-1], names[-1] + ".open", *indexes[:-1]])
    writer.close()
    writer.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, *indexes])
    assert faults(*tmp_path.glob("*.warc.gz")) == 0
    for name in names:
        found = list(records(tmp_path / name))
        assert found[0][0].rec_type == "warcinfo"
        assert found[0][0].rec_headers.get_header("WARC-Filename") == name
        assert b"operator: me WARC/1.0\r\n" in found[0][1]
    targets = [
        record.rec_headers.get_header("WARC-Target-URI")
        for name in names
        for record, _ in records(tmp_path / name)
    ]
    assert len({target for target in targets if target}) == 12


def test_nothing_written_leaves_no_file(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    writer.flush()
    writer.syncing()()
    writer.close()
    assert list(tmp_path.iterdir()) == []


def test_numbers_go_on_and_a_file_left_open_is_left_alone(tmp_path: Path) -> None:
    left = tmp_path / "test-20270115080000-00004.warc.gz.open"
    left.write_bytes(b"half a record")
    (tmp_path / "test-robots-20270115080000-00009.warc.gz").touch()
    (tmp_path / "other-20270115080000-00099.warc.gz").touch()
    (tmp_path / "test-notes.txt").touch()
    writer = writer_in(tmp_path)
    place = writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW)
    writer.close()
    assert place.file.endswith(("-00005.warc.gz", "-00010.warc.gz"))
    assert left.read_bytes() == b"half a record"


def test_an_error_of_the_disk_is_passed_on(tmp_path: Path) -> None:
    class FullFile(AppendFile):
        def write(self, *pieces: Data) -> None:
            self.close()
            raise StorageError("no space left")

    class FullDisk(Env):
        def append(self, path: Path) -> AppendFile:
            return FullFile(path)

    with pytest.raises(StorageError, match="no space"):
        writer_in(tmp_path, FullDisk()).write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW)


def test_an_equal_payload_becomes_a_revisit(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, revisit_size=len(BODY))
    other = PLAIN.replace(b"text/html", b"text/plain")
    first = writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW)
    again = writer.write_exchange("http://b.example/", REQUEST, other, "192.0.2.8", NOW + 60)
    writer.close()
    assert (first.revisit, again.revisit, again.digest) == (False, True, first.digest)
    assert faults(tmp_path / first.file) == 0
    found = list(records(tmp_path / first.file))
    (original, _), (_, _), (revisit, block) = found[2:]
    assert block == other[: other.index(BODY)]
    header = revisit.rec_headers.get_header
    assert header("WARC-Profile") == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert header("WARC-Refers-To-Target-URI") == URL
    for mine, theirs in (
        ("WARC-Refers-To-Date", "WARC-Date"),
        ("WARC-Refers-To", "WARC-Record-ID"),
        ("WARC-Payload-Digest", "WARC-Payload-Digest"),
    ):
        assert header(mine) == original.rec_headers.get_header(theirs)
    assert header("WARC-Block-Digest") == sha1(block)
    index = (tmp_path / first.file.replace(".warc.gz", ".cdxj")).read_text()
    assert '"mime": "warc/revisit"' in index.splitlines()[1]


def test_what_is_small_cut_or_unlike_is_stored_whole(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, revisit_size=len(BODY) + 1)
    assert not any(writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW).revisit for _ in range(3))
    writer.close()
    tmp_path = tmp_path / "other"
    tmp_path.mkdir()
    writer = writer_in(tmp_path, revisit_size=1)
    for response, truncated in (
        (PLAIN, "length"),
        (PLAIN, None),
        (PLAIN, "length"),
        (BARE + b"x", None),
        (CUT, None),
    ):
        assert not writer.write_exchange(URL, REQUEST, response, "192.0.2.7", NOW, truncated).revisit
    writer.close()
    assert faults(*tmp_path.glob("*.warc.gz")) == 0


def test_a_payload_whose_file_was_moved_away_is_stored_again(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, revisit_size=1)
    first = writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW)
    writer.close()
    (tmp_path / first.file).unlink()
    assert not writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW).revisit
    assert writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW).revisit
    writer.close()


@pytest.mark.parametrize("noted", [True, False])
def test_a_payload_of_an_earlier_run_becomes_a_revisit(tmp_path: Path, noted: bool) -> None:
    """However long ago it was stored, and also if the process died before it was noted."""
    writer = writer_in(tmp_path, revisit_size=1, recent_digests=2)
    first = writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW)
    for number in range(10):
        other = PLAIN[: -len(BODY)] + b"x" * number + BODY
        writer.write_exchange(f"{URL}{number}", REQUEST, other, "192.0.2.7", NOW)
    writer.close()
    if not noted:
        shutil.rmtree(tmp_path / "payloads")
    again = writer_in(tmp_path, revisit_size=1, recent_digests=2)
    stored = again.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW)
    assert (stored.revisit, stored.digest) == (True, first.digest)
    again.close()


def test_only_the_whole_digest_makes_a_revisit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barkspider.archive.warc._short", lambda _: 5)  # all of them collide
    writer = writer_in(tmp_path, revisit_size=1)
    responses = [PLAIN, CHUNKED, PLAIN, PLAIN]
    found = [
        writer.write_exchange(URL, REQUEST, response, "192.0.2.7", NOW).revisit for response in responses
    ]
    writer.close()
    assert found == [False, False, False, True]


def test_metadata_belongs_to_its_response(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    stored = writer.write_exchange(URL, REQUEST, PLAIN, "192.0.2.7", NOW)
    writer.write_metadata(URL, stored, NOW, [("outlink", "http://x/\r\nvia: lie"), ("outcome", "page")])
    writer.close()
    assert faults(tmp_path / stored.file) == 0
    *_, (response, _), (metadata, block) = records(tmp_path / stored.file)
    assert metadata.rec_type == "metadata"
    assert block == b"outlink: http://x/ via: lie\r\noutcome: page\r\n"
    header = metadata.rec_headers.get_header
    assert header("WARC-Concurrent-To") == response.rec_headers.get_header("WARC-Record-ID")
    assert header("Content-Type") == "application/warc-fields"


def test_a_file_of_many_small_answers_ends_before_its_index_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barkspider.archive.warc._MOST_INDEX", 10_000)
    writer = writer_in(tmp_path)
    urls = [*[URL] * 100, *(f"{URL}{number}{'x' * 2000}" for number in range(7))]
    files = [writer.write_exchange(url, REQUEST, EMPTY, "192.0.2.7", NOW).file for url in urls]
    writer.close()
    counts = [files.count(file) for file in dict.fromkeys(files)]
    assert sum(counts) == 107
    assert min(counts[:3]) > 20  # short URLs
    assert counts[-2] == 3  # long ones
    assert max(path.stat().st_size for path in tmp_path.glob("*.cdxj")) < 10_000 + 4_500


_NASTY = st.lists(
    st.sampled_from(
        (
            *(
                b"\r\n",
                b"\n",
                b"\r",
                b"\x00",
                b"\r\n\r\n",
                b"WARC/1.0\r\n",
                b"WARC/1.1\r\nWARC-Type: response\r\n",
            ),
            *(b"Content-Length: 0\r\n", b"\x1f\x8b\x08", b"HTTP/1.1 200 OK\r\n", b"a", b"\xff", b": ", b""),
        )
    ),
    max_size=12,
).map(b"".join)
_NASTY_TEXT = _NASTY.map(lambda data: data.decode("latin-1")) | st.text(max_size=20)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(_NASTY_TEXT, _NASTY, _NASTY, _NASTY_TEXT), min_size=1, max_size=4))
def test_no_bytes_break_the_framing(exchanges: list[tuple[str, bytes, bytes, str]]) -> None:
    with TemporaryDirectory() as folder:
        writer = writer_in(Path(folder))
        for url, request, response, address in exchanges:
            place = writer.write_exchange(url, request, response, address, NOW)
        writer.close()
        found = list(records(Path(folder) / place.file))
        assert [block for _, block in found[1:]] == [
            block for _, request, response, _ in exchanges for block in (request, response)
        ]
        for record, _ in found[1:]:
            names = [name for name, _ in record.rec_headers.headers]
            assert len(names) == len(set(names))
            assert set(names) <= {
                *("WARC-Type", "WARC-Record-ID", "WARC-Concurrent-To", "WARC-Target-URI", "WARC-Date"),
                *(
                    "WARC-IP-Address",
                    "WARC-Payload-Digest",
                    "WARC-Block-Digest",
                    "Content-Type",
                    "Content-Length",
                ),
            }
        with (Path(folder) / place.file).open("rb") as stream:
            fast = [record.reader.read() for record in FastIterator(stream, parse_http=False)]
        with WarcFile(Env(), Path(folder) / place.file) as file:
            ours = list(file)
        assert fast == [record.block for record in ours] == [block for _, block in found]
        for record, (other, _) in zip(ours, found, strict=True):
            # A header of warcio's is what is written; white space at its ends does not count.
            theirs = {name.lower(): value.strip() for name, value in other.rec_headers.headers}
            assert record.header == theirs
        (index,) = Path(folder).glob("*.cdxj")
        assert index.read_bytes() == b"".join(sorted(index.read_bytes().splitlines(keepends=True)))
        assert index.read_bytes().count(b"\n") == len(exchanges)
