"""What a process of a divided crawl has fetched, taken and left to others, as samples from which all of them together know
their overlap and coverage (*Parallel Crawlers*, section 4).

Keys of URLs are hashes. So those below a bound are a fair sample of any set of them, and where all processes have the same
bound, a URL that is in the sample of one is in that of every other that knows it: what is counted among samples, such as
pages that two processes fetched, is counted as often among all URLs in proportion. The bound is halved when a sample gets
too large; sets that never do are counted exactly.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import MANIFEST, read_manifest
from barkspider.storage.store.snapshot import Snapshot, read_snapshot
from barkspider.url.partition import KeyColumn

NAME = "census"
_ALL = (1 << 64) - 1
_SAMPLES = ("fetched", "taken", "left")
MOST = 4096  # keys in a sample: a share of 30% is known to 0.7 points, in 32 KB


class KeySample:
    """A fair sample of a growing set of keys: those up to `last`.

    >>> sample = KeySample(most=3)
    >>> sample.add(np.array([5, 2**63, 2**64 - 1, 2**62, 5], np.uint64))
    >>> sorted(sample.keys), sample.share
    ([5, 4611686018427387904], 0.5)
    """

    __slots__ = ("_most", "keys", "last")

    def __init__(self, keys: Iterable[int] = (), last: int = _ALL, most: int = MOST) -> None:
        self.keys, self.last, self._most = set(keys), last, most

    @property
    def share(self) -> float:
        """How much of all keys it looks at."""
        return (self.last + 1) / (_ALL + 1)

    def add(self, keys: KeyColumn) -> None:
        """Take keys, some of which may be there already."""
        self.keys.update(keys[keys <= np.uint64(self.last)].tolist())
        self._thin()

    def add_one(self, key: int) -> None:
        """Take one key."""
        if key <= self.last:
            self.keys.add(key)
            self._thin()

    def up_to(self, last: int) -> set[int]:
        """The keys of it up to a bound that is no higher than its own."""
        return self.keys if last == self.last else {key for key in self.keys if key <= last}

    def _thin(self) -> None:
        while len(self.keys) > self._most:
            self.last >>= 1
            self.keys = {key for key in self.keys if key <= self.last}


class Census:
    """The samples of one process, a `Structure`. One thread: the driver's.

    `fetched` are pages, `taken` URLs of its own that it heard of, `left` those of others that it dropped.
    """

    name = NAME

    def __init__(self, env: Env, folder: Path, state: dict[str, Any] | None) -> None:
        self._snapshot = Snapshot(env, folder, NAME, state)
        self._samples = (
            _decoded(*self._snapshot.read()) if state else {name: KeySample() for name in _SAMPLES}
        )
        self.fetched, self.taken, self.left = self._samples.values()

    def as_json(self) -> dict[str, Any]:
        """For whoever sees all processes."""
        return {
            name: [sample.last, b64encode(_packed(sample)).decode()] for name, sample in self._samples.items()
        }

    def samples(self) -> dict[str, KeySample]:
        """All of them by name."""
        return dict(self._samples)

    def take(self, samples: Mapping[str, KeySample], chosen: Callable[[KeyColumn], KeyColumn]) -> None:
        """Go on from samples of others, with the keys that are chosen."""
        for name, sample in samples.items():
            own = self._samples[name]
            own.keys, own.last = own.up_to(min(own.last, sample.last)), min(own.last, sample.last)
            own.add(chosen(np.fromiter(sample.keys, np.uint64, len(sample.keys))))

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        head = {name: sample.last for name, sample in self._samples.items()}
        arrays = {name: _packed(sample) for name, sample in self._samples.items()}
        return lambda: self._snapshot.write(head, arrays)

    def committed(self) -> None:
        """See `core.events.Structure`."""
        self._snapshot.committed()


def census_from(told: Mapping[str, Any]) -> dict[str, KeySample]:
    """What `Census.as_json` gave."""
    return {name: _sample(int(last), b64decode(packed)) for name, (last, packed) in told.items()}


def committed_census(env: Env, folder: Path) -> dict[str, KeySample]:
    """The samples that the last checkpoint of a process has; {} without one."""
    if MANIFEST not in env.list(folder):
        return {}
    state = read_manifest(env, folder)[1].get(NAME)
    if state is None:
        return {}
    (path,) = state["files"]
    return _decoded(*read_snapshot(env, folder / path))


def _decoded(head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> dict[str, KeySample]:
    try:
        return {name: _sample(int(head[name]), arrays[name]) for name in _SAMPLES}
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"the file of a census is damaged: {error!r}") from error


def _packed(sample: KeySample) -> bytes:
    return np.fromiter(sample.keys, np.uint64, len(sample.keys)).tobytes()


def _sample(last: int, packed: bytes) -> KeySample:
    return KeySample(np.frombuffer(packed, np.uint64).tolist(), last)
