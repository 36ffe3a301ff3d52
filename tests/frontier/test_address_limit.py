"""A farm of cheap domains on one server: turns go round by domain, and with a limit it has so many URLs in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from barkspider.core.load import load_settings
from barkspider.frontier import Driver
from barkspider.frontier.decisions import ADDRESS_LIMIT
from tests.frontier.test_recovery import Run, starter
from tests.frontier.virtual import VirtualWeb, batch

Make = Callable[..., Driver]
FARM = "127.1.1.1"
START = "http://start.example/"


def farm_web() -> VirtualWeb:
    """Twenty farm domains of ten pages each on one server, that link to each other; ten good ones of five pages."""
    farm = [f"http://farm{domain}.example/{page}" for domain in range(20) for page in range(10)]
    good = [f"http://good{domain}.example/{page}" for domain in range(10) for page in range(5)]
    pages = {
        url: [farm[(3 * number + step) % len(farm)] for step in range(6)] for number, url in enumerate(farm)
    }
    pages |= {url: [] for url in good} | {START: [farm[0], *good]}
    servers = {url.split("/")[2]: FARM for url in farm}
    return VirtualWeb(pages, servers=servers)


@pytest.mark.parametrize("name", ["sydney", "irlbot"])
def test_a_server_has_so_many_urls_and_others_keep_theirs(sydney: Make, name: str) -> None:
    web = farm_web()
    frontier = sydney(frontier=name, limits__address_urls=40, sydney__sample=0)
    web.run(frontier, batch(START))
    fetched = [url for url in web.fetched() if "farm" in url]
    assert len(fetched) == 40
    assert max(Counter(url.split("/")[2] for url in fetched).values()) <= 10  # turns go round by domain
    assert sum("good" in url for url in web.fetched()) == 50
    assert frontier.counters.refused[ADDRESS_LIMIT] == len({*web.pages} & set(_found(web))) - 91


def _found(web: VirtualWeb) -> set[str]:
    """What was fetched, and all that it links to."""
    return {link for url in web.fetched() for link in web.pages.get(url, [])} | {*web.fetched()}


@pytest.mark.parametrize("name", ["sydney", "irlbot"])
def test_the_limit_holds_over_kills(tmp_path: Path, name: str) -> None:
    web = farm_web()
    settings = load_settings(
        overrides={"seed": 1, "memory": "64MB", "limits.address_urls": 40, "sydney.sample": 0}
    )
    run = Run(web, starter(name, settings, tmp_path), tmp_path, seed=3)
    run.crawl(batch(START), kills=5)
    assert run.kills == 5
    pages = {url: count for url, count in run.applied.items() if "robots" not in url}
    assert sum(count for url, count in pages.items() if "farm" in url) == 40
    assert sum("good" in url for url in pages) == 50
    assert max(pages.values()) == 1
