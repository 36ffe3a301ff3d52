"""The models of IRLbot (WWW 2008): Theorems 1 to 5, equations (1) to (11).

The letters of the paper stand beside the names. α, the overhead of a method, is how many times each byte of a
parsed URL is written to or read from disk while URLs are checked for uniqueness: ω = αbn bytes in all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

BUFFER = 1 << 18  # M: bytes of RAM for an open file
CHUNK = 32_000_000  # Δ: bytes that a disk reads at full speed


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


def drum_bytes(
    rows: float, unique: float, merges: float, url: float, known: float = 0, key: float = 8
) -> float:
    """The bytes that a DRUM moves, by the reasoning of Theorem 2, when its merges are counted instead of derived
    from R and D: `rows` are those that reach its buckets, so without the hits of the front set.

    Keys and URLs are written to buckets and read back, unique URLs appended to the next queue, and each merge
    reads and writes the cache, which grows evenly from `known` to `known` + `unique` keys.

    >>> drum_bytes(rows=900, unique=100, merges=2, url=110)
    225000.0
    """
    return float(2 * rows * (key + url) + unique * url + merges * (2 * known + unique) * key)


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


def beast_queues(excess: float) -> int:
    """Equation (11): j, the queues of the last stage of a crawl.

    >>> beast_queues(over_budget(8e9, 11, 33e6)), beast_queues(over_budget(80e9, 11, 33e6))
    (16, 128)
    """
    return int(2 ** (math.ceil(math.log2(excess + 1)) - 1))
