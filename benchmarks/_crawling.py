"""Crawls in processes of their own, on a core of their own: one that is measured, or two builds that take turns.

What a crawl costs drifts by a third within hours on a machine that others use. Of two builds that go on in turns, a few
hundred pages each, both meet the same moments: their ratio stays.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web

_CRAWLER = Path(__file__).with_name("_crawler.py")
_OPTIONS = (
    "seed=7",
    "scope.level=web",
    "politeness.host_delay=50ms",
    "politeness.server_delay=5ms",
    "politeness.slow_factor=0",
    "limits.grace=1s",
    "limits.time=10m",  # whatever happens
)


class Workload(NamedTuple):
    """A web, the settings of its crawl, and how many pages of it are crawled."""

    spec: WebSpec
    options: tuple[str, ...]
    pages: int
    quick_pages: int
    https: bool = False
    seeds: int = 100

    def order(self, served: RunningWeb, pages: int, *options: str, turn: int = 0) -> dict[str, Any]:
        """What `_crawler` is told."""
        found = [f"{name}={value}" for name, value in served.settings().items()]
        found += [*_OPTIONS, *self.options, f"limits.pages={pages}", *options]
        return {"options": found, "seeds": served.web.seeds(self.seeds), "turn": turn}


class Turns(NamedTuple):
    """CPU seconds and pages of each turn of two crawls."""

    first: list[tuple[float, int]]
    second: list[tuple[float, int]]

    def costs(self) -> tuple[float, float]:
        """CPU seconds a page of both, over all turns."""
        one, other = (np.sum(turns, axis=0) for turns in self)
        return float(one[0] / one[1]), float(other[0] / other[1])

    def ratio(self) -> float:
        """What a page costs the first, of what it costs the second."""
        one, other = self.costs()
        return one / other

    def spread(self) -> tuple[float, float]:
        """Where eight in ten of the ratios of single turns lie, without the first and the last, which open and close."""
        ratios = [
            (cpu / pages) / (others / other_pages)
            for (cpu, pages), (others, other_pages) in list(zip(*self, strict=False))[1:-1]
        ]
        low, high = np.quantile(ratios, (0.1, 0.9))
        return float(low), float(high)


@contextmanager
def serving(workload: Workload) -> Iterator[RunningWeb]:
    """The web of a workload, on the last of our cores."""
    with running_web(workload.spec, https=workload.https) as served:
        os.sched_setaffinity(served.process.pid, {cores()[-1]})
        yield served


def cores() -> list[int]:
    """Those that we may use."""
    return sorted(os.sched_getaffinity(0))


def crawl_once(order: dict[str, Any], on: Sequence[int] = ()) -> dict[str, Any]:
    """What `_crawler` says in the end; by default it has the first of our cores."""
    with _crawler(Path(sys.executable), order, on or cores()[:1]) as process:
        *_, last = _lines(process)
    return last


def in_turns(builds: tuple[Path, Path], order: dict[str, Any]) -> Turns:
    """The same crawl by two builds, each the Python that has it, on one core, to the end."""
    found = Turns([], [])
    with ExitStack() as stack:
        going = [
            (_turns(stack.enter_context(_crawler(python, order, cores()[:1]))), turns)
            for python, turns in zip(builds, found, strict=True)
        ]
        while going:
            for crawler, turns in list(going):
                turn = next(crawler, None)
                if turn is None:
                    going.remove((crawler, turns))
                else:
                    turns.append(turn)
    return found


def grown(order: dict[str, Any], sizes: tuple[int, int]) -> Turns:
    """The last turns of two crawls of this build, by then so large, on one core."""
    order = order | {"turn": sizes[1] // 20}
    found, last = Turns([], []), 10 * order["turn"]
    with ExitStack() as stack:
        crawlers = [
            _turns(stack.enter_context(_crawler(Path(sys.executable), order, cores()[:1]))) for _ in sizes
        ]
        for crawler, size in zip(crawlers, sizes, strict=True):
            pages = 0
            while pages < size - last:
                pages += next(crawler)[1]
        for _ in range(10):
            for crawler, turns in zip(crawlers, found, strict=True):
                turns.append(next(crawler))
    return found


@contextmanager
def _crawler(python: Path, order: dict[str, Any], on: Sequence[int]) -> Iterator[subprocess.Popen[str]]:
    # In no folder that has modules: what is imported is what the Python has.
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [python, "-P", _CRAWLER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            preexec_fn=lambda: os.sched_setaffinity(0, set(on)),
        ) as process,
    ):
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(order) + "\n")
            yield process
        finally:
            process.kill()


def _turns(process: subprocess.Popen[str]) -> Iterator[tuple[float, int]]:
    """CPU seconds and pages of one turn after the other, each of them crawled when it is asked for."""
    cpu, pages = 0.0, 0
    for line in _lines(process):
        yield line["cpu"] - cpu, line["pages"] - pages
        cpu, pages = line["cpu"], line["pages"]


def _lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """What a crawler says, which goes on to the end of a turn whenever it is asked for more."""
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        process.stdin.flush()
        text = process.stdout.readline()
        if not text:
            raise RuntimeError("a crawler ended before its crawl; its own message is above")
        line: dict[str, Any] = json.loads(text)
        yield line
        if "done" in line:
            return
        process.stdin.write("\n")
