"""The frontier of IRLbot on a virtual clock: every page once, politely, whatever waits on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.events import HostResolved, Instruction, Outcome
from barkspider.core.load import load_settings
from barkspider.frontier import Driver, gate, open_frontier
from barkspider.frontier.gate import Gate
from barkspider.frontier.irlbot import Irlbot
from barkspider.frontier.source import Found
from barkspider.frontier.stages import Stages
from barkspider.storage.env import Env
from tests.frontier import falling
from tests.frontier.virtual import Failure, VirtualWeb, batch, random_web, row

Make = Callable[..., Driver]


@pytest.fixture
def irlbot(tmp_path: Path) -> Iterator[Make]:
    made = []

    def make(**changes: Any) -> Driver:
        names = {
            "seed": 1,
            "memory": "64MB",
            **{name.replace("__", "."): value for name, value in changes.items()},
        }
        made.append(
            open_frontier(load_settings(overrides=names), Env(), tmp_path / str(len(made)), background=False)
        )
        return made[-1]

    yield make
    for frontier in made:
        frontier.close()


@pytest.mark.parametrize("base", [1, 10])
def test_every_page_is_fetched_once(irlbot: Make, base: int) -> None:
    pages = random_web(hosts=20, pages=300, links=8, seed=1)
    web = VirtualWeb(pages)
    frontier = irlbot(budget__base=base)
    web.run(frontier, batch(next(iter(pages))))
    assert Counter(web.fetched()) == Counter(list(pages))
    assert (frontier.counters.pages, frontier.counters.deferred) == (300, 0)
    assert frontier.gauges()["edges"] > 0 or base == 10


def test_delays_hold_between_requests_to_a_host_and_to_a_server(irlbot: Make) -> None:
    pages = random_web(hosts=6, pages=60, links=5, seed=3)
    web = VirtualWeb(pages, servers={f"h{number}.example": f"127.0.0.{number % 2}" for number in range(6)})
    web.run(irlbot(), batch(next(iter(pages))))
    assert web.closest(1) >= 2.0
    assert web.closest(2) >= 1.0


def test_a_domain_that_falls_back_to_the_base_budget_gets_its_delay_back(
    irlbot: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [f"http://a.example/{number}" for number in range(30)]
    web = VirtualWeb({url: urls[number + 1 : number + 2] for number, url in enumerate(urls)})
    monkeypatch.setattr(falling, "multiple", lambda: 10 if len(web.requests) < 15 else 1)
    frontier = irlbot(
        politeness__scale_by_budget=True,
        politeness__host_delay="40s",
        budget__function="tests.frontier.falling:budgets",
    )
    web.run(frontier, batch(urls[0]))
    times = [time for time, *_ in web.requests]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert max(pauses[5:12]) < 5
    assert min(pauses[17:]) >= 40


def test_a_site_of_ten_pages_ends_by_itself(irlbot: Make) -> None:
    """No stage waits for a batch to fill: with pauses of nothing it takes less than a second of the clock."""
    urls = [f"http://a.example/{number}" for number in range(10)]
    web = VirtualWeb(dict.fromkeys(urls, urls))
    took = web.run(irlbot(politeness__host_delay="0s", politeness__server_delay="0s"), batch(urls[0]))
    assert sorted(web.fetched()) == sorted(urls)
    assert took < 1


def test_a_seed_with_a_slow_robots_txt_does_not_wait_for_all_others(irlbot: Make) -> None:
    """New links keep coming in, but the fetchers have time: what waits for robots.txt is looked at first."""
    pages = {
        f"http://h{host}.example/{page}": [f"http://h{host}.example/{page + step}" for step in (1, 2)]
        for host in range(5)
        for page in range(400)
    }
    late = "http://late.example/"
    seeds = [f"http://h{host}.example/0" for host in range(5)]
    web = VirtualWeb(pages | {late: []}, slow={f"{late}robots.txt": 0.05})
    frontier = irlbot(
        politeness__host_delay="1ms",
        politeness__server_delay="0s",
        politeness__slow_factor=0,
        fetch__in_flight=100,
    )
    web.run(frontier, batch(*seeds, late), until=1.5, validate=False)
    asked = {url: time for time, _, _, url in web.requests}
    assert len(asked) > 400
    assert asked[late] < 0.5


def test_a_farm_waits_while_others_are_crawled(irlbot: Make) -> None:
    """A domain without links from others gets its base budget a queue; the rest of it comes later."""
    farm = [f"http://s{number}.farm.example/" for number in range(400)]
    good = [f"http://site{number}.example/" for number in range(60)]
    pages: dict[str, Any] = {"http://start.example/": [farm[0], *good]}
    pages |= dict.fromkeys(farm, farm) | {url: [] for url in good}
    web = VirtualWeb(pages)
    frontier = irlbot(
        budget__base=5, politeness__host_delay="1s", politeness__server_delay="0s", fetch__in_flight=10
    )
    web.run(frontier, batch("http://start.example/"))
    order = web.fetched()
    assert sorted(order) == sorted(pages)
    assert max(order.index(url) for url in good) < 150
    assert frontier.gauges()["rescans"] >= 2


@pytest.mark.parametrize(
    ("pages", "last"),
    [
        ({"http://a.example/": "http://a.example/index.html", "http://a.example/index.html": []}, 2),
        ({"http://x.example/": "http://www.x.example/", "http://www.x.example/": "http://x.example/"}, 3),
        ({"http://a.example/": "http://b.example/", "http://b.example/": []}, 2),
    ],
)
def test_redirects_are_followed_and_loops_end(irlbot: Make, pages: dict[str, Any], last: int) -> None:
    web = VirtualWeb(pages)
    frontier = irlbot()
    web.run(frontier, batch(next(iter(pages))))
    assert len(web.fetched()) == last


def test_what_fails_is_tried_again_and_counted(irlbot: Make) -> None:
    pages: dict[str, Any] = {
        "http://a.example/": ["http://a.example/1", "http://a.example/2"],
        "http://a.example/1": Failure("timeout_headers", times=1),
        "http://a.example/2": Failure("http_404", temporary=False),
    }
    web = VirtualWeb(pages)
    frontier = irlbot()
    web.run(frontier, batch("http://a.example/"))
    assert web.times("http://a.example/1") == 2
    assert (frontier.counters.pages, frontier.counters.failed) == (2, {"http_404": 1})


def test_the_limit_of_pages_is_exact(irlbot: Make) -> None:
    pages = random_web(hosts=10, pages=200, links=10, seed=2)
    frontier = irlbot(limits__pages=37)
    VirtualWeb(pages).run(frontier, batch(next(iter(pages))))
    assert frontier.counters.pages == 37


def test_the_pages_of_a_step_are_fed_as_one_batch_with_the_edges_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(overrides={"seed": 1, "memory": "64MB"})
    gate = Gate(settings, Env(), tmp_path, lambda _: None)
    stages = Stages(settings, Env(), tmp_path, background=False)
    source = Irlbot(settings, gate, stages)
    fed: list[list[bytes]] = []
    feed = stages.seen.feed

    def watched(links: UrlBatch) -> None:
        fed.append(links.url.tolist())
        feed(links)

    monkeypatch.setattr(stages.seen, "feed", watched)
    one, two, three = (row(f"http://{name}.example/") for name in ("one", "two", "three"))
    found = [
        Found(None, batch("http://seed.example/")),
        Found(one, batch("http://one.example/in", "http://a.example/", "http://b.example/")),
        Found(two, batch("http://there.example/"), target=row("http://there.example/")),
        Found(two, batch("http://a.example/", "http://a.example/2")),
        Found(three, batch()),
        Found(three, batch("http://c.example/"), barred=batch("http://three.example/trap")),
    ]
    source.take(found, 0.0)
    assert fed == [[url for each in found for url in each.links.url.tolist()]]
    assert source.waiting()
    stages.star.merge()
    stages.seen.merge()
    assert stages.star.edges == 4  # from one to a and b, from two to a, from three to c
    assert (stages.star.domains, stages.star.distribution().degrees.tolist()) == (3, [1, 2])
    assert sum(map(len, stages.seen.unique())) == 7  # a.example/ is there twice
    source.take([Found(one, batch())], 0.0)
    assert len(fed) == 1
    source.close()
    gate.close()


class _Resolving(VirtualWeb):
    """Remembers whose address was asked for; an address is good for a day."""

    resolved: ClassVar[list[str]] = []

    def answer(self, now: float, instruction: Instruction) -> Outcome:
        answer = super().answer(now, instruction)
        if isinstance(answer, HostResolved):
            self.resolved.append(answer.asked.host)
            return replace(answer, ttl=86_400.0)
        return answer


@pytest.fixture
def left_for_two_hours(monkeypatch: pytest.MonkeyPatch) -> _Resolving:
    """A host that is forgotten in RAM, and then comes up again; its robots.txt cannot be had any more."""
    monkeypatch.setattr(gate, "_REMEMBERED_HOSTS", 2)
    monkeypatch.setattr(_Resolving, "resolved", [])
    others = [f"http://b{number}.example/" for number in range(9)]
    return _Resolving(
        {
            "http://a.example/1": others,
            "http://slow.example/": ["http://a.example/x/2", "http://a.example/3"],
            **{url: [] for url in (*others, "http://a.example/3")},
        },
        robots={"http://a.example": [b"User-agent: *\nDisallow: /x", 503]},
        slow={"http://slow.example/": 7200.0},
    )


def test_the_address_of_a_host_that_was_forgotten_lies_beside_its_rules(
    irlbot: Make, left_for_two_hours: _Resolving
) -> None:
    web = left_for_two_hours
    frontier = irlbot()
    web.run(frontier, batch("http://a.example/1", "http://slow.example/"))
    assert web.fetched()[-1] == "http://a.example/3"
    assert web.resolved.count("a.example") == 1
    assert frontier.counters.refused == {"robots": 1}


def test_old_rules_on_disk_are_used_when_there_are_no_newer_ones(
    irlbot: Make, left_for_two_hours: _Resolving
) -> None:
    web = left_for_two_hours
    frontier = irlbot(politeness__robots_expiry="1h")
    web.run(frontier, batch("http://a.example/1", "http://slow.example/"))
    assert web.times("http://a.example/robots.txt") == 2
    assert web.fetched()[-1] == "http://a.example/3"
    assert frontier.counters.refused == {"robots": 1}
