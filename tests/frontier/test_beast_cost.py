"""The cost of enforcing budgets (IRLbot, section 6.2): on a web whose domains are all endless, and on small ones."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from barkspider.core.batch import WIDTH
from barkspider.core.settings import Budget
from barkspider.frontier.budget.beast import Beast
from barkspider.lab.simulate.queues import Naive
from barkspider.storage.env import Env
from tests.frontier.naive import crawl, feed

DOMAINS, BUDGET, LINKS = 100, 5, 4
ROW = WIDTH + 60 + 4


def costs(marks: list[tuple[int, int]]) -> list[float]:
    """Bytes read and written for each page, in rows, from the start of a re-scan to that of the next."""
    return [(b[1] - a[1]) / (b[0] - a[0]) / ROW for a, b in pairwise(marks)]


def test_the_cost_of_a_page_stays_below_the_bound_of_theorem_5_while_queues_double(tmp_path: Path) -> None:
    beast = Beast(Env(), tmp_path, Budget())
    marks = crawl(beast, DOMAINS, BUDGET, LINKS, rescans=5)
    assert beast.gauges().queues == 2 * 2**5
    assert max(costs(marks)) < 2 * (2 * LINKS - 1)
    beast.validate()
    beast.close()


def test_the_naive_way_costs_what_theorem_4_says_and_soon_exceeds_that_bound(tmp_path: Path) -> None:
    naive = Naive(Env(), tmp_path)
    marks = crawl(naive, DOMAINS, BUDGET, LINKS, rescans=20)
    for (pages, _), cost in zip(marks[5:], costs(marks)[5:], strict=False):
        alpha = pages / (BUDGET * DOMAINS)
        assert cost == pytest.approx(2 * (LINKS - 1) * alpha, rel=0.25)
    assert costs(marks)[-1] > 5 * 2 * (2 * LINKS - 1)
    naive.close()


def test_the_cost_of_a_page_stays_bounded_when_there_may_be_no_more_queues(tmp_path: Path) -> None:
    beast = Beast(Env(), tmp_path, Budget(max_queues=8))
    marks = crawl(beast, DOMAINS, BUDGET, LINKS, rescans=9)
    assert beast.gauges().queues == 8
    for begin, end in pairwise(marks[3:]):
        assert end[0] >= 2 * begin[0]
    for pages, moved in marks:
        assert moved / pages / ROW < 5 * LINKS - 3
    beast.validate()
    beast.close()


@pytest.mark.parametrize("domains", [1, 20])
def test_the_cost_of_a_url_does_not_grow_with_a_crawl_of_few_domains(domains: int, tmp_path: Path) -> None:
    spent = []
    for urls in (5_000, 80_000):
        beast = Beast(Env(), tmp_path / str(urls), Budget(max_queues=16))
        assert len(feed(beast, urls, domains, np.array([10], np.uint32))) == urls
        spent.append((beast.moved.read + beast.moved.written) / urls)
        beast.validate()
        beast.close()
    assert spent[1] < 2 * spent[0]


def test_domains_stay_in_the_order_of_their_budgets_when_all_their_urls_fail_again_and_again(
    tmp_path: Path,
) -> None:
    beast = Beast(Env(), tmp_path, Budget(max_queues=8))
    order = feed(beast, 40_000, 2, np.array([20, 5], np.uint32))  # the second has the larger budget
    assert beast.gauges().share > 1
    small, large = np.cumsum(order == 1), np.cumsum(order == 2)
    while_both_wait = np.arange(len(order)) < np.argmax(large)
    late = while_both_wait & (np.arange(len(order)) > 1000)
    assert (large[late] >= 2 * small[late]).all()
    assert small[late][-1] > 4_000  # its quarter
    beast.close()
