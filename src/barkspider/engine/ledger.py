"""What makes a crawl survive: one journal of outcomes, and checkpoints of everything else.

    outcome ─► WARC bytes ─► journal ─► applied: frontier, tables, counters ─ every minute ─► checkpoint

An outcome is applied only after its record has been handed to the operating system, and its record only after its
bytes in the archive: so whatever kills the process, each outcome is there as a whole or not at all. A checkpoint
is one manifest over all structures (`storage.manifest`) that names the last record it knows of. After a crash the
structures go back to it, the archive is cut to the last record, and the records behind it are applied again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from barkspider.archive import Recovered, count_kept, recover
from barkspider.core.errors import StorageError
from barkspider.core.events import Structure
from barkspider.engine.outcomes import Entry, Places, places_of
from barkspider.storage.env import Env
from barkspider.storage.store.journal import Journal
from barkspider.storage.store.manifest import Store

JOURNAL = "journal"


class Ledger:
    """The journal and the checkpoints of one job. One thread.

    It is a `Structure` itself, without files: what the engine knows. Use: `recover` the archive, `entries` to the end,
    `add` the structures, then `write` and `commit`.
    """

    name = "crawl"

    def __init__(self, env: Env, folder: Path) -> None:
        """Goes back to the last checkpoint of the folder, which may be none."""
        self._env, self._folder = env, folder
        self._store = Store.open(env, folder)
        self._state: dict[str, Any] = self._store.state(self.name) or {}
        self._applied = int(self._state.get("sequence", 0))
        self.tally: dict[str, Any] = self._state.get("tally", {})
        self._extra: dict[str, Any] = {}
        self._settled = time.time()
        self._journal = Journal(env, folder / JOURNAL, self._applied)
        self._store.add(self)

    @property
    def is_new(self) -> bool:
        """Whether nothing has ever been written."""
        return self._journal.last == 0

    def progress(self) -> dict[str, int]:
        """How many checkpoints there were, and the last outcome that the last one knows of."""
        return {"number": self._store.number, "outcomes": self._applied}

    @property
    def extra(self) -> dict[str, Any]:
        """What the engine gave to the last checkpoint."""
        found: dict[str, Any] = self._state.get("extra", {})
        return found

    def state(self, name: str) -> dict[str, Any] | None:
        """What the last checkpoint has of a structure."""
        return self._store.state(name)

    def recover(self, archive: Path) -> Recovered:
        """Bring the archive to the last record whose bytes it has; records behind that one are taken back."""
        kept = self._store.state("kept")
        ends = [
            places_of(record)
            for _, record in Journal(self._env, self._folder / JOURNAL, self._applied).tail()
        ]
        whole = count_kept(self._env, archive, kept, ends)
        if whole < len(ends):
            journal = Journal(self._env, self._folder / JOURNAL, self._applied)
            for number, _ in journal.tail():
                if number == self._applied + whole + 1:
                    journal.cut()
                    break
        last: Places = {}
        for places in ends[:whole]:
            last |= places
        return recover(self._env, archive, kept, last or None)

    def entries(self) -> Iterator[Entry]:
        """What happened since the last checkpoint, to be applied again."""
        for _, record in self._journal.tail():
            entry = Entry.decode(record)
            self.tally = entry.tally
            yield entry

    def add(self, structure: Structure) -> None:
        """Include a structure in every checkpoint."""
        self._store.add(structure)

    def write(self, entries: list[Entry]) -> None:
        """Keep outcomes; when this returns they survive the end of the process."""
        for entry in entries:
            self._journal.append(entry.encode())
            self.tally = entry.tally
        self._journal.flush()

    def settle(self) -> None:
        """Let the disk take what was written since the last time this was called. Any thread."""
        since, self._settled = self._settled, time.time()
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = Path(folder) / name
                with suppress(OSError, StorageError):  # a file may have gone meanwhile
                    if path.stat().st_mtime >= since - 1:
                        self._env.settle(path)

    def commit(self, extra: dict[str, Any]) -> None:
        """A checkpoint: all that was written has been applied."""
        self._extra = extra
        self._journal.sync()
        self._store.commit()
        self._applied = self._journal.last
        self._journal.checkpointed(self._applied)

    def prepare(self) -> dict[str, Any]:
        """See `core.events.Structure`."""
        self._state = {
            "sequence": self._journal.last,
            "tally": self.tally,
            "extra": self._extra,
        }
        return self._state

    def committed(self) -> None:
        """See `core.events.Structure`."""

    def close(self) -> None:
        """Close the journal; all that was written stays."""
        self._journal.close()
