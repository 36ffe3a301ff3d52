"""`barkspider plan`: what a crawl needs, before machines are rented."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barkspider.cli.measured import Measured, measure
from barkspider.cli.terminal import say_json, screen, styled
from barkspider.core.errors import SettingsError, UsageError
from barkspider.lab.papers.comparison import Line, Picture
from barkspider.model.planner import LIMITS, UNITS, Parameters, Plan
from barkspider.model.planner import plan as make_plan

if TYPE_CHECKING:
    from rich.console import Console


def plan(**given: Any) -> None:
    """Tell what a crawl needs by the papers' models: disk, RAM, I/O, time, and what holds it back.

    Each machine is planned alike. Defaults are the values of IRLbot; --ram and --disk are what URL checks may use.

    Example: barkspider plan --pages 8e9 --ram 8GB --disk 4TB --disk-speed 500MB/s --rate 1000

    Example: barkspider plan --from jobs/example --pages 1B
    """
    job, plot, as_json = given.pop("from_"), given.pop("plot"), given.pop("json_")
    if plot is not None:
        from barkspider.cli.pictures import check_format

        check_format(plot)
    chosen = {name: value for name, value in given.items() if value is not None}
    measured = None
    if job is not None:
        chosen.setdefault("pages", 1e9)
        measured = measure(job, chosen["pages"])
        chosen = measured.parameters | chosen
    if "pages" not in chosen:
        raise UsageError("how many pages? give --pages, such as --pages 8e9, or --from JOB")
    parameters = Parameters(**chosen)
    found = make_plan(parameters)
    if plot is not None:
        from barkspider.cli.pictures import draw

        draw(_pictures(parameters, found), plot)
    if as_json:
        inputs = {"parameters": asdict(parameters)} | ({"measured": asdict(measured)} if measured else {})
        say_json(asdict(found) | inputs)
    else:
        _show(parameters, found, measured)


def _reader(unit: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            return UNITS[unit](text)
        except SettingsError as error:  # so that the message names the option
            raise typer.BadParameter(str(error)) from None

    return read


def _options() -> list[inspect.Parameter]:
    """The options of `plan`: one for each of the planner's parameters, which have the names, units and help."""
    found: dict[str, Any] = {}
    for one in fields(Parameters):
        unit, default = one.metadata["unit"], one.metadata["default"]
        names = ("--machines", "--nodes") if one.name == "machines" else ()
        option = typer.Option(
            *names,
            parser=_reader(unit),
            metavar=unit.upper(),
            help=one.metadata["help"],
            show_default=default if default not in ("", "none") else False,
        )
        found[one.name] = Annotated[float | None, option]
    found["from_"] = Annotated[
        Path | None,
        typer.Option("--from", metavar="JOB", help="Take what this crawl measured instead of defaults."),
    ]
    found["plot"] = Annotated[
        Path | None, typer.Option(help="Draw α and λ over the size: .svg, .png or .pdf.")
    ]
    options = [_option(name, annotation, None) for name, annotation in found.items()]
    flag = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
    return [*options, _option("json_", flag, False)]


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


plan.__signature__ = inspect.Signature(_options())  # type: ignore[attr-defined]


def _pictures(given: Parameters, found: Plan) -> list[Picture]:
    """α of the three methods, and λ with and without BEAST, over the size of the crawl."""
    sizes = [found.pages * 10 ** (step / 10) for step in range(-20, 21)]
    plans = [make_plan(replace(given, pages=pages)) for pages in sizes]

    def lines(names: dict[str, str]) -> tuple[Line, ...]:
        curves = [
            Line(label, tuple(sizes), tuple(getattr(other, name) for other in plans))
            for name, label in names.items()
        ]
        marks = [
            Line(label, (found.pages,), (getattr(found, name),), points=True) for name, label in names.items()
        ]
        return (*curves, *marks)

    alphas = {"alpha_mercator": "Mercator-B (1)", "alpha_polybot": "Polybot (2)", "alpha_drum": "DRUM (5)"}
    speeds = {"naive_bytes_per_second": "naive (8)", "beast_bytes_per_second": "BEAST (10)"}
    return [
        Picture("Overhead of URL checks", "pages", "α", lines(alphas), "this crawl"),
        Picture(
            f"Disk speed for budgets at {given.rate:,.0f} pages/s",
            "pages",
            "λ of a machine, bytes/s",
            lines(speeds),
            "this crawl",
        ),
    ]


