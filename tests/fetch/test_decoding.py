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
    assert decode(PACKERS[name](data), name, LIMITS) == (data, True)


@pytest.mark.parametrize("outer", PACKERS)
@pytest.mark.parametrize("inner", PACKERS)
def test_two_encodings_are_taken_off_in_order(inner: str, outer: str) -> None:
    data = os.urandom(500) * 20
    packed = PACKERS[outer](PACKERS[inner](data))
    assert decode(packed, f"{inner}, {outer.upper()}", LIMITS) == (data, True)
    assert decode(packed, f"{inner}, identity, {outer}", LIMITS) == (data, True)


def test_three_encodings_are_not_touched() -> None:
    packed = gzip.compress(gzip.compress(gzip.compress(b"x")))
    assert decode(packed, "gzip, gzip, gzip", LIMITS) == (packed, False)


def test_a_bare_deflate_stream_is_understood() -> None:
    assert decode(bare_deflate(b"hello" * 100), "deflate", LIMITS) == (b"hello" * 100, True)


@pytest.mark.parametrize("name", PACKERS)
def test_a_bomb_stops_at_the_cap(name: str) -> None:
    packed = PACKERS[name](bytes(50_000_000))
    body, whole = decode(packed, name, LIMITS)
    assert (body == bytes(MOST), whole) == (True, False)


@pytest.mark.parametrize("name", PACKERS)
def test_a_body_of_exactly_the_cap_is_whole(name: str) -> None:
    data = b"ab" * (MOST // 2)
    assert decode(PACKERS[name](data), name, LIMITS)[0] == data


@pytest.mark.parametrize("name", PACKERS)
def test_a_cut_body_gives_what_there_is(name: str) -> None:
    data = os.urandom(100_000)
    packed = PACKERS[name](data)
    body, whole = decode(packed[:60_000], name, LIMITS)
    assert not whole
    assert body
    assert data.startswith(body) or body == packed[:60_000]


@pytest.mark.parametrize("name", [*PACKERS, "compress", "unknown"])
@pytest.mark.parametrize("body", [b"plain text", b"", b"\x1f\x8b", b"\x28\xb5\x2f\xfd\x00", b"\xff" * 1000])
def test_what_is_not_packed_as_it_says_is_given_as_it_came(name: str, body: bytes) -> None:
    unpacked, whole = decode(body, name, LIMITS)
    assert unpacked == body
    assert not whole or not body


def test_a_huge_zstd_window_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = packer.compress(b"x" * 100) + packer.flush()
    assert decode(packed, "zstd", LIMITS) == (packed, False)
