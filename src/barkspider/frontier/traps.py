"""Traps: places of a site whose pages say nothing new and lead nowhere but to more of their kind.

    a page was read ─ what it says was said on its site before, and its new links lead to no other place ─► barren
    a pattern, the shape of a URL on a host or in a domain ─ mostly barren lately, and its addresses grow ─► a trap
    a URL of a trap comes up ─► Q_T; the 1st, 2nd, 4th, 8th … is fetched all the same ─ these say something ─► no trap

Both sides are needed. A calendar, a wrong relative link and a parked domain under every name repeat themselves and never end.
Photographs with the same words under each end; a list that goes on over a hundred pages leads to articles. What ends by itself
costs no more than its pages, so it is never cut; and what adds anything is not, however many pages it has.

All of it is a function of what the journal has (`PageFetched.gist`, links), in order: after a crash the same is found again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.core.texts import Texts
from barkspider.storage.keyset import RecentKeys
from barkspider.url import Domains, split
from barkspider.url.shape import shape, shapes

_KEYS, _KEY = 250_000, 16  # what was said, and links, that are remembered; bytes of one
_PATTERNS, _PATTERN = 50_000, 400  # that are looked at; bytes of one
_SHARE = 64  # of `memory`, for each of the three
_LATELY = 1 / 16  # weight of a page in what is said of the latest
_DULL, _FEW = (
    0.75,
    8,
)  # share of pages that say nothing new, of so many at least: a link there promises nothing
_BARREN = 0.75  # share of barren pages among the latest
_GROWS = 0.5  # new addresses of its kind that such a page brings in
_HOSTS = 4  # of a domain that a pattern spans, if it is one of the domain
_GOOD = 8  # pages of a trap in a row that say something new: then it is none
_FIGURES = 5  # of a record
_MIX = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1

Keys = npt.NDArray[np.uint64]


@dataclass(slots=True)
class Trap:
    """One pattern that is cut: `pages` were fetched of it and `repeated` of these had nothing to say; `held` are the URLs that
    came up since and were not fetched."""

    key: int
    domain: int
    site: str
    shape: str
    pages: int
    repeated: int
    time: float
    held: int = 0
    good: int = 0

    @property
    def pattern(self) -> str:
        """As people name it."""
        return self.site + self.shape

    @property
    def reason(self) -> str:
        """In words."""
        return f"{self.repeated} of {self.pages} pages said what was said before and led to more of their kind alone"


class _Record:
    """What is known of a pattern; averages are of the latest pages."""

    __slots__ = ("alike", "barren", "barren_pages", "hosts", "pages", "supply")

    def __init__(self) -> None:
        self.pages = self.barren_pages = 0
        self.alike = self.barren = self.supply = 0.0
        self.hosts = frozenset[int]()

    def learn(self, is_alike: bool, is_barren: bool, supply: int, host: int) -> None:
        self.pages += 1
        self.barren_pages += is_barren
        self.alike += _LATELY * (is_alike - self.alike)
        self.barren += _LATELY * (is_barren - self.barren)
        self.supply += _LATELY * (min(supply, 4) - self.supply)
        if len(self.hosts) < _HOSTS:
            self.hosts |= {host}

    @property
    def is_dull(self) -> bool:
        return self.pages >= _FEW and self.alike >= _DULL

    def as_row(self) -> list[float]:
        return [self.pages, self.barren_pages, self.alike, self.barren, self.supply]

    @classmethod
    def from_row(cls, row: Sequence[float], hosts: Iterable[int]) -> _Record:
        found = cls()
        found.pages, found.barren_pages = int(row[0]), int(row[1])
        found.alike, found.barren, found.supply = row[2:]
        found.hosts = frozenset(hosts)
        return found


class Traps:
    """See the module. Part of `Gate`, in its thread; `pages` have been read since the last step."""

    def __init__(self, settings: Settings) -> None:
        share = settings.memory // _SHARE
        self._said, self._links = (RecentKeys(min(_KEYS, share // _KEY)) for _ in range(2))
        self._most = min(_PATTERNS, share // _PATTERN)
        self._evidence, self._seed = settings.traps.evidence, settings.seed
        self._domains = Domains(settings.url.private_suffixes, remembered=1_000)
        # By pattern, those lately heard of and those of before.
        self._young, self._old = dict[int, _Record](), dict[int, _Record]()
        self._watched = set[int]()  # domains that have said something twice
        self.traps = dict[int, Trap]()
        self._trapped = np.empty(0, np.uint64)  # their domains
        self.number = 0  # grows with every change of them
        self._pardoned = set[int]()
        self._news: list[tuple[str, Trap]] = []

    # ── evidence ───────────────────────────────────────────────────────────────────────────────

    def learn(self, pages: Sequence[tuple[UrlRow, UrlBatch, int]], now: float) -> bool:
        """Pages, in order, each with its links and the gist of what it says; whether a trap is none any more."""
        new = self._links.add_all(np.concatenate([links.key for _, links, _ in pages]))
        said = np.array([(gist ^ row.pld_key * _MIX) & _MASK for row, _, gist in pages], np.uint64)
        place, released = 0, False
        for (row, links, _), is_novel in zip(pages, self._said.add_all(said).tolist(), strict=True):
            mine = new[place : place + len(links)]
            place += len(links)
            if not is_novel or row.pld_key in self._watched:
                released |= self._learn(row, links, mine, not is_novel, now)
        return released

    def _learn(
        self, row: UrlRow, links: UrlBatch, new: npt.NDArray[np.bool_], is_alike: bool, now: float
    ) -> bool:
        if len(self._watched) >= self._most:
            self._watched.clear()
        self._watched.add(row.pld_key)
        is_barren, supply = False, 0
        if is_alike:
            fresh = links.where(new) if new.any() else links.slice(0, 0)
            is_barren, supply = not self._promises(fresh), len(fresh)
        text = Texts.of([row.url])
        form = int(shapes(text.data, text.offsets)[0])
        of_host, of_domain = _pattern(row.host_key, form), _pattern(~row.pld_key, form)
        released = False
        for key, site in ((of_host, ""), (of_domain, "*.")):
            record = self._record(key)
            record.learn(is_alike, is_barren, supply, row.host_key)
            trap = self.traps.get(key)
            if trap is not None:
                trap.good = 0 if is_alike else trap.good + 1
                if trap.good >= _GOOD:
                    self._drop(trap, "released")
                    released = True
            elif (
                record.barren_pages >= self._evidence
                and record.barren >= _BARREN
                and record.supply >= _GROWS
                and key not in self._pardoned
                and of_host not in self.traps
                and (not site or len(record.hosts) >= _HOSTS)
            ):
                self._cut(key, row, site, record, now)
        return released

    def _promises(self, links: UrlBatch) -> bool:
        """Whether any link leads to a place that is not known to say nothing."""
        if not len(links):
            return False
        urls = links.url
        forms = shapes(urls.data, urls.offsets)
        hosts, domains = _patterns(links.host_key, forms), _patterns(~links.pld_key, forms)
        return any(
            not (self._is_dull(host) or self._is_dull(domain))
            for host, domain in set(zip(hosts.tolist(), domains.tolist(), strict=True))
        )

    def _is_dull(self, key: int) -> bool:
        record = self._young.get(key) or self._old.get(key)
        return record is not None and record.is_dull

    def _record(self, key: int) -> _Record:
        record = self._young.get(key)
        if record is None:
            if len(self._young) >= self._most:
                self._young, self._old = {}, self._young
            record = self._young[key] = self._old.pop(key) if key in self._old else _Record()
        return record

    # ── what follows ───────────────────────────────────────────────────────────────────────────

    def _cut(self, key: int, row: UrlRow, site: str, record: _Record, now: float) -> None:
        url = row.url.decode()
        host = split(url).host
        name = site + self._domains.pay_level(host) if site else host
        trap = Trap(key, row.pld_key, name, shape(url), record.pages, record.barren_pages, now)
        self.traps[key] = trap
        self._changed()
        self._news.append(("trap", trap))

    def _drop(self, trap: Trap, event: str) -> None:
        del self.traps[trap.key]
        self._young.pop(trap.key, None)
        self._old.pop(trap.key, None)
        self._changed()
        self._news.append((event, trap))

    def _changed(self) -> None:
        self.number += 1
        self._trapped = np.unique(np.array([trap.domain for trap in self.traps.values()], np.uint64))

    def pardon(self, pattern: str) -> bool:
        """Take a trap, as people name it, for none from now on; whether there is one."""
        for trap in [trap for trap in self.traps.values() if trap.pattern == pattern]:
            self._pardoned.add(trap.key)
            self._drop(trap, "pardoned")
            return True
        return False

    def concern(self, domain: int) -> bool:
        """Whether a domain has a trap."""
        return bool(len(self._trapped)) and domain in self._trapped

    def concerns(self, domains: Keys) -> npt.NDArray[np.bool_]:
        """Which domains have a trap."""
        if not len(self._trapped):
            return np.zeros(len(domains), np.bool_)
        return np.isin(domains, self._trapped)

    def catches(self, rows: Sequence[UrlRow]) -> list[bool]:
        """Which of URLs that come up are to be held. A seed is not: somebody asked for it."""
        texts = Texts.of([row.url for row in rows])
        found = []
        for row, form in zip(rows, shapes(texts.data, texts.offsets).tolist(), strict=True):
            trap = self.traps.get(_pattern(row.host_key, form)) or self.traps.get(
                _pattern(~row.pld_key, form)
            )
            if trap is None or row.flags & Flag.SEED:
                found.append(False)
                continue
            trap.held += 1
            found.append(trap.held & (trap.held - 1) != 0)  # but for powers of two
        return found

    def notices(self) -> list[tuple[str, Trap]]:
        """What became of traps since the last call."""
        news, self._news = self._news, []
        return news

    # ── what a checkpoint keeps ────────────────────────────────────────────────────────────────

    def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """For a checkpoint: something for JSON, and arrays."""
        records = {**self._old, **self._young}
        hosts = [sorted(record.hosts) + [0] * (_HOSTS - len(record.hosts)) for record in records.values()]
        head = {"traps": [asdict(trap) for trap in self.traps.values()], "pardoned": sorted(self._pardoned)}
        arrays = {
            "trap said": self._said.keys(),
            "trap links": self._links.keys(),
            "trap domains": np.array(sorted(self._watched), np.uint64),
            "trap patterns": np.array(list(records), np.uint64),
            "trap records": np.array([record.as_row() for record in records.values()], np.float64),
            "trap hosts": np.array(hosts, np.uint64),
        }
        return head, arrays

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """What `save` gave; nothing of a checkpoint of before."""
        if "trap said" not in arrays:
            return
        self._said.add_all(np.frombuffer(arrays["trap said"], np.uint64))
        self._links.add_all(np.frombuffer(arrays["trap links"], np.uint64))
        self._watched.update(np.frombuffer(arrays["trap domains"], np.uint64).tolist())
        keys = np.frombuffer(arrays["trap patterns"], np.uint64).tolist()
        rows = np.frombuffer(arrays["trap records"], np.float64).reshape(-1, _FIGURES).tolist()
        hosts = np.frombuffer(arrays["trap hosts"], np.uint64).reshape(-1, _HOSTS).tolist()
        for key, row, known in zip(keys, rows, hosts, strict=True):
            self._young[key] = _Record.from_row(row, filter(None, known))
        self.inherit(head)

    def inherit(self, head: Mapping[str, Any]) -> None:
        """The traps that were known, and those that are none."""
        self.traps |= {trap["key"]: Trap(**trap) for trap in head["traps"]}
        self._pardoned.update(head["pardoned"])
        self._changed()


def as_seen(trap: Mapping[str, Any]) -> dict[str, Any]:
    """A trap, as a checkpoint has it, for people."""
    found = Trap(**trap)
    told = ("site", "shape", "pages", "repeated", "time", "held")
    return {"pattern": found.pattern, "reason": found.reason, **{name: trap[name] for name in told}}


def _pattern(site: int, form: int) -> int:
    """The key of a shape on a host, by its key, or in a domain, by the complement of its key: a host may be named as its domain."""
    return (site * _MIX ^ form) & _MASK


def _patterns(sites: Keys, forms: Keys) -> Keys:
    found: Keys = sites * np.uint64(_MIX) ^ forms
    return found
