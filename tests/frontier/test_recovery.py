"""Frontiers that are killed at random moments, again and again, on a virtual clock.

What was applied before a kill is never asked for again, everything else is fetched in the end, and no host is asked
sooner because of a restart. The journal and the checkpoints are those of the engine in the small.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.events import FetchPage, Outcome, PageFetched, RobotsFetched, Seeds
from barkspider.core.load import load_settings
from barkspider.core.records import Flag
from barkspider.core.settings import Settings
from barkspider.engine.outcomes import is_kept
from barkspider.frontier import Driver, open_frontier
from barkspider.sites import Registry
from barkspider.sites.database import Sqlite
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.frontier import falling
from tests.frontier.virtual import Failure, VirtualWeb, batch, random_web

Start = Callable[[Store, float | None], Driver]
FRONTIERS = ("irlbot", "sydney", "sydney-disk", "site")
SETTINGS = {"seed": 1, "memory": "64MB"}  # buffers are made anew after each kill


def starter(kind: str, settings: Settings, folder: Path) -> Start:
    name, _, seen = kind.partition("-")
    sydney = replace(settings.sydney, seen=seen or "memory")

    def start(store: Store, resumed: float | None) -> Driver:
        frontier = open_frontier(
            replace(settings, frontier=name, sydney=sydney),
            Env(),
            folder,
            state=store.state,
            resumed=resumed,
            background=False,
        )
        for structure in frontier.structures():
            store.add(structure)
        return frontier

    return start


def sites_in(folder: Path) -> Registry:
    """The database of sites, each of which is tried once; only a frontier that goes by sites asks it."""
    return Registry(Sqlite(folder / "sites.db"), lease=1e9, tries=1)


class Run:
    """A crawl that is killed. `applied` counts the outcomes of each URL that no kill took back."""

    def __init__(self, web: VirtualWeb, start: Start, folder: Path, seed: int, often: float = 0.03) -> None:
        self.web, self.start, self.folder, self.random = web, start, folder, Random(seed)
        self.applied = Counter[str]()
        self.kills, self.often = 0, often

    def crawl(self, seeds: UrlBatch, kills: int, commits: float = 0.05) -> Driver:
        store = Store.open(Env(), self.folder)
        frontier = self.start(store, None)
        self.web.registry = sites_in(self.folder)
        journal: list[tuple[float, list[Outcome]]] = []
        now, order = 0.0, count()
        coming: list[tuple[float, int, Outcome]] = [(0.0, next(order), Seeds(seeds))]
        while not frontier.finished() or coming:
            outcomes = []
            while coming and coming[0][0] <= now:
                outcomes.append(heapq.heappop(coming)[2])
            kept = [outcome for outcome in outcomes if is_kept(outcome)]
            if kept:
                journal.append((now, kept))
            for outcome in kept:
                if isinstance(outcome, PageFetched):
                    self.applied[outcome.asked.row.url.decode()] += 1
                elif isinstance(outcome, RobotsFetched):
                    self.applied[outcome.asked.url] += 1
            instructions, wake = frontier.step(now, outcomes)
            frontier.validate()
            for instruction in instructions:
                answer = self.web.answer(now, instruction)
                if isinstance(answer, PageFetched | RobotsFetched):
                    answer = replace(answer, seconds=self.web.latency)
                heapq.heappush(coming, (now + self.web.latency, next(order), answer))
            if self.random.random() < commits:
                store.commit()
                journal = []
            if self.kills < kills and self.random.random() < self.often:
                self.kills += 1
                coming = []
                now += self.random.choice([0.0, 0.3, 100.0])
                frontier.close()
                store = Store.open(Env(), self.folder)
                frontier = self.start(store, now)
                # A step at a time, or an outcome at a time: it comes to the same.
                for time, kept in journal:
                    for part in [kept] if self.kills % 2 else [[outcome] for outcome in kept]:
                        frontier.replay(time, part)
                frontier.validate()
                if not journal and not store.number:
                    coming = [(now, next(order), Seeds(seeds))]
                if frontier.leases is not None:
                    coming += [(now, next(order), each) for each in self.web.recovered(frontier.leases)]
                continue
            times = [wake, *([coming[0][0]] if coming else [])]
            if min(times) < math.inf:
                now = max(now, min(times))
            else:
                assert frontier.finished(), "the frontier waits for nothing"
        store.commit()
        frontier.close()
        return frontier


def lost(run: Run) -> int:
    """Requests whose outcome a kill took away."""
    return len(run.web.requests) - sum(run.applied.values())


@pytest.mark.parametrize("kind", FRONTIERS)
@pytest.mark.parametrize("seed", range(4))
def test_what_was_applied_is_not_asked_for_again(tmp_path: Path, kind: str, seed: int) -> None:
    pages = random_web(hosts=12, pages=300, links=12, seed=seed)
    web = VirtualWeb(
        pages,
        robots={"http://h1.example": b"User-agent: *\nCrawl-delay: 4\nDisallow: /301"},
        servers={f"h{number}.example": f"127.0.0.{number % 5}" for number in range(12)},
        latency=0.4,
    )
    settings = load_settings(overrides={**SETTINGS, "budget.base": 3})
    run = Run(web, starter(kind, settings, tmp_path), tmp_path, seed)
    frontier = run.crawl(batch(next(iter(pages)), flags=Flag.SEED), kills=15)
    assert run.kills >= 5
    assert {url for url in run.applied if not url.endswith("/robots.txt")} == set(pages)
    assert set(run.applied.values()) == {1}
    assert lost(run) > 0
    counters = frontier.counters
    assert (counters.pages, counters.queued, counters.deferred, counters.ahead) == (300, 0, 0, 0)
    assert web.closest(1) >= 2.0
    assert web.closest(2) >= 1.0
    slow = [time for time, host, *_ in web.requests if host == "h1.example"]
    assert min(later - earlier for earlier, later in pairwise(slow)) >= 4.0


def test_budgets_shorten_delays_after_a_resume_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All URLs are found by one page: no other tells of their budget."""
    urls = [f"http://a.example/{number}" for number in range(40)]
    web = VirtualWeb(dict.fromkeys(urls, urls), latency=0.1)
    monkeypatch.setattr(falling, "multiple", lambda: 10)
    settings = load_settings(
        overrides={
            **SETTINGS,
            "budget.function": "tests.frontier.falling:budgets",
            "politeness.scale_by_budget": True,
            "politeness.host_delay": "40s",
        }
    )
    start, now = starter("irlbot", settings, tmp_path), 0.0
    for seeds, until in ((batch(urls[0]), 60.0), (batch(), math.inf)):
        store = Store.open(Env(), tmp_path)
        frontier = start(store, now if now else None)
        now = web.run(frontier, seeds, until, now=now)
        store.commit()
        frontier.close()
    assert sorted(web.fetched()) == sorted(urls)
    pauses = [later - earlier for (earlier, *_), (later, *_) in pairwise(web.requests)]
    assert (
        sum(pause < 5 for pause in pauses) >= len(pauses) - 3
    )  # not before it is known, nor after the start


