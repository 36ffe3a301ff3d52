"""A frontier with its journal and its checkpoints, for whoever fetches by other means than `engine` does."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from barkspider.core.allotment import fit_memory
from barkspider.core.batch import UrlBatch
from barkspider.core.clock import SteadyClock, SystemClock
from barkspider.core.errors import JobError, SettingsError, StorageError
from barkspider.core.events import Counters, Instruction, Outcome, PageFetched
from barkspider.core.load import dump_settings, load_settings, replace
from barkspider.core.settings import Settings
from barkspider.engine.folder import LOCK
from barkspider.engine.harvest import Harvest
from barkspider.engine.ledger import Ledger
from barkspider.frontier import open_frontier
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import restoring

# Not called as the settings of a crawl are: no command takes its folder for that of one.
_SETTINGS = "scrapy.toml"
# What what is on disk depends on.
_LASTING = ("frontier", "order", "memory", "sydney", "budget", "url")


class Keeper:
    """One thread, but for what is written of a checkpoint. What `step` was given survives the end of the process.

    >>> import tempfile
    >>> keeper = Keeper(Path(tempfile.mkdtemp()) / "job", ["memory=64MB"])
    >>> keeper.step([])[0], keeper.finished(), keeper.close()
    ([], True, None)
    """

    def __init__(self, folder: Path, options: Sequence[str]) -> None:
        """Makes a folder, or goes on with one whose process was stopped or killed; `options` are settings, as `a.b=c`."""
        env = Env()
        env.make_folder(folder)
        lock = env.lock(folder / LOCK)
        if lock is None:
            raise JobError(
                f"{folder} is in use by another process; wait for it, or name another BARKSPIDER_JOB"
            )
        self._lock = lock
        try:
            self.settings = fit_memory(_settled(env, folder, load_settings(options=options)))
            self._clock = SteadyClock(SystemClock())
            self._pool = ThreadPoolExecutor(1, "checkpoint")
            self._writing: Future[None] | None = None
            with restoring(folder):
                self._open(env, folder)
        except BaseException:
            lock.release()
            raise
        self._since = self._next = self._clock.now()
        self._next += self.settings.checkpoint

    def _open(self, env: Env, folder: Path) -> None:
        ledger = self._ledger = Ledger(env, folder)
        # Every host counts as just contacted at a start: even before there is a journal requests may have been sent.
        now = self._clock.now()
        self._frontier = open_frontier(self.settings, env, folder, state=ledger.state, resumed=now)
        replayed = 0
        for harvest in ledger.harvests():
            self._frontier.replay(harvest.time, harvest.outcomes)
            replayed += len(harvest.outcomes)
        for structure in self._frontier.structures():
            ledger.add(structure)
        if replayed:
            ledger.commit(0.0, [])

    @property
    def counters(self) -> Counters:
        """What became of all requests, by the frontier's count."""
        return self._frontier.counters

    @property
    def now(self) -> float:
        """The frontier's time."""
        return self._clock.now()

    def step(self, outcomes: Sequence[Outcome]) -> tuple[list[Instruction], float]:
        """Write down what happened, apply it, and say what is to be done now, and when to be called again."""
        now = self._clock.now()
        links = [each.links for each in outcomes if isinstance(each, PageFetched) and each.links is not None]
        harvest = Harvest(now, outcomes, UrlBatch.join(links)) if links else Harvest(now, outcomes)
        if harvest.is_news:
            self._ledger.write(harvest)
        done = self._frontier.step(now, outcomes)
        self._frontier.traced()  # there is no table for them
        self._turn(now)
        return done

    def finished(self) -> bool:
        """Whether nothing is under way and nothing is left."""
        return self._frontier.finished()

    def close(self) -> None:
        """Make all safe and let go of it; what is under way will be given out again."""
        self._frontier.hold()
        if self._writing is not None:
            self._writing.result()
            self._ledger.end()
        self._ledger.commit(self._clock.now() - self._since, [])
        self._pool.shutdown()
        self._ledger.close()
        self._frontier.close()
        self._lock.release()

    def _turn(self, now: float) -> None:
        """Between two steps: begin with a checkpoint when it is time, end it when all is written."""
        if self._writing is not None and self._writing.done():
            writing, self._writing = self._writing, None
            writing.result()
            self._ledger.end()
        elif self._writing is None and now >= self._next:
            self._writing = self._pool.submit(self._ledger.begin(now - self._since, []))
            self._next = now + self.settings.checkpoint


def _settled(env: Env, folder: Path, settings: Settings) -> Settings:
    """The settings with the seed that the folder has, or a new one. Nothing else is taken from there."""
    wanted = tomllib.loads(dump_settings(settings))
    if _SETTINGS not in env.list(folder):
        settings = replace(settings, {"seed": settings.seed or secrets.randbits(62) + 1})
        env.write_whole(folder / _SETTINGS, dump_settings(settings).encode())
        return settings
    try:
        stored = tomllib.loads(env.read(folder / _SETTINGS).decode())
        seed = int(stored["seed"])
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{folder / _SETTINGS} is damaged: {error}") from error
    for name in _LASTING:
        if stored.get(name) != wanted[name]:
            raise SettingsError(f"BARKSPIDER_SETTINGS: {name} cannot be changed in a job that has begun")
    return replace(settings, {"seed": seed})
