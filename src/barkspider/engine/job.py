"""A job on disk: its folder, its lock, its settings, its log."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from barkspider.core.errors import JobError, StorageError
from barkspider.core.load import replace
from barkspider.core.settings import Settings
from barkspider.engine.checkpoint import check_format
from barkspider.engine.folder import DIVISION, LOCK, LOG, SETTINGS, check_job, is_part, read_division
from barkspider.engine.preflight import check_settings
from barkspider.engine.trust import take_settings, write_settings
from barkspider.storage.calls import FolderLock
from barkspider.storage.env import Env
from barkspider.url import split

SEEDS = "seeds.txt"
# What there may be, beside the lock, of a job that was killed while it was made: nothing that anybody fetched.
_UNFINISHED = re.compile(
    r"(part-\d{4}/)?(settings\.toml|seeds\.txt|job\.toml)(\.new)?"
    r"|part-\d{4}(/(archive|log\.jsonl|frozen\.snapshot))?"
    r"|mail(/\d{4})?",
    re.ASCII,
)


class Job:
    """One crawl's folder, held by this process until `close`.

    JOB/settings.toml is complete; JOB/seeds.txt has the seeds, JOB/archive what was fetched, JOB/log.jsonl the events
    that a person would want to know; JOB/manifest.json and the folders it names are the last checkpoint.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     job = Job.create(Path(folder) / "job", Settings(seed=7), ["http://example.org/"], Env())
    ...     job.close()
    ...     print(sorted(path.name for path in job.path.iterdir()))
    ...     job = Job.open(job.path, Env(), ["limits.pages=9"])
    ...     job.settings.limits.pages, job.seeds(), job.close()
    ['archive', 'job.lock', 'log.jsonl', 'seeds.txt', 'settings.toml']
    (9, ['http://example.org/'], None)
    """

    def __init__(
        self, path: Path, settings: Settings, env: Env, lock: FolderLock, resumed: bool = False
    ) -> None:
        self.path, self.settings, self.env, self._lock = path, settings, env, lock
        self.resumed = resumed
        self.incarnation = ""  # as whom its copies are made, if somebody has claimed them for this process
        self._log = env.append(path / LOG)
        self.told: Callable[[dict[str, Any]], None] | None = None  # hears of every event
        self.archive = path / "archive"
        is_divided = settings.parallel.processes > 1 or (path / DIVISION).is_file()
        if not is_divided or is_part(path):  # of several processes each part has its own
            env.make_folder(self.archive)  # a job may have been killed before it had one

    @classmethod
    def create(
        cls,
        path: Path,
        settings: Settings,
        seeds: Sequence[str],
        env: Env,
        divide: Callable[[Settings], None] | None = None,
    ) -> Job:
        """Make a new job; a folder that holds anything is refused, and so is one in use. Settings are checked before.

        `divide` makes the parts of one that has several. What a kill left of a job that was being made is no more than
        nothing: its settings come last.
        """
        check_settings(settings)
        if path.exists() and not path.is_dir():
            raise JobError(f"{path} is a file; name a folder for the job with --job")
        env.make_folder(path)
        begun = LOCK in env.list(path)
        lock = _locked(path, env)
        others = [name for name in env.list(path) if name != LOCK]
        if others and not (begun and SETTINGS not in others and _is_unfinished(path)):
            if not begun:  # or it would look as if a job had been begun here
                env.remove(path / LOCK)
            lock.release()
            if SETTINGS in others:
                raise JobError(
                    f"{path} holds a crawl already; go on with `barkspider resume {path}`, or choose another --job"
                )
            raise JobError(f"{path} is not empty; choose another folder with --job")
        for name in others:
            env.remove_tree(path / name)
        if not settings.seed:  # a random one, so that no page can aim at collisions of keys
            settings = replace(settings, {"seed": secrets.randbits(62) + 1})
        env.write_whole(path / SEEDS, _lines(seeds))
        if divide is not None:
            divide(settings)
        write_settings(env, path, settings)
        return cls(path, settings, env, lock)

    @classmethod
    def open(
        cls, path: Path, env: Env, options: Iterable[str] = (), *, trust: bool = False, part: bool = False
    ) -> Job:
        """Take up a job that was stopped or killed, or a `part` of one; `options` change settings, as `a.b=c`.

        What another's settings name beyond the job is refused, unless they are to be trusted (`engine.trust`).
        """
        check_job(path, part=part)
        lock = _locked(path, env)
        try:
            settings, changed = take_settings(env, path, options, trust)
            if (path / DIVISION).is_file():  # which is replaced first when a job is divided anew
                processes = read_division(path)["processes"]
                changed = changed or processes != settings.parallel.processes
                settings = replace(settings, {"parallel.processes": processes})
            check_format(env, path)
            if changed:
                check_settings(settings)
                write_settings(env, path, settings)
            return cls(path, settings, env, lock, resumed=True)
        except BaseException:
            lock.release()
            raise

    def seeds(self) -> list[str]:
        """What the user gave so far, as canonical URLs."""
        return read_seeds(self.env, self.path)

    def add_seeds(self, seeds: Sequence[str]) -> None:
        """Remember further seeds."""
        self.seeds()  # to a file that is damaged, or gone, nothing is added
        with self.env.append(self.path / SEEDS) as file:
            file.write(_lines(seeds))
            file.sync()

    def log(self, wall: float, event: str, **details: Any) -> None:
        """Write an event down at once."""
        said = {"time": round(wall, 3), "event": event, **details}
        self._log.write(json.dumps(said, ensure_ascii=False, default=str).encode() + b"\n")
        self._log.flush()
        if self.told is not None:
            self.told(said)

    def close(self) -> None:
        """Let others in."""
        with suppress(StorageError):  # a full disk may have no room for the last line
            self._log.close()
        self._lock.release()


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Keep others away from a job that is looked at and not changed: one may have no right to change it."""
    env = Env()
    check_job(path)
    if LOCK not in env.list(path):  # a copy without it: nobody crawls there
        yield
        return
    lock = _locked(path, env, make=False)
    try:
        yield
    finally:
        lock.release()


def read_seeds(env: Env, path: Path) -> list[str]:
    """The seeds of a job, as canonical URLs; `StorageError` for a file of anything else."""
    file = path / SEEDS
    try:
        seeds = env.read(file).decode().split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise StorageError(f"{file} is damaged at byte {error.start}: it is not UTF-8 text") from error
    for number, seed in enumerate(seeds, 1):
        try:
            if not seed.startswith(("http://", "https://")) or not split(seed).host:
                raise ValueError(seed)
        except ValueError as error:
            raise StorageError(f"{file} is damaged: line {number} is no URL") from error
    return seeds


def _locked(path: Path, env: Env, *, make: bool = True) -> FolderLock:
    lock = env.lock(path / LOCK, make=make)
    if lock is None:
        raise JobError(f"{path} is in use by another barkspider; wait for it, or choose another --job")
    return lock


def _is_unfinished(path: Path) -> bool:
    """Whether a folder holds nothing but what is made before the settings of a job are."""
    return all(
        entry.name == LOCK or (_UNFINISHED.fullmatch(str(entry.relative_to(path))) and not entry.is_symlink())
        for entry in path.rglob("*")
    )


def _lines(seeds: Sequence[str]) -> bytes:
    return "".join(f"{seed}\n" for seed in seeds).encode()
