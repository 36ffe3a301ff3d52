"""`barkspider resize`: another number of processes for a crawl that was begun."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from barkspider.cli.interrupts import leave_on_interrupt
from barkspider.cli.resume import Ray, TrustSettings
from barkspider.cli.terminal import in_json, say, screen
from barkspider.core.errors import JobError


def resize(
    job: Annotated[Path, typer.Argument(help="The folder of a crawl that is not running.")],
    processes: Annotated[
        int, typer.Option(min=1, max=4096, help="Processes that divide the crawl from now on.")
    ],
    ray: Ray = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="With --ray: the store, if the job is not on this machine."),
    ] = None,
    trust: TrustSettings = False,
    json_: Annotated[bool, typer.Option("--json", help="Print what was done as one JSON object.")] = False,
) -> int:
    """Divide a stopped crawl among another number of processes, from and to one as well; `resume` goes on with these.

    All that is known and waits is divided anew; robots.txt files are asked for again. Pages that are archived stay where
    they are, and every command finds them. If it is killed the job is as before, or resized. With --ray it is done on this
    machine, from the store of the crawl and back there.

    Example: barkspider resize jobs/web --processes 8
    """
    leave_on_interrupt()
    import uvloop
    from rich.progress import Progress

    from barkspider.engine import Job, ask
    from barkspider.engine.folder import part_folders
    from barkspider.parallel.resize import resize as divide_anew
    from barkspider.storage.env import Env

    with Progress(console=screen(error=True), disable=json_) as bar:
        task = bar.add_task(f"to {processes}", total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        if ray is not None:
            from barkspider.cli.cluster import resize_on_cluster

            before = resize_on_cluster(ray, job, processes, store or "", tell)
        else:
            if job.is_dir() and ask(job, "status") is not None:
                raise JobError(f"{job} is being crawled: stop it first, with `barkspider stop {job}`")
            held = Job.open(job, Env(), trust=trust)
            try:
                before = len(part_folders(job))
                uvloop.run(divide_anew(held, processes, tell))
            finally:
                held.close()
    if json_:
        say(in_json({"job": str(job), "processes": processes, "before": before}))
    else:
        say(
            f"{job} has {_named(processes)} instead of {before:,}; go on: barkspider resume {job}{' --ray …' if ray else ''}"
        )
    return 0


def _named(processes: int) -> str:
    return "1 process" if processes == 1 else f"{processes:,} processes"
