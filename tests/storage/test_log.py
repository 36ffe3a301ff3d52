"""Rows added at the end of a file: read while it grows, cut back after a crash, damage named."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import StorageError
from barkspider.storage.env import Env
from barkspider.storage.store.log import Log
from barkspider.storage.store.manifest import Store
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")


def rows(begin: int, end: int) -> np.ndarray:
    return np.arange(3 * begin, 3 * end, dtype=np.uint64).reshape(-1, 3)


def held(log: Log, end: int) -> np.ndarray:
    return np.concatenate([np.empty((0, 3), np.uint64), *log.read(end)])


def opened(env: FaultyEnv) -> tuple[Store, Log]:
    store = Store.open(env, FOLDER)
    log = Log(env, FOLDER, "edges", 3, store.state("edges"))
    store.add(log)
    return store, log


events = st.one_of(
    st.sampled_from([1, 5, 12_000]), st.sampled_from(["commit", "drop", "keep", "random", "reopen"])
)


@settings(max_examples=60, deadline=None)
@given(st.lists(events, max_size=12))
def test_what_was_committed_comes_back_and_nothing_else(script: list[int | str]) -> None:
    env = FaultyEnv()
    store, log = opened(env)
    count = safe = 0
    for event in script:
        if isinstance(event, int):
            log.append(rows(count, count + event))
            count += event
        elif event == "commit":
            store.commit()
            safe = count
        else:
            log.close()
            env = env.crash(event, Random(1)) if event != "reopen" else env
            store, log = opened(env)
            count = safe
        log.validate()
        assert len(log) == count
    assert np.array_equal(held(log, log.end()), rows(0, count))


def test_a_reader_sees_the_rows_before_its_end_while_more_are_added(tmp_path: Path) -> None:
    log = Log(Env(), tmp_path, "edges", 3)
    assert len(held(log, log.end())) == 0
    log.append(rows(0, 5))
    end = log.end()
    log.append(rows(5, 100_000))
    assert np.array_equal(held(log, end), rows(0, 5))
    assert np.array_equal(held(log, log.end()), rows(0, 100_000))
    log.close()


def test_damage_is_named(tmp_path: Path) -> None:
    log = Log(Env(), tmp_path, "edges", 3)
    log.append(rows(0, 50))
    end = log.end()
    path = tmp_path / "edges" / "rows.log"
    whole = path.read_bytes()
    for place in (3, 20, 100, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(StorageError, match=r"rows\.log is damaged at byte|no BARKlogs file"):
            held(log, end)
    path.write_bytes(whole[:-10])
    with pytest.raises(StorageError, match=r"rows\.log is cut off|damaged"):
        held(log, end)
    path.write_bytes(whole)
    state = {"rows": 50, "files": {"edges/rows.log": len(whole)}}
    with pytest.raises(StorageError, match="another block than expected at byte 16"):
        held(Log(Env(), tmp_path, "edges", 2, state), end)
    log.close()
