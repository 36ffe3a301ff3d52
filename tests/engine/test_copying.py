"""Crawls with a store: killed at some instant, their machine lost, and gone on with elsewhere from the last copy."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.errors import StorageError
from barkspider.engine import copying, verify_job
from barkspider.engine.checkpoint import Checkpoint, how_far
from barkspider.engine.folder import archive_folders, events, part_folders
from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from barkspider.storage.env import Env
from barkspider.storage.store.copies import CopiedFile, Copies, bring_back, last_copy
from barkspider.storage.store.manifest import read_manifest
from barkspider.storage.store.remote import Remote
from tests.cli.program import complaint, run
from tests.engine.warcs import archived
from tests.parallel.killed import children
from tests.storage.buckets import s3


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(WebSpec(seed=5, pages=250, domains=25, page_bytes=3_000, crawl_delay=0.1)) as web:
        yield web


def options(served: RunningWeb, *more: str) -> list[str]:
    chosen = [f"{name}={value}" for name, value in served.settings().items()]
    chosen += ["politeness.host_delay=20ms", "politeness.server_delay=1ms", "politeness.slow_factor=0"]
    chosen += [
        "memory=64MB",
        "seed=7",
        "scope.level=web",
        "checkpoint=300ms",
        "archive.warc_size=100KB",
        *more,
    ]
    return [word for option in chosen for word in ("--set", option)]


def pages_of(job: Path) -> Counter[str]:
    return Counter(url for folder in archive_folders(job) for url in archived(folder, "pages"))


def copied(folder: Path) -> int:
    """How many pages the last checkpoint has, if it was copied: each is logged when its copy is made."""
    try:
        number, _ = read_manifest(Env(), folder)
        checkpoint = Checkpoint.read(Env(), folder)
        assert checkpoint is not None
        pages = checkpoint.counters(Env(), folder).pages
    except StorageError:
        return 0  # there is none, or the next one is being made
    logged = max((each["number"] for each in events(folder) if each["event"] == "checkpoint"), default=0)
    return pages if logged >= number else 0


@pytest.mark.parametrize("processes", [1, 2])
def test_a_crawl_goes_on_from_its_store_when_its_machine_is_lost(
    served: RunningWeb, tmp_path: Path, processes: int
) -> None:
    store, job, seeds = tmp_path / "store", tmp_path / "job", served.web.seeds(3)
    command = [
        sys.executable,
        "-m",
        "barkspider.cli",
        "crawl",
        *seeds,
        "--job",
        str(job),
        "--store",
        str(store),
    ]
    command += ["--processes", str(processes), *options(served, "parallel.interval=100ms")]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    ) as crawl:
        end = time.monotonic() + 60
        while (
            not job.exists()
            or len(part_folders(job)) < processes
            or any(copied(part) < 10 for part in part_folders(job))
        ):
            assert crawl.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        for process in (*children(crawl.pid), crawl.pid):
            os.kill(process, signal.SIGKILL)
    shutil.rmtree(job)

    again = tmp_path / "again"
    with pytest.MonkeyPatch.context() as patch:
        assert run(patch, "restore", str(store), str(again)) == 0
        assert [problem for problem in verify_job(again) if problem.kind == "damage"] == []
        before = how_far(Env(), part_folders(again))
        assert 0 < before["pages"] < len(served.web.reachable_urls(seeds))
        assert run(patch, "resume", str(again), "--json") == 0
    assert pages_of(again) == Counter(served.web.reachable_urls(seeds))
    assert [problem for problem in verify_job(again) if problem.kind == "damage"] == []


def test_what_the_store_has_at_the_end_is_the_whole_crawl(
    served: RunningWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where complete files are not kept, and in a bucket; and it is read there."""
    job, seeds = tmp_path / "job", served.web.seeds(3)
    chosen = options(served, "archive.keep_local=false")

    def told(*command: str) -> Any:
        capsys.readouterr()
        assert run(monkeypatch, *command) == 0
        return json.loads(capsys.readouterr().out)

    with s3() as store:
        end = told("crawl", *seeds, "--job", str(job), "--store", store, "--json", *chosen)
        assert len(list((job / "archive").glob("pages-*.warc.gz"))) == 1
        assert run(monkeypatch, "restore", store, str(tmp_path / "back")) == 0
        exported = tmp_path / "back.jsonl"
        told("export", str(tmp_path / "back"), "--output", str(exported), "--json")
        for number, crawl in enumerate((store, str(job))):
            (asked,) = told("query", crawl, "SELECT count(DISTINCT url) AS n FROM pages", "--json")
            assert asked == {"n": end["pages"]}
            output = tmp_path / f"{number}.jsonl"
            told("export", crawl, "--output", str(output), "--json")
            assert output.read_text() == exported.read_text()
            wacz = told("export", crawl, "--format", "wacz", "--output", f"{output}.wacz", "--json")
            assert wacz["warc_files"] == len(list((tmp_path / "back" / "archive").glob("*.warc.gz")))
            assert told("show", crawl, seeds[0], "--json")["url"] == seeds[0]
            told("report", crawl, "-o", str(tmp_path / f"{number}.html"), "--json")
            assert seeds[0].split("/")[2] in (tmp_path / f"{number}.html").read_text()
        assert run(monkeypatch, "report", store) == 2
        assert "with -o" in complaint(capsys)
    assert pages_of(tmp_path / "back") == Counter(served.web.reachable_urls(seeds))
    assert list(verify_job(tmp_path / "back")) == []


