"""The frontier of IRLbot: URLs wait on disk, and the reputation of their domains decides when they come up.

    links ─► seen ─► star ─► beast ─► Ready ─► fetch
                      ▲        │
    domain edges ─────┴─ Q_F ──┘

Everything moves in batches: a stage hands on what a merge has let through. A merge shares one pass over all
that is known among the rows that wait for it, so it should not come early; but nothing may wait for a batch
to fill while fetchers are idle. So a stage is merged when it is full, or when all that follows it has run dry.
Merges run in threads of their own; a step only moves what they have finished, a few milliseconds of it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np

from barkspider.core.events import Instruction, Trail
from barkspider.core.records import UrlBatch, UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.beast import Beast
from barkspider.frontier.hosts import Host
from barkspider.frontier.polite import PoliteFrontier
from barkspider.frontier.seen import Seen
from barkspider.frontier.star import Star
from barkspider.storage.env import Env
from barkspider.storage.sizing import Sizing

_BLOCKS = 2  # blocks of results moved on from a stage in one step: about five milliseconds
_TAKEN, _DRAWS = 500, 4  # URLs taken from disk at a time, and how often in a step
_EDGES_WORTH = 8  # edges are merged early when they are more than this part of those that are known
_LOOK_AGAIN = 0.02  # seconds until a merge that runs is looked at again
_REMEMBERED_TRAILS = 100_000  # of redirects on their way through the stages: about 20 MB
# What the parts get of `memory`; the rest is for fetching, the archive and everything that is not a buffer.
_SEEN_SHARE, _STAR_SHARE, _EDGES_SHARE, _READY_SHARE = 4, 16, 32, 8
_URLS_A_SLOT = 40  # URLs in RAM for each request that may be in flight
_URL_IN_RAM = 500  # bytes of a URL in `Ready`, with its part of a host
_DISK_PER_RAM = 8  # bytes of buckets for each byte of a DRUM's memory


class Irlbot(PoliteFrontier):
    """A `Frontier`; see the module. One thread; its I/O is the files of its stages.

    Ready is filled from `beast`, as far as memory goes and as long as fetchers are idle, and emptied by `step`.
    """

    def __init__(self, settings: Settings, env: Env, folder: Path, background: bool = True) -> None:
        """Without `background` merges run within `step`: for clocks that do not go by themselves."""
        super().__init__(settings)
        memory = settings.memory
        self._seen = Seen(env, folder, sizing=_sizing(memory // _SEEN_SHARE), background=background)
        self._star = Star(
            env,
            folder,
            settings.budget,
            sizing=_sizing(memory // _STAR_SHARE, 4),
            edge_sizing=_sizing(memory // _EDGES_SHARE, 0, 8),
            background=background,
        )
        self._edges, self._indegree = self._star.structures
        self._beast = Beast(env, folder, settings.budget)
        # Enough hosts to keep the fetchers busy while each is left alone for its delay, and no more: what is in
        # RAM has had its turn, and no budget counts for it any more.
        wanted = settings.fetch.in_flight * max(_URLS_A_SLOT, 4 * int(settings.politeness.host_delay))
        self._most_ready = min(memory // _READY_SHARE // _URL_IN_RAM, wanted)
        self._trails: OrderedDict[int, Trail] = OrderedDict()
        self._above: dict[int, float] = {}  # domains with more than the base budget, in multiples of it
        self._moving = False  # whether rows wait for a merge, or came out of one in the last step
        self._largest = 0

    def gauges(self) -> dict[str, int]:
        """Sizes of what is in RAM and on disk, and how the stages stand."""
        beast = self._beast.gauges()
        return {
            "primary": self.counters.queued,
            "secondary": self.counters.deferred,
            "largest": self._largest,
            "seen": len(self._seen),
            "hosts": len(self._ready),
            "unchecked": self._seen.pending,
            "domains": self._star.domains,
            "edges": self._star.edges,
            "queues": beast.queues,
            "over_budget": beast.failed + self._beast.awaited,
            "rescans": self._beast.moved.rescans,
        }

    def drums(self) -> dict[str, dict[str, int]]:
        """What its DRUMs counted, by name."""
        drums = {"seen": self._seen.drum, "edges": self._edges, "indegree": self._indegree}
        return {name: asdict(drum.counters) for name, drum in drums.items()}

    def validate(self) -> None:
        """Check the invariants."""
        assert self.counters.balanced(), self.counters
        for part in (self._ready, self._seen, self._star, self._beast):
            part.validate()

    def close(self) -> None:
        """Let go of the files."""
        for part in (self._seen, self._star, self._beast):
            part.close()

    def _waiting(self) -> bool:
        return bool(self.counters.queued or self.counters.deferred or self._moving)

    # ── what comes in ──────────────────────────────────────────────────────────────────────────

    def _seeds(self, batch: UrlBatch) -> None:
        self._seen.feed(batch)
        self._moving = True

    def _lead(self, target: UrlRow, trail: Trail) -> None:
        self._trails[target.key] = trail
        if len(self._trails) > _REMEMBERED_TRAILS:
            self._trails.popitem(last=False)
        self._seeds(UrlBatch.from_rows([target]))

    def _links(self, page: UrlRow, host: Host, links: UrlBatch) -> None:
        links, _ = self._follows(page, host, links)
        if len(links):
            self._star.add_edges(np.full(len(links), page.pld_key, np.uint64), links.pld_key)
            self._seeds(links)

    # ── what goes out ──────────────────────────────────────────────────────────────────────────

    def _give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        self._move()
        instructions = self._ready.take(now, room)
        for _ in range(_DRAWS):
            idle = len(instructions) < room and self.counters.queued < self._most_ready
            if not idle or not self._draw():
                break
            instructions += self._ready.take(now, room - len(instructions))
        wake = self._ready.next_time()
        if idle and (self._moving or self.counters.deferred):
            self._hurry()
            wake = min(wake, now + _LOOK_AGAIN)
        self._largest = max(self._largest, self.counters.queued + self.counters.deferred)
        return instructions, wake

    def _draw(self) -> bool:
        """Let some URLs of the current queue wait for their hosts; whether there were any."""
        batch = self._beast.take(_TAKEN)
        self.counters.deferred -= len(batch)
        for row in batch.rows():
            self._put(row, self._trails.pop(row.key, ()), self._above.get(row.pld_key, 1.0))
        return len(batch) > 0

    def _move(self) -> None:
        """Hand on what merges have let through, a little at a time."""
        moving = self._seen.pending + self._indegree.pending > 0
        for batch in islice(self._seen.unique(), _BLOCKS):
            self.counters.discovered += len(batch)
            self.counters.deferred += len(batch)
            self._star.check(batch)
            moving = True
        for batch in islice(self._beast.rescanned(), _BLOCKS):
            self._star.check(batch)
            moving = True
        base = self._settings.budget.base
        for batch, budgets in islice(self._star.budgeted(), _BLOCKS):
            for place in np.flatnonzero(budgets > base).tolist():
                self._above[int(batch.pld_key[place])] = float(budgets[place]) / base
            self._beast.put(batch, budgets)
            moving = True
        self._moving = moving

    def _hurry(self) -> None:
        """Fetchers are idle: merge what the last stage with rows holds, however few."""
        if self._edges.merging or self._indegree.merging or self._seen.drum.merging:
            return
        if self._indegree.pending:
            # Edges wait until they are worth a pass over all that are known.
            self._star.merge(wait=False, edges=self._edges.pending * _EDGES_WORTH > len(self._edges))
        elif self._seen.pending:
            self._seen.merge(wait=False)


def _sizing(ram: int, value: int = 0, aux: int = 110) -> Sizing:
    return Sizing.choose(ram, _DISK_PER_RAM * ram, value, aux)
