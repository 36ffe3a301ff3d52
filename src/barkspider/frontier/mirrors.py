"""Mirrors: hosts that serve what another host serves, noticed while they are crawled (Viúva Negra, section 2.3).

    its home page is another host's ─► suspect ─ one more document is the other's too ─► mirror: its URLs are refused
    a document before that, at the     ▲  └ three documents at the other's paths are not, or time is over ─► a host like others
    same path ─► its home page comes ──┘

This is SameHomeAnd1Doc, which Table I has at a precision of 92%, for as few fetches as can be: a suspect is asked only for paths
at which the other host has shown something, one after the other; what else comes up of it is put off. Which of two
hosts is the mirror is arbitrary, as the paper says: the one whose home page came later.

All follows from the outcomes of pages, so the journal has it. Processes that divide a crawl tell each other what their hosts
have shown, with the batches that they send anyhow.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from barkspider.core.errors import StorageError
from barkspider.core.records import Flag, UrlRow
from barkspider.url import KeyMaker, split

_SHOWN = 16  # documents of a host that are remembered: the first that a crawl comes by, which those of its mirror will be
_UNLIKE = 3  # documents of a suspect that are not the other's, after which it is none
_BYTES = 800  # of what is remembered of a host, with sixteen bytes for each document by which it is found
_MASK = (1 << 64) - 1
_PATIENCE, _LEAST_PATIENCE = 30, 1.0  # times the pause of a host, or seconds, for which suspects wait; twice
_TOLD_AT = (1, 4, _SHOWN)  # documents, when other processes are told of a host once more
_TOLD = 1_000  # hosts in the news of one batch: at most 340 KB
_NO_DOCUMENT = int(
    Flag.REQUISITE | Flag.AGAIN
)  # equal home pages need equal styles; what is fetched again has no digest

GO_ON, MIRROR, SUSPECT = "", "mirror", "suspected_mirror"


class Shown:
    """What a host has shown: the digest of its home page, 0 before that, and of documents, by their paths; both by turns."""

    __slots__ = ("documents", "home", "is_ours", "name")

    def __init__(self, name: str, home: int = 0, documents: bytes = b"", is_ours: bool = True) -> None:
        self.name, self.home, self.is_ours = name, home, is_ours
        self.documents = array("Q", documents)

    def has_path(self, path: int) -> bool:
        """Whether it has shown something at a path."""
        return path in self.documents[::2]

    def has(self, digest: int) -> bool:
        """Whether it has shown a document."""
        return digest in self.documents[1::2]


class Suspect(NamedTuple):
    """A host with the home page of another: of whom, since when, and how many documents were not the other's."""

    original: int
    since: float
    unlike: int = 0


class Stopped(NamedTuple):
    """A host was found to be a mirror of another."""

    url: str
    replica: str
    original: str


