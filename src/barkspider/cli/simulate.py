"""`barkspider simulate`: strategies tried on a stored web before a crawl begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barkspider.cli.terminal import say, say_json, screen
from barkspider.core.errors import UsageError

if TYPE_CHECKING:
    from barkspider.lab.simulate.order import Strategy
    from barkspider.lab.simulate.repeats import Summary
    from barkspider.lab.webgraph import WebGraph

simulate_app = typer.Typer(
    help="Replay crawling strategies over a stored web graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Seeds = Annotated[int, typer.Option(help="Pages that a crawl begins with, drawn at random.")]
Repeat = Annotated[int, typer.Option(help="How often everything is repeated, each time from other seeds.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**62, help="Of all that is random: the same seed, the same result.")
]
Largest = Annotated[int, typer.Option(help="Pages of the largest; the one at rank r has 1/r of it.")]
Function = Annotated[str, typer.Option(help="The budget function, as the setting budget.function.")]
Sites = Annotated[str, typer.Option(help="auto, or how many nodes in a row are a site.")]
Plot = Annotated[Path | None, typer.Option(help="Draw the paper's figures: .svg, .png or .pdf.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

# What the tables show: the title, factor and format of each figure.
_ORDER = {
    "coverage": ("coverage", 100, ".1f"),
    "max_queue_fraction": ("queue at most", 100, ".1f"),
    "max_queue_to_bfs": ("of BFS's", 100, ".0f"),
    "revisits": ("re-visited", 100, ".2f"),
    "pagerank": ("PageRank", 100, ".1f"),
}
_BUDGET = {
    "farm_share": ("% in farms", 100, ".1f"),
    "disk_bytes_per_page": ("bytes/page", 1, ",.0f"),
    "rescans": ("re-scans", 1, ".0f"),
    "alpha": ("α", 1, ".1f"),
    "lambda": ("λ", 1, ",.0f"),
    "lambda_theorem": ("by theorem", 1, ",.0f"),
}
_GRAPH_HELP = "A graph of pages: .npz (indptr, indices; url, site), edges, or a graph's folder."


@simulate_app.command()
def order(
    graph: Annotated[Path, typer.Argument(help=_GRAPH_HELP)],
    strategies: Annotated[
        str,
        typer.Option(
            help="Some of bfs, dfs, sydney, random, directory (needs URLs), backlink; all if not given."
        ),
    ] = "",
    t: Annotated[str, typer.Option("--t", help="Links taken of a page by sydney and random.")] = "8,16,32,64",
    limits: Annotated[
        str, typer.Option(help="Queue limits of sydney, of the pages that can be reached; '' for none.")
    ] = "3%,5%,7%",
    levels: Annotated[int, typer.Option(help="Levels of directories in which directory samples.")] = 2,
    share: Annotated[str, typer.Option(help="Share of a page's links that directory takes there.")] = "50%",
    seeds: Seeds = 100,
    repeat: Repeat = 5,
    seed: Seed = 1,
    sites: Sites = "auto",
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Compare orders of visiting pages: coverage, largest queue, re-visits, quality.

    Example: barkspider simulate order web.npz --t 8,16 --limits 3%,5% --plot order.svg

    Example: barkspider simulate order web.npz --strategies bfs,sydney,directory --seeds 10 --repeat 20 --json
    """
    from barkspider.lab.simulate.order import out_degrees, share_above, simulate_order
    from barkspider.lab.webgraph import load_web

    check_plot(plot)
    taken, allowed = numbers(t, "--t"), shares(limits, "--limits")
    (part,) = shares(share, "--share")[:1] or [0.0]
    web = load_web(graph, sites=sites)
    chosen = _strategies(web, strategies, taken, allowed, levels, part)
    with progress(len(chosen) * repeat, as_json) as advance:
        results = simulate_order(web, chosen, seeds=seeds, repeat=repeat, seed=seed, progress=advance)
    if plot is not None:
        from barkspider.cli.simulate_picture import draw_order

        draw_order(web, results, plot)
    above = {str(each): round(share_above(web, each), 9) for each in taken}
    if as_json:
        degrees, counts = out_degrees(web)
        shown = {"nodes": web.nodes, "arcs": web.arcs, "sites": web.sites, "out_degree_above": above}
        shown |= {"out_degrees": list(zip(degrees.tolist(), counts.tolist(), strict=True))}
        given = {"graph": shown, "seeds": seeds, "repeat": repeat, "seed": seed}
        say_json(given | {"results": [result.as_dict() for result in results]})
        return
    say(
        f"{web.nodes:,} pages, {web.arcs:,} links, {web.sites:,} sites. More than t links have "
        + ", ".join(f"{value:.1%} ({each})" for each, value in above.items())
        + f" of the pages.\nFrom {seeds:,} seeds {results[0].summary.mean['reachable']:,.0f} pages can be reached. "
        f"In percent of them, mean ± deviation of {repeat}:"
    )
    _show([(result.strategy.label, result.summary) for result in results], _ORDER, repeat)


