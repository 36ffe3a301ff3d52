"""What becomes of a link that another process owns."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import UsageError
from barkspider.frontier.modes import DROP, HOLD, MODES, SEND, TAKE, bundle, decision, is_due, rule

# Whether it is our own, and whether it is replicated.
LINKS = [(True, False), (False, False), (False, True), (True, True)]


@pytest.mark.parametrize(
    ("mode", "decisions"),
    [
        ("independent", [TAKE, TAKE, TAKE, TAKE]),
        ("firewall", [TAKE, DROP, DROP, TAKE]),
        ("cross-over", [TAKE, HOLD, HOLD, TAKE]),
        ("exchange", [TAKE, SEND, DROP, TAKE]),
    ],
)
def test_each_mode_has_its_rule(mode: str, decisions: list[int]) -> None:
    assert [decision(rule(mode), *link) for link in LINKS] == decisions


def test_own_links_are_taken_in_every_mode() -> None:
    for mode in MODES:
        assert [decision(rule(mode), True, replicated) for replicated in (False, True)] == [TAKE, TAKE]


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
