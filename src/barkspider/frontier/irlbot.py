"""The frontier of IRLbot: URLs wait on disk, and the reputation of their domains decides when they come up.

    links ─► seen ─► star ─► beast ─► permits ─► Ready ─► fetch
                      ▲        │         ▲         │
    domain edges ─────┴─ Q_F ──┘         └── Q_W ──┘

Everything moves in batches: a stage hands on what a merge has let through. A merge shares one pass over all
that is known among the rows that wait for it, so it should not come early; but nothing may wait for a batch
to fill while fetchers are idle. So a stage is merged when it is full, or when all that follows it has run dry.
Merges run in threads of their own; a step only moves what they have finished, a few milliseconds of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Instruction, Structure
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.budget.beast import Beast
from barkspider.frontier.budget.redirects import NOWHERE
from barkspider.frontier.budget.seen import Seen
from barkspider.frontier.budget.star import Star
from barkspider.frontier.polite import PoliteFrontier, States
from barkspider.frontier.politeness.hosts import Host
from barkspider.frontier.robots.permits import Permit, Permits
from barkspider.frontier.robots.rules import ROBOTS, UNREACHABLE, Origin
from barkspider.storage.drum.sizing import Sizing
from barkspider.storage.env import Env
from barkspider.url import Keys, origin

_BLOCKS = 2  # blocks of results moved on from a stage in one step: about five milliseconds
_TAKEN, _DRAWN = 500, 2_000  # URLs taken from disk at a time, and in a step
_WORTH = 8  # edges are merged early when they are more than this part of those that are known
_URLS_WORTH = 4  # no queue is begun while more than this part of the URLs known waits to be placed
_PERMITS_WORTH = 32  # origins to look up are merged when they are more than this part of those that are known
_FEW = (
    100  # URLs that wait for a robots.txt are checked again as answers come in, before new ones are looked at
)
_PATIENCE = 30.0  # seconds that URLs wait for a robots.txt before they are in nobody's way
_LOOK_AGAIN = 0.02  # seconds until a merge that runs is looked at again
# What the parts get of `memory`; the rest is for fetching, the archive and everything that is not a buffer.
_SEEN_SHARE, _STAR_SHARE, _EDGES_SHARE, _PERMITS_SHARE, _READY_SHARE = 4, 16, 32, 32, 8
_RANKING_SHARE = 16
_URLS_A_SLOT = 40  # URLs in RAM for each request that may be in flight
_URL_IN_RAM = 500  # bytes of a URL in `Ready`, with its part of a host
_DISK_PER_RAM = 8  # bytes of buckets for each byte of a DRUM's memory


class Irlbot(PoliteFrontier):
    """A `Frontier`; see the module. One thread; its I/O is the files of its stages.

    Ready is filled from `permits`, and that from `beast`, as far as memory goes and as long as fetchers are idle;
    it is emptied by `step`. What it puts off comes back through `permits`.
    """

    def __init__(
        self,
        settings: Settings,
        env: Env,
        folder: Path,
        *,
        state: States = lambda _: None,
        resumed: float | None = None,
        background: bool = True,
    ) -> None:
        """Without `background` merges run within `step`: for clocks that do not go by themselves."""
        memory = settings.memory
        self._seen = Seen(
            env, folder, sizing=_sizing(memory // _SEEN_SHARE), background=background, state=state("seen")
        )
        self._star = Star(
            env,
            folder,
            settings.budget,
            sizing=_sizing(memory // _STAR_SHARE, 4),
            edge_sizing=_sizing(memory // _EDGES_SHARE, 0, 16),
            ranking_memory=memory // _RANKING_SHARE,
            background=background,
            state=state,
        )
        self._beast = Beast(env, folder, settings.budget, state=state("beast"))
        self._permits = Permits(
            env,
            folder,
            Keys(settings.seed),
            sizing=_sizing(memory // _PERMITS_SHARE, 200, 200),
            requested_sizing=_sizing(memory // _PERMITS_SHARE, 8, 50),
            patience=_PATIENCE,
            background=background,
            state=state,
        )
        # Enough hosts to keep the fetchers busy while each is left alone for its delay, and no more: what is in
        # RAM has had its turn, and no budget counts for it any more.
        wanted = settings.fetch.in_flight * max(_URLS_A_SLOT, 4 * int(settings.politeness.host_delay))
        self._most_ready = min(memory // _READY_SHARE // _URL_IN_RAM, wanted)
        self._above: dict[int, float] = {}  # domains with more than the base budget, in multiples of it
        self._moving = True  # whether rows wait for a merge, or came out of one in the last step
        self._largest = 0
        super().__init__(settings, env, folder, state, resumed)

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
            "over_budget": beast.failed + beast.away,
            "rescans": self._beast.moved.rescans,
            "put_off": len(self._delays),
            "origins": self._permits.origins,
            **{f"robots_{name}": count for name, count in self._permits.gauges().items()},
        }

    def drums(self) -> dict[str, dict[str, int]]:
        """What its DRUMs counted, by name."""
        _, cache, requested = self._permits.structures
        drums = {
            "seen": self._seen.drum,
            **{name.removeprefix("star/"): drum for name, drum in self._star.drums.items()},
            "robots": cache,
            "requested": requested,
        }
        return {name: asdict(drum.counters) for name, drum in drums.items()}

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """What became of rankings since the last call."""
        return self._star.notices()

    def structures(self) -> Sequence[Structure]:
        """Those of all stages."""
        stages = (self._seen, *self._star.structures, self._beast, *self._permits.structures)
        return [*super().structures(), *stages]

    def validate(self) -> None:
        """Check the invariants."""
        assert self.counters.balanced(), self.counters
        for part in (self._ready, self._seen, self._star, self._beast, self._permits, self._delays):
            part.validate()

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        for part in (self._seen, self._star, self._beast, self._permits, self._delays):
            part.close()

    def _keep(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"largest": self._largest}, {}

    def _recalled(self, head: dict[str, Any], arrays: dict[str, bytes]) -> None:  # noqa: ARG002
        self._largest = int(head["largest"])

    def _waiting(self) -> bool:
        return bool(self.counters.queued or self.counters.deferred or self._moving)

    def _has_space(self) -> bool:
        return self.counters.queued < self._most_ready

    # ── what comes in ──────────────────────────────────────────────────────────────────────────

    def _seeds(self, batch: UrlBatch) -> None:
        self._seen.feed(batch)
        self._moving = True

    def _lead(self, target: UrlRow) -> None:
        self._seeds(UrlBatch.from_rows([target]))

    def _links(self, page: UrlRow, host: Host, links: UrlBatch) -> None:
        links, _ = self._follows(page, host, links)
        if len(links):
            self._star.add_edges(np.full(len(links), page.pld_key, np.uint64), links.pld_key)
            self._seeds(links)

    def _answered(self, page: UrlRow, target: UrlRow | None = None) -> None:
        self._star.add_answer(page.pld_key, NOWHERE if target is None else target.pld_key)

    def _learned(self, known: Origin, pause: float) -> None:
        if pause > _PATIENCE:
            self._permits.put_off(known.name)
        elif not pause:
            # Those who wait for it get to see it, however short it is good for.
            until = max(known.until, self._now + 2 * _PATIENCE)
            unreachable = known.refusal == UNREACHABLE
            permit = Permit.of(known.rules, known.learned, until, unreachable)
            self._permits.learn(known.name, permit, again=not self._begun)

    # ── what goes out ──────────────────────────────────────────────────────────────────────────

    def _give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        self._move(now)
        instructions = self._ready.take(now, room)
        idle, drawn = False, 0
        while True:
            idle = len(instructions) < room and self._has_space()
            enough = max(_TAKEN, self._permits.origins // _PERMITS_WORTH)
            if not idle or drawn >= _DRAWN or self._permits.undecided >= enough:
                break
            found = self._draw(now)
            if not found:
                break
            drawn += found
            instructions += self._ready.take(now, room - len(instructions))
        wake = self._ready.next_time()
        if idle:
            again = min(self._permits.next_time(), self._permits.hurry_time())
            if self._hurry(now):
                again = now
            wake = min(wake, max(again, now + _LOOK_AGAIN))
        self._largest = max(self._largest, self.counters.queued + self.counters.deferred)
        return instructions, wake

    def _draw(self, now: float) -> int:
        """Take some URLs of the current queue; how many there were.

        Where there are farms, no queue of `beast` is ever the last: so that turns do not go by while good URLs wait
        to be placed, none is begun before these are few.
        """
        waiting = self._seen.pending + self._star.unbudgeted
        if self._beast.at_end and waiting * _URLS_WORTH > len(self._seen):
            return 0
        batch = self._beast.take(_TAKEN)
        limits = self._settings.limits
        if limits.site_urls or limits.domain_urls:
            admitted = np.fromiter(map(self._admits, batch.rows()), np.bool_, len(batch))
            self.counters.deferred -= int(np.count_nonzero(~admitted))
            self._back(batch.where(admitted), now)
        else:
            self._back(batch, now)
        return len(batch)

    def _back(self, batch: UrlBatch, now: float) -> None:
        """URLs that may be fetched if robots.txt does not forbid it. Where that is known in RAM they are queued."""
        if not len(batch):
            return
        unknown = np.zeros(len(batch), np.bool_)
        for number, row in enumerate(batch.rows()):
            obeys = self._settings.politeness.obey_robots
            if obeys and not self._ready.knows(origin(row.url.decode()), row.host_key, now):
                unknown[number] = True
            else:
                self._queue(row, now)
        if unknown.any():
            self._permits.check(batch.where(unknown))

    def _queue(self, row: UrlRow, now: float) -> None:
        self.counters.deferred -= 1
        self._put(row, now, self._above.get(row.pld_key, 1.0))

    def _move(self, now: float) -> None:
        """Hand on what merges have let through, a little at a time."""
        moving = self._seen.pending + self._star.unbudgeted > 0
        for batch in islice(self._seen.unique(), _BLOCKS):
            self.counters.discovered += len(batch)
            self.counters.deferred += len(batch)
            self._star.check(batch)
            moving = True
        for batch in islice(self._beast.rescanned(), _BLOCKS):
            self._star.check(batch)
            moving = True
        for batch, budgets in islice(self._star.budgeted(), _BLOCKS):
            if self._settings.politeness.scale_by_budget:
                self._remember_budgets(batch, budgets)
            self._beast.put(batch, budgets)
            moving = True
        if self._has_space():
            for permitted in islice(self._permits.permitted(now), _BLOCKS):
                for name, permit, rows in permitted:
                    refusal = UNREACHABLE if permit.unreachable else ROBOTS
                    self._ready.permit(name, permit.until, permit.learned, refusal, permit.encoded)
                    for row in rows:
                        self._queue(row, now)
                moving = True
        for name in self._permits.asks(max(self._most_ready - self._ready.asking, 0), now):
            self._ready.ask(name, now)
        self._moving = moving

    def _remember_budgets(self, batch: UrlBatch, budgets: npt.NDArray[np.uint32]) -> None:
        base = self._settings.budget.base
        for place in np.flatnonzero(budgets > base).tolist():
            self._above[int(batch.pld_key[place])] = float(budgets[place]) / base

    def _hurry(self, now: float) -> bool:
        """Fetchers are idle: merge what the last stage with rows holds, however few; whether anything moves."""
        stages = (self._star, self._seen.drum, self._permits)
        if any(stage.merging for stage in stages):
            return True
        if self._permits.undecided:
            self._permits.merge(wait=False)
        elif self._permits.waiting <= _FEW and self._permits.hurry(now):
            pass  # as in a small crawl, where one seed must not wait while links of the others come in
        elif self._star.unbudgeted:
            # Edges wait until they are worth a pass over all that are known.
            self._star.merge(wait=False, edges=self._star.pending_edges * _WORTH > self._star.edges)
        elif self._seen.pending:
            self._seen.merge(wait=False)
        else:
            return self._permits.hurry(now) or self._moving
        return True


def _sizing(ram: int, value: int = 0, aux: int = 110) -> Sizing:
    return Sizing.choose(ram, _DISK_PER_RAM * ram, value, aux)
