"""The disk stages that URLs of the IRLbot frontier pass, what each gets of the memory, and when they are merged.

    links ─► seen ─► star ─► beast ─► permits ─► Ready
                      ▲        │  └── or by `backlinks`
    domain edges ─────┴─ Q_F ──┘

A merge shares one pass over all that is known among the rows that wait for it, so it should not come early; but
nothing may wait for a batch to fill while fetchers are idle. So a stage is merged when it is full, or when all that
follows it has run dry (`hurry`): at once if fetchers have nothing to do, and the later the more there is in RAM for
them. Merges run in threads of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from barkspider.core.allotment import at_most
from barkspider.core.events import Structure
from barkspider.core.settings import Settings
from barkspider.frontier.backlinks import Backlinks
from barkspider.frontier.budget.beast import Beast
from barkspider.frontier.budget.hearsay import Hearsay
from barkspider.frontier.budget.seen import Seen
from barkspider.frontier.budget.star import Division, Star
from barkspider.frontier.gate import States
from barkspider.frontier.ownership import divides_domains, slot_of
from barkspider.frontier.robots.permits import Permits
from barkspider.storage.drum.sizing import Allowance
from barkspider.storage.env import Env
from barkspider.storage.queue.disk_queue import BLOCK
from barkspider.url import KeyMaker

PATIENCE = 30.0  # seconds that URLs wait for a robots.txt before they are in nobody's way
_WORTH = 8  # edges are merged early when they are more than this part of those that are known
_FEW = (
    100  # URLs that wait for a robots.txt are checked again as answers come in, before new ones are looked at
)
# What the stages get of `memory`; the rest is for `Ready`, fetching, the archive and everything that is not a buffer.
_SEEN_SHARE, _STAR_SHARE, _EDGES_SHARE, _PERMITS_SHARE, _RANKING_SHARE = 4, 16, 32, 32, 16
_FRONT_SHARE = 64  # of `memory`, out of the share of `seen`: links that come again and again end here
_FREE_SHARE = 4  # buckets get this part of the disk space that is free, unless `disk` says how much
# Domains of which processes tell each other, what they get of `memory`, and the bytes of one, in four tables.
_HEARD, _HEARSAY_SHARE, _HEARD_SIZE = 65_536, 64, 500
# URLs in the order of backlinks, what they get of `memory`, and the bytes of one.
_WINDOW, _WINDOW_SHARE, _WINDOW_URL = 1_000_000, 16, 800
_GENERATIONS = 2  # of buckets at a time: one is filled while one is merged
# What a queue gathers in RAM is this part of `memory`, if that is less than it may be: there are a dozen, and later more.
_BLOCK_SHARE, _SMALLEST_BLOCK = 256, 1 << 15


class Space:
    """What the DRUMs of a job may use: shares of its memory, and of the disk in the same proportions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     space = Space(Settings(memory=64_000_000, disk=26_000_000), Env(), Path(folder))
    ...     space.seen.ram, space.seen.disk(), space.edges.disk()
    (15000000, 8000000, 1000000)
    """

    def __init__(self, settings: Settings, env: Env, folder: Path) -> None:
        self._settings, self._env, self._folder = settings, env, folder
        self.front = settings.memory // _FRONT_SHARE
        self.seen = self._allow(_SEEN_SHARE, beside=self.front)
        self.scores = self._allow(_STAR_SHARE, 4)
        self.edges = self._allow(_EDGES_SHARE, 0, 16)
        self.robots = self._allow(_PERMITS_SHARE, 200, 200)
        self.requested = self._allow(_PERMITS_SHARE, 8, 50)
        self.backlinks = self._allow(_STAR_SHARE, 4)

    def _allow(self, share: int, value: int = 0, aux: int = 110, beside: int = 0) -> Allowance:
        shares = [_SEEN_SHARE, _STAR_SHARE, _EDGES_SHARE, _PERMITS_SHARE, _PERMITS_SHARE]
        budget = self._settings.budget
        if budget.reputation == "supporters":
            shares += [_STAR_SHARE, *([_EDGES_SHARE] if budget.merge_redirects else [])]
        if self._settings.order == "backlinks":
            shares.append(_STAR_SHARE)
        part = 1 / share / sum(1 / each for each in shares) / _GENERATIONS
        ram = self._settings.memory // share - beside
        return Allowance(ram, lambda: round(part * self._disk()), value, aux)

    def _disk(self) -> int:
        processes = (
            self._settings.parallel.processes
        )  # they share what is free, and `disk` is that of this one
        return self._settings.disk or self._env.free_space(self._folder) // _FREE_SHARE // processes


def _hearsay(settings: Settings) -> Hearsay | None:
    """Where processes tell each other of domains that several of them have URLs of."""
    parallel = settings.parallel
    if not divides_domains(parallel) or parallel.mode != "exchange":
        return None
    most = at_most(_HEARD, settings.memory, _HEARSAY_SHARE, _HEARD_SIZE)
    return Hearsay(parallel.part, parallel.processes, most)


def _division(settings: Settings) -> Division | None:
    """Which domains are this process's, where one ranks those of all: nobody tells anybody of edges behind a firewall."""
    parallel = settings.parallel
    if parallel.processes == 1:
        return None
    from barkspider.frontier.modes import SEND, rule  # not for one process: it takes a second to compile

    if rule(parallel.mode)[0, 0] != SEND:
        return None
    return Division(parallel.part, parallel.processes)


