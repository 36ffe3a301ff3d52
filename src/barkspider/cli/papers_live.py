"""What live crawls of a graph find beside the simulation and the papers: `barkspider papers --graph FILE --live`.

The first pages of the graph, with the links among them, are served on loopback and crawled once for each strategy: one
request at a time and without pauses, as the simulation has it, and with the default pauses, a hundredth of them, so that it
does not take hours.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.cli.measured import measure
from barkspider.core.load import load_settings
from barkspider.engine.blocking import crawl
from barkspider.lab.papers.comparison import Cell, Table
from barkspider.lab.simulate.order import Replay, Strategy, run
from barkspider.lab.simulate.papers import COVERED, LIMITED, LIMITS, SAMPLED
from barkspider.lab.simulate.repeats import choose_seeds
from barkspider.lab.synthweb import StoredWeb, running_graph
from barkspider.lab.webgraph import WebGraph, store_web

PAGES = 20_000
SEEDS = 100
_SEED = 1
# One request at a time, and no pause of any kind.
ALONE: Mapping[str, Any] = {
    "fetch.in_flight": 1,
    "politeness.host_delay": "0s",
    "politeness.server_delay": "0s",
    "politeness.slow_factor": 0,
    "politeness.obey_robots": "false",
    "traps.detect": "false",  # a stored graph has no words: all of its pages say the same
}
# The defaults, a hundredth of them; servers are slow here because they share a machine with us.
POLITE: Mapping[str, Any] = {
    "politeness.host_delay": "20ms",
    "politeness.server_delay": "10ms",
    "politeness.slow_factor": 0,
    "traps.detect": "false",
}


@dataclass(frozen=True, slots=True)
class LiveCrawl:
    """What a live crawl got: pages, and the largest that its queues were."""

    pages: int
    largest: int


class Trial:
    """A graph that is being served, and crawled from the seeds of a simulation. Made by `trial`."""

    def __init__(self, web: WebGraph, settings: Mapping[str, str], folder: Path, seeds: int) -> None:
        self.web, self._settings, self._folder = web, settings, folder
        self.seeds: npt.NDArray[np.int32] = choose_seeds(web, seeds, _SEED)
        self.full = run(web, Strategy("bfs"), self.seeds)
        stored = StoredWeb(web)
        self._urls = [stored.url(page) for page in self.seeds.tolist()]
        self._jobs = 0

    @property
    def reach(self) -> int:
        """The pages that can be reached."""
        return len(self.full.order)

    def simulate(self, strategy: Strategy) -> Replay:
        """The replay of a strategy with the seed that live crawls have."""
        return run(self.web, strategy, self.seeds, self.reach, _SEED)

    def crawl(self, strategy: Strategy, changes: Mapping[str, Any]) -> LiveCrawl:
        """Crawl live by a strategy that `frontier.sydney` has."""
        limit = (
            {} if strategy.limit is None else {"sydney.queue_limit": max(1, int(strategy.limit * self.reach))}
        )
        job = self._job({"frontier": "sydney", "sydney.sample": strategy.t, **limit, **changes})
        return LiveCrawl(job[1].pages, job[1].gauges["largest"])

    def irlbot(self) -> Path:
        """Crawl live by the other frontier; the folder of the job."""
        return self._job({"frontier": "irlbot", **POLITE})[0]

    def _job(self, changes: Mapping[str, Any]) -> tuple[Path, Any]:
        self._jobs += 1
        folder = self._folder / str(self._jobs)
        common = {"seed": _SEED, "scope.level": "web", "archive.links": "false"}
        chosen = {**common, **self._settings, **changes}
        settings = load_settings(options=[f"{name}={value}" for name, value in chosen.items()])
        return folder, crawl(self._urls, folder, settings)


@contextmanager
def trial(web: WebGraph, seeds: int = SEEDS) -> Iterator[Trial]:
    """Serve a graph as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="barkspider-live-") as folder:
        path = Path(folder) / "web.npz"
        store_web(web, path)
        with running_graph(path, https=StoredWeb(web).has_https) as settings:
            yield Trial(web, settings, Path(folder), seeds)


