"""The set of seen URLs on disk."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barkspider.core.batch import UrlBatch
from barkspider.core.records import UrlRow
from barkspider.frontier.budget.seen import Seen
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.store.manifest import Store
from barkspider.url.partition import SLOTS, slots, slotted
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")
SMALL = Sizing(2, 4096, 2000, 1 << 20)


def row(number: int, domain: int = 3) -> UrlRow:
    """A URL whose key differs from all others in the bits that stay."""
    url = b"http://a.example/%d" % number
    return UrlRow(number << 12, 5, domain, number % 7, 1, 2, 4, url, parent=number + 1, found=number)


def taken(seen: Seen) -> list[UrlRow]:
    """All new URLs that are there."""
    return [found for batch in seen.unique() for found in batch.rows()]


def opened(env: FaultyEnv, front: int = 0) -> tuple[Store, Seen]:
    store = Store.open(env, FOLDER)
    seen = Seen(env, FOLDER, sizing=SMALL, front=front, background=False, state=store.state("seen"))
    store.add(seen)
    return store, seen


def test_each_url_comes_out_once_with_all_its_columns() -> None:
    _, seen = opened(FaultyEnv())
    seen.feed(UrlBatch.from_rows([row(1), row(2), row(1)]))
    assert seen.pending == 3
    assert not taken(seen)
    seen.merge()
    assert sorted(taken(seen)) == [row(1), row(2)]
    seen.feed(UrlBatch.from_rows([row(2), row(3)]))
    seen.merge()
    assert taken(seen) == [row(3)]
    assert len(seen) == 3
    assert seen.pending == 0
    seen.validate()


def test_the_stored_key_tells_the_slot_and_keeps_the_rest_of_the_hash() -> None:
    random = np.random.default_rng(1)
    keys, domains = random.integers(0, 2**64, (2, 1000), dtype=np.uint64)
    stored = slotted(keys, domains)
    assert (stored % SLOTS == slots(domains)).all()
    assert (stored >> np.uint64(12) == keys >> np.uint64(12)).all()
    _, seen = opened(FaultyEnv())
    seen.feed(UrlBatch.from_rows([row(1, domain=7), row(1, domain=8)]))
    seen.merge()
    found = [keys % SLOTS for keys, _ in seen.drum.items()]
    assert np.concatenate(found).tolist() == [7, 8]


events = st.one_of(
    st.lists(st.integers(0, 60), min_size=1, max_size=40),
    st.sampled_from(["merge", "take", "commit", "reopen", "drop", "keep", "random"]),
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(events, max_size=25), st.sampled_from([0, 256]))
def test_it_is_a_set_whatever_happens(script: list[str | list[int]], front: int) -> None:
    env = FaultyEnv()
    store, seen = opened(env, front)
    fed, out = set[int](), list[int]()
    safe: tuple[set[int], list[int]] = (set(), [])
    for event in script:
        if isinstance(event, list):
            seen.feed(UrlBatch.from_rows([row(number) for number in event]))
            fed |= set(event)
        elif event == "merge":
            seen.merge()
        elif event == "take":
            out += [found.key >> 12 for found in taken(seen)]
        elif event == "commit":
            store.commit()
            safe = set(fed), list(out)
        else:
            seen.close()
            if event != "reopen":
                env = env.crash(event, Random(1))
            store, seen = opened(env, front)
            fed, out = set(safe[0]), list(safe[1])
        seen.validate()
    seen.merge()
    out += [found.key >> 12 for found in taken(seen)]
    assert sorted(out) == sorted(fed)
    assert len(seen) == len(fed)
    seen.close()
