"""What a real DRUM counts when it is fed links of which half are new."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from barkspider.storage.drum.counters import DrumCounters
from barkspider.storage.drum.repository import CHECK_UPDATE, Drum
from barkspider.storage.drum.sizing import Sizing
from tests.storage.faulty import FaultyEnv


def counted(front: int = 0, known: int = 0) -> DrumCounters:
    """120,000 rows with texts of 70 bytes through a DRUM that knows `known` keys and has a front set of so many
    bytes, in a few merges."""
    sizing = Sizing.choose(2_000_000, 3_000_000, aux=71)
    drum = Drum(
        FaultyEnv(),
        Path("/job"),
        "seen",
        aux=True,
        output="unique",
        sizing=sizing,
        front=front,
        background=False,
    )
    random = np.random.default_rng(1)
    drum.load([(np.sort(random.integers(1 << 40, 1 << 63, known, np.uint64)), None)])
    drum.counters = DrumCounters()
    texts = [random.bytes(70) for _ in range(6_000)]
    for batch in range(20):
        numbers = random.integers(0, 6_000 * (batch + 1), 6_000).astype(np.uint64)
        drum.feed(CHECK_UPDATE, numbers * np.uint64(0x9E3779B97F4A7C15), aux=texts)
    drum.merge()
    drum.close()
    return drum.counters
