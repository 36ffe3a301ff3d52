"""The Sydney frontier on a virtual clock: coverage, queues, delays, limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.events import FetchPage, PageFetched
from barkspider.core.load import load_settings
from barkspider.core.records import Flag
from barkspider.frontier import Driver, open_frontier
from barkspider.lab.simulate.order import Strategy, run
from barkspider.lab.webgraph import WebGraph
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from barkspider.storage.store.snapshot import read_snapshot
from barkspider.url.partition import slots, slotted
from tests.frontier.virtual import Failure, VirtualWeb, batch, random_web

Make = Callable[..., Driver]


@pytest.fixture(params=["memory", "disk"])
def sydney(sydney: Make, request: pytest.FixtureRequest) -> Make:
    """With the set of seen URLs in RAM, and on disk: what is promised is the same."""
    return partial(sydney, sydney__seen=request.param)


@pytest.mark.parametrize("sample", [0, 1, 8, 16])
@pytest.mark.parametrize("refetch", [False, True])
def test_every_page_is_fetched_once(sydney: Make, sample: int, refetch: bool) -> None:
    web = VirtualWeb(random_web(hosts=20, pages=500, links=40, seed=3))
    frontier = sydney(sydney__sample=sample, sydney__refetch=refetch)
    web.run(frontier, batch("http://h0.example/0", flags=Flag.SEED))
    fetched = web.fetched()
    assert set(fetched) == set(web.pages)
    assert len(fetched) == len(web.pages) + frontier.gauges()["refetched"]
    assert (frontier.gauges()["refetched"] > 0) == (refetch and sample in (1, 8, 16))


def test_pages_fetched_again_under_a_queue_limit_come_to_an_end(sydney: Make) -> None:
    web = VirtualWeb(random_web(hosts=20, pages=400, links=40, seed=3))
    frontier = sydney(sydney__sample=4, sydney__refetch=True, sydney__queue_limit=30)
    web.run(frontier, batch("http://h0.example/0", flags=Flag.SEED), validate=False)
    assert len(web.fetched()) < 4 * len(web.pages)
    assert len(set(web.fetched())) > 100


def hub_web(sites: int, pages: int) -> dict[str, list[str]]:
    """Home pages that list all of their site, in a tree; the other pages link back home."""
    web = {}
    for site in range(sites):
        home = f"http://s{site}.example/"
        others = [f"http://s{other}.example/" for other in range(site * 3 + 1, min(site * 3 + 4, sites))]
        web[home] = [*others, *(f"{home}{number}" for number in range(pages))]
        web |= {f"{home}{number}": [home, *others] for number in range(pages)}
    return web


def test_sampling_makes_the_largest_queue_smaller(sydney: Make) -> None:
    pages = hub_web(sites=30, pages=60)
    largest = {}
    for sample in (0, 8, 16):
        frontier = sydney(sydney__sample=sample)
        VirtualWeb(pages).run(frontier, batch("http://s0.example/"), validate=False)
        largest[sample] = frontier.gauges()["largest"]
    print(largest)
    assert largest[8] < largest[16] < largest[0]


@settings(max_examples=60, deadline=None)
@given(
    hosts=st.integers(1, 12),
    servers=st.integers(1, 5),
    host_delay=st.sampled_from([0.0, 0.5, 2.0]),
    server_delay=st.sampled_from([0.0, 0.3, 5.0]),
    sample=st.sampled_from([0, 3]),
    seed=st.integers(0, 10**6),
)
def test_delays_hold_whatever_the_web(
    tmp_path_factory: pytest.TempPathFactory,
    hosts: int,
    servers: int,
    host_delay: float,
    server_delay: float,
    sample: int,
    seed: int,
) -> None:
    pages: dict[str, Any] = random_web(hosts, 40, 10, seed)
    for number, url in enumerate(pages):
        if number % 17 == 5:
            pages[url] = Failure("timeout_headers", times=1)
    web = VirtualWeb(pages, servers={f"h{n}.example": f"127.0.0.{n % servers}" for n in range(hosts)})
    chosen = load_settings(
        overrides={
            "seed": 1,
            "frontier": "sydney",
            "sydney.sample": sample,
            "politeness.host_delay": f"{int(host_delay * 1000)}ms",
            "politeness.server_delay": f"{int(server_delay * 1000)}ms",
        }
    )
    frontier = open_frontier(chosen, Env(), tmp_path_factory.mktemp("s"))
    web.run(frontier, batch("http://h0.example/0"))
    frontier.close()
    assert web.closest(by=1) >= host_delay
    assert web.closest(by=2) >= server_delay
    failing = {url for url, what in pages.items() if isinstance(what, Failure)}
    assert all(web.times(url) == 2 for url in set(web.fetched()) & failing)


def test_one_request_at_a_time_goes_to_a_host_and_to_a_server(sydney: Make) -> None:
    pages = random_web(hosts=6, pages=200, links=5, seed=1)
    web = VirtualWeb(pages, servers={f"h{n}.example": f"127.0.0.{n % 2}" for n in range(6)}, latency=3.0)
    web.run(sydney(politeness__host_delay="0s", politeness__server_delay="0s"), batch("http://h0.example/0"))
    assert set(web.fetched()) == set(pages)
    assert web.closest(by=1) >= web.latency
    assert web.closest(by=2) >= web.latency


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_the_limit_of_pages_is_exact(sydney: Make, limit: int) -> None:
    pages: dict[str, Any] = random_web(hosts=10, pages=200, links=10, seed=2)
    for url in list(pages)[3:200:3]:
        pages[url] = Failure("http_404", temporary=False)
    web = VirtualWeb(pages)
    frontier = sydney(limits__pages=limit)
    web.run(frontier, batch("http://h0.example/0"))
    assert frontier.counters.pages == limit


def test_redirects_that_lead_nowhere_do_not_use_up_the_limit_of_pages(sydney: Make) -> None:
    pages: dict[str, Any] = random_web(hosts=5, pages=100, links=10, seed=8)
    web = VirtualWeb(pages)
    answer = web.page

    def page(asked: FetchPage, url: str) -> PageFetched:
        return PageFetched(asked, 302) if int(url.rpartition("/")[2]) % 4 == 3 else answer(asked, url)

    web.page = page  # type: ignore[method-assign]
    frontier = sydney(limits__pages=40)
    web.run(frontier, batch("http://h0.example/0"))
    assert frontier.counters.pages == 40
    assert frontier.counters.redirects > 0


def test_a_slow_page_does_not_hold_up_the_limit_of_pages(sydney: Make) -> None:
    pages: dict[str, Any] = {f"http://h{n}.example/": [] for n in range(20)}
    web = VirtualWeb(pages, slow={"http://h3.example/": 1000.0})
    frontier = sydney(limits__pages=10)
    assert web.run(frontier, batch(*pages)) < 30
    assert frontier.counters.pages == 10


def test_a_queue_limit_holds_and_what_is_dropped_may_come_back(sydney: Make) -> None:
    web = VirtualWeb(random_web(hosts=10, pages=1000, links=30, seed=5))
    frontier = sydney(sydney__queue_limit=50, sydney__sample=8)
    web.run(frontier, batch("http://h0.example/0"))
    assert frontier.gauges()["largest"] <= 50
    assert frontier.counters.dropped > 0
    assert len(set(web.fetched())) == len(web.fetched()) > 500  # a link dropped once came back from elsewhere


AT_ONCE = {
    "politeness__host_delay": "0s",
    "politeness__server_delay": "0s",
    "politeness__slow_factor": 0,
    "politeness__obey_robots": False,
}


def distinct_web() -> VirtualWeb:
    """A page's links without repetitions, as the engine hands them over."""
    pages = random_web(hosts=20, pages=1000, links=30, seed=5)
    return VirtualWeb({url: list(dict.fromkeys(links)) for url, links in pages.items()})


