"""`barkspider verify`, on a job in order, one that was killed, and ones with every kind of file damaged."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from barkspider import crawl, load_settings
from barkspider.engine import verify_job
from barkspider.engine.checkpoint import Checkpoint
from barkspider.engine.job import hold
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import MANIFEST, read_manifest
from tests.cli.program import run


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(WebSpec(seed=3, pages=60, page_bytes=2_000)) as web:
        yield web


def options(served: RunningWeb, *more: str) -> list[str]:
    chosen = served.settings() | {
        "politeness.host_delay": "10ms",
        "politeness.server_delay": "0s",
        "scope.level": "web",
        "seed": "4",
        "memory": "64MB",
        "archive.recent_digests": "1000",
    }
    return [*(f"{name}={value}" for name, value in chosen.items()), *more]


@pytest.fixture(scope="module")
def ended(served: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job whose crawl was stopped half-way, so that its queues are not empty."""
    job = tmp_path_factory.mktemp("ended") / "job"
    done = crawl(served.web.seeds(1), job, load_settings(options=options(served, "limits.pages=25")))
    assert done.stopped_by == "pages"
    return job


@pytest.fixture(scope="module")
def killed(served: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job whose crawl was killed between two checkpoints."""
    job = tmp_path_factory.mktemp("killed") / "job"
    child = os.fork()
    if not child:
        slowly = options(served, "checkpoint=200ms", "politeness.host_delay=100ms")
        crawl(served.web.seeds(1), job, load_settings(options=slowly))
        os._exit(0)
    limit = time.monotonic() + 60
    while not (job / "manifest.json").exists() or not has_outcomes(job):
        assert time.monotonic() < limit
        os.kill(child, signal.SIGCONT)
        time.sleep(0.01)
        os.kill(child, signal.SIGSTOP)  # so that no checkpoint comes between the look and the kill
        os.waitpid(child, os.WUNTRACED)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return job


def has_outcomes(job: Path) -> bool:
    return any("records since the last checkpoint" in problem.what for problem in verify_job(job))


@pytest.fixture
def job(ended: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(ended, tmp_path / "job"))


def found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], job: Path) -> dict[str, Any]:
    """What is told as JSON; the exit code agrees with it."""
    code = run(monkeypatch, "verify", str(job), "--json")
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["sound"] == (code == 0)
    assert told["sound"] == all(problem["kind"] != "damage" for problem in told["problems"])
    return told


def test_a_job_in_order_is_sound(
    ended: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in ended.rglob("*") if path.is_file()}
    told = found(monkeypatch, capsys, ended)
    assert told["problems"] == []
    assert told["rows"] > 25
    assert told["records"] > 50
    assert told["files"] > 15
    assert run(monkeypatch, "verify", str(ended)) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("sound: ")
    assert shown.endswith(" rows were checked; nothing wrong\n")
    assert before == {path: path.stat().st_mtime_ns for path in ended.rglob("*") if path.is_file()}


def test_who_may_not_write_can_verify(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests may run as root, whom nothing is refused: so opening for writing is."""
    really = os.open

    def refusing(path: str | Path, flags: int, *more: Any, **others: Any) -> int:
        if str(path).startswith(str(job)) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError(13, "Permission denied", str(path))
        return really(path, flags, *more, **others)

    monkeypatch.setattr(os, "open", refusing)
    assert run(monkeypatch, "verify", job) == 0
    with hold(job):
        assert run(monkeypatch, "verify", job) == 2
    assert "is in use" in capsys.readouterr().err
    (job / "job.lock").unlink()
    assert run(monkeypatch, "verify", job) == 0


def test_what_a_kill_left_is_recoverable(
    killed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = found(monkeypatch, capsys, killed)
    assert {problem["kind"] for problem in told["problems"]} <= {"recoverable", "note"}
    assert run(monkeypatch, "verify", str(killed)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("records since the last checkpoint" in line for line in lines)
    assert all(line.startswith(("recoverable: ", "note: ")) for line in lines[:-1])


def test_the_status_of_a_crawl_that_was_killed_tells_how_far_it_was(
    killed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "status", killed, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["state"] == "killed"
    checkpoint = Checkpoint.read(Env(), killed)
    assert checkpoint is not None
    assert told["pages"] == checkpoint.counters(Env(), killed).pages
    assert told["discovered"] > 0
    assert told["bytes"] == checkpoint.progress.tally["bytes"]
    assert run(monkeypatch, "status", killed) == 0
    shown = capsys.readouterr().out
    assert f"{told['pages']} in {told['seconds']:.1f} s" in shown
    assert "its last checkpoint (" in shown


def middle(path: Path) -> int:
    """A byte of what a file says. Most of a small Parquet file is its footer, which has no checksum."""
    if path.suffix != ".parquet":
        return path.stat().st_size // 2
    chunk = pq.read_metadata(path).row_group(0).column(0)
    start: int = chunk.dictionary_page_offset or chunk.data_page_offset
    return start + int(chunk.total_compressed_size) - 1


def left_over(job: Path) -> set[Path]:
    """What a merge wrote that had not ended at the last checkpoint: nobody reads it."""
    named = set()
    for folder in (manifest.parent for manifest in job.rglob(MANIFEST)):
        states = read_manifest(Env(), folder)[1].values()
        named |= {folder / name for state in states for name in state.get("files", {})}
    return {path for suffix in (".known", ".results") for path in job.rglob(f"*{suffix}")} - named


def test_whatever_kind_of_file_is_damaged_in_the_middle_is_named(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bit flips in the middle of one file of each kind; it is put back before the next one."""
    skipped = ("settings.toml", "seeds.txt", "log.jsonl", "job.lock")
    kinds: dict[str, Path] = {}
    unneeded = left_over(job)
    for path in sorted(job.rglob("*")):
        if path.is_file() and path.name not in skipped and path not in unneeded and path.stat().st_size:
            kinds.setdefault(f"{path.parent.relative_to(job)} {path.suffix}", path)
    least = {".cdxj", ".gz", ".json", ".known", ".parquet", ".snapshot"}  # which queues have files is chance
    assert least <= {suffix for _, suffix in map(str.split, kinds)}
    unnoticed = []
    for kind, path in kinds.items():
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[middle(path)] ^= 1
        path.write_bytes(damaged)
        told = found(monkeypatch, capsys, job)
        named = [f"{problem['file']}: {problem['what']}" for problem in told["problems"]]
        if told["sound"] or not any(path.name in name for name in named):
            unnoticed.append((kind, path.name, told["problems"]))
        path.write_bytes(whole)
    assert unnoticed == []
    assert found(monkeypatch, capsys, job)["problems"] == []


def test_a_warc_file_that_is_cut_is_named(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (warc,) = (job / "archive").glob("pages-*.warc.gz")
    os.truncate(warc, warc.stat().st_size - 10)
    assert run(monkeypatch, "verify", str(job)) == 1
    shown = capsys.readouterr().out
    assert f"damage: {warc.name}: there is no whole record at byte" in shown
    assert "\nDAMAGED: " in shown


def test_a_file_that_is_missing_is_named(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (memory,) = (job / "frontier").iterdir()
    memory.unlink()
    told = found(monkeypatch, capsys, job)
    assert {"kind": "damage", "file": f"frontier/{memory.name}", "what": "is missing"} in told["problems"]


def test_a_job_in_use_or_none_is_refused(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with hold(job):
        assert run(monkeypatch, "verify", str(job)) == 2
    assert "is in use by another barkspider" in capsys.readouterr().err
    for path in (tmp_path, tmp_path / "none", job / "settings.toml"):
        assert run(monkeypatch, "verify", str(path)) == 2
        errors = capsys.readouterr().err
        assert errors.count("\n") == 1
        assert "is not the folder of a crawl" in errors
