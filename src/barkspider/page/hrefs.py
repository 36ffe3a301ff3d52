"""The links of a page as they were found, one to a line, and which targets they have: no object for a link.

`texts` makes strings of them, for whoever wants to see them; what a crawl needs of a link is where in the lines it lies.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from inspect import getsource
from typing import Any

import numpy as np
import numpy.typing as npt
from xxhash import xxh32_intdigest

from barkspider.core.texts import BYTES, SMALL, nb
from barkspider.url import xxh3 as hashing
from barkspider.url.xxh3 import read64, xxh3

# Times the limit of links: so many are looked at at all, because most pages repeat some, or have many places of one
# target (contents, footnotes).
REPEATS = 16
_LINE_FEED, _HASH = ord("\n"), ord("#")
_SEED = np.uint64(int.from_bytes(os.urandom(8), "little"))  # no page can aim at collisions
_NONE = np.empty((0, 3), np.int64)


@dataclass(frozen=True, slots=True)
class Hrefs:
    """Links in the order of the page, as often as they stand there, in UTF-8, each with a line feed behind it.

    A row of `targets` is where the text of a link, without its fragment, begins and ends, and how many different texts
    have this target: `len` says how many in all. At most `most` targets count; `cut` says that there were more.

    >>> hrefs = Hrefs.of(["b", "a#1", "a#2", "b", "a"])
    >>> hrefs.texts(), hrefs.targets.tolist(), len(hrefs), hrefs.cut
    (['b', 'a#1', 'a#2', 'a'], [[0, 1, 1], [2, 3, 3]], 4, False)
    """

    lines: bytes = b""
    targets: npt.NDArray[np.int64] = field(default_factory=lambda: _NONE, compare=False)
    count: int = 0
    most: int = 0
    cut: bool = False

    def __len__(self) -> int:
        return self.count

    @classmethod
    def read(cls, lines: bytes, most: int) -> Hrefs:
        """Find the targets of links, one to a line."""
        if not lines:
            return cls(most=most)
        number = min(lines.count(b"\n"), REPEATS * most)
        targets = np.empty((min(number, most), 3), np.int64)
        found, count, cut = find_targets(np.frombuffer(lines, np.uint8), number, _SEED, targets)
        return cls(lines, targets[:found], count, most, cut)

    @classmethod
    def of(cls, texts: Iterable[str], most: int = 10_000) -> Hrefs:
        """Links that are texts already, without line ends."""
        return cls.read("".join(f"{text}\n" for text in texts).encode(), most)

    def texts(self) -> list[str]:
        """The links, each once, while they have no more targets than are allowed; fragments make no other target."""
        found, targets = dict[str, None](), set[str]()
        for text in self.lines.decode().split("\n", REPEATS * self.most)[:-1]:
            target = text.partition("#")[0]
            if target in targets or len(targets) < self.most:
                targets.add(target)
                found[text] = None
        return list(found)


@nb.njit(nb.int64(BYTES, nb.int64, nb.uint8, nb.int64), **SMALL)
def _end(text, i, sign, end):  # type: ignore[no-untyped-def]
    """Where `sign` next stands, or `end`; eight bytes at a time."""
    ones, highs = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
    while i + 8 <= end:
        differs = read64(text, i) ^ (ones * np.uint64(sign))
        if (differs - ones) & ~differs & highs:
            break
        i += 8
    while i < end and text[i] != sign:
        i += 1
    return i


@nb.njit(nb.boolean(BYTES, nb.int64, nb.int64, nb.int64), **SMALL)
def _equal(text, first, second, count):  # type: ignore[no-untyped-def]
    for k in range(count):  # noqa: SIM110  (no generators in kernels)
        if text[first + k] != text[second + k]:
            return False
    return True


@nb.njit(
    nb.int64(BYTES, nb.int64, nb.int64, nb.uint64, nb.int32[::1], nb.int64[:, ::1], nb.uint64[::1]),
    **SMALL,
)
def _slot(text, start, end, key, slots, entries, keys):  # type: ignore[no-untyped-def]
    """Where a text is among the entries, or where there is room for it."""
    mask = np.uint64(len(slots) - 1)
    slot = key & mask
    while slots[slot] >= 0:
        entry = slots[slot]
        begin, count = entries[entry, 0], entries[entry, 1]
        if keys[entry] == key and count == end - start and _equal(text, begin, start, count):
            break
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


def _compile(sources: int) -> Any:
    @nb.njit(
        nb.types.Tuple((nb.int64, nb.int64, nb.boolean))(BYTES, nb.int64, nb.uint64, nb.int64[:, ::1]),
        nogil=True,
        cache=True,
    )
    def find_targets(lines, number, seed, targets):  # type: ignore[no-untyped-def]
        size = 16
        while size < 4 * number:
            size *= 2
        slots = np.full(size, -1, np.int32)
        # A text or a target, which most often are the same: start, length, number of the target, whether it is a text.
        entries, keys = np.empty((2 * number, 4), np.int64), np.empty(2 * number, np.uint64)
        known = found = count = end = sources & 0
        cut = False
        for _ in range(number):
            start = end
            end = _end(lines, start, _LINE_FEED, len(lines))
            target = _end(lines, start, _HASH, end)
            key = xxh3(lines, start, end - start, seed)
            slot = _slot(lines, start, end, key, slots, entries, keys)
            entry = slots[slot]
            if entry >= 0:
                if not entries[entry, 3]:  # a target that is now a link, too
                    entries[entry, 3] = 1
                    targets[entries[entry, 2], 2] += 1
                    count += 1
                end += 1
                continue
            place = -1
            if target < end:
                own = xxh3(lines, start, target - start, seed)
                at = _slot(lines, start, target, own, slots, entries, keys)
                if slots[at] >= 0:
                    place = entries[slots[at], 2]
                elif found < len(targets):
                    slots[at] = known
                    keys[known] = own
                    entries[known, 0], entries[known, 1] = start, target - start
                    entries[known, 2], entries[known, 3] = found, 0
                    known += 1
                    # Its place may be the one that was free for the text.
                    slot = _slot(lines, start, end, key, slots, entries, keys)
            if place < 0:
                if found == len(targets):
                    cut = True
                    end += 1
                    continue
                place = found
                targets[found, 0], targets[found, 1], targets[found, 2] = start, target, 0
                found += 1
            slots[slot] = known
            keys[known] = key
            entries[known, 0], entries[known, 1] = start, end - start
            entries[known, 2], entries[known, 3] = place, 1
            known += 1
            targets[place, 2] += 1
            count += 1
            end += 1
        return found, count, cut or end < len(lines)

    return find_targets


# numba's cache does not see what a function calls: so it closes over the text of that file.
find_targets = _compile(xxh32_intdigest(getsource(hashing).encode()))
"""Fill in `targets` from the first `number` lines: how many they are, how many texts, and whether some were left out."""
