"""The files of an archive that its last commit stands on, for whoever copies it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from barkspider.archive.cdxj import INDEX, index_name
from barkspider.archive.reader import OPEN, SUFFIXES, warc_number
from barkspider.archive.recovery import Committed
from barkspider.archive.schemas import DERIVED, SCHEMAS
from barkspider.archive.tables import open_table
from barkspider.storage.env import Env


class CommittedFile(NamedTuple):
    """A file by its name below the archive, where its bytes are, and how many count; None for a complete WARC file that is
    no longer there. `complete` ones never change."""

    name: str
    path: Path
    length: int | None
    complete: bool


def committed_files(env: Env, folder: Path, state: Mapping[str, Any]) -> Iterator[CommittedFile]:
    """What the state that an archive committed needs. Files may be completed, renamed and merged meanwhile: whoever finds
    one missing asks again.

    What follows from others is left out, and made again when it is needed: the merged index, the digests.
    """
    committed = Committed.read(state)
    for prefix, (name, end) in committed.warc_ends.items():
        yield from _series(env, folder, prefix, name, end)
    for name in SCHEMAS:
        table = open_table(env, folder, name)
        last = table.last() if name in DERIVED else committed.tables.get(name, -1)
        for part in table.parts():
            if part.last <= last:
                path = table.folder / part.name
                yield CommittedFile(str(path.relative_to(folder)), path, env.size(path), True)


def _series(env: Env, folder: Path, prefix: str, last: str, end: int) -> Iterator[CommittedFile]:
    """The WARC files up to an end: complete ones with their indexes, then the beginning of the one that grows."""
    there = {name for name in env.list(folder) if name.startswith(f"{prefix}-")}
    indexes = {name for name in there if name.endswith(".cdxj") and name != INDEX}
    whole = last in there and index_name(last) in there and env.size(folder / last) == end
    for index in sorted(indexes):
        if warc_number(index) < warc_number(last) or (whole and index == index_name(last)):
            yield CommittedFile(index, folder / index, env.size(folder / index), True)
            stem = index.removesuffix(".cdxj")
            for name in (stem + suffix for suffix in SUFFIXES):
                if index_name(name) == index:
                    path = folder / name
                    yield CommittedFile(name, path, env.size(path) if name in there else None, True)
    if last and not whole:
        path = folder / (last if last in there else last + OPEN)
        yield CommittedFile(last + OPEN, path, end, False)
