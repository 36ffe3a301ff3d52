"""The gate: what every URL passes on its way into `Ready`, whichever source it comes from.

    source ─ admits ─► put ─ unless it is done ─► Ready ─► FetchPage
       ▲                                            │ its turn is far away, or it failed for now
       └───────── come_back ◄──── Q_W ◄─── put_off ─┘

Q_W holds URLs that are to come back at a time: those that failed for now, those whose hosts are parked or busy for
long. None of them passes a set of seen URLs again.

After a crash a frontier goes on from its last checkpoint and is given the outcomes since then once more. Their URLs
are still where the checkpoint has them, in some queue or not even found: they are kept as *done*, and dropped when
they come up here. `shares` says who may come up at all, `later` what links that were found meanwhile say of a URL, `mirrors` which hosts are
copies of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from barkspider.core.allotment import at_most
from barkspider.core.batch import UrlBatch
from barkspider.core.events import Trail
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.frontier.decisions import BLOCKED, RECOVERING, SCOPE, SHARE_UNKNOWN, TRAP, Decisions
from barkspider.frontier.held import Held
from barkspider.frontier.mirrors import MIRROR, Mirrors
from barkspider.frontier.ownership import divides_domains, shares_hosts, slot_of
from barkspider.frontier.politeness.delays import NEAR_BYTES, Delays
from barkspider.frontier.ready import Ready
from barkspider.frontier.rulings import PARDON, Rulings
from barkspider.frontier.shares import WAIT, Shares
from barkspider.frontier.trails import Trails
from barkspider.frontier.traps import Traps
from barkspider.storage.env import Env
from barkspider.url import KeyMaker
from barkspider.url.partition import slotted

if TYPE_CHECKING:
    from barkspider.frontier.later import LaterLinks

_REMEMBERED_HOSTS, _HOST = (
    100_000,
    800,
)  # hosts with nothing queued, and the bytes of one: robots.txt, address
_REMEMBERED_TRAILS, _TRAIL = 100_000, 200  # redirects on their way through the stages, and the bytes of one
_NEAR_SHARE = 64  # of `memory`: rows of Q_W whose time is near; there may be twice as many
_LATER_SHARE = 64  # of `memory`: links that were found lately
_MIRRORS_SHARE = 64  # of `memory`: what hosts have shown, where mirrors are looked for
_BACK_AT_ONCE = 2_000  # URLs that come back from Q_W in one step: some ten milliseconds
_UNDECIDED = 1.0  # seconds until a URL is looked at again if it is not known yet whether it may come up
_DEFERRED = np.uint8(Flag.DEFERRED)  # marks these: among URLs that are admitted it has no meaning
_FORMS = int(
    Flag.EXACT | Flag.REVISIT | Flag.AGAIN
)  # flags that make another form of a URL, with an outcome of its own

Form: TypeAlias = tuple[int, int, int]
States: TypeAlias = Callable[
    [str], dict[str, Any] | None
]  # what the last checkpoint has of a structure, by its name
# What a source has in RAM: something for JSON, and arrays or bytes, all by names of its own. Any thread may call it.
Saved: TypeAlias = Callable[[], tuple[Mapping[str, Any], Mapping[str, Any]]]


class Gate:
    """See the module. Filled by a source with `put`; `Ready` is emptied by the source, Q_W too, with `come_back`.

    One thread. Invariants: the counters balance; what is on its way to Q_W counts as deferred already. The driver sets
    `now` at each step, and `begun` when all outcomes of earlier runs have been replayed: before that, what is put is
    put off, because it may turn out to be done.

    >>> import tempfile
    >>> row = UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gate = Gate(Settings(), Env(), Path(folder), state=lambda _: None)
    ...     gate.counters.discovered += 1
    ...     gate.put(row, now=0.0)
    ...     gate.write_off(); gate.next_time(), gate.come_back(now=0.0).rows() == [row], gate.close()
    (0.0, True, None)
    """

    def __init__(self, settings: Settings, env: Env, folder: Path, state: States) -> None:
        self.decisions = Decisions(settings.trace)
        self.counters = self.decisions.counters
        remembered = at_most(_REMEMBERED_HOSTS, settings.memory, 16, _HOST)
        self.ready = Ready(settings, self.decisions, remembered, self.put_off, self._judge_queued)
        self.rulings = Rulings(settings)
        self.traps = Traps(settings) if settings.traps.detect else None
        self.trapped = Held(env, folder, "queues/Q_T", TRAP, self.decisions, state("queues/Q_T"))
        self.blocked = Held(env, folder, "queues/Q_B", BLOCKED, self.decisions, state("queues/Q_B"))
        near = at_most(NEAR_BYTES, settings.memory, _NEAR_SHARE)
        self.delays = Delays(env, folder, near=near, state=state(Delays.name))  # Q_W
        self._off: list[tuple[float, UrlRow]] = []  # on its way to Q_W: rows are written in batches
        self.trails = Trails(at_most(_REMEMBERED_TRAILS, settings.memory, 64, _TRAIL))
        self.done: Counter[Form] = Counter()
        self.shares = Shares(
            settings.limits,
            settings.parallel.part,
            settings.parallel.processes if shares_hosts(settings.parallel) else 1,
            settings.parallel.processes if divides_domains(settings.parallel) else 1,
        )
        # Where it matters how deep a URL is, or who links there.
        matters = settings.scope.depth or settings.page.keep_tlds
        self.later: LaterLinks | None = None
        if matters:  # its kernel is compiled where it does
            from barkspider.frontier.later import LaterLinks

            self.later = LaterLinks(settings.memory // _LATER_SHARE)
        self.mirrors: Mirrors | None = None
        if settings.scope.stop_mirrors:
            parallel = settings.parallel
            self.mirrors = self.ready.mirrors = Mirrors(
                settings.seed,
                settings.memory // _MIRRORS_SHARE,
                settings.politeness.host_delay,
                parallel.part,
                parallel.processes,
            )
        self.now = 0.0
        self.begun = False
        self._slot_of = slot_of(settings.parallel)
        self._keys = KeyMaker(settings.seed)

    def resume(self, now: float) -> None:
        """There were earlier runs: everybody counts as contacted at this moment."""
        self.now = now
        self.ready.restart(now)

    # ── into Ready ─────────────────────────────────────────────────────────────────────────────

    def admits(self, row: UrlRow, now: float) -> bool:
        """Whether a URL that comes up for the first time is within the share of its site and its domain. Before the call it
        is counted as waiting nowhere. If it is not within the share it is counted as refused; if that cannot be known yet,
        it is put off."""
        if not self.shares:
            return True
        if self.begun and self.done[form(row, self._slot_of)]:
            self.shares.count(row)
            return True  # to be dropped
        verdict = self.shares.verdict(row)
        if verdict == WAIT:
            marked = row._replace(flags=row.flags | Flag.DEFERRED)
            self.put_off(now + _UNDECIDED, marked, self.trails.pop(row.key), SHARE_UNKNOWN)
        elif verdict:
            self.decisions.refuse(row, verdict)
        return not verdict

    def put(self, row: UrlRow, now: float) -> None:
        """Let a URL wait for its host, unless it is done. It is counted as discovered, and as waiting nowhere."""
        if self.drop_done(row):
            return  # its trail may be that of another form that waits
        trail = self.trails.pop(row.key)
        if self.ready.wildcards is not None and (rule := self.ready.wildcards.refusal(row.host_key)):
            self.decisions.refuse(row, rule)
            return
        if self.mirrors is not None and (verdict := self.mirrors.verdict(row, now)):
            if verdict == MIRROR:
                self.decisions.refuse(row, MIRROR)
            else:
                self.put_off(self.mirrors.when(row, now), row, trail, verdict)
            return
        if self.later is not None:
            row = self.later.told(row)
        if self.begun:
            self.ready.put(row, now, trail)
        else:
            self.put_off(now, row, trail, RECOVERING)

    def key_of(self, name: str) -> int:
        """The key of a host or a domain."""
        return self._keys.of(name)

    # ── what people have ruled ─────────────────────────────────────────────────────────────────

    def rule(self, changes: Iterable[tuple[str, str]]) -> None:
        """Go by further rules of people, and judge anew what earlier ones have held."""
        for what_to_do, about in changes:
            if what_to_do != PARDON:
                self.rulings.apply(what_to_do, about)
            elif self.traps is not None:
                self.traps.pardon(about)
        self.judge_anew()

    def judge_anew(self) -> None:
        """Rules have changed: what is queued is judged where it comes up, and so is what they have held."""
        self._count_rulings()
        self.ready.closes = self._closes if self.rulings.lists.blocks else None
        self.blocked.release(self.now)
        self.trapped.release(self.now)

    @property
    def held(self) -> tuple[Held, Held]:
        """The queues of what rules and traps keep from being fetched."""
        return self.blocked, self.trapped

    def learn(self, pages: Sequence[tuple[UrlRow, UrlBatch, int]]) -> None:
        """Pages that were read, with their links, and what they say: for traps."""
        if self.traps is None:
            return
        if self.traps.learn(pages, self.decisions.now):
            self.trapped.release(self.now)
        self._count_rulings()

    def _count_rulings(self) -> None:
        self.ready.rulings = self.rulings.number + (0 if self.traps is None else self.traps.number)

    def judge(self, batch: UrlBatch) -> UrlBatch:
        """Those of URLs, counted as deferred, that neither a rule nor a trap keeps; others are refused, and held where that may
        be taken back."""
        if not len(batch) or not (self.rulings.judges or self.traps):
            return batch
        if self.rulings.judges:
            return UrlBatch.from_rows(self.judge_rows(batch.rows()))
        assert self.traps is not None
        suspects = self.traps.concerns(batch.pld_key)
        if not suspects.any():
            return batch
        left = UrlBatch.from_rows(self._catch(batch.where(suspects).rows()))
        return UrlBatch.join([batch.where(~suspects), left])

    def judge_rows(self, rows: list[UrlRow]) -> list[UrlRow]:
        """As `judge`."""
        return self._catch(self._judge(rows) if self.rulings.judges else rows)

    def _catch(self, rows: list[UrlRow]) -> list[UrlRow]:
        """Those that are in no trap."""
        if not rows or self.traps is None or not self.traps.traps:
            return rows
        free = [self._is_free(row) for row in rows]
        caught = self.traps.catches([row for row, is_free in zip(rows, free, strict=True) if not is_free])
        marks = iter(caught)
        kept = [is_free or not next(marks) for is_free in free]
        self.trapped.hold([row for row, keep in zip(rows, kept, strict=True) if not keep])
        left = [row for row, keep in zip(rows, kept, strict=True) if keep]
        self.counters.deferred -= len(rows) - len(left)
        return left

    def _is_free(self, row: UrlRow) -> bool:
        """Whether no trap keeps a URL: it is to be dropped, or allowed by a list."""
        return bool(self.done and self.done[form(row, self._slot_of)]) or self.rulings.lists.allows(
            row.url.decode()
        )

    def _judge(self, rows: list[UrlRow]) -> list[UrlRow]:
        if self.done:  # they are dropped
            over = [row for row in rows if self.done[form(row, self._slot_of)]]
            rows = [row for row in rows if not self.done[form(row, self._slot_of)]]
        else:
            over = []
        blocked, outside = self.rulings.blocked(rows), self.rulings.out_of_scope(rows)
        held = [row for row, rule in zip(rows, blocked, strict=True) if rule]
        self.blocked.hold(held)
        left = [row for row, rule, reason in zip(rows, blocked, outside, strict=True) if not (rule or reason)]
        for row, rule, reason in zip(rows, blocked, outside, strict=True):
            if reason and not rule:
                self.decisions.refuse(row, SCOPE)
        self.counters.deferred -= len(rows) - len(left)
        return over + left

    def _judge_queued(self, row: UrlRow, trail: Trail, address: str) -> bool:
        """Whether a URL whose turn it is, at an address, may be fetched; it is counted nowhere, and held if it may not."""
        held = self.blocked
        if not self.rulings.judges or not self.rulings.blocked([row], address)[0]:
            if self.traps is None or not self.traps.concern(row.pld_key):
                return True
            if self._is_free(row) or not self.traps.catches([row])[0]:
                return True
            held = self.trapped
        if trail:
            self.trails.put(row.key, trail)
        held.hold([row])
        return False

    def _closes(self, host: str, address: str) -> bool:
        return bool(self.rulings.lists.closes(host, address))

    def add_done(self, row: UrlRow) -> None:
        """A URL has an outcome of an earlier run: it is dropped when it comes up in this form."""
        self.done[form(row, self._slot_of)] += 1
        if _is_first(row):
            self.shares.add_done(row)

    def has_answer(self, row: UrlRow) -> bool:
        """Whether an earlier run had an answer for a URL that has not come up again."""
        return bool(self.done and self.done[form(row, self._slot_of)])

    def drop_done(self, row: UrlRow) -> bool:
        """Whether an earlier run had an answer for a URL, which is counted; then nothing is to be done."""
        if not (self.begun and self.done and self._is_done(row)):
            return False
        self.counters.ahead -= 1
        return True

    def _is_done(self, row: UrlRow) -> bool:
        found = form(row, self._slot_of)
        if not self.done[found]:
            return False
        self.done[found] -= 1
        if not self.done[found]:
            del self.done[found]
        if _is_first(row):
            self.shares.came_up(row)
        return True

    # ── Q_W ────────────────────────────────────────────────────────────────────────────────────

    def put_off(self, time: float, row: UrlRow, trail: Trail, rule: str) -> None:
        """Let a URL, counted as waiting nowhere, come back at a time, by a rule of `decisions`."""
        self.counters.deferred += 1
        self.decisions.put_off(row, rule, time)
        self._off.append((time, row))
        if trail:
            self.trails.put(row.key, trail)

    def put_again(self, batch: UrlBatch, now: float) -> None:
        """Pages that are to be fetched once more, each as one more discovery, past what was seen."""
        self.counters.discovered += len(batch)
        self.counters.deferred += len(batch)
        self.delays.put(np.full(len(batch), now), batch)

    def write_off(self) -> None:
        """Write what was put off to Q_W; before that it cannot come back."""
        if self._off:
            times, rows = zip(*self._off, strict=True)
            self._off = []
            self.delays.put(np.array(times), UrlBatch.from_rows(rows))

    def come_back(self, now: float) -> UrlBatch:
        """Take URLs whose time has come, some at a time. They go on counting as deferred, which is up to the caller."""
        batch = self.delays.take(now, _BACK_AT_ONCE)
        for held in self.held:
            if held.due(now):
                released = held.take(_BACK_AT_ONCE)
                self.counters.deferred += len(released)
                batch = UrlBatch.join([batch, released])
        undecided = (batch.flags & _DEFERRED) != 0
        if not undecided.any():
            return batch
        rows = batch.where(undecided).with_flags(batch.flags[undecided] & ~_DEFERRED).rows()
        self.counters.deferred -= len(rows)
        admitted = [row for row in rows if self.admits(row, now)]
        self.counters.deferred += len(admitted)
        return UrlBatch.join([batch.where(~undecided), UrlBatch.from_rows(admitted)])

    def next_time(self) -> float:
        """When the first URL may come back; inf when there is none."""
        return min(
            (
                self.delays.next_time(),
                *(held.next_time() for held in self.held),
                *(time for time, _ in self._off),
            )
        )

    def validate(self) -> None:
        """Check the invariants."""
        assert self.counters.balanced(), self.counters
        assert self.counters.deferred >= len(self.delays) + len(self._off)
        assert all(count > 0 for count in self.done.values())
        self.ready.validate()
        self.delays.validate()
        for held in self.held:
            held.validate()

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        self.delays.close()
        for held in self.held:
            held.close()


def _is_first(row: UrlRow) -> bool:
    """Whether this is how a URL comes up at first: not tried again, and in no other form."""
    return not row.tries and not row.flags & _FORMS


def form(row: UrlRow, slot_of: str = "pld_key") -> Form:
    """What tells the outcomes of one URL apart: it may be tried again, or be fetched in another form. The key has the
    slot of its domain, or of another column, so that whoever divides a job knows whose it is.

    >>> form(UrlRow(0x5123, 2, 0x7004, 0, 0, tries=1, flags=int(Flag.SEED | Flag.AGAIN), url=b"http://a.example/"))
    (20484, 1, 128)
    """
    return slotted(row.key, getattr(row, slot_of)), row.tries, row.flags & _FORMS