def _show(given: Parameters, found: Plan, measured: Measured | None) -> None:
    from rich import box
    from rich.table import Table

    console = screen()
    of = f", each of {found.machines} machines" if found.machines > 1 else ""
    rate = _short(found.pages_per_second * found.machines, "pages/s")
    console.print(styled(f"{_short(found.pages, 'pages')}{of}: {found.days:,.3g} days at {rate}", "bold"))
    console.print(f"Bottleneck: {LIMITS[found.bottleneck]}. To improve: {found.improve}.")
    table = Table(box=box.SIMPLE, show_header=False)
    for rows in _rows(given, found):
        for row in rows:
            table.add_row(*row)
        table.add_section()
    console.print(table)
    if measured is not None:
        taken = ", ".join(f"{name} {value:.4g}" for name, value in measured.parameters.items())
        console.print(
            f"Measured on {measured.measured_pages:,} pages: {taken}. They are taken to stay so, but the domains of a "
            "crawl of the web, which grow with it."
        )
        _show_moved(console, measured)
    for warning in found.warnings:
        console.print(f"Note: {warning}.", style="yellow")


def _show_moved(console: Console, measured: Measured) -> None:
    """What the crawl moved on disk, beside the models."""
    compared = {f"DRUM {name}": moved for name, moved in measured.drums.items()}
    if measured.budgets is not None:
        compared["queues of BEAST"] = measured.budgets.moved
    for name, moved in compared.items():
        off = moved.predicted_bytes / moved.counted_bytes - 1 if moved.counted_bytes else 0.0
        console.print(
            f"Its {name} moved {_short(moved.counted_bytes, 'B')}; the model says "
            f"{_short(moved.predicted_bytes, 'B')} ({off:+.1%})."
        )
    if measured.whole_generations_bytes is not None:
        whole = _short(measured.whole_generations_bytes, "B")
        console.print(f"Without early merges, URLseen would have moved {whole} by equation (5).")
    if (found := measured.budgets) is not None:
        console.print(
            f"Its budgets: λ {_short(found.bytes_per_second, 'B/s')}; (10) says "
            f"{_short(found.beast_bytes_per_second, 'B/s')}, (8) {_short(found.naive_bytes_per_second, 'B/s')}. "
            f"j {found.queues}; (11) says {found.predicted_queues}. E[B_x] {found.budget:.4g}, V {found.domains:,}, "
            f"α_N {found.excess:.3g}."
        )
    if measured.ranking and measured.ranking["rankings"]:
        ranking = measured.ranking
        console.print(
            f"Its {ranking['rankings']} rankings read {_short(ranking['read'], 'B')} and wrote "
            f"{_short(ranking['written'], 'B')}, making the graph anew each time included."
        )


