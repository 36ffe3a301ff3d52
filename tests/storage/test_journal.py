"""The journal: whatever ended the process or the machine, what is read back is what was written, without a gap."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from barkspider.core.errors import StorageError
from barkspider.storage.env import Env
from barkspider.storage.format import HEADER_SIZE
from barkspider.storage.store.journal import RECORD_HEAD, Journal, journal_files
from barkspider.storage.store.verify import DAMAGE, RECOVERABLE, verify_journal
from tests.storage.faulty import Disk, FaultyCalls, FaultyEnv
from tests.storage.scenarios import many_operations

FOLDER = Path("/job/journal")
APPLIED = Path("/job/applied")


def record(number: int) -> bytes:
    """What is written as the record of this number."""
    random = Random(number)
    return random.randbytes(random.choice((0, 1, 7, 40, 300)))


def applied(env: Env) -> int:
    return int(env.read(APPLIED)) if APPLIED.name in env.list(APPLIED.parent) else 0


def opened(env: Env) -> Journal:
    """The journal, with all that it holds compared with what was written."""
    env.make_folder(FOLDER.parent)
    journal = Journal(env, FOLDER, applied(env))
    begin = journal.last
    found = list(journal.tail())
    assert [number for number, _ in found] == list(range(begin + 1, journal.last + 1))
    assert all(content == record(number) for number, content in found)
    return journal


class Mark(NamedTuple):
    """After so many operations: up to which record all was handed over, and was synced."""

    operations: int
    flushed: int
    synced: int


def work(env: FaultyEnv, seed: int, steps: int) -> list[Mark]:
    """Write, sync, checkpoint and open again at random."""
    random, journal, marks, flushed, synced = Random(seed), opened(env), [Mark(0, 0, 0)], 0, 0
    for _ in range(steps):
        for _ in range(random.randint(0, 4)):
            assert journal.append(record(journal.last + 1)) == journal.last
        action = random.choice(("flush", "flush", "checkpoint", "reopen"))
        if action == "flush":
            journal.flush()
        elif action == "checkpoint":
            last, sync = journal.last, journal.turn()
            for _ in range(random.randint(0, 3)):  # while a thread does what follows
                journal.append(record(journal.last + 1))
            if random.random() < 0.5:
                journal.flush()
            sync()
            env.write_whole(APPLIED, str(last).encode())
            synced = last
            journal.checkpointed(last)
            journal.flush()
        else:
            journal.close()
            journal = opened(env)
        flushed = journal.last
        marks.append(Mark(len(env.operations), flushed, synced))
    journal.close()
    return marks


def check(env: FaultyEnv, least: int) -> None:
    """Whether all up to this record is there, and the journal can be written to."""
    journal = opened(env)
    assert journal.last >= least
    last = journal.append(record(journal.last + 1))
    journal.close()
    assert opened(env).last == last


@pytest.mark.parametrize("seed", range(6))
def test_nothing_that_was_handed_over_is_lost_whichever_operation_was_the_last(seed: int) -> None:
    env, random = FaultyEnv(), Random(seed)
    with many_operations():
        marks = work(env, seed, 12)
    for done, disk in env.crashes():
        before = [mark for mark in marks if mark.operations <= done][-1]
        check(FaultyEnv(disk.after_power_loss("keep", random)), before.flushed)
        for how in ("drop", "random", "random"):
            check(FaultyEnv(disk.after_power_loss(how, random)), before.synced)


def test_a_missing_sync_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FaultyCalls, "sync", lambda calls, descriptor: None)
    monkeypatch.setattr(Env, "write_whole", lambda env, path, data: None)  # nothing is ever applied
    env, random = FaultyEnv(), Random(1)
    env.make_folder(FOLDER.parent)
    journal = Journal(env, FOLDER, 0)
    journal.append(record(1))
    journal.turn()()
    with pytest.raises(AssertionError):
        check(env.crash("drop", random), 1)


def turned(syncs: bool) -> FaultyEnv:
    """Records 1 to 3 in one file, 4 and 5 in the next, begun before the first is safe; the power fails, and what was synced
    is there with all that was written to the second."""
    env = FaultyEnv()
    journal = opened(env)
    for _ in range(3):
        journal.append(record(journal.last + 1))
    sync = journal.turn()
    for _ in range(2):
        journal.append(record(journal.last + 1))
    journal.flush()
    if syncs:
        sync()
    (path,) = (path for path in journal_files(env, FOLDER) if "early" in path.name)
    with env.append(path) as file:
        file.sync()
    env.sync_folder(FOLDER)
    return env.crash("drop", Random(0))


def test_a_file_that_was_begun_early_counts_only_if_the_one_before_it_is_whole() -> None:
    env = turned(syncs=False)
    assert RECOVERABLE in {fault.kind for fault in verify_journal(env, FOLDER, 0)}
    journal = opened(env)
    assert journal.last == 0
    journal.append(record(1))
    journal.close()
    assert opened(env).last == 1
    assert opened(turned(syncs=True)).last == 5


def written(records: int) -> FaultyEnv:
    """A journal of one file, on a disk on which all is safe."""
    env = FaultyEnv()
    journal = opened(env)
    for _ in range(records):
        journal.append(record(journal.last + 1))
    journal.close()
    return FaultyEnv(env.disk.copy())


def ends(records: int) -> list[int]:
    """Where the header and each record of the first file end."""
    found = [HEADER_SIZE]
    for number in range(1, records + 1):
        found.append(found[-1] + RECORD_HEAD + len(record(number)))
    return found


def only_file(disk: Disk) -> tuple[Path, bytearray]:
    (path,) = (path for path in disk.paths() if path.parent == FOLDER)
    return path, disk.data(disk.paths()[path])


def test_a_file_cut_anywhere_gives_the_records_that_are_whole() -> None:
    whole = written(5)
    for size in range(ends(5)[-1] + 1):
        disk = whole.disk.copy()
        del only_file(disk)[1][size:]
        env = FaultyEnv(disk)
        complete = max(sum(end <= size for end in ends(5)) - 1, 0)
        faults = list(verify_journal(env, FOLDER, 0))
        assert {fault.kind for fault in faults} <= {RECOVERABLE}
        assert any("not whole" in fault.what for fault in faults) == (size not in ends(5))
        assert opened(env).last == complete
        check(env, complete)


def test_whatever_byte_is_damaged_no_wrong_record_is_given_and_the_file_is_named() -> None:
    whole = written(5)
    name, data = only_file(whole.disk)
    for place in range(len(data)):
        env = FaultyEnv(whole.disk.copy())
        only_file(env.disk)[1][place] ^= 1 << place % 8
        assert name.name in {fault.file for fault in verify_journal(env, FOLDER, 0)}, place
        if 8 <= place < 12 and place % 8:  # another version
            with pytest.raises(StorageError, match=name.name):
                opened(env)
        else:
            assert opened(env).last == max(sum(end <= place for end in ends(5)) - 1, 0)


def test_a_damaged_file_before_the_last_is_an_error() -> None:
    env = written(5)
    journal = opened(env)
    journal.append(record(6))
    journal.close()
    first, second = journal_files(env, FOLDER)
    env.disk.data(env.disk.paths()[first])[ends(5)[3] + 3] ^= 1
    with pytest.raises(StorageError, match=rf"{first.name} is damaged at byte {ends(5)[3]}"):
        opened(env)
    faults = list(verify_journal(env, FOLDER, 0))
    assert [(fault.kind, fault.file) for fault in faults[:2]] == [(DAMAGE, first.name), (DAMAGE, second.name)]
    env.remove(first)
    with pytest.raises(StorageError, match="record 1 is missing"):
        opened(env)
    assert next(verify_journal(env, FOLDER, 0)).what == "record 1 is missing"


def test_a_newer_format_is_refused() -> None:
    env = written(1)
    only_file(env.disk)[1][8] = 2
    with pytest.raises(StorageError, match="format version 2, newer than 1"):
        opened(env)


@pytest.mark.parametrize("number", range(1, 8))
def test_a_record_and_all_behind_it_can_be_taken_back(number: int) -> None:
    env = written(4)
    journal = opened(env)
    for _ in range(3):  # in a second file
        journal.append(record(journal.last + 1))
    journal.close()
    cut = Journal(env, FOLDER, 0)
    for found, _ in cut.tail():
        if found == number:
            cut.cut()
            break
    assert cut.last == number - 1
    assert opened(env).last == number - 1
    check(env, number - 1)


def test_files_go_when_a_checkpoint_knows_all_their_records() -> None:
    env = written(4)
    journal = opened(env)
    for _ in range(3):
        journal.append(record(journal.last + 1))
    journal.turn()
    journal.checkpointed(6)  # the last record of the second file is not known yet
    assert [path.stem for path in journal_files(env, FOLDER)] == [f"{5:016d}"]
    journal.checkpointed(7)
    assert journal_files(env, FOLDER) == []
    journal.checkpointed(7)  # nothing happened in the meantime
    assert journal.append(record(8)) == 8
    journal.close()
    env.write_whole(APPLIED, b"7")
    assert opened(env).last == 8


def test_a_full_disk_loses_nothing_that_can_be_written_later() -> None:
    env = FaultyEnv()
    journal = opened(env)
    journal.append(record(1))
    journal.flush()
    env.room = env.disk.used()
    journal.append(b"x" * 50)
    with pytest.raises(StorageError, match="disk full"):
        journal.flush()
    assert opened(FaultyEnv(env.disk.copy())).last == 1
    env.room = None
    journal.close()
    again = Journal(env, FOLDER, 0)
    assert list(again.tail()) == [(1, record(1)), (2, b"x" * 50)]
