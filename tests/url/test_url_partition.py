"""Which process a URL belongs to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.url.keys import KeyMaker
from barkspider.url.partition import SLOTS, by_address, by_hash, by_hierarchy, slots, slotted

KEYS = KeyMaker(seed=3).column(f"host{number}.example".encode() for number in range(20_000))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, SLOTS))
def test_every_process_owns_a_range_of_slots_as_large_as_the_others(processes: int) -> None:
    owners = by_hash(np.arange(SLOTS, dtype=np.uint64), processes)
    assert (np.diff(owners.astype(int)) >= 0).all()
    counts = np.bincount(owners, minlength=processes)
    assert len(counts) == processes
    assert counts.max() - counts.min() <= 1


def test_hosts_spread_evenly() -> None:
    counts = np.bincount(by_hash(KEYS, 16))
    assert counts.min() > 0.9 * len(KEYS) / 16


@pytest.mark.parametrize("processes", [0, SLOTS + 1])
def test_more_processes_than_slots_are_refused(processes: int) -> None:
    with pytest.raises(ValueError, match="slots"):
        by_hash(KEYS, processes)


def test_a_slotted_key_is_in_the_slot_of_its_domain_and_keeps_the_rest() -> None:
    keys, domains = KEYS[:10_000], KEYS[10_000:]
    made = slotted(keys, domains)
    assert made.dtype == np.uint64
    assert (slots(made) == slots(domains)).all()
    assert (made // SLOTS == keys // SLOTS).all()
    assert (by_hash(made, 7) == by_hash(domains, 7)).all()
    assert [slotted(*pair) for pair in zip(keys.tolist(), domains.tolist(), strict=True)] == made.tolist()
    assert slotted(2**64 - 1, 0) == 2**64 - SLOTS


def test_a_single_top_level_domain_is_divided_by_host() -> None:
    groups = np.zeros(len(KEYS), np.int64)
    assert (by_hierarchy(groups, np.array([len(KEYS)]), KEYS, 7) == by_hash(KEYS, 7)).all()


def test_small_top_level_domains_share_a_process_and_large_ones_have_several() -> None:
    groups = np.repeat([0, 1, 2, 3], [12_000, 4_000, 2_000, 2_000])
    owners = by_hierarchy(groups, np.bincount(groups), KEYS, 5)
    assert [sorted(set(owners[groups == group].tolist())) for group in range(4)] == [[0, 1, 2], [3], [4], [4]]
    assert np.bincount(owners).min() > 0.9 * len(KEYS) / 5


def test_a_top_level_domain_of_no_known_size_still_has_an_owner() -> None:
    owners = by_hierarchy(np.array([0, 1]), np.array([10, 0]), KEYS[:2], 4)
    assert owners.max() <= 3


def test_hosts_of_a_server_stay_together_and_the_unknown_go_by_name() -> None:
    addresses = np.repeat(KeyMaker(seed=3).column([b"192.0.2.1", b"192.0.2.2"]), 10_000)
    owners = by_address(addresses, KEYS, 16)
    assert len(set(owners[:10_000].tolist())) == len(set(owners[10_000:].tolist())) == 1
    assert (by_address(np.zeros_like(KEYS), KEYS, 16) == by_hash(KEYS, 16)).all()
