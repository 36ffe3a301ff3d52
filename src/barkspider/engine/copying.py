"""Copies of a job, or of a part of one, in a store: made at each checkpoint, and brought back when the machine is gone.

    checkpoint ─► manifest ─► what it names, the archive, settings and log ─► `storage.store.copies` ─► the store
    the last copy ─► a folder ─► a crawl, as of that checkpoint

STORE/
  whole/…                       the copies of a job of one process
  part-0000/… , job/…           those of the parts of a job, and what is about the whole
  generation-0001-part-0000/…   those of a job that was divided anew
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from barkspider.archive.reader import OPEN, warc_number
from barkspider.core.errors import JobError, StorageError
from barkspider.core.settings import Settings
from barkspider.engine.folder import (
    DIVISION,
    LOCK,
    LOG,
    SETTINGS,
    is_generation,
    is_part,
    parse_division,
    parts_in,
)
from barkspider.storage.env import Env
from barkspider.storage.store.copies import CopiedFile, Copies, FencedError, Index, bring_back, last_copy
from barkspider.storage.store.manifest import MANIFEST, read_manifest
from barkspider.storage.store.remote import Remote

if TYPE_CHECKING:
    from barkspider.engine.job import Job

WHOLE, JOB = "whole", "job"  # names in a store: a job of one process; what a job of parts has beside these
INCARNATIONS = "incarnations.json"  # in a folder: as whom copies of it were made, and which was brought back
Choice = Callable[[Iterable[str]], set[str]]  # of the files of a copy
_NOT_COPIED = {LOCK, INCARNATIONS}
_AGAIN = 5  # times that a copy is begun anew because files were merged or completed meanwhile


def copying(job: Job) -> Callable[[], str] | None:
    """What copies the last checkpoint of a job to its store, if it has one, and gives what went wrong or "". A store that
    cannot be written to ends no crawl: the next copy has all that this one lacks."""
    if not job.settings.store.url:
        return None
    copier = Copier(job.env, job.path, job.settings, job.incarnation)

    def copy() -> str:
        try:
            copier.copy()
        except FencedError:
            raise
        except StorageError as error:
            return str(error)
        return ""

    return copy


class Copier:
    """Makes the copies of one folder. Any thread, one at a time; nobody makes a checkpoint meanwhile."""

    def __init__(self, env: Env, folder: Path, settings: Settings, incarnation: str = "") -> None:
        """As who has claimed the folder already, or by claiming it now."""
        remote, name = Remote.at(settings.store.url), name_of(folder)
        self._env, self._folder, self._keep = env, folder, settings.archive.keep_local
        self._copies = Copies(remote, name, incarnation) if incarnation else Copies.claim(remote, name)
        if not _follows(env, folder, self._copies.last):
            raise JobError(
                f"{settings.store.url} has copies of another crawl, or of this one that went on elsewhere: name another --store, "
                "or bring them back with `barkspider restore`"
            )
        _note(env, folder, self._copies.incarnation)

    def copy(self) -> None:
        """Copy the last checkpoint. `FencedError` when the folder is another's by now, `StorageError` when the store cannot
        be written to."""
        for again in reversed(range(_AGAIN)):
            try:
                sources = dict(self._sources())
                self._copies.copy(sources)
                break
            except FencedError:
                raise
            except StorageError:
                if not again or self._are_there(sources):
                    raise
        if not self._keep:
            self._remove_complete()

    def _sources(self) -> Iterator[tuple[str, CopiedFile | None]]:
        env, folder = self._env, self._folder
        _, states = read_manifest(env, folder)
        for state in states.values():
            for file, length in state.get("files", {}).items():
                yield file, CopiedFile(folder / file, length)
        archive = folder / "archive"
        # Here: who only reads does without the kernels of who writes.
        from barkspider.archive.committed import committed_files

        for name, path, size, complete in committed_files(env, archive, states["kept"]):
            file = f"{archive.name}/{name}"
            if size is not None:
                yield file, CopiedFile(path, size, apart=complete)
            elif file in self._copies.last.files:
                yield file, None
        for name in env.list(folder):
            path = folder / name
            if path.is_file() and name not in _NOT_COPIED and not name.endswith(".new"):
                yield name, CopiedFile(path, env.size(path), grows=name == LOG)

    def _are_there(self, sources: dict[str, CopiedFile | None]) -> bool:
        return all(source is None or source.path.is_file() for source in sources.values())

    def _remove_complete(self) -> None:
        """Complete WARC files that the store has; the one that was written to last stays, since a crawl may go on with it."""
        places = {name for name, _ in read_manifest(self._env, self._folder)[1]["kept"]["places"].values()}
        for file in self._copies.last.files:
            path = self._folder / file
            if is_warc(file) and path.suffix != OPEN and path.name not in places:
                self._env.remove(path)


def take_over(env: Env, folder: Path, url: str) -> str:
    """Claim the copies of a folder, and bring the last one back unless what lies in the folder follows from it; as whom."""
    remote, name = Remote.at(url), name_of(folder)
    copies = Copies.claim(remote, name)
    if not _follows(env, folder, copies.last):
        _clear(env, folder)
        bring_back(remote, copies.last, env, folder, [SETTINGS])
        _note(env, folder, copies.last.number)
    _note(env, folder, copies.incarnation)
    return copies.incarnation


def has_copy(folder: Path, url: str) -> bool:
    """Whether a store has a copy of a folder."""
    return last_copy(Remote.at(url), name_of(folder)) is not None


def copy_about(env: Env, job: Path, url: str) -> None:
    """Copy what a job of parts has beside these: how it is divided, its settings and seeds."""
    files = [
        name
        for name in env.list(job)
        if (job / name).is_file() and name.endswith((".toml", ".txt", ".jsonl"))
    ]
    sources: dict[str, CopiedFile | None] = {
        name: CopiedFile(job / name, env.size(job / name), grows=False) for name in files
    }
    Copies.claim(Remote.at(url), JOB).copy(sources)


def read_about(url: str, name: str) -> bytes | None:
    """A file of what a job of parts has beside these, as the store has it; None when it has not."""
    remote = Remote.at(url)
    index = last_copy(remote, JOB)
    if index is None or name not in index.files:
        return None
    return b"".join(remote.get(piece.object, piece.offset, piece.length) for piece in index.files[name])


def restore_job(
    env: Env,
    url: str,
    job: Path,
    tell: Callable[[str], None] = lambda _: None,
    wanted: Choice = set,
) -> int:
    """Bring the last copies of a whole job into a folder that does not exist or is empty, or such files of them as are
    `wanted`; how many files that were."""
    if env.list(job):
        raise JobError(f"{job} is not empty: name a folder that does not exist")
    remote, places, count = Remote.at(url), copied_folders(url), 0
    # What is about the whole comes last: without it the folder is not taken for a job.
    for name, place in places.items():
        apart = len(places) > 1 and name == WHOLE  # what the job was before it was divided
        count += _restore(
            remote,
            name,
            env,
            job / place,
            lambda files, apart=apart: wanted(files) - ({SETTINGS} if apart else set()),  # type: ignore[misc]
        )
        tell(f"{name} is back")
    return count


def copied_folders(url: str) -> dict[str, Path]:
    """The names under which a store has copies of a job, that of the whole last, and where each lies in the folder of the
    job. `JobError` when the store has none, or not all."""
    remote = Remote.at(url)
    division = read_about(url, DIVISION)
    if division is None:
        if last_copy(remote, WHOLE) is None:
            raise JobError(f"{url} holds no copy of a crawl")
        return {WHOLE: Path()}
    about = parse_division(division, f"{DIVISION} in {url}")
    earlier = [Path(place) for place in about.get("earlier", [])]
    parts = [parts_in(Path(), about) / f"part-{part:04d}" for part in range(about["processes"])]
    places = {name_of(place): place for place in [*parts, *earlier]}
    missing = [name for name in places if last_copy(remote, name) is None]
    if missing:
        raise JobError(
            f"{url} has {len(places) - len(missing)} parts of {len(places)}: {missing[0]} is missing"
        )
    return {**places, JOB: Path()}


def has_crawl(url: str) -> bool:
    """Whether a store has copies of a crawl, or of what is about the whole of one."""
    return any(last_copy(Remote.at(url), name) is not None for name in (JOB, WHOLE))


def without_pages(files: Iterable[str]) -> set[str]:
    """Those files of a copy that a crawl needs to go on: all but the WARC files that it will not write to.

    >>> series = [f"archive/pages-2027-{number:05d}.warc.gz" for number in range(3)]
    >>> sorted(without_pages([*series, "archive/robots-2027-00000.warc.gz.open", "seeds.txt"]))
    ['archive/pages-2027-00002.warc.gz', 'archive/robots-2027-00000.warc.gz.open', 'seeds.txt']
    """
    found, last = set[str](), dict[str, str]()
    for file in sorted(files, key=warc_number):
        if is_warc(file):
            last[file.partition("-")[0]] = file
        else:
            found.add(file)
    return found | set(last.values())


def is_warc(file: str) -> bool:
    """Whether a file of a copy has pages, or robots.txt files."""
    return ".warc." in file


def forget(url: str, folder: Path) -> None:
    """Remove the copies of a folder that belongs to no job."""
    remote = Remote.at(url)
    remote.remove(remote.walk(name_of(folder)))


def name_of(folder: Path) -> str:
    """What a folder is called in a store.

    >>> name_of(Path("jobs/web/part-0003")), name_of(Path("jobs/web"))
    ('part-0003', 'whole')
    >>> name_of(Path("jobs/web/generation-0002/part-0003"))
    'generation-0002-part-0003'
    """
    if not is_part(folder):
        return WHOLE
    return f"{folder.parent.name}-{folder.name}" if is_generation(folder.parent.name) else folder.name


def _restore(remote: Remote, name: str, env: Env, folder: Path, wanted: Choice) -> int:
    tried = set[str]()
    while True:
        index = last_copy(remote, name)
        assert index is not None
        names = wanted(index.files)
        chosen = replace(index, files={name: index.files[name] for name in names})
        try:
            bring_back(remote, chosen, env, folder, [DIVISION, SETTINGS])
            for name in tried - names:
                env.remove(folder / name)
            _note(env, folder, index.number)
            return len(chosen.files)
        except StorageError:
            latest = last_copy(remote, name)
            if latest is None or latest.serial == index.serial:
                raise  # else a crawl that runs has made another one, and removed this
            tried |= names


def _follows(env: Env, folder: Path, last: Index) -> bool:
    """Whether what lies in a folder follows from the last copy: it was made from there, or that was brought back there."""
    return not last.serial or not {last.incarnation, last.number}.isdisjoint(_noted(env, folder))


def _noted(env: Env, folder: Path) -> list[str]:
    if INCARNATIONS not in env.list(folder) or MANIFEST not in env.list(folder):
        return []
    try:
        return [str(each) for each in json.loads(env.read(folder / INCARNATIONS))]
    except (ValueError, TypeError):
        return []


def _note(env: Env, folder: Path, incarnation: str) -> None:
    noted = _noted(env, folder)
    if incarnation not in noted:
        env.make_folder(folder)
        env.write_whole(folder / INCARNATIONS, json.dumps([*noted, incarnation]).encode())


def _clear(env: Env, folder: Path) -> None:
    """Remove all files of a folder and below: they are of a crawl that others have gone on with since."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() or path.is_symlink():
            env.remove(path)
