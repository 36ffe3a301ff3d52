"""How much of a crawl spam farms get: breadth-first against STAR and BEAST (IRLbot, sections 5.1 to 6.2).

Beside 5,000 good domains there are 100 farms, without end to their subdomains and pages. Fetches are counted,
not timed: every answer is there at once and no host needs a pause. Breadth-first is a queue and a set of the URLs
that were seen. The frontier is the one of the live crawl, with its settings as they come; it crawls the same web
a second time without farms, which says how many good pages it would have had.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.frontier.farms import FARM, FarmWeb, Pages, breadth_first, crawl

from barkspider.core.load import load_settings
from barkspider.frontier import open_frontier
from barkspider.storage.env import Env

_POINTS = 10  # of each curve
_SETTINGS = {
    "seed": 1,
    "politeness.host_delay": "0s",
    "politeness.server_delay": "0s",
    "politeness.obey_robots": False,
}
_FULL = {"pages": 10_000_000, "domains": 5_000, "links": 60}
# Few links a page, so that breadth-first is caught that soon.
_QUICK = {"pages": 200_000, "domains": 500, "links": 20}


def run(quick: bool) -> dict[str, Any]:
    """1 million fetches beside 100 farms; when `quick` 20,000 beside 10."""
    sites, farms, fetches = (_QUICK, 10, 20_000) if quick else (_FULL, 100, 1_000_000)
    web = FarmWeb(**sites, farms=farms)
    breadth, budgeted = breadth_first(web, fetches), _irlbot(web, fetches)
    alone = _irlbot(FarmWeb(**sites, farms=0), fetches)
    ends = [fetches * part // _POINTS for part in range(1, _POINTS + 1)]
    figures: dict[str, Any] = {"good_domains": sites["domains"], "farms": farms, "fetches": ends}
    orders = {"breadth_first": breadth, "star_beast": budgeted, "star_beast_without_farms": alone}
    for name, order in orders.items():
        figures[f"{name}_farm_share"] = [round(_share(order[:end]), 4) for end in ends]
        figures[f"{name}_good_pages"] = [len(_good(order[:end])) for end in ends]
        figures[f"{name}_good_domains"] = [len(np.unique(web.domain(_good(order[:end])))) for end in ends]
    covered = len(_good(budgeted)) / len(_good(alone))
    targets = [
        _target("farm share, breadth-first", _share(breadth), 0.5, _share(breadth) > 0.5),
        _target("farm share, STAR and BEAST", _share(budgeted), 0.05, _share(budgeted) <= 0.05),
        _target("good pages by those without farms", covered, 0.95, covered >= 0.95),
    ]
    return {"figures": figures, "targets": targets}


def _irlbot(web: FarmWeb, fetches: int) -> Pages:
    with tempfile.TemporaryDirectory() as folder:
        frontier = open_frontier(load_settings(overrides=_SETTINGS), Env(), Path(folder), background=False)
        try:
            return crawl(web, frontier, fetches)
        finally:
            frontier.close()


def _good(order: Pages) -> Pages:
    return order[order < FARM]


def _share(order: Pages) -> float:
    return float(np.mean(order >= FARM))


def _target(name: str, value: float, goal: float, holds: bool) -> dict[str, Any]:
    return {"name": name, "value": round(value, 4), "target": goal, "holds": holds}
