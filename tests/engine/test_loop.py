"""The loop: how much of what has arrived becomes one harvest."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
import uvloop

from barkspider.archive import Note, error_note
from barkspider.core.batch import UrlBatch
from barkspider.core.events import FetchRobots, PageFetched, RobotsFetched, Seeds
from barkspider.core.load import load_settings
from barkspider.engine import reaping
from barkspider.engine.harvest import Harvest, Reaped
from barkspider.engine.job import Job
from barkspider.engine.ledger import Ledger
from barkspider.engine.links import Links
from barkspider.engine.loop import Crawl
from barkspider.engine.work import Arrival
from barkspider.storage.env import Env
from tests.engine.test_harvest import page


def harvests(folder: Path, arrived: list[Reaped]) -> list[Harvest]:
    """What the loop makes of it, look by look, after the seeds of the crawl itself."""

    async def look() -> list[Harvest]:
        settings = load_settings(options=["seed=7", "memory=64MB", "archive.recent_digests=1000"])
        job = Job.create(folder / "job", settings, ["http://a.example/"], Env())
        crawl = Crawl.open(job)
        assert len(crawl._reaping.reap().outcomes) == 1
        for each in arrived:
            crawl._arrived.append(each)
        found = []
        while crawl._arrived:
            found.append(crawl._reaping.reap())
        assert crawl._reaping.reap().outcomes == ()
        await crawl._close()
        job.close()
        return found

    return uvloop.run(look())


def test_seeds_are_added_when_the_journal_has_them(tmp_path: Path) -> None:
    async def add() -> None:
        settings = load_settings(options=["seed=7", "memory=64MB", "archive.recent_digests=1000"])
        job = Job.create(tmp_path / "job", settings, ["http://a.example/"], Env())
        crawl = Crawl.open(job)
        adding = asyncio.create_task(crawl.add(["http://b.example/", "http://c.example/"]))
        gone = asyncio.create_task(crawl.add(["http://d.example/"]))
        for _ in range(3):
            await asyncio.sleep(0)
            assert not adding.done()
        gone.cancel()
        await asyncio.sleep(0)
        crawl._bring_in()
        assert await adding == {"added": 2}
        there = [row.url for each in recorded(tmp_path / "job") for row in each.batch.rows()]
        assert there == [
            b"http://a.example/",
            b"http://b.example/",
            b"http://c.example/",
            b"http://d.example/",
        ]
        await crawl._close()
        job.close()

    uvloop.run(add())


def recorded(job: Path) -> list[Seeds]:
    """The seeds that the journal of a job has."""
    ledger = Ledger(Env(), job)
    found = [each for harvest in ledger.harvests() for each in harvest.outcomes if isinstance(each, Seeds)]
    ledger.close()
    return found


def test_a_harvest_ends_after_so_many_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaping, "_MOST", 3)
    seeds = [Reaped(Seeds(UrlBatch.of([b"http://a.example/%d" % number]))) for number in range(7)]
    found = harvests(tmp_path, seeds)
    assert [len(harvest.outcomes) for harvest in found] == [3, 3, 1]
    assert [each for harvest in found for each in harvest.outcomes] == [each.outcome for each in seeds]


def test_a_harvest_ends_after_so_many_bytes_of_robots_txt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaping, "_MOST_RULES", 10)
    asked = FetchRobots("http://a.example", "http://a.example/robots.txt", "192.0.2.1", 1, 0)
    found = harvests(tmp_path, [Reaped(RobotsFetched(asked, 200, b"123456"))] * 5)
    assert [len(harvest.outcomes) for harvest in found] == [2, 2, 1]


def test_a_harvest_ends_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaping, "_LONGEST", -1.0)
    seeds = [Reaped(Seeds(UrlBatch.of([b"http://a.example/%d" % number]))) for number in range(3)]
    assert [len(harvest.outcomes) for harvest in harvests(tmp_path, seeds)] == [1, 1, 1]


def test_a_harvest_ends_after_so_many_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaping, "_MOST_LINKS", 10)
    asked = page("http://a.example/")
    many = Links(UrlBatch.of([b"http://a.example/x"] * 6), [])
    found = harvests(tmp_path, [Reaped(PageFetched(asked, 200), [many])] * 5)
    assert [len(harvest.links) for harvest in found] == [12, 12, 6]


def test_a_harvest_ends_after_so_many_bytes_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = page("http://a.example/")
    many = Links(UrlBatch.of([b"http://a.example/x"] * 6), [])
    monkeypatch.setattr(reaping, "_MOST_BYTES", 2 * many.urls.packed.size())
    found = harvests(tmp_path, [Reaped(PageFetched(asked, 200), [many])] * 5)
    assert [len(harvest.links) for harvest in found] == [12, 12, 6]


def test_answers_are_archived_after_all_were_read_and_one_that_cannot_be_is_an_outcome_all_the_same(
    tmp_path: Path,
) -> None:
    asked, done = [page(f"http://{name}.example/") for name in "abc"], []

    def keep(number: int) -> list[Note]:
        done.append(number)
        if number == 1:
            raise ValueError("a page like no other")
        return [error_note(5.0, "page", f"kept_{number}", "a.example")]

    noted = error_note(5.0, "page", "read", "a.example")
    arrived = [
        Reaped(PageFetched(each, 200), None, [noted], partial(keep, number))
        for number, each in enumerate(asked)
    ]
    (found,) = harvests(tmp_path, arrived)
    assert done == [0, 1, 2]
    assert [each.failure for each in found.outcomes if isinstance(each, PageFetched)] == [
        "",
        "internal_error",
        "",
    ]
    said = found.batches["errors"]["outcome"].to_pylist()
    assert said == ["read", "kept_0", "read", "kept_2"]
    assert "a page like no other" in (tmp_path / "job" / "log.jsonl").read_text()


def test_what_has_arrived_when_all_is_given_up_is_read_by_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the crawl would wait for it for ever: nobody hears of what arrives after that."""

    async def end() -> Harvest:
        settings = load_settings(options=["seed=7", "memory=64MB", "archive.recent_digests=1000"])
        job = Job.create(tmp_path / "job", settings, ["http://a.example/"], Env())
        crawl = Crawl.open(job)
        crawl._reaping.reap()
        monkeypatch.setattr(crawl._worker, "pays_aside", lambda _: True)
        monkeypatch.setattr(
            crawl._worker, "read", lambda arrival: Reaped(PageFetched(arrival.instruction, 200))
        )
        crawl.stop()
        crawl.abort()
        crawl._arrived.append(Arrival(page("http://a.example/"), OSError()))
        found = crawl._reaping.reap()
        assert crawl._under_way == 0
        await crawl._close()
        job.close()
        return found

    assert [
        outcome.asked.row.url for outcome in uvloop.run(end()).outcomes if isinstance(outcome, PageFetched)
    ] == [b"http://a.example/"]
