"""Budget functions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.errors import SettingsError
from barkspider.core.settings import Budget
from barkspider.model.budgets import Budgets, Degrees, Distribution, top_count

NAMES = ["irlbot", "equal", "popular", "proportional", "inverse"]
webs = st.lists(st.one_of(st.integers(0, 5), st.integers(4090, 4100), st.integers(0, 2**32 - 1)), max_size=40)


def zipf(domains: int) -> Distribution:
    """A web in which the n-th domain has in-degree `domains` / n."""
    return Distribution.of([domains // np.arange(1, domains + 1)])


def doubled(degrees: Degrees, known: Distribution, settings: Budget) -> npt.NDArray[Any]:
    """A function of a user's own."""
    return 2 * degrees - 1.4


def one_number(degrees: Degrees, known: Distribution, settings: Budget) -> npt.NDArray[Any]:
    """One that is wrong."""
    return np.array([1])


@settings(deadline=None)
@given(webs, st.integers(1, 7))
def test_a_distribution_counts_every_domain_once(degrees: list[int], size: int) -> None:
    column = np.array(degrees, np.uint32)
    known = Distribution.of(column[start : start + size] for start in range(0, len(degrees), size))
    assert dict(zip(known.degrees.tolist(), known.counts.tolist(), strict=True)) == Counter(degrees)
    assert known.degrees.tolist() == sorted(set(degrees))
    assert len(known) == len(degrees)
    ranks = [max(1, sum(other >= degree for other in degrees)) for degree in degrees]
    assert known.ranks(column).tolist() == ranks
    assert known.ranks(np.array([2**40])).tolist() == [1]


def test_the_mean_budget_of_irlbot_is_that_of_the_paper() -> None:
    counts = np.ones(10_001, np.int64)
    counts[0] = 33_755_361 - 10_000
    paper = Distribution(np.arange(10_001), counts)
    assert Budgets(Budget()).expected(paper) == pytest.approx(11.48, abs=0.01)


@pytest.mark.parametrize("domains", [1, 100, 3_333, 3_334, 50_000, 1_000_000])
def test_the_mean_budget_stays_near_eleven_on_small_webs(domains: int) -> None:
    for web in (zipf(domains), Distribution.of([np.ones(domains, np.int64)])):
        assert 10 <= Budgets(Budget()).expected(web) <= 13  # 13: K is 1, at 10,000 of 3,334
    assert top_count(zipf(domains), Budget()) == domains * 3 // 10_000


def test_the_first_domains_get_even_steps_from_top_to_base() -> None:
    degrees = np.arange(100_000)
    known = Distribution.of([degrees])
    budgets = Budgets(Budget(top=1000, base=100))(degrees, known)
    assert budgets[-30:].tolist() == np.rint(np.linspace(100, 1000, 30)).tolist()
    assert (budgets[:-30] == 100).all()
    fewer = Budgets(Budget(top=1000, base=100, top_domains=2))(degrees, known)
    assert fewer[-4:].tolist() == [100, 100, 100, 1000]


def test_domains_of_the_same_degree_are_never_more_than_k_above_the_others() -> None:
    known = Distribution(np.array([1, 2, 3]), np.array([9_000, 998, 2]))  # K is 3
    budgets = Budgets(Budget(top=1000, base=100))
    assert budgets(known.degrees, known).tolist() == [100, 100, 550]


@settings(deadline=None)
@given(webs, st.sampled_from(NAMES))
def test_no_budget_is_below_one_or_above_the_top(degrees: list[int], name: str) -> None:
    column = np.array([*degrees, 0, 1, 7], np.uint32)
    budgets = Budgets(Budget(function=name, base=3, top=50))(column, Distribution.of([column[:-3]]))
    assert budgets.dtype == np.uint32
    assert ((budgets >= 1) & (budgets <= 50)).all()


def test_each_function_prefers_whom_it_should() -> None:
    known = zipf(10_000)
    asked = np.array([1, 10, 10_000])

    def budgets(name: str) -> list[int]:
        found: list[int] = Budgets(Budget(function=name))(asked, known).tolist()
        return found

    assert budgets("equal") == [10, 10, 10]
    assert budgets("popular") == [1, 1, 10_000]
    mean = float(np.average(known.degrees, weights=known.counts))
    assert budgets("proportional") == [1, round(100 / mean), 10_000]
    low, middle, high = budgets("inverse")
    assert low > 10 * middle - 10 > 0
    assert high == 1
    assert Budgets(Budget(function="inverse")).expected(known) == pytest.approx(10, rel=0.1)


def test_a_function_of_the_users_own_is_rounded_and_at_least_one() -> None:
    budgets = Budgets(Budget(function="tests.model.test_budgets:doubled"))
    assert budgets(np.array([0, 1, 2, 3]), zipf(10)).tolist() == [1, 1, 3, 5]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("irlbott", "is unknown: give irlbot, equal"),
        ("no_such_package.budgets:f", "cannot be imported"),
        ("tests.model.test_budgets:missing", "cannot be imported"),
        (":f", "cannot be imported"),
        ("tests.model.test_budgets:NAMES", "is not a function"),
    ],
)
def test_a_function_that_is_not_there_is_refused(path: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Budgets(Budget(function=path))


def test_a_function_that_does_not_answer_for_every_domain_is_refused() -> None:
    budgets = Budgets(Budget(function="tests.model.test_budgets:one_number"))
    with pytest.raises(SettingsError, match="one number for each"):
        budgets(np.array([1, 2]), zipf(10))
