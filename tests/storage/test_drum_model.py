"""DRUM against a dict, through random operations, merges, commits, reopenings and crashes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barkspider.storage.drum.repository import CHECK, CHECK_UPDATE, UPDATE
from tests.storage.drum_model import NUMBER, Config, Pair, Row
from tests.storage.faulty import FaultyEnv

# Both ends of the range, few small keys so that most repeat, a few in every bucket, and any.
keys = st.one_of(
    st.sampled_from([0, 2**64 - 1, 2**63, 2**61]),
    st.integers(0, 30),
    st.builds(lambda high, low: (high << 60) + low, st.integers(0, 15), st.integers(0, 3)),
    st.integers(0, 2**64 - 1),
)
operations = st.sampled_from([CHECK, UPDATE, CHECK_UPDATE])
texts = st.one_of(st.binary(max_size=12), st.binary(min_size=300, max_size=600))
sets = st.lists(st.sampled_from([bytes(8), b"\0" * 7 + b"1", b"abcdefgh", b"1" + b"\0" * 7]), max_size=4)

KINDS: dict[tuple[Any, str], st.SearchStrategy[Any]] = {
    (None, "replace"): st.none(),
    (bytes, "replace"): texts,
    (bytes, "union"): sets.map(b"".join),
    (NUMBER, "replace"): st.integers(-1000, 1000),
    (NUMBER, "add"): st.integers(-1000, 1000),
    (NUMBER, "max"): st.integers(-1000, 1000),
}


class Machine(RuleBasedStateMachine):
    """The rules; `kind` is set by each test."""

    kind: tuple[Any, str]

    @initialize(
        output=st.sampled_from(["all", "unique"]),
        buckets=st.sampled_from([1, 2, 16]),
        buffer=st.sampled_from([40, 300, 4096]),
        bucket_bytes=st.sampled_from([64, 400, 100_000]),
        segment=st.sampled_from([60, 500, 1 << 20]),
        background=st.booleans(),
        front=st.sampled_from([0, 128, 4096]),
    )
    def begin(self, output: str, front: int, **sizes: Any) -> None:
        value, update = self.kind
        fronted = front if value is None and output == "unique" else 0
        self.pair = Pair(FaultyEnv(), Config(value, update, output, front=fronted, **sizes))

    @rule(data=st.data(), one=st.one_of(st.none(), operations))
    def feed(self, data: st.DataObject, one: int | None) -> None:
        row = st.builds(Row, operations if one is None else st.just(one), keys, KINDS[self.kind], texts)
        self.pair.feed(data.draw(st.lists(row, max_size=40)))

    @rule(wait=st.booleans())
    def merge(self, wait: bool) -> None:
        self.pair.merge(wait)

    @rule(most=st.sampled_from([1, 1000]))
    def take(self, most: int) -> None:
        self.pair.take(most)

    @rule()
    def commit(self) -> None:
        self.pair.commit()

    @rule()
    def reopen(self) -> None:
        self.pair.reopen()

    @rule(how=st.sampled_from(["drop", "keep", "random"]), seed=st.integers(0, 1000))
    def crash(self, how: str, seed: int) -> None:
        self.pair.reopen(how, Random(seed))

    @precondition(lambda self: self.kind[1] == "replace")
    @rule(divisor=st.integers(2, 5))
    def expunge(self, divisor: int) -> None:
        self.pair.expunge(divisor)

    @rule()
    def check(self) -> None:
        self.pair.check()

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "pair"):
            self.pair.drum.validate()

    def teardown(self) -> None:
        if hasattr(self, "pair"):
            self.pair.check()
            self.pair.drum.close()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}")
def test_it_answers_like_a_dict(kind: tuple[Any, str]) -> None:
    machine = type("Machine", (Machine,), {"kind": kind})
    case = machine.TestCase
    case.settings = settings(
        max_examples=60,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    case().runTest()
