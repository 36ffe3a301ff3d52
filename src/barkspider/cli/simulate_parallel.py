"""`barkspider simulate parallel`: several processes tried on a stored web before they crawl."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barkspider.cli.simulate import Json, Plot, Seed, Sites, check_plot, progress
from barkspider.cli.terminal import say, say_json, screen
from barkspider.core.errors import UsageError

if TYPE_CHECKING:
    from barkspider.lab.simulate.parallel import Setup
    from barkspider.lab.simulate.parallel_results import Result

_FIGURES = {
    "coverage": ("coverage", ".3f"),
    "overlap": ("overlap", ".3f"),
    "overlap_when_covered": ("when 99% is covered", ".3f"),
    "quality": ("quality", ".3f"),
    "exchanged_per_page": ("URLs/page", ".3f"),
}
_MERITS = {
    "crossing_links": ("links across", ".3f"),
    "largest_part": ("largest part", ".2f"),
    "dns_lookups": ("DNS a site", ".2f"),
    "connections": ("opened a site", ".2f"),
    "shared_servers": ("servers shared", ".2f"),
    "robots_fetches": ("robots a site", ".2f"),
    "lookups_to_assign": ("asked to assign", ".0f"),
}

Mode = Annotated[str, typer.Option(help="Some of independent, firewall, cross-over, exchange.")]
Partition = Annotated[
    str, typer.Option(help="Some of site, url; with URLs domain, hierarchical, address too.")
]
Batch = Annotated[str, typer.Option(help="Exchange: pages of a process between two times it sends.")]
Exchanges = Annotated[
    str, typer.Option(help="Exchange: instead of batches, how often all send in the crawl. Needs --pages.")
]
Replicate = Annotated[
    str, typer.Option(help="Exchange: most popular URLs that all have from the beginning, such as 0,0.25%.")
]
Pages = Annotated[
    str, typer.Option(help="Stop after so many in all, such as 1.2%,5%,20%; quality is of the top so many.")
]
Addresses = Annotated[
    Path | None, typer.Option(help="Lines `host address`, for the address partition and shared servers.")
]


def parallel(
    graph: Annotated[
        Path, typer.Argument(help="A graph of pages: .npz (indptr, indices; url, site), edges, or a folder.")
    ],
    processes: Annotated[str, typer.Option(help="Numbers of processes.")] = "1,2,4,8,16,32,64",
    mode: Mode = "firewall,cross-over,exchange",
    partition: Partition = "site",
    batch: Batch = "1",
    exchanges: Exchanges = "",
    replicate: Replicate = "0",
    seeds: Annotated[str, typer.Option(help="Pages that each process begins with, of its own.")] = "5",
    order: Annotated[str, typer.Option(help="breadth, or backlinks: the most linked first.")] = "breadth",
    pages: Pages = "",
    addresses: Addresses = None,
    repeat: Annotated[int, typer.Option(min=1, help="How often, each time with other hashes and seeds.")] = 3,
    seed: Seed = 1,
    sites: Sites = "auto",
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Compare ways to divide a crawl among processes: coverage, overlap, quality, URLs exchanged.

    Options take several values with commas between them; all combinations are run.

    Example: barkspider simulate parallel web.npz --processes 1,4,16,64 --plot parallel.svg

    Example: barkspider simulate parallel web.npz --mode exchange --partition site,url --replicate 0,0.025%,0.25%

    Example: barkspider simulate parallel web.npz --mode exchange --processes 2,8 --order backlinks --pages 1.2%,5%
    --exchanges 0,1,10,100
    """
    from barkspider.lab.simulate.parallel_results import simulate_parallel
    from barkspider.lab.webgraph import load_web

    check_plot(plot)
    known = None if addresses is None else _read_addresses(addresses)
    web = load_web(graph, sites=sites)
    setups = _setups(
        modes=_names(mode),
        partitions=_names(partition),
        processes=_amounts(processes, "--processes"),
        batches=_amounts(batch, "--batch"),
        exchanges=_amounts(exchanges, "--exchanges") if exchanges else [None],
        replicated=_amounts(replicate, "--replicate", web.nodes),
        seeds=_amounts(seeds, "--seeds"),
        order=order,
        pages=_amounts(pages, "--pages", web.nodes) if pages else [0],
    )
    with progress(len(setups) * repeat, as_json) as advance:
        results = simulate_parallel(web, setups, repeat=repeat, seed=seed, addresses=known, progress=advance)
    if plot is not None:
        from barkspider.cli.simulate_parallel_picture import draw_parallel

        draw_parallel(results, plot)
    if as_json:
        graph_ = {"nodes": web.nodes, "arcs": web.arcs, "sites": web.sites}
        shown = [result.as_dict() for result in results]
        say_json({"graph": graph_, "repeat": repeat, "seed": seed, "results": shown})
    else:
        say(f"{web.nodes:,} pages, {web.arcs:,} links, {web.sites:,} sites. Mean ± deviation of {repeat}:")
        _show_all(results)


