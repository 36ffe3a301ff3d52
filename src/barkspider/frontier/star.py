"""Which budget a URL has: STAR, the reputation of domains by in-degree (IRLbot, section 5.2, figure 3).

    edges of parsed pages ─► DRUM edges, check+update ─ new ones ─► DRUM indegree, update: add 1
    new URLs, URLs from Q_F ────────────────────────────────────► DRUM indegree, check ─► budgeted ─► beast

The paper keeps with each domain the hashes of all its in-neighbours, as one value of `PLDindegree`. Then every
check of URLs would pass over the whole graph, 8 bytes an edge: 14.7 GB for the 1.8 billion edges of the paper,
rewritten in each merge, and 24 MB for microsoft.com alone, which has to be in RAM at once. Here each edge is
a key of a DRUM of its own, which is passed only when enough edges have come in (and most edges of a page are
old: a front set stops them); what it lets through the first time adds 1 to a number of 4 bytes. The cache
that checks pass over has 12 bytes a domain, 1.1 GB for the paper's 90 million, and the largest value has 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import StorageError
from barkspider.core.records import UrlBatch
from barkspider.core.settings import Budget
from barkspider.frontier.budgets import Budgets, Distribution
from barkspider.frontier.rows import pack, unpack
from barkspider.storage.columns import Texts
from barkspider.storage.drum import CHECK, CHECK_UPDATE, UPDATE, Drum
from barkspider.storage.env import Env
from barkspider.storage.sizing import Sizing

Keys = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_FRONT = 1 << 20  # bytes: 131,072 edges, and a site repeats its own on every page


def edge_keys(sources: Keys, targets: Keys) -> Keys:
    """One key for each edge, another for its reverse. Keys of domains are hashes with a secret seed already.

    >>> a, b = np.array([1], np.uint64), np.array([2], np.uint64)
    >>> edge_keys(a, b) == edge_keys(b, a)
    array([False])
    """
    mixed: Keys = sources * _ODD + targets
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX
    return mixed ^ (mixed >> np.uint64(31))


class Star:
    """See the module. Filled from `seen`, from Q_F and with edges, emptied into `beast`; one thread owns it.

    Both DRUMs are structures of the store: add each of `structures`. Budgets go by rank among the in-degrees
    after the last merge. An edge counts for the URLs that are checked after the merge in which it was new:
    rows of a DRUM are applied in order of arrival, and edges come to the second one late.

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
        sizing: Sizing | None = None,
        edge_sizing: Sizing | None = None,
        front: int = _FRONT,
        background: bool = True,
        state: Callable[[str], dict[str, Any] | None] = lambda _: None,
    ) -> None:
        """`state` is that of a store: the last state of each structure by its name, or None."""
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
        self._indegree = Drum(
            env,
            folder,
            "star/indegree",
            value=np.dtype("<u4"),
            aux=True,
            update="add",
            sizing=sizing,
            background=background,
            state=state("star/indegree"),
        )
        self._budgets = Budgets(settings)
        self._distribution: Distribution | None = None
        self._merges = 0  # how many merges the distribution knows of

    @property
    def structures(self) -> tuple[Drum, Drum]:
        """What a store has to commit."""
        return self._edges, self._indegree

    @property
    def domains(self) -> int:
        """Domains that another one is known to link to."""
        return len(self._indegree)

    @property
    def edges(self) -> int:
        """Different edges that are known."""
        return len(self._edges)

    @property
    def pending(self) -> int:
        """Rows that wait for a merge: edges, increments and URLs."""
        return self._edges.pending + self._indegree.pending

    def add_edges(self, sources: Keys, targets: Keys) -> None:
        """Links between domains, by their keys; those within a domain are left out, others count once."""
        between = np.flatnonzero(sources != targets)
        sources, targets = sources[between], targets[between]
        ends = Texts(np.arange(len(targets) + 1) * 8, targets.astype("<u8").view(np.uint8))
        self._edges.feed(CHECK_UPDATE, edge_keys(sources, targets), aux=ends)

    def check(self, batch: UrlBatch) -> None:
        """Ask for the budgets of URLs; both come out of `budgeted` after a merge."""
        self._indegree.feed(CHECK, batch.pld_key, aux=pack(batch))

    def merge(self, wait: bool = True, edges: bool = True) -> None:
        """Budget all URLs given so far, and count all edges for those that follow. Without `edges` these go on
        waiting until there are enough of them, which spares a large crawl the pass over all it knows. Without
        `wait` merges go on in the background, and edges that are in one of them count later."""
        if edges:
            self._count()
            self._edges.merge(wait)
        self._count()
        self._indegree.merge(wait)

    def budgeted(self) -> Iterator[tuple[UrlBatch, npt.NDArray[np.uint32]]]:
        """Take the URLs that are there, with their budgets; a commit counts those as taken that came out."""
        self._count()
        for found in self._indegree.results():
            assert found.aux is not None
            assert isinstance(found.values, np.ndarray)
            yield unpack(found.aux), self._budgets(found.values, self.distribution())

    def distribution(self) -> Distribution:
        """The in-degrees of all domains; one pass over the cache after each merge."""
        merges = self._indegree.counters.merges
        if self._distribution is None or self._merges != merges:
            blocks = (values for _, values in self._indegree.items() if isinstance(values, np.ndarray))
            self._distribution, self._merges = Distribution.of(blocks), merges
        return self._distribution

    def expected(self) -> float:
        """E[B_x], the mean budget of the domains known."""
        return self._budgets.expected(self.distribution())

    def validate(self) -> None:
        """Check the invariants."""
        for drum in self.structures:
            drum.validate()

    def close(self) -> None:
        """Close the files; what was committed stays."""
        for drum in self.structures:
            drum.close()

    def _count(self) -> None:
        """New edges that came out of a merge add to the in-degrees of their targets."""
        for found in self._edges.results():
            assert found.aux is not None
            if (found.aux.lengths() != 8).any():
                raise StorageError("star/edges is damaged: an edge without the key of its target")
            targets = found.aux.data[: 8 * len(found)].view("<u8")
            self._indegree.feed(UPDATE, targets, np.ones(len(targets), np.uint32))
