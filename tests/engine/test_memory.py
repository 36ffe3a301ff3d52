"""`memory` is what a crawl takes above what its process takes before it."""

from __future__ import annotations

from barkspider.lab.synthweb import WebSpec, running_web
from tests.engine.weighing import weigh


def test_a_crawl_takes_no_more_than_its_memory() -> None:
    """The benchmark `memory` does the same for larger crawls and other sizes."""
    with running_web(WebSpec(seed=2, pages=100_000)) as served:
        options = [f"{name}={value}" for name, value in served.settings().items()]
        options += ["scope.level=web", "politeness.host_delay=1ms", "politeness.server_delay=0s"]
        options += ["politeness.slow_factor=0", "limits.pages=1500", "memory=50MB"]
        weight = weigh(options, served.web.seeds(5))
    assert weight["pages"] == 1500
    assert weight["crawling"] > weight["idle"]
    assert max(weight["crawling"], weight["closing"]) - weight["idle"] <= 1.15 * 50e6
