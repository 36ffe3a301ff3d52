"""Reading WARC files back: cut anywhere, damaged anywhere, while they grow, packed by gzip or zstd."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.archive import WarcFile, WarcWriter, valid_length, warc_files
from barkspider.archive.cdxj import index_lines
from barkspider.core.errors import StorageError
from barkspider.core.settings import Archive
from barkspider.storage.env import Env

URL = "http://example.com/"
NOW = 1_800_000_000.25
KINDS = ["warcinfo", "request", "response", "request", "response"]


def write(folder: Path, compression: str = "gzip", count: int = 2, size: int = 60, **chosen: Any) -> Path:
    """A closed file of short exchanges."""
    writer = WarcWriter(Env(), folder, "test", Archive(compression=compression, **chosen), {})
    for number in range(count):
        body = random.Random(number).randbytes(size).hex()
        stored = writer.write_exchange(
            f"{URL}{number}", b"GET /", f"HTTP/1.1 200 OK\r\n\r\n{body}".encode(), "192.0.2.1", NOW
        )
    writer.close()
    return folder / stored.file


def ends(path: Path) -> list[int]:
    with WarcFile(Env(), path) as file:
        return [record.end for record in file]


@pytest.mark.parametrize("size", [60, 50_000])
@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_records_lie_side_by_side_and_open_at_their_offsets(
    tmp_path: Path, compression: str, size: int
) -> None:
    path = write(tmp_path, compression, size=size)
    with WarcFile(Env(), path) as file:
        records = list(file)
        assert [record.kind for record in records] == KINDS
        assert [record.offset for record in records] == [0, *(record.end for record in records[:-1])]
        assert records[-1].end == path.stat().st_size
        for record in records:
            assert file.record(record.offset) == record
            assert file.header(record.offset) == record.header
    assert records[-1].url == f"{URL}1"
    with WarcFile(Env(), path) as file:
        assert file.header(records[-1].offset + 1) == file.header(records[-1].end) == {}


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_file_cut_at_any_byte_is_read_up_to_its_last_whole_record(tmp_path: Path, compression: str) -> None:
    path = write(tmp_path, compression, count=1, size=20)
    data, borders = path.read_bytes(), [0, *ends(path)]
    torn = tmp_path / f"torn.warc.{'gz' if compression == 'gzip' else 'zst'}.open"
    for length in range(len(data) + 1):
        torn.write_bytes(data[:length])
        whole = max(border for border in borders if border <= length)
        assert valid_length(torn) == whole
        with WarcFile(Env(), torn) as file:
            assert [record.end for record in file] == borders[1 : borders.index(whole) + 1]
    # A closed file is never cut: there, it is damage.
    closed = torn.rename(torn.with_suffix(""))
    closed.write_bytes(data[:-1])
    with WarcFile(Env(), closed) as file, pytest.raises(StorageError, match=f"damaged at byte {borders[-2]}"):
        list(file)


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_any_flipped_bit_of_a_record_is_noticed(tmp_path: Path, compression: str) -> None:
    path = write(tmp_path, compression, count=1, size=20)
    data, borders = path.read_bytes(), ends(path)
    with WarcFile(Env(), path) as file:
        truth = [(record.header, record.block) for record in file]
    damaged = path.with_name(f"damaged-{path.name}.open")
    for place in range(borders[0], len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        damaged.write_bytes(changed)
        with WarcFile(Env(), damaged) as file:
            found = [(record.header, record.block) for record in file]
        # It ends there, and nothing false comes out. (A frame of zstd whose mark of a checksum is flipped is still
        # read rightly, and what follows is not.)
        assert found == truth[: len(found)]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_at_all_are_read_without_a_fault(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        for name in ("x.warc.gz.open", "x.warc.zst.open"):
            path = Path(folder) / name
            path.write_bytes(data)
            assert valid_length(path) == 0


def test_a_growing_file_is_read_as_far_as_it_got(tmp_path: Path) -> None:
    writer = WarcWriter(Env(), tmp_path, "test", Archive(), {})
    for number in range(3):
        writer.write_exchange(f"{URL}{number}", b"GET /", b"HTTP/1.1 200 OK\r\n\r\n", "192.0.2.1", NOW)
        writer.flush()
        (path,) = warc_files(Env(), tmp_path)
        assert path.name.endswith(".open")
        assert len(index_lines(Env(), path)) == number + 1
    writer.close()
    (closed,) = warc_files(Env(), tmp_path)
    index = closed.with_name(closed.name.replace(".warc.gz", ".cdxj"))
    assert b"".join(index_lines(Env(), closed)) == index.read_bytes()


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_large_payload_is_found_again_in_either_packing(tmp_path: Path, compression: str) -> None:
    response = b"HTTP/1.1 200 OK\r\n\r\n" + random.Random(1).randbytes(100_000).hex().encode()
    writer = WarcWriter(Env(), tmp_path, "test", Archive(compression=compression, warc_size=200_000), {})
    stored = [writer.write_exchange(f"{URL}{n}", b"GET /", response, "192.0.2.1", NOW) for n in range(3)]
    writer.close()
    assert [one.revisit for one in stored] == [False, True, True]
    with WarcFile(Env(), tmp_path / stored[0].file) as file:
        assert file.record(stored[0].offset).block == response


@pytest.mark.parametrize("moment", [1, 2, 3])
def test_a_file_is_found_while_it_is_being_completed(tmp_path: Path, moment: int) -> None:
    path = write(tmp_path)
    growing = path.rename(f"{path}.open")

    class Racing(Env):
        listed = 0

        def list(self, folder: Path) -> list[str]:
            names = super().list(folder)
            self.listed += 1
            if self.listed == moment:
                growing.rename(path)
            return names

    with WarcFile.find(Racing(), path) as file:
        assert [record.kind for record in file] == KINDS
    with pytest.raises(StorageError, match="No such file"):
        WarcFile.find(Env(), tmp_path / "other.warc.gz")


def test_a_dictionary_is_trained_once_and_begins_every_later_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barkspider.archive.packing._SAMPLES", 60_000)
    monkeypatch.setattr("barkspider.archive.packing._DICTIONARY_SIZE", 4_000)
    writer = WarcWriter(Env(), tmp_path, "test", Archive(compression="zstd", warc_size=20_000), {})
    bodies = []
    for number in range(120):
        noise = random.Random(number).randbytes(300).hex()
        bodies.append(f"HTTP/1.1 200 OK\r\n\r\n<html>{'the same words ' * 9}{number}{noise}".encode())
        writer.write_exchange(f"{URL}{number}", b"GET /", bodies[-1], "192.0.2.1", NOW)
    writer.close()
    paths = warc_files(Env(), tmp_path)
    starts = [path.read_bytes()[:4] for path in paths]
    plain, dictionary = b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18"
    assert starts[0] == plain
    assert len(starts) > 2
    assert set(starts[starts.index(dictionary) :]) == {dictionary}
    ours, theirs = [], []
    for path in paths:
        with WarcFile(Env(), path) as file:
            ours += [record.block for record in file if record.kind == "response"]
        with path.open("rb") as stream:
            theirs += [
                record.reader.read()
                for record in ArchiveIterator(stream, parse_http=False)
                if record.headers["WARC-Type"] == "response"
            ]
    assert ours == theirs == bodies
    data = paths[-1].read_bytes()
    torn = tmp_path / "torn.warc.zst.open"
    for length in (0, 3, 7, 9, 500):  # inside of the dictionary
        torn.write_bytes(data[:length])
        assert valid_length(torn) == 0
    damaged = bytearray(data)
    damaged[600:700] = bytes(100)
    torn.write_bytes(damaged)
    with pytest.raises(StorageError, match="its dictionary cannot be unpacked"):
        valid_length(torn)
