"""What a part has for others, and gets from them, as files in the folder of its station; see `parallel.post`.

ROOT/mail/0002/0001-00000007.snapshot   in the station of part 1: a batch that is to be carried to part 2
ROOT/mail/0002/acknowledged.json        there too: up to which batch of part 1 all is safe in part 2, as that told last
ROOT/mail/0001/…                        batches that came for part 1, and what it has acknowledged
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from barkspider.core.errors import StorageError
from barkspider.frontier.batches import MAIL, batch_name
from barkspider.parallel.post import ACKNOWLEDGED, BATCH, ranks_name
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import read_snapshot

_AT_ONCE = 8 << 20  # bytes of batches in one letter, or one batch
_FRESH = "arriving-{}.new"


class Letter(NamedTuple):
    """What goes from one station to another: batches by their numbers, and what its part has published, if that is new."""

    batches: list[tuple[int, bytes]]
    ranks: bytes = b""


class Mail:
    """The folder for mail of the station of one part. One thread at a time; the process of the part uses it too."""

    def __init__(self, env: Env, root: Path, part: int, processes: int) -> None:
        self._env, self._folder, self._part, self._processes = env, root / MAIL, part, processes
        self._carried = [0] * processes  # up to which batch each of the others has them, as far as we know
        self._ranks: list[tuple[int, int]] = [(0, 0)] * processes  # what was published when it was carried
        for other in range(processes):
            env.make_folder(self._inbox(other))

    def forget(self, to: int) -> None:
        """Another station has taken the place of one: what that had may be gone."""
        self._carried[to], self._ranks[to] = 0, (0, 0)

    def outgoing(self, to: int) -> Letter | None:
        """What is to be carried to another; None when that is nothing."""
        batches = list[tuple[int, bytes]]()
        for number, path in self._waiting(to):
            if number > self._carried[to] and sum(len(data) for _, data in batches) < _AT_ONCE:
                batches.append((number, self._env.read(path)))
        ranks, published = b"", self._published()
        if published not in ((0, 0), self._ranks[to]):
            ranks = self._env.read(self._folder / ranks_name(self._part))
        return Letter(batches, ranks) if batches or ranks else None

    def carried(self, to: int, letter: Letter, acknowledged: int) -> None:
        """A letter has arrived, and this is what was answered."""
        if letter.batches:
            self._carried[to] = max(self._carried[to], letter.batches[-1][0])
        if letter.ranks:
            self._ranks[to] = self._published()
        self.acknowledge(to, acknowledged)

    def acknowledge(self, to: int, number: int) -> None:
        """Let our part know up to which of its batches another has all safe; these need not be kept to be carried."""
        known = [0] * self._processes
        known[self._part] = number
        if self._read(to)[self._part] < number:
            self._env.write_whole(self._inbox(to) / ACKNOWLEDGED, json.dumps(known).encode())
        for each, path in self._waiting(to):
            if each <= number:
                self._env.remove(path)

    def awaits(self, to: int) -> bool:
        """Whether another has yet to tell that it has something safe."""
        return next(self._waiting(to), None) is not None

    def take_in(self, sender: int, letter: Letter) -> int:
        """Take what has come, whole and checked; up to which batch of the sender all is safe here."""
        for number, data in letter.batches:
            path = self._inbox(self._part) / batch_name(sender, number)
            if number > self._read(self._part)[sender] and path.name not in self._env.list(path.parent):
                self._accept(path, data, sender)
        if letter.ranks:
            self._accept(self._folder / ranks_name(sender), letter.ranks, sender)
        return self._read(self._part)[sender]

    def _accept(self, path: Path, data: bytes, sender: int) -> None:
        fresh = self._folder / _FRESH.format(sender)
        self._env.remove(fresh)
        with self._env.append(fresh) as file:
            file.write(data)
            file.sync()
        read_snapshot(self._env, fresh)  # raises for what is damaged, or is none
        self._env.rename(fresh, path)

    def _waiting(self, to: int) -> Iterator[tuple[int, Path]]:
        for name in self._env.list(self._inbox(to)):
            match = BATCH.fullmatch(name)
            if match and int(match[1]) == self._part:
                yield int(match[2]), self._inbox(to) / name

    def _published(self) -> tuple[int, int]:
        try:
            found = (self._folder / ranks_name(self._part)).stat()
        except FileNotFoundError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino

    def _read(self, part: int) -> Sequence[int]:
        folder = self._inbox(part)
        if ACKNOWLEDGED not in self._env.list(folder):
            return [0] * self._processes
        try:
            known: list[int] = json.loads(self._env.read(folder / ACKNOWLEDGED))
        except ValueError as error:
            raise StorageError(f"{folder / ACKNOWLEDGED} is damaged") from error
        return known

    def _inbox(self, part: int) -> Path:
        return self._folder / f"{part:04d}"
