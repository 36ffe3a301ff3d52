"""Jobs of barkspider 0.1.0: what they have is read, to go on with them is refused in one line, and nothing is changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from barkspider.engine import verify_job
from barkspider.engine.checkpoint import JOURNAL, Checkpoint
from barkspider.storage.env import Env
from barkspider.storage.store.journal import Journal, journal_files, read_records
from tests.cli.test_usage import run

DATA = Path(__file__).parents[1] / "data"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a job that is not made by looking at it."""
    files = (
        path for path in folder.rglob("*") if path.is_file() and path.name not in ("job.lock", "log.jsonl")
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(params=["job-1", "job-1-killed", "before its first checkpoint"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of an old job."""
    name = request.param if request.param.startswith("job") else "job-1-killed"
    folder = tmp_path / "job"
    shutil.copytree(DATA / name, folder)
    if name != request.param:  # its records, in a journal that no checkpoint knows of
        (folder / "manifest.json").unlink()
        records = [
            record
            for path in journal_files(Env(), folder / JOURNAL)
            for _, record, _ in read_records(Env(), path)
        ]
        shutil.rmtree(folder / JOURNAL)
        journal = Journal(Env(), folder / JOURNAL, 0)
        for record in records:
            journal.append(record)
        journal.close()
    return folder


@pytest.mark.parametrize(
    "command", [["resume"], ["add", "http://127.0.0.1/"], ["recrawl", "--older-than", "0s"]]
)
def test_a_job_of_an_older_format_is_refused_in_one_line(
    job: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(job)
    name, *rest = command
    assert run(monkeypatch, name, str(job), *rest, "--trust-settings") == 2
    error = capsys.readouterr().err
    assert "was begun by an older barkspider" in error
    assert error.count("\n") == 1
    assert contents(job) == before


@pytest.mark.parametrize("name", ["job-1", "job-1-killed"])
def test_an_older_job_can_be_verified(name: str) -> None:
    found = Checkpoint.read(Env(), DATA / name)
    assert found is not None
    assert found.progress.format == 1
    assert found.counters(Env(), DATA / name).balanced()
    assert [problem for problem in verify_job(DATA / name) if problem.kind == "damage"] == []