class Stages:
    """See the module. Filled, moved and emptied by `Irlbot`, in one thread; their I/O is their files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stages = Stages(Settings(memory=64_000_000), Env(), Path(folder), background=False)
    ...     stages.unplaced, stages.hurry(now=0.0), stages.close()
    (0, False, None)
    """

    def __init__(
        self,
        settings: Settings,
        env: Env,
        folder: Path,
        *,
        state: States = lambda _: None,
        background: bool = True,
    ) -> None:
        """Without `background` merges run within the calls: for clocks that do not go by themselves."""
        space = Space(settings, env, folder)
        block = min(BLOCK, max(settings.memory // _BLOCK_SHARE, _SMALLEST_BLOCK))
        self.seen = Seen(
            env,
            folder,
            sizing=space.seen,
            front=space.front,
            slot_of=slot_of(settings.parallel),
            background=background,
            state=state("seen"),
        )
        self.star = Star(
            env,
            folder,
            settings.budget,
            sizing=space.scores,
            edge_sizing=space.edges,
            ranking_memory=settings.memory // _RANKING_SHARE,
            hearsay=_hearsay(settings),
            division=_division(settings),
            background=background,
            state=state,
        )
        self.beast = Beast(env, folder, settings.budget, block=block, state=state("beast"))
        self.permits = Permits(
            env,
            folder,
            KeyMaker(settings.seed),
            sizing=space.robots,
            requested_sizing=space.requested,
            patience=PATIENCE,
            block=block,
            stale=settings.politeness.robots_stale,
            background=background,
            state=state,
        )
        self.backlinks: Backlinks | None = None
        if settings.order == "backlinks":
            self.backlinks = Backlinks(
                env,
                folder,
                at_most(_WINDOW, settings.memory, _WINDOW_SHARE, _WINDOW_URL),
                slot_of=slot_of(settings.parallel),
                sizing=space.backlinks,
                background=background,
                state=state(Backlinks.name),
            )
        self._hurried = -math.inf  # when a stage was last merged early

    @property
    def structures(self) -> Sequence[Structure]:
        """What a store has to commit, in this order."""
        order = () if self.backlinks is None else (self.backlinks,)
        return (self.seen, *self.star.structures, self.beast, *self.permits.structures, *order)

    @property
    def unplaced(self) -> int:
        """Rows that wait for a merge before they come to `beast`, old URLs and what URLs are judged by included."""
        return self.seen.pending + self.star.unbudgeted

    def hurry(self, now: float, patience: float = 0.0) -> bool:
        """Fetchers are idle: merge what the last stage with rows holds, however few; whether there was any. Not before
        the `patience` in seconds with the last such merge is over."""
        order = self.backlinks
        if self.seen.drum.uncollected or self.star.merging or self.permits.merging:
            return True
        if order is not None and order.checking:
            if not order.drum.uncollected:
                order.merge(wait=False)
            return True
        if now < self._hurried + patience:
            return self.permits.undecided + self.unplaced > 0
        if self.permits.undecided:
            self.permits.merge(wait=False)
        elif self.permits.waiting <= _FEW and self.permits.hurry(now):
            pass  # as in a small crawl, where one seed must not wait while links of the others come in
        elif self.star.unbudgeted:
            # Edges wait until they are worth a pass over all that are known.
            self.star.merge(wait=False, edges=self.star.pending_edges * _WORTH > self.star.edges)
        elif self.seen.pending:
            self.seen.merge(wait=False)
        else:
            return self.permits.hurry(now)
        self._hurried = now
        return True

    def refresh(self) -> None:
        """Merge what is worth a pass over what is known, though fetchers are busy: of URLs in the order of backlinks those
        that were found last may be the next."""
        if self.backlinks is None:
            return
        if self.seen.pending * _WORTH > len(self.seen) and not self.seen.drum.uncollected:
            self.seen.merge(wait=False)
        if self.star.unbudgeted * _WORTH > self.star.domains and not self.star.merging:
            self.star.merge(wait=False, edges=self.star.pending_edges * _WORTH > self.star.edges)
        if self.backlinks.is_worth_merging and not self.backlinks.drum.uncollected:
            self.backlinks.merge(wait=False)

    def gauges(self) -> dict[str, int]:
        """How the stages stand."""
        beast = self.beast.gauges()
        return {
            "seen": len(self.seen),
            "unchecked": self.seen.pending,
            "domains": self.star.domains,
            "edges": self.star.edges,
            "queues": beast.queues,
            "over_budget": beast.failed + beast.away,
            "rescans": self.beast.moved.rescans,
            "origins": self.permits.origins,
            **({} if self.backlinks is None else {"window": len(self.backlinks)}),
            **{f"robots_{name}": count for name, count in self.permits.gauges().items()},
        }

    def queues(self) -> dict[str, int]:
        """What waits at each stage, in the order of the path."""
        return {
            "seen": self.seen.pending,
            "star": self.star.unbudgeted,
            **self.beast.queues(),
            "permits": self.permits.waiting,
            **self.permits.queues(),
        }

    def traffic(self) -> dict[str, dict[str, Any]]:
        """See `core.events.Frontier`."""
        _, cache, requested = self.permits.structures
        drums = {
            "seen": self.seen.drum,
            **{name.removeprefix("star/"): drum for name, drum in self.star.drums.items()},
            "robots": cache,
            "requested": requested,
            **({} if self.backlinks is None else {"backlinks": self.backlinks.drum}),
        }
        beast = {"queues": self.beast.gauges().queues, "budget": self.star.expected()}
        ranking = self.star.ranking_traffic()
        return {
            "drum": {name: drum.traffic() for name, drum in drums.items()},
            "beast": asdict(self.beast.moved) | beast,
            **({} if ranking is None else {"ranking": ranking}),
        }

    def validate(self) -> None:
        """Check the invariants."""
        for stage in self._all():
            stage.validate()

    def close(self) -> None:
        """Close the files; what was committed stays."""
        for stage in self._all():
            stage.close()

    def _all(self) -> Sequence[Seen | Star | Beast | Permits | Backlinks]:
        order = () if self.backlinks is None else (self.backlinks,)
        return (self.seen, self.star, self.beast, self.permits, *order)
