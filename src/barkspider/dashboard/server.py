"""The process that serves a dashboard."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import uvicorn

from barkspider.core.errors import UsageError
from barkspider.dashboard.app import Dashboard

# A page that is being loaded when a crawl ends is loaded whole: its files come a moment after it.
_QUIET, _LONGEST = 1.0, 4.0  # seconds
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def serve(
    job: Path, host: str, port: int, token: str, announce: Callable[[str], None], *, with_parent: bool = False
) -> None:
    """Serve until Ctrl-C, or with its parent until standard input ends. `announce` is given the address with its token."""
    listener = _listen(host, port)
    port = listener.getsockname()[1]
    own = f"[{host}]" if ":" in host else host
    names = [*_LOOPBACK, own] if is_loopback(host) else [own]
    dashboard = Dashboard(job, [f"{name}:{port}" for name in names], token)
    config = uvicorn.Config(
        dashboard.guard,
        log_level="warning",
        access_log=False,
        ws="none",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=3,  # seconds for an answer that is being made
    )
    server = uvicorn.Server(config)
    if with_parent:
        threading.Thread(target=_end_with_parent, args=(server, dashboard), daemon=True).start()
    announce(f"http://{own}:{port}/?token={dashboard.guard.token}")
    with listener:
        server.run(sockets=[listener])


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can come in there.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)  # who comes before the loop runs waits for it
    except OSError as error:
        raise UsageError(
            f"cannot listen at {host}:{port}: {error.strerror}; choose another --port"
        ) from error
    return listener


def _end_with_parent(server: uvicorn.Server, dashboard: Dashboard) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    dashboard.ends = True  # which pages that are open are told
    limit = time.monotonic() + _LONGEST
    while not dashboard.guard.is_quiet(_QUIET) and time.monotonic() < limit:
        time.sleep(0.05)
    server.should_exit = True
