"""What it costs a crawl to be looked at, and how soon the dashboard of a job with five million domains answers.

One crawl runs all the time; somebody looks at its first page for some seconds, then nobody, in turns, so that both meet the same
moments. The cost is the crawl's own: its pages a CPU-second, which the dashboard, a process of its own, has no part in but by
asking. Then a job is given a table of domains; somebody looks at its
first page, which has the in-degrees and budgets of all, and then at that of domains as a browser asks for it: sorted in several ways, and
searched.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from barkspider import crawl, load_settings
from barkspider.archive.schemas import SCHEMAS, VERSION
from barkspider.engine.control import ask
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web

_PROGRAM = [sys.executable, "-m", "barkspider.cli"]
_ASKED = (
    *("/domains", "/domains?sort=domains_in", "/domains?sort=domain&down=no", "/domains?search=12345"),
    "/domains?sort=links_in&begin=5000",
)


_TIMES = 5  # that each is asked for


def run(quick: bool) -> dict[str, Any]:
    """Twelve turns of four seconds and five million domains; when `quick` four turns and 200,000."""
    turns, domains = (4, 200_000) if quick else (12, 5_000_000)
    figures: dict[str, Any] = {"turns": turns, "domains": domains}
    with tempfile.TemporaryDirectory() as folder, running_web(WebSpec(seed=1, pages=1_000_000)) as served:
        ratio = _watched(served, Path(folder), turns, figures)
        slowest, rss = _listed(served, Path(folder), domains, figures)
    whole = not quick
    targets = [
        {"name": "pages_per_cpu_second_looked_at_by_not", "value": round(ratio, 3), "target": 0.98, "holds": ratio > 0.98},
        {"name": "domains_page_seconds", "value": round(slowest, 3) if whole else None, "target": 0.5, "holds": slowest < 0.5 if whole else None},
        {"name": "dashboard_rss_megabytes", "value": round(rss / 1e6) if whole else None, "target": 300, "holds": rss < 300e6 if whole else None},
    ]  # fmt: skip
    return {"figures": figures, "targets": targets}


def _watched(served: RunningWeb, folder: Path, turns: int, figures: dict[str, Any]) -> float:
    """The crawl's pages a CPU-second while somebody looks, by those while nobody does."""
    chosen = served.settings() | {
        "scope.level": "web",
        "politeness.host_delay": "50ms",
        "politeness.server_delay": "5ms",
        "politeness.slow_factor": "0",
        "limits.time": "5m",  # whatever happens
    }
    options = [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]
    job = folder / "watched"
    crawler = subprocess.Popen(
        [*_PROGRAM, "crawl", *served.web.seeds(50), "--job", str(job), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while (ask(job, "status") or {"pages": 0})["pages"] < 2_000:
            time.sleep(0.2)
        costs: dict[bool, list[float]] = {True: [], False: []}
        with _dashboard(job) as (address, cookie, _):
            for turn in range(2 * turns):
                looks = bool(turn % 2)
                with _looking(address, cookie, looks):
                    time.sleep(1.0)  # what was begun before is over
                    before = ask(job, "status")
                    time.sleep(3.0)
                    after = ask(job, "status")
                assert before is not None
                assert after is not None
                spent = after["cpu_seconds"] - before["cpu_seconds"]
                costs[looks].append((after["pages"] - before["pages"]) / spent)
    finally:
        crawler.terminate()
        crawler.wait()
    figures["pages_per_cpu_second"] = round(median(costs[False]))
    figures["pages_per_cpu_second_looked_at"] = round(median(costs[True]))
    # Of neighbours in time: what a page costs drifts as queues grow.
    return median(on / off for on, off in zip(costs[True], costs[False], strict=True))


@contextmanager
def _looking(address: str, cookie: str, looks: bool) -> Iterator[None]:
    """Somebody has the first page open, or nobody."""
    if not looks:
        yield
        return
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request("GET", "/live", headers={"Cookie": cookie})
    answer, over = connection.getresponse(), threading.Event()

    def read() -> None:
        while not over.is_set() and answer.readline():
            pass

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        over.set()
        assert connection.sock is not None
        connection.sock.shutdown(socket.SHUT_RDWR)  # nothing may come for long
        reader.join()
        connection.close()


@contextmanager
def _dashboard(job: Path) -> Iterator[tuple[str, str, subprocess.Popen[str]]]:
    """Its address, the cookie of a visitor, and its process."""
    process = subprocess.Popen([*_PROGRAM, "dashboard", str(job)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = urlsplit(process.stdout.readline().removeprefix("Dashboard: ").strip())
        yield url.netloc, f"barkspider={url.query.removeprefix('token=')}", process
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _listed(served: RunningWeb, folder: Path, domains: int, figures: dict[str, Any]) -> tuple[float, int]:
    """Seconds of the slowest way to ask for domains, and bytes of RAM of the dashboard at most."""
    job = folder / "listed"
    chosen = served.settings() | {
        "scope.level": "web",
        "memory": "64MB",
        "limits.pages": "50",
        "politeness.host_delay": "10ms",
    }
    crawl(
        served.web.seeds(5), job, load_settings(options=[f"{name}={value}" for name, value in chosen.items()])
    )
    _write_domains(job / "archive" / "tables" / "domains", domains)
    seconds: dict[str, float] = {}
    with _dashboard(job) as (address, cookie, process):
        with _looking(address, cookie, looks=True):  # with in-degrees and budgets of all domains
            time.sleep(5.0)
        figures["rss_after_overview"] = _most_rss(process.pid)
        before = _cpu(process.pid)
        for target in _ASKED:
            seconds[target] = median(_ask_for(address, cookie, target) for _ in range(_TIMES))
        spent = (_cpu(process.pid) - before) / len(_ASKED) / _TIMES
        rss = _most_rss(process.pid)
    figures["domains_page_cpu_milliseconds"] = round(
        1000 * spent
    )  # a mean; of two threads where there are two cores
    figures["domains_page_milliseconds"] = {target: round(1000 * slow) for target, slow in seconds.items()}
    return max(seconds.values()), rss


def _cpu(process: int) -> float:
    """Seconds of CPU that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _most_rss(process: int) -> int:
    """Bytes of RAM that a process had at most."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def _ask_for(address: str, cookie: str, target: str) -> float:
    connection = http.client.HTTPConnection(address, timeout=60)
    begun = time.perf_counter()
    connection.request("GET", target, headers={"Cookie": cookie})
    body = connection.getresponse().read()
    spent = time.perf_counter() - begun
    connection.close()
    assert b"<td" in body, body[-500:]
    return spent


def _write_domains(folder: Path, count: int) -> None:
    """A table of so many domains in the place of the job's own."""
    for file in folder.glob("*.parquet"):
        file.unlink()
    random, step = np.random.default_rng(1), 500_000
    schema = SCHEMAS["domains"].with_metadata({"barkspider.schema": str(VERSION)})
    with pq.ParquetWriter(folder / "000000-000001.parquet", schema, compression="zstd") as writer:
        for begin in range(0, count, step):
            rows = min(step, count - begin)
            numbers = {name: random.zipf(1.7, rows).astype(np.uint64) % 10**6 for name in schema.names[1:8]}
            names = [f"d{number:07d}.example" for number in range(begin, begin + rows)]
            columns = {
                "domain": pa.array(names),
                **{name: pa.array(values) for name, values in numbers.items()},
            }
            table = pa.table({name: columns.get(name, pa.nulls(rows)) for name in schema.names})
            writer.write_table(table.cast(schema), row_group_size=100_000)
