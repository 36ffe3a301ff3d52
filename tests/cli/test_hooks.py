"""Functions of one's own, as a user meets them: one that fails is named and the crawl goes on, one that cannot be loaded
is refused before anything is made."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barkspider.lab.synthweb import RunningWeb, WebSpec, running_web
from tests.cli.program import complaint, run
from tests.cli.test_runs import complaints, options

JUDGES = """
from barkspider.page import Verdict

def raises(page, source):
    raise ValueError("no idea")

def half(page, source):
    return True

def odd(page, source):
    return Verdict(False, True, reason=7)

def every(page, source):
    return True, True
"""


@pytest.fixture(scope="module")
def served() -> Iterator[RunningWeb]:
    with running_web(WebSpec(seed=2, pages=300, page_bytes=2_000)) as web:
        yield web


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        ("raises", "ValueError: no idea"),
        ("half", "gave True, not a pair of true or false"),
        ("odd", "gave 7 as the reason, not a text"),
    ],
)
def test_a_classifier_that_fails_is_named_and_the_crawl_goes_on(
    judge: str,
    why: str,
    served: RunningWeb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"judges_{judge}.py").write_text(JUDGES)
    hook = ("--set", f"page.classifier=judges_{judge}:{judge}")
    seed = served.web.seeds(1)[0]
    assert (
        run(monkeypatch, "crawl", seed, "--pages", "20", "--job", "j", *options(served), *hook, "--json") == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert (told["pages"], told["rejected"], told["classifier_errors"]) == (20, {}, 20)
    assert told["problems"][-1]["why"] == "classifier_error"
    events = [json.loads(line) for line in (tmp_path / "j" / "log.jsonl").read_text().splitlines()]
    named = [event for event in events if event["event"] == "classifier_error"]
    assert (named[0]["url"], named[0]["error"]) == (seed, why)
    assert run(monkeypatch, "query", "j", "SELECT count(*) AS n FROM errors GROUP BY outcome", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [{"n": 20}]
    assert run(monkeypatch, "status", "j") == 0
    assert "failed on 20 pages" in capsys.readouterr().out
    assert run(monkeypatch, "verify", "j") == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("page.classifier=nowhere:judge", "cannot load 'nowhere:judge'"),
        ("page.classifier=mine", "no entry point 'mine'"),
        ("budget.function=nowhere:function", "budget.function"),
        ("scope.include_hosts=no/host", "is not a host name"),
    ],
)
def test_what_cannot_be_loaded_is_refused_before_the_job_is_made(
    setting: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    crawl = ("crawl", "http://127.0.0.1:8000/", "--allow-network", "127.0.0.0/8", "--set", setting)
    assert run(monkeypatch, *crawl) == 2
    assert message in complaint(capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_change_that_cannot_be_loaded_leaves_the_job_as_it_was(
    served: RunningWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    seed = served.web.seeds(1)[0]
    assert run(monkeypatch, "crawl", seed, "--pages", "2", "--job", "j", *options(served)) == 0
    before = (tmp_path / "j" / "settings.toml").read_bytes()
    capsys.readouterr()
    assert run(monkeypatch, "resume", "j", "--set", "page.classifier=nowhere:judge") == 2
    assert "cannot load 'nowhere:judge'" in complaint(capsys)
    assert (tmp_path / "j" / "settings.toml").read_bytes() == before


def test_a_module_in_the_current_folder_is_found(served: RunningWeb, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(JUDGES)
    crawl = ["crawl", served.web.seeds(1)[0], "--pages", "2", *options(served), "--json"]
    # As the script `barkspider` does, -P leaves the current folder out.
    program = [sys.executable, "-P", "-m", "barkspider.cli", *crawl, "--set", "page.classifier=mine:every"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, complaints(done.stderr)) == (0, [])
    assert json.loads(done.stdout)["classifier_errors"] == 0
