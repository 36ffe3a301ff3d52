"""The table of left-over budgets of `beast` on disk: written whole with each checkpoint, 16 bytes a domain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from barkspider.storage.drum.blocks import BlockReader
from barkspider.storage.drum.counters import DrumCounters
from barkspider.storage.drum.known import Segment, Writer, read_blocks
from barkspider.storage.env import Env

Entries = npt.NDArray[np.uint64]  # keys of domains, and pairs as in `placement`
_PART = 1 << 20  # entries that are written at a time
_PAIR = np.dtype("<u8")


def write_table(env: Env, folder: Path, number: int, entries: Entries) -> list[Segment]:
    """Write entries, in any order, into files of this number."""
    writer = Writer(env, folder, number, DrumCounters())
    entries = entries[np.argsort(entries[:, 0])]
    try:
        for start in range(0, len(entries), _PART):
            part = entries[start : start + _PART]
            writer.append(np.ascontiguousarray(part[:, 0]), part[:, 1].astype(_PAIR))
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return writer.segments


def read_table(env: Env, folder: Path, segments: Sequence[Segment]) -> Entries:
    """What `write_table` wrote."""
    parts = [np.empty((0, 2), np.uint64)]
    for segment in segments:
        for keys, pairs in read_blocks(env, folder, segment, _PAIR, BlockReader(), DrumCounters()):
            parts.append(np.stack([keys, np.asarray(pairs)], axis=1))
    return np.concatenate(parts)
