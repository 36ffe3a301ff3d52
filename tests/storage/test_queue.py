import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barkspider.core.errors import StorageError
from barkspider.storage import env as env_module
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import DiskQueue
from barkspider.storage.queue.items import column
from tests.storage.faulty import FaultyEnv

FOLDER = Path("/job")
MANIFEST = Path("/job/manifest")
GATHER = env_module._GATHER
ITEMS = st.one_of(st.binary(max_size=30), st.sampled_from([b"", b"a" * 300, b"b" * 1000]))


class QueueMachine(RuleBasedStateMachine):
    """A queue beside a list, through commits, reopenings, power losses and a full disk."""

    @initialize(gather=st.sampled_from([1, 100, 1 << 18]), compress=st.booleans())
    def begin(self, gather: int, compress: bool) -> None:
        env_module._GATHER = gather  # small writes go out at once, or wait
        self.sizes: dict[str, Any] = {"block": 100, "segment": 400, "compress": compress}
        self.env = FaultyEnv()
        self.queue = DiskQueue(self.env, FOLDER, "q", **self.sizes)
        self.model: list[bytes] = []
        self.safe: list[bytes] | None = None

    @rule(item=ITEMS)
    def append(self, item: bytes) -> None:
        self.queue.append(item)
        self.model.append(item)

    @rule(items=st.lists(ITEMS, max_size=40))
    def append_batch(self, items: list[bytes]) -> None:
        self.queue.append_batch(pa.array(items, pa.binary()))
        self.model += items

    @rule()
    def pop(self) -> None:
        if self.model:
            assert self.queue.pop() == self.model.pop(0)
        else:
            with pytest.raises(IndexError):
                self.queue.pop()

    @rule(most=st.integers(1, 60))
    def pop_batch(self, most: int) -> None:
        taken = self.queue.pop_batch(most).to_pylist()
        assert taken == self.model[: len(taken)]
        assert bool(taken) == bool(self.model)
        assert len(taken) <= most
        del self.model[: len(taken)]

    @rule(items=st.lists(st.binary(max_size=5), min_size=2, max_size=5))
    def read_from_ram(self, items: list[bytes]) -> None:
        while self.model:
            self.pop_batch(1000)
        self.append_batch(items)
        self.pop()

    @rule(told=st.booleans())
    def commit(self, told: bool) -> None:
        state = self.queue.prepare()()
        self.env.write_whole(MANIFEST, json.dumps(state).encode())
        self.safe = list(self.model)
        if told:  # or the process ends between the two
            self.queue.committed()

    @rule()
    def prepare_in_vain(self) -> None:
        self.queue.prepare()()

    @rule()
    def close_and_open(self) -> None:
        self.queue.close()
        self._open(self.env)

    @rule(how=st.sampled_from(["drop", "keep", "random"]), seed=st.integers(0, 1 << 32))
    def lose_power(self, how: str, seed: int) -> None:
        self._open(self.env.crash(how, Random(seed)))

    @precondition(lambda self: self.env.room is None)
    @rule(items=st.lists(ITEMS, max_size=40), free=st.integers(0, 500))
    def run_out_of_room(self, items: list[bytes], free: int) -> None:
        self.env.room = self.env.disk.used() + free
        if self._has_room(lambda: self.queue.append_batch(pa.array(items, pa.binary()))):
            self.model += items
        if self._has_room(lambda: self.queue.append(b"x" * 101)):
            self.model.append(b"x" * 101)
        self._has_room(self.queue.prepare)
        self.env.room = None

    def _has_room(self, call: Callable[[], object]) -> bool:
        before, full = len(self.queue), ""
        try:
            call()
        except StorageError as error:
            full = str(error)
        self.queue.validate()
        assert not full or ("disk full" in full and len(self.queue) == before)
        return not full

    @invariant()
    def same_length(self) -> None:
        if hasattr(self, "queue"):
            assert len(self.queue) == len(self.model)
            self.queue.validate()

    def teardown(self) -> None:
        env_module._GATHER = GATHER
        if hasattr(self, "queue"):
            self.queue.verify()
            while self.model:
                assert self.queue.pop() == self.model.pop(0)

    def _open(self, env: FaultyEnv) -> None:
        self.env = env
        if self.safe is None:
            self.queue = DiskQueue(env, FOLDER, "q", **self.sizes)
            assert env.list(FOLDER / "q") == []
            self.model = []
        else:
            state = json.loads(env.read(MANIFEST))
            self.queue = DiskQueue.open(env, FOLDER, "q", state, **self.sizes)
            assert {f"q/{name}" for name in env.list(FOLDER / "q")} == set(state["files"])
            self.model = list(self.safe)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def urls(count: int) -> pa.Array:
    random = Random(count)
    items = [b"http://%d.example/%d" % (n % 7, random.getrandbits(60)) for n in range(count)]
    return pa.array(items, pa.binary())


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "q").iterdir())


