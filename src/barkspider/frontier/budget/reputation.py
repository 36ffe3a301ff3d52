"""The domain graph of a running crawl, ranked by supporters again and again (Sparkman, Lee and Loguinov).

    new edges ─► log on disk ─ grown by half ─► graph ─► TSE ─► (domain, supporters) ─► DRUM supporters

A ranking runs in a thread of its own, from disk, in a fixed share of the memory and a quarter of one processor.
It is made when there are half as many edges again as at the last one, so all of them together cost about
three times the last. What it finds is handed over a block at a time.

Supporters at distance two say little while the graph is small: then most domains are two links away from
most others, as at distance three on the whole web (section V-E). So they are in force while no domain has more
than 20% of all as supporters (the paper's most popular has 17%), and otherwise the in-degree counts.

With `redirects`, both ends of each edge are first replaced by the domains that they only redirect to, and those
that were replaced get no supporters.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError, UsageError
from barkspider.core.events import Prepared
from barkspider.frontier.budget.domain_redirects import NO_LEADS, DomainRedirects, Leads
from barkspider.graph.aliases import Aliases
from barkspider.graph.arrays import KEYS, ArrayFile, ArrayWriter, Traffic
from barkspider.storage.columns import Keys
from barkspider.storage.env import Env
from barkspider.storage.store.log import Log

Scores: TypeAlias = npt.NDArray[np.uint32]
Give: TypeAlias = Callable[[Keys, Scores], None]
Notice: TypeAlias = tuple[str, dict[str, Any]]

NAME = "star/graph"
FIRST = 10_000  # edges; a graph that has fewer tells nothing, and ranking it over and over costs
_GROWTH = 1.5
_SATURATED = 0.2
# At least 1% of the domains are sampled, as in the paper's most accurate run, and at least so many: then a
# domain that 1% of all support is known to about 2.5%, and up to so many domains the counts are exact.
_SHARE, _SAMPLED = 0.01, 100_000
_SAMPLE_EDGE = 32  # bytes: twice what TSE takes of an edge, for samples that come out larger than expected
_ROWS = 1 << 16  # domains handed over at a time: about two milliseconds
# Of a processor, by pauses. A low priority would do harm: a thread that holds the interpreter's lock and has to
# wait for its turn keeps the crawl waiting too, for 1.4 s at worst on a busy machine (0.2 s without).
_BUSY = 0.25
_LEAD = 32  # bytes of a domain that redirects, during a ranking: where it leads, and what it stands for
_SCORES = "<u4"
_COUNTED = ("rankings", "read", "written")


class _StoppedError(Exception):
    """The owner closes: the ranking that runs is of no use any more."""


class _Ranked(NamedTuple):
    edges: int
    domains: int
    sampled: float
    largest: int
    merged: Keys  # domains that are counted with others
    unmerged: int  # domains that should be among them, but there was no room
    read: int  # bytes, with those of the edges and of the graph that is built from them
    written: int


class Reputation:
    """See the module. One thread owns it; rankings run beside it, and only read what is on disk already.

    A structure of the store: edges come back exactly as they were committed. A ranking that was under way, or
    only in part handed over, is made again. Invariant: at most one ranking runs or is being handed over.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     graph = Reputation(Env(), Path(folder), memory=1 << 20, first=1)
    ...     graph.append(np.arange(1, 9, dtype=np.uint64), np.arange(2, 10, dtype=np.uint64))
    ...     graph.follow(lambda keys, supporters: print(keys, supporters), wait=True)
    ...     graph.in_force, [name for name, _ in graph.notices()], graph.close()
    [1 2 3 4 5 6 7 8 9] [0 0 1 1 1 1 1 1 1]
    (True, ['ranked'], None)
    """

    name = NAME

    def __init__(
        self,
        env: Env,
        folder: Path,
        *,
        memory: int,
        first: int = FIRST,
        redirects: DomainRedirects | None = None,
        background: bool = True,
        state: dict[str, Any] | None = None,
    ) -> None:
        """`first` is at how many edges the graph is ranked for the first time."""
        self._redirects = redirects
        self._env, self._memory, self._first, self._background = env, memory, first, background
        self._scratch = folder / "star" / "ranking"
        self._log = Log(env, folder, NAME, 2, state)
        self.in_force = bool(state and state["in_force"])
        self._ranked = int(state["ranked"]) if state else 0  # edges at the last ranking that counted
        self._counted = {name: int(state.get(name, 0)) if state else 0 for name in _COUNTED}
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._worked = 0.0  # CPU-seconds of the thread at its last pause
        self._outcome: _Ranked | Exception | None = None
        self._handing: tuple[_Ranked, Iterator[tuple[Keys, Scores]]] | None = None
        self._notices: list[Notice] = []
        self.decisions = 0  # rankings that were handed over, or found to tell nothing, by this object
        self._clear()

    def append(self, sources: Keys, targets: Keys) -> None:
        """Edges that are new, by the keys of their domains."""
        self._log.append(np.column_stack([sources, targets]))

    def follow(self, give: Give, wait: bool) -> None:
        """Begin a ranking if it is time, and hand over some of what one has found; with `wait`, all of it."""
        if self._thread is None and self._handing is None and len(self._log) >= self._due():
            self._begin(wait)
        if wait and self._thread is not None:
            self._thread.join()
        self._collect_outcome()
        while self._handing is not None:
            self._hand_over(*self._handing, give)
            if not wait:
                return

    def rank_again(self) -> None:
        """Make a ranking although the graph has not grown since the last."""
        self._ranked = 0

    def traffic(self) -> dict[str, int]:
        """How many rankings were made, the bytes that all of them read and wrote, edges, and edges at the last."""
        return self._counted | {"edges": len(self._log), "ranked": self._ranked}

    def notices(self) -> list[Notice]:
        """What happened since the last call, for the log: `ranked` and `ranking_failed`, with details."""
        taken, self._notices = self._notices, []
        return taken

    def prepare(self) -> Prepared:
        """See `core.events.Structure`."""
        edges, state = (
            self._log.prepare(),
            {"ranked": self._ranked, "in_force": self.in_force} | self._counted,
        )
        return lambda: edges() | state

    def committed(self) -> None:
        """The manifest with the prepared state is safe."""
        self._log.committed()

    def validate(self) -> None:
        """Check the invariants."""
        self._log.validate()
        assert self._ranked <= len(self._log)
        assert self._thread is None or self._handing is None

    def close(self) -> None:
        """Stop the ranking that runs and close the files; what was committed stays."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._handing = None
        self._clear()
        self._log.close()

    def _due(self) -> float:
        return max(self._first, _GROWTH * self._ranked)

    def _begin(self, wait: bool) -> None:
        leads = NO_LEADS
        if self._redirects is not None:
            if not self._redirects.merged(wait):
                return
            leads = self._redirects.leads(self._memory // 4 // _LEAD)
        work = self._log.end(), len(self._log), leads
        if not self._background:
            self._run(*work)
            return
        self._thread = threading.Thread(target=self._run, args=work, name="star-ranking", daemon=True)
        self._thread.start()

    def _collect_outcome(self) -> None:
        """See what a ranking that has ended has found."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = None
        outcome, self._outcome = self._outcome, None
        if isinstance(outcome, _Ranked):
            for name, more in (("rankings", 1), ("read", outcome.read), ("written", outcome.written)):
                self._counted[name] += more
            if outcome.largest > _SATURATED * outcome.domains:
                self._decide(outcome, False)
            else:
                self._handing = outcome, self._found(outcome.merged)
        elif isinstance(outcome, StorageError | UsageError):
            # The crawl can go on by what it knew before; it is tried again when there are more edges.
            self._ranked = len(self._log)
            self._notices.append(("ranking_failed", {"edges": self._ranked, "why": str(outcome)}))
            self._clear()
        elif outcome is not None:
            raise outcome

    def _found(self, merged: Keys) -> Iterator[tuple[Keys, Scores]]:
        """Domains and their supporters, some at a time; none for those that are counted with others."""
        keys, scores = (
            ArrayFile(self._env, self._scratch / name, kind).stream(Traffic())
            for name, kind in (("keys", KEYS), ("scores", _SCORES))
        )
        while len(some := keys.take(_ROWS)):
            yield some, scores.take(_ROWS)
        for begin in range(0, len(merged), _ROWS):
            some = merged[begin : begin + _ROWS]
            yield some, np.zeros(len(some), np.uint32)

    def _hand_over(self, ranked: _Ranked, found: Iterator[tuple[Keys, Scores]], give: Give) -> None:
        some = next(found, None)
        if some is not None:
            give(*some)
            return
        self._handing = None
        self._decide(ranked, True)

    def _decide(self, ranked: _Ranked, in_force: bool) -> None:
        self.in_force, self._ranked = in_force, ranked.edges
        self.decisions += 1
        name = "supporters" if in_force else "indegree"
        details = ranked._asdict() | {"in_force": name, "merged": len(ranked.merged)}
        if self._redirects is None:
            del details["merged"], details["unmerged"]
        self._notices.append(("ranked", details))
        self._clear()

    def _clear(self) -> None:
        """Remove what rankings have left on disk."""
        for folder in (self._scratch / "graph", self._scratch):
            for name in self._env.list(folder):
                if name != "graph":
                    self._env.remove(folder / name)

    # The thread of a ranking.

    def _run(self, end: int, edges: int, leads: Leads) -> None:
        self._worked = time.thread_time()
        try:
            self._outcome = self._rank(end, edges, leads)
        except _StoppedError:
            self._outcome = None
        except Exception as error:
            self._outcome = error

    def _rank(self, end: int, edges: int, leads: Leads) -> _Ranked:
        # Here, in the thread that ranks: the kernels of graphs are for nobody else, and take seconds to compile.
        from barkspider.graph.external import Work, top_supporters
        from barkspider.graph.keyed import build_keyed

        aliases = Aliases.resolved(leads.keys, leads.targets)
        memory = self._memory - _LEAD * len(leads.keys)

        work = Work()

        def scan() -> Iterator[tuple[Keys, Keys]]:
            for rows in self._log.read(end):
                work.traffic.read += rows.nbytes
                sources, targets = np.ascontiguousarray(rows.T)
                yield aliases(sources), aliases(targets)

        graph, _ = build_keyed(self._env, self._scratch, scan, memory, self._watch, traffic=work.traffic)
        share, largest = sample_share(graph.nodes, graph.edges, memory), 0
        with ArrayWriter(self._env, self._scratch / "scores", _SCORES, work.traffic, durable=False) as writer:
            for _, scores in top_supporters(graph, memory, work, share):
                self._watch()
                supporters = np.minimum(np.rint(scores), graph.nodes)
                largest = max(largest, int(supporters.max()))
                writer.write(supporters)
        moved = work.traffic
        return _Ranked(
            edges, graph.nodes, share, largest, aliases.keys, leads.left_out, moved.read, moved.written
        )

    def _watch(self) -> None:
        """Stop when the owner closes; in the background, pause for as long as the share of CPU asks for."""
        worked = time.thread_time() - self._worked
        if self._stop.wait(worked * (1 / _BUSY - 1) if self._background else 0):
            raise _StoppedError
        self._worked = time.thread_time()


def sample_share(domains: int, edges: int, memory: int) -> float:
    """p of TSE: all of a small graph, and never more than the memory holds.

    >>> sample_share(20_000, 400_000, 64 << 20), sample_share(89_000_000, 1_800_000_000, 1 << 30)
    (1.0, 0.01)
    >>> round(sample_share(1_000_000, 20_000_000, 32 << 20), 3)
    0.052
    """
    return min(1.0, max(_SHARE, _SAMPLED / domains), memory / (_SAMPLE_EDGE * edges))
