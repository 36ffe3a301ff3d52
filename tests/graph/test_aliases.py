"""Chains and circles of nodes that stand for others."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.graph.aliases import Aliases
from tests.graph.reference import ends

LARGEST = 2**64 - 1
nodes = st.one_of(st.integers(1, 12), st.integers(LARGEST - 3, LARGEST))


def resolved(leads: dict[int, int]) -> Aliases:
    pairs = np.array(sorted(leads.items()), np.uint64).reshape(-1, 2)
    return Aliases.resolved(pairs[:, 0], pairs[:, 1])


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(nodes, nodes, max_size=14), st.lists(nodes, max_size=20))
def test_each_stands_for_the_end_of_its_chain_and_circles_for_themselves(
    leads: dict[int, int], asked: list[int]
) -> None:
    aliases, wanted = resolved(leads), ends(leads)
    assert dict(zip(aliases.keys.tolist(), aliases.targets.tolist(), strict=True)) == wanted
    assert aliases(np.array(asked, np.uint64)).tolist() == [wanted.get(node, node) for node in asked]


def test_a_chain_of_100_000_and_a_circle_of_as_many_are_followed_to_the_end() -> None:
    nodes = np.arange(1, 100_001, dtype=np.uint64)
    chain = Aliases.resolved(nodes, nodes + np.uint64(1))
    assert len(chain.keys) == len(nodes)
    assert set(chain.targets.tolist()) == {100_001}
    assert len(Aliases.resolved(nodes, np.roll(nodes, 1)).keys) == 0