@pytest.mark.parametrize("compress", [True, False])
def test_large_batches_pass_through_several_segments(tmp_path: Path, compress: bool) -> None:
    ours = DiskQueue(Env(), tmp_path, "q", compress=compress, segment=1 << 20)
    items = urls(100_000)
    for begin in range(0, 100_000, 7_001):
        ours.append_batch(items.slice(begin, 7_001))
    assert len(files(tmp_path)) > 1
    ours.verify()
    popped = [ours.pop()]
    while len(taken := ours.pop_batch(3_000)):
        popped += taken.to_pylist()
    assert popped == items.to_pylist()
    ours.close()
    assert not files(tmp_path)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary()])
def test_columns_of_text_or_bytes_are_taken(tmp_path: Path, kind: pa.DataType) -> None:
    ours = DiskQueue(Env(), tmp_path, "q")
    ours.append_batch(pa.array(["never", "one", "", "two"], kind)[1:])
    ours.append_batch(pa.array([], kind))
    ours.append_batch(column(np.array([5]), b"three"))
    assert ours.pop_batch(9).to_pylist() == [b"one", b"", b"two", b"three"]
    assert ours.pop_batch(9).to_pylist() == []
    with pytest.raises(ValueError, match="null"):
        ours.append_batch(pa.array(["one", None], kind))
    with pytest.raises(ValueError, match="byte strings"):
        ours.append_batch(pa.array([1]))


def test_items_may_be_empty_or_huge(tmp_path: Path) -> None:
    ours = DiskQueue(Env(), tmp_path, "q")
    huge = Random(1).randbytes(32 << 20)
    ours.append_batch(pa.array([b""] * 200_000))
    for _ in range(100_000):
        ours.append(b"")
    ours.append(huge)
    ours.append_batch(pa.array([b"a", huge, b"b"]))
    state = ours.prepare()()
    ours.committed()
    ours.close()
    ours = DiskQueue.open(Env(), tmp_path, "q", state)
    empty = 0
    while empty < 300_000:
        taken = ours.pop_batch(300_000 - empty)
        assert taken.nbytes == 4 * len(taken)  # offsets, and no data
        empty += len(taken)
    assert [ours.pop() for _ in range(4)] == [huge, b"a", huge, b"b"]


def test_a_short_queue_needs_no_file(tmp_path: Path) -> None:
    ours = DiskQueue(Env(), tmp_path, "q")
    for number in range(10_000):
        ours.append(b"%d" % number)
        ours.append(b"again")
        assert (ours.pop(), ours.pop()) == (b"%d" % number, b"again")
    assert not files(tmp_path)


def test_space_behind_the_reader_is_freed_at_once_or_with_the_next_commit(tmp_path: Path) -> None:
    ours = DiskQueue(Env(), tmp_path, "q", segment=1 << 17)
    for number in range(100):
        ours.append(Random(number).randbytes(20_000))
    before = len(files(tmp_path))
    for _ in range(50):
        ours.pop()
    rest = len(files(tmp_path))
    assert rest < before
    state = ours.prepare()()
    ours.committed()
    for _ in range(50):
        ours.pop()
    assert len(files(tmp_path)) >= rest, "a commit names them"
    ours.prepare()()
    assert {f"q/{name}" for name in files(tmp_path)} >= set(state["files"]), "the commit may fail"
    ours.committed()
    assert len(files(tmp_path)) == 1
    ours.close()


def test_what_an_earlier_queue_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "00000007.queue").write_bytes(b"left by a crash")
    (tmp_path / "q" / "notes").write_bytes(b"not ours")
    DiskQueue(Env(), tmp_path, "q").close()
    assert files(tmp_path) == ["notes"]


