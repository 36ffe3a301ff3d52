"""The compiled loops of ranking. All run without the GIL.

All are in this one file, because numba's cache goes by the file in which a kernel stands. A loop works on a
chunk of nodes, node `first` + i with neighbours[offsets[i] : offsets[i + 1]], and on its rows from `begin` to
`end`: the graph in RAM is one chunk that threads divide, the graph on disk many.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

# Without static types: within a kernel a number is a number, and what a type checker knows about numpy's
# scalars is not what the compiler does with them.
nb: Any = numba
u64: Any = np.uint64
u32: Any = np.uint32
i64: Any = np.int64


def _kernel(signature: Any) -> Any:
    return nb.njit(signature, nogil=True, cache=True)


_PLACES = nb.types.Array(nb.int64, 1, "C", readonly=True)
_NODES = nb.types.Array(nb.uint32, 1, "C", readonly=True)
_WORDS = nb.types.Array(nb.uint64, 1, "C", readonly=True)
_SHARES = nb.types.Array(nb.float64, 1, "C", readonly=True)


@_kernel(nb.int64(nb.uint64[::1]))
def drop_repeated(keys):  # type: ignore[no-untyped-def]
    """Move each key of a sorted array to the front once; how many there are."""
    count = 0
    for i in range(len(keys)):
        if i == 0 or keys[i] != keys[i - 1]:
            keys[count] = keys[i]
            count += 1
    return count


@_kernel(nb.uint64(nb.uint64))
def mix(z):  # type: ignore[no-untyped-def]
    """SplitMix64's output for a state: a number that looks random for each z."""
    z = (z ^ (z >> u64(30))) * u64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> u64(27))) * u64(0x94D049BB133111EB)
    return z ^ (z >> u64(31))


@_kernel(nb.boolean(nb.uint64, nb.uint64, nb.uint64))
def _is_sampled(node, seed, below):  # type: ignore[no-untyped-def]
    return mix(mix(seed) + node * u64(0x9E3779B97F4A7C15)) <= below


@_kernel(nb.uint32[::1](nb.int64, nb.int64, nb.uint64, nb.uint64))
def sampled(first, count, seed, below):  # type: ignore[no-untyped-def]
    """The nodes among `count` from `first` whose random number is at most `below`; the same in every run."""
    chosen = np.empty(count, np.uint32)
    found = 0
    for i in range(count):
        if _is_sampled(u64(first + i), seed, below):
            chosen[found] = u32(first + i)
            found += 1
    return chosen[:found].copy()


@_kernel(nb.void(_PLACES, _NODES, _SHARES, nb.int64, nb.int64, nb.float64[::1]))
def gather_shares(offsets, neighbours, shares, begin, end, out):  # type: ignore[no-untyped-def]
    """out[x] = sum of the shares of x's neighbours."""
    for x in range(begin, end):
        total = 0.0
        for i in range(offsets[x], offsets[x + 1]):
            total += shares[neighbours[i]]
        out[x] = total


@_kernel(
    nb.types.UniTuple(nb.float64, 2)(
        _PLACES, _NODES, _SHARES, _SHARES, nb.float64, nb.float64, nb.int64, nb.int64,
        nb.float64[::1], nb.float64[::1],
    ),
)  # fmt: skip
def pagerank_step(  # type: ignore[no-untyped-def]
    offsets, neighbours, shares, inverse, alpha, base, begin, end, ranks, next_shares
):
    """Equation (2) for some nodes; the L1 change, and the rank of those among them that link nowhere."""
    change, dangling = 0.0, 0.0
    for x in range(begin, end):
        total = 0.0
        for i in range(offsets[x], offsets[x + 1]):
            total += shares[neighbours[i]]
        rank = alpha * total + base
        change += abs(rank - ranks[x])
        ranks[x] = rank
        next_shares[x] = rank * inverse[x]
        if inverse[x] == 0.0:
            dangling += rank
    return change, dangling


