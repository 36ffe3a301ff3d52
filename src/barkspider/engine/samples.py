"""Samples of a crawl: numbers by name at moments, of one process or of all, and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Column = npt.NDArray[np.float64]

_COUNTS = (
    *("number", "run", "pages", "unchanged", "bytes", "links", "unique_urls", "discovered", "redirects"),
    *("queued", "deferred", "in_flight", "dropped", "ahead", "robots_files", "hosts", "domains", "edges"),
    *("origins", "over_budget", "rescans", "largest", "rss", "disk_free", "checkpoints", "loop_held"),
)
_MEASURES = ("seconds", "cpu_seconds", "checkpoint_seconds", "checkpoint_written_seconds", "budget")
GROUPS = (
    *(
        "queues",
        "refused",
        "failed",
        "out_of_scope",
        "robots_failed",
        "rejected",
        "drums",
        "ram",
        "ram_share",
    ),
    *("exchange", "phases", "fetches"),
)
SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us")),
        *((name, pa.int64()) for name in _COUNTS),
        *((name, pa.float64()) for name in _MEASURES),
        *((name, pa.map_(pa.string(), pa.float64())) for name in GROUPS),
    ]
)
# Of several processes: what is not a sum.
_LARGEST, _SMALLEST = frozenset({"number", "run", "seconds", "loop_held"}), frozenset({"disk_free", "budget"})


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Moments in order, a row each, with a column for each name; what a moment did not have is 0.

    >>> samples = Samples.of(["time", "run", "pages", "failed.dns"], [[0, 1, 5], [2, 1, 9, 3]])
    >>> samples.column("pages").tolist(), samples.column("unknown").tolist(), list(samples.group("failed"))
    ([5.0, 9.0], [0.0, 0.0], ['dns'])
    >>> samples.rate("pages").tolist(), samples.last("failed.dns")
    ([0.0, 2.0], 3.0)
    """

    names: tuple[str, ...]
    rows: npt.NDArray[np.float64]

    @classmethod
    def of(cls, names: Sequence[str], rows: Iterable[Sequence[float]]) -> Samples:
        """From rows that may lack the last columns, because these came later."""
        given = list(rows)
        whole = np.zeros((len(given), len(names)))
        for number, row in enumerate(given):
            whole[number, : len(row)] = row
        return cls(tuple(names), whole)

    @classmethod
    def empty(cls) -> Samples:
        """None."""
        return cls((), np.zeros((0, 0)))

    def __len__(self) -> int:
        """How many moments."""
        return len(self.rows)

    def column(self, name: str) -> Column:
        """A number at every moment."""
        if name not in self.names:
            return np.zeros(len(self.rows))
        return self.rows[:, self.names.index(name)]

    def group(self, name: str) -> dict[str, Column]:
        """The members of a group, by their names within it."""
        start = f"{name}."
        return {each.removeprefix(start): self.column(each) for each in self.names if each.startswith(start)}

    def last(self, name: str) -> float:
        """A number at the last moment; 0 when there is none."""
        return float(self.column(name)[-1]) if len(self.rows) else 0.0

    def rate(self, name: str) -> Column:
        """By how much a counter grew, a second, since the moment before; 0 where another run begins."""
        if not len(self.rows):
            return np.zeros(0)
        times, counted, runs = self.column("time"), self.column(name), self.column("run")
        seconds, grown = np.diff(times), np.diff(counted)
        goes_on = (np.diff(runs) == 0) & (seconds > 0)
        speeds = np.divide(grown, seconds, out=np.zeros(len(grown)), where=goes_on)
        return np.concatenate([[0.0], np.maximum(speeds, 0.0)])

    def joined(self, later: Samples) -> Samples:
        """These and later ones."""
        if not len(self.rows):
            return later
        names = [*self.names, *(name for name in later.names if name not in self.names)]
        rows = np.zeros((len(self) + len(later), len(names)))
        rows[: len(self), : len(self.names)] = self.rows
        for name in later.names:
            rows[len(self) :, names.index(name)] = later.column(name)
        return Samples(tuple(names), rows)

    def table(self) -> pa.Table:
        """As the table `history`: a column for each number, and one of pairs for each group."""
        columns: list[pa.Array] = []
        for field in SCHEMA:
            if field.name == "time":
                micro = np.round(self.column("time") * 1e6).astype(np.int64)
                columns.append(pa.array(micro).cast(field.type))
            elif field.name in GROUPS:
                columns.append(_pairs(self.group(field.name), len(self), field.type))
            else:
                values = self.column(field.name)
                whole = pa.types.is_integer(field.type)
                columns.append(pa.array(values.astype(np.int64) if whole else values))
        return pa.Table.from_arrays(columns, schema=SCHEMA)


def _pairs(group: dict[str, Column], length: int, kind: pa.DataType) -> pa.Array:
    names = list(group)
    offsets = np.arange(length + 1, dtype=np.int32) * len(names)
    keys = pa.array(names * length, pa.string())
    values = np.stack(list(group.values()), axis=1).reshape(-1) if names else np.zeros(0)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, pa.array(values)).cast(kind)


def merge(parts: Sequence[Samples]) -> Samples:
    """The samples of all parts of a job as those of one crawl: at each moment of the part with most samples, sums of what
    every part said last; the largest where a sum says nothing, such as of the longest pause.

    >>> one = Samples.of(["time", "run", "pages", "disk_free"], [[0, 1, 5, 70], [2, 1, 9, 60]])
    >>> two = Samples.of(["time", "run", "pages", "disk_free"], [[1, 1, 7, 65]])
    >>> [merge([one, two]).column(name).tolist() for name in ("run", "pages", "disk_free")]
    [[1.0, 1.0], [5.0, 16.0], [70.0, 60.0]]
    >>> merge([one, Samples.of(["time", "run", "pages"], [[9, 1, 7]])]).column("pages").tolist()
    [5.0, 9.0, 16.0]
    """
    found = [part for part in parts if len(part)]
    if len(found) < 2:
        return found[0] if found else Samples.empty()
    # Of the others the last word counts too, though it may come later.
    times, last = max(found, key=len).column("time"), max(part.last("time") for part in found)
    times = times if times[-1] == last else np.append(times, last)
    names = list(dict.fromkeys(name for part in found for name in part.names))
    rows = np.zeros((len(times), len(names)))
    for part in found:
        places = np.searchsorted(part.column("time"), times, side="right") - 1
        begun = places >= 0
        for number, name in enumerate(names):
            if name == "time" or name not in part.names:
                continue
            values, whole = part.column(name)[places[begun]], rows[:, number]
            if name in _LARGEST:
                whole[begun] = np.maximum(whole[begun], values)
            elif name in _SMALLEST:
                whole[begun] = np.where(whole[begun] > 0, np.minimum(whole[begun], values), values)
            else:
                whole[begun] += values
    rows[:, names.index("time")] = times
    return Samples(tuple(names), rows)
