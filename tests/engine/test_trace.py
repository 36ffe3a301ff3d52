"""Decisions that are traced, from a crawl over the wire to SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barkspider import crawl, load_settings, open_job
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web

_SQL = "SELECT decision || '.' || rule AS rule, count(*) AS count FROM decisions GROUP BY ALL ORDER BY ALL"


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(WebSpec(seed=3, pages=120, domains=12, page_bytes=2_000, crawl_delay=0.01)) as web:
        yield web


def run(served: RunningWeb, job: Path, **options: object) -> tuple[dict[str, int], dict[str, int]]:
    """How many decisions of each rule the tables and the statistics have."""
    quick = dict.fromkeys(("politeness.host_delay", "politeness.server_delay", "politeness.slow_factor"), 0)
    chosen = {**served.settings(), **quick, "memory": "64MB", "limits.site_urls": 6, **options}
    settings = load_settings(options=[f"{name}={value}" for name, value in chosen.items()])
    statistics = crawl(served.web.seeds(3), job, settings)
    rows = open_job(job).query(_SQL).to_pylist()
    ends = {"refused": statistics.refused, "failed": statistics.failed}
    counted = {f"{end}.{rule}": count for end, by in ends.items() for rule, count in by.items()}
    return {row["rule"]: row["count"] for row in rows}, statistics.decided | counted


def test_sql_finds_every_decision_that_was_counted(served: RunningWeb, tmp_path: Path) -> None:
    traced, counted = run(served, tmp_path / "job", **{"trace.sample": 1})
    assert traced == counted
    assert {"refused.site_limit", "held_back.robots_unknown"} <= traced.keys()
    found = open_job(tmp_path / "job").query("SELECT * FROM decisions WHERE rule = 'site_limit'").to_pylist()
    assert all(row["url"].startswith("http") and row["time"] and row["until"] is None for row in found)


def test_without_the_setting_there_are_no_rows(served: RunningWeb, tmp_path: Path) -> None:
    traced, counted = run(served, tmp_path / "job")
    assert not traced
    assert counted["refused.site_limit"] > 0
