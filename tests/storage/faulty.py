"""A file system in RAM that records, fails, and loses power.

`FaultyEnv` is an `Env` whose system calls work on a `Disk` in RAM. A `Disk` knows for every file and every
folder what was synced and what came after, and `Disk.after_power_loss` makes a disk as a machine might
find it when the power is back: of what was not synced, all is gone, all is there, or any part of it, with
writes torn at any byte and later ones there without the earlier. It is stricter than most file systems:
a synced file whose folder was not synced may be gone, as POSIX allows.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from barkspider.storage.calls import Calls
from barkspider.storage.env import Env

# Operations that change the disk or what of it is safe; the others only read.
CHANGES = frozenset(
    ("create", "write", "cut", "sync", "forget", "rename", "link", "remove", "make_folder", "sync_folder")
)
_TAKE_SPACE = frozenset(("create", "write", "sync", "rename", "link", "make_folder", "sync_folder"))


class Operation(NamedTuple):
    """One system call: `file` is the number of the file it went to, where it goes to an open one."""

    kind: str
    path: Path
    file: int = -1
    data: bytes = b""
    size: int = 0
    target: Path | None = None


@dataclass(slots=True)
class _File:
    data: bytearray = field(default_factory=bytearray)  # as the running system sees it
    safe: bytes = b""  # as of the last sync
    unsafe: list[tuple[int, bytes | None]] = field(
        default_factory=list
    )  # (offset, data), or (size, None): cut


@dataclass(slots=True)
class _Folder:
    names: dict[str, int] = field(default_factory=dict)  # 0 stands for a folder
    safe: dict[str, int] = field(default_factory=dict)
    unsafe: list[tuple[str, str, int]] = field(
        default_factory=list
    )  # (name that goes, name that comes, file)


class Disk:
    """What is on a disk and what of it is safe. `apply` is the only way to change it."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._folders: dict[Path, _Folder] = {Path("/"): _Folder()}

    def copy(self) -> Disk:
        """A disk of its own with the same content, all of it safe."""
        return self.after_power_loss("keep", Random(0))

    def apply(self, operation: Operation) -> None:
        """Do what the call did; calls that only read do nothing."""
        kind, path = operation.kind, operation.path
        if kind == "create":
            self._files[operation.file] = _File()
            self._name(path, "", path.name, operation.file)
        elif kind == "write":
            file = self._files[operation.file]
            file.unsafe.append((len(file.data), operation.data))
            file.data += operation.data
        elif kind == "cut":
            file = self._files[operation.file]
            file.unsafe.append((operation.size, None))
            del file.data[operation.size :]
        elif kind == "sync":
            file = self._files[operation.file]
            file.safe, file.unsafe = _applied(file), []
        elif kind == "forget":  # a sync failed: what was not safe never will be, though it can still be read
            self._files[operation.file].unsafe.clear()
        elif kind == "rename":
            assert operation.target is not None
            self._name(path, path.name, operation.target.name, self._folders[path.parent].names[path.name])
        elif kind == "link":
            assert operation.target is not None
            self._name(operation.target, "", operation.target.name, operation.file)
        elif kind == "remove":
            self._name(path, path.name, "", -1)
        elif kind == "make_folder":
            self._folders[path] = _Folder()
            self._name(path, "", path.name, 0)
        elif kind == "sync_folder":
            folder = self._folders[path]
            folder.safe, folder.unsafe = dict(folder.names), []

    def find(self, path: Path) -> int:
        """The number of a file, 0 for a folder; -1 when there is nothing of this name."""
        if path in self._folders:
            return 0
        folder = self._folders.get(path.parent)
        return folder.names.get(path.name, -1) if folder else -1

    def names(self, folder: Path) -> list[str]:
        """The names in a folder."""
        return list(self._folders[folder].names)

    def is_folder(self, path: Path) -> bool:
        """Whether there is a folder of this name."""
        return path in self._folders

    def data(self, file: int) -> bytearray:
        """The bytes of a file by its number; a test may damage them."""
        return self._files[file].data

    def paths(self) -> dict[Path, int]:
        """Every file by its path."""
        found = [
            (folder / name, file)
            for folder, entry in self._folders.items()
            for name, file in entry.names.items()
        ]
        return {path: file for path, file in found if file > 0}

    def used(self) -> int:
        """Bytes in all files that have a name."""
        return sum(len(self._files[file].data) for file in self.paths().values())

    def next_number(self) -> int:
        """A number that no file has had."""
        return max(self._files, default=0) + 1

    def after_power_loss(self, how: str, random: Random, of: Sequence[Path] = (Path("/"),)) -> Disk:
        """The disk as it may be found: `how` is "drop", "keep" (all that was not synced) or "random".

        `of` are the folders that lose it; what has a name in any other is kept as it was.
        """
        found = Disk()
        found._folders = {}

        def is_lost(path: Path) -> bool:
            return any(path.is_relative_to(folder) for folder in of)

        for path, folder in self._folders.items():
            if not is_lost(path):
                names = dict(folder.names)
            elif how == "random":
                names, odds = dict(folder.safe), random.choice((0.2, 0.5, 0.8))
                for going, coming, file in folder.unsafe:
                    if random.random() < odds:
                        names.pop(going, None)
                        if coming:
                            names[coming] = file
            else:
                names = dict(folder.names if how == "keep" else folder.safe)
            found._folders[path] = _Folder(names, dict(names))
        for path in list(found._folders):
            if not all(_holds(found._folders, parent) for parent in (path, *path.parents)):
                del found._folders[path]
        kept = {file for path, file in self.paths().items() if not is_lost(path)}
        for file in sorted(set(found.paths().values())):
            data = self._found(self._files[file], "keep" if file in kept else how, random)
            found._files[file] = _File(bytearray(data), data)
        return found

    @staticmethod
    def _found(file: _File, how: str, random: Random) -> bytes:
        if how == "keep":
            return bytes(file.data)
        data, odds = bytearray(file.safe), random.choice((0.2, 0.5, 0.8))
        for offset, written in file.unsafe if how == "random" else ():
            if random.random() > odds:
                continue
            if written is None:
                del data[offset:]
                continue
            begin, end = 0, len(written)
            if random.random() < 0.5:  # torn
                begin, end = sorted((random.randint(0, end), random.randint(0, end)))
                if random.random() < 0.5:
                    begin = 0
            if len(data) < offset + end:
                gap = offset + end - len(data)
                data += bytes(gap) if random.random() < 0.5 else random.randbytes(gap)
            data[offset + begin : offset + end] = written[begin:end]
        return bytes(data)

    def _name(self, path: Path, going: str, coming: str, file: int) -> None:
        folder = self._folders[path.parent]
        if going:
            del folder.names[going]
        if coming:
            folder.names[coming] = file
        folder.unsafe.append((going, coming, file))


