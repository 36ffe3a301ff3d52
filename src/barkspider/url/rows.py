"""URLs to packed rows, by a compiled function: each once, with its keys, if it is in scope."""

from __future__ import annotations

from inspect import getsource
from typing import Any

import numpy as np
from xxhash import xxh32_intdigest

from barkspider.core.batch import WIDTH
from barkspider.core.records import HEAD
from barkspider.core.texts import BYTES, copy, nb
from barkspider.url import xxh3 as hashing
from barkspider.url.xxh3 import xxh3

# What differs from link to link stands at the beginning of a row: three keys and the depth.
_OWN = HEAD.itemsize - sum(HEAD[name].itemsize for name in ("hops", "tries", "flags", "parent", "found"))
assert (HEAD.names or ())[:4] == ("key", "host_key", "pld_key", "depth")
MOST_DEPTH = 65_535  # what the column of depths holds


def _compile(sources: int) -> Any:
    @nb.njit(
        nb.types.UniTuple(nb.int64, 3)(
            *(BYTES, nb.int64[:, ::1], nb.uint64[::1], nb.uint64[::1], nb.int64[::1], nb.boolean, BYTES),
            *(nb.uint64, nb.uint64, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, nb.boolean),
            *(nb.uint8[::1], nb.int64[::1], nb.int64[::1], nb.int64[::1]),
        ),
        nogil=True,
        cache=True,
    )
    def pack_rows(  # type: ignore[no-untyped-def]
        urls,
        found,
        hosts,
        domains,
        verdicts,
        asked_for,
        head,
        seed,
        here,
        depth_here,
        depth_elsewhere,
        deepest,
        too_deep,
        most,
        unique,
        rows,
        offsets,
        outside,
        refused,
    ):
        size = 16
        while size < 2 * len(found):
            size *= 2
        slots = np.full(size if unique else 0, -1, np.int32)
        mask = np.uint64(size - 1)
        keys = np.empty(len(found), np.uint64)
        own = np.empty(4, np.uint64)
        own_bytes = own.view(np.uint8)
        kept = left = place = total = sources & 0
        offsets[0] = 0
        for row in range(len(found)):
            start, end, origin, reason = found[row, 0], found[row, 1], found[row, 2], found[row, 3]
            if start < 0:
                refused[reason] += end
                continue
            key = keys[row] = xxh3(urls, start, end - start, seed)
            if unique:
                slot = key & mask
                known = False
                while slots[slot] >= 0 and not known:
                    other = slots[slot]
                    if keys[other] == key and found[other, 1] - found[other, 0] == end - start:
                        k = start
                        begin = found[other, 0] - start
                        while k < end and urls[begin + k] == urls[k]:
                            k += 1
                        known = k == end
                    slot = (slot + np.uint64(1)) & mask
                if known:
                    continue
                slots[slot] = row
            total += end - start
            if total > most:
                return kept, left, row
            depth = depth_here if hosts[origin] == here else depth_elsewhere
            if not asked_for and verdicts[origin]:
                reason = verdicts[origin]
            elif not reason and depth > deepest:
                reason = too_deep
            if reason:
                refused[reason] += 1
                outside[left] = row
                left += 1
                continue
            own[0], own[1], own[2], own[3] = key, hosts[origin], domains[origin], min(depth, MOST_DEPTH)
            copy(rows, place, own_bytes, 0, _OWN)
            copy(rows, place + _OWN, head, _OWN, WIDTH - _OWN)
            copy(rows, place + WIDTH, urls, start, end - start)
            place += WIDTH + end - start
            kept += 1
            offsets[kept] = place
        return kept, left, len(found)

    return pack_rows


# numba's cache does not see what a function calls: so it closes over the text of that file.
pack_rows = _compile(xxh32_intdigest(getsource(hashing).encode()))
"""Pack the URLs that rows of `found` say (see `resolve`), in order: how many rows there are, and how many `outside` of
scope, whose numbers are noted and counted in `refused`, by reason. The third number is that of the row with which the URLs would
have more than `most` bytes together: it and what follows is left out.

`head` is that of each row but for keys and depth, which is `depth_here` at the host whose key is `here`; beyond `deepest` the
reason is `too_deep`. For what was `asked_for` the origin is no reason.
"""
