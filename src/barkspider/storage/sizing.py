"""How many buckets, how large: the model of IRLbot's section 4.4, from RAM and disk.

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


def overhead(
    n: float,
    p: float,
    known: float,
    b: float,
    disk: float,
    ram: float,
    m: float,
    h: float = KEY,
    pointer: float = 4,
) -> float:
    """α(n, R) of equation (5): how often each byte of aux is moved, for `n` rows of which `p` are new,
    when `known` keys are stored at the start.

    The first row of Table 2 with decimal gigabytes and M = 256 KiB:

    >>> round(overhead(59 * 800e6, 1 / 9, 100e6, 110, 4.39e12, 1e9, 2**18), 2)
    2.27
    """
    passes = 2 * known * h + p * h * n
    floor = 2 + p + 2 * h / b
    if ram**2 < 8 * m * disk * (h + pointer) / (h + b):
        return 8 * m * (h + pointer) * passes / (b * ram**2) + floor
    return (h + b) * passes / (b * disk) + floor


def best_disk(ram: float, b: float, m: float, h: float = KEY, pointer: float = 4) -> float:
    """D_opt of equation (6): more disk than this cannot be used with so much RAM.

    >>> round(best_disk(1e9, 110, 2**18) / 1e12, 1), round(best_disk(2e9, 110, 2**18) / 1e12, 1)
    (4.7, 18.8)
    """
    return ram**2 * (h + b) / (8 * m * (h + pointer))
