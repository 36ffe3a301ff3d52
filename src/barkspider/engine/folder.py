"""How the folder of a job is told from others. On its own, so that whoever only asks need not load what crawls."""

from __future__ import annotations

from pathlib import Path

from barkspider.core.errors import JobError

SETTINGS = "settings.toml"


def check_job(path: Path) -> None:
    """Raise `JobError` for a folder that is not that of a crawl."""
    if not (path / SETTINGS).is_file():
        raise JobError(f"{path} is not the folder of a crawl; name one that `barkspider crawl` made")
