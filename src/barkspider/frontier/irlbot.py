"""The IRLbot strategy: URLs wait on disk, and the reputation of their domains decides when they come up.

    links ─► seen ─► star ─► beast ─► permits ─► Ready ─► fetch
                      ▲        │         ▲         │
    domain edges ─────┴─ Q_F ──┘         └── Q_W ──┘

Everything moves in batches: a stage hands on what a merge has let through, and `stages` says when one is merged. A
step only moves what merges have finished, a few milliseconds of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Instruction, Structure
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.budget.budgets import Distribution
from barkspider.frontier.budget.redirects import NOWHERE
from barkspider.frontier.gate import Gate, Saved
from barkspider.frontier.politeness.hosts import Host, Origin
from barkspider.frontier.robots.permit import Permit
from barkspider.frontier.robots.rules import ROBOTS, UNREACHABLE
from barkspider.frontier.source import Found
from barkspider.frontier.stages import PATIENCE, Stages

_BUDGETS = "budgets"  # what a checkpoint calls the budgets above B_0
_BLOCKS = 2  # blocks of results moved on from a stage in one step: about five milliseconds
_TAKEN, _DRAWN = 500, 2_000  # URLs taken from disk at a time, and in a step
# No queue is begun while more than this part of the URLs known waits to be placed. What waits is mostly new, because
# the front set of `seen` stops most of the rest; with an eighth, farms had 6% of a crawl with little memory.
_URLS_WORTH = 16
_PERMITS_WORTH = 32  # origins to look up are merged when they are more than this part of those that are known
_LOOK_AGAIN = 0.02  # seconds until a merge that runs is looked at again
_PATIENCE = 2.0  # seconds between two merges for idle fetchers when `Ready` is nearly full; in proportion when it is not
_READY_SHARE = 8  # what `Ready` gets of `memory`
_URLS_A_SLOT = 40  # URLs in RAM for each request that may be in flight
_URL_IN_RAM = 500  # bytes of a URL in `Ready`, with its part of a host


class Irlbot:
    """A `Source`; see the module. One thread; it owns its stages.

    Ready is filled from `permits`, and that from `beast`, as far as memory goes and as long as fetchers are idle.
    What comes back from Q_W goes through `permits`. Whatever is in a stage behind `seen` counts as deferred.
    """

    def __init__(self, settings: Settings, gate: Gate, stages: Stages) -> None:
        self._settings, self._gate, self._stages = settings, gate, stages
        self._ready, self._counters = gate.ready, gate.counters
        self._seen, self._star = stages.seen, stages.star
        self._beast, self._permits = stages.beast, stages.permits
        self._ready.subscribe(self._learned)
        # Enough hosts to keep the fetchers busy while each is left alone for its delay, and no more: what is in
        # RAM has had its turn, and no budget counts for it any more.
        wanted = settings.fetch.in_flight * max(_URLS_A_SLOT, 4 * int(settings.politeness.host_delay))
        self._most_ready = min(settings.memory // _READY_SHARE // _URL_IN_RAM, wanted)
        self._moving = True  # whether rows wait for a merge, or came out of one in the last step
        self._largest = 0

    @property
    def structures(self) -> Sequence[Structure]:
        """Those of all stages."""
        return self._stages.structures

    def gauges(self) -> dict[str, int]:
        """Sizes of what is in RAM and on disk, and how the stages stand."""
        return {
            "primary": self._counters.queued,
            "secondary": self._counters.deferred,
            "largest": self._largest,
            "put_off": len(self._gate.delays),
            **self._stages.gauges(),
        }

    def traffic(self) -> dict[str, dict[str, Any]]:
        """That of all stages."""
        return self._stages.traffic()

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """What became of rankings since the last call."""
        return self._star.notices()

    def ranks(self) -> Distribution | None:
        """See `Source`."""
        return self._star.distribution()

    def learn_ranks(self, elsewhere: Distribution) -> None:
        """See `Source`."""
        self._star.learn_ranks(elsewhere)

    def save(self) -> Saved:
        """See `Source`."""
        head, budgets = {"largest": self._largest}, self._ready.multiples.save()
        return lambda: (head, {_BUDGETS: budgets()})

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """See `Source`."""
        self._largest = int(head["largest"])
        self._ready.multiples.load(arrays.get(_BUDGETS, b""))  # crawls begun earlier have none

    def waiting(self) -> bool:
        """Whether anything moves that is not counted as deferred yet."""
        return self._moving

    def validate(self) -> None:
        """Check the invariants."""
        self._stages.validate()

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        self._stages.close()

    # ── what comes in ──────────────────────────────────────────────────────────────────────────

    def take(self, found: Sequence[Found], now: float) -> None:  # noqa: ARG002
        """Feed `seen` with all links, and `star` with edges and answers; what is barred is forgotten."""
        domains = []
        for page, _, target, _, edges in found:
            if edges is not None:
                self._star.add_edges(*edges)
            if page is not None:
                self._star.add_answer(page.pld_key, NOWHERE if target is None else target.pld_key)
            # A redirect makes no edge: it recommends nobody.
            domains.append(0 if page is None or target is not None else page.pld_key)
        links = UrlBatch.join([each.links for each in found])
        if len(links):
            self._seen.feed(links)
            self._moving = True
            sources = np.repeat(np.array(domains, np.uint64), [len(each.links) for each in found])
            pages = np.flatnonzero(sources)
            self._star.add_edges(sources[pages], links.pld_key[pages])

    def _learned(self, host: Host, known: Origin, pause: float) -> None:
        """What became of a robots.txt; see `robots.origins`."""
        if pause > PATIENCE:
            self._permits.put_off(known.name)
        elif not pause:
            # Those who wait for it get to see it, however short it is good for.
            until = max(known.until, self._gate.now + 2 * PATIENCE)
            unreachable = known.refusal == UNREACHABLE
            address = "" if host.server is None else host.server.address
            permit = Permit.of(
                known.rules, known.learned, until, unreachable, address, max(host.address_until, 0.0)
            )
            self._permits.learn(known.name, permit, again=not self._gate.begun)

    # ── what goes out ──────────────────────────────────────────────────────────────────────────

    def give(self, now: float, room: int) -> tuple[list[Instruction], float]:
        """Bring on what waits on disk as far as there are fetchers and space for it."""
        if self._has_space():
            self._let_in(self._gate.come_back(now), now)
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
            # While nothing more is drawn, only a merge helps.
            patience = 0.0 if self._permits.undecided >= enough else self._patience()
            if self._stages.hurry(now, patience) or self._moving:
                again = now
            wake = min(wake, max(again, now + _LOOK_AGAIN))
        if self._has_space():
            wake = min(wake, self._gate.next_time())
        self._largest = max(self._largest, self._counters.queued + self._counters.deferred)
        return instructions, wake

    def _has_space(self) -> bool:
        return self._counters.queued < self._most_ready

    def _patience(self) -> float:
        """Seconds for which fetchers find enough in RAM. A crawl with less than a URL for each of them does not wait."""
        spare = self._counters.queued - self._settings.fetch.in_flight
        return _PATIENCE * max(spare, 0) / self._most_ready

    def _draw(self, now: float) -> int:
        """Take some URLs of the current queue; how many there were.

        Where there are farms, no queue of `beast` is ever the last: so that turns do not go by while good URLs wait
        to be placed, none is begun before these are few.
        """
        if self._beast.at_end and self._stages.unplaced * _URLS_WORTH > len(self._seen):
            return 0
        batch = self._beast.take(_TAKEN)
        drawn = len(batch)
        if self._gate.shares:
            self._counters.deferred -= drawn
            batch = UrlBatch.from_rows([row for row in batch.rows() if self._gate.admits(row, now)])
            self._counters.deferred += len(batch)
        self._let_in(batch, now)
        return drawn

    def _let_in(self, batch: UrlBatch, now: float) -> None:
        """URLs that may be fetched if robots.txt does not forbid it. Where that is known in RAM they are queued."""
        if not len(batch):
            return
        if not self._settings.politeness.obey_robots:
            self._queue(batch.rows(), now)
            return
        # Rows are made of those that may be known: most hosts are not, or all of their origins are.
        hosts, places = np.unique(batch.host_key, return_inverse=True)
        known = np.array([self._ready.knows_host(key, now) for key in hosts.tolist()])[places]
        if known.any():
            rows = batch.where(known).rows()
            marks = [self._ready.knows(row, now) for row in rows]
            known[known] = marks
            self._queue(rows if all(marks) else list(compress(rows, marks)), now)
        if not known.all():
            self._permits.check(batch.where(~known))

    def _queue(self, rows: Sequence[UrlRow], now: float) -> None:
        self._counters.deferred -= len(rows)
        for row in rows:
            self._gate.put(row, now)

    def _move(self, now: float) -> None:
        """Hand on what merges have let through, a little at a time."""
        moving = self._stages.unplaced > 0
        for batch in islice(self._seen.unique(), _BLOCKS):
            self._counters.discovered += len(batch)
            self._counters.deferred += len(batch)
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
                for name, permit in permitted.outdated:
                    self._take_permit(name, permit)
                for name, permit, rows in permitted:
                    self._take_permit(name, permit, rows[0].host_key)
                    if permit.address_until > now:
                        self._ready.locate(rows[0].host_key, permit.address, permit.address_until)
                    self._queue(rows, now)
                moving = True
        for name in self._permits.asks(max(self._most_ready - self._ready.asking, 0), now):
            self._ready.ask(name, now)
        self._moving = moving

    def _take_permit(self, name: str, permit: Permit, host_key: int = 0) -> None:
        refusal = UNREACHABLE if permit.unreachable else ROBOTS
        self._ready.permit(name, permit.until, permit.learned, refusal, permit.encoded, host_key)

    def _remember_budgets(self, batch: UrlBatch, budgets: npt.NDArray[np.uint32]) -> None:
        domains, places = np.unique(batch.pld_key, return_index=True)
        multiples = budgets[places] / self._settings.budget.base
        self._ready.multiples.learn(domains.tolist(), multiples.tolist())