def simulated(web: VirtualWeb, t: int, limit: int, keeps: bool = True) -> list[str]:
    """The pages that the simulation visits from the first one on, with the seed of these frontiers."""
    urls = list(web.pages)
    number = {url: place for place, url in enumerate(urls)}
    graph = WebGraph.of([[number[link] for link in web.pages[url]] for url in urls])
    strategy = Strategy("sydney" if keeps else "random", t, limit / len(urls) if keeps else None)
    return [urls[page] for page in run(graph, strategy, np.array([0], np.int32), len(urls), seed=1).order]


@pytest.mark.parametrize("t", [3, 8])
@pytest.mark.parametrize("limit", [20, 60, 200, 1000])
def test_one_request_at_a_time_without_pauses_is_what_is_simulated(sydney: Make, t: int, limit: int) -> None:
    web = distinct_web()
    web.run(
        sydney(fetch__in_flight=1, sydney__sample=t, sydney__queue_limit=limit, **AT_ONCE),
        batch("http://h0.example/0"),
    )
    assert web.fetched() == simulated(web, t, limit)
    assert (len(web.fetched()) < 1000) == (limit < 200)


def test_the_primary_queue_alone_is_what_is_simulated(sydney: Make) -> None:
    web = VirtualWeb(hub_web(sites=30, pages=60))
    frontier = sydney(fetch__in_flight=1, sydney__sample=8, sydney__secondary=False, **AT_ONCE)
    web.run(frontier, batch("http://s0.example/"))
    assert web.fetched() == simulated(web, 8, 1000, keeps=False)
    assert 20 < len(web.fetched()) < 0.5 * len(web.pages)
    assert frontier.counters.dropped > 0
    assert frontier.gauges()["secondary"] == 0


