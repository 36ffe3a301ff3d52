from pathlib import Path

import pytest

from barkspider.core.errors import StorageError
from barkspider.storage.env import Env


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    env, file = Env(), tmp_path / "a"
    (tmp_path / "a.new").write_bytes(b"left by a crash")
    env.write_whole(file, b"one")
    env.write_whole(file, b"two")
    assert env.read(file) == b"two"
    assert env.list(tmp_path) == ["a"]


def test_appending_goes_on_where_it_stopped(tmp_path: Path) -> None:
    env, path = Env(), tmp_path / "a"
    for expected in (3, 6):
        file = env.append(path)
        file.write(b"abc")
        assert file.size == expected
        file.sync()
        file.close()
    assert env.read(path, 2, 2) == b"ca"


def test_a_lock_keeps_a_second_one_out_until_it_is_released(tmp_path: Path) -> None:
    env = Env()
    lock = env.lock(tmp_path / "lock")
    assert lock is not None
    assert env.lock(tmp_path / "lock") is None
    lock.release()
    lock.release()
    again = env.lock(tmp_path / "lock")
    assert again is not None
    again.release()


def test_errors_name_the_file(tmp_path: Path) -> None:
    env, missing = Env(), tmp_path / "none" / "a"
    for action in (env.read, env.append, env.lock):
        with pytest.raises(StorageError, match=r"none/a"):
            action(missing)
    with pytest.raises(StorageError, match="cannot rename"):
        env.rename(missing, tmp_path / "b")
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot create"):
        env.make_folder(tmp_path / "file" / "below")
    with pytest.raises(StorageError, match="cannot list"):
        env.list(tmp_path / "file")
    assert env.list(tmp_path / "none") == []
    env.remove(tmp_path / "not there")
