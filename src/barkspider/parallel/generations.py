"""What there is on disk of a job that was divided anew, or was about to be: what is of no use goes.

JOB/job.toml                 generation = 2, and the folders of all parts that there were before
JOB/generation-0002/         part-0000/ …, mail/, turns
JOB/part-0000/ …             of the first generation: archive/, log.jsonl, settings.toml, a checkpoint of counters and tables
JOB/archive, manifest.json   instead of these, if the job began with one process
"""

from __future__ import annotations

from barkspider.engine.checkpoint import JOURNAL
from barkspider.engine.folder import DIVISION, earlier_folders, is_generation, parts_in, read_division
from barkspider.engine.history import NAME as HISTORY
from barkspider.engine.job import Job
from barkspider.engine.recrawl import ASKED, LAST
from barkspider.frontier.batches import MAIL, NAME
from barkspider.frontier.census import NAME as CENSUS
from barkspider.parallel.post import TURNS
from barkspider.storage.store.manifest import MANIFEST, read_manifest, reduce_manifest

# What an old part keeps beside its archive: what was counted, and which tables belong to it.
_KEPT = {"crawl", "frontier", "kept", HISTORY}
_WORKING = (JOURNAL, "seen", "star", "beast", "queues", "robots", "cookies", CENSUS, NAME, LAST, ASKED)


def tidy(job: Job) -> None:
    """Remove what a `resize` that was killed has left, on the one side of job.toml or on the other."""
    env, path, earlier = job.env, job.path, earlier_folders(job.path)
    divided = (path / DIVISION).is_file()
    homes = {folder.parent for folder in earlier if folder != path}  # a job of one process has no mail
    current = parts_in(path, read_division(path)) if divided else path
    for name in env.list(path):
        if is_generation(name) and path / name not in homes | {current}:
            env.remove_tree(path / name)
    for folder in earlier:
        there = set(read_manifest(env, folder)[1]) if MANIFEST in env.list(folder) else set()
        if there - _KEPT:
            reduce_manifest(env, folder, there & _KEPT)
        for name in _WORKING:
            env.remove_tree(folder / name)
    for home in homes:
        for name in (MAIL, TURNS):
            env.remove_tree(home / name)
