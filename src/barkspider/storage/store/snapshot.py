"""Everything that a part of the crawl holds in RAM, as one checksummed file: see docs/formats/snapshot.md.

A snapshot is a small JSON head and named arrays of bytes. It is written whole and never changed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xxhash

from barkspider.core.errors import StorageError
from barkspider.storage.env import Env
from barkspider.storage.format import HEADER_SIZE, check_header, header
from barkspider.storage.raw import Data, as_bytes

MAGIC, VERSION = b"BARKsnap", 1
SUFFIX = ".snapshot"
_LENGTH = struct.Struct("<Q")  # of the head
_CHECKSUM = struct.Struct("<Q")  # of that length and all behind this
_START = HEADER_SIZE + _LENGTH.size + _CHECKSUM.size


class Snapshot:
    """A `Structure` of one file: its owner puts in what it holds, and gets it back after a crash.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> kept = Snapshot(Env(), Path(folder.name), "memory")
    >>> state = kept.write({"pages": 7}, {"keys": b"12345678"}); kept.committed()
    >>> Snapshot(Env(), Path(folder.name), "memory", state).read()
    ({'pages': 7}, {'keys': b'12345678'})
    >>> folder.cleanup()
    """

    def __init__(self, env: Env, folder: Path, name: str, state: dict[str, Any] | None = None) -> None:
        self._env, self._folder, self.name = env, folder, name
        self._number = int(state["number"]) if state else 0
        env.make_folder(folder / name)

    def write(self, head: Mapping[str, Any], arrays: Mapping[str, Data]) -> dict[str, Any]:
        """Write a new file, durably; the state of a `Structure`. Any thread, one at a time."""
        self._number += 1
        path = self._path(self._number)
        size = write_snapshot(self._env, path, head, arrays)
        return {"number": self._number, "files": {f"{self.name}/{path.name}": size}}

    def committed(self) -> None:
        """The file that was written last is the one that counts."""
        for name in self._env.list(self._folder / self.name):
            if name != self._path(self._number).name:
                self._env.remove(self._folder / self.name / name)

    def read(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """What was written; StorageError when it is damaged."""
        return read_snapshot(self._env, self._path(self._number))

    def _path(self, number: int) -> Path:
        return self._folder / self.name / f"{number:08d}{SUFFIX}"


def write_snapshot(
    env: Env, path: Path, head: Mapping[str, Any], arrays: Mapping[str, Data], *, sync: bool = True
) -> int:
    """Write a file with this head and these arrays in the place of any that is there, durably if it is to; its length."""
    pieces = {name: as_bytes(data) for name, data in arrays.items()}
    index = {"head": head, "arrays": {name: len(piece) for name, piece in pieces.items()}}
    text = json.dumps(index).encode()
    length = _LENGTH.pack(len(text))
    digest = xxhash.xxh3_64(length + text)
    for piece in pieces.values():
        digest.update(piece)
    env.remove(path)
    with env.append(path) as file:
        begin = header(MAGIC, VERSION) + length + _CHECKSUM.pack(digest.intdigest())
        file.write(begin, text, *pieces.values())
        if sync:
            file.sync()
        return file.size


def read_snapshot(env: Env, path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The head and the arrays of a file."""
    data = env.read(path)
    check_header(data[:HEADER_SIZE], MAGIC, VERSION, path)
    if len(data) < _START:
        raise StorageError(f"{path} is cut off at byte {len(data)}")
    found = xxhash.xxh3_64(data[HEADER_SIZE : HEADER_SIZE + _LENGTH.size])
    found.update(memoryview(data)[_START:])
    if _CHECKSUM.unpack_from(data, HEADER_SIZE + _LENGTH.size)[0] != found.intdigest():
        raise StorageError(f"{path} is damaged")
    place = _START + _LENGTH.unpack_from(data, HEADER_SIZE)[0]
    try:
        index, arrays = json.loads(data[_START:place]), {}
        for name, size in index["arrays"].items():
            arrays[name] = data[place : place + size]
            place += size
        head: dict[str, Any] = index["head"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise StorageError(f"{path} is damaged: {error!r}") from error
    return head, arrays
