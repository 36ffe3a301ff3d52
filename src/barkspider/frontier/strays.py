"""Strays: URLs of other processes that wait until own ones run out (Parallel Crawlers, section 3: cross-over mode).

    links of others ─► hold ─► X, a queue on disk ─ while nothing of our own waits ─► take ─► the source, as if they were ours

They are on disk as they were found, and whether a URL is new is known when it is taken. URLs that come again and again
are held once as far as memory goes. As after a crash X is what it was at the checkpoint, what was taken since comes up
once more; what was fetched meanwhile is *done*, and dropped by the gate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Prepared
from barkspider.core.texts import Texts
from barkspider.storage.env import Env
from barkspider.storage.keyset import KeySet
from barkspider.storage.queue.disk_queue import DiskQueue

_RECENT = 100_000  # URLs that are not held twice: 1 to 3 MB, twice


class Strays:
    """See the module. A `Structure`; one thread. Filled by `exchange`, emptied by `driver`.

    >>> import tempfile
    >>> batch = UrlBatch.of([b"http://a.example/", b"http://a.example/", b"http://b.example/"], key=[5, 5, 6])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     strays = Strays(Env(), Path(folder), None)
    ...     strays.hold(batch); len(strays), strays.take(9).key.tolist(), strays.close()
    (2, [5, 6], None)
    """

    name = "queues/X"

    def __init__(self, env: Env, folder: Path, state: dict[str, Any] | None) -> None:
        self._queue = DiskQueue(env, folder, self.name, state=state)
        self._young, self._old = KeySet(), KeySet()  # what came lately

    def __len__(self) -> int:
        return len(self._queue)

    def hold(self, links: UrlBatch) -> None:
        """Let URLs wait, those that came lately but once."""
        if len(self._young) >= _RECENT:
            self._young, self._old = KeySet(), self._young
        new = self._young.add(links.key) & self._old.missing(links.key)
        if new.any():
            self._queue.append_batch(links.where(new).packed.to_arrow())

    def take(self, most: int) -> UrlBatch:
        """The URLs that have waited longest."""
        return UrlBatch.checked(Texts.from_arrow(self._queue.pop_batch(most)))

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        return self._queue.prepare()

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self._queue.committed()

    def validate(self) -> None:
        """Check the invariants."""
        self._queue.validate()

    def close(self) -> None:
        """Let go of the file; what was committed stays."""
        self._queue.close()