class Mirrors:
    """See the module. Part of the gate, in its thread; `memory` is in bytes.

    >>> mirrors = Mirrors(seed=1, memory=1 << 20, host_delay=2.0)
    >>> row = lambda host, path: UrlRow(path, host, host, 0, 0, 0, 0, b"http://h%d.example/%s" % (host, b"p" * path))
    >>> for host in (1, 2):
    ...     for path in (0, 1):
    ...         mirrors.fetched(row(host, path), digest=100 + path, now=0.0)
    >>> [mirrors.verdict(row(host, 2), now=0.0) for host in (1, 2)], mirrors.told()[0].original
    (['', 'mirror'], 'h1.example')
    """

    def __init__(self, seed: int, memory: int, host_delay: float, part: int = 0, processes: int = 1) -> None:
        self._keys, self._most = KeyMaker(seed), max(memory // _BYTES, 100)
        self._patience = max(_PATIENCE * host_delay, _LEAST_PATIENCE)
        self._shown = OrderedDict[int, Shown]()  # by host, the last used ones
        self._by_home: dict[int, int] = {}  # the first host with a home page
        # Hosts by documents and their paths: each has one slot, the last that came is there.
        self._slots = np.zeros((1 << (self._most * _SHOWN).bit_length(), 2), np.uint64)
        self._suspects: dict[int, Suspect] = {}
        self.stopped: dict[int, int] = {}  # mirrors, and whose
        self._untold: list[Stopped] = []
        self._part = part
        self._news = [
            OrderedDict[int, None]() for _ in range(processes)
        ]  # hosts of which others are to be told

    # ── what comes up ──────────────────────────────────────────────────────────────────────────

    def verdict(self, row: UrlRow, now: float) -> str:
        """`MIRROR` for a URL that is to be refused, `SUSPECT` for one that is to be put off until `when`, else `GO_ON`."""
        if row.host_key in self.stopped:
            return MIRROR
        suspect = self._suspects.get(row.host_key)
        if suspect is None:
            return GO_ON
        mine, other = self._shown.get(row.host_key), self._shown.get(suspect.original)
        if mine is None or other is None or now >= suspect.since + 2 * self._patience:
            del self._suspects[row.host_key]
            return GO_ON
        told = other.has_path(self._path(row)) if mine.home else is_home(row)
        return GO_ON if told else SUSPECT

    def when(self, row: UrlRow, now: float) -> float:
        """When a URL of a suspect is to be looked at again."""
        since = self._suspects[row.host_key].since
        return since + self._patience * (1 if now < since + self._patience else 2)

    # ── what was fetched ───────────────────────────────────────────────────────────────────────

    def fetched(self, row: UrlRow, digest: int, now: float) -> None:
        """A page came in, with the digest of its content; 0 for anything else that was answered."""
        key = row.host_key
        if row.flags & _NO_DOCUMENT or key in self.stopped:
            return
        path = self._path(row)
        if not digest:
            self._compare(key, path, 0)
            return
        shown = self._remember(key, row)
        if is_home(row):
            self._home(key, shown, digest, now)
        elif digest != shown.home:
            holder = self._holder(path, digest)
            if not shown.has_path(path) and len(shown.documents) < 2 * _SHOWN:
                shown.documents.extend((path, digest))
                self._announce(key, shown)
                if holder == key or holder not in self._shown:
                    self._hold(key, shown)
            if not shown.home and holder != key and holder in self._shown:
                self._suspects.setdefault(key, Suspect(holder, now))  # until its home page is known
            elif not self._compare(key, path, digest):
                self._compare_with(key)

    def _home(self, key: int, shown: Shown, digest: int, now: float) -> None:
        if shown.home:
            return  # it was compared
        self._suspects.pop(key, None)
        shown.home = digest
        first = self._by_home.setdefault(digest, key)
        if first != key and first in self._shown:
            self._suspect(key, first, now)
        else:
            self._by_home[digest] = key
        self._announce(key, shown)

    def _suspect(self, key: int, original: int, now: float) -> None:
        if self._have_in_common(key, original):
            self._stop(key, original)
        else:
            self._suspects[key] = Suspect(original, now)

    def _have_in_common(self, key: int, original: int) -> bool:
        """Whether two hosts with equal home pages have shown another document that is equal."""
        other = self._shown[original]
        return any(digest != other.home and other.has(digest) for digest in self._shown[key].documents[1::2])

    def _compare(self, key: int, path: int, digest: int) -> bool:
        """Look at a document of a host that may be suspect; whether it is."""
        suspect = self._suspects.get(key)
        if suspect is None:
            return False
        other = self._shown.get(suspect.original)
        if not self._shown[key].home:
            return True
        if other is not None and digest and digest != other.home and other.has(digest):
            self._stop(key, suspect.original)
        elif other is None or other.has_path(path):
            self._suspects[key] = suspect._replace(unlike=suspect.unlike + 1)
            if suspect.unlike + 1 >= _UNLIKE:
                del self._suspects[key]
        return True

    def _compare_with(self, original: int) -> None:
        """A host has shown more: maybe what one that is suspected of being its mirror has."""
        if self._by_home.get(self._shown[original].home) == original:
            suspects = [key for key, each in self._suspects.items() if each.original == original]
            for key in suspects:
                if key in self._shown and self._have_in_common(key, original):
                    self._stop(key, original)

    def _stop(self, key: int, original: int) -> None:
        self._suspects.pop(key, None)
        self.stopped[key] = original
        if len(self.stopped) > 8 * self._most:  # a tenth of the bytes each
            del self.stopped[next(iter(self.stopped))]
        mirror = self._shown.pop(key)
        self._untold.append(Stopped(f"http://{mirror.name}/", mirror.name, self._shown[original].name))

    def _place(self, path: int, digest: int) -> tuple[int, int]:
        """Where a document at a path has its slot, and what is there of it."""
        mixed = (path ^ (digest << 1)) & _MASK
        return mixed % len(self._slots), mixed

    def _holder(self, path: int, digest: int) -> int:
        """A host that has shown a document at a path, or 0."""
        place, mixed = self._place(path, digest)
        found, key = self._slots[place].tolist()
        return int(key) if found == mixed else 0

    def _hold(self, key: int, shown: Shown) -> None:
        for path, digest in zip(shown.documents[::2], shown.documents[1::2], strict=True):
            place, mixed = self._place(path, digest)
            self._slots[place] = mixed, key

    def _path(self, row: UrlRow) -> int:
        return self._keys.of(row.url[row.url.find(b"/", 8) :])

    def _remember(self, key: int, row: UrlRow) -> Shown:
        shown = self._shown.get(key)
        if shown is None:
            shown = self._put(key, Shown(split(row.url.decode()).host))
        else:
            self._shown.move_to_end(key)
        return shown

    def _put(self, key: int, shown: Shown) -> Shown:
        self._shown[key] = shown
        if len(self._shown) > self._most:
            oldest, gone = self._shown.popitem(last=False)
            self._suspects.pop(oldest, None)
            if self._by_home.get(gone.home) == oldest:
                del self._by_home[gone.home]
        return shown

    def told(self) -> list[Stopped]:
        """The mirrors that were found since the last call."""
        untold, self._untold = self._untold, []
        return untold

    # ── other processes ────────────────────────────────────────────────────────────────────────

    def _announce(self, key: int, shown: Shown) -> None:
        if len(self._news) > 1 and shown.is_ours and shown.home and len(shown.documents) // 2 in _TOLD_AT:
            for to, hosts in enumerate(self._news):
                if to != self._part:
                    hosts[key] = None

    def news(self, to: int) -> bytes:
        """What another process has not been told of our hosts; nothing of those that are suspected here."""
        hosts = self._news[to]
        keys = [hosts.popitem(last=False)[0] for _ in range(min(len(hosts), _TOLD))]
        return b"".join(
            _packed(key, self._shown[key])
            for key in keys
            if key in self._shown and key not in self._suspects and key not in self.stopped
        )

    def hear(self, news: bytes, now: float) -> None:
        """What another process has told of its hosts.

        If a home page came up in two processes before either was told, the host with the higher key is the suspect; each of the
        two finds the same.
        """
        for key, shown in _unpacked(news):
            ours = self._shown.get(key)
            if key in self.stopped or (ours is not None and ours.is_ours):
                continue
            shown.is_ours = False
            self._hold(key, self._put(key, shown))
            first = self._by_home.setdefault(shown.home, key)
            holder = self._shown.get(first)
            if first == key or holder is None:
                self._by_home[shown.home] = key
                self._compare_with(key)
            elif holder.is_ours and first > key and first not in self._suspects:
                self._by_home[shown.home] = key
                self._suspect(first, key, now)

    # ── what a checkpoint keeps ────────────────────────────────────────────────────────────────

    def save(self) -> dict[str, Any]:
        """All of it, for `load`."""
        suspects = [
            (key, each.original, each.unlike, int(each.since)) for key, each in self._suspects.items()
        ]
        shown = b"".join(_packed(key, each) for key, each in self._shown.items())
        return {
            "mirrors shown": np.frombuffer(shown, np.uint8),
            "mirrors heard": np.array(
                [key for key, each in self._shown.items() if not each.is_ours], np.uint64
            ),
            "mirrors firsts": np.array(list(self._by_home.items()), np.uint64),
            "mirrors suspects": np.array(suspects, np.uint64),
            "mirrors stopped": np.array(list(self.stopped.items()), np.uint64),
            **{f"mirrors news {to}": np.array(list(hosts), np.uint64) for to, hosts in enumerate(self._news)},
        }

    def load(self, arrays: Mapping[str, bytes], now: float) -> None:
        """Take what `save` gave; there is none in jobs that began without it."""

        def column(name: str, width: int = 1) -> list[Any]:
            found = np.frombuffer(arrays.get(f"mirrors {name}", b""), np.uint64)
            rows: list[Any] = (found if width == 1 else found.reshape(-1, width)).tolist()
            return rows

        heard = set(column("heard"))
        for key, shown in _unpacked(arrays.get("mirrors shown", b"")):
            shown.is_ours = key not in heard
            self._shown[key] = shown
            self._hold(key, shown)
        self._by_home = dict(column("firsts", 2))
        self._suspects = {
            key: Suspect(original, min(float(since), now), unlike)
            for key, original, unlike, since in column("suspects", 4)
        }
        self.stopped = dict(column("stopped", 2))
        for to, hosts in enumerate(self._news):
            hosts.update(dict.fromkeys(column(f"news {to}")))

    def adopt(self, other: Mirrors) -> None:
        """Take what another process knew, when its crawl is divided anew."""
        self.stopped |= other.stopped
        self._suspects |= other._suspects
        for key, shown in other._shown.items():
            self._hold(key, self._put(key, shown))
        for digest, key in other._by_home.items():
            self._by_home.setdefault(digest, key)


def is_home(row: UrlRow) -> bool:
    """Whether a URL is that of a home page: where mirrors are looked for it comes before the others of its host."""
    return row.url.endswith(b"/") and row.url.count(b"/") == 3


def _packed(key: int, shown: Shown) -> bytes:
    name = shown.name.encode()
    head = key.to_bytes(8, "little") + shown.home.to_bytes(8, "little")
    return b"".join((head, bytes((len(shown.documents) // 2, len(name))), name, shown.documents.tobytes()))


def _unpacked(data: bytes) -> Iterator[tuple[int, Shown]]:
    place = 0
    try:
        while place < len(data):
            key, home = (int.from_bytes(data[at : at + 8], "little") for at in (place, place + 8))
            count, length = data[place + 16], data[place + 17]
            start = place + 18 + length
            place = start + 16 * count
            if place > len(data):
                raise ValueError("it is cut")
            yield key, Shown(data[start - length : start].decode("ascii"), home, data[start:place])
    except (IndexError, ValueError) as error:
        raise StorageError("what is said of the pages of hosts is damaged") from error
