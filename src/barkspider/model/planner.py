"""From the parameters of a crawl to what it needs and what holds it back.

Machines share a crawl evenly by domain, as section 3.1 of IRLbot has it: each has its part of the pages, of the
domains and of the rate. Everything in a `Plan` is about one of them, but for the pages, the days and the advice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from barkspider.core.errors import UsageError
from barkspider.core.units import parse_count, parse_duration, parse_size, parse_speed
from barkspider.model import exchange, irlbot
from barkspider.model.irlbot import UrlStream

LIMITS = {
    "rate": "the rate asked for",
    "url_checks": "URL checks",
    "disk_speed": "the speed of the disks",
    "bandwidth": "the bandwidth",
    "cpu": "the CPU",
}
UNITS: dict[str, Callable[[str], float]] = {
    "count": parse_count,
    "share": parse_count,
    "size": parse_size,
    "speed": parse_speed,
    "duration": parse_duration,
}


def _parameter(default: str, unit: str, text: str) -> Any:
    """A field that is read as `unit` says; "" has no default, "none" may be left out."""
    metadata = {"unit": unit, "help": text, "default": default}
    if not default:
        return field(metadata=metadata)
    return field(default=None if default == "none" else UNITS[unit](default), metadata=metadata)


_MAY_BE_NONE = ("known", "sifted", "node_price", "store_price")


@dataclass(frozen=True, slots=True)
class Parameters:
    """A crawl, the machines for it, and the constants of IRLbot, whose values are the defaults.

    >>> Parameters(pages=8e9, ram=-1)
    Traceback (most recent call last):
    barkspider.core.errors.UsageError: --ram is -1; give more than 0
    """

    pages: float = _parameter("", "count", "N: how many pages to crawl, such as 8e9 or 8B.")
    rate: float = _parameter("1000", "count", "S: pages a second that you want, all machines together.")
    machines: float = _parameter("1", "count", "How many machines share the crawl.")
    ram: float = _parameter("8GB", "size", "R: RAM of a machine for URL checks.")
    disk: float = _parameter("4TB", "size", "Most disk space of a machine for the buckets of URL checks (D).")
    disk_speed: float = _parameter("500MB/s", "speed", "Average of reading and writing of a machine's disks.")
    disk_share: float = _parameter("0.15", "share", "Part of the disks' speed that is given to URL checks.")
    bandwidth: float = _parameter("1Gb/s", "speed", "A machine's link to the Internet.")
    cores: float = _parameter("4", "count", "Cores of a machine; counts only with --cpu-per-page.")
    cpu_per_page: float | None = _parameter("none", "duration", "CPU time of a page, such as 2ms.")
    node_price: float = _parameter("0", "count", "What an hour of a machine costs, in your money.")
    store_price: float = _parameter("0", "count", "What a gigabyte in the store costs a month.")
    links_per_page: float = _parameter("59", "count", "l: links of a page, repeated ones too.")
    unique: float = _parameter("0.11", "share", "p: part of the links that were never seen before.")
    sifted: float = _parameter("0", "share", "Part of the links that a set in RAM stops before the disk.")
    unique_per_page: float | None = _parameter(
        "none", "count", "L: new URLs of a page; 6.5, or else l times p."
    )
    page_size: float = _parameter("25KB", "size", "A page as it comes.")
    compression: float = _parameter("5", "count", "How many times smaller the archive keeps a page.")
    external: float = _parameter("0.1", "share", "Part of the links that lead to other sites.")
    known: float = _parameter("100M", "count", "U: URLs in URLseen at the start; may be 0.")
    domains: float = _parameter("33M", "count", "V: pay-level domains that the crawl meets.")
    budget: float = _parameter("11", "count", "E[B_x]: average budget of a domain, in pages.")
    url_bytes: float = _parameter(
        "110", "count", "b: bytes of a URL in a queue, with what is kept beside it."
    )
    compressed_url_bytes: float = _parameter("5.5", "count", "bq: bytes of a compressed URL of Polybot.")
    key_bytes: float = _parameter("8", "count", "H: bytes of the hash of a URL.")
    pointer_bytes: float = _parameter("4", "count", "P: bytes of a pointer in RAM.")
    buffer: float = _parameter("256KiB", "size", "M: the buffer of an open file.")
    chunk: float = _parameter("32MB", "size", "Δ: what a disk reads at full speed.")

    def __post_init__(self) -> None:
        for one in fields(self):
            value, option = getattr(self, one.name), "--" + one.name.replace("_", "-")
            if value is None or (one.name in _MAY_BE_NONE and value == 0):
                continue
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"{option} is {value:g}; give more than 0")
            if one.metadata["unit"] == "share" and value > 1:
                raise UsageError(f"{option} is {value:g}; a share is at most 1")
        if self.machines != int(self.machines):
            raise UsageError(f"--machines is {self.machines:g}; give a whole number")

    @property
    def fresh(self) -> float:
        """L: as given; else the paper's, unless l or p are not the paper's.

        >>> Parameters(8e9).fresh, Parameters(8e9, links_per_page=20, unique=0.5).fresh
        (6.5, 10.0)
        """
        if self.unique_per_page is not None:
            return self.unique_per_page
        if (self.links_per_page, self.unique) == (59, 0.11):
            return 6.5
        return self.links_per_page * self.unique

    @property
    def stream(self) -> UrlStream:
        """The links that one machine checks on its disk."""
        return UrlStream(
            self.pages / self.machines * self.checked_per_page,
            self.unique * self.links_per_page / self.checked_per_page,
            self.known / self.machines,
            self.url_bytes,
            self.compressed_url_bytes,
            self.key_bytes,
            self.pointer_bytes,
        )

    @property
    def checked_per_page(self) -> float:
        """Links of a page that reach the disk: at least the new ones."""
        return self.links_per_page * max(1 - self.sifted, self.unique)

    @property
    def excess(self) -> float:
        """α_N."""
        return irlbot.over_budget(self.pages, self.budget, self.domains)

    @property
    def alpha(self) -> float:
        """α of this crawler's DRUM, whose D follows URLseen."""
        return irlbot.drum_sized(self.stream, self.ram, self.disk, self.buffer)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a machine of the crawl needs; `limits` are pages a second that each part of it allows.

    `beast_bytes_per_second`, `naive_bytes_per_second` and the other speeds are at the rate asked for, `days` are at the
    rate that can be reached. The disk holds URLseen twice while it is merged, and buckets twice: some are filled
    meanwhile. `alpha_drum_whole_disk` is equation (5) with all of the disk space from the start. What a store holds at
    the end, all machines together, is `store_bytes`; costs are those of all machines for `days`, and of that store for
    a month.
    """

    pages: float
    machines: int
    alpha_drum: float
    alpha_drum_whole_disk: float
    alpha_mercator: float
    alpha_polybot: float
    alpha_least: float
    merges: float
    disk_optimal_bytes: float
    buckets: int
    bucket_bytes: float
    buffer_bytes: float
    s_disk_pages_per_second: float
    s_disk_mercator_pages_per_second: float
    s_disk_polybot_pages_per_second: float
    urlseen_bytes: float
    bucket_disk_bytes: float
    queue_bytes: float
    archive_bytes: float
    disk_bytes: float
    ram_least_bytes: float
    ram_bytes: float
    url_check_bytes_per_second: float
    beast_bytes_per_second: float
    naive_bytes_per_second: float
    archive_bytes_per_second: float
    disk_bytes_per_second: float
    beast_queues: int
    bandwidth_bytes_per_second: float
    exchange_urls_per_page: float
    exchange_bytes_per_second: float
    exchange_share: float
    limits: dict[str, float]
    pages_per_second: float
    days: float
    cores_in_use: float | None
    store_bytes: float
    machines_cost: float
    store_cost_a_month: float
    bottleneck: str
    improve: str
    warnings: tuple[str, ...]


def plan(given: Parameters) -> Plan:
    """What the crawl needs.

    >>> needs = plan(Parameters(pages=8e9, rate=3100, disk_speed=675e6))
    >>> round(needs.naive_bytes_per_second / 1e6), needs.beast_queues, needs.bottleneck
    (83, 16, 'rate')
    """
    stream, rate, pages = given.stream, given.rate / given.machines, given.pages / given.machines
    alphas = (given.alpha, irlbot.mercator(stream, given.ram), irlbot.polybot(stream, given.ram))
    speed = given.disk_speed * given.disk_share
    drum_rate, mercator_rate, polybot_rate = (
        irlbot.disk_rate(speed, alpha, given.url_bytes, given.checked_per_page) for alpha in alphas
    )
    best_disk = irlbot.drum_best_disk(stream, given.ram, given.buffer)
    through = stream.links * (given.key_bytes + given.url_bytes)
    queues = min(irlbot.beast_queues(given.excess), irlbot.MOST_QUEUES)
    urlseen = (stream.known + stream.unique_urls) * given.key_bytes
    filled = min(irlbot.bucket_disk(urlseen, given.ram, min(given.disk, best_disk)), through)
    queue = max(given.fresh - 1, 0) * pages * given.url_bytes
    kept = given.page_size / given.compression
    checks, budgets = _disk_per_page(given)
    sent = exchange.exchanged_per_page(given.links_per_page * given.external, given.machines)
    limits = _limits(given)
    bottleneck = min(limits, key=lambda name: limits[name])
    return Plan(
        pages=given.pages,
        machines=int(given.machines),
        alpha_drum=alphas[0],
        alpha_drum_whole_disk=irlbot.drum(stream, given.ram, given.disk, given.buffer),
        alpha_mercator=alphas[1],
        alpha_polybot=alphas[2],
        alpha_least=irlbot.drum_floor(stream),
        merges=max(1.0, irlbot.drum_merges(stream, given.ram, given.disk, given.buffer)),
        disk_optimal_bytes=best_disk,
        buckets=max(1, round(irlbot.drum_best_buckets(given.ram, given.buffer))),
        bucket_bytes=irlbot.drum_best_bucket(stream, given.ram),
        buffer_bytes=given.buffer,
        s_disk_pages_per_second=drum_rate,
        s_disk_mercator_pages_per_second=mercator_rate,
        s_disk_polybot_pages_per_second=polybot_rate,
        urlseen_bytes=urlseen,
        bucket_disk_bytes=filled,
        queue_bytes=queue,
        archive_bytes=pages * kept,
        disk_bytes=2 * urlseen + 2 * filled + queue + pages * kept,
        ram_least_bytes=irlbot.drum_least_ram(stream, given.chunk),
        # Beside URL checks: a buffer for each queue, for Q_F, and for the Q_F that replaces it.
        ram_bytes=given.ram + (queues + 2) * given.buffer,
        url_check_bytes_per_second=checks * rate,
        beast_bytes_per_second=budgets * rate,
        naive_bytes_per_second=irlbot.naive_speed(rate, given.url_bytes, max(given.fresh, 1), given.excess),
        archive_bytes_per_second=kept * rate,
        disk_bytes_per_second=(checks + budgets + kept) * rate,
        beast_queues=queues,
        bandwidth_bytes_per_second=given.page_size * rate,
        exchange_urls_per_page=sent,
        exchange_bytes_per_second=sent * given.url_bytes * rate,
        exchange_share=exchange.exchange_share(sent, given.url_bytes, given.page_size),
        limits=limits,
        pages_per_second=limits[bottleneck],
        days=(days := pages / limits[bottleneck] / 86400),
        cores_in_use=None if given.cpu_per_page is None else given.cpu_per_page * limits[bottleneck],
        store_bytes=(stored := given.machines * (urlseen + queue + pages * kept)),
        machines_cost=given.machines * days * 24 * given.node_price,
        store_cost_a_month=stored / 1e9 * given.store_price,
        bottleneck=bottleneck,
        improve=_improve(given, limits),
        warnings=tuple(_warnings(given, limits)),
    )


def _disk_per_page(given: Parameters) -> tuple[float, float]:
    """Bytes that a page moves on disk for URL checks, and for budgets."""
    return (
        given.alpha * given.url_bytes * given.checked_per_page,
        irlbot.bounded_beast_speed(1, given.url_bytes, max(given.fresh, 1), given.excess),
    )


def _limits(given: Parameters) -> dict[str, float]:
    checks, budgets = _disk_per_page(given)
    limits = {
        "rate": given.rate / given.machines,
        "url_checks": given.disk_speed * given.disk_share / checks,
        "disk_speed": given.disk_speed / (checks + budgets + given.page_size / given.compression),
        "bandwidth": given.bandwidth / given.page_size,
    }
    if given.cpu_per_page is not None:
        limits["cpu"] = given.cores / given.cpu_per_page
    return limits


def _improve(given: Parameters, limits: dict[str, float]) -> str:
    """What to change first: the cheapest of all whose doubling makes the crawl a tenth faster."""
    now = min(limits.values())
    if limits["rate"] == now:
        name = min(set(limits) - {"rate"}, key=lambda name: limits[name])
        most = math.floor(limits[name] * given.machines)
        return f"ask for more; the next limit, {LIMITS[name]}, is at --rate {most}"
    # In order of what it costs: a setting, disk space, memory, faster disks, a wider link, other machines.
    for name in ("disk_share", "disk", "ram", "disk_speed", "bandwidth", "cores", "machines"):
        double = min(2 * getattr(given, name), 1.0 if name == "disk_share" else math.inf)
        other = replace(given, **{name: double})
        reached = min(_limits(other).values()) * other.machines
        if reached >= 1.1 * now * given.machines:
            option = name.replace("_", "-")
            return f"double --{option}: {now * given.machines:,.0f} become {reached:,.0f} pages/s"
    return "double two or more of them: no single one helps"


def _warnings(given: Parameters, limits: dict[str, float]) -> Iterator[str]:
    """Where a formula leaves its range, or the plan what was asked for."""
    stream = given.stream
    least, best = (
        irlbot.drum_least_ram(stream, given.chunk),
        irlbot.drum_best_disk(stream, given.ram, given.buffer),
    )
    if given.ram < least:
        yield f"Theorem 2 needs R of 2Δ(1 + P/H) or more, {least / 1e6:,.0f} MB: α of DRUM is too good to be true"
    if given.ram < 4 * given.buffer:
        yield "R is less than 4M: not even one bucket has its buffers"
    if given.disk > best:
        yield f"RAM fills {best / 1e6:,.0f} MB of the disk space for buckets (D_opt); the rest stays empty"
    first = irlbot.bucket_disk(stream.known * given.key_bytes, given.ram, min(given.disk, best))
    if stream.links * (given.key_bytes + given.url_bytes) < first:
        yield "all links fit the buckets: equation (5) counts less than one merge, there will be one"
    if given.fresh <= 1:
        yield f"L = {given.fresh:.2g}: a page brings no more than one new URL, so the crawl may run dry; λ is a guess"
    if given.fresh > given.links_per_page:
        yield "L is larger than l: a page cannot bring more new URLs than it has links"
    queues = irlbot.beast_queues(given.excess)
    if queues > irlbot.MOST_QUEUES:
        yield f"(11) wants {queues:,} queues; with {irlbot.MOST_QUEUES} BEAST moves up to Sb(5L - 3), more than (10) says"
    reached = min(limits.values())
    if reached < limits["rate"]:
        yield f"{given.rate:,.0f} pages/s cannot be reached: {reached * given.machines:,.0f} can"
