"""Which links are new, where the set of seen URLs lies on disk: pages wait until a DRUM has told.

    ask ─► N, a queue ───────────────────────────────► answered ─► who places the links ─► mark
      └─ keys, to check ─► DRUM ─ merge ─► unknown ───────┘                                 │
                            ▲───────────────────────────────────── keys, to update ◄────────┘

A *round* is what was asked since the last merge began. When a merge ends, Z has told which of the round's links are not in
it, and the pages of the round come out in the order in which they were asked. What is done with a page may mark some of its
links as seen; these are not in Z before the next merge, so they are remembered in RAM, and those of the round before too:
links of this round were checked while it was still being placed. So each answer is the one that a set in RAM would give if
pages had come one after the other.

Each round passes over all of Z. That a key is in Z never changes, so keys that were found there lately are not asked for
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Structure
from barkspider.frontier.gate import States
from barkspider.storage.columns import Keys
from barkspider.storage.drum.repository import CHECK, UPDATE, Drum
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.env import Env
from barkspider.storage.keyset import KeySet
from barkspider.storage.queue.disk_queue import DiskQueue
from barkspider.url.partition import slotted

# A round ends when it has so many keys that those which are unknown, and those which are marked, take an eighth of `memory`
# each at most: 16 bytes a key. So no generation of buckets has to end by itself.
_ROUND_SHARE, _KEY_IN_RAM = 8, 16
_FRONT_SHARE, _FRONT_KEY = 64, 52  # known keys that are remembered, in two sets of 26 bytes a key
_ENDLESS = 1 << 62
_SIZING = Sizing(buckets=16, buffer=1 << 16, bucket_bytes=_ENDLESS, disk=_ENDLESS)
_BLOCKS = 4  # blocks of answers read in one step: a few milliseconds


class Asked(NamedTuple):
    """Something that waits to be placed: a `kind` of the caller's, the page first if it has one, and links."""

    kind: int
    page: UrlBatch
    links: UrlBatch


