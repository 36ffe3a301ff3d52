"""A few rounds of each fuzzer, always the same ones; `python -m benchmarks fuzz` runs a minute of each."""

from __future__ import annotations

import pytest

from tests.fuzz.fuzzers import FUZZERS
from tests.fuzz.fuzzing import Found, Fuzzer, play

ROUNDS = {"pages": 40, "texts": 20, "http": 200, "robots": 100, "dns": 30, "links": 50, "jobs": 6}


@pytest.mark.parametrize("name", FUZZERS)
def test_no_input_meets_an_exception_that_is_not_ours(name: str) -> None:
    found = Found()
    for number in range(ROUNDS[name]):
        play(FUZZERS[name], number, found)
    assert found.exceptions == []
    assert found.rounds == ROUNDS[name]


def test_what_fails_or_takes_long_is_named() -> None:
    def run(given: int) -> None:
        if given % 2:
            raise KeyError(given)

    found = Found()
    fuzzer = Fuzzer("x", lambda random: (random.randrange(100), 1), run, -1.0, 0.0)
    for number in range(50):
        play(fuzzer, number, found)
    assert len(found.exceptions) + len(found.slow) == 50
    assert min(len(found.exceptions), len(found.slow)) > 10
    assert found.seconds_above > 0
    assert found.exceptions[0].startswith("python -m tests.fuzz x ")