@simulate_app.command()
def budget(
    graph: Annotated[
        Path | None, typer.Argument(help=_GRAPH_HELP + " A web is made up if none is given.")
    ] = None,
    pages: Annotated[int, typer.Option(help="Pages to crawl.")] = 100_000,
    domains: Annotated[int, typer.Option(help="Honest domains of the web that is made up.")] = 300,
    largest: Largest = 100_000,
    farms: Annotated[int, typer.Option(help="Domains of the spam farm.")] = 10,
    farm_pages: Annotated[int, typer.Option(help="Pages of the farm.")] = 2_000_000,
    branching: Annotated[int, typer.Option(help="New pages that a page of the farm links to.")] = 20,
    entry: Annotated[int, typer.Option(help="One in so many honest pages links to the farm.")] = 100,
    function: Function = "irlbot",
    base: Annotated[int, typer.Option(help="B_0, as the setting budget.base.")] = 10,
    seeds: Seeds = 100,
    repeat: Repeat = 3,
    seed: Seed = 1,
    sites: Sites = "auto",
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Compare BEAST, the naive two queues and BFS on a web with spam farms: disk traffic, share of spam.

    A site of the graph counts as a domain. λ is in bytes for each page, from re-scan to re-scan.

    Example: barkspider simulate budget --pages 200000 --plot budget.svg

    Example: barkspider simulate budget web.npz --farms 40 --json
    """
    from barkspider.core.load import load_settings
    from barkspider.lab.simulate.budget import METHODS, simulate_budget
    from barkspider.lab.simulate.farms import FarmSpec, make_web, plant_farms
    from barkspider.lab.simulate.repeats import choose_seeds
    from barkspider.lab.webgraph import load_web

    check_plot(plot)
    settings = load_settings(options=[f"budget.function={function}", f"budget.base={base}"]).budget
    spec = FarmSpec(domains, largest, farms, farm_pages, branching, entry)
    given = None if graph is None else load_web(graph, sites=sites)

    def webs(number: int) -> Any:
        honest = make_web(spec, number) if given is None else given
        return plant_farms(honest, spec, number), honest.nodes, choose_seeds(honest, seeds, number)

    with progress(len(METHODS) * repeat, as_json) as advance:
        results = simulate_budget(
            webs, pages=pages, repeat=repeat, seed=seed, settings=settings, progress=advance
        )
    if plot is not None:
        from barkspider.cli.simulate_picture import draw_budget

        draw_budget(results, plot)
    if as_json:
        shown = {"seeds": seeds, "repeat": repeat, "seed": seed}
        say_json(shown | {"results": [result.as_dict() for result in results]})
        return
    say(
        f"{results[0].summary.mean['pages']:,.0f} pages each, mean ± deviation of {repeat}. λ in bytes a page, "
        "measured and by equation (8) or (10):"
    )
    _show([(result.method, result.summary) for result in results], _BUDGET, repeat)


def numbers(text: str, option: str) -> list[int]:
    """Whole numbers of 1 or more with commas between them.

    >>> numbers("8,16", "--t")
    [8, 16]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 2**31 for part in parts):
        raise UsageError(f"{option} is {text!r}; give whole numbers of 1 or more, such as 8,16")
    return [int(part) for part in parts]


def shares(text: str, option: str) -> list[float]:
    """Shares with commas between them, as 3% or 0.03; none of an empty text.

    >>> shares("3%,0.05", "--limits"), shares("", "--limits")
    ([0.03, 0.05], [])
    """
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            value = float(part.removesuffix("%")) / (100 if part.endswith("%") else 1)
        except ValueError:
            value = 0.0
        if not 0 < value <= 1:
            raise UsageError(f"{option} is {text!r}; give shares above 0 and at most 1, such as 3%,5%")
        found.append(value)
    return found


def _strategies(
    web: WebGraph, names: str, taken: Sequence[int], limits: Sequence[float], levels: int, share: float
) -> list[Strategy]:
    from barkspider.lab.simulate.order import STRATEGIES, Strategy

    usual = [name for name in STRATEGIES if name != "directory" or web.urls is not None]
    chosen: list[Strategy] = []
    for name in [part.strip() for part in names.split(",")] if names else usual:
        if name in ("sydney", "random"):
            chosen += [Strategy(name, each) for each in taken]
            chosen += [Strategy(name, each, limit) for limit in limits for each in taken if name == "sydney"]
        elif name == "directory":
            chosen.append(Strategy(name, levels=levels, share=share))
        else:
            chosen.append(Strategy(name))
    return chosen


def check_plot(plot: Path | None) -> None:
    """Refuse a name under which no picture can be written, before the work begins."""
    if plot is not None:
        from barkspider.cli.pictures import check_format

        check_format(plot)


@contextmanager
def progress(total: int, quiet: bool) -> Iterator[Callable[[], None]]:
    """A bar that moves each time when the function is called that it gives."""
    from rich.progress import Progress

    with Progress(console=screen(error=True), disable=quiet) as bar:
        task = bar.add_task("simulations", total=total)
        yield lambda: bar.update(task, advance=1)


def _show(
    rows: Sequence[tuple[str, Summary]], columns: Mapping[str, tuple[str, float, str]], repeat: int
) -> None:
    """A table of figures."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for title, _, _ in columns.values():
        table.add_column(title, justify="right", no_wrap=True)

    def cell(summary: Summary, name: str, factor: float, form: str) -> str:
        if name not in summary.mean:
            return ""
        spread = f" ±{summary.spread[name] * factor:{form}}" if repeat > 1 else ""
        return f"{summary.mean[name] * factor:{form}}{spread}"

    for label, summary in rows:
        table.add_row(
            label, *(cell(summary, name, factor, form) for name, (_, factor, form) in columns.items())
        )
    screen().print(table)
