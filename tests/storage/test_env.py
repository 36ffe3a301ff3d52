import errno
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from barkspider.core.errors import StorageError
from barkspider.storage.calls import Calls
from barkspider.storage.env import Env
from barkspider.storage.raw import as_bytes
from tests.storage.faulty import FaultyEnv

LARGE = bytes(range(256)) * 4096  # more than is gathered


@pytest.fixture(params=["real", "in RAM"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Env, Path]:
    """The same contract holds for the file system and for the one that tests put in its place."""
    if request.param == "real":
        return Env(), tmp_path
    env = FaultyEnv()
    env.make_folder(Path("/folder"))
    return env, Path("/folder")


def test_a_file_is_replaced_whole(place: tuple[Env, Path]) -> None:
    env, folder = place
    with env.append(folder / "a.new") as file:
        file.write(b"left by a crash")
    env.write_whole(folder / "a", b"one")
    env.write_whole(folder / "a", LARGE)
    assert env.read(folder / "a") == LARGE
    assert env.list(folder) == ["a"]


def test_appending_goes_on_where_it_stopped(place: tuple[Env, Path]) -> None:
    env, folder = place
    for expected in (3, 6):
        with env.append(folder / "a") as file:
            file.write(b"abc")
            assert file.size == expected
            file.sync()
    assert env.read(folder / "a", 2, 2) == b"ca"
    assert env.read(folder / "a", 4) == b"bc"
    assert env.read(folder / "a", 9, 5) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abc",
        bytearray(b"abc"),
        memoryview(b"abc"),
        memoryview(np.arange(3)),
        np.arange(6, dtype="<u4").reshape(2, 3),
        np.empty((0, 3)),
        np.zeros(2, [("key", "<u8"), ("count", "u1")]),
        np.zeros(2, "M8[s]"),
        pa.py_buffer(b"abc"),
        pa.py_buffer(b""),
        np.arange(200_000),
    ],
)
def test_any_memory_can_be_written(place: tuple[Env, Path], data: memoryview) -> None:
    env, folder = place
    expected = b"<" + bytes(as_bytes(data)) + b">"
    with env.append(folder / "a") as file:
        file.write(b"<", data)
        file.write(b">")
        assert file.size == len(expected)
    assert env.read(folder / "a") == expected


def test_memory_with_gaps_is_refused(place: tuple[Env, Path]) -> None:
    env, folder = place
    with env.append(folder / "a") as file, pytest.raises(ValueError, match="gaps"):
        file.write(np.arange(10)[::2])


def test_a_growing_file_can_be_read(place: tuple[Env, Path]) -> None:
    env, folder = place
    with env.append(folder / "a") as file, env.open(folder / "a") as reader:
        for round_ in range(1, 4):
            file.write(b"0123456789")
            file.flush()
            assert reader.size == file.size == 10 * round_
        buffer = np.zeros(4, "<u2")
        assert reader.pread_into(28, buffer) == 2
        assert buffer.tobytes() == b"89" + bytes(6)
        assert reader.pread(25, 100) == b"56789"
        assert reader.pread(40, 1) == b""
        reader.close()


def test_what_was_written_last_can_be_taken_back(place: tuple[Env, Path]) -> None:
    env, folder = place
    with env.append(folder / "a") as file:
        file.write(LARGE)
        file.write(b"small")
        file.cut(len(LARGE) + 2)
        assert file.size == len(LARGE) + 2
        file.flush()
        file.cut(10)
        file.write(b"x")
    assert env.read(folder / "a") == LARGE[:10] + b"x"
    file = env.append(folder / "a")
    file.write(b"never")
    file.discard()
    with pytest.raises(StorageError, match="a is closed"):
        file.write(b"more")
    assert env.size(folder / "a") == 11


def test_space_can_be_reserved_without_changing_the_size(place: tuple[Env, Path]) -> None:
    env, folder = place
    with env.append(folder / "a") as file:
        file.preallocate(1 << 20)
        file.write(b"abc")
    assert env.size(folder / "a") == 3


def test_a_system_that_cannot_reserve_space_is_fine(tmp_path: Path) -> None:
    class Old(Calls):
        def preallocate(self, descriptor: int, offset: int, size: int) -> None:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    with Env(Old()).append(tmp_path / "a") as file:
        file.preallocate(1 << 20)
        file.write(b"abc")
    assert Env().read(tmp_path / "a") == b"abc"


