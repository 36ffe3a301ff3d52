"""Which budget a URL has: STAR, the reputation of domains by in-degree (IRLbot, section 5.2, figure 3).

    edges of parsed pages ─► DRUM edges, check+update ─ new ones ─► DRUM indegree, update: add 1
    new URLs, URLs from Q_F ────────────────────────────────────► DRUM indegree, check ─► budgeted ─► beast

With `budget.reputation` = supporters, new edges go to `reputation` as well, which ranks their graph now and then: its
supporters go to a third DRUM, and while they are in force URLs are checked against that one. With
`budget.merge_redirects` a fourth one knows who only redirects to another (`domain_redirects`). Of several processes
that divide a crawl one, the `RANKER`, has the edges to all domains and ranks them; it counts in-degrees of its own
domains alone, and what it finds it gives out (`scores`), to come back to all of them (`take_score`), itself included.

The paper keeps with each domain the hashes of all its in-neighbours, as one value of `PLDindegree`. Then
every check of URLs would pass over the whole graph, 8 bytes an edge: 14.7 GB for the 1.8 billion edges of the
paper, rewritten in each merge, and 24 MB for microsoft.com alone, which has to be in RAM at once. Here each edge is
a key of a DRUM of its own, which is passed only when enough edges have come in (and most edges of a page are
old: a front set stops them); what it lets through the first time adds 1 to a number of 4 bytes. The cache
that checks pass over has 12 bytes a domain, 1.1 GB for the paper's 90 million, and the largest value has 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.errors import SettingsError, StorageError
from barkspider.core.events import Score
from barkspider.core.settings import Budget
from barkspider.core.texts import Texts
from barkspider.frontier.budget import domain_redirects, reputation
from barkspider.frontier.budget.domain_redirects import DomainRedirects
from barkspider.frontier.budget.hearsay import Hearsay
from barkspider.frontier.budget.reputation import Notice, Reputation
from barkspider.model.budgets import Budgets, Distribution
from barkspider.storage.columns import Keys
from barkspider.storage.drum.repository import CHECK, CHECK_UPDATE, UPDATE, Drum
from barkspider.storage.drum.sizing import Allowance, Sizing
from barkspider.storage.env import Env
from barkspider.url.partition import by_hash, slotted

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_RANKING = 64_000_000
RANKER = 0  # the number of the process that ranks the domains of all
_FRONT = 1 << 20  # bytes: 131,072 edges, and a site repeats its own on every page


def edge_keys(sources: Keys, targets: Keys) -> Keys:
    """One key for each edge, another for its reverse. Keys of domains are hashes with a secret seed already.

    The lowest 12 bits are the slot of the target, whose in-degree the edge counts for: so edges go with their targets
    when a stopped job is divided among another number of processes.

    >>> a, b = np.array([1], np.uint64), np.array([2], np.uint64)
    >>> edge_keys(a, b) == edge_keys(b, a), (edge_keys(a, b) % 4096).tolist()
    (array([False]), [2])
    """
    mixed: Keys = sources * _ODD + targets
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX
    return slotted(mixed ^ (mixed >> np.uint64(31)), targets)


class Division(NamedTuple):
    """Which of how many processes this is, where they tell each other of edges."""

    part: int
    processes: int

    def owns(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """Which domains this process counts."""
        mine: npt.NDArray[np.bool_] = by_hash(keys, self.processes) == self.part
        return mine


class _Scores:
    """A DRUM of one number a domain, and how these are distributed. The owner's thread."""

    def __init__(self, drum: Drum) -> None:
        self.drum = drum
        self._distribution: Distribution | None = None
        self._merges = 0  # how many merges the distribution knows of

    def of(self, keys: Keys) -> npt.NDArray[np.uint32]:
        """The numbers of some domains, 0 for those that are not known; one pass over the cache."""
        order = np.argsort(keys)
        found = np.zeros(len(keys), np.uint32)
        for known, values in self.drum.items():
            assert isinstance(values, np.ndarray)
            at = np.searchsorted(known, keys[order])
            here = np.flatnonzero(known[np.minimum(at, len(known) - 1)] == keys[order])
            found[order[here]] = values[at[here]]
        return found

    def distribution(self) -> Distribution:
        """The numbers of all domains; one pass over the cache after each merge."""
        merges = self.drum.counters.merges
        if self._distribution is None or self._merges != merges:
            blocks = (values for _, values in self.drum.items() if isinstance(values, np.ndarray))
            self._distribution, self._merges = Distribution.of(blocks), merges
        return self._distribution


