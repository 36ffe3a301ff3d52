"""One atomic commit over any number of structures, and the way back to it; see docs/formats/manifest.md.

A structure keeps its files in the folder of its name: immutable ones, and ones that only grow. A commit asks
every structure to make its state durable and to say which files, up to which length, that state needs; then
one small file, the manifest, is replaced. Whoever opens the folder later finds exactly that state: what was
appended since is cut off, what was created since is removed. Structures are held up only while they note what their state
is; it is written, synced and named in another thread if their owner wishes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barkspider.core.errors import StorageError
from barkspider.core.events import Structure
from barkspider.storage.env import Env
from barkspider.storage.format import checksum

MANIFEST = "manifest.json"
_MAGIC = "barkspider-manifest"
_VERSION = 1
# Names of structures and files: below the folder of the manifest, whoever wrote it.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*", re.ASCII)
_LONGEST = 1 << 28  # bytes; a file takes 50 of them


class Store:
    """The structures of one folder, committed together. One thread.

    Invariant: every file that the manifest on disk names is there, at least as long as named, with the
    bytes that were there when it was committed.

    >>> import tempfile
    >>> class Note:
    ...     name = "note"
    ...     def prepare(self): return lambda: {"text": "kept", "files": {}}
    ...     def committed(self): pass
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store.open(Env(), Path(folder))
    ...     store.add(Note()); store.commit()
    ...     Store.open(Env(), Path(folder)).state("note")["text"]
    'kept'
    """

    def __init__(self, env: Env, folder: Path, number: int, states: dict[str, dict[str, Any]]) -> None:
        self.folder = folder
        self.number = number
        self._env = env
        self._states = states
        self._structures: dict[str, Structure] = {}

    @classmethod
    def open(cls, env: Env, folder: Path) -> Store:
        """Go back to the last commit of a folder, which may be none."""
        env.make_folder(folder)
        names = env.list(folder)
        if f"{MANIFEST}.new" in names:
            env.remove(folder / f"{MANIFEST}.new")
        number, states = read_manifest(env, folder) if MANIFEST in names else (0, {})
        store = cls(env, folder, number, states)
        store._recover()
        return store

    def state(self, name: str) -> dict[str, Any] | None:
        """What the structure of this name last committed. When that is nothing, its folder is emptied."""
        if name not in self._states:
            self._clean(self.folder / name, set())
        return self._states.get(name)

    def add(self, structure: Structure) -> None:
        """Include a structure in every commit from now on."""
        if structure.name in self._structures:
            raise ValueError(f"{structure.name!r} is in the store already")
        self._structures[structure.name] = structure

    def commit(self) -> None:
        """Commit all structures. When this fails, the last commit stands and this may be called again.

        Structures that were committed before and not added since are kept as they were.
        """
        self.prepare()()
        self.committed()

    def prepare(self) -> Callable[[], None]:
        """The first part of a commit: hold on to the present state of all structures.

        What is returned is the second, which makes that state the one that counts; it may be called in another
        thread, while the structures go on. `committed` is the last, in the thread of their owner. Only then, or when the
        second part has failed, may another commit begin.
        """
        prepared = {name: structure.prepare() for name, structure in self._structures.items()}

        def write() -> None:
            states = self._states | {name: describe() for name, describe in prepared.items()}
            known = {file for state in self._states.values() for file in state.get("files", {})}
            fresh = {file for state in states.values() for file in state.get("files", {})} - known
            for folder in sorted({(self.folder / file).parent for file in fresh}):
                self._env.sync_folder(folder)
            self._env.write_whole(self.folder / MANIFEST, _format(self.number + 1, states))
            self.number, self._states = self.number + 1, states

        return write

    def committed(self) -> None:
        """The last part of a commit: what only the one before it named may go."""
        for structure in self._structures.values():
            structure.committed()

    def _recover(self) -> None:
        named: set[Path] = set()
        for state in self._states.values():
            for file, length in state.get("files", {}).items():
                self._restore(self.folder / file, length)
                named.add(self.folder / file)
        folders = {path.parent for path in named} | {self.folder / name for name in self._states}
        for folder in sorted(folders - {self.folder}):
            self._clean(folder, named)

    def _restore(self, path: Path, length: int) -> None:
        if path.name not in self._env.list(path.parent):
            raise StorageError(f"{path} is missing; the manifest names it with {length} bytes")
        if self._env.size(path) != length:
            self._env.truncate(path, length)

    def _clean(self, folder: Path, named: set[Path]) -> None:
        # A folder below that holds files of another structure stays.
        kept = named | {parent for path in named for parent in path.parents}
        for name in self._env.list(folder):
            if folder / name not in kept:
                self._env.remove(folder / name)


@contextmanager
def restoring(folder: Path) -> Iterator[None]:
    """For whoever makes structures from the states in the manifest of a folder: it is damaged where these are of other
    types than were written, or do not fit together."""
    try:
        yield
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StorageError(f"{folder / MANIFEST} is damaged: its states do not fit ({error!r})") from error


def read_manifest(env: Env, folder: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """The number of the last commit, and the state of each structure."""
    path = folder / MANIFEST
    return _parse(env.read(path, 0, _LONGEST), path)


def reduce_manifest(env: Env, folder: Path, kept: Iterable[str]) -> None:
    """Commit that only some structures count from now on; the files of the others may go after that."""
    number, states = read_manifest(env, folder)
    env.write_whole(folder / MANIFEST, _format(number + 1, {name: states[name] for name in kept}))


def _format(number: int, states: dict[str, dict[str, Any]]) -> bytes:
    body = json.dumps({"number": number, "structures": states}, sort_keys=True)
    head = json.dumps({"magic": _MAGIC, "version": _VERSION, "checksum": f"{checksum(body.encode()):016x}"})
    return f"{head}\n{body}\n".encode()


def _parse(data: bytes, path: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    damaged = StorageError(f"{path} is damaged; without it nothing here can be trusted")
    first, _, rest = data.partition(b"\n")
    try:
        head = json.loads(first)
        if head["magic"] != _MAGIC:
            raise StorageError(f"{path} is not a manifest of barkspider")
        version, digest = int(head["version"]), int(head["checksum"], 16)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged from error
    if version > _VERSION:
        raise StorageError(f"{path} has version {version}, newer than {_VERSION}: use a newer barkspider")
    if not rest.endswith(b"\n") or checksum(rest[:-1]) != digest:
        raise damaged
    try:
        body = json.loads(rest)
        number, states = body["number"], body["structures"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged from error
    if not _is_count(number) or not _are_states(states):
        raise damaged
    for name in (*states, *(file for state in states.values() for file in state.get("files", {}))):
        if not is_safe_name(name):
            raise StorageError(f"{path} names {name!r}, which is not in its folder")
    return number, states


def is_safe_name(name: str) -> bool:
    """Whether a file of this name lies below the folder that it is named in.

    >>> is_safe_name("seen/0001.known"), is_safe_name("../key"), is_safe_name("/etc/passwd")
    (True, False, False)
    """
    return _NAME.fullmatch(name) is not None


def _are_states(states: Any) -> bool:
    """Whether this is an object of objects, whose files, if they name any, have lengths."""
    return isinstance(states, dict) and all(
        isinstance(state, dict)
        and isinstance(files := state.get("files", {}), dict)
        and all(map(_is_count, files.values()))
        for state in states.values()
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63
