"""The database of sites as a crawl sees it: away, slow, full of others; and leases, by a clock of the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from barkspider import crawl, load_settings, open_job
from barkspider.core.events import CheckedIn, CheckedOut, CheckIn, CheckOut, FetchPage, FetchRobots, LeaseLost
from barkspider.core.records import Flag
from barkspider.engine import verify_job
from barkspider.engine import visits as module
from barkspider.engine.harvest import Reaped
from barkspider.engine.suspects import Suspects
from barkspider.engine.visits import Visits, check_in, open_registry
from barkspider.sites import AwayError, Registry, State
from barkspider.sites.database import Sqlite
from tests.frontier.virtual import batch, row
from tests.website import QUICK, serving_site

LEASE = 60.0
SETTINGS = load_settings(options=["frontier=site", "site.lease=60s", "seed=1"])


class Seen:
    """What a crawl would see of its visits."""

    def __init__(
        self, registry: Any, held: dict[int, int] | None = None, blamed: Collection[int] = ()
    ) -> None:
        self.time, self.outcomes, self.logged, self.synced = 100.0, list[Any](), list[str](), 0
        self.failed, self._news = list[Exception](), asyncio.Event()
        self.visits = Visits(
            *(
                registry,
                "me",
                SETTINGS,
                held or {},
                blamed,
                self._take_in,
            ),
            *(lambda url: None, self._sync, lambda event, **_: self.logged.append(event), self.failed.append),
            clock=lambda: self.time,
        )

    def _take_in(self, reaped: Reaped) -> None:
        self.outcomes.append(reaped.outcome)
        self._news.set()

    def _sync(self) -> Callable[[], None]:
        def sync() -> None:
            self.synced += 1

        return sync

    async def until(self, what: type) -> Any:
        """The first outcome of a kind, which is taken."""
        async with asyncio.timeout(20):
            while not any(isinstance(each, what) for each in self.outcomes):
                await self._news.wait()
                self._news.clear()
        found = next(each for each in self.outcomes if isinstance(each, what))
        self.outcomes.remove(found)
        return found


@pytest.fixture
def registry(tmp_path: Path) -> Any:
    made = Registry(Sqlite(tmp_path / "sites.db"), LEASE, 3)
    check_in(made, CheckIn(0, 1, batch("http://a.example/", "http://b.example/", flags=Flag.SEED)))
    yield made
    made.close()


def request(url: str) -> FetchPage:
    return FetchPage(row(url), "127.0.0.1")


def test_a_request_goes_out_only_while_the_lease_of_its_site_holds(registry: Registry) -> None:
    async def run() -> None:
        seen = Seen(registry)
        seen.visits.start()
        assert seen.visits.wait_of(request("http://a.example/")) > 0
        assert seen.visits.sift([CheckOut(1)]) == []
        site = (await seen.until(CheckedOut)).sites[0]
        (url,) = (each.url.decode() for each in site.links.rows())
        other = {"http://a.example/": "http://b.example/"}.get(url, "http://a.example/")
        assert seen.visits.wait_of(request(url)) == 0
        assert seen.visits.wait_of(FetchRobots(url.rstrip("/"), f"{url}robots.txt", "127.0.0.1", 7, 0)) == 0
        assert seen.visits.wait_of(request(other)) > 1  # it is nobody's, or another's
        seen.time += LEASE  # this process was stopped for so long
        assert 0 < seen.visits.wait_of(request(url)) <= 1  # it may still have the site, and asks
        seen.visits.sift([CheckOut(1)])
        await seen.until(CheckedOut)
        assert seen.visits.wait_of(request(url)) == 0
        await seen.visits.close()
        assert not seen.failed

    asyncio.run(run())


def test_a_process_that_slept_past_its_lease_hears_that_its_site_is_anothers(registry: Registry) -> None:
    async def run() -> None:
        seen = Seen(registry)
        seen.visits.start()
        seen.visits.sift([CheckOut(1)])
        site = (await seen.until(CheckedOut)).sites[0]
        registry.free()
        name = next(each["name"] for each in registry.sites() if each["state"] == "being_crawled")
        assert registry.free(name) == 1
        seen.time += LEASE
        seen.visits.sift([CheckOut(0)])
        assert (await seen.until(LeaseLost)).sites == ((site.key, site.fence),)
        seen.visits.sift([CheckIn(site.key, site.fence, batch("http://new.example/"), pages=7)])
        assert await seen.until(CheckedIn) == CheckedIn(site.key, site.fence, False)
        assert seen.synced == 1  # what is checked in is safe before
        await seen.visits.close()
        assert sum(each["pages"] for each in registry.sites()) == 0
        assert not registry.sites(like="new.")

    asyncio.run(run())


def test_what_is_to_be_said_waits_while_the_database_is_away(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shaky:
        """Does not answer some calls, of which it has carried out all but the first."""

        calls = 0

        def __getattr__(self, name: str) -> Any:
            def call(*arguments: Any) -> Any:
                self.calls += 1
                result = getattr(registry, name)(*arguments) if self.calls > 1 else None
                if self.calls in (1, 3, 6):  # a renewal, a check-out, a check-in
                    raise AwayError("it is being restarted")
                return result

            return getattr(registry, name) if name == "close" else call

    async def run() -> None:
        seen = Seen(Shaky())
        seen.visits.start()
        seen.visits.sift([CheckOut(5)])
        given = await seen.until(CheckedOut)
        assert {each.links.url.tolist()[0] for each in given.sites} == {
            b"http://a.example/",
            b"http://b.example/",
        }
        for site in given.sites:
            seen.visits.sift([CheckIn(site.key, site.fence, batch("http://c.example/"), pages=1)])
            assert await seen.until(CheckedIn) == CheckedIn(site.key, site.fence, True)
        await seen.visits.close()
        assert registry.counts() == {"to_crawl": 1, "crawled": 2}
        assert sum(each["pages"] for each in registry.sites()) == 2
        assert {"database_away", "database_back"} <= {*seen.logged}
        assert not seen.failed

    monkeypatch.setattr(module, "_AGAIN", 0.002)
    monkeypatch.setattr(module, "_LONGEST", 0.005)
    asyncio.run(run())


def test_what_was_checked_out_and_never_heard_of_is_given_back_at_the_next_start(registry: Registry) -> None:
    async def run() -> None:
        (kept, _), _ = registry.check_out("me", 2)
        seen = Seen(registry, {kept.key: kept.fence})
        seen.visits.start()
        seen.visits.sift([CheckOut(5)])
        (site,) = (await seen.until(CheckedOut)).sites
        assert site.key != kept.key
        await seen.visits.close()

    asyncio.run(run())


def test_a_site_at_which_its_process_ended_three_times_is_left(registry: Registry, tmp_path: Path) -> None:
    async def run() -> None:
        (site, other), _ = registry.check_out("me", 2)
        held = {site.key: site.fence, other.key: other.fence}
        lost = []
        for _ in range(3):
            Suspects(tmp_path / "reading").look(
                FetchPage(row("http://x.example/")._replace(host_key=site.key), "")
            )
            seen = Seen(registry, held, Suspects(tmp_path / "reading").found)
            seen.visits.start()
            seen.visits.sift([CheckOut(1)])
            await seen.until(CheckedOut)
            lost += [each for each in seen.outcomes if isinstance(each, LeaseLost)]
            await seen.visits.close()
        assert lost == [LeaseLost(((site.key, site.fence),))]
        (left,) = registry.sites([State.LEFT])
        assert (left["reason"], left["kills"]) == ("ended_its_process", 3)
        assert Suspects(tmp_path / "reading").found == set()

    asyncio.run(run())


def test_a_crawl_site_by_site_is_a_job_as_any_other(tmp_path: Path) -> None:
    with serving_site({"/": "<a href=/1>1</a><a href=/2>2</a>", "/1": "one", "/2": "two"}) as one:
        one.pages["/robots.txt"] = one.pages["/1"].__class__("User-agent: *\nDisallow: /2")
        found = crawl([one.url("/")], tmp_path / "job", load_settings(options=[*QUICK, "frontier=site"]))
        assert (found.pages, found.refused, found.stopped_by) == (2, {"robots": 1}, "done")
        assert one.asked == ["/robots.txt", "/", "/1"]
    assert [*verify_job(tmp_path / "job")] == []
    job = open_job(tmp_path / "job")
    assert job.query("SELECT count(*) AS n FROM pages")["n"].to_pylist() == [2]
    registry = open_registry(job.settings, tmp_path / "job")
    (site,) = registry.sites()
    registry.close()
    assert (site["name"], site["state"], site["pages"], site["refused"]) == ("127.0.0.1", "crawled", 2, 1)
