"""What the papers found by simulation beside what the same simulation finds on another graph.

`barkspider papers --graph FILE` calls `tables`. Printed figures are of webs of 18 to 118 million pages, so none
will agree to the last digit: what can be compared is the shape.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from barkspider.lab.papers.comparison import Cell, Table
from barkspider.lab.simulate.budget import simulate_budget
from barkspider.lab.simulate.farms import FarmSpec, make_web, plant_farms
from barkspider.lab.simulate.order import Result, Strategy, share_above, simulate_order
from barkspider.lab.simulate.repeats import choose_seeds
from barkspider.lab.webgraph import WebGraph

LIMITED = "Limited Memory"
_SEEDS = 100
_BUDGET_PAGES = 30_000  # crawled by each method: enough for nine passes of the naive way
SAMPLED = {64: ("0.12", "0.1%"), 32: ("0.11", "0.4%"), 16: ("0.09", "1.0%"), 8: ("0.07", "2.2%")}
COVERED = {8: ("93.8%", "97.5%", "99.9%"), 16: ("89.0%", "94.8%", "98.1%")}
LIMITS = (0.03, 0.05, 0.07)


def tables(web: WebGraph) -> list[Table]:
    """Every table and figure that is simulated, on this web."""
    chosen = [Strategy("bfs"), *(Strategy("sydney", t) for t in SAMPLED)]
    chosen += [Strategy("sydney", t, limit) for t in COVERED for limit in LIMITS]
    chosen += [Strategy("random", t) for t in COVERED]
    results = simulate_order(web, chosen, seeds=_SEEDS)
    found = {result.strategy: result for result in results}
    return [_table_1(found), _table_2(found), _text(web, found), _theorems()]


def _table_1(found: dict[Strategy, Result]) -> Table:
    def mean(t: int, name: str) -> float:
        return found[Strategy("sydney", t)].summary.mean[name]

    first = Cell("0.14", found[Strategy("bfs")].summary.mean["max_queue_fraction"])
    queues = [Cell(printed, mean(t, "max_queue_fraction")) for t, (printed, _) in SAMPLED.items()]
    visits = [Cell(printed, mean(t, "revisits")) for t, (_, printed) in SAMPLED.items()]
    return Table(
        LIMITED,
        "Table 1",
        "Largest queue and re-visited pages by t",
        ("all", *map(str, SAMPLED)),
        (
            ("largest queue, of the pages reached", (first, *queues)),
            ("pages re-visited", (None, *visits)),
        ),
        "Printed for WebBase, 118 million pages; ours on the graph given.",
    )


def _table_2(found: dict[Strategy, Result]) -> Table:
    return Table(
        LIMITED,
        "Table 2",
        "Coverage under a queue limit",
        tuple(f"{limit:.0%}" for limit in LIMITS),
        tuple(
            (
                f"t = {t}",
                tuple(
                    Cell(text, found[Strategy("sydney", t, limit)].summary.mean["coverage"])
                    for text, limit in zip(printed, LIMITS, strict=True)
                ),
            )
            for t, printed in COVERED.items()
        ),
        "Printed for .it, 41 million pages; ours on the graph given.",
    )


def _text(web: WebGraph, found: dict[Strategy, Result]) -> Table:
    def alone(t: int, name: str) -> float:
        return found[Strategy("random", t)].summary.mean[name]

    limited = [result for strategy, result in found.items() if strategy.limit is not None]
    lost = 1 - min(result.summary.mean["pagerank"] for result in limited)
    secondary = found[Strategy("sydney", 8)].summary.mean["max_secondary_fraction"]
    return Table(
        LIMITED,
        "Sections 3 and 4",
        "What the text says of P, S and quality",
        ("t = 8", "t = 16"),
        (
            ("coverage of P alone", (Cell("55%", alone(8, "coverage")), Cell("75%", alone(16, "coverage")))),
            (
                "PageRank found by P alone",
                (Cell("81%", alone(8, "pagerank")), Cell("89%", alone(16, "pagerank"))),
            ),
            ("largest S, of the pages", (Cell("3%", secondary), None)),
            ("PageRank lost to a limit, at most", (Cell("5%", lost), None)),
        ),
        f"Pages with more than 8 and 16 links: {share_above(web, 8):.0%} and {share_above(web, 16):.0%} of the graph "
        "given; more than half in the paper. Section 4 says that P alone covers 45% with t = 8, section 3.1 55%.",
    )


def _theorems() -> Table:
    spec = FarmSpec()

    def webs(number: int) -> tuple[WebGraph, int, npt.NDArray[np.int32]]:
        honest = make_web(spec, number)
        return plant_farms(honest, spec, number), honest.nodes, choose_seeds(honest, _SEEDS, number)

    rows = []
    for result, name in zip(
        simulate_budget(webs, methods=("naive", "beast"), pages=_BUDGET_PAGES, repeat=1),
        ("naive, (8)", "BEAST, (10)"),
        strict=True,
    ):
        mean = result.summary.mean
        rows.append((name, (Cell(f"{mean['lambda_theorem']:,.0f} B", mean["lambda"]),)))
    return Table(
        "IRLbot",
        "Theorems 4 and 5",
        "λ by the formula and simulated, bytes a page",
        ("formula",),
        tuple(rows),
        f"A web of {spec.domains} domains and a farm of {spec.farms}, {_BUDGET_PAGES:,} pages crawled; the formula "
        "with the L, V and E[B] of the simulation. (10) is a bound: it takes Q_F as long as it is at the end of a "
        "round, while a re-scan finds it as it was at the beginning.",
    )
