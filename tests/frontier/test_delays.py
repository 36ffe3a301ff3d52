"""URLs that wait on disk for their time."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.records import Flag, UrlRow
from barkspider.frontier.politeness.delays import Delays
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")
DAY = 86_400.0


def row(number: int) -> UrlRow:
    url = b"http://a.example/%d" % number + b"x" * (number % 50)
    return UrlRow(number, number % 7, 3, number % 9, 1, 2, int(Flag.LINKED), url, number + 5, number % 11)


def put(delays: Delays, times: list[float], first: int = 0) -> None:
    """URLs numbered from `first` on."""
    rows = [row(first + place) for place in range(len(times))]
    delays.put(np.array(times, np.float64), UrlBatch.from_rows(rows))


def taken(delays: Delays, now: float, most: int = 1 << 30) -> list[int]:
    return [found.key for found in delays.take(now, most).rows()]


def opened(env: Env, near: int = 1 << 20) -> tuple[Store, Delays]:
    store = Store.open(env, FOLDER)
    delays = Delays(env, FOLDER, near=near, state=store.state(Delays.name))
    store.add(delays)
    return store, delays


def queue_files(env: Env) -> list[str]:
    folders = env.list(FOLDER / "queues")
    return [f"{folder}/{name}" for folder in folders for name in env.list(FOLDER / "queues" / folder)]


def test_urls_come_out_exactly_by_their_time_and_not_before() -> None:
    _, delays = opened(FaultyEnv())
    put(delays, [30.5, 30.25, 2e6, 17.0, 5000.0, 3.0, 90_000.0])
    assert delays.next_time() == 3.0
    assert taken(delays, 2.999) == []
    assert taken(delays, 30.25) == [5, 3, 1]
    assert delays.next_time() == 30.5
    assert taken(delays, 30.499) == []
    assert taken(delays, 89_999.0) == [0, 4]
    assert (len(delays), delays.next_time()) == (2, 90_000.0)
    assert taken(delays, math.inf) == [6, 2]
    assert (len(delays), delays.next_time()) == (0, math.inf)
    assert taken(delays, math.inf) == []


def test_no_more_are_taken_than_asked_for_and_the_rest_keeps_its_order() -> None:
    _, delays = opened(FaultyEnv())
    put(delays, [float(number % 10) for number in range(100)])
    found = [taken(delays, 100.0, 7) for _ in range(15)]
    assert [len(part) for part in found] == [7] * 14 + [2]
    assert [key % 10 for part in found for key in part] == sorted(number % 10 for number in range(100))
    assert taken(delays, 100.0, 0) == []


def test_what_arrives_for_the_present_or_the_past_is_merged_in() -> None:
    _, delays = opened(FaultyEnv())
    put(delays, [1_000_000.0, 1_000_009.0])
    assert taken(delays, 1_000_001.0) == [0]
    put(delays, [1_000_008.0, 999.0, 1_000_010.0, -5.0], first=10)
    assert delays.next_time() == -5.0
    assert taken(delays, 1_000_010.0) == [13, 11, 10, 1, 12]


def test_a_clock_that_starts_late_does_not_have_rows_written_again_and_again() -> None:
    env = FaultyEnv()
    _, delays = opened(env)
    now = 1.8e9
    put(delays, [now + 3600 * number for number in range(24 * 60)])
    assert taken(delays, now) == [0]
    written = sum(len(operation.data) for operation in env.operations)
    assert taken(delays, now + 60 * DAY) == list(range(1, 24 * 60))
    again = sum(len(operation.data) for operation in env.operations) - written
    assert again <= 2 * 24 * 60 * 150


def test_all_columns_travel_with_their_url_through_commits() -> None:
    env = FaultyEnv()
    store, delays = opened(env)
    put(delays, [7.0, 5.0, 70_000.0, 1e7])
    assert taken(delays, 5.0) == [1]
    store.commit()
    _, delays = opened(env)
    assert delays.take(1e8, 10).rows() == [row(0), row(2), row(3)]


def test_a_slice_of_any_size_takes_a_bounded_part_of_ram() -> None:
    _, delays = opened(FaultyEnv(), near=2000)
    random = Random(1)
    times = [random.choice((5.0, random.random() * 16)) for _ in range(2000)]
    put(delays, times)
    delays.validate()
    found = []
    while len(delays):
        found += taken(delays, 16.0, 37)
        delays.validate()
    assert sorted(found) == list(range(2000))
    assert [times[key] for key in found] == sorted(times)


def test_what_arrives_in_large_numbers_for_the_past_takes_a_bounded_part_of_ram() -> None:
    _, delays = opened(FaultyEnv(), near=2000)
    put(delays, [1000.0, 1001.0])
    assert taken(delays, 1000.0) == [0]
    for number in range(20):
        put(delays, [float(number)] * 50, first=100 + 50 * number)
        delays.validate()
    assert len(delays) == 1001
    assert sorted(taken(delays, 1000.5)) == list(range(100, 1100))
    assert taken(delays, 2000.0) == [1]


def test_a_row_larger_than_the_room_in_ram_gets_through() -> None:
    _, delays = opened(FaultyEnv(), near=10)
    put(delays, [3.0, 2.0, 1.0])
    assert taken(delays, 9.0, 1) == [2]
    delays.validate()
    assert taken(delays, 9.0) == [1, 0]


def test_the_disk_is_given_back_at_the_next_commit() -> None:
    env = FaultyEnv()
    store, delays = opened(env)
    put(delays, [3600.0 * (number % 40) for number in range(1000)])
    store.commit()
    assert len(queue_files(env)) == 21
    assert len(taken(delays, 1e9)) == 1000
    assert len(queue_files(env)) >= 21  # the last commit names them
    store.commit()
    assert queue_files(env) == []
    assert store.state(Delays.name) == {"present": 39 * 225, "slices": [], "files": {}}


def test_files_that_no_commit_names_are_removed_when_it_is_opened() -> None:
    env = FaultyEnv()
    store, delays = opened(env)
    put(delays, [100_000.0] * 10)
    store.commit()
    kept = queue_files(env)
    put(delays, [5000.0] * 5000)
    assert len(queue_files(env)) > len(kept)
    _, delays = opened(env.crash("keep", Random(1)))
    assert queue_files(delays._env) == kept
    assert len(delays) == 10


def test_wrong_times_are_refused_and_change_nothing() -> None:
    _, delays = opened(FaultyEnv())
    for wrong in ([math.nan], [math.inf], [-math.inf], [1e300], [1.0, 2.0]):
        with pytest.raises(ValueError, match="time"):
            delays.put(np.array(wrong), UrlBatch.from_rows([row(1)]))
    delays.put(np.empty(0), UrlBatch.from_rows([]))
    assert len(delays) == 0


def test_a_damaged_state_or_file_is_refused() -> None:
    env = FaultyEnv()
    store, delays = opened(env)
    put(delays, [100.0, 100_000.0])
    store.commit()
    state = store.state(Delays.name)
    assert state is not None
    (slot, earliest, queue), *_ = state["slices"]
    for damage in (
        {"present": "x"},
        {"present": 1 << 40},
        {"slices": [[slot, earliest]]},
        {"slices": [[500, earliest, queue]]},
        {"slices": [[slot, earliest, queue], [slot, earliest, queue]]},
        {"slices": [[slot, math.inf, queue]]},
    ):
        with pytest.raises(StorageError, match="damaged"):
            Delays(env, FOLDER, state=state | damage)
    _, delays = opened(env)
    name = next(iter(queue["files"]))
    env.disk.data(env.disk.find(FOLDER / name))[-3] ^= 1
    with pytest.raises(StorageError, match="damaged"):
        delays.take(1e9, 10)


@pytest.mark.parametrize("count", [100, 20_000])
def test_a_commit_that_finds_the_disk_full_may_be_made_again(count: int) -> None:
    env = FaultyEnv()
    store, delays = opened(env, near=1 << 22)
    put(delays, [16.0 * number / count for number in range(count)])
    assert taken(delays, 9.0, 5) == [0, 1, 2, 3, 4]
    env.room = env.disk.used() + 100
    with pytest.raises(StorageError, match="disk full"):
        store.commit()
    delays.validate()
    env.room = None
    put(delays, [0.0], first=count)
    store.commit()
    _, delays = opened(env.crash("drop", Random(1)))
    assert taken(delays, 1e9) == [count, *range(5, count)]


def test_a_crash_at_any_moment_leaves_the_last_commit() -> None:
    env = FaultyEnv()
    store, delays = opened(env, near=500)
    random = Random(5)
    held, inside = {0: dict[int, float]()}, dict[int, float]()
    for number in range(1, 4):
        times = [random.choice((16, 32, 90_000)) * random.random() + 500 * number for _ in range(20)]
        put(delays, times, first=100 * number)
        inside |= {100 * number + place: time for place, time in enumerate(times)}
        for key in taken(delays, 500.0 * number + 400, 12):
            del inside[key]
        store.commit()
        held[number] = dict(inside)
    put(delays, [1.0, 1e5], first=1000)
    checked = Counter[int]()
    for moment, (_, disk) in enumerate(env.crashes()):
        how = ("drop", "keep", "random")[moment % 3]
        found, again = opened(FaultyEnv(disk.after_power_loss(how, Random(moment))))
        again.validate()
        expected = held[found.number]
        assert len(again) == len(expected)
        out = taken(again, 1e9)
        assert sorted(out) == sorted(expected)
        assert [expected[key] for key in out] == sorted(expected.values())
        checked[found.number] += 1
    assert set(checked) == {0, 1, 2, 3}


# Random operations, commits, reopenings and crashes against a dictionary of what is due when.

SPANS = st.sampled_from([0.0, 1.0, 16.0, 40.0, 1024.0, 5000.0, 70_000.0, 3 * DAY, 30 * DAY, 100 * DAY])


class Machine(RuleBasedStateMachine):
    """`inside` are the times of the URLs that wait."""

    @initialize(near=st.sampled_from([300, 2000, 1 << 20]), now=st.sampled_from([0.0, 1.7e9]))
    def begin(self, near: int, now: float) -> None:
        self.near, self.now, self.number = near, now, 0
        self.env = FaultyEnv()
        self.store, self.delays = opened(self.env, near)
        self.inside = dict[int, float]()
        self.safe = self.inside.copy()

    @rule(span=SPANS, back=st.sampled_from([0.0, 20.0]), count=st.integers(1, 60), seed=st.integers(0, 99))
    def arrive(self, span: float, back: float, count: int, seed: int) -> None:
        random = Random(seed)
        times = [self.now - back + span * random.choice((1.0, random.random())) for _ in range(count)]
        put(self.delays, times, self.number)
        self.inside |= {self.number + place: time for place, time in enumerate(times)}
        self.number += count

    @rule(span=SPANS, most=st.integers(1, 80))
    def take(self, span: float, most: int) -> None:
        self.now += span
        found = self.delays.take(self.now, most).rows()
        due = sorted(time for time in self.inside.values() if time <= self.now)
        assert [self.inside.pop(each.key) for each in found] == due[:most]
        assert found == [row(each.key) for each in found]

    @rule()
    def commit(self) -> None:
        self.store.commit()
        self.safe = self.inside.copy()

    @rule(how=st.sampled_from(["reopen", "drop", "keep", "random"]), seed=st.integers(0, 100))
    def crash(self, how: str, seed: int) -> None:
        if how == "reopen":
            self.delays.close()
        else:
            self.env = self.env.crash(how, Random(seed))
        self.store, self.delays = opened(self.env, self.near)
        self.inside = self.safe.copy()

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "delays"):
            self.delays.validate()
            assert len(self.delays) == len(self.inside)
            assert self.delays.next_time() == min(self.inside.values(), default=math.inf)

    def teardown(self) -> None:
        if hasattr(self, "delays"):
            self.take(200 * DAY, 1 << 30)
            assert not self.inside


def test_every_url_comes_out_once_at_its_time_whatever_happens() -> None:
    case = Machine.TestCase
    case.settings = settings(
        max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )
    case().runTest()
