"""A site made by others, crawled by wget and by barkspider: every page that wget reaches must be in the archive.

The site is the documentation of Python as Debian packages it (python3.11-doc), fetched with apt and served on loopback by
Python's own server. Both obey robots.txt and wait for nothing. Needs apt, dpkg-deb and wget.
"""

from __future__ import annotations

import functools
import http.server
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.engine.warcs import archived

from barkspider import crawl, load_settings

_PACKAGE = "python3.11-doc"
_ROOT = Path("usr/share/doc/python3.11/html")


def run(quick: bool) -> dict[str, Any]:  # noqa: ARG001
    """The whole site in either case."""
    with tempfile.TemporaryDirectory() as folder, _served(_site(Path(folder))) as address:
        start = f"{address}index.html"
        begun = time.monotonic()
        reached = _wget(start, Path(folder))
        wget_seconds = time.monotonic() - begun
        options = ["network.allow=127.0.0.0/8", "scope.level=site"]
        options += [f"politeness.{name}=0s" for name in ("host_delay", "server_delay")]
        options += ["politeness.slow_factor=0", "page.requisites=true", "fetch.max_size=50MB"]
        statistics = crawl(start, Path(folder) / "job", load_settings(options=options))
        found = {_path(url) for url in archived(Path(folder) / "job", "pages")}
    pages = {path for path in reached if path.endswith((".html", "/"))}
    missing = sorted(pages - found)
    return {
        "figures": {
            "reached_by_wget": len(reached),
            "archived": len(found),
            "missing": missing[:20],
            "missing_beside_pages": sorted(reached - pages - found),  # such as what style sheets import
            "wget_seconds": round(wget_seconds, 1),
            "barkspider_seconds": statistics.seconds,
            "failed": statistics.failed,
        },
        "targets": [
            {"name": "pages_of_wget_missing", "value": len(missing), "target": 0, "holds": not missing},
            {"name": "pages", "value": len(pages), "target": 400, "holds": len(pages) >= 400},
        ],
    }


def _site(folder: Path) -> Path:
    subprocess.run(["apt-get", "download", "-qq", _PACKAGE], cwd=folder, check=True)
    (package,) = folder.glob(f"{_PACKAGE}_*.deb")
    subprocess.run(["dpkg-deb", "-x", package, folder / "site"], check=True)
    return folder / "site" / _ROOT


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextmanager
def _served(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()


def _wget(start: str, folder: Path) -> set[str]:
    """The paths of all that wget fetched with 200."""
    log = folder / "wget.log"
    command = ["wget", "--mirror", "--no-verbose", "--page-requisites", "--tries=1", f"--output-file={log}"]
    # It ends with 8 when any link was broken.
    subprocess.run([*command, f"--directory-prefix={folder / 'wget'}", start], check=False, timeout=600)
    lines = log.read_text().splitlines()
    return {_path(line.split("URL:")[1].split(" ")[0]) for line in lines if "URL:" in line and " -> " in line}


def _path(url: str) -> str:
    """What is asked for, however it is escaped."""
    return unquote(urlsplit(url).path)
