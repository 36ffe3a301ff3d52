"""What the parts of a crawl get of `memory`: all that grows with a crawl has its share of it, here or in `frontier.stages`.

`memory` is what the process takes above what it takes before it crawls. Some of that is there for the smallest crawl:
code that runs for the first time, certificates, the list of public suffixes. The rest is shared out.
"""

from __future__ import annotations

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from barkspider.core.settings import Settings

_BESIDE = 36_000_000  # 25 MB for a crawl of one page, and freed memory that the allocator does not give back
_NAME = 1_200  # bytes of a host name that several caches remember: its domain, its keys, its key in the index
_DNS_NAME = 700  # in our cache and in that of c-ares
_DIGEST = 32
_M_ARENA_MAX, _ARENAS = -8, 2  # of malloc.h; one for the loop and one for all threads beside it


def fit_memory(settings: Settings) -> Settings:
    """Settings with the `memory` that the parts of a crawl share out, and with limits that fit it.

    >>> fitted = fit_memory(Settings(memory=50_000_000))
    >>> fitted.memory, fitted.archive.table_memory, fitted.archive.recent_digests, fitted.dns.cache_size
    (14000000, 218750, 13671, 625)
    >>> fitted.cookies.memory
    875000
    >>> fit_memory(Settings()).archive == Settings().archive
    True
    """
    memory = max(settings.memory - _BESIDE, settings.memory // 4)
    return replace(
        settings,
        memory=memory,
        cookies=replace(settings.cookies, memory=at_most(settings.cookies.memory, memory, 16)),
        dns=replace(settings.dns, cache_size=at_most(settings.dns.cache_size, memory, 32, _DNS_NAME)),
        archive=replace(
            settings.archive,
            # For pages and for robots.txt, each.
            recent_digests=at_most(settings.archive.recent_digests, memory, 32, _DIGEST),
            # Four tables take this three times, and the one that is being written twice more.
            table_memory=at_most(settings.archive.table_memory, memory, 64),
        ),
    )


def share_arenas() -> None:
    """Have the threads of this process allocate from two arenas, where the C library has any: each of its own would keep
    megabytes that are free. Whoever has set MALLOC_ARENA_MAX has decided it."""
    if "MALLOC_ARENA_MAX" not in os.environ:
        _ask_allocator("mallopt", _M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Let the system have what is free, in a few milliseconds: what comes next needs memory of other sizes."""
    _ask_allocator("malloc_trim", 0)


def begin_threads(pool: ThreadPoolExecutor, count: int) -> ThreadPoolExecutor:
    """Have a pool begin its threads now: where memory has run out, one that begins ends before it can say so.

    >>> begin_threads(ThreadPoolExecutor(2), 2).submit(int, "7").result()
    7
    """
    together = threading.Barrier(count)
    for begun in [pool.submit(together.wait) for _ in range(count)]:
        begun.result()
    return pool


def _ask_allocator(name: str, *numbers: int) -> None:
    call = getattr(ctypes.CDLL(None), name, None)
    if call is not None:  # it is one of glibc
        call(*numbers)


def at_most(wanted: int, memory: int, share: int, each: int = 1) -> int:
    """How many things of `each` bytes may be held in a share of the memory: as many as wanted, if they fit."""
    return min(wanted, memory // share // each)


def names(memory: int) -> int:
    """How many host names each of the caches that are about names may remember.

    >>> names(26_000_000), names(2_000_000_000)
    (2708, 65536)
    """
    return at_most(65_536, memory, 8, _NAME)
