"""What becomes of URLs that are not fetched: every decision is counted by its rule, and traced where that is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Counters, Decision
from barkspider.core.records import UrlRow
from barkspider.core.settings import Trace
from barkspider.frontier import Driver
from barkspider.frontier.decisions import QUEUE_FULL, Decisions
from tests.frontier.virtual import Failure, VirtualWeb, batch

Make = Callable[..., Driver]
SITE = "http://a.example"


def told(traced: Sequence[Decision]) -> dict[str, int]:
    return dict(Counter(f"{each.decision}.{each.rule}" for each in traced))


def counted(counters: Counters) -> dict[str, int]:
    ends = {"refused": counters.refused, "failed": counters.failed}
    return counters.decided | {
        f"{end}.{rule}": count for end, by in ends.items() for rule, count in by.items()
    }


class Pages(dict[str, Any]):
    """A site of pages /0 to /29, each of which links to ten others, and one to elsewhere."""

    def __init__(self) -> None:
        for number in range(30):
            near = [f"{SITE}/{(7 * number + step) % 40}" for step in range(10)]
            self[f"{SITE}/{number}"] = [*near, f"http://b{number}.example/", f"{SITE}/no/{number}"]
        self["http://b3.example/"] = Failure("http_503", times=2)
        self["http://b4.example/"] = Failure("http_500")


def web() -> VirtualWeb:
    rules = b"User-agent: *\nDisallow: /no\n"
    digests = {f"{SITE}/{number}": 7 for number in range(30)}
    servers = {"b5.example": "dns_no_name"}
    return VirtualWeb(
        Pages(), robots={SITE: rules, "http://b6.example": 503}, servers=servers, digests=digests
    )


COMMON = {"failed.dns_no_name", "failed.http_500", "failed.http_404", "put_off.retry", "refused.robots"}


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({"frontier": "irlbot"}, COMMON | {"held_back.robots_unknown", "refused.robots_unreachable"}),
        ({"frontier": "irlbot", "budget__base": 2}, COMMON | {"held_back.budget"}),
        ({"frontier": "irlbot", "limits__site_urls": 5}, {"refused.site_limit"}),
        ({"frontier": "irlbot", "limits__site_duplicates": 4}, {"dropped.site_duplicates"}),
        ({"politeness__host_delay": "40s"}, COMMON | {"put_off.far_turn"}),
        ({"sydney__sample": 2}, COMMON | {"held_back.sample"}),
        ({"sydney__sample": 2, "sydney__queue_limit": 10}, {"dropped.queue_full"}),
        ({"limits__domain_urls": 5}, {"refused.domain_limit"}),
        ({"limits__site_duplicates": 4}, {"refused.site_duplicates"}),
        ({"limits__site_duplicates": 4, "sydney__seen": "disk"}, {"refused.site_duplicates"}),
    ],
)
def test_as_many_decisions_are_traced_as_are_counted_by_each_rule(
    sydney: Make, changes: dict[str, Any], rules: set[str]
) -> None:
    crawled, frontier = web(), sydney(trace__sample=1, **{"politeness__retries": 2, **changes})
    crawled.run(frontier, batch(f"{SITE}/0"))
    traced = frontier.traced()
    assert told(traced) == counted(frontier.counters)
    assert rules <= told(traced).keys()
    assert all(each.until is not None for each in traced if each.decision == "put_off")
    assert not frontier.traced(), "each is told once"


def test_nothing_is_traced_unless_it_is_asked_for_and_all_is_counted(sydney: Make) -> None:
    crawled, frontier = web(), sydney(frontier="irlbot")
    crawled.run(frontier, batch(f"{SITE}/0"))
    assert not frontier.traced()
    assert frontier.counters.decided["put_off.retry"]
    assert frontier.counters.refused["robots"] == 30


def test_of_a_url_all_decisions_are_traced_or_none() -> None:
    """In single decisions and in those about many, by whichever rule; a fifth of the URLs, within 5 standard deviations."""
    keys = np.random.default_rng(3).integers(0, 2**64, 10_000, np.uint64)
    rows = [UrlRow(key, 1, 1, 0, 0, 0, 0, b"http://a.example/") for key in keys.tolist()]
    decisions = Decisions(Trace(sample=5))
    for row in rows:
        decisions.put_off(row, "retry", 1.0)
    alone = {each.key for each in decisions.traced()}
    decisions.drop(UrlBatch.from_rows(rows), QUEUE_FULL)
    decisions.hold_back(UrlBatch.from_rows(rows), "budget")
    together = decisions.traced()
    assert 1_800 < len(alone) < 2_200
    assert Counter(each.key for each in together) == dict.fromkeys(alone, 2)


@pytest.mark.parametrize("sample", [0, 1])
def test_the_ends_of_the_share(sample: int) -> None:
    rows = [UrlRow(key, 1, 1, 0, 0, 0, 0, b"http://a.example/") for key in (0, 2**64 - 1)]
    decisions = Decisions(Trace(sample=sample))
    decisions.refuse(rows[0], "robots")
    decisions.fail(rows[1], "http_404")
    decisions.refuse_all(UrlBatch.from_rows(rows), "site_duplicates")
    assert len(decisions.traced()) == 4 * sample
    assert decisions.counters.refused == {"robots": 1, "site_duplicates": 2}


def test_a_run_traces_no_more_than_it_may_and_goes_on_counting() -> None:
    decisions = Decisions(Trace(sample=1, most=3))
    row = UrlRow(9, 1, 1, 0, 0, 0, 0, b"http://a.example/")
    for _ in range(5):
        decisions.put_off(row, "retry", 1.0)
    assert (len(decisions.traced()), decisions.counters.decided) == (3, {"put_off.retry": 5})


def test_decisions_have_the_time_of_their_step(sydney: Make) -> None:
    frontier = sydney(trace__sample=1)
    crawled = web()
    crawled.run(frontier, batch(f"{SITE}/0"), until=30.0)
    times = [each.time for each in frontier.traced()]
    assert times == sorted(times)
    assert times[0] < times[-1] <= 32.0
