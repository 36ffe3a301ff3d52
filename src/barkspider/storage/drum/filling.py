"""Filling: the rows of a DRUM that no merge has begun with yet, in buffers and beyond these in a generation."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from barkspider.storage.columns import Kind
from barkspider.storage.drum.buckets import Batch, Buffers, Generation, lone_row
from barkspider.storage.drum.counters import DrumCounters
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.env import Env


class Filling:
    """See the module. Filled by `Drum.feed`, emptied by `seal`, which hands the generation over to a merge.

    The owner of the DRUM only. Invariant: where there is no generation, the buffers are empty.
    """

    def __init__(self, env: Env, folder: Path, kind: Kind, has_aux: bool) -> None:
        self._env, self._folder, self._kind, self._has_aux = env, folder, kind, has_aux
        self._buffers: Buffers | None = None
        self.generation: Generation | None = None
        self.accepted = 0  # rows of the last batch that are in

    @property
    def buffered(self) -> int:
        """Rows that are in RAM only."""
        return 0 if self._buffers is None else int(self._buffers.fill[:, 0].sum())

    @property
    def ram(self) -> int:
        """Bytes that wait in the buffers: keys with their operations, values, aux."""
        if self._buffers is None:
            return 0
        rows, values, aux = self._buffers.fill.sum(axis=0).tolist()
        return int(9 * rows + values + aux)

    def open(self, number: int, sizing: Sizing) -> None:
        """Begin a generation with this number."""
        generation = Generation(self._env, self._folder, number, sizing, self._has_aux)
        generation.open()
        self.generation = generation

    def put(self, batch: Batch, begin: int, counters: DrumCounters) -> tuple[int, bool]:
        """Take rows of a batch from the `begin`-th on, until the buffer of one is full and is written to the disk.

        Returns the place of the first row that was not taken, and whether the generation is as large as it may be.
        """
        assert self.generation is not None
        sizing = self.generation.sizing
        if self._buffers is None or self._buffers.shape != (sizing.buckets, sizing.buffer):
            self._buffers = Buffers(sizing.buckets, sizing.buffer, self._kind, self._has_aux)
        begin = self._buffers.put(batch, begin)
        self.accepted = int(batch.rows[begin - 1]) + 1 if len(batch.rows) and begin else begin
        if begin == len(batch):
            return begin, False
        row = int(batch.rows[begin]) if len(batch.rows) else begin
        bucket = self._buffers.bucket_of(int(batch.keys[row]))
        if self._buffers.fill[bucket, 0]:
            self._buffers.spill(bucket, self.generation, counters)
        else:
            self.generation.write(bucket, *lone_row(batch, begin), counters)
            begin += 1
            self.accepted = row + 1
        is_full = self.generation.pair_bytes[bucket] >= sizing.bucket_bytes
        return begin, bool(is_full or self.generation.size >= sizing.disk)

    def spill(self, counters: DrumCounters) -> None:
        """Write all that is in the buffers to the files of the generation."""
        if self.generation is not None and self._buffers is not None:
            for bucket in np.flatnonzero(self._buffers.fill[:, 0]).tolist():
                self._buffers.spill(bucket, self.generation, counters)

    def seal(self, counters: DrumCounters) -> Generation | None:
        """Give up the generation, which has all rows; None when there is none."""
        sealed = self.generation
        if sealed is not None:
            self.spill(counters)
            sealed.flush()
            self.generation = None
        return sealed

    def release(self) -> None:
        """Let go of the buffers, whatever is in them."""
        self._buffers = None

    def validate(self) -> None:
        """Check the invariants."""
        if self._buffers is not None:
            assert (self._buffers.fill >= 0).all()
        assert self.generation is not None or not self.buffered
