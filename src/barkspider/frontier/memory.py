"""What a frontier holds in RAM, written to disk with each checkpoint and read back after a crash."""

from __future__ import annotations

import math
import struct
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Counters, Trail
from barkspider.frontier.politeness.hosts import Asked, Entry
from barkspider.frontier.politeness.pauses import HostPace
from barkspider.frontier.ready import Ready
from barkspider.frontier.robots.rules import ROBOTS, UNREACHABLE
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import Snapshot, read_snapshot

_REMEMBERED_TRAILS = 100_000  # of redirects on their way through the stages: about 20 MB
_ORIGIN = struct.Struct("<IIdd?")  # lengths of name and rules, learned, until, unreachable
_HOST = np.dtype(
    [("key", "<u8"), ("next_time", "<f8"), ("crawl_delay", "<f8"), ("trouble", "<u4"), ("duplicates", "<u4")]
)


class Trails:
    """The redirects that led to URLs which wait somewhere, by the keys of these; the oldest are forgotten.

    >>> trails = Trails()
    >>> trails.put(7, (1, 2)); trails.pop(7), trails.pop(7)
    ((1, 2), ())
    """

    def __init__(self) -> None:
        self._trails: OrderedDict[int, Trail] = OrderedDict()

    def put(self, key: int, trail: Trail) -> None:
        """Remember the trail of a URL."""
        self._trails[key] = trail
        if len(self._trails) > _REMEMBERED_TRAILS:
            self._trails.popitem(last=False)

    def pop(self, key: int) -> Trail:
        """Give out the trail of a URL; an empty one when there is none."""
        return self._trails.pop(key, ()) if self._trails else ()

    def save(self) -> npt.NDArray[np.uint64]:
        """All of them: key, length, and the keys of the trail, one after the other."""
        flat = [number for key, trail in self._trails.items() for number in (key, len(trail), *trail)]
        return np.array(flat, np.uint64)

    def load(self, saved: npt.NDArray[np.uint64]) -> None:
        """Take what `save` gave."""
        numbers, place = saved.tolist(), 0
        while place < len(numbers):
            key, length = numbers[place : place + 2]
            self.put(key, tuple(numbers[place + 2 : place + 2 + length]))
            place += 2 + length


@dataclass(frozen=True, slots=True)
class Kept:
    """What was in RAM at a checkpoint. `rows` were queued or under way."""

    head: dict[str, Any]
    arrays: dict[str, bytes]
    rows: UrlBatch
    trails: npt.NDArray[np.uint64]
    contents: npt.NDArray[np.uint64]
    counts: dict[str, Counter[Any]]

    def restore(self, ready: Ready, now: float) -> None:
        """Give `Ready` its hosts in trouble and the robots.txt that it was to ask for.

        No pause is longer than it was at the checkpoint, should the clock have been set back since then.
        """
        for key, next_time, crawl_delay, trouble, duplicates in np.frombuffer(
            self.arrays["paces"], _HOST
        ).tolist():
            pace = HostPace()
            pace.trouble, pace.crawl_delay = trouble, crawl_delay
            pace.next_time = min(next_time, now + next_time - self.head["now"])
            ready.restore(key, pace, duplicates)
        for asked in self.head["asked"]:
            ready.ask_again((str(asked[0]), str(asked[1]), int(asked[2])))


class Memory:
    """A file of what `Ready` and its owner hold; see the module. Part of the owner's structure."""

    def __init__(self, env: Env, folder: Path, name: str, state: dict[str, Any] | None) -> None:
        self._snapshot = Snapshot(env, folder, name, state)
        self.committed = self._snapshot.committed

    def write(
        self,
        ready: Ready,
        now: float,
        head: Mapping[str, Any],
        arrays: Mapping[str, Any],
        trails: Trails,
        counts: Mapping[str, Counter[Any]],
        contents: npt.NDArray[np.uint64],
    ) -> dict[str, Any]:
        """Write a new file, durably; the state of a `Structure`."""
        rows, paces = [], []
        asked: list[Asked] = []
        saved = Trails()
        saved.load(trails.save())
        for host in ready.hosts():
            entries = list(host.entries())
            asked += host.robots
            if isinstance(host.flying, Entry):
                entries.append(host.flying)
            elif host.flying is not None:
                asked.append(host.flying)
            for entry in entries:
                rows.append(entry.row)
                if entry.trail:
                    saved.put(entry.row.key, entry.trail)
            if host.trouble or host.next_time > now or host.duplicates:
                time = host.next_time if host.next_time > -math.inf else now
                paces.append((host.key, time, host.crawl_delay, host.trouble, host.duplicates))
        return self._snapshot.write(
            {"now": now, "asked": asked, **head},
            {
                "rows": UrlBatch.from_rows(rows).encode(),
                "trails": saved.save(),
                "contents": contents,
                "paces": np.array(paces, _HOST),
                **{f"count {name}": _table(counter) for name, counter in counts.items()},
                **arrays,
            },
        )

    def read(self) -> Kept:
        """What the last checkpoint has."""
        head, arrays = self._snapshot.read()
        prefix = "count "
        return Kept(
            head,
            arrays,
            UrlBatch.decode(arrays["rows"]),
            np.frombuffer(arrays["trails"], np.uint64),
            np.frombuffer(arrays["contents"], np.uint64),
            {name.removeprefix(prefix): _counter(data) for name, data in arrays.items() if prefix in name},
        )


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
