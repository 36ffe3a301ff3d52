"""Where links lead: stable, mostly inside the site, all of the web reachable, one in nine new."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from barkspider.core.errors import UsageError
from barkspider.lab.synthweb import Web, WebSpec
from barkspider.lab.synthweb.model import host_of, is_allowed, page_links
from barkspider.lab.synthweb.reach import LINK_SPACE


def _links(web: Web, page: int) -> list[int]:
    out = np.empty(LINK_SPACE, np.int64)
    return out[: page_links(web.tables, page, out)].tolist()


def test_links_do_not_change(small: Web) -> None:
    again = Web(small.spec)
    for page in range(0, 20_000, 1_999):
        assert _links(small, page) == _links(again, page)
        assert small.links(small.url(page)) == [again.url(target) for target in _links(again, page)]
    # A web is its seed: these are promises to whoever keeps a graph file or a log.
    assert small.seeds(2) == ["http://www.paduge.de/", "http://kamoga.com/"]


def test_another_seed_is_another_web(small: Web) -> None:
    other = Web(WebSpec(pages=20_000, seed=2))
    assert other.seeds(3) != small.seeds(3)


def test_all_pages_are_reachable_from_the_first_seed(small: Web) -> None:
    assert small.reachable(small.seeds(1), obey_robots=False) == 20_000
    assert 17_000 < small.reachable(small.seeds(1)) < 20_000


@pytest.mark.parametrize("pages", [1, 2, 3, 10, 100, 1_000])
def test_small_webs_are_whole(pages: int) -> None:
    web = Web(WebSpec(pages=pages))
    assert web.reachable(web.seeds(1), obey_robots=False) == pages


@pytest.mark.parametrize("domains", [1, 5, 1_000])
def test_domains_can_be_given(domains: int) -> None:
    web = Web(WebSpec(pages=1_000, domains=domains))
    assert web.reachable(web.seeds(1), obey_robots=False) == 1_000


@pytest.mark.parametrize(("clicks", "obey"), [(0, True), (1, True), (2, True), (3, False), (None, True)])
def test_reachable_is_a_breadth_first_search(small: Web, clicks: int | None, obey: bool) -> None:
    # The slow twin of the kernel.
    seeds = [0, 400, 17]
    found = {page for page in seeds if not obey or is_allowed(small.tables, page)}
    queue = deque((page, 0) for page in found)
    while queue:
        page, depth = queue.popleft()
        if depth == clicks:
            continue
        for target in _links(small, page):
            if target not in found and (not obey or is_allowed(small.tables, target)):
                found.add(target)
                queue.append((target, depth + 1))
    urls = [small.url(page) for page in seeds]
    assert set(small.reachable_pages(urls, clicks, obey).tolist()) == found
    assert small.reachable(urls, clicks, obey) == len(found)
    if clicks == 1:
        assert small.reachable_urls(urls, clicks, obey) == {small.url(page) for page in found}


def test_a_seed_must_be_a_page(small: Web) -> None:
    with pytest.raises(UsageError, match="is not a page"):
        small.reachable(["http://nowhere.com/"])


def test_one_link_in_nine_is_new(large: Web) -> None:
    tables = large.tables
    seen = {0}
    queue = [0]
    total = inside = 0
    degrees = []
    for page in queue:
        if len(degrees) == 20_000:
            break
        if not is_allowed(tables, page):
            continue
        links = _links(large, page)
        degrees.append(len(links))
        total += len(links)
        domain = tables.domain_of[host_of(tables, page)]
        low = tables.start[tables.first_host[domain]]
        high = tables.start[tables.first_host[domain + 1]]
        inside += sum(low <= target < high for target in links)
        for target in links:
            if target not in seen:
                seen.add(target)
                queue.append(target)
    assert 0.07 < len(seen) / total < 0.16
    assert 0.80 < inside / total < 0.90
    assert 55 < np.mean(degrees) < 65
    assert max(degrees) > 400  # heavy-tailed


def test_sites_are_heavy_tailed(large: Web) -> None:
    sizes = np.diff(large.tables.start)
    assert sizes.sum() == 10_000_000
    assert sizes.min() >= 1
    assert sizes.max() > 100 * np.median(sizes)
    hosts = np.diff(large.tables.first_host)
    assert 1.5 < hosts.mean() < 3
    assert hosts.max() > 50


def test_a_few_links_occur_twice_or_lead_to_the_page_itself(small: Web) -> None:
    pages = range(0, 20_000, 101)
    repeated = sum(len(links) - len(set(links)) for links in (_links(small, page) for page in pages))
    total = sum(len(_links(small, page)) for page in pages)
    assert 0 < repeated < total / 3
    assert any(page in _links(small, page) for page in pages)


def test_a_billion_pages_start_at_once() -> None:
    web = Web(WebSpec(pages=10**9))
    arrays = [value for value in web.tables if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in arrays) < 100_000_000
    assert web.page_id(web.url(987_654_321)) == 987_654_321
