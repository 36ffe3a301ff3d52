"""Whose a URL is, where several processes divide a crawl, and what is frozen with a job for it.

Who owns a URL follows from the URL and from what the job was made with alone: every process finds the same owner, and
after a crash it finds the same again. So functions of a user's own have to give the same for the same URL at all times.
What a job is made with beside its settings lies in a file of each part (`freeze`): the URLs that are replicated, and how
much each top-level domain weighs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.errors import SettingsError
from barkspider.core.settings import Parallel, Settings
from barkspider.storage.env import Env
from barkspider.storage.store.snapshot import read_snapshot, write_snapshot
from barkspider.url import split
from barkspider.url.partition import SLOT_OF, KeyColumn, OwnerColumn, by_hash, by_hierarchy, top_level

FROZEN = "frozen.snapshot"
APART = ("cross-over", "independent")  # modes in which processes fetch what others own
_MOST_HOSTS = 100_000  # whose owners are remembered, some 100 bytes each
_OTHERS = "*"  # the top-level domains that are not named

# A function of the user's own: for URLs, the number of the process that owns each, of so many.
Function: TypeAlias = Callable[[Sequence[str], int], Sequence[int]]


def slot_of(parallel: Parallel) -> str:
    """The column whose key has the slot of a URL; that of its domain where a partition goes by no slots.

    >>> slot_of(Parallel(partition="site")), slot_of(Parallel(partition="hierarchical"))
    ('host_key', 'pld_key')
    """
    return SLOT_OF.get(parallel.partition, "pld_key")


def shares_hosts(parallel: Parallel) -> bool:
    """Whether several processes may ask the same host, and so have to take turns at it.

    >>> shares_hosts(Parallel(processes=2, partition="url")), shares_hosts(Parallel(processes=2, partition="site"))
    (True, False)
    """
    splits = parallel.partition == "url" or ":" in parallel.partition
    return parallel.processes > 1 and (splits or parallel.mode in APART)


def divides_domains(parallel: Parallel) -> bool:
    """Whether several processes may have URLs of the same domain."""
    return parallel.processes > 1 and (parallel.partition != "domain" or parallel.mode in APART)


def freeze(env: Env, folder: Path, replicas: UrlBatch, weights: Mapping[str, int]) -> None:
    """Write what a part needs to know for good: replicated URLs, and weights of top-level domains."""
    write_snapshot(env, folder / FROZEN, {"weights": dict(weights)}, {"replicas": replicas.encode()})


def frozen(env: Env, folder: Path) -> tuple[UrlBatch, dict[str, int]]:
    """What `freeze` wrote; nothing where it was not called."""
    if FROZEN not in env.list(folder):
        return NO_URLS, {}
    head, arrays = read_snapshot(env, folder / FROZEN)
    return UrlBatch.decode(arrays["replicas"]), head["weights"]


class Ownership:
    """See the module. One thread.

    >>> import tempfile
    >>> batch = UrlBatch.of([b"http://a.example/", b"http://b.example/"], key=[4095, 0], host_key=[1, 4095])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for partition in ("url", "site", "domain"):
    ...         Ownership(Settings(parallel=Parallel(2, partition=partition)), Env(), Path(folder)).of(batch).tolist()
    [1, 0]
    [0, 1]
    [0, 0]
    """

    def __init__(self, settings: Settings, env: Env, folder: Path) -> None:
        """`folder` is that of the part."""
        parallel = settings.parallel
        self._processes = parallel.processes
        # By address it is the owner of a host's name who finds out whose it is (`assigning`).
        self._column = "host_key" if parallel.partition == "address" else SLOT_OF.get(parallel.partition)
        self._function = load_function(parallel.partition) if ":" in parallel.partition else None
        replicas, weights = frozen(env, folder)
        self._replicas: KeyColumn = np.unique(replicas.key)
        self._groups = {name: number for number, name in enumerate(weights)}
        self._weights = np.array(
            [*weights.values(), 1], np.int64
        )  # the last is that of all others, unless it is given
        self._hosts: dict[int, int] = {}

    def of(self, batch: UrlBatch) -> OwnerColumn:
        """The process that owns each URL."""
        if self._column is not None:
            return by_hash(getattr(batch, self._column), self._processes)
        if self._function is not None:
            return self._by_function(batch, self._function)
        hosts, firsts, places = np.unique(batch.host_key, return_index=True, return_inverse=True)
        new = [at for at, host in enumerate(hosts.tolist()) if host not in self._hosts]
        if new:
            if len(self._hosts) > _MOST_HOSTS:
                self._hosts.clear()
                new = list(range(len(hosts)))
            owners = self._by_hierarchy(batch.take(firsts[new]))
            self._hosts.update(zip(hosts[new].tolist(), owners.tolist(), strict=True))
        return np.array([self._hosts[host] for host in hosts.tolist()], np.uint16)[places]

    def of_domains(self, keys: KeyColumn) -> OwnerColumn:
        """The process that counts who links to each domain, whatever the partition."""
        return by_hash(keys, self._processes)

    def replicated(self, batch: UrlBatch) -> npt.NDArray[np.bool_]:
        """Which URLs their owners have had from the beginning."""
        if not len(self._replicas):
            return np.zeros(len(batch), np.bool_)
        at = np.minimum(np.searchsorted(self._replicas, batch.key), len(self._replicas) - 1)
        found: npt.NDArray[np.bool_] = self._replicas[at] == batch.key
        return found

    def _by_hierarchy(self, batch: UrlBatch) -> OwnerColumn:
        names = [top_level(split(url.decode()).host) for url in batch.url.tolist()]
        others = self._groups.get(_OTHERS, len(self._groups))
        groups = np.array([self._groups.get(name, others) for name in names], np.int64)
        return by_hierarchy(groups, self._weights, batch.host_key, self._processes)

    def _by_function(self, batch: UrlBatch, function: Function) -> OwnerColumn:
        owners = np.asarray(function([url.decode() for url in batch.url.tolist()], self._processes))
        if owners.shape != (len(batch),) or not np.issubdtype(owners.dtype, np.integer):
            raise SettingsError(
                "the function of parallel.partition did not give one whole number for each URL"
            )
        if len(owners) and (owners.min() < 0 or owners.max() >= self._processes):
            raise SettingsError(
                f"the function of parallel.partition gave a number that none of {self._processes} processes has"
            )
        return owners.astype(np.uint16)


def load_function(path: str) -> Function:
    """The function that `package.module:function` names; `SettingsError` when there is none."""
    module, _, name = path.partition(":")
    try:
        function: Any = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"parallel.partition {path} cannot be imported: {error}") from error
    if not callable(function):
        raise SettingsError(f"parallel.partition {path} is not a function")
    found: Function = function
    return found
