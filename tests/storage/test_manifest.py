"""Commits, and the way back to the last one."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import MANIFEST, Store
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")


class Log:
    """A structure with one growing file and one immutable file for each commit."""

    def __init__(self, env: Env, name: str, state: dict[str, Any] | None) -> None:
        self.name, self._env, self._folder = name, env, FOLDER / name
        self.number = state["number"] if state else 0
        self.committed_calls = 0
        env.make_folder(self._folder)
        self._file = env.append(self._folder / "log")

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def prepare(self) -> Prepared:
        sync, size = self._file.syncing(), self._file.size
        self.number += 1

        def describe() -> dict[str, Any]:
            sync()
            with self._env.append(self._folder / f"{self.number}") as file:
                file.write(b"immutable")
                file.sync()
            names = {f"{self.name}/log": size, f"{self.name}/{self.number}": 9}
            return {"number": self.number, "files": names}

        return describe

    def committed(self) -> None:
        self.committed_calls += 1
        self._env.remove(self._folder / f"{self.number - 1}")


def opened(env: Env) -> tuple[Store, Log]:
    store = Store.open(env, FOLDER)
    log = Log(env, "log", store.state("log"))
    store.add(log)
    return store, log


def test_recovery_returns_to_the_last_commit() -> None:
    env = FaultyEnv()
    store, log = opened(env)
    log.write(b"kept")
    store.commit()
    log.write(b"lost")
    log.prepare()()  # a second immutable file that no manifest names
    again, log = opened(env)
    assert again.number == 1
    assert log.number == 1
    assert env.read(FOLDER / "log" / "log") == b"kept"
    assert env.list(FOLDER / "log") == ["1", "log"]
    assert env.list(FOLDER) == ["log", MANIFEST]


def test_what_was_never_committed_is_removed() -> None:
    env = FaultyEnv()
    _, log = opened(env)
    log.write(b"lost")
    log.prepare()()
    store = Store.open(env, FOLDER)
    assert store.state("log") is None
    assert env.list(FOLDER / "log") == []


def test_a_structure_that_is_not_opened_stays_as_it_was() -> None:
    env = FaultyEnv()
    store, log = opened(env)
    log.write(b"kept")
    store.commit()
    Store.open(env, FOLDER).commit()
    store, log = opened(env)
    assert store.number == 2
    assert env.read(FOLDER / "log" / "log") == b"kept"


def test_every_moment_of_power_loss_leads_to_one_of_the_commits() -> None:
    env, random = FaultyEnv(), Random(1)
    store, log = opened(env)
    marks = [len(env.operations)]
    for word in (b"one", b"two", b"three"):
        log.write(word)
        store.commit()
        marks.append(len(env.operations))
    texts = [b"", b"one", b"onetwo", b"onetwothree"]
    for number, disk in env.crashes():
        for how in ("drop", "keep", "random"):
            found = FaultyEnv(disk.after_power_loss(how, random))
            store = Store.open(found, FOLDER)
            # What was committed before the crash is there, and nothing later than what was under way.
            done = sum(mark <= number for mark in marks[1:])
            assert store.number in (done, done + 1)
            if store.state("log") is not None:
                assert found.read(FOLDER / "log" / "log") == texts[store.number]


def test_a_failed_commit_leaves_the_last_one_and_can_be_repeated() -> None:
    env = FaultyEnv()
    store, log = opened(env)
    log.write(b"kept")
    store.commit()
    log.write(b"more")
    env.kinds["rename"] = "EIO"
    with pytest.raises(StorageError, match=r"manifest\.json"):
        store.commit()
    env.kinds.clear()
    assert log.committed_calls == 1
    assert Store.open(FaultyEnv(env.disk.copy()), FOLDER).number == 1
    store.commit()
    assert log.committed_calls == 2
    assert Store.open(FaultyEnv(env.disk.copy()), FOLDER).number == 2


@pytest.mark.parametrize("place", range(0, 400, 7))
def test_a_damaged_manifest_is_named(place: int) -> None:
    env = FaultyEnv()
    store, log = opened(env)
    log.write(b"kept")
    store.commit()
    data = env.disk.data(env.disk.find(FOLDER / MANIFEST))
    data[place % len(data)] ^= 1 << (place % 8)
    with pytest.raises(StorageError, match=r"manifest\.json"):
        Store.open(env, FOLDER)


def test_missing_and_short_files_are_named() -> None:
    env = FaultyEnv()
    store, log = opened(env)
    log.write(b"kept")
    store.commit()
    del env.disk.data(env.disk.find(FOLDER / "log" / "log"))[2:]
    with pytest.raises(StorageError, match=r"log/log is cut off: it has 2 bytes and should have 4"):
        Store.open(env, FOLDER)
    env.remove(FOLDER / "log" / "log")
    with pytest.raises(StorageError, match="log/log is missing"):
        Store.open(env, FOLDER)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    head = b'{"magic": "barkspider-manifest", "version": 2, "checksum": "0"}\n{}\n'
    (tmp_path / MANIFEST).write_bytes(head)
    with pytest.raises(StorageError, match="use a newer barkspider"):
        Store.open(Env(), tmp_path)
    (tmp_path / MANIFEST).write_bytes(b'{"magic": "other"}\n{}\n')
    with pytest.raises(StorageError, match="not a manifest"):
        Store.open(Env(), tmp_path)


def test_names_are_unique() -> None:
    env = FaultyEnv()
    store, log = opened(env)
    with pytest.raises(ValueError, match="in the store already"):
        store.add(log)


@pytest.mark.parametrize("name", ["../victim", "/victim", "log/../../victim"])
def test_a_manifest_reaches_nothing_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    class Hostile:
        name = "log"

        def prepare(self) -> Prepared:
            return lambda: {"files": {target: 0}}

        def committed(self) -> None:
            pass

    folder, victim = tmp_path / "job", tmp_path / "victim"
    victim.write_bytes(b"precious")
    target = str(victim) if name.startswith("/") else name
    (folder / "log").mkdir(parents=True)
    store = Store.open(Env(), folder)
    store.add(Hostile())
    store.commit()
    with pytest.raises(StorageError, match="is not in its folder"):
        Store.open(Env(), folder)
    assert victim.read_bytes() == b"precious"
