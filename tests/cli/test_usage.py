"""Wrong input: one clear line, exit code 2, nothing lost."""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

import pytest

from barkspider.core.settings import Settings
from barkspider.engine import Job
from barkspider.storage.env import Env
from tests.cli.program import complaint, run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["crawl", "nonsense"],
            "'nonsense' is not a URL to crawl (malformed); write it like https://example.org/",
        ),
        (["crawl", "ftp://example.org/"], "is not a URL to crawl (scheme)"),
        (["crawl"], "nothing to crawl: give a URL"),
        (["crawl", "http://127.0.0.1/", "--set", "sydney.smaple=8"], "did you mean 'sydney.sample'?"),
        (["crawl", "http://127.0.0.1/", "--set", "sydney.sample"], "has no value"),
        (["crawl", "http://127.0.0.1/", "--preset", "irlbott"], "did you mean 'irlbot'?"),
        (["crawl", "http://127.0.0.1/", "--config", "none.toml"], "cannot read settings file none.toml"),
        (["crawl", "--seeds", "none.txt"], "cannot read seeds file none.txt: No such file or directory"),
        (["crawl", "http://127.0.0.1/", "--scope", "galaxy"], "not one of page, site, domain, web"),
        (["crawl", "http://127.0.0.1/", "--for", "soon"], "is not a duration"),
        (["crawl", "http://127.0.0.1/", "--pages", "many"], "--pages"),
        (["crawl", "http://127.0.0.1/", "--allow-network", "127.0.0.1/8"], "is not a network"),
        (["crawl", "http://127.0.0.1/"], "127.0.0.1 is on a loopback or private network"),
        (["crawl", "http://localhost:8000/"], "localhost is on a loopback or private network"),
        (["crawl", "http://0x7f.1/"], "127.0.0.1 is on a loopback or private network"),
        (["crawl", "http://[::ffff:10.0.0.1]/"], "is on a loopback or private network"),
        (["crawl", "http://8.8.8.8/"], "8.8.8.8 is a public host: say who you are first"),
        (["demo", "--for", "a while"], "is not a duration"),
        (["web", "--hazards", "calender"], "did you mean calendar"),
        (["crawl", "--speed", "9"], "No such option"),
        (["fly"], "No such command"),
    ],
)
def test_wrong_usage_gets_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *arguments) == 2
    assert message in complaint(capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_job_in_use_is_refused_and_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "job"
    job = Job.create(folder, Settings(seed=3), ["http://a.example/"], Env())
    before = (folder / "settings.toml").read_bytes()
    crawl = ("crawl", "http://127.0.0.1:9/", "--allow-network", "127.0.0.0/8", "--job", str(folder))
    assert run(monkeypatch, *crawl) == 2
    assert "is in use by another barkspider" in capsys.readouterr().err
    job.close()
    assert run(monkeypatch, *crawl) == 2
    assert "holds a crawl already; go on with `barkspider resume" in capsys.readouterr().err
    assert (folder / "settings.toml").read_bytes() == before


@pytest.mark.parametrize(("make", "message"), [("file", "is a file"), ("folder", "is not empty")])
def test_a_folder_that_holds_something_else_is_refused(
    make: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    folder = tmp_path / "mine"
    if make == "file":
        folder.write_text("keep")
    else:
        folder.mkdir()
        (folder / "thesis.txt").write_text("keep")
    assert (
        run(
            monkeypatch,
            "crawl",
            "http://127.0.0.1:9/",
            "--allow-network",
            "127.0.0.0/8",
            "--job",
            str(folder),
        )
        == 2
    )
    assert message in capsys.readouterr().err
    assert (folder if make == "file" else folder / "thesis.txt").read_text() == "keep"


def test_a_crawl_that_gets_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = (
        "--set",
        "politeness.retries=0",
        "--set",
        "politeness.host_delay=0s",
        "--set",
        "politeness.obey_robots=false",
    )
    assert run(monkeypatch, "crawl", "http://127.0.0.1:9/", "--allow-network", "127.0.0.0/8", *quick) == 2 - 1
    assert "no page could be fetched (out of scope: port 1)" in capsys.readouterr().err


def test_a_crawl_leaves_the_collector_of_garbage_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    before = gc.get_threshold(), gc.get_freeze_count()
    assert run(monkeypatch, "crawl", "http://127.0.0.1:9/", "--allow-network", "127.0.0.0/8") == 1
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


@pytest.mark.parametrize("command", ["crawl", "demo"])
def test_ctrl_c_before_the_crawl_gets_one_line(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except Exception as error:  # as callbacks of libraries do, where an interrupt would be lost
            raise AssertionError("it went on") from error

    monkeypatch.setattr(f"barkspider.cli.{command}.load_settings", interrupted)
    monkeypatch.setattr(os, "_exit", sys.exit)
    assert run(monkeypatch, command, *(["http://127.0.0.1/"] if command == "crawl" else [])) == 130
    assert capsys.readouterr().err == "barkspider: interrupted\n"


def test_ctrl_c_ends_any_other_command_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("barkspider.cli.control.check_job", lambda *_: signal.raise_signal(signal.SIGINT))
    # Whoever starts the tests in the background may have them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run(monkeypatch, "status", tmp_path) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "barkspider: interrupted\n"


def test_no_command_prints_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch) == 2
    output = capsys.readouterr()
    assert "Usage" in output.out + output.err
    assert "barkspider: " not in output.err


def test_version_and_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out.startswith("barkspider 0.")
    for command in ("demo", "crawl", "web"):
        assert run(monkeypatch, command, "--help") == 0
        assert f"Example: barkspider {command}" in capsys.readouterr().out
