"""How many buckets, how large: from RAM and disk, by the model of IRLbot's section 4.4 (`model.irlbot`).

H is the bytes of a key with its value, b those of the aux, P what the bucket buffer needs beside each
(key, value) pair while it is sorted. The paper counts a pointer of 4 bytes for P; here it is 13: the
pointer, the unsorted copy of the key and the verdict.

The paper's D is fixed. Here each generation of buckets gets its own when it begins, in proportion to the cache Z
(`model.irlbot.bucket_disk`): a pass over Z is then shared by as many rows as make it cost about what writing and
reading the rows costs, and a small DRUM leaves the disk to others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from barkspider.core.errors import SettingsError
from barkspider.core.units import format_size
from barkspider.model.irlbot import bucket_disk

KEY = 8
POINTER = 13
SMALLEST = 1 << 18  # M in the paper: what a disk of the time read at full speed
_LARGEST = 1 << 21  # above this the work per buffer no longer counts
_MOST_BUCKETS = 1 << 14
_LEAST = 1 << 16  # bytes of RAM and of disk
_LEAST_SHARE = 4  # of R: the RAM buffers hold as much, so with less on disk nothing is gained by it

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sizing:
    """k buckets with two RAM buffers of M bytes each; a merge when the files of the generation have D bytes,
    or when a bucket has r bytes of pairs, because no more of it fits the RAM.

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

    @property
    def ram(self) -> int:
        """R, as equation R = 2Mk + r(1 + P/H) has it."""
        return 2 * self.buffer * self.buckets + self.bucket_bytes * (self.pair + POINTER) // self.pair

    @classmethod
    def choose(cls, ram: int, disk: int, value: int = 0, aux: int = 80) -> Sizing:
        """The fewest buckets with which `ram` bytes can fill `disk` bytes; at D_opt of equation (6), or
        above, the paper's optimum k = R/4M, and D_opt. `value` and `aux` are expected bytes per row.

        Few buckets, because each costs: 512 took a third of the speed in a prototype.
        """
        if ram < _LEAST or disk < _LEAST:
            raise SettingsError(f"a DRUM needs 64KiB of RAM and disk or more, not {ram} and {disk} bytes")
        pair = KEY + value
        best = cls(1, 1, 1, 1, pair)
        buckets = 1
        while buckets <= _MOST_BUCKETS and best.disk < disk:
            buffer = max(min(_LARGEST, ram // (8 * buckets)), min(SMALLEST, ram // (4 * buckets)))
            if buckets > 1 and buffer < min(SMALLEST, ram // 8):
                break
            left = ram - 2 * buffer * buckets
            room = max(pair, left * pair // (pair + POINTER))  # r, from R = 2Mk + r(1 + P/H)
            fills = room * buckets * (pair + aux) // pair
            if min(fills, disk) > best.disk:
                best = cls(buckets, buffer, room, min(fills, disk), pair)
            buckets *= 2
        return best

    @property
    def buffers(self) -> int:
        """Bytes of RAM for the rows that wait."""
        return 2 * self.buffer * self.buckets

    def generation(self, known: int) -> Sizing:  # noqa: ARG002
        """The same for every generation."""
        return self


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a DRUM may use: `ram` bytes, and on disk at most what `disk` says when a generation begins.

    `value` and `aux` are the expected bytes of a row. While k doubles from one generation to the next, an eighth more
    RAM may be in use: the buffers of the new one beside the merge of the old.

    >>> allowance = Allowance(1_000_000_000, lambda: 20_000_000_000, aux=110)
    >>> [allowance.generation(8 * keys).disk // 10**9 for keys in (0, 10**9, 8 * 10**9)]
    [8, 16, 20]
    """

    ram: int
    disk: Callable[[], int]
    value: int = 0
    aux: int = 80

    def __post_init__(self) -> None:
        if self.ram < _LEAST:
            raise SettingsError(f"a DRUM needs 64KiB of RAM or more, not {self.ram} bytes")

    @property
    def buffers(self) -> int:
        """Bytes of RAM for the rows that wait, and for their merge."""
        return self.ram

    def generation(self, known: int) -> Sizing:
        """The sizing of a generation that begins while Z has `known` bytes."""
        most = max(self.disk(), self.ram // _LEAST_SHARE, _LEAST)
        sizing = Sizing.choose(self.ram, round(bucket_disk(known, self.ram, most)), self.value, self.aux)
        _log.info(
            "DRUM sizing: R=%s and %s of Z give D=%s, k=%d buckets, M=%s, r=%s",
            format_size(self.ram),
            format_size(known),
            format_size(sizing.disk),
            sizing.buckets,
            format_size(sizing.buffer),
            format_size(sizing.bucket_bytes),
        )
        return sizing
