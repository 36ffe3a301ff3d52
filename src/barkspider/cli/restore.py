"""`barkspider restore`: a crawl back from its store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.progress import working
from barkspider.cli.terminal import say, say_json


def restore(
    store: Annotated[
        str, typer.Argument(metavar="URL", help="The store of a crawl: a folder or fsspec URL.")
    ],
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The folder to make.")],
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Bring a crawl back from the copies in its store, to read it or to go on with it.

    Example: barkspider restore s3://bucket/crawl jobs/mine
    """
    from barkspider.engine.copying import restore_job
    from barkspider.storage.env import Env

    with working("bringing files back"):
        files = restore_job(Env(), store, job)
    if json_:
        say_json({"job": str(job), "files": files})
    else:
        say(f"{files:,} files are back in {job}; `barkspider resume {job}` goes on.")
    return 0
