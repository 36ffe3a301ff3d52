"""Overlap and coverage of several processes, from samples: exact while these hold everything, close when they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barkspider.frontier.census import MOST, Census, KeySample, census_from, committed_census
from barkspider.parallel.metrics import measure
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store


def keys(seed: int, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


def part(pages: int, waiting: int = 0, sealed: int = 0, applied: int = 0, unsent: int = 0) -> dict[str, Any]:
    gauges = {"sent": 30, "sent_bytes": 600, "batches": 2, "to_send": unsent}
    others = {"sealed": [sealed] * 2, "applied": [applied] * 2, "waiting": [unsent, unsent]}
    empty: dict[str, int] = {}
    return {
        "pages": pages,
        "redirects": 0,
        "failed": empty,
        "refused": empty,
        "decided": empty,
        "in_flight": 0,
        "dropped": 0,
        "queued": waiting,
        "deferred": 0,
        "gauges": gauges,
        "others": others,
    }


def sampled(fetched: Any, taken: Any = (), left: Any = ()) -> dict[str, KeySample]:
    found = {name: KeySample() for name in ("fetched", "taken", "left")}
    for name, some in (("fetched", fetched), ("taken", taken), ("left", left)):
        found[name].add(np.array(some, np.uint64))
    return found


def test_pages_that_two_processes_fetched_are_overlap() -> None:
    pages = keys(1, 300)
    found = measure([part(200), part(150)], [sampled(pages[:200]), sampled(pages[150:])])
    assert found["overlap"] == round(50 / 300, 4)
    assert (found["coverage"], found["coverage_is"], found["sampled"]) == (1.0, "exact", 1.0)
    assert (found["urls"], found["messages"], found["bytes"]) == (60, 4, 1200)
    assert found["urls_a_page"] == round(60 / 350, 4)


@pytest.mark.parametrize("count", [1_000, 60_000])
def test_what_samples_say_is_what_is(count: int) -> None:
    """Three of ten pages are fetched by both; of what one left to the other, that one knows four fifths."""
    pages, links = keys(2, count), keys(3, count)
    one = sampled(pages[: count * 8 // 10], pages, links[: count // 2])
    two = sampled(pages[count // 2 :], links[: count * 4 // 10], [])
    found = measure([part(count * 8 // 10), part(count // 2)], [one, two])
    unknown = count // 10
    assert found["overlap"] == pytest.approx(0.3, abs=0.03 if count > MOST else 0.0005)
    expected = 1 / (1 + unknown / count)
    assert found["coverage"] == pytest.approx(expected, abs=0.02 if count > MOST else 0.0005)
    assert found["coverage_is"] == "estimate"
    assert (found["sampled"] < 1) == (count > MOST)


def test_what_waits_anywhere_lowers_coverage_and_is_named_by_pair() -> None:
    pages = keys(1, 100)
    parts = [part(50, waiting=60, sealed=3, applied=1), part(50, unsent=20, sealed=1, applied=3)]
    found = measure(parts, [sampled(pages[:50]), sampled(pages[50:])])
    assert (found["coverage"], found["coverage_is"]) == (round(100 / 180, 4), "estimate")
    assert {"sender": 1, "receiver": 0, "batches": 0, "urls": 20} in found["backlog"]
    assert measure([part(0), part(0)], [sampled([]), sampled([])])["coverage"] is None
    assert measure(parts, [sampled(pages), {}])["overlap"] is None  # of a job begun before there were samples


def test_samples_survive_a_checkpoint_and_can_be_told(tmp_path: Path) -> None:
    store = Store.open(Env(), tmp_path)
    census = Census(Env(), tmp_path, store.state(Census.name))
    store.add(census)
    assert committed_census(Env(), tmp_path) == {}
    census.fetched.add(keys(4, 9_000))
    census.left.add_one(7)
    store.commit()
    census.fetched.add_one(1)  # which no checkpoint has
    again = Census(Env(), tmp_path, Store.open(Env(), tmp_path).state(Census.name))
    told = census_from(again.as_json())
    for found in (committed_census(Env(), tmp_path), told):
        assert found["fetched"].keys == again.fetched.keys == census.fetched.keys - {1}
        assert found["fetched"].last == census.fetched.last < 2**63
        assert found["left"].keys == {7}
    assert len(again.fetched.keys) / again.fetched.share == pytest.approx(9_000, rel=0.1)
