"""Fingerprints against a slow twin, and the index against looking at everything."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.page.fingerprint import NearDuplicates, simhash

_MASK = 2**64 - 1
_WORD = re.compile(rb"[\xe3-\xed][\x80-\xbf]*|(?:[0-9A-Za-z]|[\x80-\xe2\xee-\xff])+")


def slow_simhash(text: str) -> int:
    """The same fingerprint, bit by bit."""
    words = []
    for word in _WORD.findall(text.casefold().encode()):
        value = 0xCBF29CE484222325
        for byte in word:
            value = (value ^ byte) * 0x100000001B3 & _MASK
        words.append(value)
    shingles = [words[k : k + 3] for k in range(len(words) - 2)] or [words] * bool(words)
    votes = [0] * 64
    for shingle in shingles:
        mixed = 0
        for value in shingle:
            mixed = (mixed ^ value) * 0x9E3779B97F4A7C15 & _MASK
            mixed ^= mixed >> 29
        mixed = mixed * 0xBF58476D1CE4E5B9 & _MASK
        mixed ^= mixed >> 32
        votes = [vote + (1 if mixed >> bit & 1 else -1) for bit, vote in enumerate(votes)]
    return sum(1 << bit for bit, vote in enumerate(votes) if vote > 0)


@settings(deadline=None, max_examples=300)
@given(st.text(st.sampled_from("ab1 .,éж日本ก\U0001f600"), max_size=60))
def test_a_fingerprint_is_that_of_the_slow_twin(text: str) -> None:
    assert simhash(text) == slow_simhash(text)


def test_near_texts_have_near_fingerprints_and_others_have_not() -> None:
    random = Random(1)
    words = [f"word{number}" for number in range(5000)]
    near, far = [], []
    for _ in range(50):
        text = random.choices(words, k=600)
        changed = text.copy()
        changed[random.randrange(600)] = "changed"
        one, two = simhash(" ".join(text)), simhash(" ".join(changed))
        near.append((one ^ two).bit_count())
        far.append((one ^ simhash(" ".join(random.choices(words, k=600)))).bit_count())
    assert sum(bits <= 3 for bits in near) >= 40
    assert min(far) > 10


def _random_marks(random: Random, count: int) -> np.ndarray:
    """Fingerprints of which many differ in a few bits."""
    marks: list[int] = []
    for _ in range(count):
        mark = random.getrandbits(64)
        if marks and random.random() < 0.6:
            mark = random.choice(marks[-60:])
            for _ in range(random.randrange(6)):
                mark ^= 1 << random.randrange(64)
        marks.append(mark)
    return np.array(marks, np.uint64)


@pytest.mark.parametrize("distance", [0, 1, 3])
def test_the_index_finds_what_looking_at_everything_finds(distance: int) -> None:
    random = Random(distance)
    index, kept = NearDuplicates(capacity=100, distance=distance), np.empty(0, np.uint64)
    found_any = 0
    for asked in _random_marks(random, 600).reshape(30, 20):
        names, bits = index.find(asked)
        for mark, name, near in zip(asked, names, bits, strict=True):
            apart = np.bitwise_count(kept ^ mark)
            nearest = int(apart.min()) if len(apart) else 64
            assert near == (nearest if nearest <= distance else -1)
            if near >= 0:
                found_any += 1
                assert int(np.bitwise_count(name ^ mark)) == near
        index.add(asked, asked)  # named by themselves
        kept = np.concatenate((kept, asked))[-100:]
        index.validate()
    assert found_any > 10
    assert len(index) == 100


def test_an_index_forgets_the_oldest_when_it_is_full() -> None:
    index = NearDuplicates(capacity=2)
    index.add(np.array([1 << 10, 2 << 20, 3 << 40], np.uint64), np.array([1, 2, 3], np.uint64))
    names, bits = index.find(np.array([1 << 10, 3 << 40], np.uint64))
    assert len(index) == 2
    # What was forgotten is not found by itself; another that is near may be.
    assert bits.tolist() == [2, 0]
    assert names.tolist() == [2, 3]


def test_a_distance_that_no_block_covers_is_refused() -> None:
    with pytest.raises(ValueError, match="distance"):
        NearDuplicates(distance=4)
