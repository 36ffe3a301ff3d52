"""Several processes that crawl site by site, each taking sites as it can: killed, stopped, and on PostgreSQL."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barkspider.engine.folder import events, part_folders
from barkspider.engine.trust import read_settings
from barkspider.engine.visits import open_registry
from barkspider.storage.env import Env
from tests.parallel.killed import DEFAULTS, NONE
from tests.parallel.killed import run as run_killed
from tests.sites.postgres import PostgresServer, binaries

SMALL = {
    "frontier": "site",
    "hazards": [],
    "processes": 2,
    "robots": 9,  # each visit may ask for it
    "pages": 120,
    "host_delay": 0.05,
    "crawl_delay": 0.1,
    "checkpoint": 0.3,
    "seed": 3,
}


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    if binaries() is None or importlib.util.find_spec("psycopg") is None:
        pytest.skip(
            "PostgreSQL or psycopg is not installed: apt-get install postgresql, pip install 'barkspider[database]'"
        )
    server = PostgresServer()
    server.start()
    yield server
    server.close()


def sites_of(job: Path) -> list[dict[str, Any]]:
    registry = open_registry(read_settings(Env(), job), job)
    try:
        return registry.sites()
    finally:
        registry.close()


def logged(job: Path) -> set[str]:
    return {each["event"] for folder in part_folders(job) for each in events(folder)}


def check(found: dict[str, Any], job: Path) -> None:
    assert found["code"] == 0, found["output"]
    assert {name: found[name] for name in NONE} == dict.fromkeys(NONE, 0), found
    assert found["problems"] == []
    sites = sites_of(job)
    assert {site["state"] for site in sites} == {"crawled"}
    assert sum(site["pages"] for site in sites) == found["truth"] > 80


def test_processes_that_are_killed_crawl_every_site_once(tmp_path: Path) -> None:
    found = run_killed({**DEFAULTS, **SMALL, "kills": 3, "longest": 4.0}, tmp_path)
    check(found, tmp_path / "job")


def test_a_database_that_is_restarted_costs_nothing(postgres: PostgresServer, tmp_path: Path) -> None:
    stopped, log = threading.Event(), tmp_path / "requests.log"

    def restart() -> None:
        for requests in (20, 50, 80):
            while not log.exists() or log.read_bytes().count(b"\n") < requests:
                if stopped.wait(0.05):
                    return
            postgres.stop()
            postgres.start()

    options = [f"parallel.database={postgres.url}"]
    thread = threading.Thread(target=restart)
    thread.start()
    try:
        found = run_killed({**DEFAULTS, **SMALL, "kills": 1, "longest": 6.0, "options": options}, tmp_path)
    finally:
        stopped.set()
        thread.join()
    check(found, tmp_path / "job")
    assert not (tmp_path / "job" / "sites.db").exists()
    assert "database_away" in logged(tmp_path / "job")


def test_what_a_process_crawls_on_after_its_leases_counts_nowhere(tmp_path: Path) -> None:
    """It is stopped for longer than they last; others crawl its sites anew, which are complete and count once."""
    order = {"kills": 0, "pages": 200, "host_delay": 0.3, "stopped": 4.0, "options": ["site.lease=1500ms"]}
    found = run_killed({**DEFAULTS, **SMALL, **order}, tmp_path)
    assert (found["code"], found["missing"], found["too_soon"], found["problems"]) == (0, 0, 0, []), found
    sites = sites_of(tmp_path / "job")
    assert sum(site["lost"] for site in sites) > 0
    assert {site["state"] for site in sites} == {"crawled"}
    assert sum(site["pages"] for site in sites) == found["truth"]
