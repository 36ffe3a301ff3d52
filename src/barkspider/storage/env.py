"""The one door to the file system.

Everything that barkspider keeps on disk goes through an `Env`, which gathers small writes, goes on after
short ones and turns every refusal into a `StorageError` that names the file. Below it lie the system
calls: a test puts others in their place that fail, tear and forget. No link is followed to a file, and what is
made is for its owner alone.

What survives a power loss is what was synced: the bytes of a file by `AppendFile.sync`, its name by
`sync_folder`. `write_whole`, `rename` and `make_folder` see to that themselves.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from barkspider.core.errors import StorageError
from barkspider.storage.calls import APPEND, CUT, LOCK, READ, Calls, FolderLock
from barkspider.storage.raw import Data, as_bytes

_GATHER = 1 << 18  # writes are gathered up to this size; one a quarter as long or longer goes out by itself
_PIECES = 1024  # that the system takes in one call

_CALLS = Calls()


class AppendFile:
    """A file that only grows. One thread writes it.

    `size` counts what was written, synced or not. A write that fails, for want of space or otherwise, is
    undone: the file holds what it held before the call, and the call may be made again. After a failed
    `sync` nobody knows what the disk holds, so from then on every call fails (a second fsync would report
    success for data that the system has dropped).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Env().append(Path(folder) / "a") as file:
    ...     file.write(b"abc")
    ...     file.write(memoryview(b"defghijk"))
    ...     file.preallocate(1 << 20)
    ...     file.sync()
    ...     file.size, file.path.stat().st_size
    (11, 11)
    """

    def __init__(self, path: Path, calls: Calls = _CALLS) -> None:
        self.path = path
        self._calls = calls
        # In pieces, at most as many as the system takes at once: to join them as they come would copy each many times.
        self._gathered: list[bytes | memoryview] = []
        self._waiting = 0  # bytes of these
        self._failure = ""  # why the file can no longer be trusted
        try:
            self._descriptor = calls.open(path, APPEND)
            self.size = calls.size(self._descriptor)
        except OSError as error:
            raise _refused("write", path, error) from error

    def write(self, *pieces: Data) -> None:
        """Append contiguous buffers, all of them or none; short ones may wait for `flush` or `sync`.

        What waits is copied, unless it is bytes, or a view of some: these never change.
        """
        views = [piece if isinstance(piece, bytes) else as_bytes(piece) for piece in pieces]
        size = sum(map(len, views))
        if self._waiting + size > _GATHER or size * 4 >= _GATHER:
            self.flush()
        self._check()
        if size * 4 >= _GATHER:
            self._put(views, self.size)
        else:
            for view in views:
                constant = isinstance(view, bytes) or isinstance(view.obj, bytes)
                self._gathered.append(view if constant else bytes(view))
            self._waiting += size
            if len(self._gathered) > _PIECES:
                self._gathered = [b"".join(self._gathered)]
        self.size += size

    def flush(self) -> None:
        """Hand everything to the operating system, so that another reader sees it."""
        self._check()
        if not self._waiting:
            return
        self._put(self._gathered, self.size - self._waiting)
        self._gathered, self._waiting = [], 0

    def cut(self, size: int) -> None:
        """Take back what was written behind `size`."""
        self._check()
        kept = size - (self.size - self._waiting)
        if kept < 0:
            self._cut(size)
        self._waiting = max(kept, 0)
        self._gathered, self.size = [b"".join(self._gathered)[: self._waiting]], size

    def sync(self) -> None:
        """Make everything written so far survive a power loss."""
        self.flush()
        self._sync(self._descriptor)

    def syncing(self) -> Callable[[], None]:
        """What makes everything written so far survive a power loss, when it is called: once, in any thread, whatever
        is written meanwhile, and though the file may be closed or have another name by then."""
        self.flush()
        try:
            second = _Second(self._calls, self._calls.duplicate(self._descriptor))
        except OSError as error:
            raise _refused("sync", self.path, error) from error
        return lambda: self._sync(second.descriptor)

    def preallocate(self, size: int) -> None:
        """Ask for disk blocks for `size` more bytes, so that they lie together; a refusal is no error."""
        try:
            self._calls.preallocate(self._descriptor, self.size, size)
        except OSError:
            return

    def discard(self) -> None:
        """Close, and let go of what has not been handed to the operating system."""
        self._gathered, self._waiting = [], 0
        self.close()

    def close(self) -> None:
        """Flush and close; a second call does nothing."""
        if self._descriptor < 0:
            return
        try:
            if not self._failure:
                self.flush()
        finally:
            descriptor, self._descriptor, self._failure = self._descriptor, -1, f"{self.path} is closed"
            _close(self._calls, descriptor, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> None:
        if self._failure:
            raise StorageError(self._failure)

    def _sync(self, descriptor: int) -> None:
        try:
            self._calls.sync(descriptor)
        except OSError as error:
            problem = _refused("sync", self.path, error)
            self._failure = str(problem)
            raise problem from error

    def _put(self, views: Sequence[bytes | memoryview], end: int) -> None:
        """Write all of the views behind `end`, the end of the file, or nothing."""
        rest, changed = [view for view in views if len(view)], False
        try:
            while rest:
                done = self._calls.write(self._descriptor, rest[:_PIECES])
                changed = True
                while rest and done >= len(rest[0]):
                    done -= len(rest.pop(0))
                if done:
                    rest[0] = rest[0][done:]
        except OSError as error:
            problem = _refused("write", self.path, error)
            if changed:
                self._cut(end)
            raise problem from error

    def _cut(self, size: int) -> None:
        try:
            self._calls.truncate(self._descriptor, size)
        except OSError as error:
            problem = _refused("cut", self.path, error)
            self._failure = str(problem)
            raise problem from error


class _Second:
    """A further descriptor of a file, given back when nobody holds this any more."""

    def __init__(self, calls: Calls, descriptor: int) -> None:
        self._calls, self.descriptor = calls, descriptor

    def __del__(self) -> None:
        self._calls.close(self.descriptor)


class ReadFile:
    """A file to read from, anywhere. Any number of threads at a time; the file may be growing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Env().write_whole(Path(folder) / "a", b"0123456789")
    ...     with Env().open(Path(folder) / "a") as file:
    ...         file.pread(7, 100), file.size
    (b'789', 10)
    """

    def __init__(self, path: Path, calls: Calls = _CALLS) -> None:
        self.path = path
        self._calls = calls
        try:
            self._descriptor = calls.open(path, READ)
        except OSError as error:
            raise _refused("read", path, error) from error

    @property
    def size(self) -> int:
        """The length at this moment."""
        try:
            return self._calls.size(self._descriptor)
        except OSError as error:
            raise _refused("read", self.path, error) from error

    def pread(self, offset: int, length: int) -> bytes:
        """The bytes from `offset`; fewer than `length` only where the file ends."""
        buffer = bytearray(max(0, min(length, self.size - offset)))
        return bytes(memoryview(buffer)[: self.pread_into(offset, buffer)])

    def pread_into(self, offset: int, buffer: Data) -> int:
        """Fill the buffer from `offset`; how many bytes came, fewer only where the file ends."""
        view = as_bytes(buffer)
        done = 0
        try:
            while done < len(view):
                count = self._calls.read(self._descriptor, view[done:], offset + done)
                if count == 0:
                    break
                done += count
        except OSError as error:
            raise _refused("read", self.path, error) from error
        return done

    def map(self) -> memoryview:
        """The whole file as memory, read when it is touched; it outlives `close`. The file must not shrink.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Env().write_whole(Path(folder) / "a", b"0123456789")
        ...     with Env().open(Path(folder) / "a") as file:
        ...         bytes(file.map()[7:])
        b'789'
        """
        if self.size == 0:
            return memoryview(b"")
        try:
            return memoryview(self._calls.map(self._descriptor))
        except OSError as error:
            raise _refused("map", self.path, error) from error

    def close(self) -> None:
        """Close; a second call does nothing."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            _close(self._calls, descriptor, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Env:
    """A file system: the real one, unless other calls are given. Any thread; it keeps no state but `relieve`."""

    def __init__(self, calls: Calls = _CALLS) -> None:
        self._calls = calls

    def relieve(self, relief: Callable[[], bool] | None) -> None:
        """Have this called, in any thread, where the process has no descriptor left for a file: it says whether it has
        given one back. None takes it away."""
        self._calls.relief = relief

    def append(self, path: Path) -> AppendFile:
        """Open a file for appending; it is created when missing (see `sync_folder`)."""
        return AppendFile(path, self._calls)

    def open(self, path: Path) -> ReadFile:
        """Open a file for reading."""
        return ReadFile(path, self._calls)

    def read(self, path: Path, offset: int = 0, length: int = -1) -> bytes:
        """The bytes of a file from `offset`, all of them or up to `length`."""
        with self.open(path) as file:
            return file.pread(offset, file.size if length < 0 else length)

    def write_whole(self, path: Path, data: Data) -> None:
        """Replace a file in one step: after a crash it holds the old bytes or the new, never a mixture."""
        temporary = path.with_name(path.name + ".new")
        self.remove(temporary)
        with self.append(temporary) as file:
            file.write(data)
            file.sync()
        self.rename(temporary, path)

    def rename(self, old: Path, new: Path) -> None:
        """Rename within a folder and make the new name survive a power loss."""
        try:
            self._calls.rename(old, new)
        except OSError as error:
            raise StorageError(f"cannot rename {old} to {new.name}: {error.strerror}") from error
        self.sync_folder(new.parent)

    def link(self, old: Path, new: Path) -> None:
        """Give a file a second name, on the same disk."""
        try:
            self._calls.link(old, new)
        except OSError as error:
            raise StorageError(f"cannot link {old} as {new}: {error.strerror}") from error

    def sync_folder(self, folder: Path) -> None:
        """Make files created, renamed and removed in the folder so far survive a power loss as that."""
        try:
            self._calls.sync_folder(folder)
        except OSError as error:
            raise _refused("sync", folder, error) from error

    def sync(self, path: Path) -> None:
        """Make what was handed to the system of a file survive a power loss; one that is gone meanwhile is fine."""
        try:
            descriptor = self._calls.open(path, READ)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _refused("open", path, error) from error
        try:
            self._calls.sync(descriptor)
        except OSError as error:
            raise _refused("sync", path, error) from error
        finally:
            self._calls.close(descriptor)

    def remove(self, path: Path) -> None:
        """Delete a file; one that is not there is fine."""
        try:
            self._calls.remove(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _refused("remove", path, error) from error

    def remove_tree(self, path: Path) -> None:
        """Delete a file, or a folder with all that is in it; what is not there is fine."""
        try:
            if not self._calls.is_folder(path):
                self.remove(path)
                return
            for name in self._calls.list(path):
                self.remove_tree(path / name)
            self._calls.remove_folder(path)
        except OSError as error:
            raise _refused("remove", path, error) from error

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file to `size` bytes; what is longer than it was before is refused."""
        try:
            descriptor = self._calls.open(path, CUT)
            try:
                length = self._calls.size(descriptor)
                if length >= size:
                    self._calls.truncate(descriptor, size)
            finally:
                self._calls.close(descriptor)
        except OSError as error:
            raise _refused("cut", path, error) from error
        if length < size:
            raise StorageError(f"{path} is cut off: it has {length} bytes and should have {size}")

    def size(self, path: Path) -> int:
        """The length of a file."""
        with self.open(path) as file:
            return file.size

    def make_folder(self, path: Path, durable: bool = True) -> None:
        """Create a folder and those above it, for good; one that exists is fine.

        Unless it is to be `durable`, the folder itself, not those above it, may be gone after a power loss until the
        one above is synced: that takes a busy disk a third of a second.
        """
        try:
            missing = []
            while not self._calls.is_folder(path):
                missing.append(path)
                if path == path.parent:
                    break
                path = path.parent
            for folder in reversed(missing):
                self._make_one(folder, durable or folder != missing[0])
        except OSError as error:
            raise _refused("create", missing[0] if missing else path, error) from error

    def _make_one(self, folder: Path, durable: bool) -> None:
        try:
            self._calls.make_folder(folder)
        except FileExistsError:
            if not self._calls.is_folder(folder):  # another process may have been faster
                raise
        if durable:
            self._calls.sync_folder(folder.parent)

    def list(self, folder: Path) -> list[str]:
        """Names in a folder, sorted; none when the folder is missing."""
        try:
            return sorted(self._calls.list(folder))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _refused("list", folder, error) from error

    def free_space(self, folder: Path) -> int:
        """Bytes that this process may still write there."""
        try:
            return self._calls.free_space(folder)
        except OSError as error:
            raise _refused("examine", folder, error) from error

    def lock(self, path: Path, *, make: bool = True) -> FolderLock | None:
        """Take the lock file at `path`, or None when another process holds it; unless `make`, without writing."""
        try:
            descriptor = self._calls.open(path, LOCK if make else READ)
        except OSError as error:
            raise _refused("open", path, error) from error
        try:
            self._calls.lock(descriptor)
        except OSError as error:
            self._calls.close(descriptor)
            if isinstance(error, BlockingIOError):
                return None
            raise _refused("lock", path, error) from error
        return FolderLock(descriptor, self._calls)


def _refused(action: str, path: Path, error: OSError) -> StorageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"disk full: cannot {action} {path}; make room and try again")
    if error.errno == errno.ELOOP:
        return StorageError(f"cannot {action} {path}: it is a link, and none is followed")
    return StorageError(f"cannot {action} {path}: {error.strerror}")


def _close(calls: Calls, descriptor: int, path: Path) -> None:
    try:
        calls.close(descriptor)
    except OSError as error:
        raise _refused("close", path, error) from error
