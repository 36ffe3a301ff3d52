"""All parts of a crawl on one loop, in this process: as several processes, but for the time that these take to begin."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from barkspider.core.settings import Settings
from barkspider.engine import Crawl, Job
from barkspider.engine.folder import part_folders
from barkspider.engine.trust import write_settings
from barkspider.parallel.division import create_job, share
from barkspider.parallel.post import Post
from barkspider.storage.env import Env


def create(path: Path, settings: Settings, seeds: list[str]) -> None:
    """Make a job, of parts if there are to be several."""
    create_job(path, settings, seeds, Env()).close()


async def crawl_together(path: Path) -> None:
    """Go on with a job of parts until nothing is left anywhere."""
    env, folders, whole = Env(), part_folders(path), Job.open(path, Env())
    settings = whole.settings
    whole.close()
    jobs, posts, crawls = list[Job](), list[Post](), list[Crawl]()
    for number, folder in enumerate(folders):
        if folder != path:
            write_settings(env, folder, share(settings, number))
        jobs.append(Job.open(folder, env, part=True))
        if folder == path:
            crawls.append(Crawl.open(jobs[0]))
            continue
        posts.append(Post(env, folder, jobs[-1].settings))
        crawls.append(Crawl.open(jobs[-1], neighbours=posts[-1]))
    running = asyncio.gather(*(crawl.run() for crawl in crawls))
    quiet: list[Any] = []
    while not running.done():
        await asyncio.wait([running], timeout=0.05)
        if posts and not running.done():
            told = [crawl.about_others(False)["others"] for crawl in crawls]
            sealed, applied = ([each[name] for each in told] for name in ("sealed", "applied"))
            is_quiet = all(each["is_idle"] and not each["unsent"] for each in told)
            if is_quiet and sealed == [list(column) for column in zip(*applied, strict=True)]:
                if quiet == sealed:
                    for crawl in crawls:
                        crawl.end()
                quiet = sealed
            else:
                quiet = []
    await running
    for post in posts:
        post.close()
    for job in jobs:
        job.close()
