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

SETTINGS, SOCKET, LOG = "settings.toml", "control.sock", "log.jsonl"
DIVISION = "job.toml"  # in a job of several processes: how these divide it
_PART = re.compile(r"part-\d{4}", re.ASCII)
_LINE = 1 << 20  # bytes of an event; the largest has statistics, a few kilobytes


def check_job(path: Path, *, part: bool = False) -> None:
    """Raise `JobError` for a folder that is not that of a crawl, and for one in which anything leads out of it.

    Whoever made the folder may have put a link where a job has a file, or a pipe that blocks its reader: what a job
    holds are files and folders. A part of a job stands for itself only to whoever says so.
    """
    if not (path / SETTINGS).is_file():
        raise JobError(f"{path} is not the folder of a crawl; name one that `barkspider crawl` made")
    if is_part(path) and not part and (path.parent / DIVISION).is_file():
        raise JobError(f"{path} is one part of a crawl; name {path.parent}, which is all of it")
    _check_parts(path)
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
        about = tomllib.loads((job / DIVISION).read_text("utf-8"))
        if not isinstance(about["processes"], int):
            raise ValueError("processes is no number")
    except (OSError, ValueError, KeyError) as error:
        raise JobError(f"{job / DIVISION} is damaged ({error}): put back the one that was there") from error
    return about


def _check_parts(job: Path) -> None:
    parts = [path for path in job.iterdir() if is_part(path) and path.is_dir()]
    if not (job / DIVISION).is_file():
        if parts:
            raise JobError(f"{job / DIVISION} is missing, though there are parts of a crawl: put it back")
        return
    wanted = read_division(job)["processes"]
    if len(parts) != wanted:
        raise JobError(f"{job} has {len(parts)} parts of {wanted}: put back those that are missing")


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
    return sorted(path for path in job.iterdir() if is_part(path) and path.is_dir())


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
    place = Path(entry.path).relative_to(job).parts
    if place[-1] != SOCKET or len(place) > 2 or not all(map(_PART.fullmatch, place[:-1])):
        raise JobError(f"{entry.path} is neither a file nor a folder; a job has none such: remove it")
