"""Bringing an archive back to what its journal knows, after the process or the machine died.

    state of the last commit ─┐
    ends in the journal ──────┴─► count_kept ─► journal, cut there ─► recover ─► ArchiveWriter ─► add

Tables go back to the last commit, WARC files to the last journalled end; rows of later outcomes come from the
journal again. Each step may be interrupted and begun anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from barkspider.archive import cdxj
from barkspider.archive.cdxj import INDEX, index_name, line_of
from barkspider.archive.reader import OPEN, SUFFIXES, WarcFile, valid_length, warc_files, warc_number
from barkspider.archive.schemas import DERIVED, DIGESTS, SCHEMAS
from barkspider.archive.tables import open_table
from barkspider.archive.warc import NOWHERE, WarcEnd
from barkspider.core.errors import StorageError
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import MANIFEST

SERIES = ("pages", "robots")


class Committed(NamedTuple):
    """What an archive puts into a checkpoint: the last write of each table, the end of each series of WARC files."""

    tables: dict[str, int]
    warc_ends: dict[str, WarcEnd]

    @classmethod
    def read(cls, state: Mapping[str, Any]) -> Committed:
        """From what `as_dict` gave."""
        try:
            tables = {name: int(last) for name, last in state["tables"].items()}
            warc_ends = {name: (str(file), int(end)) for name, (file, end) in state["places"].items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StorageError(f"the state of the archive is damaged: {error!r}") from error
        return cls(tables, {prefix: warc_ends.get(prefix, NOWHERE) for prefix in SERIES})

    def as_dict(self) -> dict[str, Any]:
        """For a manifest."""
        return {"tables": self.tables, "places": self.warc_ends}


class Recovered(NamedTuple):
    """Where an `ArchiveWriter` goes on: the last write of each table that is committed, None when nothing ever
    was, and where each series of WARC files ended last.
    """

    tables: Mapping[str, int] | None
    warc_ends: Mapping[str, WarcEnd]


def count_kept(
    env: Env, folder: Path, state: Mapping[str, Any] | None, journal: Iterable[Mapping[str, WarcEnd]]
) -> int:
    """How many of the journal's records, from the first, have their exchanges whole in the WARC files.

    `state` is what the archive last committed and `journal` the `warc_ends` of each later record, in order. A
    power loss may have left files shorter than their journal says; then the rest of the journal does not count.
    A file that is gone was moved away if a later one of its series was begun, since it was complete by then.
    """
    series = {prefix: _Series(env, folder, end) for prefix, end in _warc_ends(state).items()}
    count = 0
    for warc_ends in journal:
        if not all(series[prefix].reaches(*end, count) for prefix, end in warc_ends.items()):
            break
        count += 1
    return int(min(count, *(each.gone for each in series.values())))


def recover(
    env: Env, folder: Path, state: Mapping[str, Any] | None, warc_ends: Mapping[str, WarcEnd] | None = None
) -> Recovered:
    """Cut an archive back to a commit's tables and a journal's last ends; None: those of the commit.

    `state` is what `ArchiveWriter.prepare` gave for the last commit. Without any, nothing was ever committed,
    and all tables go. WARC files left open are completed, and each has its index.
    """
    tables = None if state is None else Committed.read(state).tables
    if tables is None:  # what was derived from rows that go, goes first
        env.remove(folder / DIGESTS / MANIFEST)
    for name in SCHEMAS:
        table = open_table(env, folder, name)
        if tables is None:
            table.cut(-1)
        else:  # tables are derived from committed rows only
            table.cut(table.last() if name in DERIVED else tables.get(name, -1))
    ends = _warc_ends(state) | {prefix: (file, end) for prefix, (file, end) in (warc_ends or {}).items()}
    for name in env.list(folder):
        if name.endswith(".new"):
            env.remove(folder / name)
    for prefix, end in ends.items():
        _cut_series(env, folder, prefix, end)
    return Recovered(tables, ends)


class _Series:
    """WARC files of one kind, from the commit's end on.

    `gone` is the first record whose exchange is in the file asked for last, if that is not there.
    """

    def __init__(self, env: Env, folder: Path, end: WarcEnd) -> None:
        self._env, self._folder = env, folder
        self._name, self._whole = end  # up to where the file is known to be whole
        self._ends: Iterator[int] | None = None
        self.gone: float = inf

    def reaches(self, name: str, end: int, number: int) -> bool:
        """Whether the file is whole up to the end of a record, or gone; records come in order."""
        if warc_number(name) < warc_number(self._name):
            return True  # the commit came later
        if name != self._name:
            self._name, self._whole, self._ends, self.gone = name, 0, None, inf
        if end <= self._whole or self.gone < number:
            return True
        if self._ends is None:
            if not {name, name + OPEN} & set(self._env.list(self._folder)):
                self.gone = min(self.gone, number)
                return True
            self._ends = _record_ends(self._env, self._folder / name, self._whole)
        while self._whole < end:
            following = next(self._ends, None)
            if following is None:
                return False
            self._whole = following
        return self._whole == end


def _record_ends(env: Env, path: Path, start: int) -> Iterator[int]:
    with suppress(StorageError), WarcFile.find(env, path) as file:
        for record in file.records(start):
            yield record.end


def _warc_ends(state: Mapping[str, Any] | None) -> dict[str, WarcEnd]:
    return Committed.read(state).warc_ends if state else dict.fromkeys(SERIES, NOWHERE)


def _cut_series(env: Env, folder: Path, prefix: str, end: WarcEnd) -> None:
    """Remove what lies behind the end, and complete what is left."""
    name, size = end
    endings = (".cdxj", OPEN, *SUFFIXES)
    mine = [each for each in env.list(folder) if each.startswith(f"{prefix}-") and each.endswith(endings)]
    going = [each for each in mine if warc_number(each) > warc_number(name)]
    if name in mine and index_name(name) in mine and env.size(folder / name) > size:
        going.append(index_name(name))
    if any(each.endswith(".cdxj") for each in going):
        env.remove(folder / INDEX)  # it has their lines too
        env.sync_folder(folder)
    for each in going:
        env.remove(folder / each)
    if going:
        env.sync_folder(folder)  # an index must not outlive what is cut now
    for path in warc_files(env, folder, f"{prefix}-"):
        if path.name.removesuffix(OPEN) == name:
            _complete(env, path, size)
        elif path.name.endswith(OPEN):
            _complete(env, path, valid_length(path, env))


def _complete(env: Env, path: Path, size: int) -> None:
    """Make a file end at `size`, and give it its name and its index; one without exchanges goes.

    Only a file that is shorter than that is cut to its whole records: damage within is for `verify` to name.
    """
    index = path.with_name(index_name(path.name))
    if index.name in env.list(path.parent):
        return  # it was complete, and nothing came behind it
    lines, whole, empty = cdxj.Lines(env, index), 0, True
    with WarcFile(env, path) as warc:
        for record in warc.records():
            if record.end > size:
                break
            whole, empty = record.end, empty and record.kind == "warcinfo"
            if line := line_of(record, warc.name):
                lines.append(line)
    with env.append(path) as file:
        file.cut(size if file.size >= size else whole)
        file.sync()
    if empty and whole == file.size:
        env.remove(path)
        return
    if path.name.endswith(OPEN):
        env.rename(path, path.with_name(warc.name))
    lines.finish()
