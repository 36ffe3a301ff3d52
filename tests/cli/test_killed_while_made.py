"""The folder of a job that was killed while it was made, by one process or several: `crawl` or `resume` accepts it."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from barkspider import crawl
from barkspider.core.errors import JobError, UsageError
from barkspider.core.load import load_settings
from barkspider.engine import Job, resume
from barkspider.frontier.ownership import frozen
from barkspider.parallel.division import create_job
from barkspider.parallel.frozen import Frozen
from barkspider.parallel.supervisor import Supervisor
from barkspider.storage.calls import Calls
from barkspider.storage.env import Env
from tests.cli.program import run


class Killed(BaseException):
    """The end of a process, as far as its job's folder is concerned."""


class Deadly(Calls):
    """Ends at so many system calls that change the disk."""

    def __init__(self, left: int) -> None:
        self._left, self._locked = left, list[int]()

    def _count(self) -> None:
        self._left -= 1
        if not self._left:
            for descriptor in self._locked:
                os.close(descriptor)
            self._locked.clear()
            raise Killed

    def lock(self, descriptor: int) -> None:
        self._locked.append(descriptor)
        super().lock(descriptor)

    def close(self, descriptor: int) -> None:
        if descriptor in self._locked:
            self._locked.remove(descriptor)
        super().close(descriptor)

    def open(self, path: Path, flags: int) -> int:
        self._count()
        return super().open(path, flags)

    def write(self, descriptor: int, views: Sequence[bytes | memoryview]) -> int:
        self._count()
        return super().write(descriptor, views)

    def rename(self, old: Path, new: Path) -> None:
        self._count()
        super().rename(old, new)

    def make_folder(self, path: Path) -> None:
        self._count()
        super().make_folder(path)

    def remove(self, path: Path) -> None:
        self._count()
        super().remove(path)

    def remove_folder(self, path: Path) -> None:
        self._count()
        super().remove_folder(path)


def test_a_job_that_was_killed_while_it_was_made_can_be_begun_or_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load_settings(options=["memory=64MB", "network.allow=127.0.0.0/8"])
    url = "http://127.0.0.1:9/"  # out of scope: such a crawl ends at once, without a page
    crawl = ("crawl", url, "--allow-network", "127.0.0.0/8", "--set", "memory=64MB", "--job")
    ways = set()
    for number in itertools.count(1):
        job = tmp_path / str(number)
        try:
            Job.create(job, settings, [url], Env(Deadly(number))).close()
            break
        except Killed:
            way = ("resume",) if (job / "settings.toml").exists() else crawl
            assert run(monkeypatch, *way, job) == 1, capsys.readouterr().err
            assert "no page could be fetched (out of scope: port 1)" in capsys.readouterr().err
            ways.add(way[0])
    assert ways == {"crawl", "resume"}


def test_a_job_of_parts_that_was_killed_while_it_was_made_can_be_begun_or_goes_on(tmp_path: Path) -> None:
    options = ["memory=64MB", "parallel.processes=2", "parallel.partition=hierarchical", "parallel.weights=w"]
    settings, seeds = load_settings(options=options), ["http://a.example/"]
    given = Frozen(["http://b.example/"], {"example": 1})
    job, left, ways, number = tmp_path / "job", tmp_path / "left", set(), 0
    for number in itertools.count(1):
        shutil.rmtree(job, ignore_errors=True)
        if number % 2 and left.exists():  # killed once more, on top of what the last kill left
            left.rename(job)
        shutil.rmtree(left, ignore_errors=True)
        try:
            create_job(job, settings, seeds, Env(Deadly(number)), given).close()
            if not number % 2:
                break
            continue
        except Killed:
            pass
        if (job / "settings.toml").exists():
            ways.add("resume")
        else:
            if (job / "job.lock").exists():
                with pytest.raises(
                    JobError, match=r"ended while it was made.*begin anew with `barkspider crawl"
                ):
                    Job.open(job, Env())
                shutil.copytree(job, left)
            create_job(job, settings, seeds, Env(), given).close()
            ways.add("crawl")
        again = Job.open(job, Env(), trust=True)
        Supervisor(again)  # refuses what is no whole division
        again.close()
        assert frozen(Env(), job / "part-0001")[1] == {"example": 1}
    assert ways == {"crawl", "resume"}
    assert number > 40


def test_a_job_of_parts_that_has_pages_is_never_begun_anew(tmp_path: Path) -> None:
    settings = load_settings(options=["memory=64MB", "parallel.processes=2"])
    create_job(tmp_path / "job", settings, ["http://a.example/"], Env()).close()
    (tmp_path / "job" / "settings.toml").unlink()
    (tmp_path / "job" / "log.jsonl").unlink()
    for name in ("part-0001/archive/pages.warc.gz", "part-0000/manifest.json", "notes.txt"):
        page = tmp_path / "job" / name
        page.touch()
        with pytest.raises(JobError, match="is not empty"):
            create_job(tmp_path / "job", settings, ["http://a.example/"], Env())
        assert page.exists()
        page.unlink()
    create_job(tmp_path / "job", settings, ["http://a.example/"], Env()).close()


def test_a_folder_of_ones_own_that_was_refused_is_refused_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "seeds.txt").write_text("mine")
    crawl = ("crawl", "http://127.0.0.1:9/", "--allow-network", "127.0.0.0/8", "--job", tmp_path)
    for _ in range(2):
        assert run(monkeypatch, *crawl) == 2
        assert "is not empty" in capsys.readouterr().err
    assert (tmp_path / "seeds.txt").read_text() == "mine"


def test_a_call_from_python_says_that_it_is_one_process(tmp_path: Path) -> None:
    settings, job = load_settings(options=["memory=64MB", "parallel.processes=2"]), tmp_path / "job"
    with pytest.raises(UsageError, match="run `barkspider crawl --processes`"):
        crawl("http://127.0.0.1:9/", job, settings)
    assert not job.exists()
    create_job(job, settings, ["http://a.example/"], Env()).close()
    with pytest.raises(UsageError, match="run `barkspider resume`"):
        resume(job)
