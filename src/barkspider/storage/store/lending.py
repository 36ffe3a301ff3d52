"""Files that are not in a folder any more, or never were, read in the store that has copies of them: for those who only read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from barkspider.storage.env import Env, ReadFile
from barkspider.storage.raw import Data, as_bytes
from barkspider.storage.store.copies import Piece
from barkspider.storage.store.remote import Remote

_FIRST, _MOST = 64 << 10, 8 << 20  # bytes that are asked for at a time: more and more by who reads on and on

Lent = Mapping[str, Sequence[Piece]]  # the pieces of files, by their names in a folder


class LendingEnv(Env):
    """An `Env` whose folders have files more: those that a store has. Only what reads and lists files knows of these.

    >>> import tempfile
    >>> folder, store = (Path(tempfile.mkdtemp()) for _ in range(2))
    >>> remote = Remote.at(str(store))
    >>> remote.put("x", [b"0123456789"])
    >>> env = LendingEnv({folder: lambda: (remote, {"a": [Piece("x", 0, 4, ""), Piece("x", 6, 4, "")]})})
    >>> env.list(folder), env.size(folder / "a"), env.read(folder / "a", 2, 4)
    (['a'], 8, b'2367')
    """

    def __init__(self, lenders: Mapping[Path, Callable[[], tuple[Remote, Lent]]]) -> None:
        """Each folder's is asked once, when somebody looks into the folder."""
        super().__init__()
        self._lenders, self._lent = lenders, dict[Path, tuple[Remote, Lent]]()

    def list(self, folder: Path) -> list[str]:
        """Names in a folder, sorted, and those of files that are lent there."""
        found = super().list(folder)
        return sorted({*found, *self._of(folder)[1]}) if folder in self._lenders else found

    def open(self, path: Path) -> ReadFile:
        """Open a file for reading, here or in the store."""
        if path.parent in self._lenders and path.name not in super().list(path.parent):
            remote, files = self._of(path.parent)
            if path.name in files:
                return _LentFile(path, remote, files[path.name])
        return super().open(path)

    def size(self, path: Path) -> int:
        """The length of a file."""
        with self.open(path) as file:
            return file.size

    def _of(self, folder: Path) -> tuple[Remote, Lent]:
        if folder not in self._lent:
            self._lent[folder] = self._lenders[folder]()
        return self._lent[folder]


class _LentFile(ReadFile):
    """A file of a store. One thread."""

    def __init__(self, path: Path, remote: Remote, pieces: Sequence[Piece]) -> None:
        self.path, self._descriptor = path, -1
        self._remote, self._pieces = remote, pieces
        self._ends = list(accumulate(piece.length for piece in pieces))
        self._start, self._data, self._ahead = 0, b"", _FIRST

    @property
    def size(self) -> int:
        return self._ends[-1] if self._ends else 0

    def pread(self, offset: int, length: int) -> bytes:
        end = min(offset + length, self.size)
        if not self._start <= offset <= end <= self._start + len(self._data):
            reads_on = self._start <= offset <= self._start + len(self._data)
            self._ahead = min(2 * self._ahead, _MOST) if reads_on and self._data else _FIRST
            self._start, self._data = offset, self._fetch(offset, max(end, offset + self._ahead))
        return self._data[offset - self._start : max(end - self._start, 0)]

    def pread_into(self, offset: int, buffer: Data) -> int:
        view = as_bytes(buffer)
        data = self.pread(offset, len(view))
        view[: len(data)] = data
        return len(data)

    def map(self) -> memoryview:
        return memoryview(self._fetch(0, self.size))

    def _fetch(self, offset: int, end: int) -> bytes:
        found, end = [], min(end, self.size)
        while offset < end:
            number = bisect_right(self._ends, offset)
            piece, stop = self._pieces[number], min(end, self._ends[number])
            begin = piece.offset + offset - (self._ends[number] - piece.length)
            found.append(self._remote.get(piece.object, begin, stop - offset))
            offset = stop
        return b"".join(found)
