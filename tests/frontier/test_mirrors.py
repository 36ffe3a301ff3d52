"""Mirrors are stopped after a few fetches, and nobody else is: in one process and several, with kills and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.load import load_settings
from barkspider.core.records import Flag
from barkspider.core.settings import Settings
from barkspider.frontier import Driver
from barkspider.frontier.decisions import STOPPED
from barkspider.frontier.mirrors import MIRROR, SUSPECT, Mirrors
from barkspider.lab.synthweb import WebSpec
from tests.frontier.mirrored import DUPLICATES, MirroredWeb
from tests.frontier.test_recovery import Run, starter
from tests.frontier.virtual import row
from tests.parallel.virtual import Crawling

Make = Callable[..., Driver]
SPEC = WebSpec(seed=3, pages=260, domains=24, links_per_page=10, page_bytes=2_000)
SHARE = 0.25
_MOST = 5  # fetches of a mirror


def judge(web: MirroredWeb, stopped: dict[str, str]) -> None:
    """Each that was stopped is a copy of whom it was said to be, or that one of it."""
    for replica, original in stopped.items():
        pairs = [(name, web.copies[name]) for name in (replica, original) if name in web.copies]
        kinds = [copy.kind for name, copy in pairs if {name, copy.original} == {replica, original}]
        assert set(kinds) & set(DUPLICATES), (replica, original)


def found(web: MirroredWeb, stopped: dict[str, str]) -> float:
    """The share of copies that, or whose originals, were stopped."""
    duplicates = {name for name, copy in web.copies.items() if copy.kind in DUPLICATES}
    pairs = {frozenset(pair) for pair in stopped.items()}
    return len(pairs) / len(duplicates)


@pytest.mark.parametrize("name", ["sydney", "irlbot"])
def test_a_mirror_costs_five_fetches_and_no_other_host_is_stopped(sydney: Make, name: str) -> None:
    web = MirroredWeb(SPEC, SHARE)
    frontier = sydney(frontier=name, scope__stop_mirrors=True, sydney__sample=0)
    web.run(frontier, web.seeds(), validate=False)
    frontier.validate()
    stopped = {note["replica"]: note["original"] for event, note in frontier.notices() if event == MIRROR}
    judge(web, stopped)
    assert found(web, stopped) > 0.7  # of others the home page has changed
    costs = [web.cost(host) for host in stopped]
    assert max(costs) <= _MOST
    counters = frontier.counters
    assert counters.refused[MIRROR] > 0
    assert counters.decided[f"{STOPPED}.{MIRROR}"] == len(stopped)
    told = {each.url.decode(): each.rule for each in frontier.traced() if each.decision == STOPPED}
    assert told == {f"http://{replica}/": f"mirror of {original}" for replica, original in stopped.items()}


def test_without_the_setting_all_is_fetched(sydney: Make) -> None:
    web = MirroredWeb(SPEC, SHARE)
    frontier = sydney(sydney__sample=0)
    web.run(frontier, web.seeds(), validate=False)
    assert MIRROR not in frontier.counters.refused
    copied = sum(web.cost(name) for name in web.copies)
    assert copied > 6 * len(web.copies)


def settings(**changes: Any) -> Settings:
    return load_settings(
        overrides={"seed": 1, "memory": "64MB", "scope.stop_mirrors": True, "sydney.sample": 0, **changes}
    )


@pytest.mark.parametrize("name", ["sydney", "irlbot"])
def test_what_is_known_of_mirrors_survives_kills(tmp_path: Path, name: str) -> None:
    web = MirroredWeb(SPEC, SHARE)
    run = Run(web, starter(name, settings(), tmp_path), tmp_path, seed=5, often=0.02)
    frontier = run.crawl(web.seeds(), kills=6)
    assert run.kills == 6
    assert max(run.applied.values()) == 1
    judge(web, told := _stopped(frontier, web))
    assert found(web, told) > 0.7
    assert frontier.counters.refused[MIRROR] > 0


def _stopped(frontier: Driver, web: MirroredWeb) -> dict[str, str]:
    mirrors = frontier.holdings[0].mirrors
    assert mirrors is not None
    names = {row(f"http://{host}/").host_key: host for host, _ in web.contents}
    return {names[replica]: names[original] for replica, original in mirrors.stopped.items()}


def test_several_processes_tell_each_other_and_never_stop_both(tmp_path: Path) -> None:
    web = MirroredWeb(SPEC, SHARE)
    options = ("scope.stop_mirrors=true", "frontier=sydney", "sydney.sample=0", "parallel.batch=5")
    crawling = Crawling({}, tmp_path, 3, *options, web=web)
    pages = crawling.run([web.web.seeds(1)[0]], kills=6)
    assert crawling.kills == 6
    assert max(pages.values()) == 1
    stopped = dict[str, str]()
    for process in crawling.processes:
        stopped |= _stopped(process.driver, web)
        process.driver.close()
    judge(web, stopped)
    assert not stopped.keys() & set(stopped.values())
    assert found(web, stopped) > 0.6
    apart = [
        (replica, original)
        for replica, original in stopped.items()
        if row(f"http://{replica}/").pld_key % 3 != row(f"http://{original}/").pld_key % 3
    ]
    assert apart  # mirrors of hosts that another process has


def fetched(mirrors: Mirrors, host: str, path: str, digest: int, now: float = 0.0, flags: int = 0) -> None:
    mirrors.fetched(row(f"http://{host}{path}", flags=flags), digest, now)


def verdict(mirrors: Mirrors, url: str, now: float = 0.0) -> str:
    return mirrors.verdict(row(url), now)


def suspected() -> Mirrors:
    """a has shown its home page and four documents, b the same home page."""
    mirrors = Mirrors(1, 1 << 20, host_delay=2.0)
    for path, digest in (("/", 1), ("/1", 11), ("/2", 12), ("/3", 13), ("/4", 14)):
        fetched(mirrors, "a.example", path, digest)
    fetched(mirrors, "b.example", "/", 1)
    return mirrors


def test_a_suspect_is_asked_for_what_the_other_has_shown_and_cleared_by_three_that_differ() -> None:
    mirrors = suspected()
    assert verdict(mirrors, "http://b.example/1") == ""
    assert verdict(mirrors, "http://b.example/other") == SUSPECT
    assert mirrors.when(row("http://b.example/other"), 0.0) == 60.0
    fetched(mirrors, "b.example", "/1", 21)
    fetched(mirrors, "b.example", "/2", 0)  # it is not there
    fetched(mirrors, "b.example", "/", 99, flags=Flag.AGAIN)
    fetched(mirrors, "b.example", "/style", 14, flags=Flag.REQUISITE)  # equal home pages need equal styles
    assert verdict(mirrors, "http://b.example/other") == SUSPECT
    fetched(mirrors, "b.example", "/3", 23)
    assert verdict(mirrors, "http://b.example/other") == ""
    fetched(mirrors, "b.example", "/4", 14)  # too late
    assert not mirrors.told()


def test_one_equal_document_is_enough_whoever_shows_it_last() -> None:
    mirrors = suspected()
    fetched(mirrors, "b.example", "/5", 15)
    fetched(mirrors, "a.example", "/5", 15)
    assert [(each.replica, each.original) for each in mirrors.told()] == [("b.example", "a.example")]
    assert verdict(mirrors, "http://b.example/1") == MIRROR
    assert verdict(mirrors, "http://a.example/6") == ""
    before = Mirrors(1, 1 << 20, host_delay=2.0)
    for host in ("a.example", "b.example"):  # the home page comes last
        for path, digest in (("/1", 11), ("/", 1)):
            fetched(before, host, path, digest)
    assert [each.replica for each in before.told()] == ["b.example"]


def test_the_home_page_at_another_path_is_no_second_document() -> None:
    mirrors = suspected()
    fetched(mirrors, "a.example", "/index.html", 1)
    fetched(mirrors, "b.example", "/index.html", 1)
    assert not mirrors.told()


def test_nobody_waits_for_ever() -> None:
    mirrors = suspected()
    url = "http://b.example/other"
    assert verdict(mirrors, url, 60.0) == SUSPECT
    assert mirrors.when(row(url), 60.0) == 120.0
    assert verdict(mirrors, url, 120.0) == ""


def test_what_is_remembered_is_bounded() -> None:
    mirrors = Mirrors(1, 1, host_delay=2.0)
    for number in range(500):
        fetched(mirrors, f"h{number}.example", "/", 1000 + number)
        fetched(mirrors, f"h{number}.example", "/1", 5)
    arrays = {name: column.tobytes() for name, column in mirrors.save().items()}
    assert len(arrays["mirrors firsts"]) == 100 * 16
    again = Mirrors(1, 1, host_delay=2.0)
    again.load(arrays, now=0.0)
    assert {name: column.tobytes() for name, column in again.save().items()} == arrays
    fetched(again, "copy.example", "/", 1499)
    fetched(again, "copy.example", "/1", 5)
    assert [each.original for each in again.told()] == ["h499.example"]
    forgotten = Counter(verdict(again, f"http://h{number}.example/x") for number in range(500))
    assert forgotten == {"": 500}
