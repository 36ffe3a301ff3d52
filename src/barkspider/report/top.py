"""The domains with the most in-links, as IRLbot's Table 4: with budget, supporters, PageRank and pages beside them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from barkspider.core.errors import BarkspiderError
from barkspider.core.settings import Budget
from barkspider.engine import StoredJob

if TYPE_CHECKING:
    from barkspider.frontier.budget.budgets import Distribution

_SHOWN = 20
_LOOKED_AT = 1_000  # nodes of a large graph whose names are read
_EXACT = 20_000  # domains up to which all supporters are counted in a moment
_MEMORY = 64_000_000  # bytes to read the links in

_DOMAINS = "SELECT domain, domains_in, pages FROM domains ORDER BY domains_in DESC, domain"


@dataclass(frozen=True, slots=True)
class Top:
    """One domain. What could not be computed is None, and so is a budget by a function of the user's: a job may be another's,
    and no code that it names is loaded to look at it."""

    rank: int
    domain: str
    in_degree: int
    budget: int | None
    supporters: int | None
    pagerank: float | None
    pages: int


@dataclass(frozen=True, slots=True)
class Ranks:
    """All domains by in-degree, the highest first: pages and budgets by rank (figure 6b), and the first of them."""

    top: list[Top]
    pages: list[int]
    budgets: list[int]
    distribution: Distribution


def ranks(job: StoredJob, budget: Budget, *, scores: bool = True, seconds: float = 0.0) -> Ranks:
    """By the links that the tables have; scores of the graph, if they are wanted, are those of `barkspider rank`. With
    `seconds` it is refused when it takes longer."""
    # Here: it takes compiled kernels, which a page without budgets does without.
    from barkspider.frontier.budget.budgets import OURS, Budgets, Distribution

    rows = job.query(_DOMAINS, seconds=seconds)
    degrees = rows["domains_in"].to_numpy().astype(np.int64)
    if not len(degrees):
        return Ranks([], [], [], Distribution.of([]))
    given, known = None, Distribution.of([degrees])
    if budget.function in OURS:
        given = Budgets(budget)(degrees, known)
    names, pages = rows["domain"].slice(0, _SHOWN).to_pylist(), rows["pages"].to_pylist()
    found = _scores(job) if scores else {}
    top = [
        Top(
            place + 1,
            name,
            int(degrees[place]),
            None if given is None else int(given[place]),
            None if name not in found else int(found[name][0]),
            None if name not in found else float(found[name][1]),
            int(pages[place]),
        )
        for place, name in enumerate(names)
    ]
    return Ranks(top, [int(count) for count in pages], [] if given is None else given.tolist(), known)


def _scores(job: StoredJob) -> dict[str, tuple[float, float]]:
    """Supporters and PageRank of the domains that links name; nothing when there are no links."""
    from barkspider.graph import methods
    from barkspider.graph.importing import read_edges
    from barkspider.storage.env import Env

    with tempfile.TemporaryDirectory(prefix="barkspider-report-") as folder:
        try:
            graph = read_edges(Env(), Path(folder), job.domain_links(), memory=_MEMORY)
        except BarkspiderError:  # of a crawl without links
            return {}
        exact = graph.nodes <= _EXACT
        supporters = (methods.supporters(graph) if exact else methods.top_supporters(graph)).scores
        pagerank = methods.pagerank(graph).scores * graph.nodes  # 1 is the mean
        wanted: Iterable[int] = range(graph.nodes)
        if not exact:
            wanted = methods.top_nodes(methods.in_degree(graph).scores, _LOOKED_AT).tolist()
        return {graph.name(node): (supporters[node], pagerank[node]) for node in wanted}
