from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barkspider.core.errors import StorageError
from barkspider.storage.env import Env
from barkspider.storage.format import (
    BLOCK_HEAD_SIZE,
    HEADER_SIZE,
    block_head,
    check_block,
    check_header,
    header,
    read_block_head,
    write_header,
)

MAGIC, FILE = b"BARKtest", Path("some/file")


def test_a_file_begins_with_its_header(tmp_path: Path) -> None:
    with Env().append(tmp_path / "a") as file:
        write_header(file, MAGIC, 2)
        assert file.size == HEADER_SIZE
    data = Env().read(tmp_path / "a")
    assert data == b"BARKtest\x02\x00\x00\x00\x00\x00\x00\x00"
    assert check_header(data + b"more", MAGIC, 3, FILE) == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "some/file is cut off"),
        (header(MAGIC, 1)[:-1], "some/file is cut off"),
        (header(b"BARKelse", 1), "some/file is damaged at byte 0, or no BARKtest file"),
        (header(MAGIC, 0), "some/file is damaged at byte 8"),
        (header(MAGIC, 2), "some/file has format version 2, newer than 1"),
        (header(MAGIC, 1)[:-1] + b"\x01", "some/file is damaged at byte 8"),
    ],
)
def test_a_wrong_header_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(StorageError, match=message):
        check_header(data, MAGIC, 1, FILE)


@given(bit=st.integers(0, HEADER_SIZE * 8 - 1))
def test_no_bit_of_a_header_may_flip(bit: int) -> None:
    data = bytearray(header(MAGIC, 1))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(StorageError, match="some/file"):
        check_header(data, MAGIC, 1, FILE)


def check_all(data: bytearray) -> None:
    read_block_head(data, FILE, 16)
    check_block(data[:BLOCK_HEAD_SIZE], data[BLOCK_HEAD_SIZE:], FILE, 16)


def test_no_bit_of_a_block_may_flip() -> None:
    data = bytearray(block_head(1, 99, 3, 1 << 40, b"stored", b" bytes") + b"stored bytes")
    head = read_block_head(data, FILE, 16)
    assert (head.codec, head.stored, head.raw, head.items, head.first) == (1, 12, 99, 3, 1 << 40)
    check_all(data)
    for bit in range(len(data) * 8):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(StorageError, match="some/file is damaged at byte 16"):
            check_all(data)
        data[bit // 8] ^= 1 << bit % 8


def test_a_block_that_is_cut_is_refused() -> None:
    head = block_head(0, 3, 1, 0, b"abc")
    with pytest.raises(StorageError, match="some/file is cut off at byte 16"):
        read_block_head(head[:-1], FILE, 16)
    with pytest.raises(StorageError, match="some/file is damaged at byte 16"):
        check_block(head, b"ab", FILE, 16)
