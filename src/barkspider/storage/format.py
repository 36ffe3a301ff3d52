"""What all files of the disk engine have in common: header, blocks, checksums; see docs/formats.

Numbers are little-endian. Everything is read as data: a length is believed only when the file is long
enough for it, and bytes only when their checksum is right. What is wrong is a `StorageError` that names
the file and the place.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

import xxhash

from barkspider.core.errors import StorageError
from barkspider.storage.env import AppendFile
from barkspider.storage.raw import Data, as_bytes

_HEADER = struct.Struct("<8sII")
HEADER_SIZE = _HEADER.size

_FIELDS = struct.Struct("<4sIIIIIQ")
_CHECKSUM = struct.Struct("<Q")
_MARK = b"BLOK"
BLOCK_HEAD_SIZE = _FIELDS.size + _CHECKSUM.size
MOST_BYTES = 1 << 30  # of a block before compression: its offsets fit 32 bits with room to spare


def checksum(data: Data) -> int:
    """xxh3_64 of the bytes.

    >>> hex(checksum(b"abc"))
    '0x78af5f94892f3950'
    """
    digest: int = xxhash.xxh3_64_intdigest(as_bytes(data))
    return digest


def header(magic: bytes, version: int) -> bytes:
    """What a file begins with: 8 bytes that say what it is, and the version of its format."""
    assert len(magic) == 8
    return _HEADER.pack(magic, version, 0)


def write_header(file: AppendFile, magic: bytes, version: int) -> None:
    """Begin a file with its header."""
    file.write(header(magic, version))


def check_header(data: Data, magic: bytes, version: int, path: Path) -> int:
    """The version of a file that begins with `data`; `version` is the newest that the caller can read.

    >>> check_header(header(b"BARKtest", 1), b"BARKtest", 2, Path("a"))
    1
    >>> check_header(header(b"BARKtest", 3), b"BARKtest", 2, Path("a"))
    Traceback (most recent call last):
        ...
    barkspider.core.errors.StorageError: a has format version 3, newer than 2: use a newer barkspider
    """
    if len(as_bytes(data)) < HEADER_SIZE:
        raise StorageError(f"{path} is cut off within its first {HEADER_SIZE} bytes")
    found, number, reserved = _HEADER.unpack_from(as_bytes(data))
    if found != magic:
        raise StorageError(f"{path} is damaged at byte 0, or no {magic.decode('ascii')} file")
    if number > version and not reserved:
        raise StorageError(
            f"{path} has format version {number}, newer than {version}: use a newer barkspider"
        )
    if number == 0 or reserved:
        raise StorageError(f"{path} is damaged at byte 8")
    return int(number)


class BlockHead(NamedTuple):
    """What stands before a block: how to unpack it, and where it belongs.

    `first` is the number of the block's first item since the structure began, so that a block that is
    whole but lies in the wrong place is noticed too.
    """

    codec: int
    stored: int
    raw: int
    items: int
    first: int
    checksum: int


def block_head(codec: int, raw: int, items: int, first: int, *pieces: Data) -> bytes:
    """The head of a block whose stored bytes are the pieces, one after the other."""
    stored = sum(len(as_bytes(piece)) for piece in pieces)
    fields = _FIELDS.pack(_MARK, codec, stored, raw, items, 0, first)
    return fields + _CHECKSUM.pack(_digest(fields, *pieces))


def read_block_head(data: Data, path: Path, offset: int) -> BlockHead:
    """The head that `data` begins with, at `offset` of the file; its checksum is looked at with the block's.

    >>> head = block_head(0, 3, 1, 7, b"abc")
    >>> read_block_head(head, Path("a"), 16).first, len(head) == BLOCK_HEAD_SIZE
    (7, True)
    """
    view = as_bytes(data)
    if len(view) < BLOCK_HEAD_SIZE:
        raise StorageError(f"{path} is cut off at byte {offset}")
    mark, codec, stored, raw, items, reserved, first = _FIELDS.unpack_from(view)
    (digest,) = _CHECKSUM.unpack_from(view, _FIELDS.size)
    if mark != _MARK or reserved or max(stored, raw) > MOST_BYTES:
        raise StorageError(f"{path} is damaged at byte {offset}")
    return BlockHead(codec, stored, raw, items, first, digest)


def check_block(head: Data, stored: Data, path: Path, offset: int) -> None:
    """Compare a block's head and stored bytes with the checksum in the head.

    >>> head = block_head(0, 3, 1, 7, b"abc")
    >>> check_block(head, b"abc", Path("a"), 16)
    >>> check_block(head, b"abd", Path("a"), 16)
    Traceback (most recent call last):
        ...
    barkspider.core.errors.StorageError: a is damaged at byte 16
    """
    view = as_bytes(head)
    if _CHECKSUM.unpack_from(view, _FIELDS.size)[0] != _digest(view[: _FIELDS.size], stored):
        raise StorageError(f"{path} is damaged at byte {offset}")


def _digest(*pieces: Data) -> int:
    state = xxhash.xxh3_64()
    for piece in pieces:
        state.update(as_bytes(piece))
    digest: int = state.intdigest()
    return digest
