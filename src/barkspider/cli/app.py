"""The table of commands."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer
from typer.main import get_command

from barkspider.cli.cloaking import cloaking
from barkspider.cli.control import add, pause, status, stop
from barkspider.cli.crawl import crawl
from barkspider.cli.dashboard import dashboard
from barkspider.cli.demo import demo
from barkspider.cli.drum import drum_app
from barkspider.cli.duphosts import duphosts
from barkspider.cli.exchange import exchange
from barkspider.cli.export import export
from barkspider.cli.fetch import fetch
from barkspider.cli.limits import limits
from barkspider.cli.papers import papers
from barkspider.cli.plan import plan
from barkspider.cli.query import query
from barkspider.cli.rank import rank
from barkspider.cli.recrawl import recrawl
from barkspider.cli.report import report
from barkspider.cli.resize import resize
from barkspider.cli.restore import restore
from barkspider.cli.resume import resume
from barkspider.cli.rules import allow, block, pardon, rules, traps, unblock
from barkspider.cli.show import show
from barkspider.cli.simulate import simulate_app
from barkspider.cli.simulate_parallel import parallel
from barkspider.cli.sites import sites
from barkspider.cli.terminal import say
from barkspider.cli.verify import verify
from barkspider.cli.web import web
from barkspider.cli.why import why

# With what they import, all that has kernels.
_COMPILED = (
    "engine.loop",
    "frontier.later",
    "frontier.modes",
    "frontier.sydney",
    "graph.kernels",
    "lab.simulate.farms",
    "lab.simulate.kernels",
    "lab.simulate.parallel_kernels",
    "lab.synthweb",
    "page.fingerprint",
)

app = typer.Typer(
    name="barkspider",
    help="A web crawler for millions to billions of pages from machines you can afford.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
# In the order in which `--help` shows them.
_GROUPS = {
    "Crawl": (
        demo,
        crawl,
        resume,
        restore,
        recrawl,
        resize,
        exchange,
    ),
    "A crawl that runs": (
        add,
        status,
        pause,
        stop,
        block,
        allow,
        unblock,
        rules,
        traps,
        pardon,
        sites,
        dashboard,
    ),
    "What was crawled": (
        why,
        show,
        query,
        report,
        limits,
        export,
        verify,
        rank,
        duphosts,
        cloaking,
    ),
    "To think first": (
        plan,
        papers,
    ),
    "By themselves": (
        fetch,
        web,
    ),
}
for _group, _commands in _GROUPS.items():
    for _command in _commands:
        app.command(rich_help_panel=_group)(_command)
app.add_typer(drum_app, name="drum", rich_help_panel="By themselves")
simulate_app.command()(parallel)
app.add_typer(simulate_app, name="simulate", rich_help_panel="To think first")


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


# Made once: to read the options of all commands takes as long as most commands.
program = get_command(app)
