"""The table of commands."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer

from barkspider.cli.control import add, pause, status, stop
from barkspider.cli.crawl import crawl
from barkspider.cli.demo import demo
from barkspider.cli.drum import drum_app
from barkspider.cli.export import export
from barkspider.cli.fetch import fetch
from barkspider.cli.papers import papers
from barkspider.cli.plan import plan
from barkspider.cli.query import query
from barkspider.cli.rank import rank
from barkspider.cli.recrawl import recrawl
from barkspider.cli.resume import resume
from barkspider.cli.show import show
from barkspider.cli.simulate import simulate_app
from barkspider.cli.simulate_parallel import parallel
from barkspider.cli.terminal import say
from barkspider.cli.verify import verify
from barkspider.cli.web import web

# With what they import, all that has kernels.
_COMPILED = (
    "engine.loop",
    "frontier.modes",
    "frontier.sydney",
    "graph.kernels",
    "lab.simulate.farms",
    "lab.simulate.kernels",
    "lab.simulate.parallel_kernels",
    "lab.synthweb",
)

app = typer.Typer(
    name="barkspider",
    help="A web crawler for millions to billions of pages from machines you can afford.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(crawl)
app.command()(add)
app.command()(resume)
app.command()(recrawl)
app.command()(status)
app.command()(pause)
app.command()(stop)
app.command()(fetch)
app.command()(show)
app.command()(query)
app.command()(export)
app.command()(verify)
app.command()(web)
app.command()(plan)
app.command()(papers)
app.command()(rank)
app.add_typer(drum_app, name="drum")
simulate_app.command()(parallel)
app.add_typer(simulate_app, name="simulate")


@app.command(hidden=True)
def warm() -> None:
    """Compile the numba kernels once, so that the first crawl does not wait for them."""
    # Importing is enough: every kernel has its signature and compiles, or loads from its cache, at import.
    for module in _COMPILED:
        import_module(f"barkspider.{module}")


@app.callback(invoke_without_command=True)
def root(show_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Options before a command."""
    if show_version:
        say(f"barkspider {version('barkspider')}")
        raise typer.Exit
