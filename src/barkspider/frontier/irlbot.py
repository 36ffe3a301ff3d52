"""The IRLbot strategy: URLs wait on disk, and the reputation of their domains decides when they come up.

    links ─► seen ─► star ─► beast ─► permits ─► Ready ─► fetch
                      ▲        │         ▲         │
    domain edges ─────┴─ Q_F ──┘         └── Q_W ──┘

Everything moves in batches: a stage hands on what a merge has let through, and `stages` says when one is merged. A
step only moves what merges have finished, a few milliseconds of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.events import Instruction, Structure
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.budget.domain_redirects import NOWHERE
from barkspider.frontier.decisions import BUDGET, ROBOTS_UNKNOWN, SITE_DUPLICATES
from barkspider.frontier.gate import Gate, Saved
from barkspider.frontier.lots import WAITING, Lot
from barkspider.frontier.politeness.hosts import Host, Origin
from barkspider.frontier.robots.permit import Permit
from barkspider.frontier.robots.rules import ROBOTS, UNREACHABLE
from barkspider.frontier.source import Found, edge_sources
from barkspider.frontier.stages import PATIENCE, Stages
from barkspider.frontier.standing import Standing
from barkspider.model.budgets import Distribution
from barkspider.storage.drum.repository import UPDATE

_BUDGETS = "budgets"  # what a checkpoint calls the budgets above B_0
# Kinds of lots; others are named as the DRUMs of `star`.
_SEEN, _TURN, _LEFT_OVER, _LINKED, _WINDOW = "seen", "turn", "left over", "backlinks", "window"
_BLOCKS = 2  # blocks of results moved on from a stage in one step: about five milliseconds
_TAKEN, _DRAWN = 500, 2_000  # URLs taken from disk at a time, and in a step
# No queue is begun while more than this part of the URLs known waits to be placed. What waits is mostly new, because
# the front set of `seen` stops most of the rest; with an eighth, farms had 6% of a crawl with little memory.
_URLS_WORTH = 16
_PERMITS_WORTH = (
    32  # origins that wait are looked up, by a merge, when they are more than this part of those known
)
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
        self._beast, self._permits, self._order = stages.beast, stages.permits, stages.backlinks
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

    def queues(self) -> dict[str, int]:
        """See `core.events.Frontier`."""
        return self._stages.queues()

    def traffic(self) -> dict[str, dict[str, Any]]:
        """That of all stages, and what `ready` takes of RAM."""
        used, share = self._counters.queued * _URL_IN_RAM, self._settings.memory // _READY_SHARE
        return {**self._stages.traffic(), "ready": {"ram": used, "ram_share": share}}

    def notices(self) -> list[tuple[str, dict[str, Any]]]:
        """What became of rankings since the last call."""
        return self._star.notices()

    def ranks(self) -> Distribution | None:
        """See `Source`."""
        return self._star.distribution()

    def news(self, to: int) -> bytes:
        """See `Source`."""
        return self._star.news(to)

    def hear(self, sender: int, news: bytes) -> None:
        """See `Source`."""
        if self._star.hearsay is not None:
            self._star.hearsay.hear(sender, news)

    def learn_ranks(self, elsewhere: Distribution) -> None:
        """See `Source`."""
        self._star.learn_ranks(elsewhere)

    def save(self) -> Saved:
        """See `Source`."""
        head = {"largest": self._largest, "by_supporters": self._star.by_supporters}
        budgets = self._ready.multiples.save()
        heard = {} if self._star.hearsay is None else self._star.hearsay.save()
        window = {} if self._order is None else self._order.save()
        return lambda: (head, {_BUDGETS: budgets(), **heard, **window})

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """See `Source`."""
        self._largest = int(head["largest"])
        self._star.by_supporters = bool(head.get("by_supporters"))
        self._ready.multiples.load(arrays.get(_BUDGETS, b""))  # crawls begun earlier have none
        if self._star.hearsay is not None:
            self._star.hearsay.load(arrays)
        if self._order is not None:
            self._order.load(arrays)

    def waiting(self) -> bool:
        """Whether anything moves that is not counted as deferred yet."""
        return self._moving

    def validate(self) -> None:
        """Check the invariants."""
        self._stages.validate()

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        self._stages.close()

    # ── for a crawl that is divided anew ───────────────────────────────────────────────────────

    def complete(self, now: float) -> None:  # noqa: ARG002
        """See `Source`: every URL is in a queue of `beast`, in `permits`, in Q_W, or in the window of backlinks."""
        while True:
            if self._order is not None:
                self._order.merge()
            self._seen.merge()
            self._place()
            self._star.merge()
            if not self._place() and not self._stages.unplaced + self._star.pending_edges:
                return

    def lots(self) -> Iterator[Lot]:
        """See `Source`. Robots.txt are not among them, but those who wait for one are: they will ask again."""
        for name, drum in {_SEEN: self._seen.drum, **self._star.drums}.items():
            for keys, values in drum.items():
                yield Lot(name, keys, values=values)
        queues, entries = self._beast.left_over()
        yield Lot(_LEFT_OVER, np.ascontiguousarray(entries[:, 0]), values=entries, place=queues, shared=True)
        for ahead, urls in self._beast.drain():
            yield Lot.of(_TURN, urls, place=ahead)
        domains, multiples = self._ready.multiples.items()
        yield Lot(_BUDGETS, domains, values=multiples, shared=True)
        if self._order is not None:
            for keys, values in self._order.drum.items():
                yield Lot(_LINKED, keys, values=values)
            while len(urls := self._order.take(_TAKEN)):
                yield Lot.of(_WINDOW, urls)
        for urls in self._permits.drain():
            yield Lot.of(WAITING, urls, np.full(len(urls), self._gate.now))

    def adopt(self, lot: Lot) -> None:
        """See `Source`."""
        if lot.kind == _SEEN:
            self._seen.drum.feed(UPDATE, lot.keys)
        elif lot.kind == _TURN:
            self._beast.adopt(lot.place, lot.urls)
        elif lot.kind == _LEFT_OVER:
            self._beast.adopt_left_over(lot.place, lot.values)
        elif lot.kind == _BUDGETS:
            self._ready.multiples.learn(lot.keys.tolist(), lot.values.tolist())
        elif lot.kind == _LINKED:
            assert self._order is not None
            self._order.drum.feed(UPDATE, lot.keys, lot.values)
        elif lot.kind == _WINDOW:
            assert self._order is not None
            self._order.check(lot.urls)
        else:
            self._star.drums[lot.kind].feed(UPDATE, lot.keys, lot.values)

    # ── what comes in ──────────────────────────────────────────────────────────────────────────

    def take(self, found: Sequence[Found], now: float) -> None:  # noqa: ARG002
        """Feed `seen` with all links, and `star` with edges and answers; what is barred is dropped."""
        for page, _, target, barred, edges, standing, *_ in found:
            self._gate.decisions.drop(barred, SITE_DUPLICATES)
            if edges is not None:
                self._star.add_edges(*edges)
            if page is not None:
                self._star.add_answer(page.pld_key, NOWHERE if target is None else target.pld_key)
            if standing is not None:
                self._take_standing(standing)
        links = UrlBatch.join([each.links for each in found])
        if self._order is not None:
            for each in found:
                self._order.learn(each.links, each.counts)
        if len(links):
            self._seen.feed(links)
            self._moving = True
            sources = edge_sources(found)
            pages = np.flatnonzero(sources)
            self._star.add_edges(sources[pages], links.pld_key[pages])

    def _take_standing(self, standing: Standing) -> None:
        for edges in standing.edges:
            self._star.add_edges(*edges)
        for domains, targets in standing.answers:
            for domain, target in zip(domains.tolist(), targets.tolist(), strict=True):
                self._star.add_answer(domain, target)
        for score in standing.scores:
            self._star.take_score(score)

    def _learned(self, host: Host, known: Origin, pause: float) -> None:
        """What became of a robots.txt; see `robots.origins`."""
        if pause > PATIENCE:
            self._permits.put_off(known.name)
        elif not pause:
            # URLs that wait for it must see it, even if it is valid for a moment only.
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
        self._stages.refresh()
        instructions = self._ready.take(now, room)
        idle, drawn = False, 0
        while True:
            idle = len(instructions) < room and self._has_space()
            enough = max(_TAKEN, self._permits.origins // _PERMITS_WORTH)
            if not idle or drawn >= _DRAWN or self._permits.undecided >= enough:
                break
            found = self._draw(now) if self._order is None else self._draw_best(now, room - len(instructions))
            if not found:
                break
            drawn += found
            instructions += self._ready.take(now, room - len(instructions))
        wake = self._ready.next_time()
        if idle:
            again = min(self._permits.next_time(), self._permits.hurry_time())
            # Enough URLs wait, so no more are taken: only a merge can give something to fetch.
            patience = 0.0 if self._permits.undecided >= enough else self._patience()
            if self._stages.hurry(now, patience) or self._moving:
                again = now
            wake = min(wake, max(again, now + _LOOK_AGAIN))
        if self._has_space():
            wake = min(wake, self._gate.next_time())
        self._largest = max(self._largest, self._counters.queued + self._counters.deferred)
        return [*instructions, *self._star.scores()], wake

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
        self._let_in(self._admitted(batch, now), now)
        return len(batch)

    def _draw_best(self, now: float, most: int) -> int:
        """As `_draw`, of URLs that have been drawn into the window those with the most links."""
        assert self._order is not None
        while self._order.space > 0 and len(batch := self._beast.take(min(_TAKEN, self._order.space))):
            self._order.check(self._admitted(batch, now))
        best = self._order.take(most)
        self._let_in(best, now)
        return len(best)

    def _admitted(self, batch: UrlBatch, now: float) -> UrlBatch:
        """Those that are within the shares of their sites and domains."""
        if not self._gate.shares:
            return batch
        self._counters.deferred -= len(batch)
        batch = UrlBatch.from_rows([row for row in batch.rows() if self._gate.admits(row, now)])
        self._counters.deferred += len(batch)
        return batch

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
            unknown = batch.where(~known)
            self._gate.decisions.hold_back(unknown, ROBOTS_UNKNOWN)
            self._permits.check(unknown)

    def _queue(self, rows: Sequence[UrlRow], now: float) -> None:
        self._counters.deferred -= len(rows)
        for row in rows:
            self._gate.put(row, now)

    def _place(self, most: int | None = None) -> bool:
        """Hand on what merges have let through, up to the queues of `beast`, so many blocks or all; whether there was any."""
        moving = self._order is not None and self._order.move()
        for batch in islice(self._seen.unique(), most):
            self._counters.discovered += len(batch)
            self._counters.deferred += len(batch)
            self._star.check(batch)
            moving = True
        for batch in islice(self._beast.rescanned(), most):
            self._star.check(batch)
            moving = True
        for batch, budgets in islice(self._star.budgeted(), most):
            if self._settings.politeness.scale_by_budget:
                self._remember_budgets(batch, budgets)
            self._gate.decisions.hold_back(batch, BUDGET, self._beast.put(batch, budgets))
            moving = True
        return moving

    def _move(self, now: float) -> None:
        """Hand on what merges have let through, a little at a time."""
        moving = self._stages.unplaced > 0
        moving = self._place(_BLOCKS) or moving
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
