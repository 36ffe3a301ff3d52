"""A DRUM beside a dict: every operation is done to both, and both must agree.

The state machine of `test_drum_model` and `python -m benchmarks model` drive it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from barkspider.storage.drum.repository import CHECK, UPDATE, Drum
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store

FOLDER = Path("/job")
NUMBER = np.dtype("<i4")


class Row(NamedTuple):
    """One row to feed; `value` is None in a DRUM without values."""

    op: int
    key: int
    value: Any
    aux: bytes


class Config(NamedTuple):
    """A kind of DRUM to test."""

    value: Any = None
    update: str = "replace"
    output: str = "all"
    buckets: int = 1
    buffer: int = 256
    bucket_bytes: int = 4096
    segment: int = 1000
    front: int = 0
    background: bool = False


@dataclass
class Model:
    """What the DRUM should hold: its pairs, and for each bucket the results that have not been taken."""

    pairs: dict[int, Any] = field(default_factory=dict)
    results: dict[int, deque[tuple[int, bool, Any, bytes]]] = field(
        default_factory=lambda: defaultdict(deque)
    )

    def copy(self) -> Model:
        """Another of the same content."""
        results = defaultdict(deque, {bucket: deque(rows) for bucket, rows in self.results.items()})
        return Model(dict(self.pairs), results)


class Pair:
    """A DRUM in a store, and its model; `committed` is the model as of the last commit."""

    def __init__(self, env: Env, config: Config) -> None:
        self.env, self.config = env, config
        self.model = Model()
        self.committed = Model()
        self._shift = 64 - (config.buckets.bit_length() - 1)
        self._open()

    def _open(self) -> None:
        config = self.config
        self.store = Store.open(self.env, FOLDER)
        self.drum = Drum(
            self.env,
            FOLDER,
            "drum",
            value=config.value,
            aux=True,
            update=config.update,
            output=config.output,
            sizing=Sizing(config.buckets, config.buffer, config.bucket_bytes, 1 << 40),
            front=config.front,
            segment=config.segment,
            background=config.background,
            state=self.store.state("drum"),
        )
        self.store.add(self.drum)

    def feed(self, rows: Sequence[Row]) -> None:
        """Rows to both."""
        ops = {row.op for row in rows}
        values = None if self.config.value is None else [row.value for row in rows]
        self.drum.feed(
            ops.pop() if len(ops) == 1 else np.array([row.op for row in rows], np.uint8),
            np.array([row.key for row in rows], np.uint64),
            np.array(values, self.config.value) if self.config.value is NUMBER else values,
            [row.aux for row in rows],
        )
        for row in rows:
            self.apply(row)

    def apply(self, row: Row) -> None:
        """A row to the model alone."""
        pairs, unique = self.model.pairs, row.key not in self.model.pairs
        if row.op & CHECK and (unique or self.config.output == "all"):
            found = (row.key, unique, pairs.get(row.key), row.aux)
            self.model.results[row.key >> self._shift].append(found)
        if row.op & UPDATE:
            pairs[row.key] = _updated(self.config.update, unique, pairs.get(row.key), row.value)

    def merge(self, wait: bool = True) -> None:
        """Merge; the model has nothing to do."""
        self.drum.merge(wait)

    def expunge(self, divisor: int) -> None:
        """Drop the keys that a number divides."""
        self.drum.merge(expunge=lambda keys, values: keys % np.uint64(divisor) == 0)
        self.model.pairs = {key: value for key, value in self.model.pairs.items() if key % divisor}

    def take(self, most: int = 1 << 60) -> None:
        """Take up to `most` blocks of results; they must be the next of their buckets."""
        for block in self.drum.results():
            values = [None] * len(block) if block.values is None else block.values.tolist()
            assert block.aux is not None
            for key, unique, value, aux in zip(
                block.keys.tolist(), block.unique.tolist(), values, block.aux.tolist(), strict=True
            ):
                expected = self.model.results[key >> self._shift].popleft()
                assert (key, unique, None if unique else value, aux) == expected
            most -= 1
            if most <= 0:
                break

    def commit(self) -> None:
        """Commit both."""
        self.store.commit()
        self.committed = self.model.copy()

    def reopen(self, crash: str = "", random: Random | None = None) -> None:
        """Leave without a commit and come back, after a crash if one is named: both are as committed."""
        self.drum.close()
        if crash:
            self.env = self.env.crash(crash, random or Random(1))  # type: ignore[attr-defined]
        self.model = self.committed.copy()
        self._open()

    def check(self) -> None:
        """Merge all, take all, and compare everything."""
        self.merge()
        self.take()
        self.drum.validate()
        assert not any(self.model.results.values())
        assert self.drum.pending == 0
        assert stored(self.drum) == self.model.pairs
        assert len(self.drum) == len(self.model.pairs)


def stored(drum: Drum) -> dict[int, Any]:
    """All pairs of Z."""
    pairs: dict[int, Any] = {}
    for keys, values in drum.items():
        pairs.update(
            zip(keys.tolist(), [None] * len(keys) if values is None else values.tolist(), strict=True)
        )
    return pairs


def _updated(update: str, unique: bool, old: Any, new: Any) -> Any:
    if update == "union":
        items = {text[at : at + 8] for text in (b"" if unique else old, new) for at in range(0, len(text), 8)}
        return b"".join(sorted(items, key=lambda item: int.from_bytes(item, "little")))
    if unique or update == "replace":
        return new
    return old + new if update == "add" else max(old, new)
