"""What becomes of a link that another process owns."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import UsageError
from barkspider.frontier.modes import DROP, KEEP, MODES, SEND, TAKE, bundle, decide, is_due, rule

# Own, another's, another's and replicated, own and replicated.
OWNERS = np.array([3, 5, 5, 3], np.uint16)
REPLICATED = np.array([False, False, True, True])


@pytest.mark.parametrize(
    ("mode", "decisions"),
    [
        ("independent", [TAKE, TAKE, TAKE, TAKE]),
        ("firewall", [TAKE, DROP, DROP, TAKE]),
        ("cross-over", [TAKE, KEEP, KEEP, TAKE]),
        ("exchange", [TAKE, SEND, DROP, TAKE]),
    ],
)
def test_each_mode_has_its_rule(mode: str, decisions: list[int]) -> None:
    assert decide(rule(mode), 3, OWNERS, REPLICATED).tolist() == decisions


def test_own_links_are_taken_in_every_mode() -> None:
    for mode in MODES:
        assert (decide(rule(mode), 5, np.full(9, 5, np.uint16), np.arange(9) % 2 == 0) == TAKE).all()


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="cross-over"):
        rule("crossover")


def test_a_batch_is_sent_when_it_is_full_or_nothing_is_left_to_do() -> None:
    assert [is_due(pages, 3, False) for pages in range(5)] == [False, False, False, True, True]
    assert [is_due(pages, 3, True) for pages in range(3)] == [False, True, True]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5)))
def test_a_batch_has_each_url_once_with_the_number_of_its_links(keys: list[int]) -> None:
    counts = bundle(np.array(keys, np.uint64))
    sent = {key: count for key, count in zip(keys, counts.tolist(), strict=True) if count}
    assert sent == Counter(keys)
    assert list(sent) == list(dict.fromkeys(keys)), "in the order they were found"
