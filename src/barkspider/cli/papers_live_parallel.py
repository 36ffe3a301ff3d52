"""Figures 4 to 9 of Parallel Crawlers in small: live crawls by several processes beside the simulation of the same web.

The first pages of the graph are served on loopback and crawled by 1 to 8 processes, each with one request at a time and
without pauses, from the seeds that the simulation has. Keys are the same, so the same process owns a page in both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import uvloop

from barkspider.core.load import load_settings
from barkspider.core.settings import Settings
from barkspider.engine import Statistics, open_job
from barkspider.engine.blocking import crawl
from barkspider.lab.papers.comparison import Cell, Table
from barkspider.lab.simulate.parallel import Crawl, Setup, Simulation, choose_seeds
from barkspider.lab.synthweb import StoredWeb, running_graph
from barkspider.lab.webgraph import WebGraph, store_web
from barkspider.parallel.division import create_job
from barkspider.parallel.frozen import Frozen
from barkspider.parallel.supervisor import Supervisor
from barkspider.storage.env import Env

PAGES = 2_000
_PAPER = "Parallel Crawlers"
_SEED = 1
_BATCH = (
    20  # pages of a process between two times that it sends: with 1, most of the time would go into files
)
_QUALITY = (
    0.1  # of the pages are downloaded where quality counts; 1.2%, as in figure 9, would be too few to tell
)
# Seconds that an answer takes where URLs are sent. In the simulation they arrive at once; here it takes a quarter of a second, in
# which a process should fetch ten pages and not hundreds, or have nothing left and send what it has.
_SLOW = 0.02


class ParallelTrial:
    """A graph that is being served, for crawls as the simulation has them. Made by `parallel_trial`.

    `simulate` and `crawl` give the same of a configuration, as far as it shows at the end.
    """

    def __init__(self, web: WebGraph, settings: Mapping[str, str], folder: Path) -> None:
        stored = StoredWeb(web)
        self.urls = [stored.url(page) for page in range(web.nodes)]
        self.web = WebGraph(web.indptr, web.indices, web.site, pa.array(self.urls, pa.string()))
        self.simulation = Simulation(self.web)
        self._settings, self._folder, self._jobs = settings, folder, 0

    def simulate(self, setup: Setup) -> Crawl:
        """What the simulation says."""
        return self.simulation.run(setup, _SEED)

    def run(self, setup: Setup) -> Statistics:
        """What processes tell when they have crawled so."""
        self._jobs += 1
        chosen = [f"{name}={value}" for name, value in self._settings.items()]
        settings = load_settings(options=[*chosen, *self._options(setup, self._job)])
        owners = self.simulation.divider.owners(setup.partition, setup.processes, _SEED)
        seeds = np.concatenate(choose_seeds(owners, setup.processes, setup.seeds, _SEED))
        return _crawl([self.urls[page] for page in seeds.tolist()], self._job, settings)

    def crawl(self, setup: Setup) -> Crawl:
        """What processes do, as the simulation tells it."""
        told = self.run(setup)
        fetched = (
            open_job(self._job).query("SELECT url, count(*) AS times FROM pages GROUP BY url").to_pylist()
        )
        times = {row["url"]: row["times"] for row in fetched}
        found = np.array([times.get(url, 0) for url in self.urls], np.int32)
        sent, batches = told.gauges.get("sent", 0), told.gauges.get("batches", 0)
        return Crawl(found, np.zeros_like(found), np.array([found.sum()]), sent, batches, -1)

    @property
    def _job(self) -> Path:
        return self._folder / f"job-{self._jobs}"

    def _options(self, setup: Setup, folder: Path) -> list[str]:
        """The settings that do what a configuration says."""
        mode, batch, processes = setup.mode, setup.batch, setup.processes
        if setup.exchanges is not None:
            mode = "exchange" if setup.exchanges else "firewall"
            batch = max(setup.pages // processes // (setup.exchanges + 1), 1)
        options = [
            *(f"seed={_SEED}", "scope.level=web", "archive.duplicates=false", "archive.links=false"),
            *("politeness.host_delay=0s", "politeness.server_delay=0s", "politeness.slow_factor=0"),
            *("politeness.obey_robots=false", f"fetch.in_flight={processes}", f"memory={64 * processes}MB"),
            *(f"parallel.processes={processes}", f"parallel.mode={mode}", f"parallel.batch={batch}"),
            *(f"parallel.partition={setup.partition}", "parallel.interval=1h", f"limits.pages={setup.pages}"),
        ]
        # Breadth-first, as the simulation: by budgets, pages in a row are of other domains, and have fewer links in common.
        options += (
            ["order=backlinks"] if setup.order == "backlinks" else ["frontier=sydney", "sydney.sample=0"]
        )
        if setup.replicated:
            popular = np.argsort(-self.simulation.backlinks, kind="stable")[: setup.replicated]
            replicas = folder.with_suffix(".txt")
            replicas.write_text("".join(f"{self.urls[page]}\n" for page in popular.tolist()))
            options.append(f"parallel.replicate={replicas}")
        return options


@contextmanager
def parallel_trial(web: WebGraph, delay: float = 0.0) -> Iterator[ParallelTrial]:
    """Serve a graph as long as the block runs, each page after so many seconds."""
    with tempfile.TemporaryDirectory(prefix="barkspider-live-") as folder:
        path = Path(folder) / "web.npz"
        store_web(web, path)
        with running_graph(path, https=StoredWeb(web).has_https, delay=delay) as settings:
            yield ParallelTrial(web, settings, Path(folder))


def parallel_tables(web: WebGraph) -> list[Table]:
    """All of them."""
    web = web.first(PAGES)
    with parallel_trial(web) as tried:
        tables = [_figure_4(tried), _figure_5(tried), _figure_6(tried)]
    with parallel_trial(web, _SLOW) as tried:
        return [*tables, _figure_7(tried), _figure_8(tried), _figure_9(tried)]


def _crawl(seeds: list[str], folder: Path, settings: Settings) -> Statistics:
    if settings.parallel.processes == 1:
        return crawl(seeds, folder, settings)
    given = Frozen.read(settings)

    async def run() -> Statistics:
        job = create_job(folder, settings, seeds, Env(), given)
        try:
            return await Supervisor(job).run()
        finally:
            job.close()

    return uvloop.run(run())


def _figure_4(tried: ParallelTrial) -> Table:
    setups = {f"{count} processes": Setup("firewall", count) for count in (1, 2, 4, 8)}
    return _compared(tried, "Figure 4", "Coverage of a firewall crawl, 5 seeds a process", setups, _coverage)


def _figure_5(tried: ParallelTrial) -> Table:
    setups = {f"{8 * seeds} seeds": Setup("firewall", 8, seeds=seeds) for seeds in (1, 16)}
    return _compared(tried, "Figure 5", "Coverage of a firewall crawl of 8 processes", setups, _coverage)


def _figure_6(tried: ParallelTrial) -> Table:
    setups = {
        f"{mode}, {count} processes": Setup(mode, count)
        for mode in ("cross-over", "independent")
        for count in (2, 4)
    }
    title = "Overlap when all that can be reached is fetched"
    return _compared(tried, "Figure 6", title, setups, lambda found: found.overlap)


def _figure_7(tried: ParallelTrial) -> Table:
    setups = {
        f"{partition}, {count} processes": Setup("exchange", count, partition, batch=_BATCH)
        for partition in ("site", "domain", "url")
        for count in (2, 4)
    }
    title = f"URLs exchanged per page, in batches of {_BATCH} pages"
    return _compared(tried, "Figure 7", title, setups, lambda found: found.exchanged_per_page)


def _figure_8(tried: ParallelTrial) -> Table:
    cells, plain = {}, tried.simulate(Setup("exchange", 4, batch=_BATCH)).sent
    for count in (tried.web.nodes // 1_000, tried.web.nodes // 100):
        setup = Setup("exchange", 4, batch=_BATCH, replicated=max(count, 1))
        gauges = tried.run(setup).gauges
        spared = gauges["not_sent"] / (gauges["sent"] + gauges["not_sent"])
        cells[f"{setup.replicated:,} URLs"] = Cell(f"{1 - tried.simulate(setup).sent / plain:.3f}", spared)
    return _table("Figure 8", "Share of the URLs that 4 processes with replicas need not send", cells, tried)


def _figure_9(tried: ParallelTrial) -> Table:
    wanted = round(_QUALITY * tried.web.nodes)
    setups = {"1 process": Setup("exchange", 1, order="backlinks", pages=wanted, seeds=20)}
    setups |= {
        f"4 processes, {count} exchanges": Setup(
            "exchange", 4, order="backlinks", pages=wanted, exchanges=count
        )
        for count in (0, 1, 10, 100)
    }
    title = f"Quality when {_QUALITY:.0%} is downloaded in order of backlinks"
    return _compared(
        tried, "Figure 9", title, setups, lambda found: found.quality(tried.simulation.backlinks, wanted)
    )


def _coverage(found: Crawl) -> float:
    return found.coverage


def _compared(
    tried: ParallelTrial, name: str, title: str, setups: Mapping[str, Setup], figure: Callable[[Crawl], float]
) -> Table:
    cells = {
        label: Cell(f"{figure(tried.simulate(setup)):.3f}", figure(tried.crawl(setup)))
        for label, setup in setups.items()
    }
    return _table(name, title, cells, tried)


def _table(name: str, title: str, cells: Mapping[str, Cell], tried: ParallelTrial) -> Table:
    note = f"The first {tried.web.nodes:,} pages of the graph given, each way once. A process has one request at a time, without pauses."
    return Table(
        _PAPER,
        f"{name}, live",
        title,
        ("simulated",),
        tuple((label, (cell,)) for label, cell in cells.items()),
        note,
    )
