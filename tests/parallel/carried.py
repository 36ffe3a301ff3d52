"""A crawl by parts that never see each other, whose batches are carried in a folder now and then, against the truth."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from barkspider.engine import verify_job
from barkspider.engine.folder import archive_folders
from barkspider.lab.synthweb import RunningWeb
from tests.engine.killed import crawl_options
from tests.engine.warcs import archived

_ROUNDS = 20


def run(served: RunningWeb, order: dict[str, Any], folder: Path, processes: int) -> dict[str, Any]:
    """Crawl on so many machines, one part each, in turn, and carry one folder round until there is nothing in it.

    After the first round the folder is lost once: what was in it has to be carried again.
    """
    stick = folder / "stick"
    jobs = [folder / f"machine-{part}" for part in range(processes)]
    seeds, rounds, carried = served.web.seeds(1), 0, 0
    while rounds < _ROUNDS:
        rounds += 1
        came, waiting = 0, 0
        for part, job in enumerate(jobs):
            if job.exists():
                came += (
                    _told("exchange", str(job), "--from", str(stick))["from"]["batches"]
                    if stick.exists()
                    else 0
                )
                _told("resume", str(job))
            else:
                options = [*crawl_options(served, order), "memory=64MB", f"parallel.here={part}"]
                settings = [word for option in options for word in ("--set", option)]
                _told("crawl", *seeds, "--job", str(job), "--processes", str(processes), *settings)
            waiting += _told("exchange", str(job), "--to", str(stick))["to"]["waiting"]
        carried += came
        if rounds == 1:
            shutil.rmtree(stick)
        elif not came and not waiting:
            break
    pages = Counter(url for job in jobs for part in archive_folders(job) for url in archived(part, "pages"))
    truth = served.web.reachable_urls(seeds)
    return {
        "rounds": rounds,
        "carried": carried,
        "truth": len(truth),
        "missing": len(truth - set(pages)),
        "not_in_truth": len(set(pages) - truth),
        "archived_twice": sum(count > 1 for count in pages.values()),
        "problems": [str(problem) for job in jobs for problem in verify_job(job)],
    }


def _told(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "barkspider.cli", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told