def _applied(file: _File) -> bytes:
    """What is safe once all that is not has been written; not `data` when an earlier sync failed."""
    data = bytearray(file.safe)
    for offset, written in file.unsafe:
        if written is None:
            del data[offset:]
        else:
            data += bytes(max(0, offset - len(data)))
            data[offset : offset + len(written)] = written
    return bytes(data)


def _holds(folders: dict[Path, _Folder], path: Path) -> bool:
    return path == path.parent or (path.parent in folders and folders[path.parent].names.get(path.name) == 0)


class FaultyCalls(Calls):
    """System calls on a `Disk`; see `FaultyEnv`. Any thread."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.operations: list[Operation] = []
        self.faults: dict[int, str] = {}
        self.kinds: dict[str, str] = {}
        self.room: int | None = None
        self._lock = threading.RLock()
        self._open: dict[int, tuple[int, Path]] = {}
        self._next_descriptor = 3
        self._next_file = disk.next_number()
        self._locked: set[int] = set()

    def open(self, path: Path, flags: int) -> int:
        with self._lock:
            file = self.disk.find(path)
            if file == 0:
                raise OSError(errno.EISDIR, "Is a directory")
            if file < 0 and (not flags & os.O_CREAT or not self.disk.is_folder(path.parent)):
                raise FileNotFoundError(errno.ENOENT, "No such file or directory")
            if file < 0:
                file = self._next_file
                self._do(Operation("create", path, file))
                self._next_file += 1
            else:
                self._do(Operation("open", path, file))
            self._next_descriptor += 1
            self._open[self._next_descriptor] = (file, path)
            return self._next_descriptor

    def duplicate(self, descriptor: int) -> int:
        with self._lock:
            self._next_descriptor += 1
            self._open[self._next_descriptor] = self._open[descriptor]
            return self._next_descriptor

    def close(self, descriptor: int) -> None:
        with self._lock:
            self._locked.discard(self._open.pop(descriptor)[0])

    def write(self, descriptor: int, views: Sequence[bytes | memoryview]) -> int:
        with self._lock:
            file, path = self._open[descriptor]
            data = b"".join(views)
            size = len(data)
            if self.room is not None:
                size = min(size, max(0, self.room - self.disk.used()))
                if len(data) and not size:
                    raise OSError(errno.ENOSPC, "No space left on device")
            if self.faults.get(len(self.operations)) == "short":
                size = (size + 1) // 2
            self._do(Operation("write", path, file, data[:size]))
            return size

    def read(self, descriptor: int, buffer: memoryview, offset: int) -> int:
        with self._lock:
            file, path = self._open[descriptor]
            size = len(buffer)
            if self.faults.get(len(self.operations)) == "short":
                size = (size + 1) // 2
            self._do(Operation("read", path, file, size=size))
            data = self.disk.data(file)[offset : offset + size]
            buffer[: len(data)] = data
            return len(data)

    def map(self, descriptor: int) -> bytes:  # type: ignore[override]
        with self._lock:
            file, path = self._open[descriptor]
            self._do(Operation("read", path, file))
            return bytes(self.disk.data(file))

    def size(self, descriptor: int) -> int:
        with self._lock:
            file, path = self._open[descriptor]
            self._do(Operation("size", path, file))
            return len(self.disk.data(file))

    def sync(self, descriptor: int) -> None:
        with self._lock:
            file, path = self._open[descriptor]
            self._do(Operation("sync", path, file))

    def truncate(self, descriptor: int, size: int) -> None:
        with self._lock:
            file, path = self._open[descriptor]
            self._do(Operation("cut", path, file, size=size))

    def preallocate(self, descriptor: int, offset: int, size: int) -> None:
        with self._lock:
            file, path = self._open[descriptor]
            self._do(Operation("preallocate", path, file, size=size))

    def rename(self, old: Path, new: Path) -> None:
        with self._lock:
            if self.disk.find(old) < 0 or not self.disk.is_folder(new.parent):
                raise FileNotFoundError(errno.ENOENT, "No such file or directory")
            assert old.parent == new.parent, "renaming is within a folder"
            self._do(Operation("rename", old, target=new))

    def link(self, old: Path, new: Path) -> None:
        with self._lock:
            file = self.disk.find(old)
            if file <= 0 or not self.disk.is_folder(new.parent):
                raise FileNotFoundError(errno.ENOENT, "No such file or directory")
            if self.disk.find(new) >= 0:
                raise FileExistsError(errno.EEXIST, "File exists")
            self._do(Operation("link", old, file, target=new))

    def remove(self, path: Path) -> None:
        with self._lock:
            if self.disk.find(path) < 0:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory")
            self._do(Operation("remove", path))

    def make_folder(self, path: Path) -> None:
        with self._lock:
            if self.disk.find(path) >= 0:
                raise FileExistsError(errno.EEXIST, "File exists")
            self._do(Operation("make_folder", path))

    def is_folder(self, path: Path) -> bool:
        with self._lock:
            return self.disk.is_folder(path)

    def sync_folder(self, path: Path) -> None:
        with self._lock:
            self._do(Operation("sync_folder", path))

    def list(self, folder: Path) -> list[str]:
        with self._lock:
            if not self.disk.is_folder(folder):
                raise FileNotFoundError(errno.ENOENT, "No such file or directory")
            self._do(Operation("list", folder))
            return self.disk.names(folder)

    def free_space(self, folder: Path) -> int:
        with self._lock:
            return 1 << 50 if self.room is None else max(0, self.room - self.disk.used())

    def lock(self, descriptor: int) -> None:
        with self._lock:
            file = self._open[descriptor][0]
            if file in self._locked:
                raise BlockingIOError(errno.EWOULDBLOCK, "Resource temporarily unavailable")
            self._locked.add(file)

    def _do(self, operation: Operation) -> None:
        """Record a call and carry it out, unless it is to fail."""
        fault = self.kinds.get(operation.kind) or self.faults.get(len(self.operations))
        if fault == "EIO" or (fault == "ENOSPC" and operation.kind in _TAKE_SPACE):
            failed = operation._replace(kind="forget" if operation.kind == "sync" else "failed")
            self.disk.apply(failed)
            self.operations.append(failed)
            raise OSError(getattr(errno, fault), os.strerror(getattr(errno, fault)))
        self.disk.apply(operation)
        self.operations.append(operation)


class FaultyEnv(Env):
    """An `Env` on a disk in RAM.

    `faults` maps the number of an operation to "EIO", "ENOSPC" or "short" (half of the bytes are taken),
    and `kinds` a kind of operation; `room` limits the bytes on the disk. `crashes` goes through every moment at which the power could have
    failed so far.
    """

    def __init__(self, disk: Disk | None = None) -> None:
        self.disk = disk or Disk()
        self.faulty = FaultyCalls(self.disk)
        self._begin = self.disk.copy()
        super().__init__(self.faulty)

    @property
    def operations(self) -> list[Operation]:
        """Every call so far, in order."""
        return self.faulty.operations

    @property
    def faults(self) -> dict[int, str]:
        """What is to fail, by the number of the operation."""
        return self.faulty.faults

    @property
    def kinds(self) -> dict[str, str]:
        """What is to fail, by the kind of operation."""
        return self.faulty.kinds

    @property
    def room(self) -> int | None:
        """How many bytes the disk holds; None: any number."""
        return self.faulty.room

    @room.setter
    def room(self, size: int | None) -> None:
        self.faulty.room = size

    def crash(self, how: str, random: Random) -> FaultyEnv:
        """The power fails now; the machine starts again."""
        return FaultyEnv(self.disk.after_power_loss(how, random))

    def crashes(self) -> Iterator[tuple[int, Disk]]:
        """The disk before the first operation and after each that changed it, with how many were done.

        What is given is the running system's view: take `after_power_loss` of it, and do not change it.
        """
        disk = self._begin.copy()
        yield 0, disk
        for number, operation in enumerate(self.operations, 1):
            if operation.kind in CHANGES:
                disk.apply(operation)
                yield number, disk
