"""Snapshots: one that is committed is read back to the byte, or named when it cannot be."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.storage.store.manifest import Store
from barkspider.storage.store.snapshot import Snapshot, read_snapshot
from barkspider.storage.store.verify import DAMAGE, verify_store
from tests.storage.faulty import FaultyEnv
from tests.storage.scenarios import many_operations

FOLDER = Path("/job")
Content = tuple[dict[str, Any], dict[str, bytes]]


def content(number: int) -> Content:
    random = Random(number)
    arrays = {f"array {size}": random.randbytes(size) for size in (0, number * 11, 70)}
    return {"number": number, "names": ["é", None]}, arrays


class Kept:
    """A structure with one snapshot."""

    name = "memory"

    def __init__(self, snapshot: Snapshot, number: int) -> None:
        self.snapshot, self.number = snapshot, number

    def prepare(self) -> Prepared:
        return lambda: self.snapshot.write(*content(self.number))

    def committed(self) -> None:
        self.snapshot.committed()


def commit(env: FaultyEnv, number: int) -> None:
    store = Store.open(env, FOLDER)
    store.add(Kept(Snapshot(env, FOLDER, "memory", store.state("memory")), number))
    store.commit()


def committed(env: FaultyEnv) -> Content | None:
    store = Store.open(env, FOLDER)
    state = store.state("memory")
    return Snapshot(env, FOLDER, "memory", state).read() if state else None


def test_the_last_commit_is_there_whichever_operation_was_the_last() -> None:
    env, random = FaultyEnv(), Random(1)
    ended = [0]
    with many_operations():
        for number in range(1, 5):
            commit(env, number)
            ended.append(len(env.operations))
    for done, disk in env.crashes():
        last = sum(end <= done for end in ended) - 1
        for how in ("drop", "keep", "random", "random"):
            found = committed(FaultyEnv(disk.after_power_loss(how, random)))
            allowed: list[Content | None] = [content(last) if last else None, content(last + 1)]
            assert found in allowed, (how, env.operations[done - 1])


def test_only_the_last_file_stays() -> None:
    env = FaultyEnv()
    for number in range(1, 4):
        commit(env, number)
    assert env.list(FOLDER / "memory") == ["00000003.snapshot"]


def test_whatever_byte_is_damaged_or_missing_the_file_is_named() -> None:
    env = FaultyEnv()
    commit(env, 3)
    path = FOLDER / "memory" / "00000001.snapshot"
    size = len(env.disk.data(env.disk.paths()[path]))
    for place in range(size):
        damaged, cut = FaultyEnv(env.disk.copy()), FaultyEnv(env.disk.copy())
        damaged.disk.data(damaged.disk.paths()[path])[place] ^= 1 << place % 8
        del cut.disk.data(cut.disk.paths()[path])[place:]
        for found in (damaged, cut):
            with pytest.raises(StorageError, match=path.name):
                read_snapshot(found, path)
            faults = list(verify_store(found, FOLDER))
            assert [(fault.kind, fault.file) for fault in faults] == [(DAMAGE, "memory/00000001.snapshot")]
