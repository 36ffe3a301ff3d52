"""One permit: what is known of an origin's robots.txt, and where its host was found, as a value of the cache on disk."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError
from barkspider.core.texts import Rows, Texts
from barkspider.url import RobotsRules

_HEAD = np.dtype([("until", "<u4"), ("learned", "<u4"), ("flags", "u1")])
_UNREACHABLE, _HAS_ADDRESS, _UNASKED = 1, 2, 4  # bits of `flags`
_FIXED = struct.Struct("<IIB")  # the same
_ADDRESS = struct.Struct("<IB")  # until when it holds, its length; the address follows, and then the rules
_LATEST = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Permit:
    """What is known of the robots.txt of an origin, good `until` a time; `learned` is when the site gave it.

    `unreachable` says that all is forbidden because it could not be had. `address` is that of its host, "" if that is not
    known, and good until `address_until`. `unasked` says that nobody was asked, as its host is left alone: URLs that waited
    come up by it, and it says nothing of them. Times are whole seconds.

    >>> permit = Permit.of(RobotsRules([(False, "/x")], crawl_delay=2.0), learned=100.7, until=3700)
    >>> permit.rules.allows("/x/y"), permit.rules.crawl_delay, permit.learned, permit.unreachable
    (False, 2.0, 100, False)
    >>> Permit.decode(permit.encode()) == permit
    True
    """

    until: int
    learned: int
    unreachable: bool
    encoded: bytes  # the rules; not to be read by those who have the ones of this time already
    address: str = ""
    address_until: int = 0
    unasked: bool = False

    @classmethod
    def of(
        cls,
        rules: RobotsRules,
        learned: float,
        until: float,
        unreachable: bool = False,
        address: str = "",
        address_until: float = 0.0,
        unasked: bool = False,
    ) -> Permit:
        """From rules as they were read."""
        return cls(
            second(until),
            second(learned),
            unreachable,
            rules.encode(),
            address,
            second(address_until),
            unasked,
        )

    @property
    def rules(self) -> RobotsRules:
        """The rules, read anew at each call."""
        try:
            return RobotsRules.decode(self.encoded)
        except ValueError as error:
            raise StorageError("robots/cache is damaged") from error

    def encode(self) -> bytes:
        """A value of the cache."""
        flags = _UNREACHABLE * self.unreachable | _HAS_ADDRESS * bool(self.address) | _UNASKED * self.unasked
        place = self.address.encode()
        where = _ADDRESS.pack(self.address_until, len(place)) + place if place else b""
        return _FIXED.pack(self.until, self.learned, flags) + where + self.encoded

    @classmethod
    def decode(cls, value: bytes) -> Permit:
        """What `encode` gave, or an earlier version, which kept no addresses."""
        try:
            until, learned, flags = _FIXED.unpack_from(value)
            rest, address, address_until = _FIXED.size, "", 0
            if flags & _HAS_ADDRESS:
                address_until, length = _ADDRESS.unpack_from(value, rest)
                rest += _ADDRESS.size + length
                address = value[rest - length : rest].decode("ascii")
        except (struct.error, UnicodeDecodeError) as error:
            raise StorageError("robots/cache is damaged") from error
        is_unreachable, unasked = bool(flags & _UNREACHABLE), bool(flags & _UNASKED)
        return cls(until, learned, is_unreachable, value[rest:], address, address_until, unasked)


def until_of(values: Texts, rows: Rows) -> npt.NDArray[np.int64]:
    """Until when some values of the cache are good."""
    found: npt.NDArray[np.int64] = heads(values, rows, _HEAD)["until"].astype(np.int64)
    return found


def is_useless(values: Texts, stale: float, now: float) -> npt.NDArray[np.bool_]:
    """Which values of the cache nobody will use any more: outdated, and older than `stale` seconds, for which old rules
    are used while no newer ones can be had (RFC 9309, 2.4)."""
    found = heads(values, np.arange(len(values)), _HEAD)
    old = found["learned"].astype(np.int64) + stale
    useless: npt.NDArray[np.bool_] = np.maximum(found["until"], old * (found["learned"] > 0)) <= now
    return useless


def second(time: float) -> int:
    """A time as it is stored, in whole seconds.

    >>> second(100.7), second(-1), second(1e12)
    (100, 0, 4294967295)
    """
    return int(min(max(time, 0), _LATEST))


def heads(texts: Texts, rows: Rows, kind: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """What stands at the beginning of some texts."""
    if len(rows) and texts.lengths()[rows].min() < kind.itemsize:
        raise StorageError("a value of robots/cache or robots/requested is damaged")
    places = texts.offsets[rows, None] + np.arange(kind.itemsize)
    return np.ascontiguousarray(texts.data[places]).reshape(-1).view(kind)
