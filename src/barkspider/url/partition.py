"""Which process a URL belongs to, when several divide a crawl: pure functions on arrays of keys.

Assignment is static (Parallel Crawlers, section 2): every process computes the owner of any URL by itself. What
is hashed is what a partition keeps together:

| partition | goes by | keeps together |
| --- | --- | --- |
| url | key of the URL | nothing |
| site | key of the host | a site (section 3.2, site-hash) |
| domain | key of the pay-level domain | a domain with all its sites, as the slots of URLseen want |
| hierarchical | top-level domain, then key of the host | the sites of a country (section 3.2, item 3) |
| address | key of the server's address | all sites of a server (Viúva Negra, IP partitioning) |

A key has one of 4096 *slots*, and processes own ranges of slots. So another number of processes moves whole
slots, and a stopped job can be divided anew: whatever a crawl keeps by the key of a URL, it keeps by one that tells the
slot of what the partition keeps together (`slotted`, `SLOT_OF`), and edges by one that tells the slot of their target.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt

from barkspider.url.domains import is_address

PARTITIONS = ("site", "domain", "url", "hierarchical", "address")
SLOTS = 4096
# The column of a row whose key has the slot of a URL, for the partitions that go by slots.
SLOT_OF = {"domain": "pld_key", "site": "host_key", "url": "key"}

KeyColumn = npt.NDArray[np.uint64]
OwnerColumn = npt.NDArray[np.uint16]

_SLOT = SLOTS - 1
_REST = (1 << 64) - SLOTS  # the bits of a key that stay, as a number that fits into 64 of them


def slots(keys: KeyColumn) -> npt.NDArray[np.uint16]:
    """The slot of each key.

    >>> slots(np.array([5, 4096 + 7], np.uint64)).tolist()
    [5, 7]
    """
    return (keys % np.uint64(SLOTS)).astype(np.uint16)


@overload
def slotted(keys: int, places: int) -> int: ...
@overload
def slotted(keys: KeyColumn, places: KeyColumn) -> KeyColumn: ...
def slotted(keys: Any, places: Any) -> Any:
    """Keys with the slots of these domains or hosts, given by their keys, in the lowest 12 bits; for arrays, or for one
    of each.

    52 bits of hash are left, but keys of different slots never meet: so only n keys of the same slot lose n²/2^53 of
    them to collisions, and over all slots it is as before.

    >>> hex(slotted(0x12345678, 0xDEFABC))
    '0x12345abc'
    >>> slotted(np.array([4096, 8192], np.uint64), np.array([7, 8], np.uint64)).tolist()
    [4103, 8200]
    """
    return (keys & _REST) | (places & _SLOT)


def by_hash(keys: KeyColumn, processes: int) -> OwnerColumn:
    """The process that owns each key's slot: each has a range of slots, as many as the others or one more.

    >>> by_hash(np.array([0, 2047, 2048, 4095], np.uint64), processes=2).tolist()
    [0, 0, 1, 1]
    """
    _check(processes)
    return (slots(keys).astype(np.int64) * processes // SLOTS).astype(np.uint16)


def by_hierarchy(
    groups: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], host_keys: KeyColumn, processes: int
) -> OwnerColumn:
    """The process of each URL whose host is in top-level domain number `groups`, of which `weights` tells the
    size, in pages or in anything that is proportional to them.

    The top-level domains lie side by side on a line, each as long as its weight, and within one its hosts lie by
    their slots. The line is cut into equal parts, one a process: small domains share a process, a large one has
    several, and with a single one this is the partition by site.

    >>> groups, keys = np.array([0, 0, 1, 2]), np.array([0, 4095, 99, 99], np.uint64)
    >>> by_hierarchy(groups, np.array([200, 50, 50]), keys, processes=3).tolist()
    [0, 1, 2, 2]
    """
    _check(processes)
    lengths = np.maximum(weights, 1)  # one of weight 0 has to lie somewhere too
    ends = np.cumsum(lengths)
    place = (ends - lengths)[groups] * SLOTS + lengths[groups] * slots(host_keys)
    owners: npt.NDArray[np.int64] = place * processes // (ends[-1] * SLOTS)
    return owners.astype(np.uint16)


def by_address(address_keys: KeyColumn, host_keys: KeyColumn, processes: int) -> OwnerColumn:
    """The process of each URL by its server; a URL whose address is not known (0) goes by its host.

    >>> by_address(np.array([7, 7, 0], np.uint64), np.array([1, 4095, 4095], np.uint64), processes=2).tolist()
    [0, 0, 1]
    """
    return by_hash(np.where(address_keys == 0, host_keys, address_keys), processes)


def top_level(host: str) -> str:
    """The top-level domain of a canonical host name; nothing for an address.

    >>> top_level("www.bbc.co.uk"), top_level("localhost"), top_level("127.0.0.1")
    ('uk', 'localhost', '')
    """
    return "" if is_address(host) else host.rstrip(".").rpartition(".")[2]


def _check(processes: int) -> None:
    if not 1 <= processes <= SLOTS:
        raise ValueError(f"{processes} processes cannot own {SLOTS} slots; there can be 1 to {SLOTS}")
