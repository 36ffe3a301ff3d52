"""Ten honest hosts beside attackers, four for each slot, on a virtual clock: who gets slots, turns and requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from barkspider.core.events import (
    FetchPage,
    FetchRobots,
    HostResolved,
    Instruction,
    Outcome,
    PageFetched,
    ResolveHost,
    RobotsFetched,
)
from barkspider.frontier import Driver
from barkspider.frontier.politeness.hosts import MOST_ORIGINS
from barkspider.url import split
from tests.frontier.conftest import make_frontier
from tests.frontier.virtual import VirtualWeb, batch

Make = Callable[..., Driver]

SLOTS = 50
GOOD = [f"www.good-{number}.example" for number in range(10)]
BEGIN, END = 8.0, 28.0  # the attack begins at 5
PACE = {"politeness__host_delay": "200ms", "politeness__server_delay": "100ms", "politeness__slow_factor": 0}


@dataclass
class Attacked(VirtualWeb):
    """Honest hosts with as many pages as anyone wants, and a page that comes after five seconds and leads to others.

    By host: seconds that a page takes, or looking it up; silent ones take a while and say nothing.
    """

    led: list[str] = field(default_factory=list)
    page_takes: dict[str, float] = field(default_factory=dict)
    lookup_takes: dict[str, float] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)

    def seconds(self, instruction: Instruction, url: str) -> float:
        if isinstance(instruction, ResolveHost):
            return self.lookup_takes.get(instruction.host, self.latency)
        host = split(url).host
        if host in self.silent:
            return 25.0
        if isinstance(instruction, FetchRobots) or url in self.slow:
            return super().seconds(instruction, url)
        return 5.0 if host == "lead.example" else self.page_takes.get(host, self.latency)

    def answer(self, now: float, instruction: Instruction) -> Outcome:
        found = super().answer(now, instruction)
        if isinstance(instruction, ResolveHost):
            return (
                HostResolved(instruction, (), "dns_failure")
                if instruction.host in self.lookup_takes
                else found
            )
        url = instruction.url if isinstance(instruction, FetchRobots) else instruction.row.url.decode()
        if split(url).host not in self.silent:
            return found
        if isinstance(instruction, FetchRobots):
            return RobotsFetched(instruction, 0)
        return PageFetched(instruction, failure="timeout_headers", temporary=True)

    def page(self, asked: FetchPage, url: str) -> PageFetched:
        host, path = split(url).host, split(url).target
        links = self.led if host == "lead.example" else []
        if host in GOOD:
            links = [f"http://{host}/{5 * int(path[1:]) + step}" for step in range(1, 6)]
        return PageFetched(asked, 200, links=batch(*links, depth=1))

    def served(self, hosts: list[str], begin: float = BEGIN, end: float = END) -> int:
        """Requests to some hosts within a time."""
        return sum(begin <= time < end and host in hosts for time, host, _, _ in self.requests)


def crawl(make: Make, web: Attacked, until: float = END, **options: object) -> Driver:
    frontier = make(sydney__sample=0, fetch__in_flight=SLOTS, **PACE, **options)
    web.run(
        frontier, batch("http://lead.example/", *(f"http://{host}/0" for host in GOOD)), until, validate=False
    )
    frontier.validate()
    return frontier


def attackers(count: int, one_domain: bool = False, server: str = "") -> tuple[list[str], dict[str, str]]:
    """Names, and an address for each, 200 in a network; or one for all."""
    names = [f"s{number}.evil.example" if one_domain else f"evil-{number}.example" for number in range(count)]
    return names, {
        name: server or f"10.0.{number // 200}.{number % 200}" for number, name in enumerate(names)
    }


def silent(one_domain: bool = False, server: str = "") -> Attacked:
    names, servers = attackers(4 * SLOTS, one_domain, server)
    return Attacked({}, servers=servers, led=[f"http://{name}/" for name in names], silent=set(names))


def slow_pages(seconds: float, pages: int = 1) -> Attacked:
    names, servers = attackers(4 * SLOTS)
    led = [f"http://{name}/{page}" for page in range(pages) for name in names]
    return Attacked({}, servers=servers, led=led, page_takes=dict.fromkeys(names, seconds))


def nameless(one_domain: bool) -> Attacked:
    names, _ = attackers(4 * SLOTS, one_domain)
    return Attacked({}, led=[f"http://{name}/" for name in names], lookup_takes=dict.fromkeys(names, 35.0))


ATTACKS = {
    "silent subdomains": lambda: silent(one_domain=True),
    "silent domains": silent,
    "silent domains at one address": lambda: silent(server="10.0.0.1"),
    "dripping bodies": lambda: slow_pages(60.0),
    "bodies that take three seconds": lambda: slow_pages(3.0, pages=10),
    "subdomains without name servers": lambda: nameless(one_domain=True),
    "domains without name servers": lambda: nameless(one_domain=False),
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    """The honest hosts when nobody attacks."""
    web = Attacked({})

    def make(**changes: Any) -> Driver:
        return make_frontier(tmp_path_factory.mktemp("alone"), **changes)

    crawl(make, web).close()
    return web


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_whoever_answers_quickly_keeps_its_rate(
    sydney: Make, alone: Attacked, attack: Callable[[], Attacked]
) -> None:
    attacked = attack()
    crawl(sydney, attacked)
    assert attacked.served(GOOD) >= 0.9 * alone.served(GOOD) > 800


def test_whoever_turns_slow_after_many_quick_answers_does_not_stop_the_others(
    sydney: Make, alone: Attacked
) -> None:
    """It takes sixteen for a server to be trusted; then the next answer takes a minute, at all servers at once."""
    names, servers = attackers(4 * SLOTS)
    quick = [f"http://{name}/{page}" for page in range(16) for name in names]
    late = [f"http://{name}/late" for name in names]
    web = Attacked({}, servers=servers, led=[*quick, *late], slow=dict.fromkeys(late, 60.0))
    crawl(sydney, web)
    assert sum(url.endswith("late") for *_, url in web.requests) > SLOTS // 2
    assert web.served(GOOD) >= 0.9 * alone.served(GOOD)


@pytest.mark.parametrize("attack", ["silent subdomains", "silent domains", "dripping bodies"])
def test_newcomers_get_in_beside_an_attack(sydney: Make, attack: str) -> None:
    web = ATTACKS[attack]()
    fresh = [f"www.fresh-{number}.example" for number in range(20)]
    web.led += [f"http://{host}/" for host in fresh]
    crawl(sydney, web, until=BEGIN)
    assert {host for host in fresh if f"http://{host}/" in web.fetched()} == set(fresh)


@pytest.mark.parametrize("latency", [0.3, 8.0])
def test_hosts_that_nobody_knows_use_nearly_all_slots(sydney: Make, latency: float) -> None:
    """Each has a name to look up, a robots.txt and a page, and all take the same time, so no slot need ever be idle."""
    hosts = 40 * SLOTS
    web = VirtualWeb({}, latency=latency)
    frontier = sydney(sydney__sample=0, fetch__in_flight=SLOTS, politeness__host_delay="0s")
    took = web.run(
        frontier, batch(*(f"http://www.h{number}.example/" for number in range(hosts))), validate=False
    )
    assert len(web.fetched()) == hosts
    assert took <= 1.2 * 3 * hosts * latency / SLOTS


def test_slow_and_silent_hosts_are_not_forgotten(sydney: Make) -> None:
    """When nobody else wants slots they have them all: every host is tried as often as the settings say."""
    web = silent()
    frontier = sydney(sydney__sample=0, fetch__in_flight=SLOTS, politeness__retries=1)
    web.run(frontier, batch(*web.led), validate=False)
    assert frontier.counters.refused == {"robots_unreachable": 4 * SLOTS}
    assert len(web.requests) == 8 * SLOTS


# ── turns at a server ──────────────────────────────────────────────────────────────────────────────


def test_a_domain_with_many_names_gets_one_turn_in_two_at_the_address_of_another(
    sydney: Make, alone: Attacked
) -> None:
    """Its names all lead to the address of an honest host, and answer as that does."""
    victim = GOOD[0]
    names, servers = attackers(1_000, one_domain=True, server="10.9.9.9")
    led = [f"http://{name}/{page}" for page in range(3) for name in names]
    attacked = Attacked({}, servers={victim: "10.9.9.9", **servers}, led=led)
    crawl(sydney, attacked)
    assert attacked.served([victim]) >= 0.9 * alone.served([victim]) > 80
    assert attacked.closest(by=2) >= 0.1  # and the pauses of the server are kept


def test_turns_at_a_server_go_round_by_domain(sydney: Make) -> None:
    hosts = [*(f"s{number}.one.example" for number in range(6)), "two.example", "three.example"]
    web = VirtualWeb({}, servers=dict.fromkeys(hosts, "10.0.0.1"))
    frontier = sydney(sydney__sample=0, politeness__obey_robots=False, politeness__host_delay="0s")
    web.run(frontier, batch(*(f"http://{host}/{page}" for page in range(2) for host in hosts)))
    order = [host.split(".")[-2] for _, host, _, _ in web.requests]
    assert order[:6] in (["one", "two", "three"] * 2, ["one", "three", "two"] * 2)
    assert len(order) == 16


# ── robots.txt of others ───────────────────────────────────────────────────────────────────────────


def redirecting(target: Callable[[int], str], count: int = 400) -> Attacked:
    names, servers = attackers(count)
    robots = {f"http://{name}": target(number) for number, name in enumerate(names)}
    return Attacked({}, robots=robots, servers=servers, led=[f"http://{name}/" for name in names])


def test_a_robots_txt_that_leads_to_others_takes_few_of_their_turns(sydney: Make, alone: Attacked) -> None:
    victim = GOOD[0]
    attacked = redirecting(lambda number: f"http://{victim}/led?{number}")
    crawl(sydney, attacked)
    led = [url for time, _, _, url in attacked.requests if "led" in url and time >= BEGIN]
    assert attacked.served([victim]) - len(led) >= 0.9 * alone.served([victim]) > 80
    assert 0 < len(led) < 0.1 * alone.served([victim])


def test_what_a_site_forbids_is_not_fetched_as_the_robots_txt_of_others(sydney: Make) -> None:
    """To them it is unavailable, so that they may be crawled (RFC 9309, 2.3.1.3); so it is after too many redirects."""
    web = redirecting(lambda number: f"http://shy.example/led?{number}", count=5)
    web.robots = {**web.robots, "http://shy.example": b"User-agent: *\nDisallow: /led"}
    frontier = sydney(sydney__sample=0)
    web.run(frontier, batch(*web.led))
    assert [url for *_, url in web.requests if "shy.example" in url] == ["http://shy.example/robots.txt"]
    assert sorted(web.fetched()) == sorted(web.led)


def test_for_more_origins_than_a_few_a_robots_txt_elsewhere_could_not_be_had(sydney: Make) -> None:
    """They are asked again later, and not crawled meanwhile: nobody can make us overlook the rules of others."""
    web = redirecting(lambda number: f"http://busy.example/led?{number}", count=20)
    web.slow = {"http://busy.example/robots.txt": 5.0}  # all come while it is asked
    frontier = sydney(sydney__sample=0, politeness__retries=0)
    web.run(frontier, batch(*web.led))
    assert frontier.counters.refused == {"robots_unreachable": 12}
    assert len([url for url in web.fetched() if "evil" in url]) == 8


def test_a_robots_txt_of_another_domain_is_still_read_and_obeyed(sydney: Make) -> None:
    robots: dict[str, bytes | int | str | list[bytes | int | str]] = {
        "http://old.example": "http://new.example/robots.txt",
        "http://older.example": "http://new.example/rules/of-older",
        "http://new.example": b"User-agent: *\nDisallow: /no",
        "http://new.example/rules/of-older": b"User-agent: *\nDisallow: /never",
    }
    web = VirtualWeb({}, robots=robots)
    frontier = sydney(sydney__sample=0)
    web.run(frontier, batch("http://old.example/no", "http://old.example/", "http://older.example/never"))
    assert sorted(set(web.fetched())) == ["http://new.example/rules/of-older", "http://old.example/"]
    assert frontier.counters.refused == {"robots": 2}


def test_two_sites_whose_robots_txt_lead_to_each_other_do_not_wait_for_ever(sydney: Make) -> None:
    robots: dict[str, bytes | int | str | list[bytes | int | str]] = {
        "http://a.example": "http://b.example/x",
        "http://b.example": "http://a.example/y",
        "http://b.example/x": b"",
        "http://a.example/y": b"",
    }
    web = VirtualWeb({}, robots=robots)
    frontier = sydney(sydney__sample=0)
    web.run(frontier, batch("http://a.example/1", "http://b.example/1", "http://a.example/2"))
    assert {"http://a.example/1", "http://b.example/1", "http://a.example/2"} <= set(web.fetched())


# ── ports ──────────────────────────────────────────────────────────────────────────────────────────


def test_of_a_host_with_thousands_of_ports_a_few_are_crawled_and_those_of_the_web_always(
    sydney: Make,
) -> None:
    ports = 5_000
    seeds = [f"http://a.example:{10_000 + number}/" for number in range(ports)]
    web = VirtualWeb({})
    frontier = sydney(sydney__sample=0, politeness__host_delay="0s", politeness__server_delay="0s")
    web.run(frontier, batch(*seeds, "http://a.example/", "https://a.example/"), validate=False)
    frontier.validate()
    assert frontier.counters.refused == {"too_many_origins": ports - MOST_ORIGINS}
    assert {"http://a.example/", "https://a.example/"} <= set(web.fetched())
    assert len(web.fetched()) == MOST_ORIGINS + 2
