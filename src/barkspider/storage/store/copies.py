"""Copies of a folder in a store, one after the other, each of which can be brought back; see docs/formats/copies.md.

    NAME/claims/INCARNATION-TOKEN     who may write, or did: the highest is the one that counts
    NAME/indexes/INCARNATION-SERIAL   a copy: for each file the pieces that it is made of, and where these lie
    NAME/packs/INCARNATION-SERIAL     small pieces of one copy, one behind the other
    NAME/files/…/INCARNATION-SERIAL-… large pieces, and whole files that others may want to read

A copy takes what the one before it has not: of files that only grow, what came since. Its index is written last; until then
the one before it is the copy that counts, and nothing that it names is removed. Two who both take themselves for the owner of
a copy do no harm to each other: each writes under its own number, and whoever brings a copy back takes that of the highest. The
newcomer claims first and reads the indexes then; whoever writes an index looks for claims only then, and removes nothing when
there is a higher one. So either the newcomer has seen that index, or nothing of the one before it is removed.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import xxhash

from barkspider.core.errors import StorageError
from barkspider.storage.env import Env, ReadFile
from barkspider.storage.format import checksum
from barkspider.storage.store.manifest import MANIFEST, is_safe_name
from barkspider.storage.store.remote import Remote

_MAGIC, _VERSION = "barkspider-copy", 1
_LARGE = 4 << 20  # bytes; a piece of this size is an object of its own, smaller ones share one
_PORTION = 1 << 20  # bytes that are read and sent at a time
_WASTE = 2  # a pack of which less than one in so many bytes is needed is left for a new one

Files = dict[str, list["Piece"]]


class FencedError(StorageError):
    """Another has taken over: whoever meets this must stop. Raised by `Copies` only."""


class CopiedFile(NamedTuple):
    """A file to be copied: where it lies, and how many of its bytes belong to the copy. `grows` says that the bytes that an
    earlier copy has are the same; `apart` that others may want to read it in the store."""

    path: Path
    length: int
    grows: bool = True
    apart: bool = False


class Piece(NamedTuple):
    """Bytes of a file in the store: a part of an object, with its checksum."""

    object: str
    offset: int
    length: int
    digest: str


@dataclass(frozen=True)
class Index:
    """One copy: the files, and how long the packs are in which their pieces lie."""

    incarnation: str = ""
    serial: int = 0
    files: Files = field(default_factory=dict)
    packs: dict[str, int] = field(default_factory=dict)

    def encode(self) -> bytes:
        """As bytes, with a checksum."""
        about = {"incarnation": self.incarnation, "serial": self.serial, "packs": self.packs}
        body = json.dumps({**about, "files": self.files}, sort_keys=True).encode()
        head = {"magic": _MAGIC, "version": _VERSION, "checksum": f"{checksum(body):016x}"}
        return json.dumps(head).encode() + b"\n" + body + b"\n"

    @classmethod
    def decode(cls, data: bytes, name: str) -> Index:
        """From what `encode` gave; `StorageError` for anything else."""
        first, _, rest = data.partition(b"\n")
        try:
            head = json.loads(first)
            if head["magic"] != _MAGIC or int(head["checksum"], 16) != checksum(rest[:-1]):
                raise ValueError("its checksum is wrong")
            version = int(head["version"])
            if version > _VERSION:
                raise StorageError(f"{name} has version {version}: use a newer barkspider")
            body = json.loads(rest)
            files = {file: [_piece(piece) for piece in pieces] for file, pieces in body["files"].items()}
            packs = {str(pack): int(size) for pack, size in body["packs"].items()}
            found = cls(str(body["incarnation"]), int(body["serial"]), files, packs)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(f"{name} is damaged: {error}") from error
        pieces = [piece for each in files.values() for piece in each]
        if not all(map(is_safe_name, (*files, *{piece.object for piece in pieces}))):
            raise StorageError(f"{name} names a file that is not in its folder")
        if any(piece.offset < 0 or piece.length < 0 for piece in pieces):
            raise StorageError(f"{name} is damaged: a piece begins or ends before its object")
        return found

    @property
    def number(self) -> str:
        """What tells it from all others."""
        return f"{self.incarnation}-{self.serial:08d}"

    def objects(self) -> set[str]:
        """All that is needed to bring the copy back, but for the index."""
        return {piece.object for pieces in self.files.values() for piece in pieces}

    def length(self, file: str) -> int:
        """How long a file of the copy is."""
        return sum(piece.length for piece in self.files[file])


class Copies:
    """The copies of one folder, for whoever may make further ones. One thread at a time.

    >>> import tempfile
    >>> store, folder = (Path(tempfile.mkdtemp()) for _ in range(2))
    >>> _ = (folder / "rows").write_bytes(b"0123")
    >>> copies = Copies.claim(Remote.at(str(store)), "part")
    >>> copies.copy({"rows": CopiedFile(folder / "rows", 4)}); copies.last.serial, copies.last.length("rows")
    (1, 4)
    >>> later = Copies.claim(Remote.at(str(store)), "part"); later.last.files == copies.last.files
    True
    >>> copies.copy({"rows": CopiedFile(folder / "rows", 4)})
    Traceback (most recent call last):
        ...
    barkspider.storage.store.copies.FencedError: part is another's by now: a later process has taken it over
    """

    def __init__(self, remote: Remote, name: str, incarnation: str) -> None:
        """Go on as who has claimed already; else use `claim`."""
        self.incarnation, self.last = incarnation, last_copy(remote, name) or Index()
        self._remote, self._name = remote, name
        self._swept = False

    @classmethod
    def claim(cls, remote: Remote, name: str) -> Copies:
        """Take over: nobody who came before can make a copy that counts from now on."""
        # Two who claim at the same moment get the same number, and the token decides.
        highest = max(remote.names(f"{name}/claims"), default="0-")
        if not highest.partition("-")[0].isdecimal():
            raise StorageError(f"{name}/claims/{highest} in the store is no claim: remove it")
        mine = f"{int(highest.partition('-')[0]) + 1:08d}-{secrets.token_hex(8)}"
        remote.put(f"{name}/claims/{mine}", [b""])
        copies = cls(remote, name, mine)
        copies.check()
        return copies

    def check(self) -> None:
        """Raise `FencedError` if another has taken over."""
        if max(self._remote.names(f"{self._name}/claims"), default="") > self.incarnation:
            raise FencedError(f"{self._name} is another's by now: a later process has taken it over")

    def copy(self, sources: Mapping[str, CopiedFile | None]) -> None:
        """Make a copy of these files, and only these; None stands for a file as the last copy has it. When this fails, the
        copy before stands, and it may be called again."""
        self.check()
        making = _Making(self._remote, self._name, f"{self.incarnation}-{self.last.serial + 1:08d}")
        scanty = _scanty(self.last)
        for file, source in sources.items():
            if source is None:
                making.files[file] = self.last.files[file]
            else:
                making.take(file, source, self._kept(file, source, scanty))
        making.pack()
        packs = {**self.last.packs, **making.packs}
        index = Index(self.incarnation, self.last.serial + 1, making.files, {})
        needed = index.objects()
        index.packs.update({pack: size for pack, size in packs.items() if pack in needed})
        self._remote.put(f"{self._name}/indexes/{making.number}", [index.encode()])
        before, self.last = self.last, index
        self.check()
        self._tidy(before, needed)

    def _kept(self, file: str, source: CopiedFile, scanty: set[str]) -> list[Piece]:
        """The pieces of the last copy that the next one goes on with: small ones at the end are joined with what follows."""
        pieces = list(self.last.files.get(file, ())) if source.grows else []
        while pieces and sum(piece.length for piece in pieces) > source.length:
            pieces.pop()
        if any(piece.object in scanty for piece in pieces):
            first = next(place for place, piece in enumerate(pieces) if piece.object in scanty)
            pieces = pieces[:first]
        rest = source.length - sum(piece.length for piece in pieces)
        while rest and pieces and pieces[-1].length < _LARGE and pieces[-1].length <= rest:
            rest += pieces.pop().length
        return pieces

    def _tidy(self, before: Index, needed: set[str]) -> None:
        """Remove what only the copy before needs; after the first of an incarnation, whatever others have left."""
        name = self._name
        kept = {*needed, f"{name}/indexes/{self.last.number}"}
        if self._swept:
            going = {*before.objects(), f"{name}/indexes/{before.number}"} - kept
        else:
            # Names begin with an incarnation: what a later one has written since `check` is not ours to judge.
            claim, size = f"{name}/claims/{self.incarnation}", len(self.incarnation)
            there = {each: each.rpartition("/")[2].lstrip(".")[:size] for each in self._remote.walk(name)}
            going = {each for each, whose in there.items() if whose <= self.incarnation} - kept - {claim}
        self._swept = False  # if this fails, the next copy removes all that is left
        self._remote.remove(sorted(going))
        self._swept = True


class _Making:
    """A copy that is being made: which pieces each file has, and what is to be packed."""

    def __init__(self, remote: Remote, name: str, number: str) -> None:
        self.number, self.files, self.packs = number, Files(), dict[str, int]()
        self._remote, self._name = remote, name
        self._pack = f"{name}/packs/{number}"
        self._waiting: list[tuple[str, Path, int, int]] = []  # file, where it lies, from where, how much

    def take(self, file: str, source: CopiedFile, kept: list[Piece]) -> None:
        """Let a file be part of the copy, of which some pieces are in the store."""
        self.files[file] = kept
        start = sum(piece.length for piece in kept)
        rest = source.length - start
        if rest and (rest >= _LARGE or (source.apart and not kept)):
            folder, _, base = file.rpartition("/")
            target = "/".join(each for each in (self._name, "files", folder, f"{self.number}-{base}") if each)
            digest = xxhash.xxh3_64()
            with Env().open(source.path) as opened:
                self._remote.put(target, _portions(opened, start, rest, digest))
            kept.append(Piece(target, 0, rest, digest.hexdigest()))
        elif rest or not kept:
            self._waiting.append((file, source.path, start, rest))

    def pack(self) -> None:
        """Write what is small as one object."""
        if self._waiting:
            self._remote.put(self._pack, self._packed())

    def _packed(self) -> Iterator[bytes]:
        place = 0
        for file, path, start, length in self._waiting:
            digest = xxhash.xxh3_64()
            with Env().open(path) as opened:
                yield from _portions(opened, start, length, digest)
            self.files[file].append(Piece(self._pack, place, length, digest.hexdigest()))
            place += length
        self.packs[self._pack] = place


def last_copy(remote: Remote, name: str) -> Index | None:
    """The copy of the highest incarnation, and of these the last; None when there is none. One that is not whole, as a store
    may keep it that was written to until the power went, does not count."""
    names = remote.names(f"{name}/indexes")
    for found in reversed(names):
        try:
            data = remote.get(f"{name}/indexes/{found}")
        except StorageError:
            if remote.names(f"{name}/indexes") != names:
                return last_copy(remote, name)  # another copy was made meanwhile, and this one removed
            raise
        if data.endswith(b"\n") and data.count(b"\n") == 2:
            return Index.decode(data, f"{name}/indexes/{found}")
    return None


def bring_back(remote: Remote, index: Index, env: Env, folder: Path, last: Iterable[str] = ()) -> None:
    """Make the files of a copy in a folder, in the place of any that are there; those that a job is told by come `last`, so
    that one that is not whole is not taken for one. Every checksum is compared."""
    ends = [name for name in (MANIFEST, *last) if name in index.files]
    for file in (*(file for file in sorted(index.files) if file not in ends), *ends):
        path = folder / file
        env.make_folder(path.parent)
        env.remove(path)
        fresh = path.with_name(path.name + ".new")
        env.remove(fresh)
        with env.append(fresh) as written:
            for piece in index.files[file]:
                digest, end = xxhash.xxh3_64(), piece.offset + piece.length
                for place in range(piece.offset, end, _LARGE):
                    data = remote.get(piece.object, place, min(_LARGE, end - place))
                    if len(data) < min(_LARGE, end - place):
                        break  # it is shorter than it should be: so is what was forged to be endless
                    digest.update(data)
                    written.write(data)
                if digest.hexdigest() != piece.digest:
                    raise StorageError(
                        f"{piece.object} in the store is damaged: {file} cannot be brought back"
                    )
            written.sync()
        env.rename(fresh, path)


def _portions(file: ReadFile, start: int, length: int, digest: Any) -> Iterator[bytes]:
    end = start + length
    while start < end:
        data = file.pread(start, min(_PORTION, end - start))
        if not data:
            raise StorageError(f"{file.path} is cut off: it has {start} bytes and should have {end}")
        digest.update(data)
        start += len(data)
        yield data


def _scanty(index: Index) -> set[str]:
    """The packs of which little is needed any more."""
    needed = Counter[str]()
    for pieces in index.files.values():
        for piece in pieces:
            needed[piece.object] += piece.length
    return {pack for pack, size in index.packs.items() if needed[pack] * _WASTE < size}


def _piece(saved: Any) -> Piece:
    stored, offset, length, digest = saved
    return Piece(str(stored), int(offset), int(length), str(digest))
