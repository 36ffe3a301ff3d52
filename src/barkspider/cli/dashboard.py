"""`barkspider dashboard`: look at a crawl in a browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.terminal import say
from barkspider.core.errors import UsageError
from barkspider.core.extras import needing
from barkspider.engine.folder import check_job

_PATIENCE = 15.0  # seconds for its process to end


def dashboard(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The folder of a crawl; it may be running.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes a free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="An address of this machine that others can reach; needs --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str,
        typer.Option(
            envvar="BARKSPIDER_TOKEN",
            help="What visitors must know; made up if not given.",
            show_default=False,
        ),
    ] = "",
    with_parent: Annotated[bool, typer.Option(hidden=True)] = False,
) -> int:
    """Show a crawl in the browser, live, until Ctrl-C: health, domains, hosts, errors, SQL, controls.

    Example: barkspider dashboard jobs/mine
    """
    check_job(job)
    needed_for_dashboard()
    from barkspider.dashboard.server import is_loopback, serve

    if not is_loopback(host) and len(token) < 16:
        raise UsageError("with --host others can reach the dashboard: give a --token of 16 letters or more")
    serve(job, host, port, token, lambda address: say_address(address), with_parent=with_parent)
    return 0


def say_address(address: str) -> None:
    """Tell where the dashboard is, at once."""
    say(f"Dashboard: {address}", at_once=True)


def needed_for_dashboard() -> None:
    """Complain in one line when its packages are not installed."""
    for package in ("starlette", "uvicorn", "prometheus_client"):
        with needing(package, "dashboard"):
            __import__(package)


@contextmanager
def shown(job: Path) -> Iterator[str]:
    """The dashboard of a job in a process of its own, which ends with this block; its address."""
    command = [sys.executable, "-m", "barkspider.cli", "dashboard", str(job), "--with-parent"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().removeprefix("Dashboard: ").strip()
    finally:
        process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
