"""Domains by in-degree: how many pages and which budget those of each in-degree have, and the first of them by name, as IRLbot's
Table 4 with budget, supporters, PageRank and pages beside them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from barkspider.core.errors import BarkspiderError
from barkspider.core.settings import Budget
from barkspider.engine import StoredJob
from barkspider.model.budgets import OURS, Budgets, Distribution

_SHOWN = 20
_LOOKED_AT = 1_000  # nodes of a large graph whose names are read
_EXACT = 20_000  # domains up to which all supporters are counted in a moment
_MEMORY = 64_000_000  # bytes to read the links in

_BY_DEGREE = "SELECT domains_in::BIGINT AS degree, count(*) AS domains, sum(pages)::BIGINT AS pages FROM {table} GROUP BY degree ORDER BY degree"
_FIRST = f"SELECT domain, domains_in, pages FROM domains ORDER BY domains_in DESC, domain LIMIT {_SHOWN}"


@dataclass(frozen=True, slots=True)
class Standing:
    """All domains by their in-degree: `pages` are those of all domains of each in-degree that is `known`, `budgets` what such a
    domain may spend; None for a function of the user's: a job may be another's, and no code that it names is loaded to look at it.
    As small as the number of different in-degrees, however many domains there are."""

    known: Distribution
    pages: npt.NDArray[np.int64]
    budgets: npt.NDArray[np.uint32] | None

    def budget(self, degree: int) -> int | None:
        """That of a domain of an in-degree.

        >>> Standing(Distribution.of([np.array([1, 7])]), np.array([5, 9]), np.array([10, 20], np.uint32)).budget(7)
        20
        """
        place = int(np.searchsorted(self.known.degrees, degree))
        if self.budgets is None or place == len(self.known.degrees) or self.known.degrees[place] != degree:
            return None
        return int(self.budgets[place])


@dataclass(frozen=True, slots=True)
class Top:
    """One domain. What could not be computed is None."""

    rank: int
    domain: str
    in_degree: int
    budget: int | None
    supporters: int | None
    pagerank: float | None
    pages: int


def standing(
    job: StoredJob, budget: Budget, *, table: str = "domains", seconds: float = 0.0, memory: int = 0
) -> Standing:
    """By the links that the tables have, or as the `table` listed_domains has it; within `seconds` and `memory`, as of `StoredJob.query`."""
    with tempfile.TemporaryDirectory(prefix="barkspider-report-") as scratch:
        rows = job.query(_BY_DEGREE.format(table=table), scratch=scratch, seconds=seconds, memory=memory)
    degrees, domains, pages = (rows[name].to_numpy().astype(np.int64) for name in rows.column_names)
    known = Distribution(degrees, domains)
    given = Budgets(budget)(degrees, known) if budget.function in OURS and len(degrees) else None
    return Standing(known, pages, given)


def top(job: StoredJob, among: Standing) -> list[Top]:
    """The first domains by in-degree; scores are those of `barkspider rank`."""
    rows = job.query(_FIRST).to_pylist()
    found = _scores(job) if rows else {}
    return [
        Top(
            rank=place,
            domain=row["domain"],
            in_degree=row["domains_in"],
            budget=among.budget(row["domains_in"]),
            supporters=int(found[row["domain"]][0]) if row["domain"] in found else None,
            pagerank=float(found[row["domain"]][1]) if row["domain"] in found else None,
            pages=row["pages"],
        )
        for place, row in enumerate(rows, 1)
    ]


# Of a few domains: who links to those that link to them, and not to them (paper 003, equation (1)).
_SUPPORTERS = """
    WITH edges AS (SELECT DISTINCT source_domain AS s, target_domain AS t FROM links WHERE source_domain <> target_domain),
    near AS (SELECT t AS domain, s FROM edges WHERE t IN ({marks})),
    far AS (SELECT DISTINCT near.domain, edges.s FROM near JOIN edges ON edges.t = near.s)
    SELECT domain, count(*) AS supporters FROM far ANTI JOIN near USING (domain, s) WHERE s <> domain GROUP BY domain
"""
_MOST_LINKS = 2_000_000  # in a table of which they are counted in a moment


def supporters(
    job: StoredJob, domains: Sequence[str], *, seconds: float = 0.0, memory: int = 0
) -> dict[str, int] | None:
    """How many supporters some domains have, without ranking all; None where there are too many links for that."""
    if not domains:
        return {}
    count = job.query("SELECT count(*) AS n FROM links", seconds=seconds, memory=memory)["n"][0].as_py()
    if not 0 < count <= _MOST_LINKS:
        return None if count else dict.fromkeys(domains, 0)
    asked = _SUPPORTERS.format(marks=", ".join("?" * len(domains)))
    rows = job.query(asked, domains, seconds=seconds, memory=memory).to_pylist()
    return dict.fromkeys(domains, 0) | {row["domain"]: int(row["supporters"]) for row in rows}


def _scores(job: StoredJob) -> dict[str, tuple[float, float]]:
    """Supporters and PageRank of the domains that links name; nothing when there are no links."""
    from barkspider.graph import methods  # here: it takes compiled kernels, which a dashboard does without
    from barkspider.graph.importing import read_edges
    from barkspider.storage.env import Env

    with tempfile.TemporaryDirectory(prefix="barkspider-report-") as folder:
        try:
            graph = read_edges(Env(), Path(folder), job.domain_links(), memory=_MEMORY)
        except BarkspiderError:  # of a crawl without links
            return {}
        exact = graph.nodes <= _EXACT
        supported = (methods.supporters(graph) if exact else methods.top_supporters(graph)).scores
        pagerank = methods.pagerank(graph).scores * graph.nodes  # 1 is the mean
        wanted: Iterable[int] = range(graph.nodes)
        if not exact:
            wanted = methods.top_nodes(methods.in_degree(graph).scores, _LOOKED_AT).tolist()
        return {graph.name(node): (supported[node], pagerank[node]) for node in wanted}