@_kernel(nb.void(_PLACES, _NODES, _NODES, nb.int64, nb.int64, nb.int64[::1]))
def quick_visits(offsets, neighbours, degrees, begin, end, out):  # type: ignore[no-untyped-def]
    """Equation (3): out[x] = sum of the in-degrees of x's in-neighbours."""
    for x in range(begin, end):
        total = 0
        for i in range(offsets[x], offsets[x + 1]):
            total += i64(degrees[neighbours[i]])
        out[x] = total


@_kernel(nb.types.UniTuple(nb.int64, 3)(_PLACES, _NODES, nb.int64, nb.int64, nb.uint64[::1], nb.uint32[::1]))
def _reach(offsets, neighbours, start, depth, seen, queue):  # type: ignore[no-untyped-def]
    """Breadth-first from `start`: queue[low:high] are the nodes at exactly `depth`; edges that were followed.

    `seen` is a set of bits, which the caller clears of queue[:high] again.
    """
    queue[0] = u32(start)
    seen[start >> 6] |= u64(1) << u64(start & 63)
    low, high, followed = 0, 1, 0
    for _ in range(depth):
        level = high
        for place in range(low, level):
            y = i64(queue[place])
            followed += offsets[y + 1] - offsets[y]
            for i in range(offsets[y], offsets[y + 1]):
                z = i64(neighbours[i])
                bit = u64(1) << u64(z & 63)
                word = seen[z >> 6]
                # Written without a branch: which nodes were met before cannot be guessed.
                queue[high] = u32(z)
                high += i64((word & bit) == u64(0))
                seen[z >> 6] = word | bit
        low = level
    return low, high, followed


@_kernel(nb.void(nb.uint64[::1], nb.uint32[::1], nb.int64))
def _forget(seen, queue, count):  # type: ignore[no-untyped-def]
    if count > len(seen):
        seen[:] = u64(0)
        return
    for place in range(count):
        seen[i64(queue[place]) >> 6] = u64(0)


@_kernel(
    nb.types.UniTuple(nb.int64, 2)(
        _PLACES, _NODES, nb.int64, nb.int64, nb.int64, nb.uint64[::1], nb.uint32[::1], nb.int64[::1]
    )
)
def count_supporters(  # type: ignore[no-untyped-def]
    offsets, neighbours, depth, begin, end, seen, queue, out
):
    """Equation (1): out[x] = nodes at distance exactly `depth`; edges followed, nodes met.

    `seen` has a bit a node, all 0; `queue` room for every node and one more.
    """
    followed, met = 0, 0
    for x in range(begin, end):
        low, high, edges = _reach(offsets, neighbours, x, depth, seen, queue)
        out[x] = high - low
        followed += edges
        met += high
        _forget(seen, queue, high)
    return followed, met


@_kernel(
    nb.types.UniTuple(nb.int64, 2)(
        _PLACES, _NODES, nb.int64, _NODES, nb.uint64[::1], nb.uint32[::1], nb.uint32[::1]
    )
)
def spread_support(offsets, neighbours, depth, sources, seen, queue, counts):  # type: ignore[no-untyped-def]
    """counts[x] += 1 for each source at distance exactly `depth` before x; edges followed, nodes met."""
    followed, met = 0, 0
    for source in sources:
        low, high, edges = _reach(offsets, neighbours, source, depth, seen, queue)
        for place in range(low, high):
            counts[queue[place]] += u32(1)
        followed += edges
        met += high
        _forget(seen, queue, high)
    return followed, met


@_kernel(nb.int64(nb.uint64, nb.int64, nb.int64, nb.int64, nb.uint64[::1]))
def random_bits(seed, halvings, begin, end, out):  # type: ignore[no-untyped-def]
    """Words whose bits are 1 with probability 2^-halvings each; how many random words that took."""
    drawn = 0
    # The seed is mixed first: with the sum of both, a round of one seed had the bits of a round of the next.
    start = mix(mix(seed) + u64(halvings))
    for x in range(begin, end):
        state = mix(start + u64(x) * u64(0x9E3779B97F4A7C15))
        word = ~u64(0)
        for _ in range(halvings):
            state += u64(0x9E3779B97F4A7C15)
            word &= mix(state)
            drawn += 1
            if word == u64(0):
                break
        out[x] = word
    return drawn