@pytest.mark.parametrize("kind", FRONTIERS)
@pytest.mark.parametrize("seed", range(4))
def test_redirects_retries_and_failures_survive(tmp_path: Path, kind: str, seed: int) -> None:
    urls = [f"http://a{number}.example/" for number in range(30)]
    pages: dict[str, Any] = {"http://start.example/": urls}
    for number, url in enumerate(urls):
        pages[url] = [
            f"{url}index.html",  # comes back to its own key, and is fetched as written
            f"http://www.a{number}.example/",  # which sends us back
            Failure("timeout_headers", times=2),
            Failure("http_404", temporary=False),
            Failure("connect_refused"),
            [],
        ][number % 6]
        pages[f"http://www.a{number}.example/"] = url if number % 6 == 1 else []
        pages[f"{url}index.html"] = []
    robots: dict[str, Any] = {"http://a5.example": "http://start.example/rules", "http://a11.example": 503}
    web = VirtualWeb(pages, robots=robots, latency=0.7)
    settings = load_settings(overrides=SETTINGS)
    run = Run(web, starter(kind, settings, tmp_path), tmp_path, seed, often=0.15)
    frontier = run.crawl(batch("http://start.example/"), kills=12, commits=0.1)
    counters = frontier.counters
    assert run.kills >= 5
    # Site by site a redirect to another site is a link, and nobody sees that it leads back.
    loops = {} if kind == "site" else {"redirect_loop": 5}
    assert counters.failed == {"http_404": 5, "connect_refused": 5, **loops}
    assert counters.refused == {"robots_unreachable": 1}
    assert counters.balanced()
    assert counters.ahead == counters.deferred == counters.queued == 0
    tries = {0: {1}, 2: {1, 2, 3}, 3: {1}, 4: {3}}
    for kind_of, expected in tries.items():
        assert {run.applied[url] for number, url in enumerate(urls) if number % 6 == kind_of} <= expected
    exact = [run.applied[f"{url}index.html"] for number, url in enumerate(urls) if number % 6 == 0]
    assert set(exact) == {1}