def _check_unchanged(
    state: Callable[[str], dict[str, Any] | None], by_supporters: bool, merge_redirects: bool
) -> None:
    """Raise `SettingsError` for a setting that is not what it was when the crawl began."""
    if state("star/edges") is None:
        return
    if by_supporters != (state("star/supporters") is not None):
        raise SettingsError(
            "budget.reputation was another when this crawl began, and which domains linked to which "
            "is kept for supporters only: leave it as it was"
        )
    if merge_redirects != (state(domain_redirects.NAME) is not None):
        raise SettingsError(
            "budget.merge_redirects was another when this crawl began, and which domains redirected "
            "is kept only with it: leave it as it was"
        )


class Star:
    """See the module. Filled from `seen`, from Q_F and with edges, emptied into `beast`; one thread owns it.

    All of `structures` are structures of the store: add each. Budgets go by rank among the numbers after the
    last merge. An edge counts for the URLs that are checked after the merge in which it was new: rows of a
    DRUM are applied in order of arrival, and edges come to the second one late. A URL gets its budget from
    the DRUM that it was checked against, also when another comes in force while it waits.

    >>> import tempfile
    >>> from barkspider.core.records import UrlRow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     star = Star(Env(), Path(folder), Budget(base=4))
    ...     star.add_edges(np.array([1, 1, 2, 3], np.uint64), np.array([3, 3, 3, 3], np.uint64))
    ...     star.check(UrlBatch.from_rows([UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://a.example/")]))
    ...     star.merge()
    ...     [budgets.tolist() for _, budgets in star.budgeted()], star.distribution().degrees, star.close()
    ([[4]], array([2]), None)
    """

    def __init__(
        self,
        env: Env,
        folder: Path,
        settings: Budget,
        *,
        sizing: Sizing | Allowance | None = None,
        edge_sizing: Sizing | Allowance | None = None,
        front: int = _FRONT,
        ranking_memory: int = _RANKING,
        first_ranking: int = reputation.FIRST,
        hearsay: Hearsay | None = None,
        background: bool = True,
        division: Division | None = None,
        state: Callable[[str], dict[str, Any] | None] = lambda _: None,
    ) -> None:
        """`state` is that of a store: the last state of each structure by its name, or None. A ranking takes
        `ranking_memory` bytes; the first is made at `first_ranking` edges. `hearsay` is given where other processes
        have URLs of the same domains. Without `background` merges and
        rankings run within `merge`."""
        by_supporters = settings.reputation == "supporters"
        self._division = division if by_supporters else None
        ranks = by_supporters and (division is None or division.part == RANKER)
        merge_redirects = ranks and settings.merge_redirects
        _check_unchanged(state, by_supporters, merge_redirects)

        def scores(name: str, update: str) -> _Scores:
            drum = Drum(
                env,
                folder,
                name,
                value=np.dtype("<u4"),
                aux=True,
                update=update,
                sizing=sizing,
                background=background,
                state=state(name),
            )
            return _Scores(drum)

        self._edges = Drum(
            env,
            folder,
            "star/edges",
            aux=True,
            output="unique",
            sizing=edge_sizing,
            front=front,
            background=background,
            state=state("star/edges"),
        )
        self._indegree = scores("star/indegree", "add")
        self._supporters: _Scores | None = None
        self._redirects: DomainRedirects | None = None
        self._reputation: Reputation | None = None
        if merge_redirects:
            self._redirects = DomainRedirects(
                env, folder, sizing=edge_sizing, background=background, state=state(domain_redirects.NAME)
            )
        if by_supporters:
            self._supporters = scores("star/supporters", "replace")
        if ranks:
            self._reputation = Reputation(
                env,
                folder,
                memory=ranking_memory,
                first=first_ranking,
                redirects=self._redirects,
                background=background,
                state=state(reputation.NAME),
            )
            if self._division is not None:  # what was found last may not have reached everybody
                self._reputation.rank_again()
        self._found: list[Score] = []  # what is to be given out
        self.by_supporters = False  # whether these are in force, in a crawl that several processes divide
        self._background = background
        self._budgets = Budgets(settings)
        self._elsewhere: Distribution | None = None
        self.hearsay = hearsay
        self._added: tuple[Distribution, Distribution, Distribution] | None = None  # the last two, and both

    @property
    def structures(self) -> tuple[Drum | DomainRedirects | Reputation, ...]:
        """What a store has to commit."""
        ranking = (self._redirects, self._reputation)
        return (*self._passed(), *(part for part in ranking if part is not None))

    @property
    def drums(self) -> dict[str, Drum]:
        """Its DRUMs by name."""
        also = () if self._redirects is None else (self._redirects.drum,)
        return {drum.name: drum for drum in (*self._passed(), *also)}

    @property
    def domains(self) -> int:
        """Domains that another one is known to link to."""
        return len(self._indegree.drum)

    @property
    def edges(self) -> int:
        """Different edges that are known."""
        return len(self._edges)

    @property
    def pending(self) -> int:
        """Rows that wait for a merge: edges, increments, supporters and URLs."""
        return self.pending_edges + self.unbudgeted

    @property
    def pending_edges(self) -> int:
        """Edges that wait for a merge."""
        return self._edges.pending

    @property
    def unbudgeted(self) -> int:
        """Rows that wait for a merge of what URLs are checked against: these and what they are judged by."""
        return sum(scores.drum.pending for scores in self._scores())

    @property
    def merging(self) -> bool:
        """Whether a merge that URLs or edges wait for is running, or has ended unnoticed."""
        return any(drum.uncollected for drum in self._passed())

    def add_edges(self, sources: Keys, targets: Keys) -> None:
        """Links between domains, by their keys; those within a domain are left out, others count once."""
        between = np.flatnonzero(sources != targets)
        sources, targets = sources[between], targets[between]
        columns = [targets] if self._reputation is None else [targets, sources]
        ends = np.column_stack(columns).astype("<u8")
        width = 8 * len(columns)
        aux = Texts(np.arange(len(targets) + 1) * width, ends.reshape(-1).view(np.uint8))
        self._edges.feed(CHECK_UPDATE, edge_keys(sources, targets), aux=aux)

    def add_answer(self, domain: int, target: int) -> None:
        """A page of a domain redirects into another, or with `domain_redirects.NOWHERE` is a page, by their keys."""
        if self._redirects is not None and domain != target:
            self._redirects.add(domain, target)

    def check(self, batch: UrlBatch) -> None:
        """Ask for the budgets of URLs; both come out of `budgeted` after a merge."""
        if self.hearsay is not None:
            self.hearsay.notice(np.unique(batch.pld_key))
        self._in_force().drum.feed(CHECK, batch.pld_key, aux=batch.packed)

    def merge(self, wait: bool = True, edges: bool = True) -> None:
        """Budget all URLs given so far, and count all edges for those that follow. Without `edges` these go
        on waiting until there are enough of them, which spares a large crawl the pass over all it knows.
        Without `wait` merges go on in the background, and edges that are in one of them count later; with it
        a ranking that is due, or runs, is waited for as well."""
        if edges:
            self._count()
            self._edges.merge(wait)
        self._count()
        self._follow(wait or not self._background)
        for scores in self._scores():
            scores.drum.merge(wait)

    def budgeted(self) -> Iterator[tuple[UrlBatch, npt.NDArray[np.uint32]]]:
        """Take the URLs that are there, with their budgets; a commit counts those as taken that came out."""
        self._count()
        if self._background:
            self._follow(wait=False)
        for scores in self._scores():
            for found in scores.drum.results():
                assert found.aux is not None
                assert isinstance(found.values, np.ndarray)
                batch = UrlBatch.checked(found.aux)
                yield batch, self._budgets_of(batch, found.values, scores)

    def distribution(self) -> Distribution:
        """The reputations of all domains, as they are in force."""
        return self._in_force().distribution()

    def expected(self) -> float:
        """E[B_x], the mean budget of the domains known."""
        return self._budgets.expected(self._among_all(self._in_force()))

    def news(self, to: int) -> bytes:
        """What another process is to hear of domains; see `hearsay`."""
        return b"" if self.hearsay is None else self.hearsay.news(to, self._in_force().of)

    def learn_ranks(self, elsewhere: Distribution) -> None:
        """The in-degrees of the domains that other processes count; ranks are among all domains of a crawl."""
        self._elsewhere = elsewhere

    def scores(self) -> list[Score]:
        """What a ranking has found for all processes since the last call."""
        found, self._found = self._found, []
        return found

    def take_score(self, score: Score) -> None:
        """What a ranking, here or elsewhere, has found of domains of ours; and whether it is in force."""
        assert self._supporters is not None
        self._supporters.drum.feed(UPDATE, score.keys, score.supporters)
        if score.in_force is not None:
            self.by_supporters = score.in_force

    def ranking_traffic(self) -> dict[str, int] | None:
        """What rankings moved on disk, if there are any; see `Reputation.traffic`."""
        return None if self._reputation is None else self._reputation.traffic()

    def notices(self) -> list[Notice]:
        """What a log should say of rankings since the last call: (name, details)."""
        return [] if self._reputation is None else self._reputation.notices()

    def validate(self) -> None:
        """Check the invariants."""
        for structure in self.structures:
            structure.validate()

    def close(self) -> None:
        """Close the files; what was committed stays."""
        for structure in self.structures:
            structure.close()

    def _passed(self) -> tuple[Drum, ...]:
        """The DRUMs that edges and URLs pass."""
        return (self._edges, *(scores.drum for scores in self._scores()))

    def _scores(self) -> tuple[_Scores, ...]:
        return (self._indegree,) if self._supporters is None else (self._indegree, self._supporters)

    def _budgets_of(
        self, batch: UrlBatch, degrees: npt.NDArray[np.uint32], scores: _Scores
    ) -> npt.NDArray[np.uint32]:
        """The budgets of URLs by what is counted here, or was told; of a domain that others share, a part each."""
        if self.hearsay is None:
            return self._budgets(degrees, self._among_all(scores))
        domains, first, places = np.unique(batch.pld_key, return_index=True, return_inverse=True)
        known, sharers = self.hearsay.of(domains, degrees[first])
        budgets = self._budgets(known, self._among_all(scores))
        return (-(-budgets.astype(np.int64) // sharers)).astype(np.uint32)[places]

    def _among_all(self, scores: _Scores) -> Distribution:
        """What is known here and elsewhere; added up when one of the two has changed."""
        known = scores.distribution()
        if self._elsewhere is None:
            return known
        if self._added is None or self._added[0] is not known or self._added[1] is not self._elsewhere:
            self._added = known, self._elsewhere, known.plus(self._elsewhere)
        return self._added[2]

    def _in_force(self) -> _Scores:
        in_force = self.by_supporters
        if self._division is None:
            in_force = self._reputation is not None and self._reputation.in_force
        return self._supporters if self._supporters is not None and in_force else self._indegree

    def _count(self) -> None:
        """New edges that came out of a merge add to the in-degrees of their targets, and to the graph."""
        columns = 1 if self._reputation is None else 2
        for found in self._edges.results():
            assert found.aux is not None
            if (found.aux.lengths() != 8 * columns).any():
                raise StorageError("star/edges is damaged: an edge without the keys of its domains")
            ends = found.aux.data[: 8 * columns * len(found)].view("<u8").reshape(-1, columns)
            targets = np.ascontiguousarray(ends[:, 0])
            if self._reputation is not None:
                self._reputation.append(ends[:, 1], targets)
            if self._division is not None:
                targets = targets[self._division.owns(targets)]
            self._indegree.drum.feed(UPDATE, targets, np.ones(len(targets), np.uint32))

    def _follow(self, wait: bool) -> None:
        """Let the ranking go on, and take over what it has found."""
        if self._supporters is None or self._reputation is None:
            return
        if self._division is None:
            drum = self._supporters.drum
            self._reputation.follow(lambda keys, supporters: drum.feed(UPDATE, keys, supporters), wait)
            return
        decisions = self._reputation.decisions
        self._reputation.follow(
            lambda keys, supporters: self._found.append(Score(keys, supporters, None)), wait
        )
        if self._reputation.decisions > decisions:
            nobody = np.zeros(0, np.uint64), np.zeros(0, np.uint32)
            self._found.append(Score(*nobody, self._reputation.in_force))
