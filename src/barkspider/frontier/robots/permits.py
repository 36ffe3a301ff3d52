"""Which URLs may go on, for all that their sites say: robots.txt on disk (IRLbot, section 4.3, figure 2).

    beast ─► check ─► DRUM cache, check ─ known and fresh ─► permitted ─► Ready, with the rules
                          │ unknown, or outdated
                          ├─► Q_R: the URLs wait ─ the asks of their round are settled ─► check again
                          └─► their origins are wanted (`asks`) ─ not asked yet ─► asks ─► Ready fetches it
    answer ─► learn ─► DRUM cache, update

What the paper leaves open is decided like this:

- A row of the cache is an origin and all URLs of it in the batch that was checked (`groups`), because the answer
  to each row is a whole set of rules.
- A URL is read back from Q_R when the asks before it are settled (`rounds`), not when its turn comes in a day or
  two; or when there is nothing else to do and some are answered: a small crawl does not wait for its slowest host.
  One whose robots.txt was still unknown then (its host is slow, or parked) waits in Q_L, a queue like Q_R where only
  patience counts: so none goes round and round, and none is in the way of others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.core.records import UrlRow
from barkspider.core.texts import Rows, Texts
from barkspider.frontier.robots.asks import NO_ROUND, Asks
from barkspider.frontier.robots.groups import Trips, first, group, ungroup
from barkspider.frontier.robots.permit import Permit, is_useless, until_of
from barkspider.frontier.robots.rounds import Rounds
from barkspider.storage.drum.repository import CHECK, UPDATE, Drum, Results
from barkspider.storage.drum.sizing import Allowance, Sizing
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import BLOCK
from barkspider.url import KeyMaker, origin

_SHORTEST_HURRY = 0.1  # seconds between two hurries, and more for each URL that waits: a tenth of the CPU
_HURRY_A_URL = 2e-5
_EXPUNGE_AFTER = 86_400.0  # seconds: most rules are good for a day
_MANY_TRIPS = 3  # as many or more are counted together


@dataclass(frozen=True, slots=True)
class Permitted:
    """URLs that may be judged by the rules that came with them; the groups of origins are one behind the other.

    `outdated` are origins that have to be asked again, and what they said before: to be used if there is no answer.
    """

    urls: UrlBatch
    counts: Rows  # of the URLs of each group
    values: Texts  # what the cache has, for each group
    outdated: Sequence[tuple[str, Permit]]

    def __len__(self) -> int:
        return len(self.urls)

    def __iter__(self) -> Iterator[tuple[str, Permit, list[UrlRow]]]:
        """Origin, permit and URLs of each group. An origin may come again."""
        rows, places = self.urls.rows(), accumulate(self.counts.tolist(), initial=0)
        for value, (start, end) in zip(self.values.tolist(), pairwise(places), strict=True):
            yield origin(rows[start].url.decode()), Permit.decode(value), rows[start:end]


class Permits:
    """See the module. Filled by `beast` with `check`, emptied into `Ready` with `permitted`; one thread owns it.

    Invariants: no URL is lost, and none comes out twice; one that comes out has rules that are good at that time.
    `now` is in seconds of a clock that goes on across restarts. Add each of `structures` to the store. After a
    StorageError only the last commit counts.

    >>> import tempfile
    >>> from barkspider.url import RobotsRules
    >>> batch = UrlBatch.from_rows([UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/x")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     permits = Permits(Env(), Path(folder), KeyMaker(7))
    ...     permits.check(batch); permits.merge()
    ...     print(sum(map(len, permits.permitted(now=5.0))), permits.merge(), permits.asks(10))
    ...     permits.learn("http://a.example", Permit.of(RobotsRules(), learned=6.0, until=3606.0))
    ...     print(sum(map(len, permits.permitted(now=6.0))), permits.merge())
    ...     for origin, permit, rows in next(permits.permitted(now=7.0)):
    ...         print(origin, permit.until, [row.url for row in rows], permits.waiting)
    ...     permits.close()
    0 None ['http://a.example']
    0 None
    http://a.example 3606 [b'http://a.example/x'] 0
    """

    name = "robots/rounds"

    def __init__(
        self,
        env: Env,
        folder: Path,
        keys: KeyMaker,
        *,
        expiry: float = 3600.0,
        patience: float = 30.0,
        stale: float = 7 * 86_400.0,
        block: int = BLOCK,
        sizing: Sizing | Allowance | None = None,
        requested_sizing: Sizing | Allowance | None = None,
        background: bool = True,
        state: Callable[[str], dict[str, Any] | None] = lambda _: None,
    ) -> None:
        """`expiry`: seconds after which an ask without an answer is made again; `patience`: seconds that URLs
        wait at most before they are checked again; `stale`: seconds for which an old answer is kept in case that no
        newer one can be had; `block`: bytes that each queue gathers in RAM; `state` is that of a store."""
        self._keys, self._stale = keys, stale
        self._cache = Drum(
            env,
            folder,
            "robots/cache",
            value=bytes,
            aux=True,
            sizing=sizing,
            background=background,
            state=state("robots/cache"),
        )
        kept: dict[str, Any] = state(self.name) or {}
        try:
            self._waiting = int(kept.get("waiting", 0))
            self._expunge_at = float(kept.get("expunge_at", 0.0))  # when what is useless is dropped next
            self._trips = np.array(kept.get("trips", [0] * (_MANY_TRIPS + 1)), np.int64)
            self._first = Rounds(env, folder, "queues/Q_R", patience, block, kept.get("first"))
            self._late = Rounds(env, folder, "queues/Q_L", patience, block, kept.get("late"))
            self._asks = Asks(
                env,
                folder,
                expiry=expiry,
                block=block,
                sizing=requested_sizing,
                background=background,
                state=state,
                kept=kept,
            )
            self.validate()
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise StorageError(f"the state of {self.name} is damaged") from error
        self._late_since = -math.inf
        # On their way to the cache: a row alone would cost as much as a batch.
        self._answers: dict[bytes, bytes] = {}
        # Groups that wait for a merge, answers of an earlier run among them.
        self._checks = self._cache.pending
        self._news = False  # whether anything was learned since those who wait were last checked in a hurry
        self._hurried = -math.inf

    @property
    def structures(self) -> tuple[Permits, Drum, Drum]:
        """What a store has to commit, in this order: answers that wait here go to the cache."""
        return self, self._cache, self._asks.requested

    @property
    def origins(self) -> int:
        """Origins of which something is known, be it outdated."""
        return len(self._cache)

    @property
    def waiting(self) -> int:
        """URLs that were checked and did not come out yet."""
        return self._waiting

    @property
    def pending(self) -> int:
        """Rows that wait for a merge: origins with URLs, answers, and origins that may have to be asked."""
        return len(self._answers) + self._cache.pending + self._asks.requested.pending

    @property
    def undecided(self) -> int:
        """Rows that make a merge worth while. Answers are not counted: it may be that nobody has asked for them yet."""
        return self._checks + self._asks.requested.pending

    @property
    def merging(self) -> bool:
        """Whether a merge is running, or has ended unnoticed."""
        return self._cache.uncollected or self._asks.requested.uncollected

    @property
    def asked(self) -> int:
        """Asks that were handed out and are not settled."""
        return self._asks.under_way

    def gauges(self) -> dict[str, int]:
        """How things stand; trips are those through Q_R and Q_L, of the URLs that came out."""
        none, one, two, more = self._trips.tolist()
        return {
            "waiting": self._waiting,
            "asked": self.asked,
            "to_ask": len(self._asks),
            "rounds": len(self._first) + len(self._late),
            "no_trip": none,
            "one_trip": one,
            "two_trips": two,
            "more_trips": more,
        }

    def queues(self) -> dict[str, int]:
        """What waits: in Q_R and Q_L origins with their URLs, in Q_D robots.txt to be asked for."""
        return {"Q_R": self._first.items, "Q_L": self._late.items, "Q_D": len(self._asks)}

    def check(self, batch: UrlBatch) -> None:
        """URLs whose turn has come; they come out of `permitted` after a merge or more. Large batches are
        better: for each, the rules of an origin are written once."""
        self._waiting += len(batch)
        self._feed(batch, np.zeros(len(batch), np.uint8))

    def merge(self, wait: bool = True) -> None:
        """Decide on everything given so far; without `wait` merges go on in the background."""
        self._write_answers()
        self._checks = 0
        self._asks.requested.merge(wait)
        self._cache.merge(wait)

    def permitted(self, now: float) -> Iterator[Permitted]:
        """Take the URLs that are there and whose rules are known, block by block; a block may be empty. Others
        begin to wait, and a portion of those that have waited is checked again. A commit counts as taken
        what came out."""
        self._decide()
        self._expunge(now)
        for rounds in (self._first, self._late):
            found = rounds.read(now, self._asks.settled)
            if len(found):
                batch, _, trips = ungroup(found)
                self._feed(batch, np.minimum(trips, 254) + np.uint8(1))
        for results in self._cache.results():
            yield self._sift(results, now)

    def drain(self) -> Iterator[UrlBatch]:
        """Take all URLs that wait here, whatever is known of their sites; nothing is to be done here after that."""
        self.merge()
        for results in self._cache.results():
            if results.aux is not None and len(results):
                yield ungroup(results.aux)[0]
        for rounds in (self._first, self._late):
            while len(rounds):
                yield ungroup(rounds.read(math.inf, 0))[0]

    def asks(self, most: int, now: float = 0.0) -> list[str]:
        """Origins, so many at most, whose robots.txt is to be fetched; each is to be settled in the end."""
        self._decide()
        return self._asks.take(most, now)

    def learn(self, name: str, permit: Permit, again: bool = False) -> None:
        """An answer came, or was given up; it is known to URLs that are checked from now on. `again` says that
        it is replayed after a crash: then the ask may still be to come."""
        if not self._asks.settle(name) and again:
            self._asks.expect(name, permit.until)
        self._news = True
        self._answers[name.encode()] = permit.encode()

    def put_off(self, name: str) -> None:
        """An answer will take long: nothing waits for it any more. It may still be learned. When it is not,
        say after a crash, it is asked for again after `expiry`."""
        self._asks.settle(name)

    def hurry(self, now: float) -> bool:
        """Nobody else has anything to do: check all URLs that wait once more if answers came in since that was done,
        though not so often that it keeps us busy. Whether it was done."""
        if now < self.hurry_time():
            return False
        self._news, self._hurried = False, now
        self._first.hurry()
        self._late.hurry()
        return True

    def hurry_time(self) -> float:
        """When `hurry` will do something."""
        if not self._news or not self._waiting:
            return math.inf
        return self._hurried + max(_SHORTEST_HURRY, self._waiting * _HURRY_A_URL)

    def next_time(self) -> float:
        """When `permitted` has something to check again, if no ask is settled before."""
        return min(self._first.impatient(), self._late.impatient())

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        self._write_answers()
        parts = self._first.prepare(), self._late.prepare(), self._asks.prepare()
        state = {"waiting": self._waiting, "expunge_at": self._expunge_at, "trips": self._trips.tolist()}

        def describe() -> dict[str, Any]:
            first, late, asks = (part() for part in parts)
            files = first["files"] | late["files"] | asks["to_ask"]["files"]
            return {**state, "first": first, "late": late, **asks, "files": files}

        return describe

    def committed(self) -> None:
        """See `core.events.Structure`."""
        for part in (self._first, self._late, self._asks):
            part.committed()

    def validate(self) -> None:
        """Check the invariants."""
        assert self._waiting >= 0
        for part in (self._cache, self._first, self._late, self._asks):
            part.validate()

    def close(self) -> None:
        """Close the files; what was committed stays."""
        for part in (self._cache, self._first, self._late, self._asks):
            part.close()

    def _write_answers(self) -> None:
        if self._answers:
            answers, self._answers = self._answers, {}
            self._cache.feed(UPDATE, self._keys.column(list(answers)), list(answers.values()))

    def _feed(self, batch: UrlBatch, trips: Trips) -> None:
        self._write_answers()
        keys, groups = group(batch, trips, self._keys)
        self._cache.feed(CHECK, keys, aux=groups)
        self._checks += len(keys)

    def _sift(self, found: Results, now: float) -> Permitted:
        """Part known URLs from others, and let these wait."""
        assert isinstance(found.values, Texts)
        assert found.aux is not None
        until, known = np.zeros(len(found), np.int64), np.flatnonzero(~found.unique)
        until[known] = until_of(found.values, known)
        fresh = until > now
        values, groups = found.values, found.aux
        outdated: list[tuple[str, Permit]] = []
        if not fresh.all():
            others, good = np.flatnonzero(~fresh), np.flatnonzero(fresh)
            names = self._wait(found.keys[others], groups.take(others), until[others], now)
            olds = zip(names, values.take(others).tolist(), strict=True)
            outdated = [(name, Permit.decode(old)) for name, old in olds if old]
            values, groups = values.take(good), groups.take(good)
        batch, counts, trips = ungroup(groups)
        self._waiting -= len(batch)
        self._trips += np.bincount(np.minimum(trips, _MANY_TRIPS), minlength=_MANY_TRIPS + 1)
        return Permitted(batch, counts, values, outdated)

    def _wait(self, keys: npt.NDArray[np.uint64], groups: Texts, until: Rows, now: float) -> tuple[str, ...]:
        """Let groups of URLs wait for the robots.txt of their origins; the names of these."""
        names, trips = zip(*map(first, groups.tolist()), strict=True)
        is_late = np.array(trips) > 0
        rounds = np.full(len(keys), NO_ROUND, np.uint32)
        if not is_late.all():
            new = np.flatnonzero(~is_late)
            rounds[new] = self._first.enter(groups.take(new), now)
        if is_late.any():
            # A round begins each second, so that what comes later waits longer.
            if now >= self._late_since + 1:
                self._late.close_round()
                self._late_since = now
            self._late.enter(groups.take(np.flatnonzero(is_late)), now)
        self._asks.want(keys, names, until, rounds, now)
        return names

    def _expunge(self, now: float) -> None:
        """Once a day, drop what nobody will use from the DRUMs, which rewrites them; not while they are merged."""
        is_due = 0 < self._expunge_at <= now and not self.merging
        if is_due or not self._expunge_at:
            self._expunge_at = now + _EXPUNGE_AFTER
        if is_due:
            self._write_answers()
            self._cache.merge(wait=False, expunge=lambda _, values: is_useless(values, self._stale, now))
            self._asks.expunge(now)
            self._checks = 0

    def _decide(self) -> None:
        """Whoever was not asked before is to be asked now, and rounds know whom they wait for."""
        for number, count in self._asks.decide():
            self._first.decided(number, count, self._asks.made)
