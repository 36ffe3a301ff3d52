"""A job to be attacked and damaged: a crawl of a small web that was stopped half-way, so that its queues hold something."""

from __future__ import annotations

import shutil
from pathlib import Path

from barkspider import crawl, load_settings, open_job
from barkspider.lab.synthweb import WebSpec, running_web


def make_small_job(folder: Path) -> Path:
    """Crawl 25 pages into a folder."""
    with running_web(WebSpec(seed=3, pages=60, page_bytes=2_000)) as served:
        chosen = served.settings() | {
            "politeness.host_delay": "10ms",
            "politeness.server_delay": "0s",
            "scope.level": "web",
            "seed": "4",
            "memory": "64MB",
            "archive.recent_digests": "1000",
            "limits.pages": "25",
        }
        options = [f"{name}={value}" for name, value in chosen.items()]
        crawl(served.web.seeds(1), folder, load_settings(options=options))
    return folder


def copied(job: Path, folder: Path) -> Path:
    """A copy of a job to do something to."""
    return Path(shutil.copytree(job, folder))


def commands(job: Path) -> dict[str, list[str]]:
    """Every command that opens a job, with arguments that it would do something for; `on` fills in the job."""
    url = open_job(job).query("SELECT url FROM pages WHERE fetch_status = 200 LIMIT 1")["url"][0].as_py()
    return {
        "resume": ["resume", "JOB", "--for", "100ms"],
        "recrawl": [
            "recrawl",
            "JOB",
            "--older-than",
            "0s",
            "--set",
            "limits.time=100ms",
            "--set",
            "limits.pages=0",
        ],
        "add": ["add", "JOB", "http://127.0.0.1/another"],
        "status": ["status", "JOB"],
        "verify": ["verify", "JOB"],
        "query": ["query", "JOB", "SELECT count(*) FROM pages"],
        "report": ["report", "JOB"],
        "show": ["show", "JOB", url],
        "export": ["export", "JOB"],
        "rank": ["rank", "JOB"],
        "plan": ["plan", "--from", "JOB"],
    }


def on(job: Path, command: list[str]) -> list[str]:
    """A command of `commands` for a job."""
    return [str(job) if part == "JOB" else part for part in command]
