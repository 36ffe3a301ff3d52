"""What a crawl moves on disk is what the models say, also when it was stopped and gone on with three times."""

from __future__ import annotations

from pathlib import Path

import pytest

from barkspider.cli.measured import budgets_compared, drum_compared
from barkspider.core.load import load_settings
from tests.frontier.sites import SiteWeb, crawl


def test_predicted_and_counted_bytes_of_a_crawl_agree_after_three_resumes(tmp_path: Path) -> None:
    settings = load_settings(
        overrides={
            "seed": 1,
            "memory": "16MB",
            "politeness.host_delay": "0s",
            "politeness.server_delay": "0s",
        }
    )
    pages, links = [], []
    for frontier in crawl(SiteWeb(50_000, 500, seed=1), settings, tmp_path, 8_000, 4):
        traffic = frontier.traffic()
        assert set(traffic["drum"]) == {"seen", "edges", "indegree", "robots", "requested"}
        compared = {name: drum_compared(about) for name, about in traffic["drum"].items()}
        seen, beast = traffic["drum"]["seen"], traffic["beast"]
        compared["beast"] = budgets_compared(beast, seen, frontier.gauges()["domains"], seconds=1).moved
        for name, moved in compared.items():
            assert moved.counted_bytes == pytest.approx(moved.predicted_bytes, rel=0.1), name
        pages.append(frontier.counters.pages)
        links.append(seen["rows"])
    # l, the links of a page, goes on from run to run.
    assert len(pages) == 4
    assert pages[-1] >= 8_000
    for count, rows in zip(pages, links, strict=True):
        assert rows / count == pytest.approx(links[0] / pages[0], rel=0.1)
