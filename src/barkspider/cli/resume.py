"""`barkspider resume`: go on with a crawl that was paused, stopped or killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.interrupts import leave_on_interrupt
from barkspider.cli.terminal import in_json, say

TrustSettings = Annotated[
    bool,
    typer.Option(
        "--trust-settings",
        help="Load the code and files, and open the networks, that the settings of another's job name.",
    ),
]


Ray = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="The crawl is on the Ray cluster at this address; auto finds that of this machine.",
    ),
]


def resume(
    job: Annotated[Path, typer.Argument(help="The folder of a crawl.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="One setting to change; may be repeated."),
    ] = None,
    pages: Annotated[
        int | None, typer.Option(help="Stop when the job has this many pages; 0 means no limit.")
    ] = None,
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Stop after this time, such as 90s or 1h.")
    ] = None,
    ray: Ray = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="With --ray: the store, if the job is not on this machine."),
    ] = None,
    trust: TrustSettings = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> int:
    """Go on with a crawl where it was, whatever ended it; end the pause of one that is running.

    Limits, delays, scope and how pages are fetched may be changed, settings that shape keys and files may not.

    Example: barkspider resume jobs/mine --set limits.pages=100000
    """
    leave_on_interrupt()
    from barkspider.cli.run import exit_code, run_job
    from barkspider.engine import Job, ask
    from barkspider.storage.env import Env

    options = list(set_ or [])
    options += [f"limits.pages={pages}"] if pages is not None else []
    options += [f"limits.time={for_}"] if for_ is not None else []
    if ray is not None:
        from barkspider.cli.cluster import resume_on_cluster

        return exit_code(resume_on_cluster(ray, job, options, store or "", json_), job)
    answer = ask(job, "go_on") if job.is_dir() and not options else None
    if answer is not None:
        say(in_json(answer) if json_ else f"{job} is running and goes on")
        return 0

    async def make() -> Job:
        return Job.open(job, Env(), options, trust=trust)

    return exit_code(run_job(make, json_, f"barkspider: {job}"), job)