@_kernel(nb.void(_PLACES, _NODES, _WORDS, nb.int64, nb.int64, nb.int64, nb.uint64[::1]))
def gather_bits(offsets, neighbours, words, first, begin, end, out):  # type: ignore[no-untyped-def]
    """out[x] = the word of x and of its neighbours, one over the other."""
    for x in range(begin, end):
        word = words[first + x]
        for i in range(offsets[x], offsets[x + 1]):
            word |= words[neighbours[i]]
        out[first + x] = word


@_kernel(nb.int64(nb.uint64))
def _ones(word):  # type: ignore[no-untyped-def]
    word -= (word >> u64(1)) & u64(0x5555555555555555)
    word = (word & u64(0x3333333333333333)) + ((word >> u64(2)) & u64(0x3333333333333333))
    word = (word + (word >> u64(4))) & u64(0x0F0F0F0F0F0F0F0F)
    return i64((word * u64(0x0101010101010101)) >> u64(56))


@_kernel(nb.int64(_WORDS, _WORDS, nb.float32[::1], nb.float32[::1], nb.float64))
def tally_bits(inner, outer, missed, last, certain):  # type: ignore[no-untyped-def]
    """Add up, for each node, the share of bits that no supporter at the last distance has set.

    Bits that closer nodes have set (`inner`) tell nothing and do not count. When they are all of them, the
    share is foretold from the round before: with twice the probability it is squared. How many nodes have
    fewer than a `certain` share left.
    """
    done = 0
    for x in range(len(inner)):
        free = 64 - _ones(inner[x])
        share = last[x] * last[x]
        if free > 0:
            share = np.float32(64 - _ones(outer[x])) / np.float32(free)
        missed[x] += share
        last[x] = share
        if share < certain:
            done += 1
    return done


@_kernel(
    nb.types.UniTuple(nb.int64, 2)(
        _PLACES, _NODES, nb.int64, _NODES, _NODES, _NODES, _NODES, nb.int64, nb.uint32[::1], nb.int64[::1],
        nb.int64[::1],
    ),
)  # fmt: skip
def join_sample(  # type: ignore[no-untyped-def]
    offsets, neighbours, first, targets, sources, names, starts, shift, stamps, stamp, out
):
    """TSE's second pass: out[x] = sampled z with z -> y -> x for some y, but neither z -> x nor z = x.

    Edges of the sample, sources[i] -> targets[i], are sorted by target; `starts` tells where the targets from
    each multiple of 2^shift begin. `names` are the sampled nodes, `stamps` has a place for each.
    """
    looked, met = 0, 0
    for x in range(len(offsets) - 1):
        stamp[0] += 1
        now = u32(stamp[0])
        node = first + x
        for i in range(starts[node >> shift], starts[(node >> shift) + 1]):
            if targets[i] == node:
                stamps[sources[i]] = now
        count = 0
        for place in range(offsets[x], offsets[x + 1]):
            y = i64(neighbours[place])
            for i in range(starts[y >> shift], starts[(y >> shift) + 1]):
                if i64(targets[i]) == y:
                    looked += 1
                    z = sources[i]
                    if stamps[z] != now and i64(names[z]) != node:
                        stamps[z] = now
                        count += 1
        out[x] = count
        met += count
    return looked, met


