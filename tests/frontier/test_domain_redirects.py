"""Domains that only redirect: what a ranking makes of them, and what a crawl learns of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from barkspider.core.load import load_settings
from barkspider.frontier.budget.domain_redirects import NAME, DomainRedirects
from barkspider.frontier.budget.star import Star
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from barkspider.url import split
from tests.frontier.test_recovery import Run, starter
from tests.frontier.test_reputation import MERGED, chain, known, opened, redirect
from tests.frontier.test_star import add
from tests.frontier.virtual import DOMAINS, KEYS, Failure, VirtualWeb, batch
from tests.storage.faulty import FaultyEnv


def test_domains_that_only_redirect_are_counted_with_the_other() -> None:
    _, star = opened(FaultyEnv(), budget=MERGED)
    add(star, [*chain(40, first=100), (60, 50), (61, 60), (50, 51), (51, 52)])
    add(star, [(70, 1), (71, 70), (72, 2), (73, 72), (74, 3), (75, 74)])
    star.merge()
    assert star.notices()[0][1]["merged"] == 0
    assert [known(star)[domain] for domain in (1, 2, 3)] == [1, 1, 1]
    redirect(star, [(1, 2), (2, 3), (1, 2)])  # a chain
    redirect(star, [(50, 51), (51, 50)])  # a circle
    redirect(star, [(60, 51), (60, 0), (61, 1), (61, 2), (52, 52)])  # a page too, two targets, only within
    add(star, chain(30, first=200))
    star.merge()
    [(_, details)] = star.notices()
    assert (details["in_force"], details["merged"], details["unmerged"]) == ("supporters", 2, 0)
    assert [known(star)[domain] for domain in (1, 2, 3)] == [0, 0, 3]
    assert [known(star)[domain] for domain in (50, 51, 52, 60)] == [1, 1, 1, 0]
    redirect(star, [(1, 0)])  # a page at last
    add(star, chain(60, first=300))
    star.merge()
    assert [known(star)[domain] for domain in (1, 2, 3)] == [1, 0, 2]
    assert list(star.drums[NAME].results()) == []


def test_redirects_beyond_the_memory_are_left_out_and_told() -> None:
    _, star = opened(FaultyEnv(), first=3_000, budget=MERGED)
    room = (1 << 16) // 4 // 32
    redirect(star, [(domain, domain + 1) for domain in range(10_000, 10_000 + 2 * room, 2)])
    redirect(star, [(90_000, 90_001)])
    add(star, chain(3_000, first=10_000))
    star.merge()
    [(_, details)] = star.notices()
    assert (details["merged"], details["unmerged"], details["domains"]) == (room, 1, 3_001 - room)


def test_a_ranking_in_the_background_begins_when_redirects_are_merged(tmp_path: Path) -> None:
    star = Star(Env(), tmp_path, MERGED, first_ranking=100)
    redirect(star, [(domain, domain + 1) for domain in range(2, 20_000, 2)])
    ends = np.arange(1, 20_001, dtype=np.uint64)
    star.add_edges(ends, ends + np.uint64(1))
    star.merge(wait=False)
    star.drums["star/edges"].wait()
    list(star.budgeted())  # begins the merge
    assert star.notices() == []
    star.drums[NAME].wait()
    list(star.budgeted())  # begins the ranking
    redirect(star, [(1, 2)])  # too late for it
    star.merge(wait=True)
    assert [details["merged"] for _, details in star.notices()] == [9_999]
    star.close()


# It sets a cookie and leads back to where it was asked for, which is then fetched once more, as written.
LOGIN, SHOP = "http://login.example/check", "http://shop.example/index.html"
PAGES: dict[str, Any] = {
    "http://moved.example/": "http://new.example/",
    "http://moved.example/old": "http://www.new.example/other",
    "http://moved.example/gone": Failure("http_404", temporary=False),
    "http://within.example/": "http://www.within.example/",
    "http://www.within.example/": "http://new.example/",
    "http://page.example/": "http://new.example/",
    "http://page.example/own": [],
    "http://torn.example/": "http://new.example/",
    "http://torn.example/other": "http://shop.example/",
    "http://shop.example/": LOGIN,
    LOGIN: SHOP,
    SHOP: [],
    "http://broken.example/": Failure("timeout_headers"),
    "http://new.example/": [],
    "http://www.new.example/other": [],
}


def test_a_crawl_learns_who_only_redirects_however_often_it_is_killed(tmp_path: Path) -> None:
    settings = load_settings(
        overrides={"seed": 1, "budget.reputation": "supporters", "budget.merge_redirects": True}
    )
    run = Run(VirtualWeb(PAGES), starter("irlbot", settings, tmp_path), tmp_path, seed=3, often=0.2)
    run.crawl(batch(*(url for url in PAGES if url not in (LOGIN, SHOP))), kills=6, commits=0.1)
    assert run.kills == 6
    store = Store.open(Env(), tmp_path)
    redirects = DomainRedirects(Env(), tmp_path, background=False, state=store.state(NAME))
    assert redirects.merged(wait=False)
    found = redirects.leads(most=100)
    names = {KEYS.of(name): name for name in (DOMAINS.pay_level(split(url).host) for url in PAGES)}
    leads = {
        names[key]: names[target]
        for key, target in zip(found.keys.tolist(), found.targets.tolist(), strict=True)
    }
    assert leads == {
        "moved.example": "new.example",
        "within.example": "new.example",
        "login.example": "shop.example",
    }
    redirects.close()
