"""The program as a user runs it: a crawl; in processes of its own signals, closed streams, a full disk."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.load import load_settings
from barkspider.lab.synthweb import HAZARDS, RunningWeb, WebSpec, running_web
from tests.cli.test_usage import run
from tests.engine.warcs import archived, check_warcs

PROGRAM = [sys.executable, "-m", "barkspider.cli"]


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(WebSpec(seed=2, pages=3_000, page_bytes=5_000)) as web:
        yield web


def options(served: RunningWeb) -> list[str]:
    chosen = served.settings() | {
        "politeness.host_delay": "5ms",
        "politeness.server_delay": "0s",
        "scope.level": "web",
        "memory": "64MB",
        "archive.recent_digests": "1000",
    }
    return [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]


def start(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def end(process: subprocess.Popen[str], timeout: float = 60.0) -> tuple[int, str, str]:
    try:
        output, errors = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return process.returncode, output, errors


def complaints(errors: str) -> list[str]:
    """What a crawl wrote to standard error, but for how far it was every ten seconds: a machine may be slow."""
    return [line for line in errors.splitlines() if not re.match(r"\d+ s: [\d,]+ pages, ", line)]


def wait_for(path: Path, pattern: str) -> None:
    limit = time.monotonic() + 30
    while not list(path.glob(pattern)):
        assert time.monotonic() < limit, f"no {pattern} in {path}"
        time.sleep(0.05)


def test_a_crawl_with_limits(
    served: RunningWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = ("--pages", "50", "--json", "--job", "j", *options(served))
    assert run(monkeypatch, "crawl", served.web.seeds(1)[0], *chosen) == 0
    output, errors = capsys.readouterr()
    assert complaints(errors) == []
    summary: dict[str, Any] = json.loads(output)
    keys = [
        "pages",
        "bytes",
        "links",
        "unique_urls",
        "pages_per_second",
        "cpu_seconds",
        "peak_rss",
        "queue_max",
        "refused",
        "failed",
    ]
    assert all(key in summary for key in keys)
    assert summary["pages"] == len(archived(tmp_path / "j", "pages")) == 50
    assert check_warcs(tmp_path / "j") > 100
    written = tomllib.loads((tmp_path / "j" / "settings.toml").read_text())
    assert written["limits"]["pages"] == 50
    assert written["seed"] > 0
    again = load_settings(file=tmp_path / "j" / "settings.toml")
    assert again.politeness.host_delay == 0.005


def test_a_summary_for_people(
    served: RunningWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seeds.txt").write_text("\n".join(served.web.seeds(3)))
    chosen = ("--seeds", "seeds.txt", "--depth", "1", "--pages", "20", *options(served))
    assert run(monkeypatch, "crawl", *chosen) == 0
    output, errors = capsys.readouterr()
    assert complaints(errors) == []
    assert "pages" in output
    assert "20 in" in output
    (job,) = (tmp_path / "jobs").iterdir()
    assert f"jobs/{job.name}/archive" in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_cleanly(served: RunningWeb, tmp_path: Path, number: signal.Signals) -> None:
    process = start(
        "crawl", served.web.seeds(1)[0], "--json", "--job", "j", *options(served), folder=tmp_path
    )
    wait_for(tmp_path / "j" / "archive", "pages-*")
    process.send_signal(number)
    code, output, errors = end(process)
    assert (code, len(complaints(errors))) == (0, 1), errors
    summary = json.loads(output)
    assert summary["stopped_by"] == "signal"
    assert summary["pages"] == len(archived(tmp_path / "j", "pages"))
    check_warcs(tmp_path / "j")


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        patient = (
            "--set",
            "limits.grace=10m",
            "--set",
            "fetch.header_timeout=10m",
            "--set",
            "fetch.timeout=10m",
        )
        process = start(
            "crawl", url, "--allow-network", "127.0.0.0/8", "--json", "--job", "j", *patient, folder=tmp_path
        )
        with silent.accept()[0] as connection:
            connection.recv(1000)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            assert process.stderr.readline().startswith("stopping")
            process.send_signal(signal.SIGINT)
            code, output, _ = end(process)
    assert code == 0
    assert json.loads(output)["stopped_by"] == "signal"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_no_harm(served: RunningWeb, tmp_path: Path, closed: str) -> None:
    command = [*PROGRAM, "crawl", served.web.seeds(1)[0], "--pages", "5", "--job", "j"]
    shell = f"exec {shlex.join([*command, *options(served)])} {closed}"
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == 0
    assert len(archived(tmp_path / "j", "pages")) == 5


def test_a_terminal_that_knows_ascii_only(served: RunningWeb, tmp_path: Path) -> None:
    command = [*PROGRAM, "crawl", served.web.seeds(1)[0], "--pages", "5", *options(served)]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run(command, cwd=tmp_path, env=plain, capture_output=True, timeout=60)
    assert (done.returncode, complaints(done.stderr.decode())) == (0, [])


def test_what_was_fetched_is_on_disk_while_the_crawl_goes_on(served: RunningWeb, tmp_path: Path) -> None:
    slow = ("--set", "politeness.host_delay=1h")
    process = start(
        "crawl",
        served.web.seeds(1)[0],
        "--job",
        "j",
        "--scope",
        "page",
        *options(served),
        *slow,
        folder=tmp_path,
    )
    limit = time.monotonic() + 30
    while not any(path.stat().st_size for path in (tmp_path / "j" / "archive").glob("robots-*.open")):
        assert time.monotonic() < limit
        time.sleep(0.05)
    process.kill()
    end(process)


def test_a_full_disk_gives_a_line_and_a_summary(served: RunningWeb, tmp_path: Path) -> None:
    limited = f"ulimit -f 60; exec {shlex.quote(sys.executable)} -m barkspider.cli crawl {served.web.seeds(1)[0]} --json --job j "
    done = subprocess.run(
        ["bash", "-c", "trap '' XFSZ; " + limited + shlex.join(options(served))],
        cwd=tmp_path, capture_output=True, timeout=60, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert len(complaints(done.stderr)) == 1
    assert "cannot write" in done.stderr
    assert json.loads(done.stdout)["stopped_by"] == "disk"


def test_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, output, errors = end(start("demo", "--for", "2s", folder=tmp_path), timeout=120)
    assert (code, complaints(errors)) == (0, [])
    assert "The synthetic web" in output
    assert "hazards that it met" in output
    met = [line.split()[1] for line in output.splitlines() if line.startswith("│ ") and line.count("│") == 5]
    assert met
    assert set(met) <= set(HAZARDS)
    *_, last = output.splitlines()
    asked = shlex.split(last.removeprefix("Ask it yourself: barkspider "))
    assert asked[0] == "query"
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *asked) == 0
    assert "outcome" in capsys.readouterr().out
    (job,) = (tmp_path / "jobs").iterdir()
    assert len(archived(job, "pages")) > 20
    check_warcs(job)
