"""A subset of `python -m benchmarks crash`, which goes through all of it."""

from collections.abc import Iterator
from random import Random

import pytest

from barkspider.core.errors import StorageError
from tests.storage.faulty import Disk, FaultyCalls, FaultyEnv
from tests.storage.scenarios import content, many_operations, survives, withstands, work


@pytest.fixture(autouse=True)
def every_write_counts() -> Iterator[None]:
    with many_operations():
        yield


def test_nothing_is_lost_whichever_operation_was_the_last() -> None:
    env, random = FaultyEnv(), Random(1)
    moments = work(env, seed=1, steps=8)
    for done, disk in env.crashes():
        how = random.choice(("drop", "keep", "random"))
        assert survives(disk, how, random, moments, done), (how, env.operations[done - 1])


@pytest.mark.parametrize("background", [False, True])
def test_nothing_is_lost_whatever_the_power_loss_left(background: bool) -> None:
    env, random = FaultyEnv(), Random(2)
    moments = work(env, seed=2, steps=17, background=background)
    for done, disk in env.crashes():
        if random.random() < 0.2:
            assert survives(disk, "random", random, moments, done), env.operations[done - 1]


def test_a_crash_during_recovery_is_a_crash_like_any_other() -> None:
    env, random = FaultyEnv(), Random(3)
    moments = work(env, seed=3, steps=10)
    again = env.crash("random", random)
    content(again)
    for _, disk in again.crashes():
        assert survives(disk, "random", random, moments, len(env.operations))


@pytest.mark.parametrize("forgotten", ["sync", "sync_folder"])
def test_a_missing_sync_would_be_noticed(forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FaultyCalls, forgotten, lambda calls, _: None)
    env, random = FaultyEnv(), Random(4)
    moments = work(env, seed=4, steps=12)
    lost = 0
    for done, disk in env.crashes():
        try:
            lost += done > moments[1].ended and not survives(disk, "random", random, moments, done)
        except StorageError:
            lost += 1
        if lost:
            return
    pytest.fail("the test would not notice")


def test_whatever_operation_fails_the_last_commit_stands() -> None:
    env, random = FaultyEnv(), Random(5)
    work(env, seed=5, steps=5)
    count = len(env.operations)
    for number in random.sample(range(count), count // 2):
        fault = random.choice(("EIO", "ENOSPC", "short"))
        assert withstands(Disk(), 5, 5, number, fault), (number, fault, env.operations[number])


def test_a_full_disk_is_said_and_work_goes_on_when_there_is_room() -> None:
    trial = FaultyEnv()
    work(trial, seed=6, steps=12)
    largest, full = trial.disk.used(), 0
    for room in range(0, largest, largest // 12):
        env = FaultyEnv()
        moments = work(env, seed=7, steps=8)
        before = moments[-1].content.copy()
        env.room = env.disk.used() + room
        tried = list(moments)
        try:
            work(env, 6, 12, tried)
        except StorageError as error:
            full += "disk full" in str(error)
        now = content(FaultyEnv(env.disk.copy()))
        assert now in [moment.content for moment in tried]
        assert now == before or len(tried) > len(moments)
        env.room = None
        again = [tried[-1]._replace(content=now)]
        work(env, 8, 8, again)
        assert content(env) == again[-1].content
    assert full > 4
