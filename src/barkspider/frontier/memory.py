"""What a frontier holds in RAM, written to disk with each checkpoint and read back after a crash."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Counters
from barkspider.frontier.gate import Gate
from barkspider.frontier.politeness.hosts import Asked, Entry
from barkspider.frontier.politeness.pauses import HostPace
from barkspider.frontier.ready import Ready
from barkspider.frontier.robots.rules import ROBOTS, UNREACHABLE
from barkspider.frontier.trails import Trails
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import Snapshot, read_snapshot

_ORIGIN = struct.Struct("<IIdd?")  # lengths of name and rules, learned, until, unreachable
_HOST = np.dtype(
    [("key", "<u8"), ("next_time", "<f8"), ("crawl_delay", "<f8"), ("trouble", "<u4"), ("duplicates", "<u4")]
)
_COUNT = "count "  # begins the names of arrays that are counters


@dataclass(frozen=True, slots=True)
class Kept:
    """What was in RAM at a checkpoint; `head` and `arrays` have what the source saved as well."""

    head: dict[str, Any]
    arrays: dict[str, bytes]

    def restore(self, gate: Gate) -> None:
        """Give a new gate what the earlier one had; its `now` is that of this run.

        No pause is longer than it was at the checkpoint, should the clock have been set back since then.
        """
        counters = gate.counters
        for name, value in self.head["counters"].items():
            setattr(counters, name, value)
        # What was queued or under way comes back from Q_W, as what it is: not to be found in RAM.
        counters.deferred += counters.queued + counters.in_flight
        counters.queued = counters.in_flight = 0
        rows = UrlBatch.decode(self.arrays["rows"])
        gate.delays.put(np.full(len(rows), gate.now), rows)
        gate.trails.load(np.frombuffer(self.arrays["trails"], np.uint64))
        for name, counter in _counters(gate).items():
            counter.update(_counter(self.arrays[_COUNT + name]))
        for key, next_time, crawl_delay, trouble, duplicates in np.frombuffer(
            self.arrays["paces"], _HOST
        ).tolist():
            pace = HostPace()
            pace.trouble, pace.crawl_delay = trouble, crawl_delay
            pace.next_time = min(next_time, gate.now + next_time - self.head["now"])
            gate.ready.restore(key, pace, duplicates)
        for asked in self.head["asked"]:
            gate.ready.ask_again((str(asked[0]), str(asked[1]), int(asked[2])))


class Memory:
    """A file of what a gate and its source hold in RAM; see the module. Part of the driver's structure."""

    def __init__(self, env: Env, folder: Path, name: str, state: dict[str, Any] | None) -> None:
        self._snapshot = Snapshot(env, folder, name, state)
        self.committed = self._snapshot.committed

    def write(
        self,
        gate: Gate,
        head: Mapping[str, Any],
        arrays: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Write a new file, durably; the state of a `Structure`. `head` and `arrays` are what the source saved."""
        rows, paces = [], []
        asked: list[Asked] = []
        trails = Trails(gate.trails.most)
        trails.load(gate.trails.save())
        for host in gate.ready.hosts():
            entries = list(host.entries())
            asked += host.robots + host.errands
            if isinstance(host.flying, Entry):
                entries.append(host.flying)
            elif host.flying is not None:
                asked.append(host.flying)
            for entry in entries:
                rows.append(entry.row)
                if entry.trail:
                    trails.put(entry.row.key, entry.trail)
            if host.trouble or host.next_time > gate.now or host.duplicates:
                time = host.next_time if host.next_time > -math.inf else gate.now
                paces.append((host.key, time, host.crawl_delay, host.trouble, host.duplicates))
        return self._snapshot.write(
            {"now": gate.now, "asked": asked, "counters": asdict(gate.counters), **head},
            {
                "rows": UrlBatch.from_rows(rows).encode(),
                "trails": trails.save(),
                "paces": np.array(paces, _HOST),
                **{_COUNT + name: _table(counter) for name, counter in _counters(gate).items()},
                **arrays,
            },
        )

    def read(self) -> Kept:
        """What the last checkpoint has."""
        return Kept(*self._snapshot.read())


def _counters(gate: Gate) -> dict[str, Counter[Any]]:
    return {"done": gate.done, **gate.shares.counters()}


def _table(counter: Counter[Any]) -> npt.NDArray[np.uint64]:
    """Keys and counts as rows of numbers. Keys are numbers, or tuples of them, all of the same length."""
    rows = [(*(key if isinstance(key, tuple) else (key,)), count) for key, count in counter.items()]
    width = len(rows[0]) if rows else 0
    return np.array([width, *(number for row in rows for number in row)], np.uint64)


def _counter(data: bytes) -> Counter[Any]:
    numbers = np.frombuffer(data, np.uint64)
    width = int(numbers[0])
    found: Counter[Any] = Counter()
    if width:
        for *key, count in numbers[1:].reshape(-1, width).tolist():
            found[tuple(key) if width > 2 else key[0]] = count
    return found


def read_counters(env: Env, snapshot: Path) -> Counters:
    """What a frontier had counted by a checkpoint whose file this is."""
    try:
        return Counters(**read_snapshot(env, snapshot)[0]["counters"])
    except (KeyError, TypeError) as error:
        raise StorageError(f"{snapshot} has no counters") from error


def save_origins(ready: Ready) -> bytes:
    """All that `Ready` knows of robots.txt, for a frontier that keeps it nowhere else."""
    parts = []
    for host in ready.hosts():
        for known in host.origins:
            if known.until > -math.inf:
                name, rules = known.name.encode(), known.rules.encode()
                unreachable = known.refusal != ROBOTS
                parts.append(
                    _ORIGIN.pack(len(name), len(rules), known.learned, known.until, unreachable)
                    + name
                    + rules
                )
    return b"".join(parts)


def load_origins(ready: Ready, saved: bytes) -> None:
    """Take what `save_origins` gave."""
    place = 0
    while place < len(saved):
        name, rules, learned, until, unreachable = _ORIGIN.unpack_from(saved, place)
        place += _ORIGIN.size
        text, kept = saved[place : place + name], saved[place + name : place + name + rules]
        refusal = UNREACHABLE if unreachable else ROBOTS
        ready.permit(text.decode(), until, learned, refusal, kept)
        place += name + rules