def committed(env: Env, folder: Path, items: int = 60) -> dict[str, Any]:
    ours = DiskQueue(env, folder, "q", block=100, segment=400)
    ours.append_batch(urls(items))
    ours.pop()
    state = ours.prepare()()
    ours.committed()
    ours.close()
    return state


@pytest.mark.parametrize(
    "change",
    [
        {"files": {}},
        {"files": {"../etc/passwd": 100}},
        {"files": None},
        {"read": [0, 16]},
        {"read": [0, 1 << 40, 0]},
        {"read": [0, 16, 1 << 40]},
        {"read": ["a", 16, 0]},
        {"read": [0, 16, 3]},
        {"read": [1, 16, 0]},
        {"read": [0, 16, 10], "popped": 10},
        {"popped": 1 << 40},
        {"appended": -1},
        {"appended": 61},
        {"last": 77},
        {"last": 1 << 60},
        {"last": -1},
        {"last": None},
    ],
)
def test_a_state_that_cannot_be_is_refused(change: dict[str, Any]) -> None:
    env = FaultyEnv()
    state = committed(env, FOLDER)

    def use() -> None:
        ours = DiskQueue.open(env, FOLDER, "q", {**state, **change})
        ours.verify()
        ours.pop()

    with pytest.raises(StorageError, match="queue q"):
        use()


def test_a_file_that_is_missing_or_cut_is_named() -> None:
    env = FaultyEnv()
    state = committed(env, FOLDER)
    name, length = next(iter(state["files"].items()))
    env.truncate(FOLDER / name, length - 1)
    with pytest.raises(StorageError, match=f"{name} is cut off: it has {length - 1} bytes"):
        DiskQueue.open(env, FOLDER, "q", state)
    env.remove(FOLDER / name)
    with pytest.raises(StorageError, match=f"{name}: No such file"):
        DiskQueue.open(env, FOLDER, "q", state)


@pytest.mark.parametrize("kind", ["sync", "sync_folder"])
def test_after_a_failed_sync_only_the_last_commit_counts(kind: str) -> None:
    env = FaultyEnv()
    state = committed(env, FOLDER)
    ours = DiskQueue.open(env, FOLDER, "q", state, block=100, segment=400)
    ours.append_batch(urls(60))
    env.kinds[kind] = "EIO"
    for _ in range(2):
        with pytest.raises(StorageError, match="cannot sync"):
            ours.prepare()()
        env.kinds.clear()
    ours = DiskQueue.open(env.crash("drop", Random(0)), FOLDER, "q", state)
    assert len(ours) == 59
    ours.verify()


def steps(env: FaultyEnv) -> list[bytes] | None:
    """A fixed use of a queue in which a call that fails is made again; what came out, None if a sync failed."""
    popped: list[bytes] = []

    def again(call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except StorageError as error:
            if "cannot sync" in str(error):
                raise
            return call(*arguments)

    try:
        queue = again(lambda: DiskQueue(env, FOLDER, "q", block=100, segment=400))
        for number in range(7):
            again(queue.append_batch, urls(7 * (number % 4)))
            again(queue.append, b"single" * number)
            popped.append(again(queue.pop))
            popped += again(queue.pop_batch, 5).to_pylist()
            if number % 3 == 2:
                again(queue.prepare)
                again(queue.committed)
            queue.validate()
        while len(queue):
            popped.append(again(queue.pop))
        again(queue.close)
    except StorageError:
        return None
    return popped


def test_a_call_that_failed_can_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env_module, "_GATHER", 100)
    env = FaultyEnv()
    expected = steps(env)
    assert expected is not None
    assert len(expected) == 7 + sum(7 * (number % 4) for number in range(7))
    for number, operation in enumerate(env.operations):
        for fault in ("EIO", "ENOSPC", "short") if operation.kind == "write" else ("EIO",):
            trial = FaultyEnv()
            trial.faults[number] = fault
            found = steps(trial)
            assert found == expected or (found is None and "sync" in operation.kind), (fault, operation)


def test_a_closed_queue_takes_nothing(tmp_path: Path) -> None:
    ours = DiskQueue(Env(), tmp_path, "q")
    ours.append_batch(urls(10))
    ours.close()
    assert len(ours) == 0
    with pytest.raises(IndexError):
        ours.pop()
    with pytest.raises(StorageError, match="q is closed"):
        ours.append_batch(urls(50_000))
    assert files(tmp_path) == []
