"""A project of Scrapy's on our frontier: the same items as on Scrapy's own, whoever is killed, and pauses kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scrapy", reason="Scrapy is not installed")

from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web
from tests.scrapy import running

HOST_DELAY, SERVER_DELAY = 0.1, 0.02


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    spec = WebSpec(seed=6, pages=120, domains=20, page_bytes=2_000, crawl_delay=0.15)
    with running_web(spec, log_path=tmp_path_factory.mktemp("web") / "log") as web:
        yield web


def ours(served: RunningWeb, job: Path) -> dict[str, Any]:
    mine = {
        "politeness.server_delay": f"{SERVER_DELAY}s",
        "politeness.slow_factor": "0",
        "checkpoint": "200ms",
        "memory": "64MB",
        "dns.servers": served.settings()["dns.servers"],
    }
    return {
        "BARKSPIDER_JOB": job,
        "BARKSPIDER_SETTINGS": json.dumps(mine),
        "DOWNLOAD_DELAY": HOST_DELAY,
    }


def by_url(items: Path) -> dict[str, str]:
    return {item["url"]: item["title"] for item in running.read(items)}


def test_the_same_items_after_kills_nothing_lost_and_pauses_kept(served: RunningWeb, tmp_path: Path) -> None:
    seeds, kills = served.web.seeds(1), 1  # `benchmarks scrapy` kills it ten times
    own, items = tmp_path / "own.jsonl", tmp_path / "ours.jsonl"
    running.finish(running.begin(served, seeds, own, {"SCHEDULER": running.OWN, "DOWNLOAD_DELAY": 0}))
    assert served.log_path is not None
    before = len(read_log(served.log_path))
    running.killed_and_finished(served, seeds, items, ours(served, tmp_path / "job"), kills, 1.0)
    log = read_log(served.log_path)[before:]
    assert len(by_url(own)) > 90
    assert by_url(items) == by_url(own)
    found = {item["url"]: item for item in running.read(items)}
    parents = [found[item["parent"]]["depth"] for item in found.values() if item["parent"]]
    assert len(parents) > 80
    assert (
        running.twice(log) <= 1 + kills * running.AT_ONCE
    )  # the first request is not filtered, as with Scrapy's own
    assert running.too_soon(served, log, HOST_DELAY, SERVER_DELAY) == 0


def test_requests_keep_what_they_have(served: RunningWeb, tmp_path: Path) -> None:
    """All kinds of values, methods, errbacks, requests that are not filtered, and those that cannot be written."""
    order = {
        "page": served.web.seeds(1)[0],
        "proxy": f"http://{served.web.server(served.web.seeds(1)[0].split('/')[2])}:{served.http_port}",
        "settings": ours(served, tmp_path / "job") | {"DOWNLOAD_DELAY": 0.01, "ROBOTSTXT_OBEY": False},
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.scrapy.odd"],
        input=json.dumps(order, default=str),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=running.ROOT,
        env=running.environment(),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == {
        "kept": "method GET, True, priority 7",
        "filtered": 1,
        "not filtered": 3,
        "posted": "POST a=1",
        "errback": "http://127.0.0.1:9/",
        "in memory": 1,
        "data": "hello",
        "unserializable": 1,
    }
    assert done.stderr.count("Unable to serialize request") == 1
