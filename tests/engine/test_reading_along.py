"""Pages as they come, and functions that are called with them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import barkspider
from barkspider import CrawledPage, Link, Settings, UsageError, load_settings, open_job
from barkspider.engine import feed, hooks
from barkspider.engine.folder import events
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web

FAST = {
    "limits.grace": "200ms",
    "scope.level": "web",
    "politeness.host_delay": "1ms",
    "politeness.server_delay": "0s",
    "memory": "64MB",
    "archive.recent_digests": "1000",
}


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(WebSpec(seed=8, pages=150, domains=30, page_bytes=2_000, crawl_delay=0.001)) as web:
        yield web


def settings(served: RunningWeb, **more: str) -> Settings:
    return load_settings(
        options=[f"{name}={value}" for name, value in (served.settings() | FAST | more).items()]
    )


def urls(job: Path) -> list[str]:
    found: list[str] = open_job(job).table("pages")["url"].to_pylist()
    return found


def test_pages_come_with_all_that_they_have(served: RunningWeb) -> None:
    pages = {}
    for page in barkspider.stream(served.web.seeds(2), settings=settings(served, **{"limits.pages": "40"})):
        pages[page.url] = (page.status, page.title, page.links, page.body)
        assert page.outcome in ("ok", "redirect") or page.status >= 400
    assert sum(status == 200 for status, *_ in pages.values()) == 40
    for url, (status, title, links, body) in pages.items():
        if status == 200:
            assert body == served.web.page(url).body
            assert title
            assert set(served.web.links(url)) <= set(links)


def test_a_crawl_waits_for_its_reader_and_nothing_piles_up(
    served: RunningWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_MOST", 16)
    chosen = settings(served, **{"fetch.in_flight": "4"})
    with barkspider.start(served.web.seeds(2), tmp_path / "job", chosen) as crawl:
        pages = iter(crawl)
        read = [next(pages).url]
        limit = time.monotonic() + 60
        while crawl.state() != "paused (reader)" or crawl.statistics().in_flight:
            assert time.monotonic() < limit
            time.sleep(0.01)
        done = crawl.statistics()
        # A page weighs as much as its sixty links and itself, so less than two.
        assert 8 <= done.pages + done.redirects + sum(done.failed.values()) < 1 + 2 * (16 + 4)
        read += [page.url for page in pages]
        assert crawl.statistics().stopped_by == "done"
    assert read == urls(tmp_path / "job")


def test_who_stops_reading_stops_the_crawl(served: RunningWeb, tmp_path: Path) -> None:
    async def first() -> str:
        async with barkspider.start(served.web.seeds(2), tmp_path / "job", settings(served)) as crawl:
            async for page in crawl.pages():
                return page.url
        raise AssertionError

    url = asyncio.run(first())
    stored = urls(tmp_path / "job")
    assert stored[0] == url
    assert barkspider.resume(tmp_path / "job").pages > len(stored)
    assert sum(1 for _ in open_job(tmp_path / "job").changes()) == len(urls(tmp_path / "job"))


def test_two_at_once_on_a_running_loop(served: RunningWeb, tmp_path: Path) -> None:
    async def read(name: str, seeds: list[str]) -> list[str]:
        crawl = barkspider.start(seeds, tmp_path / name, settings(served, **{"limits.pages": "30"}))
        return [page.url async for page in crawl.pages()]

    async def both() -> list[list[str]]:
        return await asyncio.gather(read("a", served.web.seeds(1)), read("b", served.web.seeds(3)[1:]))

    assert asyncio.run(both()) == [urls(tmp_path / "a"), urls(tmp_path / "b")]


def test_hooks_that_fail_are_counted_and_those_that_are_slow_are_named(
    served: RunningWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "_SLOW", 0.02)
    pages, links, said, here = list[str](), list[Link](), list[dict[str, Any]](), set[int]()

    async def on_page(page: CrawledPage) -> None:
        here.add(threading.get_ident())
        await asyncio.sleep(0)
        pages.append(page.url)
        if len(pages) == 5:
            time.sleep(0.05)  # noqa: ASYNC251 (it is slow)
        if page.status == 200 and len(pages) % 10 == 0:
            raise ValueError(f"no good: {page.title}")

    def on_event(event: dict[str, Any]) -> None:
        said.append(event)
        raise KeyError("always")

    done = barkspider.crawl(
        served.web.seeds(2),
        tmp_path / "job",
        settings(served, **{"limits.pages": "60"}),
        on_page=on_page,
        on_link=links.append,
        on_event=on_event,
    )
    logged = list(events(tmp_path / "job"))
    failed = [event for event in logged if event["event"] == "hook_failed"]
    of_pages = [event for event in failed if event["hook"] == "on_page"]
    assert here == {threading.get_ident()}
    assert pages == urls(tmp_path / "job")
    assert [event["about"] for event in of_pages] == [
        url for url in pages[9::10] if open_job(tmp_path / "job").page(url).status == 200
    ]
    assert len(of_pages) > 3
    assert all(event["error"].startswith("ValueError: no good: ") for event in of_pages)
    assert done.hook_errors == len(failed)
    assert done.pages == 60
    slow = [
        event["about"] for event in logged if event["event"] == "hook_slow" and event["hook"] == "on_page"
    ]
    assert slow
    heard = [event["event"] for event in said]
    assert heard[0] == "started"
    assert "ended" in heard
    assert len(failed) - len(of_pages) == len(said)
    table = open_job(tmp_path / "job").table("links")
    sources = {row["key"]: row["url"] for row in open_job(tmp_path / "job").table("pages").to_pylist()}
    assert sorted(links) == sorted(
        Link(sources[row["source"]], row["target_url"]) for row in table.to_pylist() if row["in_scope"]
    )


def test_crawl_in_a_notebook(served: RunningWeb, tmp_path: Path) -> None:
    async def cell() -> int:
        found = list[str]()
        chosen = settings(served, **{"limits.pages": "5"})
        done = barkspider.crawl(
            served.web.seeds(1), tmp_path / "a", chosen, on_page=lambda page: found.append(page.url)
        )
        assert found == urls(tmp_path / "a")
        return done.pages + barkspider.crawl(served.web.seeds(1), tmp_path / "b", chosen).pages

    assert asyncio.run(cell()) == 10


def test_what_cannot_begin_says_so(served: RunningWeb, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ftp"):
        next(barkspider.stream("ftp://example.org/"))
    barkspider.crawl(served.web.seeds(1), tmp_path, settings(served, **{"limits.pages": "1"}))
    with (
        pytest.raises(barkspider.JobError, match="holds a crawl already"),
        barkspider.start(served.web.seeds(1), tmp_path, settings(served)),
    ):
        pass
    with pytest.raises(UsageError, match="several processes"):
        barkspider.start("https://example.org/", tmp_path, load_settings(options=["parallel.processes=2"]))


def test_a_program_that_ends_ends_its_crawl(served: RunningWeb, tmp_path: Path) -> None:
    """Neither does it wait for the whole of it, nor is anything lost."""
    code = f"""
import barkspider
settings = barkspider.load_settings(options={[f"{n}={v}" for n, v in (served.settings() | FAST).items()]!r})
crawl = barkspider.start({served.web.seeds(2)!r}, {str(tmp_path / "job")!r}, settings)
print(next(iter(crawl)).url)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stderr == ""
    assert urls(tmp_path / "job")[0] == done.stdout.strip()
    assert not (tmp_path / "job" / "control.sock").exists()
