"""One crawl by the build whose Python runs this file, which may be another one than this: what `_crawling` starts.

    python -P _crawler.py < {"options": […], "seeds": […], "turn": 300}

After each turn of so many pages (0: there are none) a line says how many pages there are and what CPU they took, and the
crawl stands still until a line comes. The last line is what the crawl says of itself, and what the system says of it. CPU
counts from the moment at which everything is imported, up to the end of the close.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

import barkspider.cli.app
import barkspider.cli.run  # noqa: F401  (what the program imports)
from barkspider.core.load import load_settings
from barkspider.engine import Crawl, Job
from barkspider.storage.env import Env

_LOOK = 0.05  # seconds between two looks at how many pages there are: what they cost is nothing beside 50 ms


def main() -> None:
    """See the module."""
    order = json.loads(sys.stdin.readline())
    gc.freeze()  # as the program does it
    gc.set_threshold(50_000, 20, 20)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        job = Path(folder) / "job"
        written, begun, start = _written(), time.monotonic(), time.process_time()
        statistics = uvloop.run(_crawl(order, job, start))
        cpu, seconds = time.process_time() - start, time.monotonic() - begun
        events = [json.loads(line) for line in (job / "log.jsonl").read_text().splitlines()]
        found = {
            "done": True,
            "pages": statistics["pages"],
            "cpu": cpu,
            "seconds": seconds,
            "phases": statistics.get("phases", {}),
            "failed": sum(statistics["failed"].values()),
            "links": statistics["links"],
            "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "written": _written() - written,
            "kept": sum(path.stat().st_size for path in job.rglob("*") if path.is_file()),
            "loop_held": statistics["gauges"]["loop_held"],
            "checkpoints": [event["seconds"] for event in events if event["event"] == "checkpoint"],
        }
    print(json.dumps(found), flush=True)


async def _crawl(order: dict[str, Any], folder: Path, start: float) -> dict[str, Any]:
    job = Job.create(folder, load_settings(options=order["options"]), order["seeds"], Env())
    crawl, loop, turn = Crawl.open(job), asyncio.get_running_loop(), order["turn"]
    next_turn = turn

    def look() -> None:
        nonlocal next_turn
        pages = crawl.statistics().pages
        if pages >= next_turn:
            next_turn = pages + turn
            print(json.dumps({"pages": pages, "cpu": time.process_time() - start}), flush=True)
            sys.stdin.readline()  # holds the loop: what its sockets get meanwhile waits in the system
        loop.call_later(_LOOK, look)

    if turn:
        look()
    try:
        return (await crawl.run()).as_dict()
    finally:
        job.close()


def _written() -> int:
    """Bytes that this process gave the system for files."""
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["wchar"])


if __name__ == "__main__":
    main()
