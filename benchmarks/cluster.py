"""What happens to a crawl on a Ray cluster, and what that costs.

Three nodes on this machine, four parts, a store in a folder, a finite web: undisturbed; with a node killed by SIGKILL, disk and
all, another added, and the driver killed; with a node that stands still for longer than its lease and goes on then. Each time
what the store has is compared with the truth, and what servers saw with their pauses (tests/parallel/clusters.py). Then the same
pages by two processes of this machine and by two parts on a cluster of one node: CPU a page of the crawling processes, that of
stations and overseer beside it, from when all parts were started and until then, Ray's own processes not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.parallel.clusters import DEFAULTS, LOOPBACK, process_tree, ray_cluster

from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web

_RUNS: dict[str, dict[str, Any]] = {
    "undisturbed": {},
    "a node killed, the driver too": {"kill": True, "abandon": True},
    "a node that stood still": {"freeze": True},
}
_SPEC = WebSpec(seed=1, pages=10_000_000, servers=1_000)
_TICKS = os.sysconf("SC_CLK_TCK")


def run(quick: bool) -> dict[str, Any]:
    """Quick: 400 pages on two nodes, of which one is killed, and no comparison of CPU."""
    size = {"pages": 400} if quick else {"pages": 20_000, "nodes": 3, "processes": 4, "patience": 600.0}
    figures: dict[str, Any] = {}
    targets: list[dict[str, Any]] = []
    for name, order in _RUNS.items():
        found = _clustered({**DEFAULTS, **size, **order}) if not quick or order.get("kill") else None
        for what in ("missing", "twice_or_wrong", "too_soon"):
            value = found[what] if found else None
            targets.append(_target(f"{name}: {what.replace('_', ' ')}", value, 0, value == 0))
        if found and "since_copy" in found:
            again, since = found["fetched_again"], found["since_copy"]
            targets.append(
                _target(f"{name}: fetched again, of those since the last copy", again, since, again <= since)
            )
        if found:
            figures[name] = {each: found[each] for each in ("truth", "fetched_again", "seconds")}
    local, cluster, beside, start = (None, None, None, None) if quick else _costs()
    ratio = round(cluster / local, 3) if cluster and local else None
    figures["CPU µs a page: 2 processes, 2 parts on a cluster, stations and overseer"] = (
        local,
        cluster,
        beside,
    )
    figures["CPU seconds until stations and overseer have started all parts"] = start
    targets.append(
        _target(
            "CPU a page on a cluster, of that of 2 processes", ratio, 1.1, ratio is not None and ratio <= 1.1
        )
    )
    return {"figures": figures, "targets": targets}


def _target(name: str, value: float | None, target: float, holds: bool) -> dict[str, Any]:
    return {"name": name, "value": value, "target": target, "holds": None if value is None else holds}


def _clustered(order: dict[str, Any]) -> dict[str, Any]:
    start = time.monotonic()
    command = [sys.executable, "-m", "tests.parallel.clusters", json.dumps(order)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "seconds": round(time.monotonic() - start)}


def _costs(pages: int = 8_000) -> tuple[int, int, int, float]:
    """CPU µs a page by two processes; on a cluster; and there of what stands beside these; CPU seconds of that at the start."""
    os.environ.update(LOOPBACK)
    with running_web(_SPEC) as served:
        alone, _, _ = _crawl(served, pages)
        with ray_cluster(1) as cluster:
            there, beside, start = _crawl(served, pages, cluster)
    return round(1e6 * alone), round(1e6 * there), round(1e6 * beside), round(start, 1)


def _crawl(served: RunningWeb, pages: int, cluster: Any = None) -> tuple[float, float, float]:
    """CPU seconds a page of the crawling processes, and of stations and overseer from when all parts were there; seconds of
    these until then."""
    chosen = [f"{name}={value}" for name, value in served.settings().items()]
    chosen += [
        "seed=7",
        "scope.level=web",
        "politeness.host_delay=50ms",
        "politeness.server_delay=5ms",
        "politeness.slow_factor=0",
        "limits.grace=1s",
        f"limits.pages={pages}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "barkspider.cli", "crawl", *served.web.seeds(200), "--json"]
        command += ["--job", f"{folder}/job", "--processes", "2"]
        command += ["--ray", cluster.address] if cluster is not None else []
        command += [word for each in chosen for word in ("--set", each)]
        beside: dict[int, float] = {}
        start = 0.0
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None:
                if cluster is not None:
                    beside |= _of(cluster, b"Station", b"Overseer")
                    if not start and len(_of(cluster, b"barkspider.parallel.part")) == 2:
                        start = sum(beside.values())
                time.sleep(0.2)
            assert process.stdout is not None
            told = json.loads(process.stdout.read())
    return told["cpu_seconds"] / told["pages"], (sum(beside.values()) - start) / told["pages"], start


def _of(cluster: Any, *names: bytes) -> dict[int, float]:
    """The CPU seconds so far of the processes that are so called."""
    found = {}
    for node in cluster.list_all_nodes():
        for process in process_tree(node):
            try:
                command = Path(f"/proc/{process}/cmdline").read_bytes()
                if any(name in command for name in names):
                    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                    found[process] = (int(fields[11]) + int(fields[12])) / _TICKS
            except OSError:
                continue
    return found
