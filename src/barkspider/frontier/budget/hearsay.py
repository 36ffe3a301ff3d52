"""What processes tell each other of domains of which several have URLs.

    URLs of a domain that another process counts ─► asked ─► its counter: who asks, and how high the in-degree is
              budgets: in-degree, divided by how many ask ◄─ told ◄─┘

A domain's in-degree is counted by one process, whatever the partition (docs/parallel.md). Others ask it when URLs of the
domain come up; it tells them, and again when it has another answer, with the batches that it sends anyhow. Until then
the in-degree is taken for 0, as that of any domain that is new. Whoever asks has URLs of the domain: so the counter
knows among how many its budget is to be divided, and tells that too.

Nobody remembers more than so many domains, nor tells of more than so many at a time: the answers of the highest
in-degrees come first, since most of the others get the least budget anyhow.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError
from barkspider.url.partition import KeyColumn, by_hash

_ASKED, _TOLD = 4_096, 4_096  # domains in the news of one batch: 32 and 64 KB
_TELLING = np.dtype([("domain", "<u8"), ("degree", "<u4"), ("sharers", "<u2")])
_NOTHING = (0, 0)

Degrees = npt.NDArray[np.uint32]


class Hearsay:
    """See the module. Part of `Star`, in its thread; `most` domains of each kind are remembered, the latest.

    >>> one, two = Hearsay(part=0, processes=2, most=9), Hearsay(part=1, processes=2, most=9)
    >>> domain = np.array([4095], np.uint64)  # which the second process counts
    >>> two.notice(domain); one.notice(domain)
    >>> two.hear(0, one.news(1, lambda keys: np.zeros(len(keys), np.uint32)))
    >>> one.hear(1, two.news(0, lambda keys: np.full(len(keys), 70, np.uint32)))
    >>> [column.tolist() for column in one.of(domain, np.array([0], np.uint32))]
    [[70], [2]]
    """

    def __init__(self, part: int, processes: int, most: int) -> None:
        self._part, self._processes, self._most = part, processes, most
        self._own = OrderedDict[int, None]()  # domains counted here of which URLs came up
        self._wanted = [
            OrderedDict[int, None]() for _ in range(processes)
        ]  # by who counts them, not asked for yet
        self._known = OrderedDict[int, tuple[int, int]]()  # in-degree and sharers, as others told
        self._askers = OrderedDict[int, dict[int, tuple[int, int]]]()  # of ours: what each was told last

    def notice(self, domains: KeyColumn) -> None:
        """URLs of these domains have come up here."""
        owners = by_hash(domains, self._processes)
        for domain, owner in zip(domains.tolist(), owners.tolist(), strict=True):
            if owner == self._part:
                _put(self._own, domain, None, self._most)
            elif domain not in self._known:
                _put(self._known, domain, _NOTHING, self._most)
                _put(self._wanted[owner], domain, None, self._most)

    def of(self, domains: KeyColumn, counted: Degrees) -> tuple[Degrees, npt.NDArray[np.int64]]:
        """The in-degree of each domain, which is `counted` of those that are ours, and how many processes share it."""
        degrees, sharers = counted.copy(), np.ones(len(domains), np.int64)
        owners = by_hash(domains, self._processes)
        for row, domain in enumerate(domains.tolist()):
            if owners[row] == self._part:
                sharers[row] = 1 + len(self._askers.get(domain, ()))
            else:
                degrees[row], sharers[row] = self._known.get(domain, _NOTHING)
        return degrees, np.maximum(sharers, 1)

    def news(self, to: int, count: Callable[[KeyColumn], Degrees]) -> bytes:
        """What a process is asked and told; b"" if that is nothing. `count` gives in-degrees that are counted here."""
        wanted = self._wanted[to]
        asked = np.array([wanted.popitem(last=False)[0] for _ in range(min(len(wanted), _ASKED))], "<u8")
        domains = [key for key, askers in self._askers.items() if to in askers]
        degrees = count(np.array(domains, np.uint64)).tolist() if domains else []
        told = list[tuple[int, int, int]]()
        for key, degree in zip(domains, degrees, strict=True):
            sharers = len(self._askers[key]) + (key in self._own)
            if self._askers[key][to] != (degree, sharers):
                told.append((key, degree, sharers))
        told = sorted(told, key=lambda each: -each[1])[:_TOLD]
        for key, *answer in told:
            self._askers[key][to] = answer[0], answer[1]
        if not len(asked) and not told:
            return b""
        return len(asked).to_bytes(4, "little") + asked.tobytes() + np.array(told, _TELLING).tobytes()

    def hear(self, sender: int, news: bytes) -> None:
        """Take what another process asks and tells."""
        if not news:
            return
        end = 4 + 8 * int.from_bytes(news[:4], "little")
        if end > len(news) or (len(news) - end) % _TELLING.itemsize:
            raise StorageError("what another process tells of domains is damaged")
        for domain in np.frombuffer(news[4:end], "<u8").tolist():
            askers = self._askers.pop(domain, {})
            askers.setdefault(sender, _NOTHING)
            _put(self._askers, domain, askers, self._most)
        for domain, degree, sharers in np.frombuffer(news[end:], _TELLING).tolist():
            _put(self._known, domain, (degree, sharers), self._most)

    def save(self) -> dict[str, Any]:
        """All of it, for `load`."""
        askers = [
            (domain, part, *told) for domain, parts in self._askers.items() for part, told in parts.items()
        ]
        wanted = [key for keys in self._wanted for key in keys]
        return {
            "hearsay own": np.array([*self._own], np.uint64),
            "hearsay wanted": np.array(wanted, np.uint64),
            "hearsay known": np.array([(key, *told) for key, told in self._known.items()], np.uint64),
            "hearsay askers": np.array(askers, np.uint64),
        }

    def load(self, arrays: Mapping[str, bytes]) -> None:
        """Take what `save` gave; there is none in jobs that began without it."""
        columns = {name: np.frombuffer(arrays.get(f"hearsay {name}", b""), np.uint64) for name in _KINDS}
        self._own.update(dict.fromkeys(columns["own"].tolist()))
        wanted = columns["wanted"]
        for key, owner in zip(wanted.tolist(), by_hash(wanted, self._processes).tolist(), strict=True):
            self._wanted[owner][key] = None
        for key, degree, sharers in columns["known"].reshape(-1, 3).tolist():
            self._known[key] = degree, sharers
        for key, part, degree, sharers in columns["askers"].reshape(-1, 4).tolist():
            self._askers.setdefault(key, {})[part] = degree, sharers


_KINDS = ("own", "wanted", "known", "askers")


def _put(kept: OrderedDict[int, Any], key: int, value: Any, most: int) -> None:
    """Remember something as the latest; the oldest is forgotten when there is too much."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
