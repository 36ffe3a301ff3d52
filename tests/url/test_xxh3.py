"""Keys by the compiled function are those of the library, at every length and with every seed."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from barkspider.url.xxh3 import xxh3

_seeds = st.integers(0, 2**64 - 1)


def key(text: bytes, start: int, count: int, seed: int) -> int:
    return int(xxh3(np.frombuffer(text, np.uint8), start, count, np.uint64(seed)))


def test_keys_are_those_of_the_library_at_every_length() -> None:
    text = np.random.default_rng(1).bytes(5000)
    for seed in (0, 1, 0x0123456789ABCDEF, 2**64 - 1):
        for count in (*range(1300), 2047, 2048, 2049, 4096, 4990):
            assert key(text, 5, count, seed) == xxh3_64_intdigest(text[5 : 5 + count], seed), count


@settings(max_examples=300)
@given(st.binary(max_size=600), _seeds, st.integers(0, 9))
def test_keys_are_those_of_the_library(text: bytes, seed: int, before: int) -> None:
    assert key(b"x" * before + text, before, len(text), seed) == xxh3_64_intdigest(text, seed)
