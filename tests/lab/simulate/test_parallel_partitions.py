"""A stored web divided among processes, and Table III of the Viúva Negra paper as counts."""

from __future__ import annotations

import numpy as np
import pytest

from barkspider.core.errors import UsageError
from barkspider.lab.simulate.partitions import Divider, Merits
from barkspider.lab.webgraph import WebGraph
from barkspider.url.keys import KeyMaker
from barkspider.url.partition import PARTITIONS, by_hash

HOSTS = [f"{name}{number}.{top}" for number in range(30) for name in ("www.a", "b") for top in ("com", "de")]
URLS = [f"http://{host}:8080/{page}?q=1#x" for host in HOSTS for page in range(10)]
ADDRESSES = {host: f"192.0.2.{place % 20}" for place, host in enumerate(HOSTS)}


@pytest.fixture(scope="module")
def web() -> WebGraph:
    random = np.random.default_rng(1)
    links = [random.integers(0, len(URLS), 5).tolist() for _ in URLS]
    return WebGraph.of(links, urls=URLS)


@pytest.fixture(scope="module")
def divider(web: WebGraph) -> Divider:
    return Divider(web, ADDRESSES)


def test_each_partition_keeps_together_what_it_should(web: WebGraph, divider: Divider) -> None:
    hosts = [url.split("/")[2].partition(":")[0] for url in URLS]
    kept = {
        "site": hosts,
        "domain": [host.removeprefix("www.") for host in hosts],
        "address": [ADDRESSES[host] for host in hosts],
        "url": URLS,
    }
    for partition, things in kept.items():
        owners = divider.owners(partition, 8, seed=5)
        assert 4 < len(set(owners.tolist())) <= 8
        assert len(set(zip(things, owners.tolist(), strict=True))) == len(set(things)), partition
    tops = divider.owners("hierarchical", 2, seed=5)
    assert [host.endswith("de") for host in hosts] == (tops == 1).tolist()


def test_the_owner_is_that_of_a_live_crawl_with_the_same_keys(divider: Divider) -> None:
    keys = KeyMaker(seed=5)
    live = by_hash(keys.column(url.split("/")[2].partition(":")[0].encode() for url in URLS), 8)
    assert (divider.owners("site", 8, seed=5) == live).all()
    assert (divider.owners("url", 8, seed=5) == by_hash(keys.column(map(str.encode, URLS)), 8)).all()


def test_without_urls_sites_and_pages_have_random_keys_and_names_are_asked_for() -> None:
    web = WebGraph.of([[0]] * 1000, site=[page // 10 for page in range(1000)])
    divider = Divider(web)
    by_site, by_page = (divider.owners(partition, 4, seed=1) for partition in ("site", "url"))
    assert (by_site.reshape(100, 10) == by_site[::10, None]).all()
    assert np.bincount(by_page).min() > 200
    assert (by_site != divider.owners("site", 4, seed=2)).any()
    for partition in ("domain", "hierarchical", "address"):
        with pytest.raises(UsageError, match="needs the pages' URLs"):
            divider.owners(partition, 4, seed=1)


def test_an_unknown_partition_and_missing_addresses_are_refused(web: WebGraph) -> None:
    with pytest.raises(UsageError, match="hierarchical"):
        Divider(web).owners("host", 2, seed=1)
    with pytest.raises(UsageError, match="--addresses"):
        Divider(web).owners("address", 2, seed=1)


def test_the_merits_are_ordered_as_in_table_iii(divider: Divider) -> None:
    found: dict[str, Merits] = {}
    for partition in PARTITIONS:
        found[partition] = divider.merits(partition, divider.owners(partition, 8, seed=5))
    address, site, page = found["address"], found["site"], found["url"]
    assert address.dns_lookups < site.dns_lookups == 1 < page.dns_lookups
    assert address.connections < site.connections == 1 < page.connections
    assert address.shared_servers == 0 < site.shared_servers <= page.shared_servers
    assert address.robots_fetches == site.robots_fetches == 1 < page.robots_fetches
    assert (address.lookups_to_assign, site.lookups_to_assign, page.lookups_to_assign) == (1, 0, 0)
    assert page.largest_part < site.largest_part < address.largest_part


def test_links_across_are_counted() -> None:
    web = WebGraph.of([[1, 2], [0], [3], []], site=[0, 0, 1, 1])
    merits = Divider(web).merits("site", np.array([0, 0, 1, 1], np.uint16))
    assert merits.crossing_links == 1 / 4
    assert merits.largest_part == 1
