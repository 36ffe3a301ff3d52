"""What may be changed of a crawl while it runs: its limits. Rules about URLs are given as outcomes (`rules`).

The settings of the job are written first, then the crawl follows them: so whatever ends the process, `resume` goes on with what
was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from barkspider.core.errors import UsageError
from barkspider.core.load import change_settings
from barkspider.core.settings import Settings
from barkspider.engine.job import Job
from barkspider.engine.trust import read_settings, write_settings

CHANGEABLE = ("limits.pages", "limits.bytes", "limits.time")


def change_limits(job: Job, options: Sequence[str]) -> Settings:
    """Give a job that runs other limits, as `limits.pages=1000`; the settings that are in force from now on."""
    for option in options:
        name = option.partition("=")[0].strip()
        if name not in CHANGEABLE:
            raise UsageError(f"{name!r} cannot be changed while a crawl runs; {', '.join(CHANGEABLE)} can")
    stored = change_settings(read_settings(job.env, job.path), options)
    write_settings(job.env, job.path, stored)
    job.settings = replace(job.settings, limits=stored.limits)
    return job.settings
