"""The time series of a crawl: what its counters said every second, thinned with age, kept with each checkpoint.

    statistics, queues, traffic ─► sample_of ─ every second ─► History ─ checkpoint ─► JOB/history ─► read_history ─► Samples

Counters only ever grow, so that a sample which is left out takes nothing with it: rates are differences between two that
are there. Everybody who shows a crawl over time takes it from here: the report, the dashboard, the metrics, the table
`history`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.engine.samples import Samples
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import MANIFEST, read_manifest
from barkspider.storage.store.snapshot import Snapshot, read_snapshot

NAME = "history"
# Every sample is kept until so many have followed it, every second one for twice as long, and so on: the last four minutes
# by the second, the last hour by the quarter of a minute, and a year in 3,500 samples of about 1 KB.
KEPT = 256
_MOST_NAMES = 1024  # reasons have names of our own, but a job may be of hundreds of parts
_PORTION = 200  # samples in an answer: 200 KB of the megabyte that a line may have
_ROWS = "rows"


class History:
    """The samples of one crawl, a `Structure`. One thread adds; what is prepared is written by any.

    Invariant: numbers ascend, and the sample with number n is there while fewer than `KEPT` · 2^z have followed it, where
    2^z is the largest power of two that divides n.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     history = History(Env(), Path(folder), None)
    ...     for number in range(1000):
    ...         history.add({"time": number, "pages": 10 * number})
    ...     len(history), history.since(997)["rows"]
    (506, [[998.0, 1.0, 998.0, 9980.0], [999.0, 1.0, 999.0, 9990.0]])
    """

    name = NAME

    def __init__(self, env: Env, folder: Path, state: Mapping[str, Any] | None) -> None:
        """Goes on with what the last checkpoint has."""
        self._snapshot = Snapshot(env, folder, NAME, dict(state) if state else None)
        self._places: dict[str, int] = {"number": 0, "run": 1}
        self._rows: list[array[float]] = []
        self._number, self._run = 0, 1
        if state is not None:
            kept = _samples(*self._snapshot.read(), folder / NAME)
            self._places = {name: place for place, name in enumerate(kept.names)}
            self._rows = [array("d", row) for row in kept.rows]
            if self._rows:
                self._number = int(self._rows[-1][0]) + 1
                self._run = int(self._rows[-1][1]) + 1

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self._rows)

    def add(self, sample: Mapping[str, float]) -> None:
        """Keep one moment; those that are too close to each other for their age go."""
        for name in sample:
            if name not in self._places and len(self._places) < _MOST_NAMES:
                self._places[name] = len(self._places)
        row = array("d", bytes(8 * len(self._places)))
        row[0], row[1] = self._number, self._run
        for name, value in sample.items():
            if name in self._places:
                row[self._places[name]] = value
        self._rows.append(row)
        self._rows = [each for each in self._rows if is_kept(int(each[0]), self._number)]
        self._number += 1

    def since(self, number: int) -> dict[str, Any]:
        """The samples behind one with this number, the oldest first and no more than fit into an answer; as JSON."""
        rows = [row.tolist() for row in self._rows if row[0] > number][:_PORTION]
        return {"names": list(self._places), "rows": rows}

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        names, rows = list(self._places), list(self._rows)
        return lambda: self._snapshot.write({"names": names}, {_ROWS: _packed(names, rows)})

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self._snapshot.committed()


def is_kept(number: int, last: int) -> bool:
    """Whether the sample with a number is still wanted when the one with number `last` is there.

    >>> [number for number in range(2000) if is_kept(number, 1999)][:5], is_kept(0, 10**9)
    ([0, 8, 16, 24, 32], True)
    """
    return not number or last - number < KEPT * (number & -number)


def read_history(env: Env, folder: Path) -> Samples:
    """What the last checkpoint of a job, or of a part of one, has of its time series; nothing when that is none."""
    for last in (False, True):  # a crawl that runs may replace it while we look
        if MANIFEST not in env.list(folder):
            break
        state = read_manifest(env, folder)[1].get(NAME)
        if state is None:
            break
        (file,) = state["files"]
        try:
            return _samples(*read_snapshot(env, folder / file), folder / file)
        except StorageError:
            if last:
                raise
    return Samples.empty()


def _packed(names: Sequence[str], rows: Iterable[Sequence[float]]) -> bytes:
    """Column by column: neighbours differ by little."""
    columns = Samples.of(names, rows).rows.T
    return zstandard.compress(np.ascontiguousarray(columns).tobytes(), 1)


def _samples(head: Mapping[str, Any], arrays: Mapping[str, bytes], path: Path) -> Samples:
    try:
        names = [str(name) for name in head["names"]]
        columns = np.frombuffer(zstandard.decompress(arrays[_ROWS]), np.float64).reshape(len(names), -1)
    except (KeyError, TypeError, ValueError, zstandard.ZstdError) as error:
        raise StorageError(f"{path} is damaged: {error!r}") from error
    return Samples(tuple(names), np.ascontiguousarray(columns.T))
