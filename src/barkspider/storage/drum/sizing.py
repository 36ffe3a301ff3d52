"""How many buckets, how large: from RAM and disk, by the model of IRLbot's section 4.4 (`model.irlbot`).

H is the bytes of a key with its value, b those of the aux, P what the bucket buffer needs beside each
(key, value) pair while it is sorted. The paper counts a pointer of 4 bytes for P; here it is 13: the
pointer, the unsorted copy of the key and the verdict.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from barkspider.core.errors import SettingsError
from barkspider.core.units import format_size

KEY = 8
POINTER = 13
_SMALLEST = 1 << 18  # M in the paper: what a disk of the time read at full speed
_LARGEST = 1 << 21  # above this the work per buffer no longer counts
_MOST_BUCKETS = 1 << 14

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sizing:
    """k buckets with two RAM buffers of M bytes each; a merge when the largest bucket has r bytes of pairs,
    or when the files of a generation have D bytes.

    >>> Sizing.choose(ram=1_000_000_000, disk=4_390_000_000_000, aux=110).buckets
    512
    """

    buckets: int
    buffer: int
    bucket_bytes: int
    disk: int
    pair: int = KEY

    def __post_init__(self) -> None:
        if self.buckets < 1 or self.buckets & (self.buckets - 1):
            raise SettingsError(f"{self.buckets} buckets: a bucket is a key prefix, so give a power of two")

    @classmethod
    def choose(cls, ram: int, disk: int, value: int = 0, aux: int = 80) -> Sizing:
        """The fewest buckets with which `ram` bytes can fill `disk` bytes; at D_opt of equation (6), or
        above, the paper's optimum k = R/4M. `value` and `aux` are expected bytes per row.

        Few buckets, because each costs: 512 took a third of the speed in a prototype.
        """
        if ram < 1 << 16 or disk < 1 << 16:
            raise SettingsError(f"a DRUM needs 64KiB of RAM and disk or more, not {ram} and {disk} bytes")
        pair = KEY + value
        best = cls(1, 1, 1, disk, pair)
        buckets = 1
        while buckets <= _MOST_BUCKETS:
            buffer = max(min(_LARGEST, ram // (8 * buckets)), min(_SMALLEST, ram // (4 * buckets)))
            left = ram - 2 * buffer * buckets
            if buckets > 1 and buffer < min(_SMALLEST, ram // 8):
                break
            room = left * pair // (pair + POINTER)  # r, from R = 2Mk + r(1 + P/H)
            needed = disk * pair // (pair + aux) // buckets
            if min(room, needed) * buckets > best.bucket_bytes * best.buckets:
                best = cls(buckets, buffer, max(pair, min(room, needed)), disk, pair)
            if room >= needed:
                break
            buckets *= 2
        _log.info(
            "DRUM sizing: R=%s D=%s gives k=%d buckets, M=%s, r=%s, %s on disk per merge",
            format_size(ram),
            format_size(disk),
            best.buckets,
            format_size(best.buffer),
            format_size(best.bucket_bytes),
            format_size(best.bucket_bytes * best.buckets * (pair + aux) // pair),
        )
        return best
