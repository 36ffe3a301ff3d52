"""What a job is doing: asked once a second, however many look on, and not at all when nobody does."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barkspider.core.errors import BarkspiderError, StorageError
from barkspider.core.settings import Settings
from barkspider.engine import StoredJob, open_job
from barkspider.engine.control import ask
from barkspider.engine.folder import LOG, check_job, events, part_folders
from barkspider.engine.history import NAME, read_history
from barkspider.engine.samples import Samples, merge
from barkspider.report.top import Standing, standing
from barkspider.storage.env import Env

_FRESH = 0.9  # seconds for which a look is good enough for all
_MOST = 6_000  # samples that are kept here before they are read anew, thinned
_RANKS = 60.0  # seconds between two counts of in-degrees, which take a pass over all links
_TABLES = 10.0  # seconds between two times that a crawl is asked to write its rows down, which makes files
MEMORY = 150_000_000  # bytes that one answer of the tables may take
_LATEST = 1 << 18  # bytes of the log that are read for its last events


@dataclass(frozen=True, slots=True)
class Part:
    """One process of a crawl: the name of its folder, and its own history."""

    name: str
    samples: Samples


@dataclass(frozen=True, slots=True)
class View:
    """One look at a job. `status` is what the crawl says of itself, or its last word; {} when there is none."""

    time: float
    running: bool
    state: str
    status: dict[str, Any]
    samples: Samples
    parts: list[Part] = field(default_factory=list)
    ranks: Standing | None = None
    problems: list[str] = field(default_factory=list)


class Watcher:
    """Looks at one job. Any thread may ask; one look is taken at a time."""

    def __init__(self, path: Path) -> None:
        check_job(path)
        self.path = path
        self._env = Env()
        self._parts = part_folders(path)
        self._samples: dict[Path, Samples] = {}
        self._lock = threading.Lock()
        self._view: View | None = None
        self._ranks: Standing | None = None
        self._left: bool | None = None  # whether a crawl that has ended left a table of domains
        self._count_again, self._written = 0.0, -_TABLES

    @property
    def is_divided(self) -> bool:
        """Whether several processes crawl it."""
        return self._parts != [self.path]

    @property
    def job(self) -> StoredJob:
        """The job to read from."""
        return open_job(self.path)

    @property
    def tables(self) -> StoredJob:
        """The same, to ask its tables: a crawl that runs has written down what it knew some seconds ago at most."""
        if time.monotonic() - self._written > _TABLES:
            self._written = time.monotonic()
            with suppress(BarkspiderError):  # it is busy: what there is is good enough for now
                ask(self.path, "write_tables", timeout=3.0)
        return self.job

    @property
    def settings(self) -> Settings:
        """Its settings, which may be changed while it runs."""
        return self.job.settings

    async def view(self) -> View:
        """A look that is at most a second old."""
        return await asyncio.to_thread(self.look)

    def look(self) -> View:
        """The same, for threads."""
        with self._lock:
            if self._view is None or time.monotonic() - self._view.time > _FRESH:
                self._view = self._look()
            return self._view

    def _look(self) -> View:
        problems = []
        try:
            status = ask(self.path, "status", timeout=3.0)
            running, state = status is not None, str((status or {}).get("state", ""))
        except BarkspiderError as error:
            status, running, state = {}, True, "silent"
            problems.append(str(error))
        if status is None:
            status = self._last()
            state = {"ended": "ended", "started": "killed", "resumed": "killed"}.get(
                str(status.get("event")), "not started"
            )
        parts = [Part(folder.name, self._follow(folder)) for folder in self._parts]
        return View(
            time.monotonic(),
            running,
            state,
            status,
            merge([part.samples for part in parts]),
            parts,
            self._ranks,
            problems,
        )

    def _follow(self, folder: Path) -> Samples:
        """The history of a part: from its last checkpoint, and then what is new."""
        found = self._samples.get(folder, Samples.empty())
        try:
            if not len(found) or len(found) > _MOST:
                found = read_history(self._env, folder)
            last = int(found.last("number")) if len(found) else -1
            more = ask(folder, NAME, timeout=3.0, since=last)
            if more is None:  # which has ended, and whose last word is on disk
                kept = read_history(self._env, folder)
                found = kept if len(kept) and kept.last("number") >= last else found
            elif more["rows"]:
                found = found.joined(Samples.of(more["names"], more["rows"]))
        except (BarkspiderError, StorageError):
            pass  # it is busy, or has just ended: what there is is good enough for now
        self._samples[folder] = found
        return found

    def _last(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for event in events(self.path):
            if event["event"] in ("started", "resumed", "ended"):
                found = event
        return found

    def count_ranks(self) -> None:
        """In-degrees and budgets (figure 6b), if it is time; takes a pass over all links, in the thread of the caller."""
        if time.monotonic() < self._count_again:
            return
        self._count_again = time.monotonic() + _RANKS
        with suppress(BarkspiderError):  # too large for now, or the table is just being merged
            budget, table = self.settings.budget, self.domains_table()
            self._ranks = standing(self.tables, budget, table=table, seconds=20.0, memory=MEMORY)
        if self._ranks is None or not len(self._ranks.known):
            self._count_again = time.monotonic() + _TABLES

    def domains_table(self) -> str:
        """Which table of domains to ask: of a crawl that has ended the one that it left, of another what the tables are now."""
        if self.look().running or len(self.job.archives) > 1:
            self._left = None
            return "domains"
        if self._left is None:
            found = self.job.query("SELECT count(*) AS n FROM listed_domains", memory=MEMORY)
            self._left = bool(found["n"][0].as_py())
        return "listed_domains" if self._left else "domains"

    def ranks(self) -> Standing | None:
        """What was counted last; counted now if nothing was."""
        if self._ranks is None:
            self.count_ranks()
        return self._ranks

    def hosts(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What the crawl knows of some hosts at this moment, of those that it has in RAM; {} if none runs."""
        found: dict[str, dict[str, Any]] = {}
        for folder in self._parts:
            with suppress(BarkspiderError):  # it is busy, or has just ended
                told = ask(folder, "hosts", hosts=list(names), timeout=3.0) or {}
                found |= {name: about for name, about in told.items() if about.get("known")}
        return found

    def forget(self) -> None:
        """Look anew the next time: something was changed."""
        self._view = None

    def last_events(self, most: int = 200) -> list[dict[str, Any]]:
        """The last events of the log, the newest first; of parts too."""
        found: list[dict[str, Any]] = []
        for folder in dict.fromkeys((self.path, *self._parts)):
            part = {} if folder == self.path else {"part": folder.name}
            found += [part | event for event in _tail(folder)]
        return sorted(found, key=lambda event: -float(event.get("time", 0)))[:most]


def _tail(folder: Path) -> list[dict[str, Any]]:
    """The events in the last part of a log, however long it is."""
    try:
        with (folder / LOG).open("rb") as file:
            file.seek(0, 2)
            file.seek(max(file.tell() - _LATEST, 0))
            lines = file.read(_LATEST).split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):  # cut at its beginning, or not finished
            continue
        if isinstance(event, dict) and isinstance(event.get("time"), int | float):
            found.append(event)
    return found
