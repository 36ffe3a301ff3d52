"""What a frontier holds in RAM, written to disk with each checkpoint and read back after a crash."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Counters, Prepared
from barkspider.core.records import UrlRow
from barkspider.frontier.gate import Gate, Saved
from barkspider.frontier.politeness.hosts import QueuedUrl, State
from barkspider.frontier.politeness.pauses import HostPace
from barkspider.frontier.ready import Ready
from barkspider.frontier.robots.rules import ROBOTS, UNREACHABLE
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import Snapshot, read_snapshot

_ORIGIN = struct.Struct("<IIdd?")  # lengths of name and rules, learned, until, unreachable
_HOST = np.dtype(
    [("key", "<u8"), ("next_time", "<f8"), ("crawl_delay", "<f8"), ("trouble", "<u4"), ("duplicates", "<u4")]
)
_COUNT = "count "  # begins the names of arrays that are counters


@dataclass(frozen=True, slots=True)
class Remembered:
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
        # What was queued or under way is not in RAM any more: it comes back from Q_W, and counts as what lies there.
        counters.deferred += counters.queued + counters.in_flight
        counters.queued = counters.in_flight = 0
        rows = UrlBatch.decode(self.arrays["rows"])
        gate.delays.put(np.full(len(rows), gate.now), rows)
        gate.trails.load(np.frombuffer(self.arrays["trails"], np.uint64))
        for name, counter in _counters(gate).items():
            counter.update(_counter(self.arrays[_COUNT + name]))
        paces = np.frombuffer(self.arrays["paces"], _HOST)
        # Checkpoints of before do not tell the domains of hosts.
        domains = np.frombuffer(self.arrays.get("pace domains", bytes(8 * len(paces))), np.uint64)
        for (key, next_time, crawl_delay, trouble, duplicates), domain in zip(
            paces.tolist(), domains.tolist(), strict=True
        ):
            pace = HostPace()
            pace.trouble, pace.crawl_delay = trouble, crawl_delay
            pace.next_time = min(next_time, gate.now + next_time - self.head["now"])
            gate.ready.restore(key, pace, duplicates, domain)
        for asked in self.head["asked"]:
            gate.ready.ask_again((str(asked[0]), str(asked[1]), int(asked[2])))


class Memory:
    """A file of what a gate and its source hold in RAM; see the module. Part of the driver's structure."""

    def __init__(self, env: Env, folder: Path, name: str, state: dict[str, Any] | None) -> None:
        self._snapshot = Snapshot(env, folder, name, state)
        self.committed = self._snapshot.committed

    def prepare(self, gate: Gate, saved: Saved) -> Prepared:
        """See `core.events.Structure`; `saved` is what the source has. There may be 100,000 hosts, most of them idle, and
        as many URLs: what need not be done before the crawl goes on is not done here."""
        now, idle, trails = gate.now, State.IDLE, gate.trails.copy()
        busy = [host for host in gate.ready.hosts() if host.state is not idle]
        flying = [host.flying for host in busy if host.flying is not None]
        asked = [each for each in flying if isinstance(each, tuple)]
        for host in busy:
            if host.robots or host.errands:
                asked += host.robots + host.errands
        rows = list[UrlRow]()
        entries = [each for each in flying if isinstance(each, QueuedUrl)]
        behind = [host.first for host in busy if host.first is not None]
        while entries or behind:  # the first of each host, then the second
            rows += [entry.row for entry in entries]
            for entry in [entry for entry in entries if entry.trail]:
                trails.put(entry.row.key, entry.trail)
            entries, behind = behind, [entry.behind for entry in behind if entry.behind is not None]
        troubled = [
            host for host in gate.ready.hosts() if host.next_time > now or host.trouble or host.duplicates
        ]
        paces = [
            (
                host.key,
                host.next_time if host.next_time > -math.inf else now,
                host.crawl_delay,
                host.trouble,
                host.duplicates,
            )
            for host in troubled
        ]
        domains = [host.pld for host in troubled]
        counters = {name: dict(counter) for name, counter in _counters(gate).items()}
        head = {"now": now, "asked": asked, "counters": asdict(gate.counters)}

        def describe() -> dict[str, Any]:
            more, arrays = saved()
            return self._snapshot.write(
                {**head, **more},
                {
                    "rows": UrlBatch.from_rows(rows).encode(),
                    "trails": trails.save(),
                    "paces": np.array(paces, _HOST),
                    "pace domains": np.array(domains, np.uint64),
                    **{_COUNT + name: _table(counter) for name, counter in counters.items()},
                    **arrays,
                },
            )

        return describe

    def read(self) -> Remembered:
        """What the last checkpoint has."""
        return Remembered(*self._snapshot.read())


def _counters(gate: Gate) -> dict[str, Counter[Any]]:
    return {"done": gate.done, **gate.shares.counters()}


def _table(counter: Mapping[Any, int]) -> npt.NDArray[np.uint64]:
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


def save_origins(ready: Ready) -> Callable[[], bytes]:
    """All that `Ready` knows of robots.txt, for a frontier that keeps it nowhere else; what is returned packs it."""
    known = [
        (each.name, each.rules, each.learned, each.until, each.refusal != ROBOTS)
        for host in ready.hosts()
        for each in host.origins
        if each.until > -math.inf
    ]

    def pack() -> bytes:
        parts = list[bytes]()
        for text, obeyed, *rest in known:
            name, rules = text.encode(), obeyed.encode()
            parts += _ORIGIN.pack(len(name), len(rules), *rest), name, rules
        return b"".join(parts)

    return pack


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
