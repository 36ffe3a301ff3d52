"""The web in a process of its own: starts, tells its ports, and never outlives its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from barkspider.core.errors import BarkspiderError
from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web

from .client import get


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait_for_end(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not _is_running(pid)


def test_settings_for_a_crawler(running: RunningWeb) -> None:
    assert running.settings() == {
        "dns.servers": f"127.0.0.1:{running.dns_port}",
        "network.allow": "127.0.0.0/8",
        "network.ports": f"127.0.0.0/8:80={running.http_port},127.0.0.0/8:443={running.https_port}",
        "fetch.tls_authority": str(running.authority),
    }


def test_the_log_is_written_and_the_process_ends(tmp_path: Path) -> None:
    log = tmp_path / "requests.tsv"
    with running_web(WebSpec(pages=1_000, servers=2), log_path=log) as running:
        url = running.web.seeds()[0]
        assert get(running, url)[0] == 200
        pid = running.process.pid
        assert running.authority is None
        assert "fetch.tls_authority" not in running.settings()
    assert not _is_running(pid)
    assert running.process.returncode == 0
    assert [entry.host for entry in read_log(log)] == [url.split("/")[2]]


def test_a_taken_port_is_an_error_here(running: RunningWeb) -> None:
    taken = running_web(WebSpec(pages=1_000, servers=1), port=running.http_port)
    with pytest.raises(BarkspiderError, match="cannot be served"), taken:
        pass


_PARENT = """
import time
from barkspider.lab.synthweb import WebSpec, running_web
with running_web(WebSpec(pages=1_000, servers=1)) as running:
    print(running.process.pid, flush=True)
    time.sleep(60)
"""


def test_the_child_dies_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        assert _is_running(child)
        parent.send_signal(signal.SIGKILL)
    assert _wait_for_end(child)


_COMMAND = """
import sys
import typer
from barkspider.cli.web import web
app = typer.Typer()
app.command()(web)
app()
"""


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_stopped(stop: signal.Signals, tmp_path: Path) -> None:
    log = tmp_path / "requests.tsv"
    arguments = ["--pages", "1000", "--servers", "2", "--json", "--log", str(log)]
    command = [sys.executable, "-c", _COMMAND, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        told = json.loads(process.stdout.readline())
        assert all(told[name] for name in ("http_port", "https_port", "dns_port"))
        assert Path(told["settings"]["fetch.tls_authority"]).read_text().startswith("-----BEGIN CERTIFICATE")
        os.kill(process.pid, stop)
        assert process.wait(10) == 0
    assert log.exists()
