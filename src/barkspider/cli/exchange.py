"""`barkspider exchange`: carry what parts of a crawl send each other where they never see each other."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.terminal import say, say_json
from barkspider.cli.wording import volume
from barkspider.core.errors import UsageError


def exchange(
    job: Annotated[
        Path, typer.Argument(help="The folder of a crawl, running or not, some of whose parts are elsewhere.")
    ],
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Copy what is for parts elsewhere into this folder."),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Take what is for parts here out of this folder."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print what was carried as one JSON object.")] = False,
) -> int:
    """Carry links between the parts of a crawl on machines that are not connected, on a disk or in any other way.

    Give all machines the same seeds, settings and seed, and each its own parts with parallel.here. What is carried may get
    lost or come twice: it is kept until the other side has said that it is safe.

    Example: barkspider exchange jobs/web --from /media/stick --to /media/stick
    """
    from barkspider.engine.folder import check_job
    from barkspider.engine.trust import read_settings
    from barkspider.parallel.carrying import Carried, Carrier
    from barkspider.storage.env import Env

    if to is None and from_ is None:
        raise UsageError("say what to do: --from DIR takes what others sent, --to DIR gives what is for them")
    check_job(job)
    env = Env()
    settings = read_settings(env, job)
    came = Carrier(env, job, settings, from_).fetch() if from_ is not None else Carried()
    gone = Carrier(env, job, settings, to).to() if to is not None else Carried()
    if json_:
        say_json({"job": str(job), "from": asdict(came), "to": asdict(gone)})
        return 0
    if from_ is not None:
        say(f"{_batches(came.batches)} ({volume(came.bytes)}) came from {from_}")
    if to is not None:
        say(
            f"{_batches(gone.batches)} ({volume(gone.bytes)}) went to {to}; {gone.waiting:,} are not known to have arrived"
        )
    return 0


def _batches(count: int) -> str:
    return "1 batch" if count == 1 else f"{count:,} batches"
