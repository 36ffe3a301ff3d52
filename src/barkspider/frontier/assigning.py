"""The partition by address: which process has a host, by the server that it was found on (Viúva Negra, IP partitioning).

    URLs of a host ─► the owner of its name ─ is it assigned? ─ yes ─► sent to the process that owns its address
                                                └ no ─► A, a queue on disk ─ ResolveHost ─► HostResolved, a record ─┘

A host is assigned once, by the process that owns the slot of its name, when the first URL of it comes up there. What
the look-up gave is a record of the journal, so the same is found after a crash, whatever DNS says by then; a host
without an address stays with the owner of its name. Others send URLs of a host to that one until they have heard of its
assignment, which goes with every batch that has URLs of it (`outbox`). As nobody but its process takes URLs of a host,
and no assignment changes, it does not matter for how long they go the long way.

What waits is looked through when as many hosts were assigned since as still wait: so a URL is passed over a few times at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.events import HostResolved, Prepared, ResolveHost
from barkspider.core.settings import Settings
from barkspider.core.texts import Texts
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import DiskQueue
from barkspider.url import KeyMaker, split
from barkspider.url.partition import KeyColumn, OwnerColumn, by_address, by_hash

UNASSIGNED = (
    0xFFFF  # instead of a process: a host of whose name this one is the owner, and that nobody has yet
)
_AT_ONCE = 2_000  # URLs that are looked through at a time
_MOST_WAITING = 100_000  # hosts; while more wait nothing is fetched
_RECENT = 1_000  # assignments, at least, that lie beside the sorted ones; a sixteenth of these at most
_HOSTS, _OWNERS = "assigned hosts", "assigned owners"


class Assigning:
    """See the module. A `Structure`, as far as URLs wait; what else it knows is kept by `exchange`. One thread.

    An assignment takes 10 bytes. Invariant: `_waiting` has the names of all hosts of URLs in the queue that are not assigned.

    >>> import tempfile
    >>> from barkspider.core.settings import Parallel
    >>> urls = UrlBatch.of([b"http://a.example/", b"http://b.example/"], host_key=[5, 4095])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hosts = Assigning(Settings(parallel=Parallel(2, partition="address")), Env(), Path(folder), None)
    ...     hosts.of(urls)[0].tolist(), hosts.hold(urls.slice(0, 1)), hosts.lookups()
    ...     len(hosts.assign(HostResolved(ResolveHost("a.example", 5, assigns=True), ("192.0.2.1",)))), hosts.close()
    ([65535, 1], None, [ResolveHost(host='a.example', host_key=5, assigns=True)])
    (1, None)
    """

    name = "queues/A"

    def __init__(self, settings: Settings, env: Env, folder: Path, state: dict[str, Any] | None) -> None:
        self._part, self._processes = settings.parallel.part, settings.parallel.processes
        self._most, self._keys = settings.dns.in_flight, KeyMaker(settings.seed)
        self._queue = DiskQueue(env, folder, self.name, state=state)
        self._hosts: KeyColumn = np.empty(0, np.uint64)  # that are assigned, sorted
        self._owners: OwnerColumn = np.empty(0, np.uint16)  # to these
        self._recent: dict[int, int] = {}  # those that came last
        self._waiting: dict[int, str] = {}
        self._asked: set[int] = set()
        self._answered = 0  # since what waits was looked through

    def __len__(self) -> int:
        """URLs that wait."""
        return len(self._queue)

    @property
    def under_way(self) -> int:
        """Hosts that are being looked up."""
        return len(self._asked)

    @property
    def is_full(self) -> bool:
        """Whether so many hosts wait that nothing more should be found."""
        return len(self._waiting) > _MOST_WAITING

    def of(self, batch: UrlBatch) -> tuple[OwnerColumn, npt.NDArray[np.bool_]]:
        """The process to which each URL goes from here, and whether that is the one that has its host; `UNASSIGNED` for those
        that have to wait."""
        hosts, places = np.unique(batch.host_key, return_inverse=True)
        owners, known = by_hash(hosts, self._processes), np.zeros(len(hosts), np.bool_)
        owners[owners == self._part] = UNASSIGNED
        if len(self._hosts):
            at = np.minimum(np.searchsorted(self._hosts, hosts), len(self._hosts) - 1)
            known = self._hosts[at] == hosts
            owners[known] = self._owners[at[known]]
        for row, host in enumerate(hosts.tolist()) if self._recent else ():
            if host in self._recent:
                owners[row], known[row] = self._recent[host], True
        return owners[places], known[places]

    def learn(self, assigned: Mapping[int, int]) -> None:
        """Take assignments of hosts, which never change."""
        self._recent |= assigned
        if len(self._recent) > max(_RECENT, len(self._hosts) // 16):
            self._sort()

    def hold(self, links: UrlBatch) -> None:
        """Let URLs of hosts that are not assigned wait."""
        hosts, firsts = np.unique(links.host_key, return_index=True)
        new = [at for at, host in enumerate(hosts.tolist()) if host not in self._waiting]
        for host, url in zip(hosts[new].tolist(), links.take(firsts[new]).url.tolist(), strict=True):
            self._waiting[host] = split(url.decode()).host
        self._queue.append_batch(links.packed.to_arrow())

    def lookups(self) -> Sequence[ResolveHost]:
        """The hosts that are to be looked up now."""
        if len(self._asked) >= min(self._most, len(self._waiting)):
            return []
        new = [host for host in self._waiting if host not in self._asked][: self._most - len(self._asked)]
        self._asked.update(new)
        return [ResolveHost(self._waiting[host], host, assigns=True) for host in new]

    def assign(self, outcome: HostResolved) -> UrlBatch:
        """A host was looked up: assign it for good; URLs that need not wait any more."""
        host = outcome.asked.host_key
        self._asked.discard(host)
        if self._waiting.pop(host, None) is not None:
            address = self._keys.of(outcome.addresses[0]) if outcome.addresses else 0
            owner = by_address(np.array([address], np.uint64), np.array([host], np.uint64), self._processes)
            self.learn({host: int(owner[0])})
            self._answered += 1
        if self._answered < len(self._waiting):
            return NO_URLS
        self._answered = 0
        free, left = list[UrlBatch](), len(self._queue)
        while left > 0:
            batch = UrlBatch.checked(Texts.from_arrow(self._queue.pop_batch(min(left, _AT_ONCE))))
            left -= len(batch)
            known = self.of(batch)[1]
            free.append(batch.where(known))
            if not known.all():
                self._queue.append_batch(batch.where(~known).packed.to_arrow())
        return UrlBatch.join(free)

    def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is in RAM: something for JSON, and arrays, for `load`."""
        self._sort()
        head = {"waiting": list(self._waiting.items()), "answered": self._answered}
        return head, {_HOSTS: self._hosts, _OWNERS: self._owners}

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Take what `save` gave."""
        self._waiting = {int(host): str(name) for host, name in head["waiting"]}
        self._answered = int(head["answered"])
        self._hosts = np.frombuffer(arrays[_HOSTS], np.uint64)
        self._owners = np.frombuffer(arrays[_OWNERS], np.uint16)

    def _sort(self) -> None:
        """Lay those that came last among the others, in new arrays."""
        hosts = np.concatenate([self._hosts, np.array([*self._recent], np.uint64)])
        owners = np.concatenate([self._owners, np.array([*self._recent.values()], np.uint16)])
        self._hosts, firsts = np.unique(hosts, return_index=True)
        self._owners, self._recent = owners[firsts], {}

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        return self._queue.prepare()

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self._queue.committed()

    def validate(self) -> None:
        """Check the invariants."""
        self._queue.validate()
        assert self._asked <= self._waiting.keys()
        assert not self._waiting or len(self._queue)

    def close(self) -> None:
        """Let go of the file; what was committed stays."""
        self._queue.close()
