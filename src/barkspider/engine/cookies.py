"""Cookies that survive the end of a process: a snapshot with each checkpoint, and outcomes tell of those since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barkspider.core.events import FetchRobots, PageFetched, Prepared, Received, RobotsFetched
from barkspider.engine.harvest import Harvest
from barkspider.fetch import CookieJar
from barkspider.frontier.batches import batch_name, cookies_of
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import Snapshot
from barkspider.url import split

_NAME, _SITES = "cookies", "sites"


class KeptCookies:
    """A `Structure` around the jar of a fetcher. One thread."""

    name = _NAME

    def __init__(
        self, env: Env, folder: Path, jar: CookieJar, state: dict[str, Any] | None, inbox: Path | None = None
    ) -> None:
        """Fills the jar from the last checkpoint. `inbox` is where batches of other processes arrive."""
        self._env, self._jar, self._inbox = env, jar, inbox
        self._snapshot = Snapshot(env, folder, _NAME, state)
        if state is not None:
            jar.load(self._snapshot.read()[1][_SITES])

    def replay(self, harvest: Harvest) -> None:
        """Take the cookies of an earlier run."""
        for outcome in harvest.outcomes:
            if isinstance(outcome, Received):
                self.receive(outcome, harvest.time)
            if isinstance(outcome, (PageFetched, RobotsFetched)) and outcome.cookies:
                asked = outcome.asked
                url = asked.url if isinstance(asked, FetchRobots) else asked.row.url.decode()
                self._jar.take(split(url), outcome.cookies, harvest.time)

    def receive(self, batch: Received, now: float) -> None:
        """Take the cookies of redirects that another process sends us after: each counts for whoever set it."""
        assert self._inbox is not None
        for url, values in cookies_of(self._env, self._inbox / batch_name(batch.sender, batch.number)):
            self._jar.take(split(url), values, now)

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        saved = self._jar.save()
        return lambda: self._snapshot.write({}, {_SITES: saved})

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self._snapshot.committed()