def test_a_crawl_that_was_resized_is_brought_back_from_its_store(
    served: RunningWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, job, seeds = tmp_path / "store", tmp_path / "job", served.web.seeds(3)
    given = ["--store", str(store), "--pages", "60", "--processes", "2", *options(served)]
    assert run(monkeypatch, "crawl", *seeds, "--job", str(job), *given) == 0
    assert run(monkeypatch, "resize", str(job), "--processes", "3") == 0
    shutil.rmtree(job)
    again = tmp_path / "again"
    assert run(monkeypatch, "restore", str(store), str(again)) == 0
    assert run(monkeypatch, "resume", str(again), "--pages", "0") == 0
    back = tmp_path / "back"
    assert run(monkeypatch, "restore", str(store), str(back)) == 0
    for whole in (again, back):
        assert pages_of(whole) == Counter(served.web.reachable_urls(seeds))
        assert [problem for problem in verify_job(whole) if problem.kind == "damage"] == []
    # Of the parts that there were before only what they have archived is left in the store.
    copy = last_copy(Remote.at(str(store)), "part-0000")
    assert copy is not None
    assert {file.partition("/")[0] for file in copy.files if "/" in file} <= {
        "archive",
        "frontier",
        "history",
    }


def test_a_store_of_another_crawl_is_refused(
    served: RunningWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store, seeds = tmp_path / "store", served.web.seeds(1)
    given = ["--store", str(store), "--pages", "3", *options(served)]
    assert run(monkeypatch, "crawl", *seeds, "--job", str(tmp_path / "one"), *given) == 0
    capsys.readouterr()
    assert run(monkeypatch, "crawl", *seeds, "--job", str(tmp_path / "two"), *given) == 2
    assert "has copies of another crawl" in complaint(capsys)
    assert run(monkeypatch, "restore", str(tmp_path / "nothing"), str(tmp_path / "three")) == 2
    assert "holds no copy of a crawl" in complaint(capsys)
    assert run(monkeypatch, "crawl", *seeds, "--job", str(tmp_path / "four"), "--store", "/proc/no") == 2
    assert "store cannot be used" in complaint(capsys)
    assert not (tmp_path / "four").exists()


def test_a_copy_that_is_replaced_while_it_is_brought_back_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a crawl which runs: a file that grew has another name in the next one."""
    source, remote = tmp_path / "source", Remote.at(str(tmp_path / "store"))
    source.mkdir()
    for name in ("pages.warc.gz.open", "pages.warc.gz", "settings.toml"):
        (source / name).write_bytes(name.encode())
    copies = Copies.claim(remote, copying.WHOLE)

    def copy(*names: str) -> None:
        copies.copy({name: CopiedFile(source / name, len(name)) for name in names})

    def replaced(*given: Any) -> None:
        bring_back(*given)
        if len(copies.last.files) == 2 and "pages.warc.gz.open" in copies.last.files:
            copy("pages.warc.gz", "settings.toml")
            raise StorageError("a piece is not there any more")

    copy("pages.warc.gz.open", "settings.toml")
    monkeypatch.setattr(copying, "bring_back", replaced)
    copying.restore_job(Env(), str(tmp_path / "store"), tmp_path / "back")
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == [
        copying.INCARNATIONS,
        "pages.warc.gz",
        "settings.toml",
    ]
