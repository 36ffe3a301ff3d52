"""A web in numbers that has a robots.txt at each of its sites, crawled without pauses, in several runs of one job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from barkspider.core.events import FetchPage, FetchRobots, Instruction, Outcome, RobotsFetched, Seeds
from barkspider.core.settings import Settings
from barkspider.frontier import Driver, open_frontier
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from barkspider.url import KeyMaker
from tests.frontier.farms import FarmWeb, Pages

_ROBOTS = b"User-agent: *\nDisallow: /private/\nDisallow: /search\nCrawl-delay: 0\n"
_LATENCY = 0.1  # seconds


class SiteWeb(FarmWeb):
    """Good sites alone. Keys of hosts are those of their names, as whoever asks for their robots.txt has them."""

    def __init__(self, pages: int, domains: int, seed: int, links: int = 60) -> None:
        super().__init__(pages, domains, 0, links)
        names = (b"%016x.example" % host for host in range(len(self._tables.start)))
        self._keys = KeyMaker(seed).column(names)

    def _host_keys(self, hosts: Pages) -> npt.NDArray[np.uint64]:
        return self._keys[hosts]

    def answers(self, instructions: Sequence[Instruction]) -> list[Outcome]:
        """What comes back, robots.txt included."""
        asked = [each for each in instructions if isinstance(each, FetchRobots)]
        return [*super().answers(instructions), *(RobotsFetched(each, 200, _ROBOTS) for each in asked)]


def crawl(web: SiteWeb, settings: Settings, folder: Path, pages: int, runs: int) -> Iterator[Driver]:
    """The frontier at the end of each run, between two of which the job was stopped and gone on with. It ends after
    so many pages, or when there are no more."""
    now, fetched = 0.0, 0
    outcomes: list[Outcome] = [Seeds(web.batch(np.zeros(1, np.int64)))]
    for run in range(1, runs + 1):
        store = Store.open(Env(), folder)
        frontier = open_frontier(
            settings,
            Env(),
            folder,
            state=store.state,
            resumed=now if store.number else None,
            background=False,
        )
        for structure in frontier.structures():
            store.add(structure)
        while not frontier.finished() or outcomes:
            if fetched >= pages * run // runs:
                frontier.hold()
            instructions, wake = frontier.step(now, outcomes)
            fetched += sum(isinstance(each, FetchPage) for each in instructions)
            outcomes = web.answers(instructions)
            now = now + _LATENCY if outcomes else max(now, min(wake, now + 60))
        store.commit()
        yield frontier
        frontier.close()
