"""What a DRUM does at the edges: sizes, order, errors, full disks, reopening with other settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from barkspider.core.errors import StorageError
from barkspider.model import irlbot
from barkspider.model.irlbot import UrlStream
from barkspider.storage.drum import sweep
from barkspider.storage.drum.repository import CHECK, CHECK_UPDATE, UPDATE, Drum
from barkspider.storage.drum.sizing import POINTER, Allowance, Sizing
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.storage.drum_model import FOLDER, NUMBER, Config, Pair, Row, stored
from tests.storage.faulty import FaultyEnv

SMALL = Sizing(2, 512, 4000, 1 << 40)


def keys(*numbers: int) -> Any:
    return np.array(numbers, np.uint64)


def make(env: Env, **settings: Any) -> Drum:
    return Drum(env, FOLDER, "drum", **{"sizing": SMALL, **settings})


def results(drum: Drum) -> list[tuple[Any, ...]]:
    rows = []
    for block in drum.results():
        values = [None] * len(block) if block.values is None else block.values.tolist()
        aux = [None] * len(block) if block.aux is None else block.aux.tolist()
        rows += list(zip(block.keys.tolist(), block.unique.tolist(), values, aux, strict=True))
    return rows


def test_both_ends_of_the_key_range_and_repeats_in_one_batch() -> None:
    drum = make(FaultyEnv(), aux=True)
    ends = keys(0, 2**64 - 1, 0, 2**64 - 1)
    drum.feed(CHECK_UPDATE, ends, aux=[b"a", b"b", b"c", b"d"])
    drum.merge()
    drum.feed(CHECK, ends[:2], aux=pa.array([b"e", None], pa.binary()))
    drum.merge()
    low, high = 0, 2**64 - 1
    assert results(drum) == [
        (low, True, None, b"a"),
        (low, False, None, b"c"),
        (high, True, None, b"b"),
        (high, False, None, b"d"),
        (low, False, None, b"e"),
        (high, False, None, b""),
    ]


def test_a_check_does_not_store_and_an_update_does_not_answer() -> None:
    drum = make(FaultyEnv(), value=NUMBER)
    drum.feed(np.array([CHECK, UPDATE, CHECK], np.uint8), keys(1, 1, 1), np.array([0, 7, 0]))
    drum.feed(CHECK, keys(2))
    drum.merge()
    assert results(drum) == [(1, True, 0, None), (1, False, 7, None), (2, True, 0, None)]
    assert stored(drum) == {1: 7}


def test_values_of_32_megabytes(tmp_path: Path) -> None:
    drum = Drum(
        Env(), tmp_path, "drum", value=bytes, update="union", aux=True, sizing=SMALL, background=False
    )
    large = np.arange(4_000_000, dtype="<u8").tobytes()
    drum.feed(UPDATE, keys(5, 6), [large, b""])
    drum.feed(UPDATE, keys(5), [np.array([4_000_000], "<u8").tobytes()])
    drum.feed(CHECK, keys(5, 6, 5), aux=[b"x", b"y", b"z"])
    drum.merge()
    found = results(drum)
    assert [(row[0], row[1], len(row[2]), row[3]) for row in found] == [
        (5, False, 32_000_008, b"x"),
        (6, False, 0, b"y"),
        (5, False, 32_000_008, b"z"),
    ]
    assert found[0][2] == large + np.array([4_000_000], "<u8").tobytes()
    drum.close()


def test_functions_of_the_caller() -> None:
    drum = make(FaultyEnv(), value=NUMBER, update=lambda old, new: old * 10 + new)
    drum.feed(UPDATE, keys(1, 2, 1, 1), np.array([1, 9, 2, 3]))
    drum.merge()
    drum.feed(CHECK_UPDATE, keys(1), np.array([4]))
    drum.merge()
    assert results(drum) == [(1, False, 123, None)]
    assert stored(drum) == {1: 1234, 2: 9}
    texts = make(FaultyEnv(), value=bytes, update=lambda old, new: (old or b"-") + new)
    texts.feed(UPDATE, keys(1, 2, 1), [b"a", b"b", b"c"])
    texts.merge()
    assert stored(texts) == {1: b"-ac", 2: b"-b"}


def test_structured_values() -> None:
    kind = np.dtype([("expires", "<u4"), ("count", "<u2")])
    drum = make(FaultyEnv(), value=kind)
    drum.feed(UPDATE, keys(3, 4), np.array([(10, 1), (20, 2)], kind))
    drum.merge()
    drum.feed(CHECK, keys(4))
    drum.merge(expunge=lambda keys, values: values["expires"] < 15)
    assert results(drum) == [(4, False, (20, 2), None)]
    assert stored(drum) == {4: (20, 2)}


def test_only_touched_segments_are_rewritten() -> None:
    drum = make(FaultyEnv(), segment=1000, sizing=Sizing(1, 4096, 100_000, 1 << 40))
    drum.load([(np.arange(1000, dtype=np.uint64) << np.uint64(50), None)])
    before = {segment.name for segment in drum._segments}
    drum.feed(UPDATE, keys(1))
    drum.merge()
    after = {segment.name for segment in drum._segments}
    assert len(before - after) == 1
    drum.feed(CHECK, np.arange(1000, dtype=np.uint64) << np.uint64(50))
    written = drum.counters.known_written
    drum.merge()
    assert drum.counters.known_written == written
    assert all(not row[1] for row in results(drum))
    assert len(drum) == 1001


def test_merges_run_beside_and_a_commit_meanwhile_records_the_state_before() -> None:
    pair = Pair(FaultyEnv(), Config(buckets=4, bucket_bytes=1 << 20, background=True))
    pair.feed([Row(CHECK_UPDATE, key << 56, None, b"text") for key in range(200)])
    pair.merge(wait=False)
    pair.feed([Row(CHECK_UPDATE, key << 56, None, b"again") for key in range(0, 250, 2)])
    pair.commit()
    pair.reopen("drop")
    pair.check()
    assert len(pair.drum) == 225  # 200 keys, and the even ones from 200 to 248


def test_small_buckets_taken_together_give_the_same_results_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for together in (0, 2000, 1 << 18):
        monkeypatch.setattr("barkspider.storage.drum.merge._SMALL", together)
        drum = make(FaultyEnv(), aux=True, value=bytes, sizing=Sizing(16, 512, 4000, 1 << 40))
        random, given = np.random.default_rng(1), []
        for rows in (3, 400, 0, 90):
            chosen = random.integers(0, 2**64, rows // 2 + 1, np.uint64)[
                random.integers(0, rows // 2 + 1, rows)
            ]
            ops = random.choice([CHECK, UPDATE, CHECK_UPDATE], rows).astype(np.uint8)
            texts = [b"%d" % number for number in range(rows)]
            drum.feed(ops, chosen, texts, texts)
            drum.merge()
            given += results(drum)
        found.append((given, [(known.tolist(), values.tolist()) for known, values in drum.items()]))  # type: ignore[union-attr]
        drum.validate()
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) > 200


@pytest.mark.parametrize("buckets", [1, 4, 64])
def test_another_sizing_after_reopening(buckets: int) -> None:
    pair = Pair(FaultyEnv(), Config(buckets=16))
    random = np.random.default_rng(1)
    some = [Row(CHECK_UPDATE, int(key), None, b"x") for key in random.integers(0, 2**63, 300)]
    pair.feed(some)
    pair.merge()
    pair.feed(some[:50])
    pair.take()
    pair.commit()
    pair.drum.close()
    again = Drum(
        pair.env,
        FOLDER,
        "drum",
        aux=True,
        sizing=Sizing(buckets, 256, 4096, 1 << 40),
        state=pair.store.state("drum"),
    )
    again.feed(CHECK, keys(*[row.key for row in some]), aux=[b""] * 300)
    again.merge()
    assert len(again) == 300
    assert all(not row[1] for row in results(again))
    again.validate()


def test_opening_as_another_kind_is_refused() -> None:
    env = FaultyEnv()
    store = Store.open(env, FOLDER)
    store.add(make(env))
    store.commit()
    with pytest.raises(StorageError, match="open it as it was created"):
        make(env, value=bytes, state=store.state("drum"))


@pytest.mark.parametrize("spare", [0, 20, 100, 500, 2000, 5000, 9000])
def test_a_full_disk_in_a_merge(spare: int) -> None:
    env = FaultyEnv()
    pair = Pair(env, Config(NUMBER, "add", buckets=2, bucket_bytes=1 << 20, background=spare % 200 == 0))
    rows = [Row(CHECK_UPDATE, key << 54, key, b"text" * 5) for key in range(300)]
    pair.feed(rows)
    pair.merge()
    pair.take()
    pair.commit()
    pair.feed(rows[::2])
    env.room = env.disk.used() + 12_000  # for the rows and the manifest
    pair.commit()
    env.room = env.disk.used() + spare
    names = env.list(FOLDER / "drum")
    with pytest.raises(StorageError, match="disk full: cannot"):
        pair.merge()
    assert env.list(FOLDER / "drum") == names
    assert stored(pair.drum) == {row.key: row.value for row in rows}
    pair.drum.validate()
    env.room = None
    pair.check()
    pair.commit()
    pair.reopen("drop")
    pair.check()


def test_a_full_disk_while_feeding_tells_what_was_taken() -> None:
    env = FaultyEnv()
    drum = make(env, aux=True, output="unique", front=4096, sizing=Sizing(2, 512, 1 << 30, 1 << 40))
    column = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    env.room = env.disk.used() + 400_000
    with pytest.raises(StorageError, match="disk full"):
        drum.feed(CHECK_UPDATE, column, aux=[b"x" * 30] * 20_000)
    assert 0 < drum.accepted < 20_000
    env.room = None
    drum.feed(CHECK_UPDATE, column[drum.accepted :], aux=[b"x" * 30] * (20_000 - drum.accepted))
    drum.merge()
    assert sorted(row[0] for row in results(drum)) == sorted(column.tolist())


def test_the_error_of_a_merge_comes_before_the_next_rows() -> None:
    env = FaultyEnv()
    drum = make(env, sizing=Sizing(1, 256, 1 << 20, 1 << 40))
    drum.feed(CHECK_UPDATE, keys(1, 2, 3))
    env.kinds["create"] = "EIO"
    drum.merge(wait=False)
    drum._thread.join()
    with pytest.raises(StorageError, match="cannot write"):
        drum.feed(CHECK_UPDATE, keys(4))
    assert drum.accepted == 0
    env.kinds.clear()
    drum.feed(CHECK_UPDATE, keys(4))
    drum.merge()
    assert [row[0] for row in results(drum)] == [1, 2, 3, 4]


def test_the_front_set_forgets_what_is_expunged() -> None:
    drum = make(FaultyEnv(), output="unique", front=4096)
    drum.feed(CHECK_UPDATE, keys(1, 2, 1))
    assert drum.counters.sifted == 1
    drum.merge(expunge=lambda keys, values: keys == 1)
    drum.feed(CHECK_UPDATE, keys(1, 2))
    drum.merge()
    assert [row[0] for row in results(drum)] == [1, 2, 1]


def test_sets_of_small_items_keep_trailing_zeros() -> None:
    drum = make(FaultyEnv(), value=bytes, update="union", item=2)
    drum.feed(UPDATE, keys(1, 1), [b"b\0a\0", b"a\0a1"])
    drum.merge()
    assert stored(drum) == {1: b"a\0a1b\0"}


def test_damage_is_named() -> None:
    env = FaultyEnv()
    drum = make(env, aux=True, sizing=Sizing(1, 256, 1 << 20, 1 << 40))
    drum.feed(CHECK_UPDATE, keys(1, 2, 3), aux=[b"a", b"b", b"c"])
    drum.prepare()()
    for ending in (".pairs", ".aux"):
        (name,) = (name for name in env.list(FOLDER / "drum") if name.endswith(ending))
        data = env.disk.data(env.disk.find(FOLDER / "drum" / name))
        data[-3] ^= 4
        with pytest.raises(StorageError, match=rf"{name} is damaged at byte 16"):
            drum.verify()
        with pytest.raises(StorageError, match=rf"{name} is damaged at byte 16"):
            drum.merge()
        data[-3] ^= 4
    drum.merge()
    assert drum.verify() == len(drum) == 3
    for ending in (".known", ".results"):
        (name,) = (name for name in env.list(FOLDER / "drum") if name.endswith(ending))
        data = env.disk.data(env.disk.find(FOLDER / "drum" / name))
        data[-3] ^= 4
        with pytest.raises(StorageError, match=rf"{name} is damaged at byte 16"):
            drum.verify()
        data[-3] ^= 4


def test_loading_sorted_keys(tmp_path: Path) -> None:
    drum = Drum(Env(), tmp_path, "drum", value=np.dtype("<u2"), segment=1000)
    column = np.arange(0, 5000, 3, dtype=np.uint64)
    drum.load([(column[:700], column[:700] % 7), (column[700:], column[700:] % 7)])
    assert stored(drum) == {key: key % 7 for key in column.tolist()}
    with pytest.raises(ValueError, match="not empty"):
        drum.load([])
    other = Drum(Env(), tmp_path, "other")
    with pytest.raises(ValueError, match="strictly ascending"):
        other.load([(keys(1, 1), None)])
    assert list((tmp_path / "other").iterdir()) == []
    drum.close()


def test_wrong_calls() -> None:
    env = FaultyEnv()
    with pytest.raises(ValueError, match="all or unique"):
        make(env, output="some")
    with pytest.raises(ValueError, match="front set"):
        make(env, front=4096)
    drum = make(env, aux=True)
    with pytest.raises(ValueError, match="an operation is"):
        drum.feed(4, keys(1))
    with pytest.raises(ValueError, match="keeps no such"):
        drum.feed(CHECK, keys(1), values=[b"x"])
    with pytest.raises(ValueError, match="1 keys came with 2"):
        drum.feed(CHECK, keys(1), aux=[b"", b""])
    drum.feed(np.empty(0, np.uint8), keys())
    assert drum.pending == 0


class Doubling(Allowance):
    """Twice the bytes of Z for each generation, as `Allowance` has it with more memory than a test."""

    def generation(self, known: int) -> Sizing:
        return Sizing(2, 8192, 1 << 30, max(60_000, 2 * known))


def test_the_disk_of_a_generation_grows_with_z_so_that_a_pass_over_z_costs_no_more() -> None:
    drum = make(FaultyEnv(), aux=True, output="unique", sizing=Doubling(1 << 16, int))
    random, terms, last = np.random.default_rng(1), {}, drum.counters.merges
    while len(drum) < 100_000:
        passed, rows = drum.counters.known_read + drum.counters.known_written, drum.counters.rows_merged
        drum.feed(CHECK_UPDATE, random.integers(0, 2**64, 200, dtype=np.uint64), aux=[b"x" * 100] * 200)
        drum.wait()
        if drum.counters.merges > last:
            last, now = drum.counters.merges, drum.counters
            # Bytes of Z that were moved, for each byte of the buckets: the first term of equation (5).
            moved = now.known_read + now.known_written - passed
            terms[len(drum)] = moved / (109 * (now.rows_merged - rows))
    large = [term for size, term in terms.items() if size > 10_000]
    assert len(large) > 10
    assert max(large) < 1.3  # with D fixed, ten times that of 10,000 keys


def test_a_generation_is_as_large_as_z_asks_for_and_there_is_room_for() -> None:
    """The live URLseen: 512 MB of RAM. With D of 8R, α was 16 at 10^9 URLs and 114 at 8 * 10^9."""
    for urls, disk, most in ((10**6, 4.096e9, 10**13), (10**9, 16e9, 10**13), (8 * 10**9, 128e9, 10**13)):
        allowance = Allowance(512_000_000, lambda most=most: most, aux=110)
        sizing = allowance.generation(8 * urls)
        assert sizing.disk == disk
        assert irlbot.drum(UrlStream(0, 1 / 9, urls), 1e18, sizing.disk) < 3.4
    assert Allowance(512_000_000, lambda: 10**9, aux=110).generation(8 * 10**9).disk == 10**9
    # Where there is no room at all, what the buffers in RAM hold is still spread over buckets.
    assert Allowance(512_000_000, lambda: 0, aux=110).generation(8 * 10**9).disk == 128_000_000
    # And with more room than RAM can fill, it ends at D_opt.
    best = irlbot.drum_best_disk(UrlStream(1, pointer=POINTER), 10_000_000)
    assert 0.6 * best < Allowance(10_000_000, lambda: 10**15, aux=110).generation(10**15).disk <= best


def test_counters_and_the_sizes_of_a_generation_go_on_after_a_reopening() -> None:
    env, room = FaultyEnv(), [300_000]
    allowance = Allowance(1 << 18, lambda: room[0], aux=10)
    store = Store.open(env, FOLDER)
    drum = make(env, aux=True, output="unique", sizing=allowance)
    store.add(drum)
    for _ in range(3):
        drum.feed(CHECK_UPDATE, np.arange(1000, dtype=np.uint64) << np.uint64(50), aux=[b"text"] * 1000)
        drum.merge()
    drum.feed(CHECK_UPDATE, keys(1, 2))
    store.commit()
    before, sizing = drum.counters, drum._generations()[0].sizing
    drum.close()
    room[0] = 10**9
    again = make(
        env, aux=True, output="unique", sizing=allowance, state=Store.open(env, FOLDER).state("drum")
    )
    assert again.counters == before
    assert (before.rows, before.unique, before.merges, before.rows_merged) == (3002, 1000, 3, 3000)
    assert (before.keys_read, before.keys_written, before.rows_given) == (2000, 3000, 1000)
    assert again._generations()[0].sizing == sizing
    again.merge()
    assert (again.counters.merges, again.counters.rows_merged) == (4, 3002)


def test_large_files_that_go_are_removed_in_a_thread_and_gone_when_it_is_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sweep, "_LARGE", 1)
    store = Store.open(Env(), tmp_path)
    drum = Drum(Env(), tmp_path, "drum")
    store.add(drum)
    for number in range(3):
        drum.feed(CHECK_UPDATE, np.arange(number, number + 100, dtype=np.uint64))
        drum.merge()
        store.commit()
        list(drum.results())
    store.commit()
    drum.close()
    (known,) = tmp_path.glob("drum/*.known")
    assert set(tmp_path.glob("drum/*")) == {known}
