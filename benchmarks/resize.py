"""A crawl that is divided anew again and again, by resizes that are killed, and one whose batches are carried by hand.

From 3 processes to 5, to 2 and to 1, each crawl ended by SIGKILL for all its processes, each resize killed at random system
calls (tests/parallel/resized.py): with IRLbot's frontier, divided by domains, sites and URLs, and with Sydney's, its set of seen
URLs in RAM and on disk. Then
three machines with one part each and a folder that goes round (tests/parallel/carried.py). At last what a resize takes:
seconds and memory for many URLs, from one frontier to four.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.parallel.carried import run as carry
from tests.parallel.resized import DEFAULTS, NONE
from tests.parallel.resized import run as resize_and_kill

from barkspider.core.batch import UrlBatch
from barkspider.core.load import load_settings
from barkspider.frontier import Driver, open_frontier
from barkspider.frontier.dividing import Dividing
from barkspider.frontier.irlbot import Irlbot
from barkspider.frontier.lots import Lot
from barkspider.lab.synthweb import WebSpec, running_web
from barkspider.storage.env import Env

_KILLS = {"irlbot": 20, "irlbot by site": 6, "irlbot by url": 6, "sydney": 6, "sydney-disk": 6}
_SIZES = [3, 5, 2, 1]
_KEYS_AT_ONCE = 100_000
_MEMORY = 500_000_000  # bytes of `memory`


def run(quick: bool) -> dict[str, Any]:
    """Quick: three kills, all parts in one process; nothing is carried, and fewer URLs are moved."""
    figures: dict[str, Any] = {}
    targets = []
    for name, kills in {"irlbot": 3}.items() if quick else _KILLS.items():
        frontier, _, partition = name.partition(" by ")
        order = {"frontier": frontier, "kills": kills, "sizes": _SIZES, "together": quick, "seed": 7}
        order["partition"] = partition or "domain"
        order |= (
            {"pages": 120, "host_delay": 0.03, "crawl_delay": 0.1}
            if quick
            else {"pages": 1_000, "patience": 900.0}
        )
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="resize-") as folder:
            found = resize_and_kill(DEFAULTS | order, Path(folder))
        told = ("kills", "kills_before", "kills_after", "truth", "requests")
        figures |= {f"{name}: {each}": found[each] for each in told}
        figures[f"{name}: seconds"] = round(time.monotonic() - started, 1)
        figures[f"{name}: examples"] = found["examples"] + found["problems"]
        wrong = {each: found[each] for each in NONE} | {"problems of verify": len(found["problems"])}
        if frontier == "irlbot":
            wrong["counters that do not add up"] = found["sums_agree"].count(False)
            wrong["in-degrees that differ"] = int(found["in_degrees"] != found["in_degrees_of_links"])
        if name == "irlbot":
            done = None if quick else found["kills"]
            targets.append(_target("kills during resizes", done, kills, done is not None and done >= kills))
        targets += [_target(f"{name}: {each}", value, 0, value == 0) for each, value in wrong.items()]
    carried = None if quick else _carried()
    figures["carried"] = carried
    for name in ("missing", "not_in_truth", "archived_twice"):
        value = None if carried is None else carried[name]
        targets.append(_target(f"carried: {name}", value, 0, value == 0))
    return {"figures": figures | _cost(quick), "targets": targets}


def _carried() -> dict[str, Any]:
    spec = WebSpec(seed=5, pages=400, domains=50, page_bytes=3_000, crawl_delay=0.1)
    with (
        tempfile.TemporaryDirectory(prefix="carried-") as folder,
        running_web(spec, log_path=Path(folder) / "requests.log") as served,
    ):
        return carry(served, DEFAULTS | {"host_delay": 0.02, "server_delay": 0.001}, Path(folder), 3)


def _cost(quick: bool) -> dict[str, Any]:
    """In a process of its own, whose memory is that of a resize alone."""
    code = f"from benchmarks.resize import move; print(move({50_000 if quick else 2_000_000}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True
    )
    seconds, keys, urls, mebibytes = done.stdout.split()
    return {
        "from 1 to 4: keys, URLs": (int(keys), int(urls)),
        "from 1 to 4: seconds": float(seconds),
        "from 1 to 4: MB above those of a process with both frontiers": float(mebibytes),
    }


def move(urls: int) -> str:
    """Hand on a frontier with so many URLs, and five times as many that were seen, to four; what that took."""
    with tempfile.TemporaryDirectory(prefix="resize-") as folder:
        old = _opened(Path(folder) / "old", 1, 0)
        gate, source = old.holdings
        assert isinstance(source, Irlbot)
        random, keys = np.random.default_rng(1), 5 * urls
        for start in range(0, keys, _KEYS_AT_ONCE):
            count = min(_KEYS_AT_ONCE, keys - start)
            source.adopt(Lot("seen", random.integers(1, 2**63, count).astype(np.uint64)))
        for number, batch in enumerate(_batches(urls, random)):
            source.adopt(Lot.of("turn", batch, place=number % 8))
            gate.counters.deferred += len(batch)
            gate.counters.discovered += len(batch)
        source.complete(0.0)
        heirs = [_opened(Path(folder) / f"new-{part}", 4, part) for part in range(4)]
        before, started = _peak(), time.monotonic()
        dividing = Dividing(heirs, load_settings(overrides={"parallel.processes": 4}))
        dividing.take(old)
        dividing.finish()
        seconds = time.monotonic() - started
        moved = sum(heir.counters.deferred for heir in heirs)
        assert moved == urls
        for frontier in (old, *heirs):
            frontier.close()
        return f"{seconds:.1f} {keys} {moved} {(_peak() - before) / 1e6:.0f}"


def _opened(folder: Path, processes: int, part: int) -> Driver:
    names = {
        "memory": f"{_MEMORY // processes}B",
        "seed": 1,
        "parallel.processes": processes,
        "parallel.part": part,
    }
    return open_frontier(load_settings(overrides=names), Env(), folder, resumed=0.0)


def _batches(urls: int, random: np.random.Generator) -> Iterator[UrlBatch]:
    for start in range(0, urls, 10_000):
        count = min(10_000, urls - start)
        texts = [
            b"http://www.site-%d.example/pages/%d.html" % (row % 5_000, row)
            for row in range(start, start + count)
        ]
        keys = random.integers(1, 2**63, (3, count)).astype(np.uint64)
        yield UrlBatch.of(texts, key=keys[0], host_key=keys[1], pld_key=keys[2])


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _target(name: str, value: Any, target: Any, holds: bool) -> dict[str, Any]:
    return {"name": name, "value": value, "target": target, "holds": None if value is None else holds}
