"""Crawls that are divided anew while they are not over; `python -m benchmarks resize` does it with processes, and more kills."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parallel.resized import DEFAULTS, NONE, run

SMALL = {
    "together": True,
    "pages": 120,
    "host_delay": 0.03,
    "server_delay": 0.002,
    "crawl_delay": 0.1,
    "checkpoint": 0.3,
    "seed": 3,
}


@pytest.mark.parametrize(
    ("frontier", "partition", "sizes", "kills"),
    [
        ("irlbot", "domain", [3, 5, 2, 1], 3),
        ("irlbot", "site", [2, 3], 1),
        ("irlbot", "url", [3, 2], 1),
        ("sydney-disk", "domain", [2, 3], 1),
    ],
)
def test_a_crawl_that_is_resized_and_killed_finds_every_page_once(
    frontier: str, partition: str, sizes: list[int], kills: int, tmp_path: Path
) -> None:
    order = {"frontier": frontier, "partition": partition, "sizes": sizes, "kills": kills}
    found = run({**DEFAULTS, **SMALL, **order}, tmp_path)
    assert found["code"] == 0, found["output"]
    assert {name: found[name] for name in NONE} == dict.fromkeys(NONE, 0), found
    assert found["kills"] == kills
    assert found["truth"] > 100
    assert found["problems"] == []
    assert all(found["sums_agree"])
    if frontier == "irlbot":
        assert found["in_degrees"] == found["in_degrees_of_links"]
