"""Bodies packed in every way, rightly and wrongly, and bombs."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.settings import Fetch
from barkspider.fetch.decoding import decode


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstandard.ZstdCompressor().compress,
}
MOST = 200_000
LIMITS = Fetch(max_decoded=MOST)


@pytest.mark.parametrize("name", PACKERS)
@given(data=st.binary(max_size=3000))
def test_what_was_packed_is_unpacked(name: str, data: bytes) -> None:
    assert decode(PACKERS[name](data), name, LIMITS, MOST) == (data, True)


@pytest.mark.parametrize("outer", PACKERS)
@pytest.mark.parametrize("inner", PACKERS)
def test_two_encodings_are_taken_off_in_order(inner: str, outer: str) -> None:
    data = os.urandom(500) * 20
    packed = PACKERS[outer](PACKERS[inner](data))
    assert decode(packed, f"{inner}, {outer.upper()}", LIMITS, MOST) == (data, True)
    assert decode(packed, f"{inner}, identity, {outer}", LIMITS, MOST) == (data, True)


def test_three_encodings_are_not_touched() -> None:
    packed = gzip.compress(gzip.compress(gzip.compress(b"x")))
    assert decode(packed, "gzip, gzip, gzip", LIMITS, MOST) == (packed, False)


def test_a_bare_deflate_stream_is_understood() -> None:
    assert decode(bare_deflate(b"hello" * 100), "deflate", LIMITS, MOST) == (b"hello" * 100, True)


@pytest.mark.parametrize("name", PACKERS)
def test_a_bomb_stops_at_the_cap(name: str) -> None:
    packed = PACKERS[name](bytes(50_000_000))
    body, whole = decode(packed, name, LIMITS, MOST)
    assert (body == bytes(MOST), whole) == (True, False)


@pytest.mark.parametrize("name", PACKERS)
def test_a_body_of_exactly_the_cap_is_whole(name: str) -> None:
    data = b"ab" * (MOST // 2)
    assert decode(PACKERS[name](data), name, LIMITS, MOST)[0] == data


@pytest.mark.parametrize("name", PACKERS)
def test_a_cut_body_gives_what_there_is(name: str) -> None:
    data = os.urandom(100_000)
    packed = PACKERS[name](data)
    body, whole = decode(packed[:60_000], name, LIMITS, MOST)
    assert not whole
    assert body
    assert data.startswith(body) or body == packed[:60_000]


def named_gzip(data: bytes) -> bytes:
    """gzip with everything that its header can have."""
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\x00abc" + b"page.html\0" + b"a comment\0"
    header += zlib.crc32(header).to_bytes(4, "little")[:2]
    return header + gzip.compress(data)[10:]


@pytest.mark.parametrize(
    ("name", "packer", "trailer"),
    [("gzip", gzip.compress, 8), ("gzip", named_gzip, 8), ("deflate", zlib.compress, 4)],
)
@pytest.mark.parametrize("rubbish", [b"", b"\0" * 9])
def test_a_wrong_checksum_does_not_take_the_page_away(
    name: str, packer: Callable[[bytes], bytes], trailer: int, rubbish: bytes
) -> None:
    data = b"<p>some words</p>" * 3_000
    packed = packer(data)
    assert decode(packed, name, LIMITS, MOST) == (data, True)
    assert decode(packed[:-trailer] + b"\xff" * trailer + rubbish, name, LIMITS, MOST) == (data, False)
    for missing in range(1, trailer + 1):
        assert decode(packed[:-missing], name, LIMITS, MOST) == (data, False)


def test_a_wrong_length_does_not_take_the_page_away() -> None:
    packed = gzip.compress(b"words" * 100)
    assert decode(packed[:-4] + b"\0\0\0\0", "gzip", LIMITS, MOST) == (b"words" * 100, False)


def test_a_wrong_checksum_of_a_later_member_is_noticed() -> None:
    packed = gzip.compress(b"one") + gzip.compress(b"two")
    assert decode(packed[:-8] + bytes(8), "gzip", LIMITS, MOST) == (b"onetwo", False)


def test_a_bomb_with_a_wrong_checksum_stops_at_the_cap() -> None:
    body, whole = decode(gzip.compress(bytes(50_000_000))[:-8] + b"\xff" * 8, "gzip", LIMITS, MOST)
    assert (body == bytes(MOST), whole) == (True, False)


@given(packed=st.binary(max_size=200), flags=st.integers(0, 255), window=st.sampled_from(["gzip", "deflate"]))
def test_no_header_is_too_odd(packed: bytes, flags: int, window: str) -> None:
    start = b"\x1f\x8b\x08" + bytes([flags]) if window == "gzip" else b"\x78\x9c"
    body, _ = decode(start + packed, window, LIMITS, MOST)
    assert len(body) <= MOST


@pytest.mark.parametrize("name", [*PACKERS, "compress", "unknown"])
@pytest.mark.parametrize("body", [b"plain text", b"", b"\x1f\x8b", b"\x28\xb5\x2f\xfd\x00", b"\xff" * 1000])
def test_what_is_not_packed_as_it_says_is_given_as_it_came(name: str, body: bytes) -> None:
    unpacked, whole = decode(body, name, LIMITS, MOST)
    assert unpacked == body
    assert not whole or not body


def test_a_huge_zstd_window_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = packer.compress(b"x" * 100) + packer.flush()
    assert decode(packed, "zstd", LIMITS, MOST) == (packed, False)
