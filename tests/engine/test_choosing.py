"""A budget for fetching again: rates from versions, which pages are due, and that none is asked for twice."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from barkspider import crawl, load_settings
from barkspider.engine import Job, open_job, resume
from barkspider.engine.choosing import DAY, VISITS, Budget, Choice, Rated, rated
from barkspider.engine.recrawl import ASKED, spend
from barkspider.model.freshness import estimate, frequencies, freshness
from barkspider.storage.env import Env
from tests.cli import program
from tests.engine.ageing import Ageing
from tests.website import QUICK, Answer, serving_site


def test_rates_are_found_from_irregular_visits() -> None:
    random, pages, visits = np.random.default_rng(1), 300, 40
    rates = np.exp(random.uniform(-3, 1, pages))
    waits = random.exponential(1.0, pages * visits) + 0.01
    changed = random.random(pages * visits) < -np.expm1(-np.repeat(rates, visits) * waits)
    found, watched = estimate(np.arange(pages) * visits, waits, changed)
    assert np.allclose(watched, waits.reshape(pages, visits).sum(axis=1))
    middling = (rates > 0.1) & (rates < 1.5)
    assert abs(np.median(found[middling] / rates[middling]) - 1) < 0.05
    assert np.corrcoef(found[middling], rates[middling])[0, 1] > 0.9


def test_regular_visits_have_the_estimator_of_the_paper() -> None:
    changed = np.array([1, 0, 0, 1, 0] + [1] * 5 + [0] * 5, bool)
    found, _ = estimate(np.array([0, 5, 10]), np.full(15, 3.0), changed)
    assert found[:2] == pytest.approx([-np.log(3.5 / 5.5) / 3, -np.log(0.5 / 5.5) / 3])
    assert found[2] == pytest.approx(0.5 / 15)  # never seen to change


def pages(rates: list[float], ages: list[float], now: float = 1e9) -> Rated:
    count = len(rates)
    last = now - np.array(ages) * DAY
    return Rated(np.arange(count, dtype=np.uint64), np.array(rates) / DAY, last, np.arange(count))


@pytest.mark.parametrize(
    ("policy", "expected"), [("uniform", [2, 3]), ("proportional", [0, 2]), ("optimal", [1, 2])]
)
def test_those_go_first_that_are_most_overdue(policy: str, expected: list[int]) -> None:
    # Hopeless, lively and young, lively and old, hardly ever changing and oldest.
    found = pages([40.0, 1.0, 0.9, 0.00001], [1.0, 1.0, 2.0, 3.0])
    choice = Choice(Budget(2, DAY, policy), 1e9)
    choice.count(found)
    choice.decide()
    assert np.flatnonzero(choice.due(found)).tolist() == expected


def test_exactly_the_budget_is_chosen_however_the_pages_are_parted() -> None:
    random = np.random.default_rng(2)
    found = pages(
        random.choice([0.1, 1.0, np.nan], 1_000).tolist(), random.choice([1.0, 2.0], 1_000).tolist()
    )
    choice = Choice(Budget(333), 1e9)
    parts = [found.where(np.arange(1_000) % 7 == part) for part in range(7)]
    for part in parts:
        choice.count(part)
    choice.decide()
    assert sum(int(choice.due(part).sum()) for part in parts) == 333
    assert not any(choice.due(part).any() for part in parts)  # it is spent


def test_with_nothing_known_the_oldest_go_first() -> None:
    found = pages([np.nan] * 4, [1.0, 4.0, 2.0, 3.0])
    choice = Choice(Budget(2), 1e9)
    choice.count(found)
    choice.decide()
    assert np.flatnonzero(choice.due(found)).tolist() == [1, 3]
    assert not rated(pa.table({"key": pa.array([], pa.uint64()), "time": [], "changed": []})).keys.size


def test_copies_are_as_fresh_as_the_formula_says_and_in_its_order() -> None:
    found = {}
    for policy in ("uniform", "optimal", "proportional"):
        ageing = Ageing(300, 0.5, policy, 150)
        found[policy], _ = ageing.run(1.0, 15.0, 1 / 4)
    from barkspider.lab.synthweb.changes import Changes

    rates = Changes(1, 0.5).rates(np.arange(300))
    formula = float(freshness(rates, frequencies("uniform", rates, 150.0)).mean())
    assert abs(found["uniform"] - formula) < 0.03
    assert found["optimal"] > found["uniform"] > found["proportional"]


def test_a_budget_is_spent_once_on_each_page_and_goes_by_versions(tmp_path: Path) -> None:
    names = [f"/{number}" for number in range(6)]
    with serving_site() as site:
        links = "".join(f'<a href="{name}">x</a>' for name in names)
        for name in ("/", *names):
            site.pages[name] = Answer(links + name, headers={"ETag": f'"{name}"'})
        job = tmp_path / "job"
        crawl(site.url("/"), job, load_settings(options=["seed=7", *QUICK]))
        for turn in range(3):  # /0 changes each time, the others never
            site.pages["/0"] = Answer(f"{links} {turn}", headers={"ETag": f'"{turn}"'})
            held = Job.open(job, Env())
            assert spend(held, Budget(7, 1.0), time.time()).pages == 7
            held.close()
            resume(job)
        table = open_job(job).query(VISITS.format(parts=1, part=0, columns="key, url"))
        seen = rated(table)
        changing = [table["url"][row].as_py() for row in seen.rows[np.argsort(-seen.rates)]]
        assert changing[0] == site.url("/0")
        assert table.num_rows == 28
        asked = len(site.asked)
        counts = []
        for _ in range(4):  # nothing is fetched in between, and one dies before it is done
            held = Job.open(job, Env())
            counts.append(spend(held, Budget(3, 1.0), time.time()).pages)
            held.close()
        assert counts == [3, 3, 1, 0]
        resume(job)
        assert sorted(site.asked[asked:]) == sorted(["/", *names])
        (job / ASKED).write_bytes(b"x")  # of what is over, nothing counts
        held = Job.open(job, Env())
        assert spend(held, Budget(2, 1.0, "uniform"), time.time()).pages == 2
        held.close()


@pytest.mark.parametrize(
    "wrong",
    [
        ["--budget", "3", "--older-than", "1d"],
        ["--budget", "3", "--policy", "best"],
        ["--budget", "3", "--every", "0s"],
        ["--watch"],
    ],
)
def test_wrong_input_is_refused(
    tmp_path: Path, wrong: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.run(monkeypatch, "recrawl", tmp_path, *wrong) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
