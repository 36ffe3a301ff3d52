"""Rules of people while a crawl runs: in force where URLs come up, survived, and taken back with nothing lost."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.events import Outcome, PageFetched, Ruled, Seeds
from barkspider.core.load import load_settings
from barkspider.frontier import Driver, open_frontier
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from barkspider.url import Domains
from barkspider.url.lists import parse_rule
from tests.frontier.virtual import VirtualWeb, batch

SITES = {
    f"http://{host}.example/": [f"http://{host}.example/{number}" for number in range(12)]
    + [f"http://{other}.example/" for other in ("a", "b", "c")]
    for host in ("a", "b", "c")
}
PAGES: dict[str, Sequence[str]] = dict(SITES) | {
    f"http://{host}.example/{number}": [f"http://{host}.example/deep-{number}"]
    for host in ("a", "b", "c")
    for number in range(12)
}
PAGES |= {link: [] for links in list(PAGES.values()) for link in links if link not in PAGES}
KINDS = ("irlbot", "sydney", "sydney-disk")
SETTINGS = {"seed": 1, "memory": "64MB", "politeness.host_delay": "2s"}


def opened(
    kind: str, folder: Path, store: Store | None = None, resumed: float | None = None, **more: Any
) -> Driver:
    name, _, seen = kind.partition("-")
    settings = load_settings(
        overrides=SETTINGS | {"frontier": name} | {k.replace("__", "."): v for k, v in more.items()}
    )
    settings = replace(settings, sydney=replace(settings.sydney, seen=seen or "memory"))
    state = (lambda _: None) if store is None else store.state
    driver = open_frontier(settings, Env(), folder, state=state, resumed=resumed, background=False)
    for structure in driver.structures() if store else ():
        store.add(structure)
    return driver


def run(
    web: VirtualWeb, frontier: Driver, events: Mapping[float, Outcome | Callable[[], None]], now: float = 0.0
) -> float:
    """Step a frontier to its end; at some times something happens. Whatever does, every counter holds."""
    order = count()
    coming: list[tuple[float, int, Outcome | Callable[[], None]]] = [
        (time, next(order), event) for time, event in events.items()
    ]
    heapq.heapify(coming)
    while True:
        outcomes: list[Outcome] = []
        while coming and coming[0][0] <= now:
            event = heapq.heappop(coming)[2]
            event() if callable(event) else outcomes.append(event)
        instructions, wake = frontier.step(now, outcomes)
        frontier.validate()
        for instruction in instructions:
            heapq.heappush(coming, (now + web.latency, next(order), web.answer(now, instruction)))
        if frontier.finished() and not coming:
            return now
        now = max(now, min(wake, *(time for time, *_ in coming[:1])) if coming else wake)
        assert now < 10_000


def of(web: VirtualWeb, host: str) -> list[str]:
    return [url for _, name, _, url in web.requests if name == f"{host}.example"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "rule", ["b.example", "http://b.example/*", "127.5.0.0/16", r"re:^http://b\.example/", "host:b.example"]
)
def test_what_is_blocked_is_left_alone_and_comes_back(kind: str, rule: str, tmp_path: Path) -> None:
    web = VirtualWeb(PAGES, servers={"b.example": "127.5.0.1"})
    frontier, asked = opened(kind, tmp_path), list[int]()
    run(
        web,
        frontier,
        {
            0.0: Seeds(batch("http://a.example/")),
            9.0: Ruled((("block", rule),)),
            9.5: lambda: asked.append(len(of(web, "b"))),
            200.0: lambda: asked.append(len(of(web, "b"))),
            201.0: Ruled((("unblock", rule),)),
        },
    )
    assert asked[0] == asked[1] > 0, "it was asked while it was blocked"
    assert sorted(web.fetched()) == sorted(PAGES)
    assert frontier.counters.refused.get("blocked") == 0
    assert frontier.counters.pages == len(PAGES)
    (name,) = frontier.about_rules()["blocked"]
    assert parse_rule(name, Domains()) == parse_rule(rule, Domains())
    frontier.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_that_is_blocked_is_not_asked_for_its_robots_txt(kind: str, tmp_path: Path) -> None:
    web = VirtualWeb(PAGES)
    frontier = opened(kind, tmp_path)
    run(
        web,
        frontier,
        {0.0: Ruled((("block", "b.example"),)), 0.1: Seeds(batch("http://a.example/", "http://b.example/1"))},
    )
    assert of(web, "b") == []
    assert frontier.counters.refused["blocked"] == 2
    assert len(of(web, "c")) == 26
    frontier.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_is_blocked_while_its_robots_txt_is_waited_for(kind: str, tmp_path: Path) -> None:
    web = VirtualWeb(PAGES, robots={"http://b.example": [500, 500, 404]})
    frontier = opened(kind, tmp_path, politeness__retry_delay="20s")
    run(
        web,
        frontier,
        {
            0.0: Seeds(batch("http://b.example/", "http://b.example/1", "http://a.example/")),
            5.0: Ruled((("block", "b.example"),)),
            300.0: Ruled((("unblock", "b.example"),)),
        },
    )
    times = [time for time, host, *_ in web.requests if host == "b.example"]
    assert not [time for time in times if 5.1 < time < 300.0]
    assert sorted(web.fetched()) == sorted(PAGES)
    frontier.close()


def test_what_is_allowed_is_fetched_all_the_same_but_not_past_robots_txt(tmp_path: Path) -> None:
    web = VirtualWeb(PAGES, robots={"http://b.example": b"User-agent: *\nDisallow: /2\n"})
    frontier = opened("irlbot", tmp_path)
    changes = (("block", "b.example"), ("allow", "http://b.example/1"), ("allow", "http://b.example/2"))
    run(
        web,
        frontier,
        {
            0.0: Ruled(changes),
            0.1: Seeds(batch("http://b.example/1", "http://b.example/2", "http://b.example/3")),
        },
    )
    assert web.fetched() == ["http://b.example/1"]
    assert frontier.counters.refused == {"robots": 1, "blocked": 2}  # 3 and deep-1
    frontier.close()


@pytest.mark.parametrize("kind", KINDS)
def test_rules_and_what_they_hold_survive_a_kill(kind: str, tmp_path: Path) -> None:
    web, store = VirtualWeb(PAGES), Store.open(Env(), tmp_path)
    frontier = opened(kind, tmp_path, store)
    run(web, frontier, {0.0: Seeds(batch("http://a.example/")), 9.0: Ruled((("block", "b.example"),))})
    store.commit()
    before, held = len(of(web, "b")), frontier.counters.refused["blocked"]
    assert held > 0
    frontier.close()

    store = Store.open(Env(), tmp_path)
    frontier = opened(kind, tmp_path, store, resumed=500.0)
    now = run(web, frontier, {}, now=500.0)
    assert (len(of(web, "b")), frontier.counters.refused["blocked"]) == (before, held)
    frontier.close()  # without a checkpoint: the journal has what follows

    store = Store.open(Env(), tmp_path)
    frontier = opened(kind, tmp_path, store, resumed=now)
    frontier.replay(now, [Ruled((("unblock", "b.example"),))])
    run(web, frontier, {}, now=now)
    assert sorted(web.fetched()) == sorted(PAGES)
    assert frontier.counters.refused["blocked"] == 0
    frontier.close()


def test_files_of_rules_come_and_go(tmp_path: Path) -> None:
    web = VirtualWeb(PAGES)
    frontier = opened("irlbot", tmp_path)
    rule = {parse_rule("b.example"): "bad.txt"}
    frontier.follow_lists(rule, {})
    run(web, frontier, {0.0: Seeds(batch("http://a.example/")), 300.0: lambda: frontier.follow_lists({}, {})})
    assert sorted(web.fetched()) == sorted(PAGES)
    assert frontier.about_rules() == {"given": {}, "blocked": {"bad.txt": 1}}
    frontier.close()


def test_a_scope_that_was_changed_counts_for_what_is_queued(tmp_path: Path) -> None:
    web, store = VirtualWeb(PAGES), Store.open(Env(), tmp_path)
    frontier = opened("irlbot", tmp_path, store)
    outcomes: list[Outcome] = [Seeds(batch("http://a.example/"))]
    now = 0.0
    while not any(isinstance(each, PageFetched) for each in outcomes):
        instructions, _ = frontier.step(now, outcomes)
        outcomes = [web.answer(now, each) for each in instructions]
        now += 0.5
    frontier.step(now, outcomes)
    store.commit()
    frontier.close()

    store = Store.open(Env(), tmp_path)
    frontier = opened("irlbot", tmp_path, store, resumed=now, scope__exclude_paths=["/1*"])
    frontier.judge_scope_by(lambda rows: ["path" if b"example/1" in each.url else "" for each in rows])
    run(web, frontier, {}, now=now)
    assert not [url for url in web.fetched() if "example/1" in url]
    assert frontier.counters.refused["scope"] == 9  # 1, 10 and 11 of three sites
    frontier.close()
