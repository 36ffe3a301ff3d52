"""Graphs served as webs, and crawled live as they are simulated."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from barkspider.cli.papers_live import ALONE, irlbot_table, trial
from barkspider.cli.papers_live_cookies import cookie_tables
from barkspider.cli.papers_live_parallel import parallel_trial
from barkspider.core.errors import UsageError
from barkspider.lab.simulate.farms import FarmSpec, make_web
from barkspider.lab.simulate.order import Strategy
from barkspider.lab.simulate.parallel import Setup
from barkspider.lab.synthweb import Request, Server, StoredWeb
from barkspider.lab.webgraph import WebGraph, load_web, store_web

ROW = WebGraph.of(
    [[1, 2], [0], []], site=[0, 0, 1], urls=["a.example", "https://b.example/x?a=1&b=2", "no url\\"]
)


@pytest.mark.parametrize("named", [False, True])
def test_a_live_crawl_of_a_graph_is_the_simulated_one(named: bool) -> None:
    web = make_web(FarmSpec(domains=8, largest=120))
    if named:
        urls = [f"http://h{site}.example/{page}.html" for page, site in enumerate(web.site.tolist())]
        web = WebGraph.of([web.links(page).tolist() for page in range(web.nodes)], urls=urls)
    with trial(web, seeds=5) as tried:
        for strategy in (
            (Strategy("sydney", 4, 0.05),) if named else (Strategy("sydney", 4), Strategy("sydney", 4, 0.05))
        ):
            simulated, live = tried.simulate(strategy), tried.crawl(strategy, ALONE)
            assert live.pages == len(simulated.order)
            assert live.largest == simulated.largest
            assert tried.crawl(strategy, {**ALONE, "sydney.seen": "disk"}) == live
        assert live.pages < tried.reach
        if named:
            table = irlbot_table(tried)
            cells = {name: cells[0] for name, cells in table.rows}
            assert [*cells] == ["α of URLseen", "λ of BEAST, bytes a page", "p, unique of the links"]
            assert all(cell is not None and min(cell.value, cell.ours) > 0 for cell in cells.values())


def test_a_crawl_of_several_processes_is_the_simulated_one_too() -> None:
    with parallel_trial(make_web(FarmSpec(domains=8, largest=60))) as tried:
        setup = Setup("cross-over", 2)
        simulated, live = tried.simulate(setup), tried.crawl(setup)
        assert live.times.tolist() == simulated.times.tolist()
        assert live.overlap > 0


def test_pages_are_at_their_urls_or_at_their_numbers() -> None:
    web = StoredWeb(ROW)
    assert [web.url(page) for page in range(3)] == [
        "http://a.example/",
        "https://b.example/x?a=1&b=2",
        "http://s1.example/2",
    ]
    assert web.has_https
    assert web.answer(Request("a.example", "/")).links == (web.url(1), web.url(2))
    assert b"x?a=1&amp;b=2" in web.answer(Request("a.example", "/")).body
    assert web.answer(Request("b.example", "/x?a=1&b=2")).status == 404  # that one is https
    assert web.answer(Request("a.example", "/robots.txt")).status == 404
    assert (web.server("a.example"), web.server("c.example"), web.server("s9.example")) == (
        "127.16.0.1",
        None,
        None,
    )
    with pytest.raises(UsageError, match="needs an HTTPS port"):
        Server(web)


def test_a_part_of_a_graph_is_stored_and_read_back(tmp_path: Path) -> None:
    store_web(ROW.first(2), tmp_path / "part.npz")
    part = load_web(tmp_path / "part.npz")
    assert (part.nodes, part.links(0).tolist(), part.links(1).tolist()) == (2, [1], [0])
    assert part.urls is not None
    assert part.urls.to_pylist() == ["a.example", "https://b.example/x?a=1&b=2"]
    assert np.array_equal(part.site, ROW.site[:2])


def test_the_command_serves_a_graph(tmp_path: Path) -> None:
    store_web(WebGraph.of([[1, 2], [0], []], site=[0, 0, 1]), tmp_path / "web.npz")
    command = [sys.executable, "-m", "barkspider.cli", "web", "--from", str(tmp_path / "web.npz"), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert said["seeds"] == ["http://s0.example/0", "http://s0.example/1", "http://s1.example/2"]


def test_with_cookies_hardly_any_url_has_a_session_id_and_urls_are_shorter() -> None:
    cookies, costs = cookie_tables()
    (_, sessions), (_, lengths) = cookies.rows
    without, with_ = (cell.ours for cell in sessions if cell is not None)
    assert without > 0.2
    assert with_ < 0.035
    long, short = (cell.ours for cell in lengths if cell is not None)
    assert long > short
    ((_, (duplicates, downloads)),) = costs.rows
    assert duplicates is not None
    assert downloads is not None
    assert duplicates.ours < 0.1
    assert 0.8 <= downloads.ours <= 1.0
