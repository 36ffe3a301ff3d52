"""Whose turn it is at a server, for all processes of a crawl on one machine.

A table in a file that all of them have mapped: an entry for each address that is asked at the moment, or was lately and is
left alone. It is changed under a lock that dies with its holder. A process that dies during a request has a *lease* on
the address, which ends when the longest fetch would have ended. Times are those of the system's monotonic clock, which all
processes share and which begins anew with the machine; then the table is of no use, and is made anew.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic
from types import TracebackType

from barkspider.url import KeyMaker

_ENTRY = struct.Struct(
    "<Qd?7x"
)  # the key of an address, until when it is taken, whether a request is under way
_ENTRIES = 1 << 18  # 6 MB, of which only what is used takes space
_LOOKED_AT = 64  # places in a row in which an address may be; when all are taken nobody is asked for a while
BUSY = 0.05  # seconds after which an address that is being asked is looked at again
_CROWDED = 1.0


class Turns:
    """See the module. One object in each process; any thread of it.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> time = [100.0]
    >>> one, two = (Turns(Path(folder.name) / "turns", 7, 60.0, lambda: time[0]) for _ in range(2))
    >>> one.take("127.0.0.1"), two.take("127.0.0.1"), two.take("127.0.0.2")
    (0.0, 0.05, 0.0)
    >>> one.rest("127.0.0.1", 2.0); time[0] += 1.5
    >>> two.take("127.0.0.1")
    0.5
    >>> one.close(); two.close(); folder.cleanup()
    """

    answered: Callable[[str, float], None] | None = (
        None  # never called: whoever asks here is answered at once
    )

    def __init__(self, path: Path, seed: int, lease: float, clock: Callable[[], float] = monotonic) -> None:
        self._keys, self._lease, self._clock = KeyMaker(seed), lease, clock
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        os.ftruncate(self._descriptor, _ENTRY.size * _ENTRIES)
        self._table = mmap.mmap(self._descriptor, _ENTRY.size * _ENTRIES)

    def take(self, address: str) -> float:
        """0 if the turn is ours from now on; else the seconds after which it may be free."""
        key, now = self._key(address), self._clock()
        with _Lock(self._descriptor):
            place, until, busy = self._find(key, now)
            if until > now:
                return min(until - now, BUSY) if busy else until - now
            if place < 0:
                return _CROWDED
            _ENTRY.pack_into(self._table, place, key, now + self._lease, True)
        return 0.0

    def rest(self, address: str, seconds: float) -> None:
        """Give a turn back: for so long nobody gets it."""
        key, now = self._key(address), self._clock()
        with _Lock(self._descriptor):
            place, _, _ = self._find(key, now)
            if place >= 0:
                _ENTRY.pack_into(self._table, place, key, now + seconds, False)

    def close(self) -> None:
        """Let go of the file."""
        self._table.close()
        os.close(self._descriptor)

    def _key(self, address: str) -> int:
        return self._keys.of(address) | 1  # never 0, which an empty place has

    def _find(self, key: int, now: float) -> tuple[int, float, bool]:
        """Where the entry of an address is or may be, -1 for nowhere, until when it is taken, and whether it is asked."""
        free = -1
        for number in range(_LOOKED_AT):
            place = (key + number) % _ENTRIES * _ENTRY.size
            found, until, busy = _ENTRY.unpack_from(self._table, place)
            if found == key:
                return place, until, busy
            if free < 0 and until <= now:
                free = place
            if not found:
                break  # nobody was ever behind an empty place
        return free, now, False


class _Lock(AbstractContextManager[None]):
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
