"""A project of Scrapy's on our frontier beside the same on Scrapy's own: items, kills, pauses, CPU, memory.

python -m benchmarks.scrapy_scheduler < {"scheduler": "ours", "requests": 2000000}     (memory, in a process of its own)
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.scrapy import running

from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web

_KILLS, _PAGES = 10, 5_000
_HOST_DELAY, _SERVER_DELAY = 0.1, 0.01
_GROWTH = 60.0  # megabytes from a tenth of the requests to all of them
_STATM = Path("/proc/self/statm")
_QUEUED = {"ours": 2_000_000, "own": 500_000, "own, JOBDIR": 500_000}


def run(quick: bool) -> dict[str, Any]:
    """Quick: 150 pages, one kill, 20,000 requests."""
    if not find_spec("scrapy"):
        raise SystemExit("Scrapy is not installed: pip install -r requirements-bench.lock")
    kills, pages = (1, 150) if quick else (_KILLS, _PAGES)
    spec = WebSpec(seed=6, pages=pages, domains=pages // 10, page_bytes=2_000, crawl_delay=0.15)
    with tempfile.TemporaryDirectory() as name, running_web(spec, log_path=Path(name) / "log") as served:
        found = _killed(served, Path(name), kills)
        cost = {} if quick else _cost(served, Path(name))
    memory = {each: _memory(each, 20_000 if quick else count) for each, count in _QUEUED.items()}
    ratio = None if quick else cost["ours"] / cost["own, JOBDIR"]
    grown = memory["ours"]["growth_mb"]
    return {
        "figures": {"project": found, "pages per CPU-second": cost, "queued requests": memory},
        "targets": [
            _target("items missing or too many", found["wrong"], 0),
            _target("pages twice, after kills with -9", found["twice"], 1 + kills * running.AT_ONCE),
            _target("requests before their pause was over", found["too_soon"], 0),
            _target("RSS from a tenth of all queued requests on, MB", None if quick else grown, _GROWTH),
            {
                "name": "pages per CPU-second, of Scrapy's own on disk",
                "value": None if ratio is None else round(ratio, 2),
                "target": 0.5,
                "holds": None if ratio is None else ratio >= 0.5,
            },
        ],
    }


def _target(name: str, value: float | None, target: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "target": target,
        "holds": None if value is None else value <= target,
    }


def _ours(served: RunningWeb, job: Path, **politeness: float) -> dict[str, Any]:
    mine = {f"politeness.{name}": f"{seconds}s" for name, seconds in politeness.items()}
    mine |= {
        "politeness.slow_factor": "0",
        "checkpoint": "500ms",
        "dns.servers": served.settings()["dns.servers"],
    }
    return {"BARKSPIDER_JOB": job, "BARKSPIDER_SETTINGS": json.dumps(mine)}


def _killed(served: RunningWeb, folder: Path, kills: int) -> dict[str, Any]:
    """The same items as Scrapy's own, though it was killed again and again."""
    seeds, own, items = served.web.seeds(3), folder / "own.jsonl", folder / "ours.jsonl"
    running.finish(running.begin(served, seeds, own, {"SCHEDULER": running.OWN, "DOWNLOAD_DELAY": 0}))
    assert served.log_path is not None
    before = len(read_log(served.log_path))
    chosen = _ours(served, folder / "job", host_delay=_HOST_DELAY, server_delay=_SERVER_DELAY)
    running.killed_and_finished(served, seeds, items, chosen, kills, 3.0)
    log = read_log(served.log_path)[before:]
    wanted, found = ({item["url"] for item in running.read(file)} for file in (own, items))
    return {
        "pages": len(wanted),
        "kills": kills,
        "wrong": len(wanted ^ found),
        "twice": running.twice(log),
        "too_soon": running.too_soon(served, log, _HOST_DELAY, _SERVER_DELAY),
    }


def _cost(served: RunningWeb, folder: Path) -> dict[str, float]:
    """Pages per CPU-second of the whole process, without pauses."""
    chosen = {
        "ours": _ours(served, folder / "fast", host_delay=0, server_delay=0),
        "own": {"SCHEDULER": running.OWN},
        "own, JOBDIR": {"SCHEDULER": running.OWN, "JOBDIR": folder / "disk"},
    }
    figures = {}
    for name, settings in chosen.items():
        items = folder / f"{name}.jsonl"
        zero = {} if name == "ours" else {"DOWNLOAD_DELAY": 0}
        process = running.begin(served, served.web.seeds(3), items, {**settings, **zero})
        assert process.stdout is not None
        process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
        assert status == 0
        figures[name] = round(len(running.read(items)) / (used.ru_utime + used.ru_stime), 1)
    return figures


def _memory(scheduler: str, requests: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scrapy_scheduler"],
        input=json.dumps({"scheduler": scheduler, "requests": requests}),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _rss() -> float:
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def _queue(scheduler: str, requests: int, folder: str) -> dict[str, Any]:
    """Put requests into a scheduler, as an engine does, and take none out."""
    from scrapy import Request, Spider
    from scrapy.core.downloader import Downloader
    from scrapy.crawler import Crawler
    from scrapy.utils.misc import build_from_crawler, load_object

    ours = scheduler == "ours"
    jobdir = {"JOBDIR": folder} if scheduler != "own" else {}
    name = "barkspider.scrapy.Scheduler" if ours else running.OWN
    crawler: Any = Crawler(Spider, {"SCHEDULER": name, "LOG_ENABLED": False, **jobdir})
    crawler.spider = spider = Spider(name="queue")
    crawler._apply_settings()
    slot = SimpleNamespace(inprogress=set(), closing=object(), nextcall=None)
    crawler.engine = SimpleNamespace(_slot=slot, downloader=Downloader(crawler))
    queue = build_from_crawler(load_object(name), crawler)
    queue.open(spider)
    sizes = list[float]()
    for number in range(requests):
        host = number % 10_000
        url = f"http://www.site-{host}.example/a/page-of-some-length-{number}.html"
        queue.enqueue_request(Request(url, cb_kwargs={"parent": url}, meta={"depth": 3}))
        if number % 1_000 == 0 and ours:
            queue._turn()
            await asyncio.sleep(0)
        if number % max(requests // 10, 1) == 0:
            sizes.append(_rss())
    sizes.append(_rss())
    return {
        "requests": requests,
        "peak_mb": round(max(sizes)),
        "growth_mb": round(max(sizes[1:]) - sizes[1], 1),
        "rss_mb": list(map(round, sizes)),
    }


def _main() -> None:
    order = json.load(sys.stdin)
    from scrapy.utils.reactor import install_reactor

    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor

    loop = reactor._asyncioEventloop
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(loop.run_until_complete(_queue(order["scheduler"], order["requests"], folder))))
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    _main()
