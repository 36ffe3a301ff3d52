"""Whole crawls, everything on: what a page costs, phase by phase, beside other crawlers and beside another build.

The crawler has one core, the web another. Small pages (25 KB, some 57 links) over kept and over fresh connections; pages like
today's (242 KB, some 260 links), each over a fresh connection, by HTTP and HTTPS (TLS 1.3), packed by gzip and by Brotli;
documents that people wrote (`_documents`); other crawlers (`_peers`). CPU is that of the crawler's process from the opening
of the job to the end of its close, with archive, tables and indexes; the best of three.

`--against DIR`: only this build beside that of another checkout with a `.venv`, in turns (`_crawling`).
`crawl 2000`: only what a page costs after two million pages (thousands are given), beside a crawl of a twentieth of it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from barkspider.lab.synthweb import WebSpec
from benchmarks import _documents, _peers
from benchmarks._crawling import Turns, Workload, cores, crawl_once, grown, in_turns, serving

_FRESH = ("fetch.idle_connections=0",)
_EAGER = ("politeness.host_delay=0s", "politeness.server_delay=0s")
_BROTLI = ("fetch.encodings=br",)
_WIDE = WebSpec(seed=1, pages=10_000_000, servers=2_000)
_FEW = WebSpec(seed=1, pages=200_000, domains=200, servers=200)
_TODAY = WebSpec(seed=1, pages=10_000_000, servers=2_000, page_bytes=242_000, links_per_page=320)
_SECURE = WebSpec(
    seed=1, pages=10_000_000, servers=2_000, page_bytes=242_000, links_per_page=320, https_share=1.0
)
_WORKLOADS = {
    "small, kept": Workload(_FEW, _EAGER, 6_000, 1_500),
    "small, fresh": Workload(_WIDE, _FRESH, 6_000, 1_500),
    "today, HTTP": Workload(_TODAY, _FRESH, 1_000, 200),
    "today, HTTP, br": Workload(_TODAY, _FRESH + _BROTLI, 1_000, 200),
    "today, HTTPS": Workload(_SECURE, _FRESH, 1_000, 200, https=True),
    "today, HTTPS, br": Workload(_SECURE, _FRESH + _BROTLI, 1_000, 200, https=True),
}
_ROUNDS = 3
# Pages that Scrapy gets, which is slow.
_SCRAPY_PAGES = {"small, kept": (600, 200), "today, HTTP": (150, 50)}
_SCRAPY_TIMES = {"small, kept": 25, "today, HTTP": 10}
_SHARE_OF_WGET2 = 0.6
_TURNS = {"small, fresh": 300, "today, HTTP": 60, "today, HTTPS": 60}  # pages
_SHARE_OF_OTHER = {"small, fresh": 0.45, "today, HTTP": 0.5, "today, HTTPS": 0.5}
_CHECKPOINTS = "checkpoint=3s"  # so that there are some
_MOST_HELD = 50  # milliseconds, on a quiet machine
_MOST_RSS = {"2GB": 400, "200MB": 350}  # megabytes
_TWO_CORES = 1.4
_GROWTH = 1.1
_LONG = Workload(
    WebSpec(seed=1, pages=10_000_000, servers=2_000, page_bytes=4_000), ("limits.time=1d",), 0, 0
)

Figures = dict[str, Any]


def run(quick: bool, size: str = "", against: str = "") -> dict[str, Any]:
    """Quick: once each, on fewer pages; without what takes longer."""
    figures: Figures = {}
    values: dict[str, float] = {}
    if against:
        _measure_builds(Path(against), quick, figures, values)
    elif size:
        _measure_growth(1_000 * int(size), figures, values)
    else:
        for name in _WORKLOADS:
            _measure(name, quick, figures, values)
        _measure_documents(quick, figures)
        if not quick:
            _measure_settings(figures, values)
            _measure_two_cores(figures, values)
    return {"figures": figures, "targets": _targets(values)}


def _targets(values: dict[str, float]) -> list[dict[str, Any]]:
    least: dict[str, float] = {
        f"{name}: pages per CPU-second, times Scrapy's": times for name, times in _SCRAPY_TIMES.items()
    }
    least |= {"small, kept: pages per CPU-second, of wget2's": _SHARE_OF_WGET2}
    least |= {"today, HTTP: pages per second on two cores, of one": _TWO_CORES}
    most = {f"{name}: CPU a page, of the other build's": share for name, share in _SHARE_OF_OTHER.items()}
    most |= {"small, fresh: loop held with checkpoints, ms": _MOST_HELD}
    most |= {f"small, fresh: peak RSS with memory={memory}, MB": size for memory, size in _MOST_RSS.items()}
    most |= {"CPU a page at the end, of that at a twentieth": _GROWTH}
    return [
        {
            "name": name,
            "value": values.get(name),
            "target": target,
            "holds": None if name not in values else (values[name] - target) * sign >= 0,
        }
        for sign, goals in ((1, least), (-1, most))
        for name, target in goals.items()
    ]


def _measure(name: str, quick: bool, figures: Figures, values: dict[str, float]) -> None:
    """A workload, in turn with the crawlers that are measured on it."""
    workload, peers = _WORKLOADS[name], dict[str, list[dict[str, float]]]()
    ours: list[dict[str, Any]] = []
    with serving(workload) as served:
        seeds = served.web.seeds(workload.seeds)
        pages = workload.quick_pages if quick else workload.pages
        for _ in range(1 if quick else _ROUNDS):
            ours.append(crawl_once(workload.order(served, pages)))
            if name in _SCRAPY_PAGES:
                found = _peers.scrapy(served, seeds, _SCRAPY_PAGES[name][quick])
                peers.setdefault("Scrapy", []).extend([found] if found else [])
            if name == "small, kept":
                found = _peers.wget2(served, seeds, pages)
                peers.setdefault("wget2", []).extend([found] if found else [])
    best = max(ours, key=_rate)
    _tell(name, best, figures)
    for peer, times in peers.items():
        fastest = max(times, key=_rate, default=None)
        figures[f"{name}: {peer}, pages per CPU-second"] = round(_rate(fastest)) if fastest else None
        figures[f"{peer} is"] = _peers.CONFIGURED[peer]
        if fastest is None:
            figures["missing"] = "; ".join(_peers.missing())
        elif not quick:
            word = "times" if peer == "Scrapy" else "of"
            share = _rate(best) / _rate(fastest)
            values[f"{name}: pages per CPU-second, {word} {peer}'s"] = round(share, 2)


def _measure_documents(quick: bool, figures: Figures) -> None:
    name = "documents behind nginx"
    if absent := _documents.missing():
        figures |= {f"{name}: µs a page": None, f"{name}: missing": "; ".join(absent)}
        return
    options = ["seed=7", "network.allow=127.0.0.0/8", "scope.level=site", *_EAGER, "politeness.slow_factor=0"]
    # The same pages sixteen times: each is written as if it were the first.
    options += ["limits.grace=1s", "archive.recent_digests=0", f"limits.pages={800 if quick else 6_000}"]
    with _documents.served() as seeds:
        order = {"options": options, "seeds": seeds, "turn": 0}
        _tell(name, max((crawl_once(order) for _ in range(1 if quick else _ROUNDS)), key=_rate), figures)


def _measure_settings(figures: Figures, values: dict[str, float]) -> None:
    """What a crawl takes of memory, and for how long its checkpoints hold the loop."""
    workload = _WORKLOADS["small, fresh"]
    with serving(workload) as served:
        for memory in _MOST_RSS:
            found = crawl_once(workload.order(served, workload.pages, f"memory={memory}", _CHECKPOINTS))
            figures[f"memory={memory}: checkpoints, ms"] = [
                round(1e3 * each) for each in found["checkpoints"]
            ]
            values[f"small, fresh: peak RSS with memory={memory}, MB"] = round(found["rss"] / 1e6)
            held = values.get("small, fresh: loop held with checkpoints, ms", 1e9)
            values["small, fresh: loop held with checkpoints, ms"] = min(held, found["loop_held"])


def _measure_two_cores(figures: Figures, values: dict[str, float]) -> None:
    """Where there are two cores only, the web shares the second: then more cannot be said than that it holds."""
    workload, ours = _WORKLOADS["today, HTTP"], cores()
    if len(ours) < 2:
        return
    with serving(workload) as served:
        order = workload.order(served, workload.pages)
        one, two = (max(_speed(crawl_once(order, ours[:count])) for _ in range(2)) for count in (1, 2))
    speedup = round(two / one, 2)
    shared = " (the second shared with the web)" if len(ours) == 2 else ""
    figures[f"today, HTTP: pages a second on one core, on two{shared}"] = [round(one), round(two)]
    if not shared or speedup >= _TWO_CORES:
        values["today, HTTP: pages per second on two cores, of one"] = speedup


def _measure_builds(other: Path, quick: bool, figures: Figures, values: dict[str, float]) -> None:
    builds = (Path(sys.executable), other / ".venv" / "bin" / "python")
    for name in _SHARE_OF_OTHER:
        workload = _WORKLOADS[name]
        pages = workload.quick_pages if quick else workload.pages
        with serving(workload) as served:
            turns = in_turns(builds, workload.order(served, pages, turn=_TURNS[name]))
        _tell_turns(name, turns, figures)
        if not quick:
            values[f"{name}: CPU a page, of the other build's"] = round(turns.ratio(), 3)


def _measure_growth(pages: int, figures: Figures, values: dict[str, float]) -> None:
    with serving(_LONG) as served:
        turns = grown(_LONG.order(served, 0), (pages, pages // 20))
    _tell_turns(f"{pages:,} pages and {pages // 20:,}", turns, figures)
    values["CPU a page at the end, of that at a twentieth"] = round(turns.ratio(), 3)


def _tell_turns(name: str, turns: Turns, figures: Figures) -> None:
    low, high = turns.spread()
    figures[f"{name}: µs a page of both"] = [round(1e6 * cost) for cost in turns.costs()]
    figures[f"{name}: ratio"] = f"{turns.ratio():.3f}; of single turns eight in ten {low:.3f} to {high:.3f}"


def _tell(name: str, found: dict[str, Any], figures: Figures) -> None:
    pages = found["pages"]
    phases = {phase: round(1e6 * spent / pages) for phase, spent in found["phases"].items()}
    cost = round(1e6 * found["cpu"] / pages)
    told = {
        "pages": pages,
        "pages per CPU-second": round(_rate(found)),
        "µs a page": cost,
        "µs a page by phase": phases | {"rest": cost - sum(phases.values())},
        "links a page": round(found["links"] / pages),
        "pages a second": round(_speed(found)),
        "failed": found["failed"],
        "peak RSS, MB": round(found["rss"] / 1e6),
        "bytes written a page": round(found["written"] / pages),
        "bytes kept a page": round(found["kept"] / pages),
        "loop held, ms": found["loop_held"],
    }
    figures |= {f"{name}: {key}": value for key, value in told.items()}


def _rate(found: dict[str, Any]) -> float:
    return float(found["pages"] / found["cpu"])


def _speed(found: dict[str, Any]) -> float:
    return float(found["pages"] / found["seconds"])
