"""How long check-outs and check-ins of a crawl site by site take, with ten thousand to a million sites in SQLite.

A process that has all sites to itself checks one out and in again, over and over. Each visit has seen a hundred URLs and found
ten of other sites, one of which is a site that nobody knew. The median of the whole transaction counts, with its sync. Flat
means that it does not grow with the number of sites; where syncs take most of it, the CPU time says more.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barkspider.sites import Link, Registry, Visit, open_database

_SIZES, _QUICK = (10_000, 100_000, 1_000_000), (10_000, 50_000)
_VISITS = 1_000
_URLS, _FOUND, _NEW = (
    100,
    10,
    1,
)  # a visit has seen so many URLs, and found so many elsewhere, of new sites so many
_AT_ONCE = 10_000
_ROW = 100  # bytes of a URL with its columns
_MOST, _FLAT = 5.0, 1.5  # milliseconds; of the largest, times what the smallest takes


def run(quick: bool) -> dict[str, Any]:
    """10,000, 100,000 and a million sites; 10,000 and 50,000 when `quick`."""
    figures: dict[str, Any] = {"visits": _VISITS, "seen": _URLS, "found": _FOUND}
    choose, times, cpus = random.Random(1), dict[str, list[float]](), dict[str, list[float]]()
    sizes = _QUICK if quick else _SIZES
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sites.db"
        registry = Registry(open_database("", file, ""), lease=300.0, tries=3)
        known = 0
        for size in sizes:
            for start in range(known, size, _AT_ONCE):
                registry.add([_link(number, 0) for number in range(start, min(start + _AT_ONCE, size))])
            known = size
            fresh = iter(range(1 << 40 | size, 1 << 41))
            for name, seconds, cpu in _visits(registry, choose, size, fresh):
                times.setdefault(name, []).append(1000 * seconds)
                cpus.setdefault(name, []).append(1000 * cpu)
                figures[f"{name}_ms_{size}"] = round(1000 * seconds, 3)
                figures[f"{name}_cpu_ms_{size}"] = round(1000 * cpu, 3)
            figures[f"file_bytes_a_site_{size}"] = round(file.stat().st_size / size)
        registry.close()
    targets = []
    for name, medians in times.items():
        worst, growth = round(max(medians), 3), round(cpus[name][-1] / cpus[name][0], 2)
        targets += [
            {"name": f"{name}_ms", "value": worst, "target": _MOST, "holds": worst <= _MOST},
            {"name": f"{name}_growth", "value": growth, "target": _FLAT, "holds": growth <= _FLAT},
        ]
    return {"figures": figures, "targets": targets}


def _visits(
    registry: Registry, choose: random.Random, size: int, fresh: Iterator[int]
) -> list[tuple[str, float, float]]:
    """The medians of both, in seconds: by the clock, and of CPU."""
    out, back = list[tuple[float, float]](), list[tuple[float, float]]()
    for _ in range(_VISITS):
        begin = time.perf_counter(), time.process_time()
        ((site,), _) = registry.check_out("a process", 1)
        middle = time.perf_counter(), time.process_time()
        out.append((middle[0] - begin[0], middle[1] - begin[1]))
        seen = choose.randbytes(8 * _URLS)
        found = [_link(choose.randrange(size), choose.randrange(1, 1000)) for _ in range(_FOUND - _NEW)]
        found += [_link(next(fresh), 0) for _ in range(_NEW)]
        begin = time.perf_counter(), time.process_time()
        assert registry.check_in(site.key, site.fence, Visit(seen, pages=_URLS), found)
        end = time.perf_counter(), time.process_time()
        back.append((end[0] - begin[0], end[1] - begin[1]))
    return [
        (name, *(statistics.median(column) for column in zip(*taken, strict=True)))
        for name, taken in (("check_out", out), ("check_in", back))
    ]


def _link(site: int, number: int) -> Link:
    """A URL of a site; keys are spread as hashes are."""
    key = site * 0x9E3779B97F4A7C15 % (1 << 64)
    return Link(key, f"site{site}.example", key, key ^ number, b"x" * _ROW, is_seed=not number)
