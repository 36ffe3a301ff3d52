"""Batches between parts that never see each other, by way of a folder that somebody carries (Parallel Crawlers, end of
section 9: exchange needs a connection now and then, no more).

    JOB here, part 0: mail/0001/ ─ --to ─► DIR/mail/0001/ ─ carried ─► --from ─► JOB there, part 1: mail/0001/
                      mail/0001/acknowledged.json ◄─ --from ─ DIR ◄─ --to ─ mail/0001/acknowledged.json

Batches for a part that is elsewhere gather in its inbox here. They stay until that part has said that they are safe, which
comes back by the same way; so a folder may get lost, be carried twice, or be late. Either command may run beside a crawl.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from barkspider.core.errors import JobError, StorageError, UsageError
from barkspider.core.settings import Settings
from barkspider.engine.folder import DIVISION, check_contents, parts_in, read_division
from barkspider.frontier.batches import MAIL, check_batch
from barkspider.parallel.division import here
from barkspider.parallel.post import ACKNOWLEDGED, BATCH, read_ranks
from barkspider.storage.env import Env

_LONGEST = 1 << 16  # bytes of what is acknowledged: a number for each of 4,096 parts
_RANKS = re.compile(r"ranks-(\d{4})\.snapshot", re.ASCII)


@dataclass(slots=True)
class Carried:
    """How many batches were copied, and how many are there that the parts elsewhere have not said to be safe."""

    batches: int = 0
    bytes: int = 0
    waiting: int = 0


class Carrier:
    """See the module: one job, and one folder that is carried. Nothing is held open."""

    def __init__(self, env: Env, job: Path, settings: Settings, folder: Path) -> None:
        """Raises `UsageError` for a job that has all its parts here, `JobError` for a folder of another job."""
        if not (job / DIVISION).is_file():
            raise UsageError(f"{job} is crawled by one process, which has nothing to exchange")
        self._env, self._folder = env, folder
        self._about = {name: value for name, value in read_division(job).items() if name != "earlier"}
        self._here = here(settings)
        self._elsewhere = [part for part in range(self._about["processes"]) if part not in self._here]
        if not self._elsewhere:
            raise UsageError(
                f"{job} has all its parts here, and they exchange by themselves; say which are here with "
                "--set parallel.here=0,1"
            )
        self._mail = parts_in(job, self._about) / MAIL
        if folder.is_dir():  # whoever filled it may have put links there, to other folders of ours
            check_contents(folder)

    def to(self) -> Carried:
        """Copy what is for parts elsewhere, and what the parts here have safe, into the folder."""
        carried = Carried()
        if DIVISION in self._env.list(self._folder):
            self._check_folder()
        else:
            if self._env.list(self._folder):
                raise JobError(
                    f"{self._folder} holds something else; name a new folder, or one that was carried"
                )
            self._env.make_folder(self._folder)
            self._env.write_whole(self._folder / DIVISION, tomli_w.dumps(self._about).encode())
        for part in self._elsewhere:
            known, folder = self._acknowledged(self._mail, part), self._folder / MAIL / _name(part)
            self._env.make_folder(folder)
            self._forget(folder, known)
            for name in self._batches(self._mail / _name(part)):
                carried.waiting += 1
                self._copy(self._mail / _name(part) / name, folder / name, carried)
        for part in self._here:
            if ACKNOWLEDGED in self._env.list(self._mail / _name(part)):
                folder = self._folder / MAIL / _name(part)
                self._env.make_folder(folder)
                self._join(self._acknowledged(self._mail, part), folder)
        self._copy_ranks(self._mail, self._folder / MAIL, self._here)
        return carried

    def fetch(self) -> Carried:
        """Copy what is for parts here, and what parts elsewhere have safe, out of the folder."""
        carried = Carried()
        self._check_folder()
        for part in self._here:
            known, folder = self._acknowledged(self._mail, part), self._folder / MAIL / _name(part)
            for name in self._batches(folder):
                sender, number = _parsed(name)
                if number > known[sender]:
                    self._copy(folder / name, self._mail / _name(part) / name, carried)
        for part in self._elsewhere:
            self._env.make_folder(self._mail / _name(part))
            self._join(self._acknowledged(self._folder / MAIL, part), self._mail / _name(part))
            self._forget(self._mail / _name(part), self._acknowledged(self._mail, part))
            carried.waiting += len(self._batches(self._mail / _name(part)))
        self._copy_ranks(self._folder / MAIL, self._mail, self._elsewhere)
        return carried

    def _check_folder(self) -> None:
        if DIVISION not in self._env.list(self._folder):
            raise JobError(f"{self._folder} is no folder that `barkspider exchange --to` has filled")
        if read_division(self._folder) != self._about:
            raise JobError(
                f"{self._folder} is of another crawl: both must have the same seed, processes, mode and partition"
            )

    def _copy(self, old: Path, new: Path, carried: Carried) -> None:
        """Copy a batch that is not there, as a whole or not at all; a damaged one is refused."""
        if new.name in self._env.list(new.parent):
            return
        try:
            check_batch(self._env, old)
        except StorageError as error:
            raise StorageError(
                f"{error}; the part that it comes from has it still: carry it once more"
            ) from error
        data = self._env.read(old)
        self._env.make_folder(new.parent)
        self._env.write_whole(new, data)
        carried.batches += 1
        carried.bytes += len(data)

    def _copy_ranks(self, old: Path, new: Path, parts: list[int]) -> None:
        """How many domains of these parts have which in-degree."""
        for name in self._env.list(old):
            match = _RANKS.fullmatch(name)
            if match and int(match[1]) in parts:
                read_ranks(self._env, old / name)
                self._env.write_whole(new / name, self._env.read(old / name))

    def _acknowledged(self, mail: Path, part: int) -> list[int]:
        """Up to which batch of each sender a part has all safe, as far as it is known there."""
        count = self._about["processes"]
        path = mail / _name(part) / ACKNOWLEDGED
        if ACKNOWLEDGED not in self._env.list(path.parent):
            return [0] * count
        try:
            known = json.loads(self._env.read(path, 0, _LONGEST))
            if len(known) != count or not all(type(number) is int and number >= 0 for number in known):
                raise ValueError("numbers of batches, one for each part")
        except (ValueError, TypeError, RecursionError) as error:
            raise StorageError(f"{path} is damaged: it should have {error}; carry it once more") from error
        return list(known)

    def _join(self, known: list[int], folder: Path) -> None:
        """What a part has safe never becomes less, whichever of two folders was carried later."""
        before = self._acknowledged(folder.parent, int(folder.name))
        joined = [max(pair) for pair in zip(known, before, strict=True)]
        if joined != before:
            self._env.write_whole(folder / ACKNOWLEDGED, json.dumps(joined).encode())

    def _forget(self, folder: Path, known: list[int]) -> None:
        """Batches that are safe where they were sent to go."""
        for name in self._batches(folder):
            sender, number = _parsed(name)
            if number <= known[sender]:
                self._env.remove(folder / name)

    def _batches(self, folder: Path) -> list[str]:
        return [name for name in self._env.list(folder) if BATCH.fullmatch(name)]


def _name(part: int) -> str:
    return f"{part:04d}"


def _parsed(name: str) -> tuple[int, int]:
    match = BATCH.fullmatch(name)
    assert match is not None
    return int(match[1]), int(match[2])
