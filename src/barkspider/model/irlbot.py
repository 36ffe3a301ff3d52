"""The models of IRLbot (WWW 2008): Theorems 1 to 5, equations (1) to (11).

The letters of the paper stand beside the names. α, the overhead of a method, is how many times each byte of a
parsed URL is written to or read from disk while URLs are checked for uniqueness: ω = αbn bytes in all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

BUFFER = 1 << 18  # M: bytes of RAM for an open file
CHUNK = 32_000_000  # Δ: bytes that a disk reads at full speed
_LEAST_DISK = 8  # bytes of buckets for each byte of RAM, at least
MOST_QUEUES = 128  # `budget.max_queues`: what the paper needs for 80 billion pages


@dataclass(frozen=True, slots=True)
class UrlStream:
    """The links that pass the check for uniqueness, with the paper's sizes in bytes.

    >>> UrlStream(links=59 * 8e9).unique_urls
    51920000000.0
    """

    links: float  # n = lN
    unique: float = 0.11  # p, the share of links that were never seen
    known: float = 100e6  # U, URLs in URLseen at the start
    url: float = 110  # b
    compressed_url: float = 5.5  # bq; the text says 5, Table 2 was made with 5.5
    key: float = 8  # H
    pointer: float = 4  # P

    @property
    def unique_urls(self) -> float:
        """pn."""
        return self.unique * self.links

    def rewritten(self, entry: float) -> float:
        """2U + pn entries, as bytes: what each merge reads and writes of URLseen, on average."""
        return (2 * self.known + self.unique_urls) * entry


def mercator(stream: UrlStream, ram: float) -> float:
    """Equation (1): α of Mercator-B with R bytes of RAM.

    >>> round(mercator(UrlStream(59 * 8e8, 1 / 9), ram=1e9), 1)
    11.6
    """
    merging = 2 * stream.rewritten(stream.key) * (stream.key + stream.pointer) / (stream.url * ram)
    return merging + 2 + stream.unique


def polybot(stream: UrlStream, ram: float) -> float:
    """Equation (2): α of Polybot with R bytes of RAM.

    >>> round(polybot(UrlStream(59 * 8e9, 1 / 9), ram=1e9))
    663
    """
    merging = 2 * stream.rewritten(stream.compressed_url) * (stream.url + 4 * stream.pointer)
    return merging / (stream.url * ram) + stream.unique


def mercator_limit(stream: UrlStream, ram: float) -> float:
    """Equation (3): the bytes ω that Mercator-B moves, as n goes to infinity."""
    return 2 * (stream.key + stream.pointer) * stream.unique * stream.key * stream.links**2 / ram


def polybot_limit(stream: UrlStream, ram: float) -> float:
    """Equation (4): the bytes ω that Polybot moves, as n goes to infinity.

    >>> stream = UrlStream(59 * 8e12)
    >>> round(polybot_limit(stream, 1e9) / mercator_limit(stream, 1e9), 1)
    7.2
    """
    return (
        2 * (stream.url + 4 * stream.pointer) * stream.unique * stream.compressed_url * stream.links**2 / ram
    )


def drum(stream: UrlStream, ram: float, disk: float, buffer: float = BUFFER) -> float:
    """Equation (5): α of DRUM with R bytes of RAM and D bytes of disk for its buckets.

    Holds for R of at least `drum_least_ram`.

    >>> round(drum(UrlStream(59 * 8e11, 1 / 9), ram=1e9, disk=4.39e12), 1)
    12.5
    """
    cache = stream.rewritten(stream.key)
    if ram**2 < 8 * buffer * disk * (stream.key + stream.pointer) / (stream.key + stream.url):  # R² < Λ
        merging = 8 * buffer * (stream.key + stream.pointer) * cache / (stream.url * ram**2)
    else:
        merging = (stream.key + stream.url) * cache / (stream.url * disk)
    return merging + drum_floor(stream)


def bucket_disk(known: float, ram: float, most: float) -> float:
    """D of a generation of buckets in this crawler, by the bytes of the cache Z when it begins.

    With D of twice Z, 16 bytes a URL, the merging term of equation (5) is (H + b)/b, hardly more than 1, however
    large Z is. It is never less than 8R, so that a small cache is not passed over and over, nor more than `most`, the
    disk space that there is.

    >>> bucket_disk(known=8e6, ram=1e9, most=1e12), bucket_disk(known=8e9, ram=1e9, most=1e12)
    (8000000000.0, 16000000000.0)
    """
    return min(max(_LEAST_DISK * ram, 2 * known), most)


def drum_floor(stream: UrlStream) -> float:
    """α''min of section 4.4: what any method pays that stores both keys and URLs on disk.

    >>> round(drum_floor(UrlStream(1, 1 / 9)), 3)
    2.257
    """
    return 2 + stream.unique + 2 * stream.key / stream.url


def drum_least_ram(stream: UrlStream, chunk: float = CHUNK) -> float:
    """2Δ(1 + P/H): with less RAM, Theorem 2 does not hold.

    >>> drum_least_ram(UrlStream(1))
    96000000.0
    """
    return 2 * chunk * (1 + stream.pointer / stream.key)


def drum_best_disk(stream: UrlStream, ram: float, buffer: float = BUFFER) -> float:
    """Equation (6): D_opt; R bytes of RAM cannot fill more disk than this.

    >>> round(drum_best_disk(UrlStream(1), ram=1e9) / 1e12, 2)
    4.69
    """
    return ram**2 * (stream.key + stream.url) / (8 * buffer * (stream.key + stream.pointer))


def drum_best_buckets(ram: float, buffer: float = BUFFER) -> float:
    """k_opt = R/4M: the number of buckets at D_opt, and how much smaller than Mercator-B's the quadratic
    term of ω is there."""
    return ram / (4 * buffer)


def drum_best_bucket(stream: UrlStream, ram: float) -> float:
    """r_opt: the bytes of the bucket buffer at D_opt.

    >>> round(drum_best_bucket(UrlStream(1), ram=1.0), 2)
    0.33
    """
    return ram * stream.key / (2 * (stream.key + stream.pointer))


def drum_sized(stream: UrlStream, ram: float, disk: float, buffer: float = BUFFER) -> float:
    """Equation (5) where D follows the cache (`bucket_disk`): α of this crawler's DRUM, whose buckets may have at most
    `disk` bytes, and at most D_opt.

    The merging term is the mean of that of (5) over all sizes which the cache has on its way. Where `bucket_disk` is
    the same for all of them, it is (5).

    >>> stream = UrlStream(59 * 8e9, 1 / 9)
    >>> round(drum_sized(stream, ram=1e9, disk=4.39e12), 2), round(drum(stream, ram=1e9, disk=8e9), 1)
    (3.33, 58.7)
    """
    (first, last), passed = _cache(stream), 0.0
    for begin, end, size in _growth(stream, ram, disk, buffer):
        # Where D is twice the cache all the way, that of the middle makes this end - begin, as it should be.
        passed += (end * end - begin * begin) / size
    merging = passed / (last - first) * (stream.key + stream.url) / stream.url
    return merging + drum_floor(stream)


def drum_merges(stream: UrlStream, ram: float, disk: float, buffer: float = BUFFER) -> float:
    """How often this crawler's DRUM merges on the way: a geometric series while D is twice the cache.

    >>> round(drum_merges(UrlStream(59 * 8e9, 1 / 9), ram=1e9, disk=4.39e12))
    362
    """
    first, last = _cache(stream)
    most, shares = min(disk, drum_best_disk(stream, ram, buffer)), 0.0
    for begin, end, size in _growth(stream, ram, disk, buffer):
        grows = 2 * begin >= _LEAST_DISK * ram and 2 * end <= most
        shares += math.log(end / begin) / 2 if grows else (end - begin) / size
    return stream.links * (stream.key + stream.url) * shares / (last - first)


def _cache(stream: UrlStream) -> tuple[float, float]:
    """The bytes of URLseen at the start and at the end."""
    return stream.known * stream.key, (stream.known + stream.unique_urls) * stream.key


def _growth(
    stream: UrlStream, ram: float, disk: float, buffer: float
) -> Iterator[tuple[float, float, float]]:
    """The sizes of the cache between which D is what it is at least, twice the cache, and what it is at most; and D in
    the middle between them."""
    most, (first, last) = min(disk, drum_best_disk(stream, ram, buffer)), _cache(stream)
    marks = [mark for mark in (_LEAST_DISK * ram / 2, most / 2) if first < mark < last]
    for begin, end in pairwise(sorted([first, *marks, last])):
        yield begin, end, bucket_disk((begin + end) / 2, ram, most)


def drum_bytes(
    *,
    written: float,
    merged: float,
    passed: float,
    given: float,
    row: float,
    entry: float = 8,
    answer: float = 0,
) -> float:
    """The bytes that a DRUM moves, by the reasoning of Theorem 2, when its merges are counted instead of derived
    from R and D, because some came early.

    Rows of `row` bytes, H + b in the paper, are `written` to buckets and read when they are `merged`; those `given` out
    are appended to the next queue as `answer` bytes, b in the paper. `passed` entries of the cache, of `entry` bytes, are
    read and written: 2U + pn for each merge, if it updates.

    >>> drum_bytes(written=900, merged=900, passed=200, given=100, row=118, answer=110)
    225000.0
    """
    return float((written + merged) * row + given * answer + passed * entry)


def disk_rate(speed: float, alpha: float, url: float, links_per_page: float) -> float:
    """Theorem 3, equation (7): S_disk, pages a second that W bytes a second for URL checks allow.

    >>> round(disk_rate(speed=101.25e6, alpha=3.721, url=110, links_per_page=59))
    4193
    """
    return speed / (alpha * url * links_per_page)


def over_budget(pages: float, budget: float, domains: float) -> float:
    """Equation (9): α_N, how many times N pages exceed what all V domains may have at once.

    >>> round(over_budget(pages=8e9, budget=11, domains=33e6), 2)
    22.04
    """
    return max(1.0, pages / (budget * domains))


def naive_speed(rate: float, url: float, unique_per_page: float, excess: float) -> float:
    """Theorem 4, equation (8): λ in bytes a second when all failed URLs are checked again each time.

    `excess` is α_N of `over_budget`, `unique_per_page` L.

    >>> round(naive_speed(rate=3100, url=110, unique_per_page=6.5, excess=1) / 1e6, 1)
    3.8
    """
    return 2 * rate * url * (unique_per_page - 1) * excess


def beast_speed(rate: float, url: float, unique_per_page: float, excess: float) -> float:
    """Theorem 5, equation (10): λ in bytes a second of BEAST; `excess` may be infinite.

    >>> round(beast_speed(rate=3100, url=110, unique_per_page=6.5, excess=math.inf) / 1e6, 1)
    8.2
    """
    part = 2.0 if math.isinf(excess) else 2 * excess / (1 + excess)
    return 2 * rate * url * (part * (unique_per_page - 1) + 1)


def bounded_beast_speed(rate: float, url: float, unique_per_page: float, excess: float) -> float:
    """λ in bytes a second of BEAST with at most `MOST_QUEUES` (docs/decisions/0022): equation (10) as long as (11) wants
    no more, then Sb(5L - 3). Q_F is read when twice as many pages have been taken as at the last time, so all readings
    together are at most twice the last one, of N(L - 1) URLs.

    >>> round(bounded_beast_speed(rate=3100, url=110, unique_per_page=6.5, excess=math.inf) / 1e6, 1)
    10.1
    """
    if excess + 1 <= 2 * MOST_QUEUES:
        return beast_speed(rate, url, unique_per_page, excess)
    return rate * url * (5 * unique_per_page - 3)


def beast_bytes(found: float, taken: float, rescanned: float, url: float) -> float:
    """The bytes that BEAST moves, by the reasoning of Theorem 5, when the URLs that failed and came up again are counted
    instead of derived from N, V and E[B_x], for which every domain must be endless: each URL `found` is written, each one
    `taken` is read, and those of Q_F are read and written again. Equation (10) is the most it can be.

    >>> beast_bytes(found=650, taken=100, rescanned=200, url=110)
    126500.0
    """
    return float(url * (found + taken + 2 * rescanned))


def beast_queues(excess: float) -> int:
    """Equation (11): j, the queues of the last stage of a crawl.

    >>> beast_queues(over_budget(8e9, 11, 33e6)), beast_queues(over_budget(80e9, 11, 33e6))
    (16, 128)
    """
    return int(2 ** (math.ceil(math.log2(excess + 1)) - 1))
