"""Spam farms beside good sites: what the same number of fetches goes into. Larger: `python -m benchmarks spam`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from barkspider.core.load import load_settings
from barkspider.frontier import open_frontier
from barkspider.storage.env import Env
from tests.frontier.farms import FARM, FarmWeb, Pages, breadth_first, crawl

FETCHES = 10_000
# Few links a page, so that breadth-first is caught that soon.
SITES = {"pages": 100_000, "domains": 500, "links": 10}
WITH_FARMS, WITHOUT = FarmWeb(**SITES, farms=5), FarmWeb(**SITES, farms=0)


def budgeted(web: FarmWeb, folder: Path, memory: str) -> Pages:
    settings = {
        "seed": 1,
        "memory": memory,
        "politeness.host_delay": "0s",
        "politeness.server_delay": "0s",
        "politeness.obey_robots": False,
    }
    frontier = open_frontier(load_settings(overrides=settings), Env(), folder, background=False)
    order = crawl(web, frontier, FETCHES)
    frontier.validate()
    frontier.close()
    return order


def good(order: Pages) -> Pages:
    return order[order < FARM]


def test_breadth_first_spends_most_of_a_crawl_in_farms() -> None:
    order = breadth_first(WITH_FARMS, FETCHES)
    assert len(np.unique(order)) == FETCHES
    assert len(good(order)) < FETCHES / 2
    assert len(good(breadth_first(WITHOUT, FETCHES))) == FETCHES


def test_budgets_leave_farms_a_twentieth_and_good_sites_what_they_had(tmp_path: Path) -> None:
    order = budgeted(WITH_FARMS, tmp_path / "with", "2GB")
    alone = budgeted(WITHOUT, tmp_path / "without", "2GB")
    assert len(np.unique(order)) == FETCHES
    assert FETCHES - len(good(order)) <= 0.05 * FETCHES
    assert len(good(order)) >= 0.95 * len(good(alone))
    assert len(np.unique(WITH_FARMS.domain(good(order)))) == SITES["domains"]


def test_farms_get_no_more_when_memory_is_short(tmp_path: Path) -> None:
    order = budgeted(WITH_FARMS, tmp_path, "16MB")
    assert FETCHES - len(good(order)) <= 0.05 * FETCHES


def test_farms_never_end() -> None:
    """Page after page nearly every link is new, and most lead to hosts that nobody has heard of."""
    seen: set[int] = set()
    page = FARM
    for _ in range(1_000):
        links = set(WITH_FARMS.links(page).tolist())
        assert len(links - seen) >= 29
        seen |= links
        page = max(links)
    assert len({link >> 24 for link in seen}) > 20_000
    assert np.unique(WITH_FARMS.domain(np.array(list(seen)))).tolist() == [500, 501, 502, 503, 504]