def test_pages_under_way_keep_places_for_their_links(sydney: Make) -> None:
    """Or those that come back first take all places that were left, and the links of the others are lost."""
    web = VirtualWeb(hub_web(sites=60, pages=30))
    frontier = sydney(sydney__sample=8, sydney__queue_limit=60, **AT_ONCE)
    web.run(frontier, batch("http://s0.example/"))
    assert frontier.gauges()["largest"] <= 60
    assert len(web.fetched()) > 0.9 * len(simulated(web, 8, 60))


def test_seeds_beyond_the_limit_wait_in_the_second_queue(sydney: Make) -> None:
    pages: dict[str, Any] = {f"http://h{n}.example/": [] for n in range(100)}
    web = VirtualWeb(pages)
    frontier = sydney(sydney__queue_limit=10)
    web.run(frontier, batch(*pages, flags=Flag.SEED))
    assert sorted(web.fetched()) == sorted(pages)
    assert frontier.gauges()["largest"] <= 10
    assert frontier.counters.dropped == 0


def test_a_site_limit_refuses_what_is_beyond(sydney: Make) -> None:
    web = VirtualWeb(random_web(hosts=2, pages=100, links=10, seed=6))
    frontier = sydney(limits__site_urls=20)
    web.run(frontier, batch("http://h0.example/0"))
    assert len(web.fetched()) == 40
    assert frontier.counters.refused["site_limit"] > 40


def test_after_too_many_duplicates_links_within_the_site_are_not_followed(sydney: Make) -> None:
    pages = {f"http://trap.example/{n}": [f"http://trap.example/{n + 1}"] for n in range(100)}
    web = VirtualWeb(pages, digests=dict.fromkeys(pages, 7))
    frontier = sydney(limits__site_duplicates=10)
    web.run(frontier, batch("http://trap.example/0"))
    assert len(web.fetched()) == 11  # the first is not a duplicate
    assert frontier.counters.refused == {"site_duplicates": 1}


