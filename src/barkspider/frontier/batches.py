"""Batches as files: what they are called, where they arrive, what is in them, and whether a file is one.

JOB/part-0001/exchange/0002-00000007.snapshot, the seventh of part 1 for part 2, is JOB/mail/0002/0001-00000007.snapshot there.

They are made by `exchange` of what is in an `outbox`; docs/parallel.md has all that is in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Trail
from barkspider.frontier.outbox import Cookies, assigned_in, cookies_in, edges_of
from barkspider.frontier.standing import Standing
from barkspider.frontier.trails import Trails
from barkspider.storage.env import Env
from barkspider.storage.format import checksum
from barkspider.storage.store.snapshot import SUFFIX, read_snapshot
from barkspider.url.partition import KeyColumn

NAME, MAIL = "exchange", "mail"  # folders of what is sent, in that of its sender, and of what arrives
_LARGEST = 1 << 28  # bytes of a batch: far more than `exchange` makes


class Batch(NamedTuple):
    """What one process sends another: links, for how many each stands, edges between domains, and what goes with them."""

    links: UrlBatch
    counts: npt.NDArray[np.uint32]
    edges: tuple[KeyColumn, KeyColumn]
    trails: dict[int, Trail]  # of links that redirects led to, by their keys
    cookies: dict[int, Cookies]
    scope: list[str]  # what belongs to it from now on
    assigned: dict[int, int]  # processes of hosts (`assigning`)
    standing: Standing
    news: bytes  # see `budget.hearsay`


def batch_name(process: int, number: int) -> str:
    """The file of a batch: in the folder of its sender by whom it is for, in that of its receiver by who sent it."""
    return f"{process:04d}-{number:08d}{SUFFIX}"


def inbox(folder: Path, part: int) -> Path:
    """Where batches for a process arrive, by the folder of any part of the job."""
    return folder.parent / MAIL / f"{part:04d}"


def read_batch(env: Env, path: Path) -> Batch:
    """What is in a batch."""
    head, arrays = read_snapshot(env, path)
    return Batch(
        UrlBatch.decode(arrays["links"]),
        np.frombuffer(arrays["counts"], np.uint32),
        edges_of(arrays["edges"]),
        dict(Trails.pairs(np.frombuffer(arrays["trails"], np.uint64))),
        cookies_in(head),
        _scope_in(head),
        assigned_in(head),
        Standing.read(arrays),
        arrays["news"],
    )


def check_batch(env: Env, path: Path) -> None:
    """Raise `StorageError` for what is no batch, though its checksum may be right: it may come from anybody."""
    if env.size(path) > _LARGEST:
        raise StorageError(f"{path} is larger than any batch")
    try:
        batch = read_batch(env, path)
        if len(batch.counts) != len(batch.links):
            raise ValueError("a count for each link")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StorageError(f"{path} is no batch: {error!r}") from error


def scope_of(env: Env, path: Path) -> list[str]:
    """What a batch adds to the scope of the crawl."""
    return _scope_in(read_snapshot(env, path)[0])


def cookies_of(env: Env, path: Path) -> Cookies:
    """The cookies that redirects in a batch have set."""
    return [each for cookies in cookies_in(read_snapshot(env, path)[0]).values() for each in cookies]


def checksum_of(env: Env, path: Path) -> int:
    """The checksum of a file as `Received` has it."""
    return checksum(env.read(path))


def _scope_in(head: Mapping[str, Any]) -> list[str]:
    if not all(isinstance(url, str) for url in head["scope"]):
        raise TypeError("URLs of the scope")
    return list(head["scope"])
