"""What `resize` refuses, what it leaves, and that every command finds what was archived before."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barkspider import crawl, load_settings, open_job
from barkspider.engine import Job
from barkspider.engine.folder import archive_folders, part_folders, read_division
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from barkspider.storage.env import Env
from tests.cli.program import run
from tests.engine.warcs import archived

Program = Callable[..., str]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    """Runs a command; what it printed, or complained of if that is expected."""

    def call(*arguments: str, code: int = 0) -> str:
        assert run(monkeypatch, *arguments) == code, capsys.readouterr()
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return call


def settings_of(served: RunningWeb, *more: str) -> list[str]:
    chosen = [f"{name}={value}" for name, value in served.settings().items()]
    chosen += ["politeness.host_delay=10ms", "politeness.server_delay=0s", "politeness.slow_factor=0"]
    return [*chosen, "memory=64MB", "seed=7", "scope.level=web", "limits.pages=25", *more]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    spec = WebSpec(seed=5, pages=60, domains=8, page_bytes=2_000)
    with running_web(spec, log_path=tmp_path_factory.mktemp("web") / "requests.log") as web:
        yield web


@pytest.fixture(scope="module")
def small(served: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of one process that was stopped half-way."""
    job = tmp_path_factory.mktemp("small") / "job"
    crawl(served.web.seeds(1), job, load_settings(options=settings_of(served)))
    return job


@pytest.fixture
def job(small: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small, tmp_path / "jobs" / "web"))


def ranks(told: str) -> dict[str, Any]:
    """Without what it cost."""
    costs = ("seconds", "cpu_seconds", "peak_rss")
    return {name: value for name, value in json.loads(told).items() if name not in costs}


def test_what_was_archived_before_is_found_by_every_command(job: Path, program: Program) -> None:
    before = open_job(job)
    pages = before.query("SELECT url, key, fetch_status FROM pages ORDER BY url").to_pylist()
    ranked = ranks(program("rank", str(job), "--json"))
    (job.parent / "mail").mkdir()  # what lies beside a job is not its own
    told = json.loads(program("resize", str(job), "--processes", "3", "--json"))
    assert (told["before"], told["processes"]) == (1, 3)
    assert "3 processes" not in program("resize", str(job), "--processes", "2")
    after = open_job(job)
    assert after.query("SELECT url, key, fetch_status FROM pages ORDER BY url").to_pylist() == pages
    assert after.history().last("pages") == before.history().last("pages") > 0
    assert after.page(pages[0]["url"]).status == pages[0]["fetch_status"]
    assert len(list(after.pages())) == len(list(before.pages()))
    assert ranks(program("rank", str(job), "--json")) == ranked
    assert json.loads(program("verify", str(job), "--json"))["problems"] == []
    assert read_division(job)["earlier"] == [".", *(f"generation-0001/part-000{part}" for part in range(3))]
    left = {path.name for path in job.iterdir()}
    kept = {"archive", "frontier", "history", "manifest.json"}  # of the part that the job was
    assert left == kept | {"generation-0001", "generation-0002", "job.toml"} | {
        "job.lock",
        "log.jsonl",
        "seeds.txt",
        "settings.toml",
    }
    assert {path.name for path in (job / "generation-0001").iterdir()} == {
        f"part-000{part}" for part in range(3)
    }
    assert (job.parent / "mail").exists()


def test_pages_of_before_are_fetched_again_by_their_owners(
    job: Path, served: RunningWeb, program: Program
) -> None:
    """On one condition: that they have changed since they were stored in an archive of before."""
    cursor = list(open_job(job).changes())[-2].cursor
    program("resize", str(job), "--processes", "2")
    told = json.loads(
        program("recrawl", str(job), "--older-than", "0s", "--set", "limits.pages=50", "--json")
    )
    assert told["again"] == 25
    assert told["pages"] == 50
    again = [url for folder in part_folders(job) for url in archived(folder, "pages")]
    assert len(again) == 25
    first = set(archived(job, "pages"))
    stored = open_job(job)
    assert sum(1 for _ in stored.changes(since=cursor)) == 26  # one of before, and those that came since
    known = next(url for url in again if url in first)
    newest = stored.page(known)
    assert newest.revisit, "its payload lies in an archive of before"
    assert newest.body == next(page.body for page in stored.pages() if page.url == known and not page.revisit)


def test_what_a_killed_resize_leaves_goes_with_the_next_start(job: Path, program: Program) -> None:
    left = job / "generation-0001" / "part-0000" / "seen"
    left.mkdir(parents=True)
    (left / "0001.drum").write_bytes(b"half")
    program("resume", str(job), "--pages", "26")
    assert not (job / "generation-0001").exists()
    assert len(part_folders(job)) == 1


@pytest.mark.parametrize(
    ("processes", "change", "words"),
    [
        ("1", (), "has 1 process already"),
        ("0", (), "greater than or equal to 1"),
        ("9", ("memory=100MB",), "each needs 16 MB"),
        ("2", ("limits.pages=1",), "limits.pages is 1"),
        ("2", ("budget.reputation=supporters",), "cannot be resized"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    processes: str, change: tuple[str, ...], words: str, job: Path, program: Program
) -> None:
    if change:
        path = job / "settings.toml"
        name, value = change[0].rpartition(".")[2].split("=")
        lines = path.read_text().splitlines()
        shown = value if value.isdigit() else f'"{value}"'
        path.write_text(
            "\n".join(f"{name} = {shown}" if line.startswith(f"{name} = ") else line for line in lines)
        )
    said = program("resize", str(job), "--processes", processes, "--trust-settings", code=2)
    assert words in said
    assert not (job / "job.toml").exists()
    assert not any(path.name.startswith("generation") for path in job.iterdir())


def test_a_job_that_is_held_and_a_partition_without_slots_are_refused(job: Path, program: Program) -> None:
    held = Job.open(job, Env())
    assert "in use" in program("resize", str(job), "--processes", "2", code=2)
    held.close()
    before = (job / "settings.toml").read_bytes()
    program("resize", str(job), "--processes", "2")
    (job / "settings.toml").write_bytes(before)  # as a kill between the two would leave it
    held = Job.open(job, Env())
    assert held.settings.parallel.processes == 2
    held.close()
    assert (job / "settings.toml").read_bytes() != before
    division = job / "job.toml"
    division.write_text(division.read_text().replace('"domain"', '"address"'))
    assert "divided by address" in program("resize", str(job), "--processes", "3", code=2)
    assert len(part_folders(job)) == 2
    assert Counter(path.parent.name for path in archive_folders(job)[1:]) == {"generation-0001": 2}


def test_settings_of_a_part_load_no_code(
    job: Path, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the whole are looked at; whoever made the job may have given a part others."""
    program("resize", str(job), "--processes", "2")
    (tmp_path / "foreign_judge.py").write_text("raise SystemExit('it was loaded')")
    monkeypatch.syspath_prepend(tmp_path)
    for folder in part_folders(job):
        file = folder / "settings.toml"
        text = file.read_text().replace('classifier = ""', 'classifier = "foreign_judge:judge"')
        file.write_text(text.replace('function = "irlbot"', 'function = "foreign_judge:budget"'))
        assert "foreign_judge:judge" in file.read_text()
        assert "foreign_judge:budget" in file.read_text()
    program("resize", str(job), "--processes", "1")
    assert not any("foreign_judge" in file.read_text() for file in job.rglob("settings.toml"))
