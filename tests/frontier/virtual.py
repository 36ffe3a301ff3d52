"""A web without a network: a frontier is run against it on a virtual clock, and everything is logged."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count

from barkspider.core.batch import UrlBatch
from barkspider.core.events import (
    CheckIn,
    CheckOut,
    DomainProbed,
    FetchPage,
    FetchRobots,
    Frontier,
    HostResolved,
    Instruction,
    LeaseLost,
    Outcome,
    PageFetched,
    ProbeDomain,
    Redirect,
    ResolveHost,
    Rest,
    RobotsFetched,
    Score,
    Seal,
    Seeds,
)
from barkspider.core.records import Flag, UrlRow
from barkspider.engine.visits import check_in, check_out
from barkspider.sites import Registry
from barkspider.url import Domains, KeyMaker, split

KEYS, DOMAINS = KeyMaker(1), Domains()


@cache
def _keys(url: str) -> tuple[int, int, int]:
    host = split(url).host
    return KEYS.of(url), KEYS.of(host), KEYS.of(DOMAINS.pay_level(host))


def row(url: str, depth: int = 0, flags: int = 0, hops: int = 0) -> UrlRow:
    return UrlRow(*_keys(url), depth, hops, 0, flags, url.encode())


def batch(*urls: str, depth: int = 0, flags: int = 0) -> UrlBatch:
    return UrlBatch.from_rows([row(url, depth, flags) for url in urls])


def random_web(hosts: int, pages: int, links: int, seed: int) -> dict[str, list[str]]:
    """Pages in a tree, so that all are reachable from the first, with random links besides."""
    choose = random.Random(seed)
    urls = [f"http://h{number % hosts}.example/{number}" for number in range(pages)]
    return {
        url: [*urls[number * 3 + 1 : number * 3 + 4], *choose.choices(urls, k=choose.randrange(links + 1))]
        for number, url in enumerate(urls)
    }


@dataclass(frozen=True)
class Failure:
    """What a page does instead of being there; `times` it does so before it is."""

    name: str
    temporary: bool = True
    times: int = 10**9
    retry_after: float | None = None


@dataclass
class VirtualWeb:
    """`pages` by URL: a list of links, a URL to redirect to, or a failure."""

    pages: Mapping[str, Sequence[str] | str | Failure]
    # By origin: a text, a status, a URL to redirect to, or a list of such, one for each request, the last for all more.
    robots: Mapping[str, bytes | int | str | list[bytes | int | str]] = field(default_factory=dict)
    ages: Mapping[str, float] = field(default_factory=dict)  # max_age of robots.txt by origin
    servers: Mapping[str, str] = field(default_factory=dict)  # by host; unnamed hosts have one of their own
    latency: float = 0.01
    digests: Mapping[str, int] = field(default_factory=dict)
    requests: list[tuple[float, str, str, str]] = field(default_factory=list)  # time, host, address, URL
    stale: set[str] = field(default_factory=set)  # URLs whose first request finds a dead connection
    slow: Mapping[str, float] = field(default_factory=dict)  # latency by URL
    registry: Registry | None = None  # of sites, for a frontier that goes by these
    owner: str = "one"
    wildcards: Mapping[str, Sequence[str]] = field(default_factory=dict)  # addresses of any name, by domain
    probed: list[str] = field(default_factory=list)

    def run(
        self,
        frontier: Frontier,
        seeds: UrlBatch,
        until: float = math.inf,
        validate: bool = True,
        now: float = 0.0,
    ) -> float:
        """Step the frontier until it is finished or the time is over; the time that it is then."""
        order = count()
        coming: list[tuple[float, int, Outcome]] = [(now, next(order), Seeds(seeds))]
        while True:
            outcomes = []
            while coming and coming[0][0] <= now:
                outcomes.append(heapq.heappop(coming)[2])
            instructions, wake = frontier.step(now, outcomes)
            if validate:
                frontier.validate()
            for instruction in instructions:
                answer = self.answer(now, instruction)
                url = instruction.row.url.decode() if isinstance(instruction, FetchPage) else ""
                url = instruction.url if isinstance(instruction, FetchRobots) else url
                seconds = self.seconds(instruction, url)
                if isinstance(answer, PageFetched | RobotsFetched):
                    answer = replace(answer, seconds=seconds)
                heapq.heappush(coming, (now + seconds, next(order), answer))
            if frontier.finished() or now > until:
                return now
            times = [wake, *([coming[0][0]] if coming else [])]
            assert min(times) < math.inf, "the frontier waits for nothing"
            now = max(now, min(times))

    def seconds(self, instruction: Instruction, url: str) -> float:
        """How long an instruction takes; `url` is "" for a name to look up."""
        return self.slow.get(url, self.latency)

    def answer(self, now: float, instruction: Instruction) -> Outcome:
        assert not isinstance(instruction, Seal | Rest | Score), "it is for other processes"
        if isinstance(instruction, CheckOut | CheckIn):
            assert self.registry is not None
            if isinstance(instruction, CheckIn):
                return check_in(self.registry, instruction)
            return check_out(self.registry, self.owner, instruction)
        if isinstance(instruction, ProbeDomain):
            self.probed.append(instruction.domain)
            return DomainProbed(instruction, tuple(self.wildcards.get(instruction.domain, ())))
        if isinstance(instruction, ResolveHost):
            address = self.servers.get(
                instruction.host, f"127.9.{instruction.host_key % 256}.{instruction.host_key % 251}"
            )
            if address in ("dns_no_name", "dns_failure"):
                return HostResolved(instruction, (), address)
            return HostResolved(instruction, (address,))
        url = instruction.url if isinstance(instruction, FetchRobots) else instruction.row.url.decode()
        self.requests.append((now, split(url).host, instruction.address, url))
        stale = url in self.stale and self.times(url) == 1
        if isinstance(instruction, FetchRobots):
            if stale:
                return RobotsFetched(instruction, 0, stale=True)
            name = url.removesuffix("/robots.txt")
            said = self.robots.get(name, 404)
            if isinstance(said, list):
                said = said[min(self.times(url), len(said)) - 1]
            if isinstance(said, int):
                return RobotsFetched(instruction, said)
            if isinstance(said, str):
                return RobotsFetched(instruction, 301, redirect=said)
            return RobotsFetched(instruction, 200, said, max_age=self.ages.get(name))
        return PageFetched(instruction, failure="stale", stale=True) if stale else self.page(instruction, url)

    def recovered(self, held: Mapping[int, int]) -> list[Outcome]:
        """What the database of sites says to a process that has started again, and has these."""
        assert self.registry is not None
        found = self.registry.renew(self.owner, set(held.items()))
        lost = tuple(item for item in held.items() if found.get(item[0]) != item[1])
        return [LeaseLost(lost)] if lost else []

    def page(self, asked: FetchPage, url: str) -> PageFetched:
        what = self.pages.get(url, Failure("http_404", temporary=False))
        if isinstance(what, Failure):
            if self.times(url) <= what.times:
                status = int(what.name[5:]) if what.name.startswith("http_") else 0
                return PageFetched(asked, status, what.name, what.temporary, what.retry_after)
            what = []
        if isinstance(what, str):
            target = row(
                what.partition("#")[0].replace("index.html", ""),
                asked.row.depth,
                Flag.REDIRECT,
                asked.row.hops + 1,
            )
            return PageFetched(asked, 302, redirect=Redirect(target, what.encode()))
        return PageFetched(
            asked, 200, links=batch(*what, depth=asked.row.depth + 1), digest=self.digests.get(url, 0)
        )

    def times(self, url: str) -> int:
        return sum(requested == url for *_, requested in self.requests)

    def fetched(self) -> list[str]:
        return [url for *_, url in self.requests if not url.endswith("/robots.txt")]

    def closest(self, by: int) -> float:
        """The shortest time between two requests to a host (by=1) or a server (by=2)."""
        last: dict[str, float] = {}
        shortest = math.inf
        for request in self.requests:
            name = str(request[by])
            shortest = min(shortest, request[0] - last.get(name, -math.inf))
            last[name] = request[0]
        return shortest
