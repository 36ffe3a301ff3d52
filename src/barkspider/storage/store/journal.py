"""What happened since the last checkpoint, record by record, in one sequence; see docs/formats/journal.md.

A checkpoint names the last record that it knows of, and the files up to there are removed. After a crash the
records behind it are read again. What was handed to the operating system by `flush` survives the end of the
process, what was synced also that of the machine.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import xxhash

from barkspider.core.errors import StorageError
from barkspider.storage.env import AppendFile, Env
from barkspider.storage.format import HEADER_SIZE, check_header, write_header

MAGIC, VERSION = b"BARKjrnl", 1
_SUFFIX = ".journal"
_EARLY = ".early"  # before it: of a file that was begun before the one before it was safe
_FIELDS = struct.Struct("<IQ")  # length of the record, its number
_CHECKSUM = struct.Struct("<Q")
RECORD_HEAD = _FIELDS.size + _CHECKSUM.size  # bytes before each record
_PORTION = 1 << 24  # bytes read at a time


class Journal:
    """Records numbered from 1. One thread owns it: it reads `tail` to the end, then appends.

    Invariant: the files hold, in order of their names, all records behind `applied` without a gap. Only the last file may
    lack its end, or the one before an early one: the early one and all behind it do not count then.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> journal = Journal(Env(), Path(folder.name), 0)
    >>> list(journal.tail()), journal.append(b"first"), journal.append(b"second"), journal.close()
    ([], 1, 2, None)
    >>> again = Journal(Env(), Path(folder.name), 1)
    >>> list(again.tail()), again.last, again.close()
    ([(2, b'second')], 2, None)
    >>> folder.cleanup()
    """

    def __init__(self, env: Env, folder: Path, applied: int) -> None:
        """`applied` is the last record that a checkpoint knows of."""
        self.last = applied
        self._env, self._folder = env, folder
        self._file: AppendFile | None = None
        self._early = ""  # what says that the file before the next one may not be safe yet
        self._place = folder, 0  # of the record that was read last
        env.make_folder(folder)

    def tail(self) -> Iterator[tuple[int, bytes]]:
        """The records behind `applied` with their numbers. A torn end, as a crash leaves it, is cut off."""
        files = self._files()
        for place, path in enumerate(files):
            if not counts(path, self.last):
                for later in files[place:]:
                    self._env.remove(later)
                self._env.sync_folder(self._folder)
                return
            end = 0
            for number, record, at in read_records(self._env, path):
                end = at + RECORD_HEAD + len(record)
                if number > self.last:
                    if number != self.last + 1:
                        raise StorageError(f"{path} is damaged: record {self.last + 1} is missing")
                    self.last, self._place = number, (path, at)
                    yield number, record
            if end < self._env.size(path):
                if not may_be_torn(files, place):
                    raise StorageError(f"{path} is damaged at byte {end}")
                self._env.truncate(path, end)

    def cut(self) -> None:
        """Take back the record that `tail` gave last, and all behind it."""
        path, place = self._place
        self._env.truncate(path, place)
        for later in self._files():
            if later > path:
                self._env.remove(later)
        self.last -= 1

    def append(self, record: bytes) -> int:
        """Add a record and return its number; it may wait in memory for `flush`."""
        if self._file is None:
            path = self._folder / f"{self.last + 1:016d}{self._early}{_SUFFIX}"
            self._env.remove(path)
            if not self._early:
                self._sync_files()
            self._file = self._env.append(path)
            write_header(self._file, MAGIC, VERSION)
        fields = _FIELDS.pack(len(record), self.last + 1)
        self._file.write(fields + _CHECKSUM.pack(_digest(fields, record)), record)
        self.last += 1
        return self.last

    def flush(self) -> None:
        """Hand all records to the operating system."""
        if self._file is not None:
            self._file.flush()

    def turn(self) -> Callable[[], None]:
        """Go on in a new file. What is returned makes all records so far survive a power loss; any thread may call it, while
        others are added."""
        syncs = [] if self._file is None else [self._file.syncing()]
        self.close()
        self._early = _EARLY if syncs else self._early

        def sync() -> None:
            for each in syncs:
                each()
                self._env.sync_folder(self._folder)

        return sync

    def syncing(self) -> Callable[[], None]:
        """What makes all records so far survive a power loss; any thread may call it, while others are added."""
        self.flush()

        def sync() -> None:
            for path in self._files():
                self._env.sync(path)
            self._env.sync_folder(self._folder)

        return sync

    def checkpointed(self, applied: int) -> None:
        """A checkpoint knows of all records up to this one, after which there was a `turn`: remove the files that have no
        other. Any thread."""
        files = self._files()
        for place, path in enumerate(files):
            later = _first(files[place + 1]) if place + 1 < len(files) else self.last + 1
            if later <= applied + 1:
                self._env.remove(path)

    def close(self) -> None:
        """Close the file; a further record begins another one."""
        if self._file is not None:
            self._file.flush()
            self._file.close()
            self._file = None

    def _sync_files(self) -> None:
        """Make the files there are survive a power loss, since only the last one may be torn."""
        files = self._files()
        for path in files:
            with self._env.append(path) as file:
                file.sync()
        if files:
            self._env.sync_folder(self._folder)

    def _files(self) -> list[Path]:
        return journal_files(self._env, self._folder)


def journal_files(env: Env, folder: Path) -> list[Path]:
    """The files of a journal, in order."""
    return [folder / name for name in env.list(folder) if name.endswith(_SUFFIX)]


def may_be_torn(files: Sequence[Path], place: int) -> bool:
    """Whether a crash may leave one of the files without its end: none follows it, or an early one."""
    return place + 1 == len(files) or _is_early(files[place + 1])


def counts(path: Path, last: int) -> bool:
    """Whether a file counts behind others whose last record is this one."""
    return not _is_early(path) or _first(path) <= last + 1


def _is_early(path: Path) -> bool:
    return path.name.endswith(_EARLY + _SUFFIX)


def _first(path: Path) -> int:
    """The number of the first record of a file."""
    return int(path.name.partition(".")[0])


def read_records(env: Env, path: Path) -> Iterator[tuple[int, bytes, int]]:
    """The records of a file with their numbers and places, up to the first that is not whole."""
    with env.open(path) as file:
        size, place = file.size, HEADER_SIZE
        begin = file.pread(0, HEADER_SIZE)
        if not begin.startswith(MAGIC) or not any(begin[8:12]) or begin[12:] != bytes(4):
            return  # without its header, as a power loss may leave it
        check_header(begin, MAGIC, VERSION, path)
        portion, start = b"", place
        while place + RECORD_HEAD <= size:
            if place + RECORD_HEAD > start + len(portion):
                portion, start = file.pread(place, _PORTION), place
            length, number = _FIELDS.unpack_from(portion, place - start)
            end = place + RECORD_HEAD + length
            if end > size:
                return
            if end > start + len(portion):
                portion, start = file.pread(place, max(_PORTION, RECORD_HEAD + length)), place
            fields = portion[place - start : place - start + _FIELDS.size]
            (digest,) = _CHECKSUM.unpack_from(portion, place - start + _FIELDS.size)
            record = portion[place - start + RECORD_HEAD : end - start]
            if digest != _digest(fields, record):
                return
            yield number, record, place
            place = end


def _digest(fields: bytes, record: bytes) -> int:
    state = xxhash.xxh3_64(fields)
    state.update(record)
    digest: int = state.intdigest()
    return digest
