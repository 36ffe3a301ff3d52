"""Two builds that crawl in turns, as the benchmark `crawl` has them, in a small form without a word about time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks._crawling import Turns, Workload, in_turns, serving
from benchmarks.crawl import run

from barkspider.lab.synthweb import WebSpec


def test_both_crawl_the_same_pages_in_turns() -> None:
    small = WebSpec(seed=3, pages=2_000, servers=40, page_bytes=2_000)
    workload = Workload(small, ("memory=20MB", "politeness.host_delay=0s"), 120, 120, seeds=40)
    python = Path(sys.executable)
    with serving(workload) as served:
        turns = in_turns((python, python), workload.order(served, 120, turn=20))
    for crawl in turns:
        assert sum(pages for _, pages in crawl) == 120
        assert len(crawl) >= 3
        assert all(cpu > 0 for cpu, _ in crawl)
    assert turns.ratio() > 0


def test_a_ratio_is_of_all_turns_and_its_spread_of_those_in_the_middle() -> None:
    first = [(9.0, 10), *((1.0 + number / 10, 10) for number in range(11)), (9.0, 10)]
    turns = Turns(first, [(1.0, 10)] * 13)
    assert turns.costs() == (pytest.approx(34.5 / 130), pytest.approx(0.1))
    assert turns.ratio() == pytest.approx(34.5 / 13)
    assert turns.spread() == (pytest.approx(1.1), pytest.approx(1.9))


def test_a_target_that_was_not_measured_has_neither_value_nor_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.crawl._measure_growth", lambda pages, figures, values: None)
    targets = run(False, "2000")["targets"]
    assert len(targets) == 11
    assert all(target["value"] is target["holds"] is None and target["target"] > 0 for target in targets)
