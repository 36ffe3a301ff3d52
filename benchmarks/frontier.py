"""The IRLbot frontier without a network: links per second of processor time through seen, star, beast and robots.

Links come as they come off pages: of each batch one in three is new, domains follow Zipf's law, 15% of the links
lead to another domain. They go through the real `Stages`, with their shares of the memory, and end where
`Ready` would take them, one for each page; every robots.txt that is asked for is answered at once. A stage is merged
when it is full, as in a crawl whose fetchers are busy, and after each two million links everything else is merged too.
The rate over the last two million is compared with that over the two million that follow the first, and the memory with
the setting.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.load import load_settings
from barkspider.core.texts import Texts
from barkspider.frontier.robots.permit import Permit
from barkspider.frontier.stages import Stages
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from barkspider.url import ALLOW_ALL

Keys = npt.NDArray[np.uint64]

_MEMORY = 512_000_000
_BATCH = 5_900  # links of a hundred pages
_PAGES = 100
_DOMAINS = 200_000
_WINDOW = 2_000_000
_PREFIX, _MIDDLE = b"http://h", b".example/"
_DOMAIN_DIGITS, _PAGE_DIGITS = 6, 30
_WIDTH = len(_PREFIX) + _DOMAIN_DIGITS + len(_MIDDLE) + _PAGE_DIGITS


def run(quick: bool) -> dict[str, Any]:
    """Four million links when `quick`, else twenty million."""
    total = 2 * _WINDOW if quick else 10 * _WINDOW
    settings = load_settings(overrides={"seed": 1, "memory": f"{_MEMORY}B"})
    stream = _Stream()
    with tempfile.TemporaryDirectory() as folder:
        _pour(_Dry(settings, Env(), Path(folder) / "warm"), stream, _BATCH * 4)
        stream, idle = _Stream(), _resident()
        stages = _Dry(settings, Env(), Path(folder) / "job")
        store = Store.open(Env(), Path(folder) / "job")
        for structure in stages.structures:
            store.add(structure)
        rates, most = [], 0
        for _ in range(total // _WINDOW):
            spent, resident = _pour(stages, stream, _WINDOW)
            start = time.process_time()
            store.commit()
            rates.append(_WINDOW / (spent + time.process_time() - start))
            most = max(most, resident)
        out, gauges = stages.out, stages.gauges()
        stages.close()
    above = (most - idle) / _MEMORY
    flat = rates[-1] / rates[1]  # the first found empty tables
    overall = len(rates) / sum(1 / rate for rate in rates)
    figures = {
        "links": total,
        "links_per_cpu_second": [round(rate) for rate in rates],
        "came_out": out,
        "megabytes_above_idle": round((most - idle) / 1e6),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        **{name: gauges[name] for name in ("seen", "domains", "edges", "queues", "over_budget", "origins")},
        "trips": [gauges[f"robots_{name}"] for name in ("no_trip", "one_trip", "two_trips", "more_trips")],
    }
    targets = [
        _target("links_per_cpu_second", round(overall), 1_000_000, overall >= 1_000_000),
        _target("rate_at_the_end_over_rate_at_2_million", round(flat, 3), 0.9, flat >= 0.9, quick),
        _target("memory_above_idle_over_setting", round(above, 3), 1.15, above <= 1.15),
    ]
    return {"figures": figures, "targets": targets}


def _target(name: str, value: float, goal: float, holds: bool, unknown: bool = False) -> dict[str, Any]:
    if unknown:
        return {"name": name, "value": None, "target": goal, "holds": None}
    return {"name": name, "value": value, "target": goal, "holds": holds}


class _Dry(Stages):
    """The stages of the frontier, with somebody who takes what comes out in the place of `Ready`."""

    out = 0

    def pour(self, links: UrlBatch, sources: Keys, targets: Keys) -> None:
        """Put links in, and move what merges have let through."""
        self.star.add_edges(sources, targets)
        self.seen.feed(links)
        self.move(_PAGES)

    def end(self) -> bool:
        """Bring on what waits for a merge; whether anything still does."""
        self.move(0)
        return self.hurry(1.0) or self.unplaced + self.permits.undecided > 0

    def move(self, pages: int) -> None:
        """Hand on what merges have let through, and take as many URLs out as pages were crawled."""
        for batch in self.seen.unique():
            self.star.check(batch)
        for batch in self.beast.rescanned():
            self.star.check(batch)
        for batch, budgets in self.star.budgeted():
            self.beast.put(batch, budgets)
        taken = self.beast.take(pages) if pages else None
        if taken:
            self.permits.check(taken)
        self.out += sum(map(len, self.permits.permitted(now=1.0)))
        for name in self.permits.asks(_BATCH):
            self.permits.learn(name, Permit.of(ALLOW_ALL, learned=1.0, until=1e9))


def _pour(stages: _Dry, stream: _Stream, links: int) -> tuple[float, int]:
    """Seconds of CPU, merges included and the making of links left out, and the most memory that was in use."""
    making, most, start = 0.0, 0, time.process_time()
    for _ in range(links // _BATCH):
        begun = time.thread_time()
        batch, sources, targets = stream.next()
        making += time.thread_time() - begun
        stages.pour(batch, sources, targets)
        most = max(most, _resident())
    while stages.end():
        time.sleep(0.02)
        most = max(most, _resident())
    return time.process_time() - start - making, most


class _Stream:
    """Links of a thousand pages at a time. A URL is a number; key, domain and text follow from it."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(1)
        self._domain = (self._random.zipf(1.3, 1 << 20) % _DOMAINS).astype(np.uint32)
        self._keys = self._random.integers(1, 2**63, _DOMAINS, dtype=np.uint64)
        self._found = 1

    def next(self) -> tuple[UrlBatch, Keys, Keys]:
        """A batch, and the edges between domains that it brings."""
        numbers = self._random.integers(0, self._found, _BATCH)
        new = numbers[::3]
        new[:] = np.arange(self._found, self._found + len(new))
        self._found += len(new)
        domain = self._domain[numbers % len(self._domain)]
        keys, plds = _mixed(numbers), self._keys[domain]
        batch = UrlBatch.of(
            _texts(domain, numbers),
            key=keys,
            host_key=plds,
            pld_key=plds,
            depth=3,
            parent=np.repeat(keys[:_PAGES], _BATCH // _PAGES),
            found=1_700_000_000,
        )
        sources = np.repeat(plds[:_PAGES], _BATCH // _PAGES)
        return batch, sources, np.where(self._random.random(_BATCH) < 0.15, plds, sources)


def _mixed(numbers: npt.NDArray[np.int64]) -> Keys:
    x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def _texts(domain: npt.NDArray[np.uint32], numbers: npt.NDArray[np.int64]) -> Texts:
    """http://h000123.example/000…000456, 53 bytes each."""
    text = np.empty((len(numbers), _WIDTH), np.uint8)
    text[:, : len(_PREFIX)] = np.frombuffer(_PREFIX, np.uint8)
    middle = len(_PREFIX) + _DOMAIN_DIGITS
    text[:, middle : middle + len(_MIDDLE)] = np.frombuffer(_MIDDLE, np.uint8)
    for end, digits, values in ((middle, _DOMAIN_DIGITS, domain), (_WIDTH, _PAGE_DIGITS, numbers)):
        rest = values.astype(np.int64)
        for place in range(1, digits + 1):
            text[:, end - place] = 48 + rest % 10
            rest //= 10
    return Texts(np.arange(len(numbers) + 1) * _WIDTH, text.reshape(-1))


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
