"""What an operation of `Ready` costs with a million hosts waiting, in CPU microseconds, and what a host weighs.

Every host has been resolved and has its robots.txt, has one URL queued and waits for its pause; four share a
server. Then rounds of about 500 hosts at a time: `take` gives a request for each, its outcome arrives, the next
URL of the host is `put`. Hosts come up in another order than they were made, so that memory is read as in a crawl.
Time is virtual. Beside it, for the same number of hosts: `heapq` alone, which is the lower bound, and a list
kept sorted by `bisect.insort`.
"""

from __future__ import annotations

import bisect
import gc
import heapq
import os
import time
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from barkspider.core.events import (
    FetchPage,
    FetchRobots,
    HostResolved,
    PageFetched,
    ResolveHost,
    RobotsFetched,
)
from barkspider.core.records import UrlRow
from barkspider.core.settings import Dns, Fetch, Politeness, Settings
from barkspider.frontier.decisions import Decisions
from barkspider.frontier.ready import Ready
from barkspider.url import Domains, KeyMaker

_FEW, _MANY, _MANY_QUICK = 10_000, 1_000_000, 200_000
_DELAY = 100.0  # seconds, of virtual time
_AT_ONCE = 500
_LATENCY = 0.1  # seconds, of virtual time too
_KEYS = KeyMaker(1)
_HOSTS_PER_SERVER = 4
_MOST_MICROSECONDS, _MOST_GROWTH, _MOST_BYTES = 15.0, 2.0, 900


def run(quick: bool) -> dict[str, Any]:
    """Measures 10,000 and a million hosts (200,000 when `quick`); times are the best of three runs of rounds."""
    many = _MANY_QUICK if quick else _MANY
    figures: dict[str, Any] = {"hosts": many}
    measured = {}
    for hosts in (_FEW, many):
        measured[hosts] = _measure(hosts, rounds=50 if quick else 200)
        figures |= {f"{name}_with_{hosts}": round(value, 2) for name, value in measured[hosts].items()}
    names = ("put", "take", "outcome")
    slowest = max(measured[many][f"{name}_microseconds"] for name in names)
    growth = sum(measured[many][f"{name}_microseconds"] for name in names) / sum(
        measured[_FEW][f"{name}_microseconds"] for name in names
    )
    values = (
        ("microseconds of the slowest operation", slowest, _MOST_MICROSECONDS),
        (f"times the cost of {_FEW} hosts", growth, _MOST_GROWTH),
        ("bytes per host", measured[many]["bytes_per_host"], _MOST_BYTES),
    )
    targets = [
        {"name": name, "value": round(value, 2), "target": target, "holds": value <= target}
        for name, value, target in values
    ]
    return {"figures": figures, "targets": targets}


def _measure(hosts: int, rounds: int) -> dict[str, float]:
    rows = [_row(number) for number in range(hosts)]
    Domains()  # the list of public suffixes is there once, whoever asks
    gc.collect()
    before = _resident()
    politeness = Politeness(host_delay=_DELAY, server_delay=0.0)
    settings = Settings(
        seed=1, politeness=politeness, fetch=Fetch(in_flight=10_000), dns=Dns(in_flight=10_000)
    )
    ready = Ready(settings, Decisions(settings.trace), hosts, _never)
    start = time.process_time()
    for row in rows:
        ready.put(row, 0.0)
    first = time.process_time() - start
    _introduce(ready, hosts)
    gc.collect()
    size = _resident() - before
    best = [min(times) for times in zip(*(_rounds(ready, rounds) for _ in range(3)), strict=True)]
    assert len(ready) == hosts
    return {
        "bytes_per_host": size / hosts,
        "first_put_microseconds": first / hosts * 1e6,
        "put_microseconds": best[0],
        "take_microseconds": best[1],
        "outcome_microseconds": best[2],
        "heapq_microseconds": _heapq(hosts),
        "sorted_list_microseconds": _sorted_list(hosts),
    }


def _never(*_: object) -> None:
    raise AssertionError("no turn is so far away that a URL would be put off")


def _introduce(ready: Ready, hosts: int) -> None:
    """Addresses and robots.txt of all; these come at random times within one delay, so that pauses end at such times."""
    random = Random(1)
    while instructions := ready.take(_DELAY, 10_000):
        for instruction in instructions:
            if isinstance(instruction, ResolveHost):
                server = instruction.host_key % (hosts // _HOSTS_PER_SERVER)
                address = f"10.{server >> 16}.{server >> 8 & 255}.{server & 255}"
                ready.resolved(HostResolved(instruction, (address,), ttl=1e9), 0.0)
            else:
                assert isinstance(instruction, FetchRobots)
                ready.robots(RobotsFetched(instruction, 404), random.random() * _DELAY)


def _rounds(ready: Ready, rounds: int) -> tuple[float, float, float]:
    """CPU microseconds of one put, of one instruction in a take, and of one outcome."""
    put = take = outcome = 0.0
    operations = 0
    now = ready.next_time()
    for _ in range(rounds):
        outcomes: list[tuple[PageFetched, float]] = []
        while len(outcomes) < _AT_ONCE:
            now = max(now, ready.next_time())
            start = time.process_time()
            instructions = ready.take(now, _AT_ONCE)
            take += time.process_time() - start
            for instruction in instructions:
                assert isinstance(instruction, FetchPage)
                outcomes.append((PageFetched(instruction, 200), now + _LATENCY))
            now += _AT_ONCE * _DELAY / len(ready)
        start = time.process_time()
        for each, ended in outcomes:
            ready.page_fetched(each, ended)
        outcome += time.process_time() - start
        start = time.process_time()
        for each, _ in outcomes:
            ready.put(each.asked.row, now)
        put += time.process_time() - start
        operations += len(outcomes)
    return put / operations * 1e6, take / operations * 1e6, outcome / operations * 1e6


def _heapq(hosts: int) -> float:
    """The lower bound: one push and one pop of an entry like those of `Ready`."""
    random, order = Random(1), count()
    heap = [(random.random() * _DELAY, next(order), object()) for _ in range(hosts)]
    heapq.heapify(heap)
    operations = 100_000
    start = time.process_time()
    for _ in range(operations):
        due, _, host = heapq.heappop(heap)
        heapq.heappush(heap, (due + _DELAY, next(order), host))
    return (time.process_time() - start) / operations * 1e6


def _sorted_list(hosts: int) -> float:
    """What heaps are there to avoid: a list in order of time, the first taken out, then put where it belongs."""
    random, order = Random(1), count()
    ordered = sorted((random.random() * _DELAY, next(order), object()) for _ in range(hosts))
    operations = 1_000
    start = time.process_time()
    for _ in range(operations):
        due, _, host = ordered.pop(0)
        bisect.insort(ordered, (due + _DELAY, next(order), host))
    return (time.process_time() - start) / operations * 1e6


def _row(number: int) -> UrlRow:
    name = f"www.host-{number}.example"
    key = _KEYS.of(name)
    return UrlRow(key, key, key, 0, 0, 0, 0, f"http://{name}/index/page.html".encode())


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
