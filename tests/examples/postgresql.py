"""A PostgreSQL of Debian's for a test: its own cluster in a folder, asked through a socket there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """Where its programs are; None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextmanager
def database() -> Iterator[str]:
    """What to connect to. It runs until the end, and nothing of it is left."""
    bin_folder = programs()
    assert bin_folder is not None
    # It refuses to be run by root; the path of a socket is short.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    home = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    data = home / "data"

    def run(*command: str) -> None:
        subprocess.run([*user, *command], check=True, capture_output=True, cwd="/")

    try:
        home.chmod(0o777)
        run(str(bin_folder / "initdb"), "-D", str(data), "-U", "web", "-A", "trust", "--no-sync")
        options = f"-k {home} -c listen_addresses= -c fsync=off -c max_connections=10"
        run(str(bin_folder / "pg_ctl"), "-D", str(data), "-w", "-o", options, "-l", f"{home}/log", "start")
        try:
            yield f"host={home} user=web dbname=postgres"
        finally:
            run(str(bin_folder / "pg_ctl"), "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
