"""Pages that people wrote: the documentation of Python as Debian packages it, served by nginx.

The same pages at sixteen addresses, so that sixteen requests can be under way. nginx has one worker, on the last of our
cores, and packs with gzip. Both must be there: `apt-get install nginx-light python3.11-doc`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks._crawling import cores

_PLACES = "/usr/share/doc/python3.*/html/index.html"
_ADDRESSES = [f"127.0.0.{number}" for number in range(2, 18)]
_CONFIGURATION = """
daemon off; worker_processes 1; pid {folder}/pid; error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; keepalive_requests 100000; gzip on; gzip_comp_level 1;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  types {{ text/html html; text/css css; text/plain txt; application/javascript js; image/png png; }}
  server {{ {listen} root {root}; }}
}}
"""


def _nginx() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def _root() -> Path | None:
    return next((page.parent for page in sorted(Path("/").glob(_PLACES[1:]))), None)


def missing() -> list[str]:
    """What is not there, and how to get it."""
    found = [] if _nginx() else ["nginx: apt-get install nginx-light"]
    return found + ([] if _root() else ["documents: apt-get install python3.11-doc"])


@contextmanager
def served() -> Iterator[list[str]]:
    """The seeds of the documents while nginx serves them; nothing may be `missing`."""
    command, root = _nginx(), _root()
    assert command is not None
    assert root is not None
    with socket.socket() as free:
        free.bind((_ADDRESSES[0], 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        listen = " ".join(f"listen {address}:{port};" for address in _ADDRESSES)
        configuration = Path(folder) / "nginx.conf"
        configuration.write_text(_CONFIGURATION.format(folder=folder, listen=listen, root=root))
        Path(folder).chmod(0o755)  # its worker is another user
        pin = {cores()[-1]}
        with subprocess.Popen(
            [command, "-p", folder, "-c", configuration], preexec_fn=lambda: os.sched_setaffinity(0, pin)
        ) as process:
            try:
                _wait_for(port)
                yield [f"http://{address}:{port}/index.html" for address in _ADDRESSES]
            finally:
                process.terminate()


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as client:
            if client.connect_ex((_ADDRESSES[-1], port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("nginx did not start; its own message is above")
