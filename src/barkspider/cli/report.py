"""`barkspider report`: a crawl as one HTML file."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.progress import working
from barkspider.cli.terminal import say, say_json
from barkspider.core.errors import BarkspiderError, UsageError
from barkspider.engine.folder import check_job


def report(
    job: Annotated[
        str,
        typer.Argument(metavar="JOB", help="The folder of a crawl, which may be running, or its store."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="The file to write; JOB/report.html if not given.", show_default=False
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="JOB2", help="Another crawl to put beside it.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Write what a crawl did as one HTML file with pictures, which opens without a network.

    Example: barkspider report jobs/mine -o report.html
    """
    from barkspider.engine.borrowing import (
        at_hand,
        is_store,
    )  # here: all that reads tables takes a moment to load

    for each in (job, against):
        if each is not None and not is_store(each):
            check_job(Path(each))
    if output is None and is_store(job):
        raise UsageError(f"{job} is a store: name the file to write with -o")
    path = Path(job) / "report.html" if output is None else output
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"{path} cannot be a file; name one in a folder that is there")
    from barkspider.report import write_report

    with ExitStack() as stack:
        folders = [stack.enter_context(at_hand(each)) for each in (job, against) if each is not None]
        try:
            with working("reading tables"):
                size = write_report(folders[0], path, folders[1] if against is not None else None)
        except OSError as error:
            raise BarkspiderError(f"cannot write {path}: {error.strerror}") from error
    if json_:
        say_json({"job": str(job), "report": str(path), "bytes": size})
    else:
        say(f"Report: {path}")
    return 0
