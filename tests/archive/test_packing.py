"""Records whose payload is packed already: a gzip member of blocks, which any reader reads."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from barkspider.archive import WarcFile, WarcWriter
from barkspider.archive.packing import Gzip, is_packed
from barkspider.core.settings import Archive
from barkspider.storage.env import Env

NOW = 1_800_000_000.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x\r\n\r\n"
SIZES = [0, 1, 127, 128, 1000, 65_534, 65_535, 65_536, 65_537, 131_070, 131_071, 1 << 20]
EVIL = b"\r\n\r\nWARC/1.0\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\xff"


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def evil(size: int) -> bytes:
    data = bytearray(noise(size))
    for place in range(0, size - len(EVIL), 5000):
        data[place : place + len(EVIL)] = EVIL
    return bytes(data)


def stored_bodies(path: Path) -> Iterator[list[bytes]]:
    """The payloads of all responses of a file, as warcio, FastWARC and our own reader find them."""
    with path.open("rb") as file:
        yield [each.raw_stream.read() for each in ArchiveIterator(file) if each.rec_type == "response"]
    with path.open("rb") as file:
        yield [
            each.reader.read()
            for each in FastIterator(file, parse_http=True)
            if each.headers["WARC-Type"] == "response"
        ]
    with WarcFile(Env(), path) as ours:
        yield [each.block.removeprefix(HEAD) for each in ours if each.kind == "response"]


@pytest.mark.parametrize("make", [noise, evil, bytes])
def test_every_reader_finds_the_payload_whatever_its_size(tmp_path: Path, make: type[bytes]) -> None:
    bodies = [make(size) for size in SIZES]
    writer = WarcWriter(Env(), tmp_path, "x", Archive(recent_digests=0), {})
    places = [
        writer.write_exchange("http://a.example/", b"GET /", HEAD + body, "192.0.2.1", NOW) for body in bodies
    ]
    writer.close()
    for found in stored_bodies(tmp_path / places[0].file):
        assert found == bodies
    data = (tmp_path / places[0].file).read_bytes()
    for place, body in zip(places, bodies, strict=True):
        member = data[place.offset : place.end]
        unpacker = zlib.decompressobj(31)
        assert unpacker.decompress(member).endswith(HEAD + body + b"\r\n\r\n")
        assert unpacker.eof
        assert not unpacker.unused_data


@given(
    head=st.binary(max_size=2000),
    payload=st.one_of(
        st.binary(max_size=3000),
        st.builds(
            lambda size, seed: random.Random(seed).randbytes(size), st.integers(0, 140_000), st.integers()
        ),
    ),
    end=st.binary(max_size=8),
)
@settings(max_examples=80, deadline=None)
def test_a_member_has_its_parts_one_behind_the_other(head: bytes, payload: bytes, end: bytes) -> None:
    for level in (0, 1, 3):
        for member in (
            b"".join(Gzip(level)._store(head, memoryview(payload), end)),
            b"".join(Gzip(level).pack(head, memoryview(payload), end + b".")),
        ):
            assert gzip.GzipFile(fileobj=BytesIO(member)).read().startswith(head + payload + end)


def test_what_is_packed_is_stored_as_it_is_and_takes_no_more_room() -> None:
    text = b" ".join(b"%d times %d" % (number, number * number) for number in range(3000))
    packed = gzip.compress(text)
    member = b"".join(Gzip(1).pack(b"WARC/1.1\r\n", memoryview(packed), b"\r\n\r\n"))
    assert packed in member
    assert len(member) < len(packed) + 80
    assert sum(map(len, Gzip(1).pack(b"WARC/1.1\r\n", memoryview(text), b"\r\n\r\n"))) < len(text) / 2


@pytest.mark.parametrize(
    "text",
    [
        b"<p>plain markup</p>\n" * 500,
        "неправда, что ".encode() * 400,
        "".join(chr(0x4E00 + number * 7 % 5000) for number in range(4000)).encode(),
        "".join(chr(0x4E00 + number * 7 % 5000) for number in range(4000)).encode("gb18030"),
        bytes(5000),
        b"",
        noise(127),
    ],
)
def test_what_can_be_packed_is(text: bytes) -> None:
    assert not is_packed(text)


def test_chunked_and_encoded_payloads_are_known_by_their_bytes() -> None:
    packed = gzip.compress(noise(3000).hex().encode())
    assert is_packed(packed)
    assert is_packed(
        b"".join(b"%x\r\n%b\r\n" % (500, packed[at : at + 500]) for at in range(0, len(packed), 500))
    )
