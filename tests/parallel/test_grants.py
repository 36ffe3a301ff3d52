"""The limit of pages of several processes: never passed, and reached."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Granted, ResolveHost, Seeds
from barkspider.core.load import load_settings
from barkspider.frontier import open_frontier
from barkspider.parallel.division import is_one_domain
from barkspider.parallel.grants import are_within, grants
from barkspider.storage.env import Env


class FakePart:
    """A part that fetches what it may, some pages at a time."""

    def __init__(self, granted: int | None, urls: int) -> None:
        self.granted, self.urls, self.pages, self.flying = granted, urls, 0, 0

    def told(self) -> dict[str, Any]:
        left = self.urls - self.pages - self.flying
        others = {"granted": self.granted, "waits": left > 0}
        return {"pages": self.pages, "in_flight": self.flying, "others": others}

    def grant(self, pages: int | None) -> None:
        self.granted = None if pages is None else max(pages, self.pages + self.flying)

    def work(self, random: Random) -> None:
        ended = random.randint(0, self.flying)
        self.pages, self.flying = self.pages + ended, self.flying - ended
        assert self.granted is not None
        room = min(self.granted, self.urls) - self.pages - self.flying
        self.flying += random.randint(0, max(room, 0))


@pytest.mark.parametrize("seed", range(30))
def test_the_limit_is_reached_and_never_passed(seed: int) -> None:
    random = Random(seed)
    count, limit = random.randint(2, 6), random.randint(6, 300)
    parts = [
        FakePart(limit // count + (number < limit % count), random.randint(0, 200)) for number in range(count)
    ]
    for _ in range(3_000):
        told = [part.told() if random.random() < 0.9 else {} for part in parts]
        for number, pages in grants(limit, told):
            if random.random() < 0.9:  # or nobody heard
                parts[number].grant(pages)
        assert sum(part.granted or 0 for part in parts) <= limit
        for part in parts:
            part.work(random)
    assert sum(part.pages for part in parts) == min(limit, sum(part.urls for part in parts))


def test_a_limit_that_is_set_later_is_shared_out_and_one_that_is_taken_away_frees_all() -> None:
    free, bound = [FakePart(None, 50) for _ in range(3)], [FakePart(4, 50) for _ in range(3)]
    assert grants(10, [part.told() for part in free]) == [(0, 3), (1, 3), (2, 4)]
    assert grants(0, [part.told() for part in bound]) == [(0, None), (1, None), (2, None)]
    assert grants(0, [part.told() for part in free]) == []


def test_a_limit_that_was_lowered_is_confirmed_by_all_before_anybody_goes_on() -> None:
    parts = [FakePart(200, 90), FakePart(200, 90), FakePart(0, 90)]
    parts[0].pages = 45
    told = [part.told() for part in parts]
    assert not are_within(60, told)
    assert not are_within(60, [*told[:2], {}])
    for number, pages in grants(60, told):
        parts[number].grant(pages)
    assert [part.granted for part in parts] == [60, 0, 0]
    assert are_within(60, [part.told() for part in parts])
    assert are_within(0, [FakePart(None, 5).told()])
    assert not are_within(60, [FakePart(None, 5).told()])


@pytest.mark.parametrize("frontier", ["irlbot", "sydney"])
def test_a_part_that_may_fetch_nothing_tells_that_urls_wait_though_it_has_looked_at_none(
    tmp_path: Path, frontier: str
) -> None:
    options = ["parallel.processes=2", f"frontier={frontier}", "memory=64MB"]
    driver = open_frontier(load_settings(options=options), Env(), tmp_path, background=False)
    urls = UrlBatch.of([b"http://a.example/"], key=[1 << 20], host_key=[7], pld_key=[7])
    instructions, _ = driver.step(0.0, [Granted(0), Seeds(urls)])
    assert (instructions, driver.is_idle(), driver.waits) == ([], True, True)
    instructions, _ = driver.step(1.0, [Granted(1)])
    for now in range(2, 6):
        instructions += driver.step(float(now), [])[0]
    assert [type(each) for each in instructions] == [ResolveHost]
    driver.close()


@pytest.mark.parametrize(
    ("scope", "seeds", "is_one"),
    [
        ("domain", ["http://a.example.org/", "http://www.example.org/b"], True),
        ("site", ["http://a.example.org/"], True),
        ("domain", ["http://a.example.org/", "http://a.example.com/"], False),
        ("web", ["http://a.example.org/"], False),
    ],
)
def test_a_scope_within_one_domain_is_told_from_others(scope: str, seeds: list[str], is_one: bool) -> None:
    assert is_one_domain(load_settings(options=[f"scope.level={scope}"]), seeds) == is_one
