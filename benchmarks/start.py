"""CPU that a command takes before it does anything: help, a job that is looked at, the first request of a crawl.

Each is a process of its own, with kernels that are compiled already and files that were read before; the least of five. The web
is one page on loopback, which says how much CPU the crawl had taken when it was asked for. Once, kernels are not compiled
yet, as at the first start on a machine: then it is the time until the page is asked for.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_PAGE = b"<title>one</title><p>A page."
_TIMES = 5
_MOST = {"--help": 0.3, "status": 0.7, "query": 0.7, "first request": 1.5}  # seconds
_MOST_COLD = 20.0  # seconds of time


def run(quick: bool) -> dict[str, Any]:
    """Quick: each once, after once that does not count, and nothing is compiled."""
    times = 1 if quick else _TIMES
    with tempfile.TemporaryDirectory() as folder, _web() as web:
        job = str(Path(folder) / "job-0")
        firsts = [web.crawl(Path(folder) / f"job-{number}") for number in range(times + 1)][1:]
        cold = None
        if not quick:
            began = time.monotonic()
            web.crawl(Path(folder) / "job-cold", cache=Path(folder) / "kernels")
            cold = round(web.came["/"] - began, 1)
        commands = {
            "--help": ["--help"],
            "status": ["status", job],
            "query": ["query", job, "SELECT count(*) FROM pages"],
        }
        spent = {
            name: [_cpu(arguments) for _ in range(times + 1)][1:] for name, arguments in commands.items()
        }
    values = {**{name: min(each) for name, each in spent.items()}, "first request": min(firsts)}
    targets = [
        {
            "name": f"{name}, s of CPU",
            "value": round(value, 2),
            "target": _MOST[name],
            "holds": value <= _MOST[name],
        }
        for name, value in values.items()
    ]
    targets.append(
        {
            "name": "first page, nothing compiled, s",
            "value": cold,
            "target": _MOST_COLD,
            "holds": None if cold is None else cold <= _MOST_COLD,
        }
    )
    return {"figures": {}, "targets": targets}


def _cpu(arguments: Sequence[str]) -> float:
    """Seconds that a command takes as a whole."""
    before = _children()
    subprocess.run(
        [sys.executable, "-m", "barkspider.cli", *arguments], stdout=subprocess.DEVNULL, check=True
    )
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Web:
    """One page, what the crawl that asks for it had taken when its first request came, and when each path came first."""

    def __init__(self) -> None:
        self.port, self.asking, self.taken = 0, 0, list[float]()
        self.came: dict[str, float] = {}

    def asked(self, path: str) -> None:
        """A request came."""
        self.came.setdefault(path, time.monotonic())
        if not self.taken:
            fields = Path(f"/proc/{self.asking}/stat").read_text().rpartition(")")[2].split()
            self.taken.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))

    def crawl(self, job: Path, cache: Path | None = None) -> float:
        """Seconds of CPU until the first request; with `cache`, kernels are looked for and kept there alone."""
        self.taken.clear()
        self.came.clear()
        environment = os.environ if cache is None else {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
        url = f"http://127.0.0.1:{self.port}/"
        options = ["network.allow=127.0.0.0/8", "limits.pages=1", "limits.grace=1s"]
        chosen = [part for option in options for part in ("--set", option)]
        command = [sys.executable, "-m", "barkspider.cli", "crawl", url, "--job", str(job), *chosen]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment) as process:
            self.asking = process.pid
        (taken,) = self.taken
        return taken


@contextmanager
def _web() -> Iterator[_Web]:
    web = _Web()

    class Handler(BaseHTTPRequestHandler):
        """Answers with the one page."""

        def do_GET(self) -> None:
            web.asked(self.path)
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(_PAGE)))
            self.end_headers()
            self.wfile.write(_PAGE)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