def test_a_file_is_cut_but_never_made_longer(place: tuple[Env, Path]) -> None:
    env, folder = place
    env.write_whole(folder / "a", b"0123456789")
    env.truncate(folder / "a", 4)
    assert env.read(folder / "a") == b"0123"
    with pytest.raises(StorageError, match="a is cut off: it has 4 bytes and should have 5"):
        env.truncate(folder / "a", 5)
    assert env.size(folder / "a") == 4


def test_a_lock_keeps_a_second_one_out_until_it_is_released(place: tuple[Env, Path]) -> None:
    env, folder = place
    lock = env.lock(folder / "lock")
    assert lock is not None
    assert env.lock(folder / "lock") is None
    lock.release()
    lock.release()
    again = env.lock(folder / "lock")
    assert again is not None
    again.release()


def test_errors_name_the_file(place: tuple[Env, Path]) -> None:
    env, folder = place
    missing = folder / "none" / "a"
    for action in (env.read, env.open, env.append, env.lock, env.size):
        with pytest.raises(StorageError, match=r"none/a"):
            action(missing)
    with pytest.raises(StorageError, match=r"cannot cut .*none/a"):
        env.truncate(missing, 0)
    with pytest.raises(StorageError, match="cannot rename"):
        env.rename(missing, folder / "b")
    env.remove(folder / "not there")
    assert env.list(folder / "none") == []
    env.make_folder(folder / "one" / "two")
    env.make_folder(folder / "one" / "two")
    assert env.list(folder) == ["one"]
    assert env.free_space(folder) > 0


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    env = Env()
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot create .*file/below"):
        env.make_folder(tmp_path / "file" / "below")
    for action in (env.list, env.sync_folder):
        with pytest.raises(StorageError, match=r"cannot \w+ .*file"):
            action(tmp_path / "file")
    with pytest.raises(StorageError, match="cannot examine"):
        env.free_space(tmp_path / "none")
    with pytest.raises(StorageError, match="cannot remove"):
        env.remove(tmp_path / "file" / "below")


def env_with_file(data: bytes) -> tuple[FaultyEnv, Path]:
    env = FaultyEnv()
    env.write_whole(Path("/a"), data)
    return env, Path("/a")


def test_short_writes_and_reads_go_on() -> None:
    env, path = env_with_file(b"begin ")
    env.faults.update(dict.fromkeys(range(len(env.operations), len(env.operations) + 25), "short"))
    with env.append(path) as file:
        file.write(LARGE)
    env.faults.update(dict.fromkeys(range(len(env.operations), len(env.operations) + 25), "short"))
    assert env.read(path) == b"begin " + LARGE


def test_a_large_write_without_room_is_undone_and_can_be_repeated() -> None:
    env, path = env_with_file(b"begin ")
    env.room = env.disk.used() + 4
    with env.append(path) as file:
        for _ in range(2):
            with pytest.raises(StorageError, match="disk full: cannot write /a; make room"):
                file.write(b"head", LARGE)
            assert env.read(path) == b"begin "
        env.room = None
        file.write(b"head", LARGE)
    assert env.read(path) == b"begin head" + LARGE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is always full")
def test_a_real_device_that_is_full_says_so() -> None:
    with Env().append(Path("/dev/full")) as file:
        with pytest.raises(StorageError, match="disk full: cannot write /dev/full"):
            file.write(LARGE)
        assert file.size == 0


def test_what_waits_is_what_it_was_when_it_was_written(place: tuple[Env, Path]) -> None:
    env, folder = place
    changing, array = bytearray(b"abc"), np.array([1, 2], np.uint8)
    with env.append(folder / "a") as file:
        file.write(changing, memoryview(changing)[1:], array, b"kept", memoryview(b"a view")[2:])
        changing[:], array[:] = b"xyz", 7
        file.flush()
        assert env.read(folder / "a") == b"abcbc\1\2keptview"


def test_many_small_pieces_are_written_in_order_and_can_be_taken_back(place: tuple[Env, Path]) -> None:
    env, folder = place
    pieces = [b"%d " % number for number in range(3000)]  # more than the system takes at once
    with env.append(folder / "a") as file:
        for piece in pieces:
            file.write(piece)
        file.cut(file.size - 3)
        file.write(b"!")
        assert file.size == sum(map(len, pieces)) - 2
    assert env.read(folder / "a") == b"".join(pieces)[:-3] + b"!"


