"""A reader that takes 100 ms a page: does the crawl slow down to it, and what does the process take while it does?

Crawls of the demo's web in this process. The first is read as fast as it goes, for the price of reading along.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from barkspider import CrawledPage, crawl, load_settings
from barkspider.lab.synthweb import HAZARDS, RunningWeb, WebSpec, running_web

_PAUSE = 0.1  # seconds a page
_WARM, _GROWTH = (
    100,
    12.0,
)  # pages until the RSS is taken for the first time; megabytes that it may grow after that
_AHEAD = 256 + 2 * 100  # pages that wait, and those in flight when the crawl pauses
_STATM, _UNIT = Path("/proc/self/statm"), resource.getpagesize()


def run(quick: bool) -> dict[str, Any]:
    """Quick: forty seconds of the slow reader."""
    spec = WebSpec(seed=1, pages=1_000_000, hazards=frozenset(HAZARDS))
    with running_web(spec) as served:
        plain, read = (_cpu_a_page(served, along) for along in (False, True))
        slow = _slowly(served, 400 if quick else 1_500)
    return {
        "figures": {
            "CPU a page, ms": f"{1e3 * plain:.2f} alone, {1e3 * read:.2f} with a reader of every row",
            "slow reader": slow,
        },
        "targets": [
            {
                "name": "RSS with a reader of 100 ms: growth, MB",
                "value": slow["growth_mb"],
                "target": _GROWTH,
                "holds": slow["growth_mb"] <= _GROWTH,
            },
            {
                "name": "pages that the crawl was ahead of it",
                "value": slow["ahead"],
                "target": _AHEAD,
                "holds": slow["ahead"] <= _AHEAD,
            },
        ],
    }


def _settings(served: RunningWeb, pages: int) -> Any:
    chosen = served.settings() | {
        "seed": "7",
        "scope.level": "web",
        "memory": "100MB",
        "fetch.in_flight": "100",
        "politeness.host_delay": "50ms",
        "politeness.server_delay": "5ms",
        "limits.grace": "1s",
        "limits.pages": str(pages),
    }
    return load_settings(options=[f"{name}={value}" for name, value in chosen.items()])


def _cpu_a_page(served: RunningWeb, along: bool) -> float:
    pages = list[str]()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        on_page = (lambda page: pages.append(page.url)) if along else None
        done = crawl(served.web.seeds(20), Path(folder) / "job", _settings(served, 3_000), on_page=on_page)
        return (time.process_time() - begin) / done.pages


def _slowly(served: RunningWeb, pages: int) -> dict[str, Any]:
    """What becomes of it when each page takes `_PAUSE`."""
    sizes = list[float]()

    def on_page(page: CrawledPage) -> None:
        time.sleep(_PAUSE)
        assert page.url
        sizes.append(int(_STATM.read_text().split()[1]) * _UNIT / 1e6)

    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        done = crawl(served.web.seeds(20), Path(folder) / "job", _settings(served, pages), on_page=on_page)
        seconds = time.monotonic() - begin
    # Without it the crawl would take a second: in the first second the reader had ten pages.
    ahead = round(len(sizes) - done.seconds / _PAUSE)
    return {
        "pages": done.pages,
        "read": len(sizes),
        "seconds": round(seconds, 1),
        "ahead": max(ahead, 0),
        "rss_mb": [round(sizes[place]) for place in range(_WARM, len(sizes), max(len(sizes) // 8, 1))],
        "growth_mb": round(max(sizes[_WARM:]) - sizes[_WARM], 1),
    }
