"""What it costs to divide a crawl among processes, and what servers see of it.

The same number of pages of the synthetic web by one process and by two, in turn: CPU a page of all crawling processes, and
that of the supervisor; what is exchanged, for several sizes of batches. Then thousands of domains on ten addresses by four
processes: how many requests came too soon by the servers' own log, and which part of the possible rate was reached. At last a
web of 50,000 pages by four: exchanged, exactly the pages of the truth; behind firewalls, those of the simulation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.engine.warcs import archived
from tests.parallel.firewalls import behind_firewalls

from barkspider.engine.folder import part_folders
from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web

_SPEC = WebSpec(seed=1, pages=10_000_000, servers=1_000)
_CROWDED = WebSpec(seed=2, pages=200_000, domains=5_000, servers=10, page_bytes=3_000, crawl_delay=0.0)
_FINITE = WebSpec(seed=4, pages=50_000, servers=500, page_bytes=3_000, crawl_delay=0.05)
_BATCHES = (10, 100, 1_000)
_SERVER_DELAY = 0.1  # seconds
_TICKS = os.sysconf("SC_CLK_TCK")


def run(quick: bool) -> dict[str, Any]:
    """Quick: fewer pages, once, and no crowded servers."""
    pages, repeats = (2_000, 1) if quick else (15_000, 3)
    figures: dict[str, Any] = {}
    costs: dict[int, list[float]] = {1: [], 2: []}
    shares = []
    with running_web(_SPEC) as served:
        for _ in range(repeats):
            for processes, found in costs.items():
                told, supervisor = _crawl(served, processes, pages)
                found.append(told["cpu_seconds"] / told["pages"])
                if processes > 1:
                    shares.append(supervisor / (supervisor + told["cpu_seconds"]))
        for batch in _BATCHES if not quick else _BATCHES[-1:]:
            told, _ = _crawl(served, 2, pages, f"parallel.batch={batch}", "parallel.interval=1h")
            gauges = told["gauges"]
            figures[f"batches of {batch:,} pages: URLs, bytes, batches a page"] = (
                round(gauges["sent"] / told["pages"], 2),
                round(gauges["sent_bytes"] / told["pages"]),
                round(gauges["batches"] / told["pages"], 4),
            )
    for processes, found in costs.items():
        figures[f"CPU µs a page, {processes} process{'es' if processes > 1 else ''}"] = [
            round(1e6 * each) for each in found
        ]
    ratio = min(costs[2]) / min(costs[1])
    breaches, rate = (None, None) if quick else _crowd()
    exact = dict.fromkeys(("exchange", "firewall")) if quick else _exact(figures)
    return {
        "figures": figures,
        "targets": [
            _target("CPU a page of 2 processes, of that of 1", round(ratio, 3), 1.1, ratio <= 1.1),
            _target("supervisor, share of the CPU", round(max(shares), 4), 0.02, max(shares) <= 0.02),
            _target("10 servers, 4 processes: requests too soon", breaches, 0, breaches == 0),
            *(
                _target(f"{mode}, 4 processes: pages missing, too many or twice", wrong, 0, wrong == 0)
                for mode, wrong in exact.items()
            ),
            _target(
                "10 servers, 4 processes: share of the possible rate",
                rate,
                0.85,
                rate is not None and rate >= 0.85,
            ),
        ],
    }


def _target(name: str, value: float | None, target: float, holds: bool) -> dict[str, Any]:
    return {"name": name, "value": value, "target": target, "holds": None if value is None else holds}


def _crawl(served: RunningWeb, processes: int, pages: int, *more: str) -> tuple[dict[str, Any], float]:
    """What a crawl told at its end, and the CPU seconds of its supervisor since all parts have begun."""
    options = ["seed=7", "scope.level=web", "politeness.host_delay=50ms", "politeness.server_delay=5ms"]
    options += ["politeness.slow_factor=0", "limits.grace=1s", f"limits.pages={pages}", *more]
    with tempfile.TemporaryDirectory() as folder:
        return _run(served, processes, options, served.web.seeds(200), Path(folder) / "job")


def _run(
    served: RunningWeb, processes: int, options: Sequence[str], seeds: Sequence[str], job: Path
) -> tuple[dict[str, Any], float]:
    chosen = [f"{name}={value}" for name, value in served.settings().items()] + [*options]
    command = [sys.executable, "-m", "barkspider.cli", "crawl", *seeds, "--json", "--job", str(job)]
    command += ["--processes", str(processes), *(word for each in chosen for word in ("--set", each))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        first = cpu = 0.0
        while process.poll() is None:
            cpu = max(cpu, _cpu(process.pid))
            has_begun = len(list(job.glob("part-*/control.sock"))) == processes
            first = first or (cpu if has_begun else 0.0)
            time.sleep(0.1)
        assert process.stdout is not None
        return json.loads(process.stdout.read()), cpu - first


def _cpu(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _exact(figures: dict[str, Any]) -> dict[str, int | None]:
    """How many pages of a finite web are missing, too many or fetched twice, in each mode; in the figures, overlap and coverage
    as the crawl told them, and the coverage that it had."""
    wrong: dict[str, int | None] = {}
    with running_web(_FINITE) as served:
        seeds = served.web.seeds(20)
        for mode in ("exchange", "firewall"):
            with tempfile.TemporaryDirectory() as folder:
                job = Path(folder) / "job"
                options = [
                    "seed=7",
                    "scope.level=web",
                    "politeness.host_delay=5ms",
                    "politeness.server_delay=1ms",
                ]
                options += ["politeness.slow_factor=0", f"parallel.mode={mode}", "archive.duplicates=false"]
                told = _run(served, 4, options, seeds, job)[0]["parallel"]
                pages = Counter(url for part in part_folders(job) for url in archived(part, "pages"))
                whole = served.web.reachable_urls(seeds)
                figures[f"{mode}: overlap and coverage told, coverage of the truth"] = (
                    told["overlap"],
                    told["coverage"],
                    round(len(pages) / len(whole), 4),
                )
                if mode == "exchange":
                    truth = Counter(whole)
                else:
                    truth = Counter(behind_firewalls(served.web, seeds, 4, 7, Path(folder)))
                wrong[mode] = ((pages - truth) + (truth - pages)).total()
    return wrong


def _crowd() -> tuple[int, float]:
    """Requests that came before the pause of their server was over, and the share of the rate that pauses allow."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_web(_CROWDED, log_path=Path(folder) / "requests.log") as served,
    ):
        options = ["seed=7", "scope.level=web", "politeness.host_delay=100ms", "politeness.slow_factor=0"]
        options += [
            f"politeness.server_delay={_SERVER_DELAY * 1000:g}ms",
            "limits.time=30s",
            "limits.grace=1s",
        ]
        _run(served, 4, options, served.web.seeds(500), Path(folder) / "job")
        assert served.log_path is not None
        last: dict[str, float] = {}
        too_soon, times = 0, dict[str, list[float]]()
        for entry in read_log(served.log_path):
            too_soon += entry.time - last.get(entry.address, 0.0) < _SERVER_DELAY
            last[entry.address] = entry.time
            times.setdefault(entry.address, []).append(entry.time)
    # Between the first fifth and the end of each: requests, of those that one after the other could be.
    rates = [(len(each) - len(each) // 5) / (each[-1] - each[len(each) // 5]) for each in times.values()]
    return too_soon, round(sum(rates) / len(rates) * _SERVER_DELAY, 3)
