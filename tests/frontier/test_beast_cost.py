"""The cost of enforcing budgets (IRLbot, section 6.2), on a web whose domains are all endless."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from barkspider.core.batch import WIDTH
from barkspider.core.settings import Budget
from barkspider.frontier.budget.beast import Beast
from barkspider.simulate.queues import Naive
from barkspider.storage.env import Env
from tests.frontier.naive import crawl

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
