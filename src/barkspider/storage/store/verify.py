"""Checking the files of a store without changing any: what the manifest names, and the journal behind it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barkspider.core.errors import StorageError
from barkspider.storage.drum import buckets, known, results
from barkspider.storage.env import Env, ReadFile
from barkspider.storage.format import (
    BLOCK_HEAD_SIZE,
    HEADER_SIZE,
    check_block,
    check_header,
    read_block_head,
)
from barkspider.storage.queue import segments
from barkspider.storage.store import journal, snapshot
from barkspider.storage.store.manifest import MANIFEST, read_manifest

DAMAGE, RECOVERABLE = "damage", "recoverable"
_PAIRS = ".pairs"
_HEADERS = {
    _PAIRS: (buckets.PAIRS_MAGIC, buckets.VERSION),
    ".aux": (buckets.AUX_MAGIC, buckets.VERSION),
    ".known": (known.MAGIC, known.VERSION),
    ".results": (results.MAGIC, results.VERSION),
    ".queue": (segments.MAGIC, segments.VERSION),
}
_AUX_PLACE = struct.Struct("<Q")  # at the beginning of a block of pairs: where its aux is


class Fault(NamedTuple):
    """What is wrong with a file. `kind` is damage, recoverable (opening the job again mends it), or, of archives, a note."""

    kind: str
    file: str
    what: str


def verify_store(env: Env, folder: Path) -> Iterator[Fault]:
    """Compare every file that the manifest names with its length and its checksums.

    >>> import tempfile
    >>> list(verify_store(Env(), Path(tempfile.mkdtemp())))
    []
    """
    if MANIFEST not in env.list(folder):
        return
    try:
        _, states = read_manifest(env, folder)
    except StorageError as error:
        yield Fault(DAMAGE, MANIFEST, str(error))
        return
    files: dict[str, int] = {}
    for state in states.values():
        files |= state.get("files", {})
    for name, length in sorted(files.items()):
        yield from _check_file(env, folder, name, length, files)


def verify_journal(env: Env, folder: Path, applied: int) -> Iterator[Fault]:
    """The records behind the last checkpoint; the end of the last file may be torn."""
    files = journal.journal_files(env, folder)
    last = applied
    for place, path in enumerate(files):
        if not journal.counts(path, last):
            yield Fault(RECOVERABLE, path.name, "does not count, because the file before it lacks its end")
            break
        end = HEADER_SIZE
        try:
            for number, record, at in journal.read_records(env, path):
                end = at + journal.RECORD_HEAD + len(record)
                if number > last + 1:
                    yield Fault(DAMAGE, path.name, f"record {last + 1} is missing")
                last = max(last, number)
        except StorageError as error:
            yield Fault(DAMAGE, path.name, str(error))
            continue
        if env.size(path) != end:
            kind = RECOVERABLE if journal.may_be_torn(files, place) else DAMAGE
            yield Fault(kind, path.name, f"is not whole behind byte {min(end, env.size(path))}")
    if last > applied:
        yield Fault(RECOVERABLE, folder.name, f"{last - applied} records since the last checkpoint")


def _check_file(env: Env, folder: Path, name: str, length: int, files: dict[str, int]) -> Iterator[Fault]:
    path = folder / name
    if path.name not in env.list(path.parent):
        yield Fault(DAMAGE, name, "is missing")
        return
    size = env.size(path)
    if size < length:
        yield Fault(DAMAGE, name, f"is cut off: it has {size} bytes and should have {length}")
        return
    if size > length:
        yield Fault(RECOVERABLE, name, f"has {size - length} bytes that no checkpoint knows of")
    try:
        if path.suffix in _HEADERS:
            check_header(env.read(path, 0, HEADER_SIZE), *_HEADERS[path.suffix], path)
        if name.endswith(snapshot.SUFFIX):
            snapshot.read_snapshot(env, path)
        elif name.endswith(_PAIRS):
            _check_pairs(env, path, length)
        elif str(Path(name).with_suffix(_PAIRS)) not in files:
            with env.open(path) as file:
                place = HEADER_SIZE
                while place < length:
                    place = _check_block(file, place, path)[1]
    except StorageError as error:
        yield Fault(DAMAGE, name, str(error))


def _check_pairs(env: Env, path: Path, length: int) -> None:
    """Blocks of pairs, and those of aux that belong to them: others there count for nothing."""
    aux = path.with_suffix(".aux")
    with env.open(path) as file:
        place = HEADER_SIZE
        while place < length:
            stored, place = _check_block(file, place, path)
            if aux.name in env.list(path.parent):
                with env.open(aux) as other:
                    _check_block(other, _AUX_PLACE.unpack_from(stored)[0], aux)


def _check_block(file: ReadFile, place: int, path: Path) -> tuple[bytes, int]:
    head = file.pread(place, BLOCK_HEAD_SIZE)
    found = read_block_head(head, path, place)
    stored = file.pread(place + BLOCK_HEAD_SIZE, found.stored)
    check_block(head, stored, path, place)
    return stored, place + BLOCK_HEAD_SIZE + found.stored
