"""Crawls read where their copies are: `query`, `export`, `report` and `show` of a store, or of a job whose pages are only there.

STORE ─ settings, log, history, tables, indexes ─► a folder for a while      STORE ─ pages, as they are asked for ─► reader
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from barkspider.core.errors import StorageError
from barkspider.engine.copying import copied_folders, has_crawl, is_warc, name_of, restore_job
from barkspider.engine.folder import SETTINGS
from barkspider.engine.trust import read_settings, write_settings
from barkspider.storage.env import Env
from barkspider.storage.store.copies import last_copy
from barkspider.storage.store.lending import LendingEnv, Lent
from barkspider.storage.store.remote import Remote

_ARCHIVE = "archive"
_READ = {_ARCHIVE, "history", "census", "frontier"}  # folders of which those who read take something


@contextmanager
def at_hand(job: str) -> Iterator[Path]:
    """The folder of a crawl: of one that is named by its store, one with all but its pages, which goes at the end."""
    if not is_store(job):
        yield Path(job)
        return
    with TemporaryDirectory(prefix="barkspider-", ignore_cleanup_errors=True) as scratch:
        folder, env = Path(scratch) / Path(job).name, Env()
        restore_job(env, job, folder, wanted=_small)
        for place in {folder / place for place in copied_folders(job).values()}:
            if SETTINGS in env.list(place):
                settings = read_settings(env, place)
                write_settings(
                    env,
                    place,
                    replace(
                        settings,
                        store=replace(settings.store, url=job),
                        archive=replace(settings.archive, keep_local=False),
                    ),
                )
        yield folder


def is_store(job: str) -> bool:
    """Whether a crawl is named by its store, and not by its folder.

    >>> is_store("s3://bucket/crawl"), is_store("jobs/web")
    (True, False)
    """
    if "://" in job:
        return True
    path = Path(job)
    return path.is_dir() and not (path / SETTINGS).is_file() and has_crawl(str(path.absolute()))


def lending(folder: Path, archives: Sequence[Path]) -> Env:
    """What a job is read through: if it keeps no pages, through its store. Nobody asks that before a page is read."""
    settings = read_settings(Env(), folder)
    if not settings.store.url or settings.archive.keep_local:
        return Env()
    return LendingEnv({archive: partial(_lent, settings.store.url, archive.parent) for archive in archives})


def _lent(url: str, folder: Path) -> tuple[Remote, Lent]:
    remote = Remote.at(url)
    copy = last_copy(remote, name_of(folder))
    if copy is None:
        raise StorageError(f"{url} has no copy of {folder}")
    start = f"{_ARCHIVE}/"
    return remote, {
        file.removeprefix(start): pieces
        for file, pieces in copy.files.items()
        if file.startswith(start) and is_warc(file)
    }


def _small(files: Iterable[str]) -> set[str]:
    return {
        file for file in files if ("/" not in file or file.partition("/")[0] in _READ) and not is_warc(file)
    }
