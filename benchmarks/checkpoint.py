"""For how long a checkpoint holds up its crawl: in a crawl of the demo's web, and in a frontier that is large.

The crawl takes a checkpoint every two seconds; its log says for how long nothing else could be done. The large frontier knows
100,000 hosts and has a million URLs, as many of them in RAM as it may have; what it has in its buffers came since the
checkpoint before. Figures of the crawl are seconds by the clock, those of the large frontier CPU, the median of three.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Seeds
from barkspider.core.load import load_settings
from barkspider.engine import Crawl, Job
from barkspider.frontier import open_frontier
from barkspider.frontier.driver import Driver
from barkspider.lab.synthweb import WebSpec, running_web
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store

_MOST = 50.0  # milliseconds
_PAGES = (2_000, 20_000)
_HOSTS, _URLS, _AT_ONCE = 100_000, 1_000_000, 20_000
_OPTIONS = (
    "seed=7",
    "scope.level=web",
    "politeness.host_delay=50ms",
    "politeness.server_delay=5ms",
    "politeness.slow_factor=0",
    "limits.grace=1s",
    "checkpoint=2s",
)


def run(quick: bool) -> dict[str, Any]:
    """Quick: a shorter crawl."""
    crawled = _crawl(_PAGES[not quick])
    held, named = _large()
    figures = {
        "crawl: checkpoints": len(crawled),
        "crawl: held, median ms": round(1000 * statistics.median(each["seconds"] for each in crawled), 1),
        "crawl: written beside it, median s": round(
            statistics.median(each["written"] for each in crawled), 2
        ),
        **{f"large frontier: {name}, ms": round(ms, 1) for name, ms in named.items()},
    }
    values = {
        "crawl: held, most ms": 1000 * max(each["seconds"] for each in crawled),
        "large frontier: held, ms": held,
    }
    targets = [
        {"name": name, "value": round(value, 1), "target": _MOST, "holds": value <= _MOST}
        for name, value in values.items()
    ]
    return {"figures": figures, "targets": targets}


def _crawl(pages: int) -> list[dict[str, Any]]:
    """What the log says of the checkpoints of a crawl, without the last one, for which it waits."""
    spec = WebSpec(seed=1, pages=10_000_000, servers=2_000, https_share=0.0)

    async def crawl(folder: Path, options: list[str], seeds: list[str]) -> None:
        job = Job.create(folder, load_settings(options=options), seeds, Env())
        try:
            await Crawl.open(job).run()
        finally:
            job.close()

    with running_web(spec) as served, tempfile.TemporaryDirectory() as folder:
        options = [f"{key}={value}" for key, value in served.settings().items()]
        job = Path(folder) / "job"
        uvloop.run(crawl(job, [*options, *_OPTIONS, f"limits.pages={pages}"], served.web.seeds(100)))
        lines = [json.loads(line) for line in (job / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if line["event"] == "checkpoint"][:-1]


def _large() -> tuple[float, dict[str, float]]:
    """CPU milliseconds of the two parts of a checkpoint that its owner waits for, and what makes up most of them."""
    settings = load_settings("irlbot", options=["seed=1", "politeness.obey_robots=false"])
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Env(), Path(folder))
        frontier = open_frontier(settings, Env(), Path(folder), state=store.state)
        assert isinstance(frontier, Driver)
        for structure in frontier.structures():
            store.add(structure)
        for key in range(1, _HOSTS + 1):
            frontier._gate.ready.host(key)
        spent, named, now = [], dict[str, list[float]](), 0.0
        for first in range(0, _URLS, _AT_ONCE):
            now += 1.0
            frontier.step(now, [Seeds(_batch(first))])
        for _ in range(200):
            now += 0.1
            frontier.step(now, [])
            time.sleep(0.005)  # merges run in threads
        for number in range(3):
            for part in range(3):
                frontier.step(now, [Seeds(_batch(_URLS + (3 * number + part) * _AT_ONCE))])
            start = time.thread_time()
            parts = {}
            for structure in frontier.structures():
                before = time.thread_time()
                structure.prepare()
                parts[structure.name] = 1000 * (time.thread_time() - before)
            held = time.thread_time() - start
            for name, value in parts.items():
                named.setdefault(name, []).append(value)
            write = store.prepare()
            write()
            start = time.thread_time()
            store.committed()
            spent.append(1000 * (held + time.thread_time() - start))
        gauges = frontier.gauges()
        frontier.close()
    medians = {name: statistics.median(values) for name, values in named.items()}
    most = sorted(medians.items(), key=lambda each: -each[1])[:4]
    counts = {name: float(gauges[name]) for name in ("hosts", "primary", "secondary", "queues")}
    return statistics.median(spent), dict(most) | counts


def _batch(first: int) -> UrlBatch:
    """URLs by their numbers, of hosts and domains at random."""
    numbers = np.arange(first, first + _AT_ONCE, dtype=np.uint64)
    hosts = numbers * np.uint64(0x9E3779B97F4A7C15) % np.uint64(_HOSTS) + np.uint64(1)
    urls = [
        b"http://h%d.example/a/page/%d.html" % pair
        for pair in zip(hosts.tolist(), numbers.tolist(), strict=True)
    ]
    keys = (numbers + np.uint64(1)) * np.uint64(0xD1342543DE82EF95)
    return UrlBatch.of(urls, key=keys, host_key=hosts, pld_key=hosts * np.uint64(0x9E3779B97F4A7C15))
