"""The system calls behind `Env`, as they are: a test puts others in their place.

They raise `OSError`; `Env` turns that into `StorageError`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

_ALWAYS = os.O_CLOEXEC | os.O_NOFOLLOW  # a link in a folder of somebody else's may lead anywhere
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _ALWAYS
READ = os.O_RDONLY | _ALWAYS
CUT = os.O_WRONLY | _ALWAYS
LOCK = os.O_RDWR | os.O_CREAT | _ALWAYS

_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE: allocate blocks behind the end and leave the end where it is


_NO_FILES = (errno.EMFILE, errno.ENFILE)
_Result = TypeVar("_Result")


class Calls:
    """The system calls that an `Env` makes, as they are. Any thread."""

    # Where no descriptor is left: gives one back, and says whether it did.
    relief: Callable[[], bool] | None = None

    def open(self, path: Path, flags: int) -> int:
        """A descriptor of the file; one that is made is for its owner alone, since it may hold passwords and cookies."""
        return self._relieved(lambda: os.open(path, flags, 0o600))

    def duplicate(self, descriptor: int) -> int:
        """A further descriptor of an open file."""
        return self._relieved(lambda: os.dup(descriptor))

    def close(self, descriptor: int) -> None:
        """Give the descriptor back."""
        os.close(descriptor)

    def write(self, descriptor: int, views: Sequence[bytes | memoryview]) -> int:
        """Append pieces, 1,024 at most; how many bytes were taken, possibly fewer than given."""
        return os.writev(descriptor, views)

    def read(self, descriptor: int, buffer: memoryview, offset: int) -> int:
        """Fill the buffer from `offset`; how many bytes came, 0 at the end of the file."""
        return os.preadv(descriptor, [buffer], offset)

    def map(self, descriptor: int) -> mmap.mmap:
        """The bytes of an open file that is not empty, as memory to read."""
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)

    def size(self, descriptor: int) -> int:
        """The length of an open file."""
        return os.fstat(descriptor).st_size

    def sync(self, descriptor: int) -> None:
        """Make the bytes of a file survive a power loss."""
        os.fsync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut an open file."""
        os.ftruncate(descriptor, size)

    def preallocate(self, descriptor: int, offset: int, size: int) -> None:
        """Reserve disk blocks and leave the length of the file as it is."""
        call = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
        if call is None:
            raise OSError(errno.ENOSYS, "no fallocate here")
        call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        if call(descriptor, _KEEP_SIZE, offset, size):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in place of whatever had it."""
        old.replace(new)

    def link(self, old: Path, new: Path) -> None:
        """Give a file a second name."""
        os.link(old, new)

    def remove(self, path: Path) -> None:
        """Delete a file."""
        path.unlink()

    def remove_folder(self, path: Path) -> None:
        """Delete a folder that is empty."""
        path.rmdir()

    def make_folder(self, path: Path) -> None:
        """Create one folder, for its owner alone."""
        path.mkdir(mode=0o700)

    def is_folder(self, path: Path) -> bool:
        """Whether there is a folder of this name."""
        return path.is_dir()

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder survive a power loss."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        descriptor = self._relieved(lambda: os.open(path, flags))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def list(self, folder: Path) -> list[str]:
        """The names in a folder."""
        return self._relieved(lambda: [entry.name for entry in folder.iterdir()])

    def free_space(self, folder: Path) -> int:
        """Bytes that may still be written."""
        status = os.statvfs(folder)
        return status.f_bavail * status.f_frsize

    def lock(self, descriptor: int) -> None:
        """Take the file for this process alone; BlockingIOError when another has it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _relieved(self, call: Callable[[], _Result]) -> _Result:
        """Make a call that takes a descriptor, again where there was none and somebody gave one back."""
        while True:
            try:
                return call()
            except OSError as error:
                if error.errno not in _NO_FILES or self.relief is None or not self.relief():
                    raise


class FolderLock:
    """Keeps a second process out of a folder until `release` or the end of this process."""

    def __init__(self, descriptor: int, calls: Calls) -> None:
        self._descriptor = descriptor
        self._calls = calls

    def release(self) -> None:
        """Let others in; a second call does nothing."""
        if self._descriptor >= 0:
            self._calls.close(self._descriptor)
            self._descriptor = -1