def live_tables(web: WebGraph) -> list[Table]:
    """Tables 1 and 2 of Limited Memory, and α, λ and p of IRLbot, of live crawls beside simulated ones."""
    web = web.first(PAGES)
    with trial(web) as tried:
        note = (
            f"The first {web.nodes:,} pages of the graph given, {tried.reach:,} of them reached from {SEEDS} seeds, each "
            "way once. Live: one request at a time, without pauses; polite: 500 at a time and a hundredth of the "
            "default pauses, which changes the order."
        )
        return [_table_1(tried, note), _table_2(tried, note), irlbot_table(tried)]


def _table_1(tried: Trial, note: str) -> Table:
    chosen = {
        "0.14": Strategy("bfs"),
        **{printed: Strategy("sydney", t) for t, (printed, _) in SAMPLED.items()},
    }
    ways = {
        "simulated": [tried.simulate(strategy).largest for strategy in chosen.values()],
        "live": [tried.crawl(strategy, ALONE).largest for strategy in chosen.values()],
        "polite": [tried.crawl(strategy, POLITE).largest for strategy in chosen.values()],
    }
    return Table(
        LIMITED,
        "Table 1, live",
        "Largest queue by t, of the pages reached",
        ("all", *map(str, SAMPLED)),
        tuple(
            (
                name,
                tuple(Cell(printed, size / tried.reach) for printed, size in zip(chosen, sizes, strict=True)),
            )
            for name, sizes in ways.items()
        ),
        note,
    )


def _table_2(tried: Trial, note: str) -> Table:
    rows = []
    for t, printed in COVERED.items():
        chosen = [Strategy("sydney", t, limit) for limit in LIMITS]
        ways = {
            "simulated": [len(tried.simulate(strategy).order) for strategy in chosen],
            "live": [tried.crawl(strategy, ALONE).pages for strategy in chosen],
            "polite": [tried.crawl(strategy, POLITE).pages for strategy in chosen],
        }
        for name, pages in ways.items():
            cells = (Cell(text, count / tried.reach) for text, count in zip(printed, pages, strict=True))
            rows.append((f"t = {t}, {name}", tuple(cells)))
    columns = tuple(f"{limit:.0%}" for limit in LIMITS)
    return Table(LIMITED, "Table 2, live", "Coverage under a queue limit", columns, tuple(rows), note)


def irlbot_table(tried: Trial) -> Table:
    """What URL checks and budgets of a live crawl move, and how many of its links were new."""
    found = measure(tried.irlbot(), tried.reach)
    links = int(np.diff(tried.web.indptr)[tried.full.order].sum())
    rows: list[tuple[str, tuple[Cell | None, ...]]] = [
        ("p, unique of the links", (Cell(f"{tried.reach / links:.4f}", found.parameters["unique"]),)),
    ]
    seen = found.drums.get("seen")
    if seen is not None:
        checked = found.parameters["links_per_page"] * found.measured_pages * found.parameters["url_bytes"]
        alpha = f"{seen.predicted_bytes / checked:.2f}"
        rows.insert(0, ("α of URLseen", (Cell(alpha, seen.counted_bytes / checked),)))
    if found.budgets is not None:
        by_10, live = (
            speed / found.parameters["rate"]
            for speed in (found.budgets.beast_bytes_per_second, found.budgets.bytes_per_second)
        )
        rows.insert(1, ("λ of BEAST, bytes a page", (Cell(f"{by_10:.0f}", live),)))
    return Table(
        "IRLbot",
        "α, λ and p, live",
        "What the model and the graph say, and a live crawl",
        ("model",),
        tuple(rows),
        "α is how often each byte of a URL is written or read while it is checked, by equation (5); λ is what budgets move, by "
        "(10), which is a bound on a web that ends; p follows from the graph.",
    )
