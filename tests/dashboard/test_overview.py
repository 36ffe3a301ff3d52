"""The first page: what it says of a crawl by several processes, and of one that needs a person."""

from __future__ import annotations

import re

from barkspider.core.settings import Settings
from barkspider.dashboard.overview import render
from barkspider.dashboard.watcher import Part, View
from barkspider.engine.samples import Samples, merge

NAMES = ["time", "run", "pages", "queued", "deferred", "in_flight", "cpu_seconds", "rss", "exchange.0>1"]


def view(state: str = "running", failed: int = 0) -> View:
    one = Samples.of(NAMES, [[second, 1, 50 * second, 7, 8, 9, second, 3e8, second] for second in range(20)])
    two = Samples.of(NAMES[:-1], [[second, 1, 30 * second, 1, 2, 3, second, 2e8] for second in range(20)])
    parts = [Part("part-0", one), Part("part-1", two)]
    told = [
        {"folder": "part-0", "is_idle": False, "granted": 1200, "unsent": True},
        {"folder": "part-1", "is_idle": True, "granted": None, "unsent": False},
    ]
    status = {"parts": told, "pages": 1520, "bytes": 1, "failed": {"dns_failure": failed}}
    return View(0.0, True, state, status, merge([one, two]), parts)


def test_each_process_has_a_row_with_its_own_figures() -> None:
    page = render(view(), Settings())
    assert "running, 80 pages/s" in page
    rows = [re.sub(r"<[^>]*>", "|", row) for row in re.findall(r"<tr>(<td>part-.*?)</tr>", page)]
    cells = [[cell for cell in row.split("|") if cell] for row in rows]
    assert cells == [
        ["part-0", "950", "50", "9", "7", "8", "19 s", "300 MB", "1,200", "no", "yes"],
        ["part-1", "570", "30", "3", "1", "2", "19 s", "200 MB", "yes", "no"],
    ]
    assert "Batches by pair of parts" in page


def test_it_says_what_needs_a_person() -> None:
    assert "needs you" not in render(view(), Settings())
    page = render(view("paused", failed=900), Settings())
    assert "2 things need you" in page
    assert "the crawl is paused" in page
    assert "of what was asked for failed" in page