@pytest.mark.parametrize("kind", FRONTIERS)
def test_a_parked_host_stays_parked(tmp_path: Path, kind: str) -> None:
    """Retry-After is kept across a restart, and is no longer than it was when the clock was set back."""
    pages: dict[str, Any] = {
        "http://a.example/": Failure("http_503", times=1, retry_after=500.0),
        "http://b.example/": [],
    }
    web = VirtualWeb(pages, registry=sites_in(tmp_path))
    settings = load_settings(overrides=SETTINGS)
    start = starter(kind, settings, tmp_path)
    store = Store.open(Env(), tmp_path)
    frontier = start(store, None)
    web.run(frontier, batch(*pages), until=30.0)
    store.commit()
    frontier.close()
    store = Store.open(Env(), tmp_path)
    frontier = start(store, 40.0)
    requests: list[float] = []
    now, outcomes = 40.0, list[Outcome]()
    while now < 2000 and not requests:
        instructions, wake = frontier.step(now, outcomes)
        outcomes = [web.answer(now, instruction) for instruction in instructions]
        requests += [now for instruction in instructions if isinstance(instruction, FetchPage)]
        now = now + 0.01 if outcomes else max(now, min(wake, now + 1.0))
    assert 500.0 <= requests[0] <= 520.0
    frontier.close()


@pytest.mark.parametrize("kind", FRONTIERS)
@pytest.mark.parametrize("seed", range(4))
def test_redirects_that_set_cookies_are_followed_once_whatever_is_killed(
    tmp_path: Path, kind: str, seed: int
) -> None:
    """A page behind a cookie check, or behind www. and back, is asked for twice: without the cookie and with it."""

    class CookieWeb(VirtualWeb):
        cookies: set[str]

        def answer(self, now: float, instruction: Any) -> Any:
            url = instruction.row.url.decode() if isinstance(instruction, FetchPage) else ""
            name = url.removeprefix("http://").removeprefix("www.").removesuffix("/")
            known = self.pages.get(url)
            if name in self.cookies:
                self.pages[url] = []
            found = super().answer(now, instruction)
            if name.startswith("check") or url.startswith("http://www."):
                self.cookies.add(name)
            if url:
                self.pages[url] = known
            return found

    checks = [f"http://check{number}.example/" for number in range(6)]
    bare = [f"http://bare{number}.example/" for number in range(6)]
    pages: dict[str, Any] = {"http://start.example/": [*checks, *bare]}
    pages |= zip(checks, checks, strict=True)
    for url in bare:
        www = url.replace("://", "://www.")
        pages |= {url: www, www: url}
    web = CookieWeb(pages, latency=0.7)
    web.cookies = set()
    start = starter(kind, load_settings(overrides={"seed": 1}), tmp_path)
    run = Run(web, start, tmp_path, seed, often=0.4)
    frontier = run.crawl(batch("http://start.example/"), kills=12, commits=0.1)
    assert run.kills >= 3
    assert frontier.counters.failed == {}
    # Site by site a redirect to another site, as www. is, is a link, and nobody sees that it leads back.
    followed = checks if kind == "site" else checks + bare
    assert frontier.counters.pages == 1 + len(followed)
    # That of every one of the six may be lost by a kill.
    assert max(run.applied[url] for url in checks + bare) in ((1, 2) if kind == "site" else (2,))
    assert {count for url, count in run.applied.items() if url not in checks + bare} == {1}
    assert frontier.counters.balanced()
    assert frontier.counters.ahead == frontier.counters.deferred == frontier.counters.queued == 0
