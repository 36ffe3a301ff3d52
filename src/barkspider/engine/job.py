"""A job on disk: its folder, its lock, its settings, its log."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from barkspider.core.errors import JobError
from barkspider.core.load import dump_settings, replace
from barkspider.core.settings import Settings
from barkspider.storage.env import Env, FolderLock


class Job:
    """One crawl's folder, held by this process until `close`.

    JOB/settings.toml is complete; JOB/archive holds what was fetched, JOB/queues what waits,
    JOB/log.jsonl the events that a person would want to know.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     job = Job.create(Path(folder) / "job", Settings(seed=7), Env())
    ...     job.close()
    ...     sorted(path.name for path in job.path.iterdir())
    ['archive', 'job.lock', 'log.jsonl', 'queues', 'settings.toml']
    """

    def __init__(self, path: Path, settings: Settings, env: Env, lock: FolderLock) -> None:
        self.path, self.settings, self.env, self._lock = path, settings, env, lock
        self._log = env.append(path / "log.jsonl")
        self.archive, self.queues = path / "archive", path / "queues"

    @classmethod
    def create(cls, path: Path, settings: Settings, env: Env) -> Job:
        """Make a new job; a folder that holds anything is refused, and so is one in use."""
        if path.exists() and not path.is_dir():
            raise JobError(f"{path} is a file; name a folder for the job with --job")
        env.make_folder(path)
        lock = env.lock(path / "job.lock")
        if lock is None:
            raise JobError(f"{path} is in use by another barkspider; wait for it, or choose another --job")
        others = [name for name in env.list(path) if name != "job.lock"]
        if others:
            lock.release()
            what = "holds a crawl already" if "settings.toml" in others else "is not empty"
            raise JobError(f"{path} {what}; choose another folder with --job")
        if not settings.seed:  # a random one, so that no page can aim at collisions of keys
            settings = replace(settings, {"seed": secrets.randbits(62) + 1})
        env.write_whole(path / "settings.toml", dump_settings(settings).encode())
        job = cls(path, settings, env, lock)
        env.make_folder(job.archive)
        env.make_folder(job.queues)
        return job

    def log(self, wall: float, event: str, **details: Any) -> None:
        """Write an event down at once."""
        line = json.dumps(
            {"time": round(wall, 3), "event": event, **details}, ensure_ascii=False, default=str
        )
        self._log.write(line.encode() + b"\n")
        self._log.flush()

    def close(self) -> None:
        """Let others in."""
        self._log.close()
        self._lock.release()
