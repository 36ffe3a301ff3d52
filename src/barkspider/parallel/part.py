"""The process of one part: the crawl that there is, with neighbours. `python -m barkspider.parallel.part JOB/part-0000`.

On a node of a cluster its station adds the descriptor of a socket (`cluster.wire`) and as whom it copies its checkpoints.

It ends when its crawl ends, when the supervisor says so through the part's socket, and when the supervisor dies, which it
notices by the end of its standard input; then it makes a last checkpoint and leaves the rest for another time.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from pathlib import Path

import uvloop

from barkspider.core.allotment import share_arenas
from barkspider.core.errors import BarkspiderError
from barkspider.engine import Crawl, Job
from barkspider.parallel.cluster.wire import Wire
from barkspider.parallel.grants import GRANTS
from barkspider.parallel.post import Post
from barkspider.storage.env import Env


def main() -> None:
    """Crawl the part in the folder that the command line names."""
    folder, descriptor, incarnation = (*map(str, sys.argv[1:]), "", "")[:3]
    if "" not in sys.path:  # functions that settings name may lie in the current folder
        sys.path.append("")
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # as for a crawl of one process
    share_arenas()
    try:
        uvloop.run(_run(Path(folder), descriptor, incarnation))
    except BarkspiderError as error:
        print(f"{Path(folder).name}: {error}", file=sys.stderr, flush=True)
        sys.exit(error.exit_code)


async def _run(folder: Path, descriptor: str, incarnation: str) -> None:
    env, wire = Env(), Wire(int(descriptor)) if descriptor else None
    # The supervisor has looked at whose settings they are.
    job = Job.open(folder, env, trust=True, part=True)
    job.incarnation = incarnation
    post = Post(env, folder, job.settings, wire)
    try:
        crawl = Crawl.open(job, neighbours=post)
        if wire is not None:
            await wire.open(lambda: crawl.stop("request"))
        # Until the supervisor has seen that all grants together are within the limit.
        if job.settings.limits.pages:
            crawl.pause(True, GRANTS)
        loop = asyncio.get_running_loop()
        # Ctrl-C is for the supervisor, which tells us.
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.add_signal_handler(signal.SIGTERM, _end, crawl)
        loop.add_reader(0, _read, crawl)
        await crawl.run()
    finally:
        post.close()
        job.close()
    if crawl.fault is not None:
        raise crawl.fault


def _end(crawl: Crawl) -> None:
    crawl.stop("signal")
    crawl.abort()


def _read(crawl: Crawl) -> None:
    if not os.read(0, 4096):
        asyncio.get_running_loop().remove_reader(0)
        crawl.stop("request")


if __name__ == "__main__":
    main()
