"""A wildcard of DNS is found by a real look-up, and ends after so many hosts."""

from __future__ import annotations

import json
from pathlib import Path

from barkspider import crawl, load_settings
from barkspider.engine import open_job
from barkspider.lab.synthweb import WebSpec, running_web

_HOSTS = 30  # more than are looked up while the probe is under way


def test_an_endless_domain_has_so_many_hosts_and_the_log_says_why(tmp_path: Path) -> None:
    spec = WebSpec(
        seed=3,
        pages=60,
        page_bytes=2_000,
        crawl_delay=0.02,
        hazards=frozenset({"wildcard_dns"}),
        hazard_links=2,
    )
    with running_web(spec) as web:
        options = [
            *(
                "scope.level=web",
                "seed=5",
                "memory=64MB",
                f"limits.wildcard_hosts={_HOSTS}",
                "limits.pages=400",
            ),
            *("politeness.host_delay=1ms", "politeness.server_delay=0s", "politeness.slow_factor=0"),
            *(f"{name}={value}" for name, value in web.settings().items()),
        ]
        endless = web.web.hazards["wildcard_dns"].names[0]
        done = crawl(web.web.seeds(1), tmp_path / "job", load_settings(options=options))
        good = web.web.reachable(web.web.seeds(1))
    assert done.stopped_by == "done"  # and not at the limit of pages
    sql = "SELECT url_host_registered_domain = '{}' AS endless, count(*) AS pages FROM pages WHERE fetch_status = 200 GROUP BY 1"
    found = {
        row["endless"]: row["pages"]
        for row in open_job(tmp_path / "job").query(sql.format(endless)).to_pylist()
    }
    assert found == {True: _HOSTS, False: good}
    lines = map(json.loads, (tmp_path / "job" / "log.jsonl").read_text().splitlines())
    assert [line["domain"] for line in lines if line["event"] == "wildcard"] == [endless]
