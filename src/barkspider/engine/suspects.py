"""Which site this process is looking at, in a file that outlives it: whoever ends the process while it reads a page is known.

A page may be such that its reader crashes, or takes all memory, or never ends and is ended by the watchdog. Nobody can write
that down afterwards; so what is being read is noted before, in a mapped file, which costs two stores a page.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barkspider.core.events import FetchPage, FetchRobots, Request

_ASIDE = 64  # pages that are read in threads at a time and are noted
_SIZE = 8 * (1 + _ASIDE)


class Suspects:
    """See the module. The keys of sites: that of the page which the loop reads, and of those that threads do.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> first = Suspects(Path(folder.name) / "reading"); first.found
    set()
    >>> first._keys[0] = 7
    >>> again = Suspects(Path(folder.name) / "reading"); again.found
    {7}
    >>> first.close(); again.close(); folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        """`found` are those at which an earlier process looked when it ended."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if os.fstat(descriptor).st_size < _SIZE:
                os.pwrite(descriptor, bytes(_SIZE), 0)  # a full disk refuses that, and no later store
            self._map = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)
        self._keys = memoryview(self._map).cast("Q")
        self.found = {key for key in self._keys if key}
        self._keys[:] = memoryview(bytes(_SIZE)).cast("Q")
        self._free = list(range(1, 1 + _ASIDE))

    def look(self, request: Request) -> None:
        """The loop begins to read an answer."""
        self._keys[0] = _site(request)

    def looked(self) -> None:
        """It has ended."""
        self._keys[0] = 0

    def aside(self, request: Request, done: Callable[[Any], None]) -> Callable[[Any], None]:
        """A thread begins to read an answer; what it is to call, in the loop, when that has ended, instead of `done`."""
        if not self._free:
            return done
        place = self._free.pop()
        self._keys[place] = _site(request)

        def finished(result: Any) -> None:
            self._keys[place] = 0
            self._free.append(place)
            done(result)

        return finished

    def close(self) -> None:
        """Nothing is read any more."""
        self._keys[:] = memoryview(bytes(_SIZE)).cast("Q")


def _site(request: Request) -> int:
    if isinstance(request, FetchPage):
        return request.row.host_key
    return request.host_key if isinstance(request, FetchRobots) else 0
