"""What a crawl takes of memory above what the process takes before it: within `memory`, whatever that is.

Crawls of the demo's web, each in a process of its own, whose highest RSS is read while it crawls and while it ends.
"""

from __future__ import annotations

from typing import Any

from tests.engine.weighing import weigh

from barkspider.core.units import parse_size
from barkspider.lab.synthweb import HAZARDS, WebSpec, running_web

_MEMORY = ("50MB", "100MB", "200MB", "500MB", "2GB")
_PAGES = {6_000: _MEMORY, 20_000: _MEMORY, 60_000: ("50MB", "200MB")}
_FEWEST = 6_000
_SLACK = 1.15  # of `memory`
_SMALL_WEB = {"2GB": 400, "200MB": 350}  # most megabytes that its crawl may take as a whole
_QUICK = ("50MB", "2GB")
_OPTIONS = (
    "seed=7",
    "scope.level=web",
    "politeness.host_delay=50ms",
    "politeness.server_delay=5ms",
    "politeness.retry_delay=1s",
    "politeness.slow_factor=0",
    "limits.grace=1s",
)


def run(quick: bool) -> dict[str, Any]:
    """Quick: the smallest and the largest memory, on the smaller web."""
    figures: dict[str, Any] = {}
    targets = []
    spec = WebSpec(seed=1, pages=10_000_000, https_share=0.1, hazards=frozenset(HAZARDS))
    for pages, sizes in _PAGES.items():
        for memory in sizes:
            name, taken, whole = f"{pages:,} pages, memory={memory}", None, None
            if not quick or (pages == _FEWEST and memory in _QUICK):
                with running_web(spec, https=True) as served:
                    options = [f"{key}={value}" for key, value in served.settings().items()]
                    options += [*_OPTIONS, f"memory={memory}", f"limits.pages={pages}"]
                    weight = weigh(options, served.web.seeds(20))
                highest = max(weight["crawling"], weight["closing"])
                taken, whole = (highest - weight["idle"]) / parse_size(memory), highest / 1e6
                parts = ", ".join(
                    f"{part} {weight[part] / 1e6:.0f}" for part in ("idle", "crawling", "closing")
                )
                figures[name] = f"MB: {parts}; {1e6 * weight['cpu'] / weight['pages']:.0f} µs of CPU a page"
            targets.append(_target(f"{name}: peak above idle, of memory", taken, _SLACK))
            if pages == _FEWEST and memory in _SMALL_WEB:
                targets.append(_target(f"{name}: peak, MB", whole, _SMALL_WEB[memory]))
    return {"figures": figures, "targets": targets}


def _target(name: str, value: float | None, target: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": None if value is None else round(value, 2),
        "target": target,
        "holds": None if value is None else value <= target,
    }
