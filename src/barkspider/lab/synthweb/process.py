"""The web in a process of its own, so that a crawler beside it keeps its core and its GIL."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import uvloop

from barkspider.core.errors import BarkspiderError
from barkspider.lab.synthweb.answer import AnyWeb
from barkspider.lab.synthweb.server import Server
from barkspider.lab.synthweb.spec import WebSpec
from barkspider.lab.synthweb.stored import StoredWeb
from barkspider.lab.synthweb.web import Web

# Stopping takes milliseconds; a child that does not is stuck.
_STOP_TIMEOUT = 5.0
# How often the child looks whether its parent is still there, besides watching its standard input.
_PARENT_INTERVAL = 1.0


@dataclass
class RunningWeb:
    """A web that is being served by another process. Made by `running_web`."""

    spec: WebSpec
    http_port: int
    https_port: int | None
    dns_port: int
    authority: Path | None
    """The PEM file of the authority that signs the web's certificates."""
    log_path: Path | None
    process: subprocess.Popen[str] = field(repr=False)

    @cached_property
    def web(self) -> Web:
        """The truth about the web that is served."""
        web = Web(self.spec)
        web.ground.has_https = self.https_port is not None
        return web

    def settings(self) -> dict[str, str]:
        """The settings with which a crawler finds this web instead of the real one."""
        return crawler_settings(self.http_port, self.https_port, self.dns_port, self.authority)


def crawler_settings(
    http_port: int, https_port: int | None, dns_port: int, authority: Path | None
) -> dict[str, str]:
    """Dotted settings and their values for a crawl of a web at these ports.

    >>> crawler_settings(8080, None, 5353, None)["network.ports"]
    '127.0.0.0/8:80=8080'
    """
    ports = f"127.0.0.0/8:80={http_port}"
    settings = {"dns.servers": f"127.0.0.1:{dns_port}", "network.allow": "127.0.0.0/8"}
    if https_port is not None:
        ports += f",127.0.0.0/8:443={https_port}"
        settings["fetch.tls_authority"] = str(authority)
    return settings | {"network.ports": ports}


@contextmanager
def running_web(
    spec: WebSpec | None = None, https: bool = False, log_path: Path | None = None, port: int = 0
) -> Iterator[RunningWeb]:
    """Serves a web in a child process as long as the block runs.

    The child ends when its standard input closes, which also happens when this process dies.

    >>> with running_web(WebSpec(pages=1_000, servers=4)) as running:
    ...     sorted(running.settings())
    ['dns.servers', 'network.allow', 'network.ports']
    """
    spec = spec or WebSpec()
    with _child({"spec": spec.to_json()}, https, log_path, port) as (ports, authority, process):
        yield RunningWeb(
            spec, ports["http_port"], ports["https_port"], ports["dns_port"], authority, log_path, process
        )


@contextmanager
def running_graph(
    graph: Path, servers: int = 0, https: bool = False, delay: float = 0.0
) -> Iterator[dict[str, str]]:
    """Serves a stored graph as `running_web` does, each page after so many seconds; gives the settings with which a crawler
    finds it."""
    what = {"graph": str(graph), "servers": servers, "delay": delay}
    with _child(what, https, None, 0) as (ports, authority, _):
        yield crawler_settings(ports["http_port"], ports["https_port"], ports["dns_port"], authority)


@contextmanager
def _child(
    what: dict[str, Any], https: bool, log_path: Path | None, port: int
) -> Iterator[tuple[dict[str, Any], Path | None, subprocess.Popen[str]]]:
    """A child that serves; its ports, and the file of its authority."""
    with tempfile.TemporaryDirectory(prefix="synthweb-") as folder:
        authority = Path(folder) / "authority.pem" if https else None
        order = {
            **what,
            "http_port": port,
            "https_port": 0 if https else None,
            "authority": str(authority) if authority else None,
            "log": str(log_path) if log_path else None,
        }
        command = [sys.executable, "-m", "barkspider.lab.synthweb"]
        # A session of its own: Ctrl-C in the terminal is for us, and we end the child.
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                yield _hand_over(process, order), authority, process
            finally:
                _end(process)


def _hand_over(process: subprocess.Popen[str], order: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise BarkspiderError("the synthetic web did not start; its own message is above")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise BarkspiderError(f"the synthetic web did not start: {answer['error']}")
    return answer


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()


def child_main() -> None:
    """What the child process does: takes its order from standard input, serves, ends with the input."""
    order = json.loads(sys.stdin.readline())
    try:
        web: AnyWeb
        if "graph" in order:
            web = StoredWeb.load(Path(order["graph"]), order["servers"], order["delay"])
        else:
            web = Web(WebSpec.from_json(order["spec"]))
        server = Server(
            web,
            order["http_port"],
            order["https_port"],
            log=Path(order["log"]) if order["log"] else None,
            authority=Path(order["authority"]) if order["authority"] else None,
        )
        uvloop.run(serve_until(server, _print_ports, _parent_is_gone))
    except BarkspiderError as error:
        print(json.dumps({"error": str(error)}), flush=True)


async def serve_until(
    server: Server, started: Callable[[Server], None], watch: Callable[[asyncio.Event], None]
) -> None:
    """Serves until the event is set that `watch` is given, or SIGTERM comes; calls `started` at the start."""
    over = asyncio.Event()
    # Before anyone is told that the web is there, so that being stopped early is no surprise.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    watch(over)
    await server.start()
    try:
        started(server)
        await over.wait()
    finally:
        await server.stop()


def _print_ports(server: Server) -> None:
    ports = {"http_port": server.http_port, "https_port": server.https_port, "dns_port": server.dns_port}
    print(json.dumps(ports), flush=True)


def _parent_is_gone(over: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    parent = os.getppid()

    def read() -> None:
        if not os.read(0, 4_096):
            loop.remove_reader(0)
            over.set()

    def look() -> None:
        if os.getppid() != parent:
            over.set()
        loop.call_later(_PARENT_INTERVAL, look)

    loop.add_reader(0, read)
    look()
