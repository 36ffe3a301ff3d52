"""Seeds that nobody answers at, as a user meets them: told at once, shown while it lasts, tried again when asked to."""

from __future__ import annotations

import io
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.console import Console

from barkspider.cli import run as running
from barkspider.core.events import Counters
from barkspider.engine import ask
from barkspider.engine.statistics import Problem, Tally
from tests.cli.program import run
from tests.cli.test_runs import end, start

OPEN = ("--allow-network", "127.0.0.0/8", "--set", "memory=64MB")


@pytest.fixture
def dead() -> Iterator[str]:
    """A URL at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


def test_a_crawl_of_dead_seeds_ends_and_says_why(
    dead: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "crawl", dead, *OPEN, "--job", "j", "--json") == 1
    output, errors = capsys.readouterr()
    why = "nobody answers (127.0.0.1: robots.txt connect_failed)"
    assert errors == f"barkspider: {why}; `barkspider resume j` tries again\n"
    told = json.loads(output)
    assert (told["stopped_by"], told["deferred"] + told["queued"]) == ("unreachable", 1)
    assert told["problems"] == [{"host": "127.0.0.1", "what": "robots", "why": "connect_failed", "times": 1}]
    assert run(monkeypatch, "status", "j") == 0
    shown = capsys.readouterr().out
    assert "127.0.0.1: robots.txt connect_failed" in shown
    assert "unreachable" in shown


def test_a_name_that_cannot_be_resolved_ends_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:  # a name server that says nothing
        mute.bind(("127.0.0.1", 0))
        server = f"dns.servers=127.0.0.1:{mute.getsockname()[1]}"
        quick = ("--set", server, "--set", "dns.timeout=10ms", "--set", "dns.tries=1")
        assert run(monkeypatch, "crawl", "http://a.example/", *OPEN, *quick, "--job", "j") == 1
    output, errors = capsys.readouterr()
    assert errors.startswith("barkspider: nobody answers (a.example: name dns_failure); ")
    assert "a.example: name dns_failure" in output  # in the summary


def test_resume_tries_again_and_ends_again(
    dead: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    soon = ("--set", "politeness.retry_delay=10ms", "--set", "politeness.host_delay=1ms")
    assert run(monkeypatch, "crawl", dead, *OPEN, *soon, "--job", "j", "--json") == 1
    capsys.readouterr()
    assert run(monkeypatch, "resume", "j", "--json") == 1
    output, errors = capsys.readouterr()
    assert json.loads(output)["robots_failed"] == {"connect_failed": 2}
    assert "nobody answers" in errors


def test_progress_is_a_line_where_there_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "_PROGRESS", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        assert run(monkeypatch, "crawl", url, *OPEN, "--set", "fetch.header_timeout=300ms", "--json") == 1
    output, errors = capsys.readouterr()
    *lines, last = errors.splitlines()
    assert "0 s: 0 pages, 1 URLs wait, 0 in flight" in lines
    assert "nobody answers (127.0.0.1: robots.txt timeout_headers)" in last
    assert json.loads(output)["stopped_by"] == "unreachable"


def test_ctrl_c_leaves_the_problems_in_the_summary(dead: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.2", 0)) as silent:
        seeds = (dead, f"http://127.0.0.2:{silent.getsockname()[1]}/")
        process = start("crawl", *seeds, *OPEN, "--set", "limits.grace=0s", "--job", "j", folder=tmp_path)
        with silent.accept()[0]:
            limit = time.monotonic() + 30
            while not (ask(tmp_path / "j", "status") or {}).get("problems"):
                assert time.monotonic() < limit
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            code, output, _ = end(process)
    assert code == 0
    assert "127.0.0.1: robots.txt connect_failed" in output


def test_the_live_view_shows_problems_and_why_a_crawl_pauses(dead: str) -> None:
    problems = (Problem("127.0.0.1", "robots", "connect_failed", 2),)
    gauges = {"seen": 1, "largest": 1, "primary": 1, "secondary": 0, "hosts": 1}
    now = Tally().statistics(60.0, Counters(discovered=1, queued=1), gauges, "", problems)
    console = Console(file=io.StringIO(), width=100)
    console.print(running.picture(now, f"barkspider: {dead}", 0.0, "paused (disk)"))
    console.print(running.picture(now, "barkspider", 0.0, "running"))
    assert isinstance(console.file, io.StringIO)
    first, second = re.split(r"barkspider *\n", console.file.getvalue())
    assert f"{dead}: paused (disk)" in first
    assert "paused" not in second
    assert "problem  127.0.0.1: robots.txt connect_failed (2 times)" in second


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


def test_where_anybody_answers_the_others_get_all_their_retries(
    dead: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    soon = ("--set", "politeness.retry_delay=10ms", "--set", "politeness.host_delay=1ms")
    with ThreadingHTTPServer(("127.0.0.2", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.2:{server.server_port}/"
        assert run(monkeypatch, "crawl", dead, url, *OPEN, *soon, "--json") == 1
        server.shutdown()
    output, errors = capsys.readouterr()
    told = json.loads(output)
    assert (told["stopped_by"], told["robots_failed"]) == ("done", {"connect_failed": 3})
    assert told["problems"][0]["times"] == 3
    assert "no page could be fetched (failed: http_404 1; refused: robots_unreachable 1" in errors
