"""Limits hold for a job, however often it was stopped or killed on the way."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from barkspider import Statistics, crawl, load_settings
from barkspider.engine import resume
from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web
from barkspider.url import Domains
from tests.engine.warcs import archived

DOMAINS = Domains()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    spec = WebSpec(seed=8, pages=160, domains=10, page_bytes=2_000, crawl_delay=0.02)
    with running_web(spec, log_path=tmp_path_factory.mktemp("web") / "requests.log") as web:
        yield web


def begin(served: RunningWeb, job: Path, *more: str) -> Statistics:
    chosen = served.settings() | {
        "politeness.host_delay": "20ms",
        "politeness.server_delay": "0s",
        "scope.level": "web",
        "seed": "5",
        "memory": "64MB",
        "archive.recent_digests": "1000",
        "checkpoint": "100ms",
    }
    options = [*(f"{name}={value}" for name, value in chosen.items()), *more]
    return crawl(served.web.seeds(1), job, load_settings(options=options))


def begin_and_kill(served: RunningWeb, job: Path, *more: str) -> None:
    """The same, killed after some requests."""
    assert served.log_path is not None
    before = len(read_log(served.log_path))
    child = os.fork()
    if not child:
        begin(served, job, *more)
        os._exit(0)
    limit = time.monotonic() + 60
    while len(read_log(served.log_path)) < before + 25:
        assert time.monotonic() < limit
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_limit_of_bytes_counts_all_runs(served: RunningWeb, tmp_path: Path) -> None:
    job = tmp_path / "job"
    first = begin(served, job, "limits.bytes=100KB")
    assert first.stopped_by == "bytes"
    assert 100_000 <= first.bytes < 1_000_000
    assert first.pages < 160
    again = resume(job)
    assert (again.stopped_by, again.pages, again.bytes) == ("bytes", first.pages, first.bytes)
    more = resume(job, ["limits.bytes=0B"])
    assert more.stopped_by == "done"
    assert more.bytes > first.bytes
    assert set(archived(job, "pages")) == served.web.reachable_urls(served.web.seeds(1))


def host(url: str) -> str:
    return str(urlsplit(url).hostname)


def domain(url: str) -> str:
    return DOMAINS.pay_level(host(url))


@pytest.mark.parametrize("frontier", ["irlbot", "sydney"])
@pytest.mark.parametrize("interruption", ["stop", "kill"])
@pytest.mark.parametrize(
    ("setting", "reason", "part"),
    [("site_urls", "site_limit", host), ("domain_urls", "domain_limit", domain)],
)
def test_the_share_of_a_site_and_of_a_domain_counts_all_runs(
    served: RunningWeb,
    tmp_path: Path,
    frontier: str,
    interruption: str,
    setting: str,
    reason: str,
    part: Callable[[str], str],
) -> None:
    job = tmp_path / "job"
    limit = (f"limits.{setting}=4", f"frontier={frontier}", "sydney.sample=0")
    if interruption == "kill":
        begin_and_kill(served, job, *limit)
    else:
        assert begin(served, job, *limit, "limits.pages=12").stopped_by == "pages"
    done = resume(job, ["limits.pages=0"])
    assert done.stopped_by == "done"
    assert done.refused[reason] > 0
    found = archived(job, "pages")
    shares = Counter(map(part, found))
    assert max(shares.values()) <= 4
    assert len(found) == len(set(found)) == done.pages
