"""The order by backlinks: what it fetches first, alone and by several processes, against the simulation of the same web."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from barkspider.core.load import load_settings
from barkspider.frontier import open_frontier
from barkspider.frontier.backlinks import Backlinks
from barkspider.lab.simulate.parallel import Setup
from barkspider.storage.env import Env
from tests.frontier.virtual import VirtualWeb, batch
from tests.parallel.virtual import Crawling, made_up_web, simulated

WEB = made_up_web(2000, seed=5, domains=60)
SEEDS = list(WEB)[:30]
PAGES = 240
# As the simulation has it: one page at a time, without pauses.
ALONE = (
    "fetch.in_flight=1",
    "politeness.host_delay=0s",
    "politeness.server_delay=0s",
    "politeness.obey_robots=false",
)


def quality(folder: Path, processes: int, exchanges: int) -> tuple[float, float]:
    """Of a crawl, and of the simulation."""
    each = PAGES // processes
    options = ["order=backlinks", "parallel.partition=site", "parallel.interval=1h", f"limits.pages={each}"]
    if processes > 1:
        options += [f"parallel.mode={'exchange' if exchanges else 'firewall'}"]
        options += [f"parallel.batch={max(each // (exchanges + 1), 1)}"]
        fetched = Crawling(WEB, folder, processes, *ALONE, *options).run(SEEDS)
    else:
        web, settings = VirtualWeb(WEB), load_settings(options=["seed=1", "memory=64MB", *ALONE, *options])
        frontier = open_frontier(settings, Env(), folder, background=False)
        web.run(frontier, batch(*SEEDS))
        frontier.close()
        fetched = Counter(web.fetched())
    setup = Setup("exchange", processes, "site", order="backlinks", pages=PAGES, exchanges=exchanges)
    expected, urls = simulated(WEB, SEEDS, setup)
    counts = Counter(link for links in WEB.values() for link in links)
    links = np.array([counts[url] for url in urls])
    live = replace(expected, times=np.array([fetched[url] for url in urls]))
    assert fetched.total() == PAGES
    return live.quality(links, PAGES), expected.quality(links, PAGES)


def test_quality_rises_with_the_number_of_exchanges(tmp_path: Path) -> None:
    found = {
        (processes, exchanges): quality(tmp_path / f"{processes}-{exchanges}", processes, exchanges)
        for processes, exchanges in ((1, 0), (4, 0), (4, 2), (4, 59))
    }
    for live, expected in found.values():
        assert live == pytest.approx(expected, rel=0.1)
    alone, never, twice, often = (live for live, _ in found.values())
    assert never < twice < often
    assert never < 0.85 * alone
    assert often > 0.9 * alone


def test_a_window_comes_back_with_its_counts_after_a_crash(tmp_path: Path) -> None:
    """All pages are fetched once each, though processes are killed while URLs wait in their windows."""
    web = made_up_web(250, seed=8)
    crawl = Crawling(web, tmp_path, 2, *ALONE, "order=backlinks", "parallel.batch=5")
    assert crawl.run([next(iter(web))], kills=4) == Counter(web.keys())
    assert crawl.kills == 4


def test_links_that_are_found_later_raise_a_url_in_the_window(tmp_path: Path) -> None:
    urls = batch(*(f"http://a.example/{name}" for name in "abc"))
    order = Backlinks(Env(), tmp_path, most=9, background=False)
    order.learn(urls, np.array([3, 2, 1], np.uint32))
    order.check(urls.take(np.array([0, 1])))
    order.learn(urls.take(np.array([1])), np.array([5], np.uint32))  # while its count is asked for
    order.merge()
    order.move()
    order.check(urls.take(np.array([2])))
    order.merge()
    order.move()
    order.learn(urls.take(np.array([2])), np.array([8], np.uint32))
    order.validate()
    saved = {name: bytes(data) for name, data in order.save().items()}
    assert [row.url[-1:] for row in order.take(9).rows()] == [b"c", b"b", b"a"]
    order.close()
    again = Backlinks(Env(), tmp_path / "again", most=9, background=False)
    again.load(saved)
    again.validate()
    assert [row.url[-1:] for row in again.take(2).rows()] == [b"c", b"b"]
    assert len(again) == 1
    again.close()
