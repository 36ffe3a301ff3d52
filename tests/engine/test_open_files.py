"""A system that allows few open files: fewer connections, and no end of the crawl."""

from __future__ import annotations

import json
import os
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from barkspider import crawl, load_settings
from barkspider.core.errors import UsageError
from barkspider.core.settings import Fetch, Settings
from barkspider.engine.preflight import fit_open_files
from barkspider.synthweb import WebSpec, running_web


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The limits of a system: what is in force, and the most that may be asked for."""
    values = [1024, 1024]

    def change(_: int, given: tuple[int, int]) -> None:
        assert given[0] <= values[1]
        values[:] = given

    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(values))
    monkeypatch.setattr(resource, "setrlimit", change)
    return values


def test_connections_are_as_many_as_files_leave_room_for(limits: list[int]) -> None:
    settings = Settings()
    assert settings.fetch.in_flight + settings.fetch.idle_connections == 1500
    fitted = fit_open_files(settings)
    assert (fitted.fetch.in_flight, fitted.fetch.idle_connections) == (384, 128)
    assert replace(fitted, fetch=settings.fetch) == settings
    few = replace(settings, fetch=Fetch(in_flight=50, idle_connections=60))
    assert fit_open_files(few) is few
    assert fit_open_files(replace(settings, frontier="sydney")).fetch.in_flight == 500


def test_as_many_as_are_wanted_are_asked_for(limits: list[int]) -> None:
    limits[1] = 100_000
    settings = Settings()
    assert fit_open_files(settings) is settings
    assert limits == [256 + 2 * settings.budget.max_queues + 1500, 100_000]
    limits[:] = [resource.RLIM_INFINITY] * 2
    assert fit_open_files(settings) is settings


def test_too_few_are_one_clear_line(limits: list[int]) -> None:
    limits[:] = [300, 300]
    with pytest.raises(
        UsageError, match=r"allows 300 open files, and this crawl needs 544 at least.*ulimit -n"
    ):
        fit_open_files(Settings())


def test_a_crawl_with_few_files_gets_every_page(tmp_path: Path) -> None:
    spec = WebSpec(seed=8, pages=160, domains=40, page_bytes=2_000)
    with running_web(spec) as web:
        chosen = web.settings() | {
            "politeness.host_delay": "5ms",
            "politeness.server_delay": "0s",
            "scope.level": "web",
            "seed": "5",
            "memory": "64MB",
            "archive.recent_digests": "1000",
            "budget.max_queues": "4",
        }
        settings = load_settings(options=[f"{name}={value}" for name, value in chosen.items()])
        child = os.fork()
        if not child:
            code = 1
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (310, 310))
                code = crawl(web.web.seeds(1), tmp_path / "job", settings).stopped_by != "done"
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        expected = len(web.web.reachable_urls(web.web.seeds(1)))
    events = [json.loads(line) for line in (tmp_path / "job" / "log.jsonl").read_text().splitlines()]
    assert [event["in_flight"] for event in events if event["event"] == "few_open_files"] == [34]
    assert events[-1]["pages"] == expected
