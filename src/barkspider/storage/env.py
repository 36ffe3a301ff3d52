"""The one door to the file system.

Everything that barkspider keeps on disk goes through an `Env`, so that a test can put one in its place
that fails, tears and forgets.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from barkspider.core.errors import StorageError


class AppendFile:
    """A file that only grows. One thread writes it; `size` counts what was written, synced or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = path.open("ab", buffering=1 << 20)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error
        self.size = self._file.tell()

    def write(self, data: bytes) -> None:
        """Append; the data may stay in a buffer until `flush` or `sync`."""
        try:
            self._file.write(data)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}") from error
        self.size += len(data)

    def flush(self) -> None:
        """Hand everything to the operating system, so that another reader sees it."""
        try:
            self._file.flush()
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}") from error

    def sync(self) -> None:
        """Make everything written so far survive a power loss."""
        self.flush()
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StorageError(f"cannot sync {self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Flush and close."""
        try:
            self._file.close()
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}") from error


class FolderLock:
    """Keeps a second process out of a folder until `release` or the end of this process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others in; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Env:
    """The real file system."""

    def append(self, path: Path) -> AppendFile:
        """Open a file for appending; it is created when missing."""
        return AppendFile(path)

    def read(self, path: Path, offset: int = 0, length: int = -1) -> bytes:
        """The bytes of a file from `offset`, all of them or up to `length`."""
        try:
            with path.open("rb") as file:
                file.seek(offset)
                return file.read(length)
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error

    def write_whole(self, path: Path, data: bytes) -> None:
        """Replace a file in one step: after a crash it holds the old bytes or the new, never a mixture."""
        temporary = path.with_name(path.name + ".new")
        self.remove(temporary)
        file = self.append(temporary)
        file.write(data)
        file.sync()
        file.close()
        self.rename(temporary, path)

    def rename(self, old: Path, new: Path) -> None:
        """Rename within a folder and make the new name survive a power loss."""
        try:
            old.replace(new)
            folder = os.open(new.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise StorageError(f"cannot rename {old} to {new.name}: {error.strerror}") from error

    def remove(self, path: Path) -> None:
        """Delete a file; one that is not there is fine."""
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot remove {path}: {error.strerror}") from error

    def make_folder(self, path: Path) -> None:
        """Create a folder and those above it; one that exists is fine."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot create {path}: {error.strerror}") from error

    def list(self, folder: Path) -> list[str]:
        """Names in a folder, sorted; none when the folder is missing."""
        try:
            return sorted(entry.name for entry in folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"cannot list {folder}: {error.strerror}") from error

    def lock(self, path: Path) -> FolderLock | None:
        """Take the lock file at `path`, or None when another process holds it."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"cannot open {path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return FolderLock(descriptor)
