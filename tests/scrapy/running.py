"""The project of examples/scrapy_project on the synthetic web, in a process of its own, which may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from barkspider.lab.synthweb import LoggedRequest, RunningWeb

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "examples" / "scrapy_project"
OWN = "scrapy.core.scheduler.Scheduler"
AT_ONCE = 8
_TIMEOUT = 300.0


class Append:
    """A pipeline that has every item on disk at once, whatever happens to the process then."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def from_crawler(cls, crawler: Any) -> Append:
        return cls(Path(crawler.settings["ITEMS"]))

    def process_item(self, item: Any) -> Any:
        with self._path.open("a") as file:
            file.write(json.dumps(dict(item)) + "\n")
        return item


def environment() -> dict[str, str]:
    """In which a new process finds what this one does, and the tests."""
    return os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), *filter(None, sys.path)))}


def begin(
    served: RunningWeb, seeds: Sequence[str], items: Path, settings: Mapping[str, Any]
) -> subprocess.Popen[bytes]:
    """Run the spider of the project; `settings` are Scrapy's."""
    proxy = f"http://{served.web.server(seeds[0].split('/')[2])}:{served.http_port}"
    chosen = {
        "ITEMS": items,
        "ITEM_PIPELINES": json.dumps({f"{__name__}.Append": 1}),
        "LOG_LEVEL": "WARNING",
        "CONCURRENT_REQUESTS": AT_ONCE,
        **settings,
    }
    options = [part for name, value in chosen.items() for part in ("-s", f"{name}={value}")]
    return subprocess.Popen(
        [sys.executable, "-m", "scrapy", "crawl", "pages", "-a", f"start={' '.join(seeds)}", *options],
        cwd=PROJECT,
        env=environment() | {"http_proxy": proxy},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    """Let it run to its end, without a word."""
    said, _ = process.communicate(timeout=_TIMEOUT)
    assert process.returncode == 0, said.decode()[-3000:]
    assert not said, said.decode()[-3000:]


def killed_and_finished(
    served: RunningWeb,
    seeds: Sequence[str],
    items: Path,
    settings: Mapping[str, Any],
    kills: int,
    longest: float,
) -> None:
    """Kill it at random moments after it began to work, then let it run to its end."""
    random = Random(7)
    for _ in range(kills):
        process, before = begin(served, seeds, items, settings), read(items)
        limit = time.monotonic() + _TIMEOUT
        while read(items) == before and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.02)
        time.sleep(random.uniform(0, longest))
        process.send_signal(signal.SIGKILL)
        said, _ = process.communicate()
        assert not said, said.decode()[-3000:]
        assert process.returncode == -signal.SIGKILL, "it was over before it could be killed"
    finish(begin(served, seeds, items, settings))


def read(items: Path) -> list[dict[str, Any]]:
    """What was scraped so far; a line that a kill cut short does not count."""
    lines = items.read_text().splitlines(keepends=True) if items.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def too_soon(served: RunningWeb, log: Sequence[LoggedRequest], host_delay: float, server_delay: float) -> int:
    """Requests to hosts and to servers that were to be left alone for longer."""
    last: dict[str, float] = {}
    count = 0
    for entry in log:
        delays = {
            entry.host: max(host_delay, served.web.crawl_delay(entry.host) or 0.0),
            str(served.web.server(entry.host)): server_delay,
        }
        count += any(entry.time - last.get(name, -1e9) < delay for name, delay in delays.items())
        last |= dict.fromkeys(delays, entry.time)
    return count


def twice(log: Sequence[LoggedRequest]) -> int:
    """Requests for pages that were asked for before."""
    pages = Counter((entry.host, entry.path) for entry in log if entry.path != "/robots.txt")
    return sum(pages.values()) - len(pages)
