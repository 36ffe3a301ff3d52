"""Files of rules that the settings name: read when a crawl starts, and again when they change.

    file ─ its time or size is another ─► read, in a thread ─► all of it is good ─► JOB/lists/, a copy ─► the frontier
                                                        └► a line is not: the crawl keeps the list that it has, and says so once

The copy is what the next run keeps if the file cannot be read by then.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barkspider.core.errors import SettingsError
from barkspider.core.settings import Settings
from barkspider.url import Domains
from barkspider.url.lists import Rule, read_rules

if TYPE_CHECKING:
    from barkspider.engine.job import Job

LISTS = "lists"  # the folder of the copies
_LARGEST = 1 << 28  # bytes
_Signature = tuple[int, int, int]
_GONE: _Signature = (0, 0, 0)

Named = Mapping[Rule, str]


class ListFiles:
    """See the module. On the loop; `look` is called every second."""

    def __init__(self, job: Job, follow: Callable[[Named, Named], None], log: Callable[..., None]) -> None:
        """`follow` is told all rules, each with its file, to block and to allow; `log` takes an event and its details."""
        self._job, self._follow, self._log = job, follow, log
        lists = job.settings.lists
        self._domains = Domains(job.settings.url.private_suffixes)
        self._names = tuple(dict.fromkeys((*lists.block, *lists.allow)))
        self._seen = dict.fromkeys(self._names, _GONE)
        self._rules = dict[str, list[Rule]]()
        self._reading: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Read all of them. `SettingsError` for one that is bad, where the job has no copy of it from before."""
        for name in self._names:
            self._seen[name] = _signature(name)
            try:
                self._rules[name] = self._read(name)
            except SettingsError as error:
                copy = self._copy(name)
                if copy.name not in self._job.env.list(copy.parent):
                    raise
                self._rules[name] = read_rules(self._job.env.read(copy).decode(), name, self._domains)
                self._log("list_refused", error=str(error))
        if self._names:
            self._tell()

    def look(self) -> None:
        """Read those that have changed."""
        changed = [name for name in self._names if _signature(name) != self._seen[name]]
        if changed and (self._reading is None or self._reading.done()):
            self._reading = asyncio.get_running_loop().create_task(self._read_changed(changed))

    async def _read_changed(self, names: list[str]) -> None:
        for name in names:
            self._seen[name] = _signature(name)
            try:
                self._rules[name] = await asyncio.to_thread(self._read, name)
            except SettingsError as error:
                self._log("list_refused", error=str(error))
                continue
            self._log("list_read", file=name, rules=len(self._rules[name]))
            self._tell()

    def _read(self, name: str) -> list[Rule]:
        text = read_list(name)
        rules = read_rules(text, name, self._domains)
        copy = self._copy(name)
        self._job.env.make_folder(copy.parent)
        self._job.env.write_whole(copy, text.encode())
        return rules

    def _copy(self, name: str) -> Path:
        return self._job.path / LISTS / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.txt"

    def _tell(self) -> None:
        lists = self._job.settings.lists
        block, allow = (
            {rule: name for name in names for rule in self._rules[name]}
            for names in (lists.block, lists.allow)
        )
        self._follow(block, allow)


def read_list(name: str) -> str:
    """The text of a file of rules; `SettingsError` for one that cannot be read, or is too large."""
    try:
        with Path(name).open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise SettingsError(f"{name} is larger than {_LARGEST:,} bytes")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SettingsError(f"{name}:{line}: it is not UTF-8 text") from error


def check_lists(settings: Settings) -> None:
    """Raise `SettingsError` for a file of rules that cannot be used."""
    domains = Domains(settings.url.private_suffixes)
    for name in (*settings.lists.block, *settings.lists.allow):
        read_rules(read_list(name), name, domains)


def _signature(name: str) -> _Signature:
    """What is another when a file was changed, or put in its place."""
    try:
        found = Path(name).stat()
    except OSError:
        return _GONE
    return found.st_mtime_ns, found.st_size, found.st_ino
