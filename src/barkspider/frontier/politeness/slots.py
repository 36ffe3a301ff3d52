"""Slots: how many requests may be under way at a time, and who may have one when they are scarce.

A slot that was given cannot be taken back, and one that is held for a minute is a hundred answers of somebody else. So
each server has a *cost*, the seconds that it lately held a slot for an answer, and by that a rank:

    0   under half a second      1   under two
    2   has answered, but not quickly or not often enough to tell       3   unknown       4   slow

Every rank leaves to those before it as many slots as they used lately, and some to spare; and to those behind it a
few, if any of them waits. The others are its own, together with the ranks behind it: when nobody is slow, all but the
spare ones are in use, whoever asks for them. A slot that is held for more than two seconds counts as one of the last
rank from then on, whoever has it. And no domain, and no network of addresses, gets one more when it holds four times
what is left for all others.

See docs/decisions/0017 for what this stands, and what it costs to get around it.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import chain
from math import inf

BOUNDS = (0.5, 2.0, 4.0, 5.0)  # seconds: the cost with which each rank but the first begins
RANKS = len(BOUNDS) + 1
NEW = 4.0  # seconds: the cost of a server that we know nothing of; six quick answers bring it below two
SLOW = RANKS - 1
_RISE, _FALL = (
    0.25,
    0.125,
)  # weight of the newest answer in a cost: what a minute adds, it takes 27 quick ones to undo
_LATE = 2.0  # seconds after which a slot counts as held by somebody slow
_LONGEST = 60.0  # seconds: if it was more, this machine has slept
_SPARE = (16, 32, 64, 64)  # one in so many slots stays free for each rank, beyond those that it uses
_LEAST = (1, 8, 8, 8, 16)  # one in so many slots is always left to a rank and those behind it
_FEW = 8  # slots: with fewer, to keep one free costs more than it gains
_SHARE = 4  # times what is left: one domain alone gets four fifths, two get four ninths each
_RECOUNT = 0.1  # seconds after which shares are counted anew, if they are asked for: 50 µs for 500 slots
_GROWTH, _DECAY = 10.0, 30.0  # seconds in which what was used lately follows what is used now


def next_cost(cost: float, seconds: float) -> float:
    """A cost after an answer for which a slot was held so long.

    >>> next_cost(NEW, 0.0), next_cost(0.0, 60.0)
    (3.5, 15.0)
    """
    if seconds <= cost:
        return cost + _FALL * (seconds - cost)
    return cost + _RISE * (min(seconds, _LONGEST) - cost)


@lru_cache(maxsize=1 << 14)
def network(address: str) -> str:
    """The neighbours of an address that whoever has it is likely to have as well: 256 of them, or a /48.

    >>> network("192.0.2.7"), network("2001:db8:7::1"), network("2001:db8:7:8::2")
    ('192.0.2', '2001:db8:7', '2001:db8:7')
    """
    if "." in address:
        return address.rpartition(".")[0]
    return ":".join(address.partition("::")[0].split(":")[:3])


def _holders(domain: int, address: str) -> tuple[int | str, ...]:
    return (domain, network(address)) if address else (domain,)


_Held = tuple[int, float, int, str]


class Slots:
    """So many slots, and who holds them. See the module; filled and emptied by `Ready`, in one thread.

    Invariant: what ranks are counted to hold is what is held. Domains and networks are counted when slots are scarce.

    >>> slots = Slots(16)
    >>> slots.look(now=0.0, last=3)
    >>> for host in range(15):
    ...     slots.begin(host, 3, now=0.0, domain=host, address=f"192.0.{host}.1")
    >>> slots.admits(3, domain=99), slots.admits(0, domain=98)
    (False, True)
    >>> slots.end(7, now=2.5), slots.admits(3, domain=99)
    (2.5, True)
    """

    def __init__(self, most: int) -> None:
        # By the key of the host: rank, since when, domain, address. The oldest are first.
        self._held: dict[int, _Held] = {}
        self._late: dict[int, _Held] = {}  # those that are held for long
        self._used = [0] * RANKS  # held by each rank
        # Held by each domain and each network, or a few more; empty if not known.
        self._by: dict[int | str, int] = {}
        self._counted = -inf  # when that was counted
        # What was left to each rank in the last look, and given since; what is left now, empty if not known.
        self._lefts, self._given = [0] * RANKS, 0
        self._left: list[int] = []
        self._spare = [most // part for part in _SPARE]
        if most >= _FEW:
            self._spare[0] = max(self._spare[0], 1)
        self._least = [max(most // part, 1) if most > 1 else 0 for part in _LEAST]
        self._most = most
        self._limits = [most] * RANKS  # for a rank and those behind it
        self._tops = [most] * RANKS  # for a rank and those before it
        self._then = [0] * RANKS  # held by each rank when they were last given out
        self._usual = [0.0] * RANKS  # held by each rank lately
        self._looked = -inf

    def __len__(self) -> int:
        """Slots that are held."""
        return len(self._held) + len(self._late)

    def look(self, now: float, last: int) -> None:
        """Slots are about to be given out: find out how many each rank may have. `last` is the last one in line."""
        most, least = self._most, self._least
        self._tops = [most - (least[number + 1] if number < last else 0) for number in range(RANKS)]
        passed = now - self._looked
        if passed > 0.0:
            self._looked = now
            self._set_aside(now)
            self._learn(passed)
        if self._by and (now > self._counted + _RECOUNT or len(self._by) > _SHARE * most):
            self._by = {}
        self._left = []
        self.left(0)
        self._lefts, self._given = self._left, 0

    def _learn(self, passed: float) -> None:
        """What was used lately, and what that leaves to each rank."""
        left = float(self._most)
        for number in range(RANKS - 1):
            then, usual = self._then[number], self._usual[number]
            memory = _GROWTH if then > usual else _DECAY
            usual += (then - usual) * (1.0 - memory / (passed + memory))
            self._usual[number] = usual
            left -= usual + self._spare[number]
            self._limits[number + 1] = max(
                int(left), self._least[number + 1], 1
            )  # or a single slot is for the first

    def _set_aside(self, now: float) -> None:
        held = self._held
        while held and held[key := next(iter(held))][1] + _LATE < now:
            number, since, domain, address = held.pop(key)
            self._late[key] = (SLOW, since, domain, address)
            self._used[number] -= 1
            self._used[SLOW] += 1

    def given_out(self) -> None:
        """Slots have been given out."""
        self._then = self._used.copy()

    def left(self, number: int) -> int:
        """How many more slots a rank may have."""
        if not self._left:
            behind, before = len(self), 0
            left = self._most
            for limit, used, top in zip(self._limits, self._used, self._tops, strict=True):
                left = min(left, limit - behind)
                behind -= used
                before += used
                self._left.append(min(left, top - before))
        return self._left[number]

    def admits(self, number: int, domain: int, address: str = "") -> bool:
        """Whether a rank may have one more, for a host of this domain, at this address if it is known."""
        # At least this much is left. If that is plenty, nobody needs to count how much exactly, nor who has which share.
        if _SHARE * (self._lefts[number] - self._given) > len(self._held) + len(self._late):
            return True
        left = self.left(number)
        if left <= 0:
            return False
        if not self._by:
            self._count()
        most, by = _SHARE * left, self._by
        return by.get(domain, 0) < most and (not address or by.get(network(address), 0) < most)

    def begin(self, key: int, number: int, now: float, domain: int, address: str = "") -> None:
        """A host that was admitted has a slot."""
        self._held[key] = (number, now, domain, address)
        self._used[number] += 1
        self._given += 1
        self._left = []
        if self._by:
            for holder in _holders(domain, address):
                self._by[holder] = self._by.get(holder, 0) + 1

    def end(self, key: int, now: float) -> float:
        """A host gives its slot back; for how many seconds it had it."""
        slot = (self._held if key in self._held else self._late).pop(key)
        self._used[slot[0]] -= 1
        self._left = []
        return now - slot[1]

    def _count(self) -> None:
        self._counted = self._looked
        held = chain(self._held.values(), self._late.values())
        self._by = Counter(holder for _, _, domain, address in held for holder in _holders(domain, address))

    def validate(self) -> None:
        """Check the invariant."""
        held = [*self._held.values(), *self._late.values()]
        assert self._used == [sum(number == rank for number, *_ in held) for rank in range(RANKS)]
