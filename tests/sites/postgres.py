"""A server of PostgreSQL for tests: as Debian has it, in a folder of its own, on a loopback port, by a user who is not root."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

USER = "postgres"


def binaries() -> Path | None:
    """Where its programs are; None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


class PostgresServer:
    """Started by `start`, ended by `stop`; what it holds stays in between, and goes with `close`."""

    def __init__(self) -> None:
        bin_folder = binaries()
        assert bin_folder is not None
        self._bin = bin_folder
        self._folder = Path(tempfile.mkdtemp(prefix="sites-postgres-"))
        if os.geteuid() == 0:
            shutil.chown(self._folder, USER, USER)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._run("initdb", "-A", "trust", "-U", "crawl", "--no-sync", "-D", str(self._folder / "data"))
        self.url = f"postgresql://crawl@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run(
            "pg_ctl",
            "-D",
            str(self._folder / "data"),
            "-o",
            options,
            "-l",
            str(self._folder / "log"),
            "-w",
            "start",
        )

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "-w", "stop")

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: str) -> None:
        user = USER if os.geteuid() == 0 else None
        subprocess.run(
            [str(self._bin / program), *arguments],
            user=user, group=user, extra_groups=[] if user else None, cwd="/", check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        )  # fmt: skip
