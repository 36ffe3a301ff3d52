"""Budgets on a web with spam farms: what each way to queue URLs fetches, and what it moves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from barkspider.core.errors import UsageError
from barkspider.core.settings import Budget
from barkspider.lab.simulate.budget import METHODS, ROW, Crawled, crawl, simulate_budget
from barkspider.lab.simulate.farms import FarmSpec, make_web, plant_farms
from barkspider.lab.simulate.papers import tables
from barkspider.lab.simulate.repeats import choose_seeds
from barkspider.lab.webgraph import WebGraph

SPEC = FarmSpec(domains=60, largest=20_000, farms=4, farm_pages=60_000)


@pytest.fixture(scope="module")
def crawls() -> dict[str, Crawled]:
    web, honest, seeds = webs(1)
    return {method: crawl(web, honest, method, seeds, 12_000, Budget()) for method in METHODS}


def webs(number: int) -> tuple[WebGraph, int, npt.NDArray[np.int32]]:
    honest = make_web(SPEC, number)
    return plant_farms(honest, SPEC, number), honest.nodes, choose_seeds(honest, 20, number)


def test_a_farm_is_a_tree_behind_the_honest_pages() -> None:
    honest = make_web(SPEC)
    web = plant_farms(honest, SPEC)
    assert (web.nodes, web.sites) == (honest.nodes + SPEC.farm_pages, honest.sites + SPEC.farms)
    assert web.site[: honest.nodes].tolist() == honest.site.tolist()
    into = np.bincount(web.indices[web.indptr[honest.nodes] :], minlength=web.nodes)[honest.nodes :]
    assert into.tolist() == [0] * SPEC.farms + [1] * (SPEC.farm_pages - SPEC.farms)
    entered = web.indices[: web.indptr[honest.nodes]] >= honest.nodes
    assert honest.nodes / SPEC.entry * 0.9 < entered.sum() <= honest.nodes / SPEC.entry + 1
    unchanged = web.indices[: web.indptr[honest.nodes]][~entered]
    assert unchanged.tolist() == honest.indices.tolist()
    assert set(web.site[web.indices[web.indptr[honest.nodes] :]].tolist()) == set(range(60, 64))


def test_all_of_an_honest_domain_can_be_reached_from_its_home_page() -> None:
    web = make_web(FarmSpec(domains=5, largest=300))
    for site in range(web.sites):
        pages = np.flatnonzero(web.site == site)
        seen, waiting = {int(pages[0])}, [int(pages[0])]
        while waiting:
            new = {page for page in web.links(waiting.pop()).tolist() if web.site[page] == site} - seen
            seen |= new
            waiting += new
        assert seen == set(pages.tolist())


def test_budgets_keep_farms_to_their_share_where_bfs_is_caught(crawls: dict[str, Crawled]) -> None:
    shares = {method: found.figures["farm_share"] for method, found in crawls.items()}
    fair = SPEC.farms / (SPEC.domains + SPEC.farms)
    assert shares["bfs"] > 0.3
    for method in ("naive", "beast"):
        assert 0 < shares[method] < 1.5 * fair
    assert {found.figures["pages"] for found in crawls.values()} == {12_000}


def test_the_naive_way_costs_what_theorem_4_says_and_beast_less_than_theorem_5(
    crawls: dict[str, Crawled],
) -> None:
    naive, beast = crawls["naive"].figures, crawls["beast"].figures
    assert naive["alpha"] > 10
    assert naive["lambda"] / naive["lambda_theorem"] == pytest.approx(1, abs=0.1)
    assert beast["lambda"] < beast["lambda_theorem"]
    assert beast["lambda"] < naive["lambda"] / 4
    assert beast["rescans"] < naive["rescans"] / 3
    assert beast["disk_bytes"] < naive["disk_bytes"] / 2
    # BFS writes each URL once and reads it once.
    bfs = crawls["bfs"].figures
    assert bfs["disk_bytes"] == ROW * 12_000 * (bfs["unique_per_page"] + 1)


def test_what_the_naive_way_moves_grows_with_the_crawl_and_beast_does_not(crawls: dict[str, Crawled]) -> None:
    naive, beast = crawls["naive"].curves["lambda"], crawls["beast"].curves["lambda"]
    assert naive[-1] > 3 * naive[0]
    assert max(beast) < 2 * min(beast)
    assert crawls["naive"].curves["farm_share"][-1] == crawls["naive"].figures["farm_share"]


def test_a_web_is_crawled_to_its_end_each_page_once() -> None:
    web = make_web(FarmSpec(domains=30, largest=60))
    seeds = choose_seeds(web, 5, 1)
    for method in METHODS:
        found = crawl(web, web.nodes, method, seeds, 10 * web.nodes, Budget(base=2)).figures
        assert (found["pages"], found["unique_per_page"], found["farm_share"]) == (web.nodes, 1, 0)


def test_repetitions_differ_and_the_same_seed_gives_the_same() -> None:
    runs = [simulate_budget(webs, pages=3000, repeat=2, seed=5, methods=("naive",)) for _ in range(2)]
    assert [result.as_dict() for result in runs[0]] == [result.as_dict() for result in runs[1]]
    assert runs[0][0].summary.spread["unique_per_page"] > 0


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(UsageError, match="0 repetitions"):
        simulate_budget(webs, repeat=0)
    with pytest.raises(UsageError, match="'star' is no way to queue URLs"):
        simulate_budget(webs, methods=("star",))
    with pytest.raises(UsageError, match="branching is 0"):
        FarmSpec(branching=0)
    with pytest.raises(UsageError, match="largest is 1000000000; give 1 to 100,000,000"):
        FarmSpec(largest=10**9)
    with pytest.raises(UsageError, match="10 farms with 3 pages"):
        FarmSpec(farm_pages=3)


def test_the_papers_tables_are_simulated_on_any_web(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barkspider.lab.simulate.papers._BUDGET_PAGES", 8000)
    found = tables(make_web(FarmSpec(domains=60, largest=5000)))
    assert [table.key for table in found] == [
        "limited-memory-table-1", "limited-memory-table-2", "limited-memory-sections-3-and-4",
        "irlbot-theorems-4-and-5",
    ]  # fmt: skip
    cells = {(table.name, row, column): cell for table in found for row, column, cell in table.cells()}
    assert len(cells) == 9 + 6 + 6 + 2
    queues = [cell.ours for (name, row, _), cell in cells.items() if name == "Table 1" and "queue" in row]
    assert queues == sorted(queues, reverse=True)
    assert cells["Theorems 4 and 5", "naive, (8)", "formula"].difference == pytest.approx(0, abs=0.2)
