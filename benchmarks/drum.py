"""Check+update of URLs against 10, 50 and 200 million known keys: DRUM, and the databases people would take.

One stream for all: random keys, one in nine new, 70 bytes of text beside each. Known keys are loaded in bulk,
then a stream follows and is measured: rows per second of processor time and of wall time. Databases get the
keys alone, and no syncs, which flatters them. Each contender runs in a process of its own; before it is
measured, as much page cache as it needs is written and dropped, because some virtual machines hand out
memory for the first time ten times more slowly than again. The second stream is links as they come off
pages: most are a site's template, again and again.

DRUM is measured over whole generations of its buckets, which follow what it knows as in a crawl, and the bytes that it
moves for a row are compared with equation (5). `python -m benchmarks drum 1000` measures DRUM alone with 1,000 million
keys beside 200: that takes 45 GB of disk and some minutes.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.model import irlbot
from barkspider.model.irlbot import UrlStream
from barkspider.storage.drum.counters import DrumCounters
from barkspider.storage.drum.repository import CHECK_UPDATE, Drum
from barkspider.storage.drum.sizing import Allowance, Sizing
from barkspider.storage.env import Env
from benchmarks._databases import PEERS

Keys = npt.NDArray[np.uint64]

_BATCH = 100_000
_TEXT = 70
_STORED = _TEXT + 1  # b: the text and its length
# Keys in millions: RAM for DRUM, target of rows per CPU-second.
_SIZES = {
    10: (300_000_000, 3_200_000),
    50: (300_000_000, 2_800_000),
    200: (500_000_000, 2_400_000),
}
_LARGE_RAM = 1_000_000_000


def run(quick: bool, millions: str = "") -> dict[str, Any]:
    """10 million keys when `quick`, else 10, 50 and 200; or so many `millions`, beside 200."""
    if millions:
        return _run_large(int(millions))
    figures: dict[str, Any] = {}
    targets: list[dict[str, Any]] = []

    def target(name: str, value: float | None, goal: float, holds: bool | None = None) -> None:
        reached = None if value is None else value >= goal if holds is None else holds
        targets.append({"name": name, "value": value, "target": goal, "holds": reached})

    for size, (ram, goal) in _SIZES.items():
        skipped = quick and size > 10
        ours = None if skipped else _apart(_measure_drum, size, ram)
        if ours is None:
            target(f"drum_{size}m_rows_per_cpu_second", None, goal)
            continue
        figures |= {f"drum_{size}m_{name}": value for name, value in ours.items()}
        target(f"drum_{size}m_rows_per_cpu_second", ours["rows_per_cpu_second"], goal)
        limit = round(ram * 1.1)
        target(f"drum_{size}m_rss_above_idle", ours["rss"], limit, ours["rss"] <= limit)
        _add_peers(figures, targets, size, quick, ours["rows_per_cpu_second"])
    if quick:
        for name, times in (("databases_50m", 6.0), ("duckdb_50m", 1.8), ("duckdb_200m", 4.0)):
            target(f"times_as_fast_as_{name}", None, times)

    alpha = _apart(_measure_overhead, 0)
    figures |= {f"alpha_{name}": value for name, value in alpha.items()}
    off, on = alpha["measured_over_equation_5"], alpha["with_front_over_equation_5"]
    target(
        "alpha_over_equation_5_extras_off_within_5%", off, 1.05, 0.95 <= off <= 1.05 and alpha["merges"] >= 20
    )
    target("alpha_over_equation_5_extras_on_at_most", on, 1.05, on <= 1.05)
    pages = _apart(_measure_pages, 2_000_000 if quick else 8_000_000)
    figures |= {f"pages_{name}": value for name, value in pages.items()}
    target("pages_rows_per_cpu_second", pages["rows_per_cpu_second"], 6_000_000)
    return {"figures": figures, "targets": targets}


def _run_large(millions: int) -> dict[str, Any]:
    """DRUM alone, with so many million keys and with 200 million."""
    sizes = {"drum_200m": (200, _SIZES[200][0]), f"drum_{millions}m": (millions, _LARGE_RAM)}
    found = {name: _apart(_measure_drum, *about) for name, about in sizes.items()}
    small, large = found.values()
    rates = {
        name: large[name] / small[name]
        for name in ("rows_per_cpu_second", "rows_per_cpu_second_outside_the_system")
    }
    off = large["bytes_per_row_over_equation_5"]
    return {
        "figures": {f"{name}_{key}": value for name, about in found.items() for key, value in about.items()},
        "targets": [
            *(
                {
                    "name": f"{name}_at_{millions}m_over_200m",
                    "value": round(rate, 3),
                    "target": 0.75,
                    "holds": rate >= 0.75,
                }
                for name, rate in rates.items()
            ),
            {
                "name": "bytes_per_row_over_equation_5_within_10%",
                "value": off,
                "target": 1.0,
                "holds": 0.9 <= off <= 1.1,
            },
        ],
    }


def _add_peers(
    figures: dict[str, Any], targets: list[dict[str, Any]], millions: int, quick: bool, ours: int
) -> None:
    rates: dict[str, int | None] = {}
    for name in PEERS:
        if millions == 200 and name != "duckdb":
            continue
        found = _apart(_measure_peer, name, millions, quick)
        rates[name] = found and found["rows_per_cpu_second"]
        figures |= {
            f"{name}_{millions}m_{key}": value
            for key, value in (found or {"rows_per_cpu_second": None}).items()
        }
    best = max((rate for name, rate in rates.items() if rate and name != "duckdb"), default=None)
    for name, rate, goal in (
        ("databases", best, 6.0),
        ("duckdb", rates.get("duckdb"), 4.0 if millions == 200 else 1.8),
    ):
        if name == "databases" and millions == 200:
            continue
        ratio = round(ours / rate, 2) if rate else None
        figures[f"times_as_fast_as_{name}_{millions}m"] = ratio
        if millions > 10:
            targets.append(
                {
                    "name": f"times_as_fast_as_{name}_{millions}m",
                    "value": ratio,
                    "target": goal,
                    "holds": None if ratio is None else ratio >= goal,
                }
            )


def _apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a process of its own, so that memory and processor time are its own too."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


# The streams.


def _mixed(numbers: npt.NDArray[Any]) -> Keys:
    """Distinct numbers as distinct random keys (the finaliser of splitmix64)."""
    x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return x


def _known_keys(numbers: npt.NDArray[Any], known: int) -> Keys:
    """Even keys that ascend with their numbers, each at random in its part of the range: so that a billion of them need
    not be in RAM to be sorted."""
    part = np.uint64((1 << 64) // known)
    keys: Keys = numbers.astype(np.uint64) * part + _mixed(numbers) % part
    return keys & ~np.uint64(1)


def _known_blocks(known: int) -> Iterator[Keys]:
    for at in range(0, known, 1 << 17):
        yield _known_keys(np.arange(at, min(known, at + (1 << 17))), known)


def _known(known: int) -> Keys:
    return np.concatenate(list(_known_blocks(known)))


def _stream(known: int, rows: int = 0, batch: int = _BATCH) -> Iterator[Keys]:
    """Keys of which one in nine is new, which are odd; without an end unless it is said how many."""
    random, fresh = np.random.default_rng(1), known
    for _ in range(rows // batch) if rows else count():
        keys = _known_keys(random.integers(0, known, batch), known)
        new = keys[::9]
        new[:] = _mixed(np.arange(fresh, fresh + len(new))) | np.uint64(1)
        fresh += len(new)
        yield keys


def _page_stream(rows: int, batch: int = _BATCH) -> Iterator[Keys]:
    """Links of pages, 60 each: 48 of the site's template of 50, 6 to other pages seen, 6 that are new.

    Pages come as a crawl has them: 2,000 sites at a time, in turn.
    """
    random, fresh, sites = np.random.default_rng(2), 1 << 40, np.arange(2_000)
    for _ in range(rows // batch):
        pages = -(-batch // 60)
        numbers = np.empty((pages, 60), np.int64)
        site = random.choice(sites, pages)
        numbers[:, :48] = site[:, None] * 64 + random.integers(0, 50, (pages, 48))
        numbers[:, 48:54] = random.integers(1 << 40, fresh + 1, (pages, 6))
        numbers[:, 54:] = np.arange(fresh, fresh + 6 * pages).reshape(pages, 6)
        fresh += 6 * pages
        sites[random.integers(0, len(sites), 20)] = random.integers(0, 1 << 30, 20)
        yield _mixed(numbers.reshape(-1)[:batch])


def _texts() -> pa.Array:
    random = np.random.default_rng(3)
    return pa.array([random.bytes(_TEXT) for _ in range(_BATCH)], pa.binary())


# Measuring.


def _drum(folder: Path, ram: int, disk: int, front: int = 0) -> Drum:
    sizing = Sizing.choose(ram, disk, aux=_STORED)
    return Drum(Env(), folder, "seen", aux=True, output="unique", sizing=sizing, front=front)


def _measure_drum(millions: int, ram: int) -> dict[str, Any]:
    """One whole generation of buckets against so many million keys."""
    known, env = millions * 1_000_000, Env()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        allowance = Allowance(ram, lambda: env.free_space(place) // 2, aux=_STORED)
        drum = Drum(env, place, "seen", aux=True, output="unique", sizing=allowance)
        drum.load((keys, None) for keys in _known_blocks(known))
        disk = allowance.generation(8 * known).disk
        found = _drive(drum, _stream(known), place, 2 * disk + 16 * known, generations=1)
    rows = found["rows"]
    expected = irlbot.drum(UrlStream(rows, 1 / 9, known, _STORED), ram=1e18, disk=disk) * _STORED
    ratio = found["bytes_per_row"] / expected
    return found | {"ram": ram, "disk": disk, "bytes_per_row_over_equation_5": round(ratio, 4)}


def _measure_pages(rows: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        sizing = Sizing.choose(236_000_000, 800_000_000, aux=_STORED)
        drum = Drum(Env(), Path(folder), "seen", aux=True, output="unique", sizing=sizing, front=64_000_000)
        return _drive(drum, _page_stream(rows), Path(folder), 1_600_000_000)


def _drive(
    drum: Drum, stream: Iterator[Keys], folder: Path, cache: int, generations: int = 0
) -> dict[str, Any]:
    """Feed a stream until it ends, and merge what is left; or until so many `generations` were full and are merged. Then
    take the results. All but making the stream is measured."""
    texts = _texts()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    _warm(folder, cache)
    idle = _reset_peak()
    drum.counters = DrumCounters()
    rows = unique = 0
    cpu = wall = 0.0
    system = os.times().system
    for keys in stream:
        began = time.process_time(), time.perf_counter()
        drum.feed(CHECK_UPDATE, keys, aux=texts)
        if generations and drum.merging:
            drum.wait()
        unique += sum(map(len, drum.results()))
        cpu, wall = cpu + time.process_time() - began[0], wall + time.perf_counter() - began[1]
        rows += len(keys)
        if generations and drum.counters.merges >= generations:
            break
    began = time.process_time(), time.perf_counter()
    if not generations:
        drum.merge()
    unique += sum(map(len, drum.results()))
    cpu, wall = cpu + time.process_time() - began[0], wall + time.perf_counter() - began[1]
    peak, system = _peak() - idle, os.times().system - system
    counters = drum.counters
    drum.close()
    return {
        "rows": rows,
        "unique": unique,
        "rows_per_cpu_second": round(rows / cpu),
        "rows_per_second": round(rows / wall),
        "system_cpu_share": round(system / cpu, 3),
        "rows_per_cpu_second_outside_the_system": round(rows / (cpu - system)),
        "bytes_per_row": round(counters.moved() / rows, 1),
        "alpha": round(counters.overhead(), 3),
        "sifted": counters.sifted,
        "merges": counters.merges,
        "rss": peak,
    }


def _measure_overhead(_: int) -> dict[str, Any]:
    """α with M, Δ and r scaled down: 3 million rows, 1 million known keys, D for about 24 merges."""
    known, rows = 1_000_000, 3_000_000
    disk = rows * (8 + _STORED) // 24
    figures: dict[str, Any] = {}
    expected = irlbot.drum(UrlStream(rows, 1 / 9, known, _STORED), ram=1e18, disk=disk)
    for name, front in (("measured", 0), ("with_front", 4_000_000)):
        with tempfile.TemporaryDirectory() as folder:
            drum = _drum(Path(folder), 4_000_000, disk, front)
            drum.load([(_known(known), None)])
            found = _drive(drum, _stream(known, rows), Path(folder), 1 << 20)
        figures[name] = found["alpha"]
        figures[f"{name}_over_equation_5"] = round(found["alpha"] / expected, 4)
        figures["merges" if not front else "merges_with_front"] = found["merges"]
    return figures | {"equation_5": round(expected, 3)}


def _warm(folder: Path, size: int) -> None:
    path, data = folder / "warm", bytes(1 << 20)
    with path.open("wb", buffering=0) as file:
        for _ in range(min(size, 8_000_000_000) >> 20):
            file.write(data)
    path.unlink()


def _reset_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.partition(f"{name}:")[2].split()[0]) * 1024


def _measure_peer(name: str, millions: int, quick: bool) -> dict[str, Any] | None:
    """None when the database is not installed."""
    analytic = name == "duckdb"  # it is at its best with large batches
    batch = 4_000_000 if analytic else 60_000
    rows = 4_000_000 if analytic else 240_000 if quick else 2_040_000
    with tempfile.TemporaryDirectory() as folder:
        try:
            check = PEERS[name](Path(folder), _known(millions * 1_000_000))
        except ModuleNotFoundError:
            return None
        _warm(Path(folder), 20 * millions * 1_000_000)
        new, cpu, wall = 0, 0.0, 0.0
        idle = _reset_peak()
        for keys in _stream(millions * 1_000_000, rows, batch):
            began = time.process_time(), time.perf_counter()
            new += check(keys)
            cpu, wall = cpu + time.process_time() - began[0], wall + time.perf_counter() - began[1]
    return {
        "rows": rows,
        "unique": new,
        "rows_per_cpu_second": round(rows / cpu),
        "rows_per_second": round(rows / wall),
        "rss": _peak() - idle,
    }
