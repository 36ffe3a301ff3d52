"""How the processes of a crawl on one machine reach each other: batches by links to files, turns by a shared table.

JOB/part-0001/exchange/0002-00000007.snapshot ─ hard link ─► JOB/mail/0002/0001-00000007.snapshot
JOB/mail/0002/acknowledged.json: up to which batch of each sender all is safe in part 2
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import Protocol

import numpy as np

from barkspider.core.errors import StorageError
from barkspider.core.events import Received
from barkspider.core.settings import Settings
from barkspider.frontier.batches import MAIL, NAME, batch_name, checksum_of, inbox, scope_of
from barkspider.model.budgets import Distribution
from barkspider.parallel.turns import Turns
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import read_snapshot, write_snapshot

ACKNOWLEDGED, TURNS = "acknowledged.json", "turns"
BATCH = re.compile(r"(\d{4})-(\d{8})\.snapshot", re.ASCII)
_READ_AGAIN = 2.0  # seconds until it is read again what others have acknowledged
_MARGIN = 10.0  # seconds by which a lease is longer than the longest fetch: a loop may be held


class TurnTable(Protocol):
    """Where turns at servers are had: a shared table on one machine, a station on several."""

    answered: (
        Callable[[str, float], None] | None
    )  # who hears what came of a turn that a station was asked for

    def take(self, address: str) -> float | None:
        """0 if the turn is ours from now on; else the seconds after which it may be free; None if that is answered later."""
        ...

    def rest(self, address: str, seconds: float) -> None:
        """Give a turn back: for so long nobody gets it."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def turn_lease(settings: Settings) -> float:
    """Seconds after which a turn whose holder died is free: the longest fetch and the pause behind it would be over."""
    return settings.fetch.timeout + settings.politeness.server_delay + _MARGIN


def ranks_name(part: int) -> str:
    """The file in which a part publishes how many of its domains have which in-degree."""
    return f"ranks-{part:04d}.snapshot"


def read_ranks(env: Env, path: Path) -> Distribution:
    """What a part has published; `StorageError` for anything else."""
    _, arrays = read_snapshot(env, path)
    try:
        degrees, counts = (np.frombuffer(arrays[name], np.int64) for name in ("degrees", "counts"))
    except (LookupError, ValueError) as error:
        raise StorageError(f"{path} is damaged: {error!r}") from error
    if len(degrees) != len(counts) or (len(counts) and min(degrees.min(), counts.min()) < 0):
        raise StorageError(f"{path} is damaged: it should have a number for each in-degree")
    return Distribution(degrees, counts)


class Post:
    """The `engine.neighbours.Neighbours` of one part. Lives on its loop."""

    def __init__(self, env: Env, folder: Path, settings: Settings, turns: TurnTable | None = None) -> None:
        """`folder` is that of the part; without `turns` they are those of this machine."""
        parallel = settings.parallel
        self._env, self._folder = env, folder
        self._part, self._processes = parallel.part, parallel.processes
        self._inbox = inbox(folder, self._part)
        self._acknowledged, self._read_at = [0] * self._processes, 0.0
        self._turns: TurnTable = turns or Turns(folder.parent / TURNS, settings.seed, turn_lease(settings))
        self._published: Distribution | None = None
        self._heard: dict[int, int] = {}  # what others had published, by its checksum
        env.make_folder(self._inbox)

    def take_turn(self, address: str) -> float | None:
        """See `Neighbours`."""
        return 0.0 if self._processes == 1 else self._turns.take(address)

    def hear_turns(self, answered: Callable[[str, float], None]) -> None:
        """See `Neighbours`."""
        self._turns.answered = answered

    def rest(self, address: str, seconds: float) -> None:
        """See `Neighbours`."""
        self._turns.rest(address, seconds)

    def deliver(self, batches: Iterable[tuple[int, int]]) -> None:
        """See `Neighbours`."""
        there = {to: set(self._env.list(inbox(self._folder, to))) for to, _ in batches}
        known = self._read()
        for to, number in batches:
            name = batch_name(self._part, number)
            if number > known[to] and name not in there[to]:
                self._env.link(self._folder / NAME / batch_name(to, number), inbox(self._folder, to) / name)

    def arrived(self, after: Sequence[int]) -> list[Received]:
        """See `Neighbours`."""
        there = {name for name in self._env.list(self._inbox) if BATCH.fullmatch(name)}
        found = []
        for sender, last in enumerate(after) if there else ():
            number = last + 1
            while (name := batch_name(sender, number)) in there:
                found.append(Received(sender, number, checksum_of(self._env, self._inbox / name)))
                number += 1
        return found

    def scope_of(self, batch: Received) -> list[str]:
        """See `Neighbours`."""
        return scope_of(self._env, self._inbox / batch_name(batch.sender, batch.number))

    def publish(self, ranks: Distribution) -> None:
        """See `Neighbours`: a file in the folder of the mail, replaced in one step; a lost one is published again."""
        if self._published is not ranks:
            self._published = ranks
            arrays = {"degrees": ranks.degrees, "counts": ranks.counts}
            path = self._ranks(self._part)
            write_snapshot(self._env, path.with_suffix(".new"), {}, arrays)
            self._env.rename(path.with_suffix(".new"), path)

    def ranks(self) -> Distribution | None:
        """See `Neighbours`."""
        there, total, news = set(self._env.list(self._folder.parent / MAIL)), None, False
        for part in range(self._processes):
            path = self._ranks(part)
            if part == self._part or path.name not in there:
                continue
            told = read_ranks(self._env, path)
            found = checksum_of(self._env, path)
            news = news or self._heard.get(part) != found
            self._heard[part] = found
            total = told if total is None else total.plus(told)
        return total if news else None

    def acknowledge(self, applied: Sequence[int]) -> None:
        """See `Neighbours`: first it is said, then what is not needed any more goes."""
        self._env.write_whole(self._inbox / ACKNOWLEDGED, json.dumps(list(applied)).encode())
        for name in self._env.list(self._inbox):
            match = BATCH.fullmatch(name)
            if match and int(match[2]) <= applied[int(match[1])]:
                self._env.remove(self._inbox / name)

    def acknowledged(self) -> Sequence[int]:
        """See `Neighbours`."""
        if monotonic() >= self._read_at:
            self._acknowledged, self._read_at = self._read(), monotonic() + _READ_AGAIN
        return self._acknowledged

    def close(self) -> None:
        """Let go of the table of turns."""
        self._turns.close()

    def _ranks(self, part: int) -> Path:
        return self._folder.parent / MAIL / ranks_name(part)

    def _read(self) -> list[int]:
        known = []
        for to in range(self._processes):
            folder = inbox(self._folder, to)
            there = ACKNOWLEDGED in self._env.list(folder)
            known.append(json.loads(self._env.read(folder / ACKNOWLEDGED))[self._part] if there else 0)
        return known
