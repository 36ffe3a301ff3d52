"""How the folder of a job is told from others. On its own, so that whoever only asks need not load what crawls."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barkspider.core.errors import JobError

SETTINGS, SOCKET, LOG, LOCK = "settings.toml", "control.sock", "log.jsonl", "job.lock"
DIVISION = "job.toml"  # in a job of several processes: how these divide it
_PART = re.compile(r"part-\d{4}", re.ASCII)
# The parts of a job that was divided anew, and their mail, lie in a folder of their own; those of before stay where they are.
_GENERATION = re.compile(r"generation-\d{4}", re.ASCII)
_SOCKET = re.compile(rf"(generation-\d{{4}}/)?(part-\d{{4}}/)?{re.escape(SOCKET)}", re.ASCII)
_LINE = 1 << 20  # bytes of an event; the largest has statistics, a few kilobytes


def check_job(path: Path, *, part: bool = False) -> None:
    """Raise `JobError` for a folder that is not that of a crawl, and for one in which anything leads out of it.

    Whoever made the folder may have put a link where a job has a file, or a pipe that blocks its reader: what a job
    holds are files and folders. A part of a job stands for itself only to whoever says so.
    """
    if not (path / SETTINGS).is_file():
        if (path / LOCK).is_file() and not (path / LOG).exists():  # its settings come last
            raise JobError(
                f"{path} was ended while it was made, and nothing is in it: begin anew with `barkspider crawl` and --job {path}"
            )
        raise JobError(f"{path} is not the folder of a crawl; name one that `barkspider crawl` made")
    if not part and (whole := whole_of(path)) != path:
        raise JobError(f"{path} is one part of a crawl; name {whole}, which is all of it")
    check_contents(path)
    _check_parts(path)


def check_contents(path: Path) -> None:
    """Raise `JobError` where anything in a folder that others may have made is neither a file nor a folder of files."""
    folders = [str(path)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        _check_other(path, entry)
        except FileNotFoundError:
            continue  # a crawl that runs removes some
        except OSError as error:
            raise JobError(f"cannot look into {error.filename}: {error.strerror}") from error


def read_division(job: Path) -> dict[str, Any]:
    """What job.toml says; `JobError` when that is no answer."""
    try:
        with (job / DIVISION).open("rb") as file:
            data = file.read(_LINE)
    except OSError as error:
        raise JobError(f"cannot read {job / DIVISION}: {error.strerror}") from error
    return parse_division(data, job / DIVISION)


def parse_division(data: bytes, name: Path | str) -> dict[str, Any]:
    """What the bytes of a job.toml say."""
    try:
        about = tomllib.loads(data.decode())
        if type(about["processes"]) is not int or about["processes"] < 1:
            raise ValueError("processes is no number of them")
        if type(generation := about.get("generation", 0)) is not int or generation < 0:
            raise ValueError("generation is no number")
        for earlier in about.get("earlier", []):
            if not all(
                place == "." or is_generation(place) or is_part(Path(place)) for place in earlier.split("/")
            ):
                raise ValueError(f"{earlier!r} is no folder of a part")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise JobError(f"{name} is damaged ({error}): put back the one that was there") from error
    return about


def parts_in(job: Path, about: dict[str, Any]) -> Path:
    """The folder in which the parts of a job lie, by what its job.toml says.

    >>> parts_in(Path("jobs/web"), {}), parts_in(Path("jobs/web"), {"generation": 2})
    (PosixPath('jobs/web'), PosixPath('jobs/web/generation-0002'))
    """
    number = about.get("generation", 0)
    return job / f"generation-{number:04d}" if number else job


def _check_parts(job: Path) -> None:
    if not (job / DIVISION).is_file():
        if any(is_part(path) and path.is_dir() for path in job.iterdir()):
            raise JobError(f"{job / DIVISION} is missing, though there are parts of a crawl: put it back")
        return
    about = read_division(job)
    wanted, there = about["processes"], len(part_folders(job))
    if not there and any(job.glob("at-*")):
        raise JobError(
            f"{job} is crawled on a cluster: add --ray ADDRESS to speak to it, or bring it back from its store with "
            "`barkspider restore`"
        )
    if there != wanted:
        raise JobError(f"{job} has {there} parts of {wanted}: put back those that are missing")
    for earlier in about.get("earlier", []):
        if not (job / earlier / SETTINGS).is_file():
            raise JobError(f"{job / earlier} is missing, with pages that were fetched before: put it back")


def is_generation(name: str) -> bool:
    """Whether a folder of this name has the parts of a crawl that was divided anew.

    >>> is_generation("generation-0002"), is_generation("part-0002")
    (True, False)
    """
    return _GENERATION.fullmatch(name) is not None


def is_part(path: Path) -> bool:
    """Whether a folder is named as those of parts are.

    >>> is_part(Path("jobs/web/part-0003")), is_part(Path("jobs/web"))
    (True, False)
    """
    return _PART.fullmatch(path.name) is not None


def part_folders(job: Path) -> list[Path]:
    """The folders of the parts of a job that several processes crawl; the job itself, if it is one's.

    >>> part_folders(Path("jobs/example"))
    [PosixPath('jobs/example')]
    """
    if not (job / DIVISION).is_file():
        return [job]
    folder = parts_in(job, read_division(job))
    return (
        sorted(path for path in folder.iterdir() if is_part(path) and path.is_dir())
        if folder.is_dir()
        else []
    )


def archive_folders(job: Path) -> list[Path]:
    """The folders of all parts that have archived something, those included that there were before the crawl was divided
    anew; they come first.

    >>> archive_folders(Path("jobs/example"))
    [PosixPath('jobs/example')]
    """
    return [*earlier_folders(job), *part_folders(job)]


def earlier_folders(folder: Path) -> list[Path]:
    """The folders of parts, the oldest first, that there were before a crawl was divided anew, by that of the job or of a
    part."""
    whole = whole_of(folder)
    if not (whole / DIVISION).is_file():
        return []
    return [whole / earlier for earlier in read_division(whole).get("earlier", [])]


def whole_of(folder: Path) -> Path:
    """The job that a folder is a part of, or the folder itself.

    >>> whole_of(Path("jobs/web"))
    PosixPath('jobs/web')
    """
    for whole in (folder.parent, folder.parent.parent):
        if is_part(folder) and (whole / DIVISION).is_file():
            return whole
    return folder


def events(path: Path) -> Iterator[dict[str, Any]]:
    """The events in the log of a job; lines that a killed crawl did not finish, or others wrote, are left out."""
    try:
        with (path / LOG).open("rb") as lines:
            while line := lines.readline(_LINE):
                try:
                    event = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(event, dict) and isinstance(event.get("event"), str):
                    yield event
    except FileNotFoundError:
        return
    except OSError as error:
        raise JobError(f"cannot read {path / LOG}: {error.strerror}") from error


def _check_other(job: Path, entry: os.DirEntry[str]) -> None:
    if entry.is_symlink():
        raise JobError(
            f"{entry.path} is a link, which may lead anywhere: put what it stands for in its place, if you trust it"
        )
    if not _SOCKET.fullmatch(str(Path(entry.path).relative_to(job))):
        raise JobError(f"{entry.path} is neither a file nor a folder; a job has none such: remove it")
