"""Processes that divide a crawl of a web without a network, on a virtual clock; any of them may be killed.

The post, the journals and the checkpoints are those of the engine in the small: a batch is a file that is copied, a record
survives a kill, and so does what a checkpoint has; all else of a process that is killed is gone.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from barkspider.core.batch import UrlBatch
from barkspider.core.events import (
    Denied,
    FetchPage,
    FetchRobots,
    Outcome,
    PageFetched,
    Received,
    Rest,
    RobotsFetched,
    Seal,
    Sealed,
    Seeds,
)
from barkspider.core.load import load_settings
from barkspider.engine.outcomes import as_rows, from_rows, is_kept
from barkspider.frontier import Driver, open_frontier
from barkspider.frontier.batches import NAME, batch_name, checksum_of, inbox
from barkspider.frontier.ownership import freeze, shares_hosts
from barkspider.lab.simulate.parallel import Crawl, Setup, Simulation
from barkspider.lab.webgraph import WebGraph
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from tests.frontier.virtual import VirtualWeb, batch

SEED = 1  # as `tests.frontier.virtual` has it


def made_up_web(
    pages: int, seed: int, domains: int = 12, hosts: int = 3, links: int = 5
) -> dict[str, list[str]]:
    """Pages in a tree, so that all are reachable from the first, with random links besides: most within the domain, some of
    the others to a few popular pages."""
    choose = Random(seed)
    urls = [
        f"http://w{choose.randrange(hosts)}.d{choose.randrange(domains)}.example/{number}"
        for number in range(pages)
    ]
    near: dict[str, list[str]] = {}
    for url in urls:
        near.setdefault(url.split(".")[1], []).append(url)
    web = {}
    for number, url in enumerate(urls):
        others = [urls[int(pages * choose.random() ** 4)] for _ in range(links // 2)]
        web[url] = list(
            dict.fromkeys(
                [
                    *urls[number * 3 + 1 : number * 3 + 4],
                    *choose.choices(near[url.split(".")[1]], k=links),
                    *others,
                ]
            )
        )
    return web


class Process:
    """One process: its frontier, the records since its last checkpoint, and what is on its way to it."""

    def __init__(self, crawl: Crawling, number: int) -> None:
        self.number, self._crawl = number, crawl
        self.folder = crawl.folder / f"part-{number:04d}"
        self.settings = load_settings(options=[*crawl.options, f"parallel.part={number}"])
        self.journal: list[tuple[float, Any, UrlBatch]] = []
        self.driver: Driver
        self.start(None)

    def start(self, now: float | None) -> None:
        """Begin, or go on from what has survived."""
        self.store = Store.open(Env(), self.folder)
        self.driver = open_frontier(
            self.settings, Env(), self.folder, state=self.store.state, resumed=now, background=False
        )
        for structure in self.driver.structures():
            self.store.add(structure)
        for time, rows, links in self.journal:
            self.driver.replay(time, from_rows(rows, links))
        assert self.driver.exchange is not None
        self.exchange = self.driver.exchange
        self.handed = list(self.exchange.applied)
        self.coming: list[tuple[float, int, Outcome]] = []
        self.wake = 0.0 if now is None else now

    def step(self, now: float) -> None:
        outcomes = []
        while self.coming and self.coming[0][0] <= now:
            outcomes.append(heapq.heappop(self.coming)[2])
        kept = [each for each in outcomes if is_kept(each)]
        if kept:
            links = UrlBatch.join(
                [each.links for each in kept if isinstance(each, PageFetched) and each.links is not None]
            )
            self.journal.append((now, as_rows(kept), links))
        self._crawl.note(self.number, kept)
        instructions, self.wake = self.driver.step(now, outcomes)
        for instruction in instructions:
            if isinstance(instruction, Seal):
                self.push(now, Sealed(instruction))
            elif isinstance(instruction, Rest):
                self._crawl.rest(instruction, now)
            elif isinstance(instruction, FetchPage | FetchRobots) and (
                denied := self._crawl.denied(instruction, now)
            ):
                self.push(now, denied)
            else:
                self.push(now + self._crawl.web.latency, self._crawl.answer(now, instruction))

    def push(self, time: float, outcome: Outcome) -> None:
        heapq.heappush(self.coming, (time, next(self._crawl.order), outcome))

    def post(self) -> None:
        """Let others have what is sealed, and take what they sent."""
        for to, number in self.exchange.unacknowledged():
            there = inbox(self.folder, to) / batch_name(self.number, number)
            if not there.exists():
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes((self.folder / NAME / batch_name(to, number)).read_bytes())

    def receive(self, now: float) -> None:
        mail = inbox(self.folder, self.number)
        for sender, last in enumerate(self.handed):
            while (path := mail / batch_name(sender, last + 1)).exists():
                last += 1
                self.push(now, Received(sender, last, checksum_of(Env(), path)))
            self.handed[sender] = last

    @property
    def is_idle(self) -> bool:
        return not self.coming and self.driver.is_idle() and self.exchange.sorting.is_empty


class Crawling:
    """A crawl by several processes. `applied` counts the pages that each has, which no kill took back."""

    def __init__(
        self,
        pages: Mapping[str, Any],
        folder: Path,
        processes: int,
        *options: str,
        replicas: Sequence[str] = (),
        weights: Mapping[str, int] = {},
        web: VirtualWeb | None = None,
    ) -> None:
        self.web = web or VirtualWeb(pages)
        self.folder, self.order, self.kills = folder, count(), 0
        self.options = [
            f"seed={SEED}",
            "memory=64MB",
            f"parallel.processes={processes}",
            "parallel.interval=1s",
        ]
        self.options += ["politeness.slow_factor=0", *options]
        self.applied = [Counter[str]() for _ in range(processes)]
        self.until: dict[str, float] = {}  # when the turn at a server or a host is free
        self.too_soon = 0
        for number in range(processes):
            part = folder / f"part-{number:04d}"
            part.mkdir(parents=True)
            if replicas or weights:
                freeze(Env(), part, batch(*replicas), weights)
        self.replicas = replicas
        self.processes = [Process(self, number) for number in range(processes)]

    def run(self, seeds: Iterable[str], kills: int = 0, seed: int = 1, often: float = 0.02) -> Counter[str]:
        """Crawl until nothing is left, and so many processes were killed on the way; how often each page was fetched."""
        random, now = Random(seed), 0.0
        given = UrlBatch.join([batch(*seeds, flags=1), batch(*self.replicas)])
        for process in self.processes:
            process.push(0.0, Seeds(given))
        while True:
            for process in self.processes:
                if process.wake <= now or (process.coming and process.coming[0][0] <= now):
                    process.step(now)
                    if random.random() < 0.1:
                        process.driver.validate()
                if random.random() < 0.1:
                    process.store.commit()
                    process.journal.clear()
                    for sender, number in enumerate(process.exchange.committed_applied):
                        self.processes[sender].exchange.acknowledge(process.number, number)
                if self.kills < kills and random.random() < often:
                    self.kills += 1
                    process.driver.close()
                    process.start(now)
            for process in self.processes:
                process.post()
            for process in self.processes:
                process.receive(now)
            if all(process.is_idle for process in self.processes):
                return sum(self.applied, Counter())
            times = [process.wake for process in self.processes]
            times += [process.coming[0][0] for process in self.processes if process.coming]
            assert min(times) < math.inf, "they wait for nothing"
            now = max(now, min(times))

    def note(self, number: int, kept: Iterable[Outcome]) -> None:
        for outcome in kept:
            if isinstance(outcome, PageFetched):
                self.applied[number][outcome.asked.row.url.decode()] += 1

    def answer(self, now: float, instruction: Any) -> Outcome:
        answer = self.web.answer(now, instruction)
        if isinstance(answer, PageFetched | RobotsFetched):
            return replace(answer, seconds=self.web.latency)
        return answer

    def denied(self, asked: FetchPage | FetchRobots, now: float) -> Denied | None:
        """As `engine.neighbours` does."""
        host = f"host {asked.row.host_key if isinstance(asked, FetchPage) else asked.host_key}"
        for name in (asked.address, host):
            if self.until.get(name, 0.0) > now:
                return Denied(asked, self.until[name] - now, at_host=name == host)
        self.until[asked.address] = now + 60.0
        self.until[host] = now + 60.0 if self.shares_hosts else 0.0
        return None

    @cached_property
    def shares_hosts(self) -> bool:
        return shares_hosts(load_settings(options=self.options).parallel)

    def rest(self, rest: Rest, now: float) -> None:
        assert bool(rest.host_key) == self.shares_hosts
        self.until[rest.address] = now + rest.seconds
        self.until[f"host {rest.host_key}"] = now + rest.host_seconds

    def gauge(self, name: str) -> int:
        return sum(process.driver.gauges()[name] for process in self.processes)


def simulated(
    pages: Mapping[str, Sequence[str]], seeds: Sequence[str], setup: Setup, owners: Any = None
) -> tuple[Crawl, list[str]]:
    """The same crawl by the simulation, and the URLs of its pages by number."""
    urls = list(pages)
    number = {url: at for at, url in enumerate(urls)}
    graph = WebGraph.of([[number[link] for link in links] for links in pages.values()], urls=urls)
    simulation = Simulation(graph)
    if owners is None:
        owners = simulation.divider.owners(setup.partition, setup.processes, SEED)
    first = np.array([number[seed] for seed in seeds], np.int32)
    given = [first[owners[first] == process] for process in range(setup.processes)]
    return simulation.crawl(setup, owners, given), urls