def _show_all(results: Sequence[Result]) -> None:
    setups = [result.setup for result in results]
    names = [field.name for field in fields(setups[0])]
    varied = [name for name in names if len({getattr(setup, name) for setup in setups}) > 1]
    _show(results, _FIGURES, varied or ["mode"], spreads=True)
    if len({setup.partition for setup in setups}) > 1:
        say("What the partitions cost:")
        divisions = {(result.setup.partition, result.setup.processes): result for result in results}
        _show(list(divisions.values()), _MERITS, ["partition", "processes"], spreads=False)


def _setups(
    modes: Sequence[str],
    partitions: Sequence[str],
    processes: Sequence[int],
    batches: Sequence[int],
    exchanges: Sequence[int | None],
    replicated: Sequence[int],
    seeds: Sequence[int],
    order: str,
    pages: Sequence[int],
) -> list[Setup]:
    """All combinations; what is for exchange mode only does not multiply the others."""
    from barkspider.lab.simulate.parallel import Setup

    sendings = [(1, times, copies) for times in exchanges for copies in replicated]
    if exchanges == [None]:
        sendings = [(size, None, copies) for size in batches for copies in replicated]
    return [
        Setup(name, count, division, begin, order, limit, *sending)
        for division, name, begin, limit in product(partitions, modes, seeds, pages)
        for sending in (sendings if name == "exchange" else [(1, None, 0)])
        for count in processes
    ]


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",")))


def _amounts(text: str, option: str, whole: int = 0) -> list[int]:
    """Whole numbers with commas between them, or, of a `whole`, shares in percent.

    >>> _amounts("2,64", "--processes"), _amounts("0,0.25%", "--replicate", 40_000_000)
    ([2, 64], [0, 100000])
    """
    found = []
    for part in _names(text):
        number = part.removesuffix("%") if whole else part
        try:
            value = round(float(number) / 100 * whole) if number != part else int(number)
        except (ValueError, OverflowError):
            value = -1
        if not 0 <= value < 2**31 or (number != part and value > whole):
            shares = " or shares such as 5%" if whole else ""
            raise UsageError(f"{option} is {text!r}; give whole numbers{shares}, with commas between them")
        found.append(value)
    return found


def _read_addresses(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    pairs = [line.split() for line in lines if line.strip()]
    for number, pair in enumerate(pairs, 1):
        if len(pair) != 2:
            raise UsageError(f"{path}: entry {number} is not a host and an address")
    return {host.lower(): address for host, address in pairs}


def _show(
    results: Sequence[Result], columns: dict[str, tuple[str, str]], names: Sequence[str], spreads: bool
) -> None:
    """A table of these settings and figures, without figures that are 0 everywhere."""
    from rich import box
    from rich.table import Table

    figures = [name for name in columns if any(each.summary.mean.get(name) for each in results)]
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in figures:
        table.add_column(columns[name][0], justify="right", overflow="fold")
    for result in results:
        mean, spread = result.summary.mean, result.summary.spread
        row = ["" if (value := getattr(result.setup, name)) is None else str(value) for name in names]
        for name in figures:
            form = columns[name][1]
            value = f"{mean[name]:{form}}" if name in mean else ""
            deviation = f"{spread.get(name, 0.0):{form}}"
            row.append(f"{value}\u00a0±{deviation}" if spreads and float(deviation) else value)
        table.add_row(*row)
    screen().print(table)
