"""Checking a store without opening it: what opening would stumble over is named, what it would mend is recoverable."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from barkspider.storage.store.verify import DAMAGE, RECOVERABLE, verify_store
from tests.storage.faulty import Disk, FaultyEnv
from tests.storage.scenarios import FOLDER, content, damaged, damages, many_operations, notices, work


@pytest.fixture(autouse=True)
def every_write_counts() -> Iterator[None]:
    with many_operations():
        yield


def worked(seed: int) -> Disk:
    env = FaultyEnv()
    work(env, seed, steps=16)
    return env.disk.copy()


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_would_be_noticed_later_is_named_now(seed: int) -> None:
    disk = worked(seed)
    whole = content(FaultyEnv(disk.copy()))
    noticed = 0
    for damage in damages(disk, 80, Random(seed)):
        env = damaged(disk, damage)
        before = len(env.operations)
        faults = [fault for fault in verify_store(env, FOLDER) if fault.kind == DAMAGE]
        assert {operation.kind for operation in env.operations[before:]} <= {"list", "open", "size", "read"}
        if notices(disk, damage, whole) == "named":
            noticed += 1
            assert any(damage.path.name in f"{fault.file} {fault.what}" for fault in faults), damage
    assert noticed > 40


@pytest.mark.parametrize("seed", range(4))
def test_what_a_crash_leaves_is_recoverable_at_most(seed: int) -> None:
    env, random = FaultyEnv(), Random(seed)
    moments = work(env, seed, steps=10)
    recoverable = 0
    for done, disk in env.crashes():
        if done < moments[1].ended or random.random() < 0.8:
            continue
        for how in ("keep", "drop", "random"):
            found = FaultyEnv(disk.after_power_loss(how, random))
            kinds = [fault.kind for fault in verify_store(found, FOLDER)]
            assert set(kinds) <= {RECOVERABLE}
            recoverable += len(kinds)
    assert recoverable > 0


def test_a_file_that_is_missing_is_named() -> None:
    disk = worked(3)
    for path in disk.paths():
        env = FaultyEnv(disk.copy())
        before = list(verify_store(env, FOLDER))
        env.remove(path)
        if path.name == "manifest.json":
            assert list(verify_store(env, FOLDER)) == []  # nothing was ever committed
        else:
            assert before == [] or {fault.kind for fault in before} == {RECOVERABLE}
            found = [fault for fault in verify_store(env, FOLDER) if fault.kind == DAMAGE]
            assert all(fault.what == "is missing" or path.name in fault.what for fault in found)
            assert all(str(path).endswith(fault.file) or path.name in fault.what for fault in found)
