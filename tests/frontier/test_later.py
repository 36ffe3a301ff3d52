"""What later links to a URL that waits say of it: a shorter way, or that a page of the domains that are wanted leads there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.events import FetchPage, Instruction, Outcome, PageFetched
from barkspider.core.load import load_settings
from barkspider.core.records import Flag, UrlRow
from barkspider.frontier import open_frontier
from barkspider.frontier.later import LaterLinks
from barkspider.storage.env import Env
from tests.frontier.virtual import VirtualWeb, batch

HUBS = ("http://a.example/", "http://b.example/", "http://c.example/")
TARGET = "http://t.example/1"
LINKED = int(Flag.LINKED)
WAYS = dict(zip(HUBS, ((5, 0), (2, LINKED), (4, 0)), strict=True))


class Leading(VirtualWeb):
    """Hubs that lead to one page, each at a depth and with flags of its own; its host has another page before it."""

    def __init__(self) -> None:
        super().__init__({})
        self.asked: dict[str, tuple[int, int]] = {}

    def page(self, asked: FetchPage, url: str) -> PageFetched:
        if url not in WAYS:
            return PageFetched(asked, 200, links=batch())
        depth, flags = WAYS[url]
        links = [batch("http://t.example/0", depth=1), batch(TARGET, depth=depth, flags=flags)]
        return PageFetched(asked, 200, links=UrlBatch.join(links))

    def answer(self, now: float, instruction: Instruction) -> Outcome:
        if isinstance(instruction, FetchPage):
            self.asked[instruction.row.url.decode()] = (instruction.row.depth, instruction.row.flags & LINKED)
        return super().answer(now, instruction)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [({"scope.depth": 9}, (2, LINKED)), ({"page.keep_tlds": ["pt"]}, (2, LINKED)), ({}, (5, 0))],
)
@pytest.mark.parametrize("kind", ["irlbot", "sydney"])
def test_a_url_is_as_deep_as_the_shortest_way_that_was_found_before_its_turn(
    tmp_path: Path, kind: str, setting: dict[str, object], expected: tuple[int, int]
) -> None:
    web = Leading()
    settings = load_settings(overrides={"seed": 1, "memory": "64MB", "frontier": kind, **setting})
    frontier = open_frontier(settings, Env(), tmp_path, background=False)
    web.run(frontier, batch(*HUBS))
    frontier.close()
    assert web.asked[TARGET] == expected


def test_it_says_the_least_of_what_it_was_told_or_nothing() -> None:
    random, later = Random(1), LaterLinks(1 << 12)
    told: dict[int, tuple[int, int]] = {}
    found = 0
    for _ in range(2_000):
        key, depth = random.randrange(3_000) << 20, random.randrange(10)
        linked = LINKED * (random.random() < 0.2)
        row = UrlRow(key, 2, 3, depth, 0, 0, linked, b"http://a.example/")
        later.learn(UrlBatch.from_rows([row, row._replace(depth=depth + 1)]))
        least, flags = told.get(key, (99, 0))
        told[key] = min(least, depth), flags | linked
        asked = random.choice([*told])
        said = later.told(row._replace(key=asked, depth=50, flags=int(Flag.SEED)))
        found += said.depth < 50
        if said.depth < 50 and said.depth != told[asked][0]:  # it was forgotten in between, and told of again
            assert said.depth > told[asked][0]
        assert not said.flags & LINKED or told[asked][1]
        assert said.flags & Flag.SEED
    assert found > 100
