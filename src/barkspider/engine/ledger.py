"""What makes a crawl survive: one journal of harvests, and checkpoints of everything else.

    harvest ─► WARC bytes ─► journal ─► applied: frontier, tables, counters ─ every minute ─► checkpoint

A harvest is applied only after its record has been handed to the operating system, and its record only after its
bytes in the archive: so whatever kills the process, each outcome is there as a whole or not at all. A checkpoint
is one manifest over all structures (`storage.store`) that names the last record it knows of. After a crash the
structures go back to it, the archive is cut to the last record, and the records behind it are applied again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from barkspider.archive import Recovered, count_kept, recover
from barkspider.core.events import Prepared, Structure
from barkspider.engine.checkpoint import JOURNAL, Progress
from barkspider.engine.harvest import Harvest, warc_ends_of
from barkspider.storage.env import Env
from barkspider.storage.store.journal import Journal
from barkspider.storage.store.manifest import Store


class Ledger:
    """The journal and the checkpoints of one job. One thread.

    It is a `Structure` itself, without files: what the engine knows (`Progress`). Use: `recover` the archive,
    `harvests` to the end, `add` the structures, then `write` and `commit`.
    """

    name = "crawl"

    def __init__(self, env: Env, folder: Path) -> None:
        """Goes back to the last checkpoint of the folder, which may be none."""
        self._env, self._folder = env, folder
        self._store = Store.open(env, folder)
        self.progress = Progress.read(self._store.state(self.name))
        self.tally: Mapping[str, Any] = self.progress.tally
        self._journal = Journal(env, folder / JOURNAL, self.progress.sequence)
        self._store.add(self)

    @property
    def is_new(self) -> bool:
        """Whether nothing has ever been written."""
        return self._journal.last == 0

    @property
    def checkpoints(self) -> int:
        """How many there were."""
        return self._store.number

    def state(self, name: str) -> dict[str, Any] | None:
        """What the last checkpoint has of a structure."""
        return self._store.state(name)

    def recover(self, archive: Path) -> Recovered:
        """Bring the archive to the last record whose bytes it has; records behind that one are taken back."""
        kept, applied = self._store.state("kept"), self.progress.sequence
        ends = [warc_ends_of(record) for _, record in self._read_anew().tail()]
        whole = count_kept(self._env, archive, kept, ends)
        if whole < len(ends):
            journal = self._read_anew()
            for number, _ in journal.tail():
                if number == applied + whole + 1:
                    journal.cut()
                    break
        last: dict[str, tuple[str, int]] = {}
        for warc_ends in ends[:whole]:
            last |= warc_ends
        return recover(self._env, archive, kept, last or None)

    def harvests(self) -> Iterator[Harvest]:
        """What came in since the last checkpoint, to be applied again."""
        for _, record in self._journal.tail():
            harvest = Harvest.decode(record)
            self.tally = harvest.tally
            yield harvest

    def read_to_end(self) -> None:
        """Go to the end of the journal, for whoever only writes."""
        for _ in self.harvests():
            pass

    def add(self, structure: Structure) -> None:
        """Include a structure in every checkpoint."""
        self._store.add(structure)

    def write(self, harvest: Harvest) -> None:
        """Keep what came in; when this returns it survives the end of the process."""
        self._journal.append(harvest.encode())
        self.tally = harvest.tally
        self._journal.flush()

    def syncing(self) -> Callable[[], None]:
        """What makes all that was written so far survive a power loss; any thread may call it."""
        return self._journal.syncing()

    def commit(self, seconds: float, extended: list[str]) -> None:
        """A checkpoint, as a whole; see `begin`."""
        self.begin(seconds, extended)()
        self.end()

    def begin(self, seconds: float, extended: list[str]) -> Callable[[], None]:
        """The first part of a checkpoint: all that was written has been applied. What the arguments are says `Progress`.

        What is returned is the second part, for any thread; the crawl goes on meanwhile. `end` is the last.
        """
        last = self._journal.last
        self.progress = Progress(
            sequence=last,
            seconds=round(seconds, 3),
            extended=list(extended),
            tally=self.tally,
            inherited=self.progress.inherited,
        )
        sync, write = self._journal.turn(), self._store.prepare()

        def finish() -> None:
            sync()
            write()
            self._journal.checkpointed(last)

        return finish

    def end(self) -> None:
        """The last part of a checkpoint, when the second is done: what only the one before it named may go."""
        self._store.committed()

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        return self.progress.as_dict

    def committed(self) -> None:
        """See `core.events.Structure`."""

    def close(self) -> None:
        """Close the journal; all that was written stays."""
        self._journal.close()

    def _read_anew(self) -> Journal:
        return Journal(self._env, self._folder / JOURNAL, self.progress.sequence)
