"""Origins by number: what depends on the origin of a URL alone is found once, and looked up by compiled functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xxhash import xxh3_64_intdigest

from barkspider.core.texts import BYTES, SMALL, nb

_USUAL_LENGTH = 64  # bytes; more than nearly all have


class OriginNumbers:
    """Numbers origins as they come up, and forgets all when they are too many: only at `make_room`, so that numbers hold
    between two calls.

    `place` gives the keys of an origin's host and domain, and the number of the reason why it is refused, or 0. The arrays are
    for kernels: `slots` by the key of the origin, the others by its number; its text is
    `texts[starts[number] : starts[number + 1]]`.

    >>> origins = OriginNumbers(lambda origin: (len(origin), 7, 0), most=2, at_once=10, seed=1)
    >>> origins.number("http://a.example"), origins.number("http://b.example:8080"), origins.number("http://a.example")
    (0, 1, 0)
    >>> origins.hosts[:2].tolist(), origins.domains[:2].tolist(), origins.verdicts[:2].tolist()
    ([16, 21], [7, 7], [0, 0])
    """

    def __init__(
        self, place: Callable[[str], tuple[int, int, int]], most: int, at_once: int, seed: int
    ) -> None:
        """`most` are remembered, and at most `at_once` more come up from one `make_room` to the next."""
        self._place, self._most, self._seed = place, most, seed
        self._numbers: dict[str, int] = {}
        count = most + at_once
        self.slots = np.full(1 << (2 * count).bit_length(), -1, np.int32)
        self.keys, self.hosts, self.domains = (np.empty(count, np.uint64) for _ in range(3))
        self.verdicts, self.starts = np.empty(count, np.int64), np.zeros(count + 1, np.int64)
        self.texts = np.empty(1 << 16, np.uint8)
        # To write a little costs less this way.
        arrays = (self.keys, self.hosts, self.domains, self.verdicts, self.starts)
        self._columns, self._slots = [array.data for array in arrays], self.slots.data
        self._texts = self.texts.data

    def number(self, origin: str) -> int:
        """The number of an origin, as it stands in canonical URLs."""
        number = self._numbers.get(origin)
        return self._add(origin) if number is None else number

    def make_room(self) -> None:
        """Forget all origins if there are too many."""
        count = len(self._numbers)
        if count > self._most or self.starts[count] > _USUAL_LENGTH * self._most:
            self.clear()

    def clear(self) -> None:
        """Forget all origins, because what was known about them does not hold any more."""
        self._numbers.clear()
        self.slots.fill(-1)

    def _add(self, origin: str) -> int:
        text, number = origin.encode(), len(self._numbers)
        keys, hosts, domains, verdicts, starts = self._columns
        hosts[number], domains[number], verdicts[number] = self._place(origin)
        start = starts[number]
        end = start + len(text)
        if end > len(self.texts):
            self.texts = np.concatenate((self.texts, np.empty(end, np.uint8)))
            self._texts = self.texts.data
        self._texts[start:end] = text
        key = xxh3_64_intdigest(text, self._seed)
        keys[number], starts[number + 1] = key, end
        slots = self._slots
        slot = key % len(slots)
        while slots[slot] >= 0:
            slot = (slot + 1) % len(slots)
        slots[slot] = self._numbers[origin] = number
        return number


@nb.njit(
    nb.int64(
        BYTES, nb.int64, nb.int64, nb.uint64, nb.int32[::1], nb.uint64[::1], nb.int64[::1], nb.uint8[::1]
    ),
    **SMALL,
)
def find_origin(text, start, end, key, slots, keys, starts, texts):  # type: ignore[no-untyped-def]
    """The number of the origin that stands from start to end and has this key, or -1 if it is not known."""
    mask = np.uint64(len(slots) - 1)
    slot = key & mask
    while slots[slot] >= 0:
        number = slots[slot]
        begin = starts[number]
        if keys[number] == key and starts[number + 1] - begin == end - start:
            k = 0
            while k < end - start and texts[begin + k] == text[start + k]:
                k += 1
            if k == end - start:
                return np.int64(number)
        slot = (slot + np.uint64(1)) & mask
    return np.int64(-1)