def test_what_was_gathered_waits_for_room() -> None:
    env, path = env_with_file(b"begin ")
    env.room = env.disk.used() + 4
    with env.append(path) as file:
        file.write(b"12345")
        for _ in range(2):
            with pytest.raises(StorageError, match="disk full"):
                file.flush()
            assert env.read(path) == b"begin "
        file.write(b"6")
        env.room = None
    assert env.read(path) == b"begin 123456"


def test_after_a_failed_sync_nothing_is_claimed_to_be_safe() -> None:
    env, path = env_with_file(b"begin ")
    file = env.append(path)
    file.write(b"lost")
    env.faults[len(env.operations) + 1] = "EIO"
    calls: list[Callable[[], None]] = [file.sync, file.flush, lambda: file.write(b"x"), file.sync]
    for call in calls:
        with pytest.raises(StorageError, match="cannot sync /a: Input/output error"):
            call()
    file.close()
    env.append(path).sync()  # the system has forgotten the error, and the data with it
    assert env.crash("drop", Random(0)).read(path) == b"begin "


def test_a_write_that_cannot_be_undone_spoils_the_file() -> None:
    env, path = env_with_file(b"")
    file = env.append(path)
    number = len(env.operations)
    env.faults.update({number: "short", number + 1: "ENOSPC", number + 2: "EIO"})
    with pytest.raises(StorageError, match="cannot cut /a: Input/output error"):
        file.write(LARGE)
    with pytest.raises(StorageError, match="cannot cut /a"):
        file.write(b"x")
    file.close()


def test_a_read_error_names_the_file() -> None:
    env, path = env_with_file(b"abc")
    with env.open(path) as file:
        for call in (lambda: file.pread(0, 3), lambda: file.size, lambda: file.pread_into(0, bytearray(3))):
            env.faults[len(env.operations)] = "EIO"
            with pytest.raises(StorageError, match="cannot read /a: Input/output error"):
                call()


def test_what_was_not_synced_may_be_lost_torn_or_out_of_order() -> None:
    env = FaultyEnv()
    env.make_folder(Path("/f"))
    file = env.append(Path("/f/a"))
    file.write(b"safe")
    file.sync()
    env.sync_folder(Path("/f"))
    for piece in (b"1111", b"2222"):
        file.write(piece)
        file.flush()
    env.append(Path("/f/b")).sync()
    env.remove(Path("/f/gone"))
    found = [env.crash("random", Random(seed)) for seed in range(200)]
    contents = {crashed.read(Path("/f/a")) for crashed in found}
    assert all(content.startswith(b"safe") for content in contents)
    assert {b"safe", b"safe1111", b"safe11112222", b"safe\0\0\0\x002222"} < contents
    assert {tuple(crashed.list(Path("/f"))) for crashed in found} == {("a",), ("a", "b")}
    assert env.crash("drop", Random(0)).list(Path("/f")) == ["a"]
    assert env.crash("keep", Random(0)).read(Path("/f/a")) == b"safe11112222"


def test_a_rename_without_its_folder_may_be_lost() -> None:
    env, path = env_with_file(b"old")
    with env.append(Path("/a.new")) as file:
        file.write(b"new")
        file.sync()
    env.faulty.rename(Path("/a.new"), path)
    found = [env.crash("random", Random(seed)).read(path) for seed in range(50)]
    assert set(found) == {b"old", b"new"}
    env.sync_folder(Path("/"))
    assert env.crash("drop", Random(0)).read(path) == b"new"


def test_every_moment_of_a_run_can_be_seen_again() -> None:
    env, path = env_with_file(b"one")
    env.write_whole(path, b"two")
    contents = [disk.after_power_loss("drop", Random(0)).paths() for _, disk in env.crashes()]
    assert len(contents) == sum(operation.kind != "open" for operation in env.operations) - 2 + 1
    assert list(contents[-1]) == [path]


def test_another_process_may_make_the_folder_first(tmp_path: Path) -> None:
    class Late(Calls):
        def make_folder(self, path: Path) -> None:
            path.mkdir()
            super().make_folder(path)

    Env(Late()).make_folder(tmp_path / "one" / "two")
    assert (tmp_path / "one" / "two").is_dir()


def test_threads_may_read_one_file(tmp_path: Path) -> None:
    env, wrong = Env(), list[int]()
    env.write_whole(tmp_path / "a", LARGE)
    with env.open(tmp_path / "a") as file:

        def read(start: int) -> None:
            for offset in range(start, len(LARGE), 4096):
                if file.pread(offset, 256) != LARGE[offset : offset + 256]:
                    wrong.append(offset)

        threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