class Inquiries:
    """See the module. One thread; it owns N and the DRUM.

    Invariants: of N the first `_left` entries belong to the round that was merged; `recent` has all keys that were marked
    and may be asked for by a round whose checks went before.

    >>> import tempfile
    >>> from barkspider.core.batch import NO_URLS
    >>> from barkspider.core.records import UrlRow
    >>> links = UrlBatch.from_rows([UrlRow(1 << 20, 2, 3, 0, 0, 0, 0, b"http://a.example/")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asked = Inquiries(Env(), Path(folder), memory=64_000_000, state=lambda _: None, background=False)
    ...     for _ in range(2):
    ...         asked.ask([Asked(7, NO_URLS, links)]); asked.merge()
    ...         for kind, _, new in asked.answered(most=9):
    ...             kind, len(new), int(asked.mark(keys_of(new)).sum())
    ...     asked.close()
    (7, 1, 1)
    (7, 0, 0)
    """

    def __init__(
        self,
        env: Env,
        folder: Path,
        memory: int,
        state: States,
        background: bool,
        slot_of: str = "pld_key",
    ) -> None:
        self._slot_of = slot_of
        self._drum = Drum(
            env, folder, "seen", output="unique", sizing=_SIZING, background=background, state=state("seen")
        )
        self._queue = DiskQueue(env, folder, "queues/N", state=state("queues/N"))
        self._most = memory // _ROUND_SHARE // _KEY_IN_RAM
        self._front = _Front(memory // _FRONT_SHARE // _FRONT_KEY)
        self.recent = KeySet()  # marked in this round and in the one before
        self._marked: list[Keys] = []  # of these, in this one
        self._unknown = KeySet()  # keys of the round that are not in Z
        self._rows = 0  # keys asked for since the last merge began
        self._begun = False  # whether a merge was begun and its answers have not all been read
        self._left = 0

    def __len__(self) -> int:
        """Entries that wait."""
        return len(self._queue)

    @property
    def seen(self) -> int:
        """Keys that are marked: those in Z, and those that a merge has still to put there."""
        unmerged = len(self.recent) if self._drum.merging else 0
        return len(self._drum) + sum(map(len, self._marked)) + unmerged

    @property
    def structures(self) -> tuple[Structure, Structure]:
        """N and the DRUM, in this order."""
        return (self._queue, self._drum)

    @property
    def is_open(self) -> bool:
        """Whether no round is being answered, so that the next merge may begin."""
        return not self._begun and not self._left

    @property
    def is_full(self) -> bool:
        """Whether the round that is asked for should be merged, and no further one be begun before."""
        return self._rows >= self._most

    @property
    def merging(self) -> bool:
        """Whether a merge runs: nothing can be answered before it ends."""
        return self._drum.merging

    def ask(self, entries: Sequence[Asked]) -> None:
        """Have entries wait until it is known which of their links are new; what is known not to be is left out at once."""
        keys = keys_of(UrlBatch.join([entry.links for entry in entries]), self._slot_of)
        unsure = self.recent.missing(keys) & self._front.missing(keys)
        first = 0
        for kind, page, links in entries:
            rest = links.where(unsure[first : first + len(links)])
            entry = UrlBatch.join([page, rest]) if len(page) else rest
            self._queue.append(bytes([kind, len(page)]) + entry.encode())
            first += len(links)
        keys = keys[unsure]
        self._drum.feed(CHECK, keys)
        self._rows += len(keys)

    def merge(self) -> None:
        """Begin to find out about all that was asked; only while `is_open`."""
        assert self.is_open
        self._begun = True
        self._drum.merge(wait=False)
        self._left, self._rows = len(self._queue), 0
        self.recent = _set_of(self._marked)
        self._marked = []

    def answered(self, most: int) -> Iterator[Asked]:
        """At most so many entries of the round, in order, with the links that are not in Z: new, unless they are `recent`."""
        if self._drum.merging:
            return
        if self._begun:
            self._drum.wait()  # raises what the merge failed with
            read = list(islice(self._drum.results(), _BLOCKS))
            for found in read:
                self._unknown.add(found.keys)
            if len(read) == _BLOCKS:
                return
            self._begun = False
        for _ in range(min(most, self._left)):
            self._left -= 1
            entry = _decoded(self._queue.pop())
            keys = keys_of(entry.links, self._slot_of)
            known = self._unknown.missing(keys)
            self._front.add(keys[known])
            yield entry._replace(links=entry.links.where(~known))
        if not self._left:
            self._unknown = KeySet()

    def mark(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """Mark keys as seen; which of them were not among the `recent` ones."""
        new = self.recent.add(keys)
        self.marked(keys[new])
        return new

    def marked(self, keys: Keys) -> None:
        """These keys were put into `recent` by the caller, who had it lent."""
        self._marked.append(keys)
        self._drum.feed(UPDATE, keys)

    @property
    def unmerged(self) -> int:
        """Keys, asked for or marked, that Z does not know of."""
        return self._drum.pending

    def wait(self) -> None:
        """Wait for the merge that runs."""
        self._drum.wait()

    def known(self) -> Iterator[Keys]:
        """All that is in Z, in order."""
        return (keys for keys, _ in self._drum.items())

    def know(self, keys: Keys) -> None:
        """Mark keys of which nothing was asked here before."""
        self._drum.feed(UPDATE, keys)

    def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is in RAM, for a checkpoint, without `recent`, which the caller keeps."""
        undone = self._drum.merging  # then it is done again, and nothing was marked since it began
        return {
            "left": 0 if undone else self._left,
            "begun": self._begun and not undone,
            "rows": self._rows,
        }, {
            "marked": self.recent.keys() if undone else _joined(self._marked),
            "unknown": self._unknown.keys(),
        }

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Take what `save` gave. A merge that was running, or ended just then, is part of the next one."""
        self._left, self._begun, self._rows = int(head["left"]), bool(head["begun"]), int(head["rows"])
        self._marked = [np.frombuffer(arrays["marked"], np.uint64)]
        self._unknown.add(np.frombuffer(arrays["unknown"], np.uint64))

    def traffic(self) -> dict[str, int]:
        """What its DRUM moved."""
        return self._drum.traffic()

    def validate(self) -> None:
        """Check the invariants."""
        assert 0 <= self._left <= len(self._queue)
        assert not self.recent.missing(_joined(self._marked)).any()
        self._queue.validate()
        self._drum.validate()

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        self._queue.close()
        self._drum.close()


class _Front:
    """Keys that were found in Z lately: at least the last `most`, unless forgotten and found again."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._young, self._old = KeySet(), KeySet()

    def missing(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """Which keys are not remembered; those that are stay for longer."""
        old = ~self._old.missing(keys)
        absent = self._young.missing(keys) & ~old
        self.add(keys[old])
        return absent

    def add(self, keys: Keys) -> None:
        """Remember keys."""
        if len(self._young) >= self._most:
            self._young, self._old = KeySet(), self._young
        self._young.add(keys)


def keys_of(batch: UrlBatch, slot_of: str = "pld_key") -> Keys:
    """Keys of the set of seen URLs, which tell their slots by that column; 0 is none."""
    return np.maximum(slotted(batch.key, getattr(batch, slot_of)), np.uint64(1))


def _decoded(item: bytes) -> Asked:
    batch = UrlBatch.decode(item[2:])
    if len(item) < 2 or item[1] > len(batch):
        raise StorageError("an entry of the queue N is damaged")
    return Asked(item[0], batch.slice(0, item[1]), batch.slice(item[1], len(batch)))


def _joined(parts: list[Keys]) -> Keys:
    return np.concatenate([*parts, np.empty(0, np.uint64)])


def _set_of(parts: list[Keys]) -> KeySet:
    keys = KeySet()
    keys.add(_joined(parts))
    return keys