def _rows(given: Parameters, found: Plan) -> list[list[tuple[str, str, str]]]:
    """The table by sections: a name, a value, where it comes from."""
    checks = [
        ("α of DRUM", _number(found.alpha_drum), f"(5), D follows URLseen; at least {found.alpha_least:.3g}"),
        (
            "α of DRUM, all of D",
            _number(found.alpha_drum_whole_disk),
            "(5), with all of --disk from the start",
        ),
        ("α of Mercator-B", _number(found.alpha_mercator), "(1)"),
        ("α of Polybot", _number(found.alpha_polybot), "(2)"),
        ("S_disk of DRUM", _short(found.s_disk_pages_per_second, "pages/s"), "(7)"),
        ("S_disk of Mercator-B", _short(found.s_disk_mercator_pages_per_second, "pages/s"), "(7)"),
        ("S_disk of Polybot", _short(found.s_disk_polybot_pages_per_second, "pages/s"), "(7)"),
        ("D_opt", _short(found.disk_optimal_bytes, "B"), f"(6), for R = {_short(given.ram, 'B')}"),
        ("k at D_opt", f"{found.buckets:,} buckets", ""),
        ("r at D_opt", _short(found.bucket_bytes, "B"), "the bucket buffer"),
        ("M", _short(found.buffer_bytes, "B"), "the buffer of an open file"),
        ("merges", _number(found.merges), "passes over URLseen"),
    ]
    space = [
        ("URLseen", _short(found.urlseen_bytes, "B"), "twice while it is merged"),
        ("buckets", _short(found.bucket_disk_bytes, "B"), "D at the end; twice while it is merged"),
        ("queues of URLs", _short(found.queue_bytes, "B"), "found and not yet fetched"),
        (
            "archive",
            _short(found.archive_bytes, "B"),
            f"{_short(given.page_size / given.compression, 'B')} a page",
        ),
        ("disk in all", _short(found.disk_bytes, "B"), ""),
        ("RAM", _short(found.ram_bytes, "B"), f"at least {_short(found.ram_least_bytes, 'B')}"),
    ]
    speed = [
        ("I/O of URL checks", _short(found.url_check_bytes_per_second, "B/s"), "αblS at the rate asked for"),
        ("I/O of budgets, BEAST", _short(found.beast_bytes_per_second, "B/s"), "λ (10)"),
        ("I/O of budgets, naive", _short(found.naive_bytes_per_second, "B/s"), "λ (8)"),
        ("I/O of the archive", _short(found.archive_bytes_per_second, "B/s"), ""),
        ("I/O in all", _short(found.disk_bytes_per_second, "B/s"), f"of {_short(given.disk_speed, 'B/s')}"),
        ("queues of BEAST", f"{found.beast_queues:,}", "j (11)"),
        (
            "bandwidth",
            _short(found.bandwidth_bytes_per_second * 8, "b/s"),
            f"of {_short(given.bandwidth * 8, 'b/s')}",
        ),
    ]
    if found.machines > 1:
        share = f"{found.exchange_urls_per_page:.3g} URLs a page, {found.exchange_share:.2%} of the bandwidth"
        speed.append(("URLs to other machines", _short(found.exchange_bytes_per_second, "B/s"), share))
    limits = [
        (LIMITS[name], _short(limit, "pages/s"), "the bottleneck" if name == found.bottleneck else "")
        for name, limit in sorted(found.limits.items(), key=lambda item: item[1])
    ]
    return [checks, space, speed, limits, _costs(given, found)]


def _costs(given: Parameters, found: Plan) -> list[tuple[str, str, str]]:
    """What is known of CPU and of prices."""
    rows = []
    if found.cores_in_use is not None:
        rows.append(("cores in use", _number(found.cores_in_use), f"of {given.cores:g}"))
    if found.machines > 1 or given.store_price:
        rows.append(("copies in a store", _short(found.store_bytes, "B"), "all machines, at the end"))
    if given.node_price:
        per = f"{found.machines} machines, {given.node_price:g} an hour each"
        rows.append(("money for machines", _number(found.machines_cost), per))
    if given.store_price:
        per = f"{given.store_price:g} a GB and month"
        rows.append(("money for the store, a month", _number(found.store_cost_a_month), per))
    return rows


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _short(value: float, unit: str) -> str:
    """Four digits and a prefix, or a word for pages.

    >>> _short(49.67e12, "B"), _short(1234.5, "pages/s"), _short(8e9, "pages")
    ('49.67 TB', '1,234 pages/s', '8 billion pages')
    """
    steps = (
        ["", "thousand ", "million ", "billion ", "trillion "]
        if unit == "pages"
        else ["", "K", "M", "G", "T", "P"]
    )
    if unit == "pages/s":
        return f"{_number(value)} {unit}"
    step = min(max(int(math.log10(max(value, 1)) // 3), 0), len(steps) - 1)
    return f"{value / 1000**step:,.4g} {steps[step]}{unit}"
