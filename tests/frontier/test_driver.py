"""The driver with a source of a few lines: what `Source` asks for is enough for a frontier."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barkspider.core.events import (
    FetchPage,
    Instruction,
    PageFetched,
    Redirect,
    ResolveHost,
    Seeds,
    Structure,
)
from barkspider.core.load import load_settings
from barkspider.core.records import Flag
from barkspider.frontier import Driver, open_frontier
from barkspider.frontier.gate import Gate, Saved
from barkspider.frontier.memory import Memory
from barkspider.frontier.source import Found, Source
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.frontier.virtual import Failure, VirtualWeb, batch, random_web, row


class Plain:
    """Breadth-first in RAM: every URL goes into `Ready` at once."""

    def __init__(self, gate: Gate) -> None:
        self.gate, self.seen = gate, set[int]()
        self.structures: Sequence[Structure] = ()
        self.handed: list[Sequence[Found]] = []
        self.closed = False

    def take(self, found: Sequence[Found], now: float) -> None:
        self.handed.append(found)
        for each in found:
            for link in each.links.rows():
                if link.key not in self.seen:
                    self.seen.add(link.key)
                    self.gate.counters.discovered += 1
                    if self.gate.admits(link, now):
                        self.gate.put(link, now)

    def give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        back = self.gate.come_back(now)
        self.gate.counters.deferred -= len(back)
        for each in back.rows():
            self.gate.put(each, now)
        instructions = self.gate.ready.take(now, room)
        return instructions, min(self.gate.ready.next_time(), self.gate.next_time())

    def waiting(self) -> bool:
        return False

    def save(self) -> Saved:
        plain = np.array(sorted(self.seen), np.uint64)
        return lambda: ({}, {"plain": plain})

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        self.seen = set(np.frombuffer(arrays["plain"], np.uint64).tolist())

    def gauges(self) -> dict[str, int]:
        return {"seen": len(self.seen)}

    def drums(self) -> dict[str, dict[str, int]]:
        return {}

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        return []

    def validate(self) -> None:
        assert len(self.seen) <= self.gate.counters.discovered

    def close(self) -> None:
        self.closed = True


def plain(folder: Path, state: Any = lambda _: None, **changes: Any) -> tuple[Driver, Plain, Gate]:
    names = {"seed": 1, **{name.replace("__", "."): value for name, value in changes.items()}}
    settings = load_settings(overrides=names)
    gate = Gate(settings, Env(), folder, state)
    source = Plain(gate)
    checked: Source = source
    return (
        Driver(settings, gate, checked, Memory(Env(), folder, Driver.name, state(Driver.name))),
        source,
        gate,
    )


def test_a_source_of_a_few_lines_crawls_a_web(tmp_path: Path) -> None:
    pages: dict[str, Any] = random_web(hosts=12, pages=200, links=6, seed=4)
    urls = list(pages)
    leaves = urls[150:]
    pages[leaves[0]] = Failure("timeout_headers", times=2)
    pages[leaves[1]] = Failure("http_404", temporary=False)
    pages[leaves[2]] = "http://elsewhere.example/"
    pages[leaves[3]] = f"{leaves[3]}index.html"
    web = VirtualWeb(
        pages | {"http://elsewhere.example/": [], f"{leaves[3]}index.html": []},
        robots={"http://h1.example": b"User-agent: *\nDisallow: /not"},
        stale={leaves[4]},
    )
    driver, source, _ = plain(tmp_path)
    web.run(driver, batch(urls[0]))
    assert not source.closed
    driver.close()
    assert source.closed
    often = Counter(web.fetched())
    assert set(often) == set(web.pages)
    assert {url for url, count in often.items() if count > 1} == {leaves[0], leaves[4]}
    counters = driver.counters
    assert (counters.pages, counters.redirects, counters.failed) == (199, 1, {"http_404": 1})
    assert driver.gauges() == {"seen": 201, "hosts": 13}
    assert web.closest(by=1) >= 2.0


def test_it_goes_on_from_a_checkpoint_and_what_the_journal_has(tmp_path: Path) -> None:
    pages = random_web(hosts=10, pages=120, links=6, seed=5)
    web = VirtualWeb(pages, latency=0.5)
    store = Store.open(Env(), tmp_path)
    driver, _, gate = plain(tmp_path, store.state, politeness__slow_factor=0)
    for structure in driver.structures():
        store.add(structure)
    # Names take half a second, robots.txt another, and then there is a pause of two.
    web.run(driver, batch(*list(pages)[:8]), until=2.9)
    store.commit()
    # What was under way at the checkpoint is answered after it, in one step.
    asked = [each.flying for each in gate.ready.hosts() if each.flying is not None]
    answers = [
        web.page(FetchPage(each.row, "127.0.0.1", each.trail), each.row.url.decode())
        for each in asked
        if not isinstance(each, tuple)
    ]
    driver.close()
    assert len(answers) == 8
    before = len(web.requests)
    store = Store.open(Env(), tmp_path)
    driver, source, gate = plain(tmp_path, store.state)
    gate.resume(30.0)
    driver.recall()
    driver.replay(29.0, answers)
    driver.validate()
    assert len(source.handed) == 1
    assert driver.counters.ahead == len(answers)
    now, outcomes = 30.0, list[Any]()
    while not driver.finished():
        instructions, wake = driver.step(now, outcomes)
        outcomes = [web.answer(now, instruction) for instruction in instructions]
        assert outcomes or wake < math.inf or driver.finished(), "the frontier waits for nothing"
        now = now + 0.01 if outcomes else max(now, wake)
    driver.validate()
    driver.close()
    done = {answer.asked.row.url.decode() for answer in answers}
    later = [url for *_, url in web.requests[before:] if not url.endswith("robots.txt")]
    assert not done & set(later)
    assert (driver.counters.pages, driver.counters.ahead) == (120, 0)


def test_a_source_is_given_everything_of_a_step_at_once_and_in_order(tmp_path: Path) -> None:
    """After all outcomes were applied: of each what it brought in, and nothing of what failed."""
    driver, source, gate = plain(tmp_path, politeness__obey_robots=False, limits__redirects=3)
    seeds = [f"http://h{number}.example/" for number in range(7)]
    web, asked = VirtualWeb({}), {}
    outcomes: list[Any] = [Seeds(batch(*seeds))]
    for now in range(5):
        instructions, _ = driver.step(now, outcomes)
        asked |= {each.row.url.decode(): each for each in instructions if isinstance(each, FetchPage)}
        outcomes = [web.answer(now, each) for each in instructions if isinstance(each, ResolveHost)]
    assert len(asked) == len(seeds)
    source.handed.clear()
    page, moved, far, gone, empty, away, old = (asked[url] for url in seeds)
    target = row("http://there.example/", hops=1)
    links = batch("http://x.example/1", "http://x.example/2")
    more = batch("http://y.example/")
    pages_before = gate.counters.pages
    driver.step(
        5.0,
        [
            PageFetched(page, 200, links=links),
            PageFetched(moved, 302, redirect=Redirect(target, target.url)),
            PageFetched(far, 302, redirect=Redirect(target._replace(hops=4), target.url)),
            PageFetched(gone, 404, failure="http_404"),
            Seeds(more),
            PageFetched(empty, 200),
            PageFetched(away, 302),
            PageFetched(old, 304),
        ],
    )
    assert gate.counters.pages == pages_before + 3
    assert gate.counters.failed == {"http_404": 1, "too_many_redirects": 1}
    (found,) = source.handed
    brought = [
        (each.page and each.page.url.decode(), each.links.url.tolist(), each.target and each.target.hops)
        for each in found
    ]
    assert brought == [
        (seeds[0], [b"http://x.example/1", b"http://x.example/2"], None),
        (seeds[1], [b"http://there.example/"], 1),
        (seeds[2], [], 4),
        (None, [b"http://y.example/"], None),
        (seeds[4], [], None),
        (seeds[6], [], None),
    ]
    assert not any(len(each.barred) for each in found)
    driver.step(6.0, [])
    assert len(source.handed) == 1  # nothing was found
    driver.validate()
    driver.close()


def test_links_within_a_site_with_many_duplicates_are_barred(tmp_path: Path) -> None:
    inside, outside = "http://trap.example/{}", "http://good.example/{}"
    pages = {inside.format(n): [inside.format(n + 1), outside.format(n)] for n in range(20)}
    web = VirtualWeb(pages, digests=dict.fromkeys(pages, 7))
    driver, source, _ = plain(tmp_path, limits__site_duplicates=3)
    web.run(driver, batch(inside.format(0)))
    barred = [each for found in source.handed for each in found if len(each.barred)]
    assert [each.barred.url.tolist() for each in barred] == [[inside.format(4).encode()]]
    assert [each.links.url.tolist() for each in barred] == [[outside.format(3).encode()]]
    assert inside.format(4) not in web.fetched()
    driver.close()


def test_pages_to_be_fetched_again_pass_by_the_source(tmp_path: Path) -> None:
    driver, source, _ = plain(tmp_path)
    web = VirtualWeb({"http://a.example/": [], "http://b.example/": []})
    web.run(driver, batch(*web.pages))
    counters = replace(driver.counters)
    web.run(driver, batch("http://a.example/", flags=Flag.AGAIN))
    assert web.times("http://a.example/") == 2
    assert (driver.counters.discovered, driver.counters.pages) == (counters.discovered + 1, 3)
    assert all(not (each.links.flags & Flag.AGAIN).any() for found in source.handed for each in found)
    driver.close()


@pytest.mark.parametrize(("kind", "seen"), [("irlbot", "memory"), ("sydney", "memory"), ("sydney", "disk")])
def test_the_settings_choose_the_source(tmp_path: Path, kind: str, seen: str) -> None:
    settings = load_settings(overrides={"seed": 1, "memory": "64MB", "frontier": kind, "sydney.seen": seen})
    frontier = open_frontier(settings, Env(), tmp_path, background=False)
    names = [structure.name for structure in frontier.structures()]
    frontier.close()
    assert names[:2] == ["frontier", "queues/Q_W"]  # what is put off goes to Q_W before it is committed
    assert ("queues/S" in names, "seen" in names) == (kind == "sydney", kind == "irlbot" or seen == "disk")


def test_a_driver_that_is_held_or_paused_gives_out_nothing(tmp_path: Path) -> None:
    driver, source, _ = plain(tmp_path)
    driver.pause(True)
    assert driver.step(0.0, [Seeds(batch("http://a.example/"))]) == ([], math.inf)
    assert len(source.seen) == 1  # what is found is taken all the same
    assert not driver.finished()
    driver.pause(False)
    instructions, _ = driver.step(1.0, [])
    assert len(instructions) == 1
    driver.hold()
    assert driver.step(2.0, []) == ([], math.inf)
    driver.close()
