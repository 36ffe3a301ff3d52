"""Pauses: every rule by itself, then all of them at once under random outcomes."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barkspider.core.events import (
    FetchPage,
    FetchRobots,
    HostResolved,
    Outcome,
    PageFetched,
    ResolveHost,
    RobotsFetched,
    Trail,
)
from barkspider.core.load import load_settings
from barkspider.core.records import UrlRow
from barkspider.core.settings import Politeness, Settings, Trace
from barkspider.frontier.decisions import Decisions
from barkspider.frontier.politeness.pauses import HostPace, Multiples, Pauses, ServerPace
from barkspider.frontier.ready import Ready
from tests.frontier.virtual import KEYS, row

ASKED = FetchPage(row("http://a.example/"), "127.0.0.1")
GOOD = PageFetched(ASKED, 200)
TIMEOUT = PageFetched(ASKED, failure="timeout_headers", temporary=True)
IRLBOT = load_settings("irlbot").politeness


def pause(
    politeness: Politeness,
    *outcomes: PageFetched,
    host: HostPace | None = None,
    server: ServerPace | None = None,
) -> tuple[float, float]:
    """The pauses of host and server after the last of some outcomes, each at the end of the pause before."""
    host, server = host or HostPace(), server or ServerPace()
    now = 0.0
    for outcome in outcomes:
        now = max(host.next_time, server.next_time, 0.0)
        Pauses(politeness).answered(host, server, outcome, outcome.temporary, now)
    return host.next_time - now, server.next_time - now


def test_without_budgets_and_troubles_the_delays_are_those_of_the_settings() -> None:
    assert pause(Politeness(host_delay=3.0, server_delay=0.5), GOOD) == (3.0, 0.5)


# ── budgets (IRLbot, 6.1) ──────────────────────────────────────────────────────────────────────────


def paced(politeness: Politeness, *budgets: float) -> tuple[list[HostPace], ServerPace]:
    """Hosts of domains 1, 2 … with these budgets, all on one server."""
    hosts, server = [HostPace() for _ in budgets], ServerPace()
    for domain, (host, budget) in enumerate(zip(hosts, budgets, strict=True), start=1):
        pauses = Pauses(politeness)
        pauses.multiples.learn([domain], [budget])
        pauses.follow_budget(host, None, domain)
        server.join(host)
    return hosts, server


@pytest.mark.parametrize(
    ("budget", "host_delay"), [(0.0, 40.0), (1.0, 40.0), (2.0, 20.0), (10.0, 4.0), (40.0, 1.0), (1000.0, 1.0)]
)
def test_a_budget_divides_the_delay_of_its_hosts_down_to_the_floor(budget: float, host_delay: float) -> None:
    (host,), server = paced(IRLBOT, budget)
    assert pause(IRLBOT, GOOD, host=host, server=server)[0] == host_delay


@pytest.mark.parametrize(
    ("budgets", "server_delay"), [((1, 1), 1.0), ((1, 3), 0.5), ((4, 4, 1), 1 / 3), ((1000, 1), 0.1)]
)
def test_a_server_is_slowed_by_the_mean_budget_of_its_domains(
    budgets: tuple[float, ...], server_delay: float
) -> None:
    hosts, server = paced(IRLBOT, *budgets)
    assert pause(IRLBOT, GOOD, host=hosts[0], server=server)[1] == pytest.approx(server_delay)


def test_a_domain_with_many_hosts_on_a_server_counts_once_and_no_longer_than_they_are_there() -> None:
    (rich, _poor), server = paced(IRLBOT, 9.0, 1.0)
    assert server.mean_budget() == 5.0
    more = [HostPace() for _ in range(3)]
    for host in more:
        host.domain, host.budget = 2, 1.0
        server.join(host)
    assert (server.mean_budget(), server.hosts) == (5.0, 5)
    pauses = Pauses(IRLBOT)
    pauses.multiples.learn([1], [3.0])
    pauses.follow_budget(rich, server, 1)
    assert server.mean_budget() == 2.0
    server.leave(more[0])
    assert server.mean_budget() == 2.0
    server.leave(rich)
    assert (server.mean_budget(), server.hosts) == (1.0, 3)


def test_a_domain_that_falls_back_has_its_delays_in_full_from_its_next_answer_on() -> None:
    pauses, server = Pauses(IRLBOT), ServerPace()
    hosts = [HostPace(), HostPace()]  # of one domain
    pauses.multiples.learn([1], [10.0])
    for host in hosts:
        pauses.follow_budget(host, None, 1)
        server.join(host)
    assert (pauses.host_delay(hosts[0]), pauses.server_delay(server)) == (4.0, 0.1)
    pauses.multiples.learn([1], [1.0])
    for host in hosts:
        pauses.follow_budget(host, server, host.domain)
        assert (pauses.host_delay(host), pauses.server_delay(server)) == (40.0, 1.0)
    assert not len(pauses.multiples)


def test_of_too_many_budgets_those_heard_of_longest_ago_are_forgotten() -> None:
    known = Multiples(most=2)
    known.learn([1, 2], [5.0, 6.0])
    known.learn([1, 3], [7.0, 8.0])
    assert [known.of(domain) for domain in (1, 2, 3)] == [7.0, 1.0, 8.0]


def test_budgets_shorten_nothing_unless_the_settings_say_so() -> None:
    default = Politeness()
    (host,), server = paced(default, 1000.0)
    assert pause(default, GOOD, host=host, server=server) == (2.0, 1.0)


def test_budgets_shorten_neither_crawl_delay_nor_back_off_nor_retry_after() -> None:
    (host,), server = paced(IRLBOT, 1000.0)
    host.crawl_delay = 7.0
    assert pause(IRLBOT, GOOD, host=host, server=server)[0] == 7.0
    (host,), server = paced(IRLBOT, 1000.0)
    assert pause(IRLBOT, TIMEOUT, host=host, server=server)[0] == 80.0
    (host,), server = paced(IRLBOT, 1000.0)
    busy = PageFetched(ASKED, 429, "http_429", retry_after=900.0)
    assert pause(IRLBOT, busy, host=host, server=server)[0] == 900.0


def test_a_floor_above_the_delay_makes_nothing_longer() -> None:
    odd = replace(IRLBOT, host_delay=0.5)
    (host,), server = paced(odd, 50.0)
    assert pause(odd, GOOD, host=host, server=server)[0] == 0.5


# ── what servers ask for ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("asked", "kept"),
    [(-1e9, 4.0), (0.0, 4.0), (4.5, 4.5), (86_399.0, 86_399.0), (1e12, 86_400.0), (math.inf, 86_400.0)],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_kept_within_bounds(status: int, asked: float, kept: float) -> None:
    """A date comes as the seconds until then, which are negative for one in the past."""
    outcome = PageFetched(ASKED, status, f"http_{status}", temporary=True, retry_after=asked)
    assert pause(Politeness(), outcome)[0] == kept
    impatient = Politeness(host_delay=0.0)
    assert pause(impatient, outcome)[0] == max(min(asked, 86_400.0), 1.0)


def test_retry_after_means_nothing_with_another_answer() -> None:
    assert pause(Politeness(), PageFetched(ASKED, 301, retry_after=500.0))[0] == 2.0


def test_crawl_delay_is_kept_up_to_the_cap() -> None:
    for asked, kept in (
        (1.0, 2.0),
        (9.0, 9.0),
        (3600.0, 60.0),
    ):  # beyond the cap the host is not crawled at all
        host = HostPace()
        host.crawl_delay = asked
        assert pause(Politeness(), GOOD, host=host)[0] == kept


# ── trouble ────────────────────────────────────────────────────────────────────────────────────────


def test_back_off_doubles_with_each_trouble_and_halves_with_each_good_answer() -> None:
    patient = Politeness(park_after=100)
    host = HostPace()
    pauses = [pause(patient, outcome, host=host)[0] for outcome in [TIMEOUT] * 4 + [GOOD] * 5]
    assert pauses == [4, 8, 16, 32, 16, 8, 4, 2, 2]


def test_back_off_has_a_cap_that_never_shortens_the_delay() -> None:
    assert pause(Politeness(park_after=500, max_back_off=50.0), *[TIMEOUT] * 200)[0] == 50.0
    assert pause(Politeness(host_delay=70.0, max_back_off=50.0), TIMEOUT)[0] == 70.0


def test_what_says_nothing_about_the_server_changes_nothing() -> None:
    host = HostPace()
    host.trouble = 2
    for outcome in (PageFetched(ASKED, failure="tls_error"), PageFetched(ASKED, failure="x", stale=True)):
        assert pause(Politeness(), outcome, host=host)[0] == 8.0
    assert pause(Politeness(), PageFetched(ASKED, 404, "http_404"), host=host)[0] == 4.0


def test_parking_doubles_while_a_host_fails_and_ends_when_it_answers() -> None:
    host = HostPace()
    outcomes = [TIMEOUT] * 8 + [GOOD] * 3 + [TIMEOUT]
    pauses = [pause(Politeness(), outcome, host=host)[0] for outcome in outcomes]
    assert pauses[:8] == [4, 8, 16, 32, 600, 1200, 2400, 4800]
    assert pauses[8:] == [256, 128, 64, 1200]  # trust comes back step by step


def test_the_longest_parking_is_ten_doublings_and_recovers() -> None:
    host = HostPace()
    assert pause(Politeness(), *[TIMEOUT] * 50, host=host)[0] == 600 * 2**10
    assert pause(Politeness(), *[GOOD] * 15, host=host)[0] == 2.0


# ── slow servers ───────────────────────────────────────────────────────────────────────────────────


def test_a_server_that_gets_slower_is_slowed_down_for_and_recovers() -> None:
    server = ServerPace()
    quick, slow = (replace(GOOD, seconds=seconds) for seconds in (0.1, 5.0))
    assert pause(Politeness(), *[quick] * 10, server=server)[1] == 1.0
    slower = [pause(Politeness(), slow, server=server)[1] for _ in range(20)]
    assert slower == sorted(slower)
    assert 2.0 < slower[0] < 4.0
    assert 9.0 < slower[-1] <= 10.0
    again = [pause(Politeness(), quick, server=server)[1] for _ in range(20)]
    assert again == sorted(again, reverse=True)
    assert again[0] > 7.0
    assert again[-1] == 1.0


def test_the_pause_for_slow_answers_is_capped_and_can_be_turned_off() -> None:
    slow = replace(GOOD, seconds=55.0)
    assert pause(Politeness(), slow)[1] == 30.0
    assert pause(Politeness(slow_factor=0), slow)[1] == 1.0


def test_a_failure_that_comes_quickly_does_not_make_a_slow_server_fast() -> None:
    server = ServerPace()
    pause(Politeness(), replace(GOOD, seconds=5.0), server=server)
    assert pause(Politeness(), replace(TIMEOUT, seconds=0.001), server=server)[1] == 10.0
    assert pause(Politeness(), replace(TIMEOUT, seconds=9.0), server=server)[1] == 12.0


# ── all at once ────────────────────────────────────────────────────────────────────────────────────


class Expected:
    """The slow reference twin: the earliest next request to each host and server, from the outcomes alone."""

    def __init__(self, politeness: Politeness, domain_of: dict[int, int]) -> None:
        self.politeness, self.domain_of = politeness, domain_of
        self.earliest: dict[Any, float] = {}
        self.troubles: Counter[int] = Counter()
        self.crawl_delay: dict[int, float] = {}
        self.budget: dict[int, float] = {}  # by domain
        self.averages: dict[str, float] = {}
        self.domains: dict[str, set[int]] = {}

    def scaled(self, delay: float, floor: float, budget: float) -> float:
        on = self.politeness.scale_by_budget and budget > 1
        return max(delay / budget, min(floor, delay)) if on else delay

    def learn(
        self, host: int, address: str, outcome: PageFetched | RobotsFetched, bad: bool, now: float
    ) -> None:
        politeness = self.politeness
        if bad:
            self.troubles[host] = min(self.troubles[host] + 1, politeness.park_after + 10)
        elif outcome.status:
            self.troubles[host] = max(self.troubles[host] - 1, 0)
        budget = self.budget.get(self.domain_of[host], 1.0)
        pauses = [
            self.scaled(politeness.host_delay, politeness.host_delay_floor, budget),
            min(self.crawl_delay.get(host, 0.0), politeness.max_crawl_delay),
        ]
        if self.troubles[host]:
            pauses.append(min(politeness.host_delay * 2 ** self.troubles[host], politeness.max_back_off))
        if outcome.retry_after is not None and outcome.status in (429, 503):
            pauses.append(min(max(outcome.retry_after, 1.0), politeness.max_retry_after))
        if bad and self.troubles[host] >= politeness.park_after:
            pauses.append(politeness.park_time * 2 ** (self.troubles[host] - politeness.park_after))
        self.earliest[host] = max(self.earliest.get(host, 0.0), now + max(pauses))
        old = self.averages.get(address)
        if not bad or old is None or outcome.seconds >= old:
            self.averages[address] = outcome.seconds if old is None else old + (outcome.seconds - old) / 4
        there = [self.budget.get(domain, 1.0) for domain in self.domains[address]]
        delay = self.scaled(politeness.server_delay, politeness.server_delay_floor, sum(there) / len(there))
        slow = min(politeness.slow_factor * self.averages[address], politeness.max_slow_delay)
        self.earliest[address] = now + max(delay, slow)


def random_answer(random: Random, asked: FetchPage) -> PageFetched:
    seconds = random.choice([0.05, 0.3, 4.0, 20.0])
    kind = random.random()
    if kind < 0.6:
        return PageFetched(asked, random.choice([200, 200, 301]), seconds=seconds)
    if kind < 0.7:
        return PageFetched(asked, 404, "http_404", seconds=seconds)
    if kind < 0.8:
        return PageFetched(asked, failure="timeout_connect", temporary=True, seconds=seconds)
    if kind < 0.85:
        return PageFetched(asked, failure="tls_error", seconds=seconds)
    status, after = random.choice([429, 500, 503]), random.choice([None, -5.0, 30.0, 1e9])
    return PageFetched(asked, status, f"http_{status}", True, after, seconds=seconds)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 8),
    st.integers(1, 4),
    st.sampled_from([Politeness(), IRLBOT, Politeness(host_delay=0.0, server_delay=3.0, park_after=2)]),
    st.integers(0, 10**6),
)
def test_no_request_comes_before_the_delays_in_force(
    hosts: int, servers: int, politeness: Politeness, seed: int
) -> None:
    random, order = Random(seed), count()
    names = [f"h{number}.d{number % 3}.example" for number in range(hosts)]
    rows = [row(f"http://{name}/{number}") for name in names for number in range(12)]
    random.shuffle(rows)
    expected = Expected(politeness, {each.host_key: each.pld_key for each in rows})
    decisions = Decisions(Trace())
    counters = decisions.counters
    later: list[tuple[float, int, UrlRow]] = []

    def put_off(time: float, again: UrlRow, _: Trail, rule: str) -> None:
        heapq.heappush(later, (time, next(order), again))

    ready = Ready(Settings(seed=1, politeness=politeness), decisions, 100, put_off)
    robots = {KEYS.of(name): random.choice([0, 0, 5, 30]) for name in names}
    address_of = {name: f"127.0.0.{random.randrange(servers)}" for name in names}
    coming: list[tuple[float, int, Outcome]] = []
    busy: set[Any] = set()
    now, requests = 0.0, 0
    while rows or ready.next_time() < math.inf or coming or later:
        while later and later[0][0] <= now:
            back = heapq.heappop(later)[2]
            ready.put(back, now)
        while rows and random.random() < 0.5:
            taken = rows.pop()
            expected.budget.setdefault(taken.pld_key, random.choice([1.0, 1.0, 2.5, 70.0]))
            ready.multiples.learn([taken.pld_key], [expected.budget[taken.pld_key]])
            ready.put(taken, now)
        while coming and coming[0][0] <= now:
            outcome = heapq.heappop(coming)[2]
            if isinstance(outcome, HostResolved):
                domain = expected.domain_of[outcome.asked.host_key]
                expected.domains.setdefault(outcome.addresses[0], set()).add(domain)
                ready.resolved(outcome, now)
                continue
            assert isinstance(outcome, PageFetched | RobotsFetched)
            asked = outcome.asked
            host = asked.row.host_key if isinstance(asked, FetchPage) else asked.host_key
            busy -= {host, asked.address}
            if isinstance(outcome, RobotsFetched):
                if outcome.status == 200:
                    expected.crawl_delay[host] = robots[host]
                expected.learn(host, asked.address, outcome, outcome.status == 503, now)
                ready.robots(outcome, now)
            else:
                expected.learn(host, asked.address, outcome, outcome.temporary, now)
                ready.page_fetched(outcome, now)
        for instruction in ready.take(now, random.randrange(1, 6)):
            if isinstance(instruction, ResolveHost):
                found = HostResolved(instruction, (address_of[instruction.host],), ttl=1e9)
                heapq.heappush(coming, (now, next(order), found))
                continue
            requests += 1
            host = instruction.row.host_key if isinstance(instruction, FetchPage) else instruction.host_key
            assert not busy & {host, instruction.address}
            assert now >= expected.earliest.get(host, 0.0) - 1e-6
            assert now >= expected.earliest.get(instruction.address, 0.0) - 1e-6
            busy |= {host, instruction.address}
            answer: PageFetched | RobotsFetched
            if isinstance(instruction, FetchRobots):
                text = f"User-agent: *\nCrawl-delay: {robots[host]}\n".encode()
                broken = random.random() < 0.2
                answer = RobotsFetched(
                    instruction, 503 if broken else 200, b"" if broken else text, seconds=0.1
                )
            else:
                answer = random_answer(random, instruction)
            heapq.heappush(coming, (now + answer.seconds, next(order), answer))
        ready.validate()
        times = [ready.next_time(), *(heap[0][0] for heap in (coming, later) if heap)]
        now = max(now, min(times) if min(times) < math.inf else now)
    assert (counters.queued, counters.in_flight, ready.under_way) == (0, 0, 0)
    assert requests > hosts
