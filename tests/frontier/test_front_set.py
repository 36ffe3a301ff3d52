"""The front set of URLseen in a crawl: links that come again and again end in RAM, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from barkspider.core.load import load_settings
from barkspider.storage.drum.repository import Drum
from tests.frontier.sites import SiteWeb, crawl

SETTINGS = {
    "seed": 1,
    "memory": "16MB",
    "politeness.host_delay": "0s",
    "politeness.server_delay": "0s",
}


def test_most_links_of_a_crawl_never_reach_a_bucket_and_the_same_pages_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = SiteWeb(2_000, 20, seed=1, links=30)

    def whole(folder: Path) -> tuple[int, dict[str, int]]:
        (frontier,) = list(crawl(web, load_settings(overrides=SETTINGS), folder, 10**6, 1))
        return frontier.counters.pages, frontier.traffic()["drum"]["seen"]

    pages, seen = whole(tmp_path / "with")
    assert seen["rows"] > 30_000
    assert seen["sifted"] > 0.8 * seen["rows"]
    assert seen["rows_written"] == seen["rows"] - seen["sifted"]
    monkeypatch.setattr(Drum, "_sifted", lambda _, batch: batch)
    pages_without, seen_without = whole(tmp_path / "without")
    assert seen_without["sifted"] == 0
    assert pages_without == pages == 2_000
    assert seen_without["rows"] == seen["rows"]