def test_a_mirror_is_no_trap(sydney: Make) -> None:
    """Each page of b is one of a, and no two of a site are the same."""
    pages = {
        f"http://{site}.example/{n}": [f"http://{site}.example/{n + 1}"] for site in "ab" for n in range(50)
    }
    web = VirtualWeb(pages, digests={url: 7 + int(url.rpartition("/")[2]) for url in pages})
    frontier = sydney(limits__site_duplicates=10)
    web.run(frontier, batch("http://a.example/0", "http://b.example/0"))
    assert len(set(web.fetched()) & set(pages)) == 100


def test_the_second_queue_keeps_free_hosts_busy(sydney: Make) -> None:
    """Host a has a long queue and a pause of 2 s; links to b wait in S and are fetched meanwhile."""
    pages: dict[str, Any] = {"http://a.example/": [f"http://a.example/{n}" for n in range(40)]}
    pages["http://a.example/"] += [f"http://b{n}.example/" for n in range(40)]
    pages |= {url: [] for url in pages["http://a.example/"]}
    web = VirtualWeb(pages)
    frontier = sydney(sydney__sample=8)
    web.run(frontier, batch("http://a.example/"))
    late = max(time for time, host, *_ in web.requests if host.startswith("b"))
    assert late < 30  # all of a takes 80 s
    assert set(web.fetched()) == set(pages)


def test_the_same_seed_gives_the_same_crawl(tmp_path: Path) -> None:
    orders = []
    for number in range(2):
        web = VirtualWeb(random_web(hosts=5, pages=300, links=20, seed=7))
        chosen = load_settings(overrides={"seed": 1, "frontier": "sydney", "sydney.sample": 4})
        frontier = open_frontier(chosen, Env(), tmp_path / str(number))
        web.run(frontier, batch("http://h0.example/0"))
        frontier.close()
        orders.append(web.fetched())
    assert orders[0] == orders[1]


def test_hold_gives_out_nothing_more(sydney: Make) -> None:
    frontier = sydney()
    frontier.hold()
    web = VirtualWeb({"http://a.example/": []})
    web.run(frontier, batch("http://a.example/"))
    assert web.requests == []
    assert frontier.counters.deferred + frontier.gauges().get("unchecked", 0) == 1


def test_the_set_of_seen_urls_tells_their_slots(tmp_path: Path) -> None:
    """In RAM and in the snapshot, so that whoever divides a job can tell from a key alone whose it is."""
    chosen = load_settings(overrides={"seed": 1, "frontier": "sydney"})
    store = Store.open(Env(), tmp_path)
    frontier = open_frontier(chosen, Env(), tmp_path)
    for structure in frontier.structures():
        store.add(structure)
    web = VirtualWeb(random_web(hosts=20, pages=100, links=5, seed=1))
    web.run(frontier, batch("http://h0.example/0"))
    store.commit()
    frontier.close()
    (path,) = (tmp_path / "frontier").iterdir()
    stored = np.frombuffer(read_snapshot(Env(), path)[1]["seen"], np.uint64)
    rows = batch(*web.pages)
    assert sorted(stored.tolist()) == sorted(slotted(rows.key, rows.pld_key).tolist())
    assert set(slots(stored).tolist()) == set(slots(rows.pld_key).tolist())
    assert not np.isin(rows.key, stored).any()


def test_a_link_that_was_seen_before_a_restart_is_not_new(tmp_path: Path) -> None:
    chosen = load_settings(overrides={"seed": 1, "frontier": "sydney"})
    pages = {"http://a.example/": ["http://b.example/"], "http://b.example/": ["http://a.example/"]}
    first = VirtualWeb(pages)
    store = Store.open(Env(), tmp_path)
    frontier = open_frontier(chosen, Env(), tmp_path)
    for structure in frontier.structures():
        store.add(structure)
    first.run(frontier, batch("http://a.example/"))
    store.commit()
    frontier.close()
    store = Store.open(Env(), tmp_path)
    frontier = open_frontier(chosen, Env(), tmp_path, state=store.state, resumed=50.0)
    second = VirtualWeb(pages)
    second.run(frontier, batch(*pages))
    frontier.close()
    assert sorted(first.fetched()) == sorted(pages)
    assert second.fetched() == []
