"""The kernels and columns under a merge, each against a slow twin."""

from __future__ import annotations

import threading
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.errors import SettingsError, StorageError
from barkspider.core.texts import Texts
from barkspider.model.irlbot import UrlStream, drum_best_disk
from barkspider.storage.columns import join, pack, unpack
from barkspider.storage.drum import merge_thread
from barkspider.storage.drum.frontset import FrontSet
from barkspider.storage.drum.merge_thread import MergeThread
from barkspider.storage.drum.sizing import KEY, POINTER, Sizing
from barkspider.storage.kernels import insert_keys, sort_rows

any_key = st.one_of(st.integers(0, 50), st.integers(0, 2**64 - 1), st.sampled_from([0, 2**64 - 1]))


@given(st.lists(any_key, max_size=300), st.sampled_from([1, 40]))
def test_sorting_is_stable(keys: list[int], repeat: int) -> None:
    column = np.array(keys * repeat, np.uint64)
    expected = np.argsort(column, kind="stable")
    ordered, order = np.empty_like(column), np.empty(len(column), np.uint32)
    sort_rows(column, ordered, order)
    assert (order == expected).all()
    assert (ordered == column[expected]).all()


@pytest.mark.parametrize("shape", ["random", "sorted", "narrow", "skewed"])
def test_sorting_large_columns(shape: str) -> None:
    random = np.random.default_rng(1)
    column = random.integers(0, 2**64, 100_000, dtype=np.uint64)
    if shape == "sorted":
        column.sort()
    if shape == "narrow":
        column >>= np.uint64(50)
    if shape == "skewed":  # most keys share all but the lowest bits
        column[10_000:] >>= np.uint64(44)
    expected = np.argsort(column, kind="stable")
    ordered, order = np.empty_like(column), np.empty(len(column), np.uint32)
    sort_rows(column, ordered, order)
    assert (order == expected).all()


@given(st.sets(any_key), st.sets(any_key))
def test_inserting_keys(known: set[int], new: set[int]) -> None:
    old = np.array(sorted(known), np.uint64)
    added = np.array(sorted(new - known), np.uint64)
    merged = np.empty(len(old) + len(added), np.uint64)
    insert_keys(old, added, np.searchsorted(old, added), merged)
    assert merged.tolist() == sorted(known | new)


@given(st.lists(st.binary(max_size=300)), st.lists(st.binary(max_size=5)))
def test_texts_survive_packing_and_joining(first: list[bytes], second: list[bytes]) -> None:
    joined = join([Texts.of(first), Texts.of(second)])
    lengths, data = pack(joined)
    back = unpack(bytes, len(first) + len(second), lengths, data, "here")
    assert back.tolist() == first + second
    assert isinstance(back, Texts)
    assert Texts.from_arrow(back.to_arrow()).tolist() == first + second


def test_texts_that_do_not_fit_are_refused() -> None:
    lengths, data = pack(Texts.of([b"abc", b"d"]))
    with pytest.raises(StorageError, match="here"):
        unpack(bytes, 2, lengths, data[:-1], "here")
    with pytest.raises(StorageError, match="here"):
        unpack(bytes, 3, lengths, data, "here")
    with pytest.raises(StorageError, match="here"):
        unpack(np.dtype("<u4"), 3, lengths[:0], data, "here")


@given(st.lists(st.lists(any_key, max_size=50), max_size=20), st.sampled_from([64, 128, 4096]))
def test_the_front_set_never_invents(batches: list[list[int]], size: int) -> None:
    front, seen = FrontSet(size), set[int]()
    for batch in batches:
        passed = set(front.sift(np.array(batch, np.uint64)).tolist())
        for row, key in enumerate(batch):
            assert row in passed or key in seen
            seen.add(key)


# Tables 2 and 3 of the paper, with decimal gigabytes and M = 2^18 bytes; DRUM comes out within 2%.
@pytest.mark.parametrize("ram", [1 << 16, 10**7, 10**9, 10**10])
@pytest.mark.parametrize("disk", [1 << 16, 10**9, 10**11, 10**13])
def test_sizing_keeps_to_ram_and_disk_with_few_buckets(ram: int, disk: int) -> None:
    sizing = Sizing.choose(ram, disk, aux=80)
    used = 2 * sizing.buffer * sizing.buckets + sizing.bucket_bytes * (KEY + POINTER) // KEY
    assert used <= ram + KEY + POINTER
    assert sizing.disk <= min(disk, sizing.buckets * sizing.bucket_bytes * (KEY + 80) // KEY)
    if disk < drum_best_disk(UrlStream(1, url=80, pointer=POINTER), ram) / 8:
        half = ram - 2 * sizing.buffer * (sizing.buckets // 2)
        room = half * KEY // (KEY + POINTER) * (sizing.buckets // 2)
        assert sizing.buckets == 1 or room * (KEY + 80) // KEY < disk


def test_too_little_room_is_refused() -> None:
    with pytest.raises(SettingsError, match="64KiB"):
        Sizing.choose(1000, 10**9)
    with pytest.raises(SettingsError, match="power of two"):
        Sizing(3, 256, 4096, 1 << 20)


def test_a_thread_that_never_begins_is_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython waits for ever for a thread that had no memory for its first line."""
    monkeypatch.setattr(merge_thread, "_LONGEST", 0.01)
    monkeypatch.setattr(threading.Thread, "_bootstrap", lambda _: None)
    thread = MergeThread("drum-x", background=True)
    with pytest.raises(MemoryError):
        thread.start(Mock())
    assert not thread.busy
    thread.join()
