"""A part of a stopped job that is handed on, and one that is made of what others hand on.

    old: recovered, what was found for others sealed, completed, a checkpoint ─► its frontier, cookies, counts ─► new ones

The old one is brought to a checkpoint that has everything, which is a state of the old job like any other. From then on it
is only read. A new one begins with a checkpoint of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from barkspider.archive import ArchiveWriter
from barkspider.core.allotment import fit_memory
from barkspider.core.clock import SteadyClock, SystemClock
from barkspider.core.events import Sealed
from barkspider.core.settings import Settings
from barkspider.engine.adding import write_seeds
from barkspider.engine.checkpoint import Progress
from barkspider.engine.cookies import KeptCookies
from barkspider.engine.harvest import Harvest
from barkspider.engine.history import History
from barkspider.engine.job import Job
from barkspider.engine.ledger import Ledger
from barkspider.engine.recovery import Components, open_components
from barkspider.fetch import CookieJar
from barkspider.frontier import open_frontier
from barkspider.frontier.dividing import spread
from barkspider.frontier.outbox import Cookies
from barkspider.frontier.ownership import divides_domains
from barkspider.storage.env import Env
from barkspider.url import Domains, KeyMaker, split
from barkspider.url.partition import by_hash


class Counted:
    """What the engines of all old parts have counted, and what belongs to the scope; for the new ones."""

    def __init__(self) -> None:
        self.seconds, self.extended = 0.0, dict[str, None]()
        self._numbers: Counter[str] = Counter()
        self._reasons: dict[str, Counter[str]] = {}
        self.cookies: list[bytes] = []  # a line for each site of a part
        self.redirected: Cookies = []  # cookies of redirects that nobody has taken in

    def add(self, components: Components) -> None:
        """Take what one had."""
        self.seconds = max(self.seconds, components.ledger.progress.seconds)
        self.extend(components.links.extended)
        for name, value in components.ledger.tally.items():
            if isinstance(value, Mapping):
                self._reasons.setdefault(name, Counter()).update(value)
            else:
                self._numbers[name] += value
        self.cookies += _own(components.worker.cookies.save().splitlines(), components.job.settings)

    def extend(self, urls: Sequence[str]) -> None:
        """These belong to the scope."""
        self.extended |= dict.fromkeys(urls)

    def share(self, count: int, part: int) -> dict[str, Any]:
        """What one of so many new parts goes on counting from."""
        cpu = self._numbers["cpu_seconds"] / count
        numbers = {name: spread(int(number), count, part) for name, number in self._numbers.items()}
        reasons = {
            name: {reason: spread(number, count, part) for reason, number in reasons.items()}
            for name, reasons in self._reasons.items()
        }
        return numbers | reasons | {"cpu_seconds": round(cpu, 3)}


@asynccontextmanager
async def completed(job: Job) -> AsyncIterator[Components]:
    """Bring a stopped part to where it was, and to a checkpoint that has everything. What is changed later does not count."""
    write_seeds(job, lambda _: ())  # those that it was made with, if it was killed before it took them
    job.settings = fit_memory(job.settings)
    components = open_components(job, SystemClock())
    frontier, ledger, now = components.frontier, components.ledger, components.steady.now()
    try:
        if frontier.exchange is not None:
            seals = frontier.exchange.due(frontier.counters.pages, True, now)
            if seals:
                harvest = Harvest(now, [Sealed(seal) for seal in seals], tally=ledger.tally)
                ledger.write(harvest)
                frontier.replay(now, harvest.outcomes)
        _, source = frontier.holdings
        source.complete(now)
        ledger.commit(ledger.progress.seconds, components.links.extended)
        yield components
    finally:
        frontier.close()
        ledger.close()
        components.archive.close()
        await components.worker.close()


class NewPart:
    """A part that is made of what others hand on: fill its `frontier`, then `commit`."""

    def __init__(
        self, folder: Path, settings: Settings, seeds: Sequence[str], env: Env, earlier: Sequence[Path]
    ) -> None:
        """`earlier` are the folders of the parts that it follows."""
        self._earlier = [each / "archive" for each in earlier]
        self._job = Job.create(folder, settings, seeds, env)
        self._job.settings = fit_memory(settings)
        self._ledger = Ledger(env, folder)
        self._now = SteadyClock(SystemClock()).now()
        self.frontier = open_frontier(
            self._job.settings, env, folder, state=self._ledger.state, resumed=self._now, part=True
        )

    def commit(self, counted: Counted) -> None:
        """Make all of it durable. It begins with one record, which says what was counted before, and a checkpoint."""
        env, path, settings = self._job.env, self._job.path, self._job.settings
        parallel, ledger = settings.parallel, self._ledger
        tally = counted.share(parallel.processes, parallel.part)
        kept = self.frontier.counters.pages - sum(tally.get("rejected", {}).values())
        kept_at = ledger.recover(self._job.archive)
        archive = ArchiveWriter(env, self._job.archive, settings, {}, kept_at, self._earlier)
        ledger.read_to_end()
        ledger.progress = Progress(inherited=kept)
        ledger.write(Harvest(self._now, [], tally=tally))
        jar = CookieJar(settings.cookies, Domains(settings.url.private_suffixes))
        jar.load(b"\n".join(_own(counted.cookies, settings)))
        for url, values in counted.redirected:
            jar.take(split(url), values, self._now)
        kept_with = (KeptCookies(env, path, jar, None), History(env, path, None))
        for structure in (*self.frontier.structures(), archive, *kept_with):
            ledger.add(structure)
        ledger.commit(counted.seconds, list(counted.extended))
        archive.close()
        self.close()

    def close(self) -> None:
        """Let go of its files."""
        self.frontier.close()
        self._ledger.close()
        self._job.close()


def _own(lines: Sequence[bytes], settings: Settings) -> Iterator[bytes]:
    """The cookies of sites, which are domains, that a part owns: what others have of these is no more than what the user gave
    to all. Where several have URLs of a domain, each has cookies of it."""
    if not lines:
        return
    if divides_domains(settings.parallel):
        yield from lines
        return
    keys = KeyMaker(settings.seed).column([json.loads(line)[0].encode() for line in lines])
    owners = by_hash(np.asarray(keys, np.uint64), settings.parallel.processes)
    for line, owner in zip(lines, owners.tolist(), strict=True):
        if owner == settings.parallel.part:
            yield line
