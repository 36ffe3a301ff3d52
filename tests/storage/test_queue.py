import random
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import StorageError
from barkspider.storage import queue as queue_module
from barkspider.storage.env import Env
from barkspider.storage.queue import DiskQueue


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=300))))
def test_it_answers_like_a_list(calls: list[bytes | None]) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue_module, "_BLOCK", 200)
        patch.setattr(queue_module, "_SEGMENT", 500)
        ours, model = DiskQueue(Env(), Path(folder), "q"), deque[bytes]()
        for item in calls:
            if item is not None:
                ours.append(item)
                model.append(item)
            elif model:
                assert ours.pop() == model.popleft()
            else:
                with pytest.raises(IndexError):
                    ours.pop()
            assert len(ours) == len(model)
            ours.validate()
        while model:
            assert ours.pop() == model.popleft()
        ours.close()
        assert not list(Path(folder).iterdir())


def test_space_behind_the_reader_is_freed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "_SEGMENT", 1 << 17)
    ours = DiskQueue(Env(), tmp_path, "q")
    for number in range(400):
        ours.append(random.Random(number).randbytes(20_000))
    before = len(list(tmp_path.iterdir()))
    for _ in range(390):
        ours.pop()
    assert len(list(tmp_path.iterdir())) < before
    ours.close()


@pytest.mark.parametrize("place", [0, 5, 30, -1])
def test_a_flipped_bit_is_noticed(tmp_path: Path, place: int) -> None:
    ours = DiskQueue(Env(), tmp_path, "q")
    for _ in range(3):
        ours.append(bytes(range(256)) * 400)
    (file,) = tmp_path.iterdir()
    assert ours._file is not None
    ours._file.flush()
    data = bytearray(file.read_bytes())
    data[place] ^= 4
    file.write_bytes(data)
    with pytest.raises(StorageError, match=r"damaged|cut off"):
        [ours.pop() for _ in range(3)]
    ours.close()


def test_what_an_earlier_queue_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "q-00000000.queue").write_bytes(b"old")
    ours = DiskQueue(Env(), tmp_path, "q")
    ours.append(b"new")
    assert ours.pop() == b"new"
    ours.close()