@_kernel(nb.int64(_PLACES, _NODES, _PLACES, _NODES, nb.int64[::1], nb.uint64[::1]))
def list_paths(  # type: ignore[no-untyped-def]
    in_offsets, in_neighbours, out_offsets, out_neighbours, place, pairs
):
    """SUPP2-B: write (x << 32 | z) for every path z -> y -> x with z other than x; how many fit.

    `place` is (row of y, which x of it) to go on from, and tells where to go on when `pairs` is full; a row
    beyond the last says that all is done. There is room for the paths to one x at least.
    """
    count = 0
    while place[0] < len(in_offsets) - 1:
        y = place[0]
        low, high = in_offsets[y], in_offsets[y + 1]
        while out_offsets[y] + place[1] < out_offsets[y + 1]:
            if count + high - low > len(pairs):
                return count
            x = u64(out_neighbours[out_offsets[y] + place[1]])
            for i in range(low, high):
                z = u64(in_neighbours[i])
                pairs[count] = (x << u64(32)) | z
                count += i64(z != x)
            place[1] += 1
        place[0] += 1
        place[1] = 0
    return count


@_kernel(nb.int64(_WORDS, _WORDS, nb.int64, nb.int64[::1]))
def count_pairs(pairs, edges, first, out):  # type: ignore[no-untyped-def]
    """out[x - first] += 1 for each of the sorted pairs (x, z) that is not among the sorted edges."""
    i = 0
    for j in range(len(pairs)):
        while i < len(edges) and edges[i] < pairs[j]:
            i += 1
        if i == len(edges) or edges[i] != pairs[j]:
            out[i64(pairs[j] >> u64(32)) - first] += 1
    return i


@_kernel(nb.int64(_PLACES, _NODES, nb.int64, _WORDS, nb.int64, nb.int64[::1], nb.uint64[::1], nb.int64))
def list_supporters(  # type: ignore[no-untyped-def]
    offsets, neighbours, first, index, live, place, pairs, count
):
    """SUPP2-A: append (row of x << 32 | z) for each in-neighbour z of a node y that has x behind it.

    `index` has (y << 32 | row of x), sorted; rows from `live` on are let go. `place` is (where in the index
    to go on, whether this chunk is done): it stops at the first entry that does not fit behind the `count`
    pairs that are there. How many there are now.
    """
    last = first + len(offsets) - 1
    place[1] = 1
    while place[0] < len(index):
        entry = index[place[0]]
        y = i64(entry >> u64(32))
        if y >= last:
            break
        row = entry & u64(0xFFFFFFFF)
        if i64(row) < live:
            low, high = offsets[y - first], offsets[y - first + 1]
            if count + high - low > len(pairs):
                place[1] = 0
                break
            for i in range(low, high):
                pairs[count] = (row << u64(32)) | u64(neighbours[i])
                count += 1
        place[0] += 1
    return count


@_kernel(nb.int64(_PLACES, nb.int64, _NODES, nb.uint64[::1]))
def select_new(ends, live, kept, pairs):  # type: ignore[no-untyped-def]
    """Of sorted pairs (row, z), move those to the front whose z the row does not hold yet; how many."""
    count, row, i = 0, -1, 0
    for j in range(len(pairs)):
        here = i64(pairs[j] >> u64(32))
        if here >= live:
            break
        if here != row:
            row, i = here, (ends[here - 1] if here > 0 else 0)
        z = u32(pairs[j] & u64(0xFFFFFFFF))
        while i < ends[row] and kept[i] < z:
            i += 1
        if i == ends[row] or kept[i] != z:
            pairs[count] = pairs[j]
            count += 1
    return count


@_kernel(nb.void(nb.int64[::1], nb.int64, nb.uint32[::1], _WORDS))
def insert_pairs(ends, live, kept, pairs):  # type: ignore[no-untyped-def]
    """Put new sorted pairs (row, z) into the sorted sets of their rows, from the back, in place."""
    j = len(pairs) - 1
    for row in range(live - 1, -1, -1):
        if j < 0:
            break
        i, begin = ends[row] - 1, (ends[row - 1] if row > 0 else 0)
        ends[row] += j + 1
        while j >= 0 and i64(pairs[j] >> u64(32)) == row:
            z = u32(pairs[j] & u64(0xFFFFFFFF))
            while i >= begin and kept[i] > z:
                kept[i + j + 1] = kept[i]
                i -= 1
            kept[i + j + 1] = z
            j -= 1
        while i >= begin and j >= 0:
            kept[i + j + 1] = kept[i]
            i -= 1
