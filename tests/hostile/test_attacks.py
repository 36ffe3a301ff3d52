"""Each attack in small: the honest hosts get their pages all the same, and the crawl ends as it should."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from barkspider import Statistics, load_settings
from barkspider.engine import Crawl, Job
from barkspider.storage.env import Env
from tests.hostile.attacks.attack import NOBODY, Attack, attacked
from tests.hostile.attacks.good import GOOD_ADDRESSES, GOOD_RECORDS, GOOD_SEEDS, good
from tests.hostile.attacks.table import ATTACKS
from tests.hostile.server import Hostile, hostile_server

_BEFORE = 2  # pages of each honest host when the attack begins: before, nobody can be told from anybody
_WANTED = 15  # pages of each when it is over
_LONG = 30.0  # seconds: many times what they need when nobody attacks

_OPTIONS = (
    *("politeness.host_delay=50ms", "politeness.server_delay=10ms", "politeness.slow_factor=0", "scope.level=web"),
    *("limits.grace=0s", "memory=128MB", "seed=3", "agent.contact=https://example.org/"),
)  # fmt: skip


def _served(server: Hostile) -> dict[str, int]:
    """Pages that each honest host was asked for."""
    seen = [request.host for request in server.requests if request.target[1:].isdigit()]
    return {host: seen.count(host) for host in GOOD_RECORDS}


async def _crawl(job: Job, server: Hostile, seeds: Sequence[str]) -> Statistics:
    """Until every honest host has had its turns, or time is up; the attackers come in as further seeds."""
    crawl = Crawl.open(job)
    running = asyncio.create_task(crawl.run())
    end = asyncio.get_running_loop().time() + _LONG
    for pages in (_BEFORE, _WANTED):
        while asyncio.get_running_loop().time() < end and min(_served(server).values()) < pages:
            done, _ = await asyncio.wait([running], timeout=0.05)
            assert not done
        if pages == _BEFORE and seeds:
            await crawl.add(seeds)
    crawl.stop()
    return await running


@pytest.mark.parametrize("attack", [NOBODY, *ATTACKS], ids=lambda attack: attack.name)
def test_honest_hosts_get_their_pages(tmp_path: Path, attack: Attack) -> None:
    attackers = attack.make(attack.few)
    with (
        hostile_server(dict.fromkeys(GOOD_RECORDS, good), {}, GOOD_ADDRESSES) as server,
        attacked(attackers, server.http_port) as found,
    ):
        options = [*found, *_OPTIONS, f"fetch.in_flight={attack.slots}", *attack.options]
        job = Job.create(tmp_path / "job", load_settings(options=options), GOOD_SEEDS, Env())
        try:
            statistics = asyncio.run(_crawl(job, server, attackers.seeds))
        finally:
            job.close()
        assert min(_served(server).values()) >= _WANTED, _served(server)
    assert statistics.stopped_by == "request"
    events = [json.loads(line) for line in (tmp_path / "job" / "log.jsonl").read_text().splitlines()]
    assert [event for event in events if event["event"] == "internal_error"] == []
