"""A crawl as a user runs it over days: paused, stopped, resumed, given more; in processes of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barkspider.lab.synthweb import RunningWeb, WebSpec, read_log, running_web
from tests.cli.program import run
from tests.cli.test_runs import end, start
from tests.engine.warcs import archived, check_warcs

FAST = ("--set", "politeness.host_delay=5ms")
SPEC = WebSpec(seed=2, pages=150, domains=20, page_bytes=2_000, crawl_delay=0.05)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    with running_web(SPEC, log_path=tmp_path_factory.mktemp("web") / "requests.log") as web:
        yield web


def options(served: RunningWeb, *more: str) -> list[str]:
    chosen = served.settings() | {
        "politeness.host_delay": "500ms",  # so that it does not end while it is watched
        "politeness.server_delay": "0s",
        "scope.level": "web",
        "seed": "5",
        "memory": "64MB",
        "archive.recent_digests": "1000",
    }
    return [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")] + [
        part for option in more for part in ("--set", option)
    ]


class Ask:
    """Gives a command in a folder of its own and returns what it answers as JSON, or its one line of complaint."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        monkeypatch.chdir(folder)

    def __call__(self, *arguments: str) -> dict[str, Any]:
        code = run(self._monkeypatch, *arguments, "--json")
        told = self._capsys.readouterr()
        assert code == 0, told.err
        answer: dict[str, Any] = json.loads(told.out)
        return answer

    def refused(self, *arguments: str) -> str:
        assert run(self._monkeypatch, *arguments, "--json") == 2
        told = self._capsys.readouterr()
        assert (told.out, told.err.count("\n")) == ("", 1)
        return told.err


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    return Ask(tmp_path, monkeypatch, capsys)


def wait_for(holds: Callable[[], object]) -> None:
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.02)


def requests(served: RunningWeb) -> int:
    assert served.log_path is not None
    return len(read_log(served.log_path))


def begun(served: RunningWeb, folder: Path, *more: str) -> subprocess.Popen[str]:
    """A crawl that has fetched something."""
    before = requests(served)
    process = start(
        "crawl", served.web.seeds(1)[0], "--json", "--job", "j", *options(served, *more), folder=folder
    )
    wait_for(lambda: requests(served) > before + 5 and (folder / "j" / "control.sock").exists())
    return process


def truth(served: RunningWeb) -> set[str]:
    return served.web.reachable_urls(served.web.seeds(1))


def is_complete(served: RunningWeb, job: Path) -> bool:
    """Whether each page there is was archived, and once."""
    found = archived(job, "pages")
    return len(found) == len(set(found)) and set(found) == truth(served)


def test_pause_stop_and_resume_until_all_is_there(served: RunningWeb, tmp_path: Path, ask: Ask) -> None:
    process = begun(served, tmp_path)
    assert ask("status", "j")["state"] == "running"
    assert "is in use by another barkspider" in ask.refused("resume", "j", "--set", "limits.pages=7")

    assert ask("pause", "j")["state"] == "paused (request)"
    wait_for(lambda: ask("status", "j")["in_flight"] == 0)
    before = requests(served)
    time.sleep(1.0)  # twice the pause of a host
    assert ask("status", "j")["state"] == "paused (request)"
    assert requests(served) == before
    assert ask("resume", "j")["state"] == "running"
    wait_for(lambda: requests(served) > before)

    stopped = ask("stop", "j")
    assert (stopped["state"], stopped["stopped_by"]) == ("ended", "request")
    code, output, _ = end(process)
    assert code == 0
    pages = json.loads(output)["pages"]
    assert pages == stopped["pages"] < len(truth(served))

    assert "seed cannot be changed" in ask.refused("resume", "j", "--set", "seed=6")
    limited = ask("resume", "j", "--set", f"limits.pages={pages + 10}", *FAST)
    assert (limited["pages"], limited["stopped_by"]) == (pages + 10, "pages")
    done = ask("resume", "j", "--set", "limits.pages=0")
    assert (done["pages"], done["stopped_by"]) == (len(truth(served)), "done")

    before = requests(served)
    again = ask("resume", "j")  # nothing is left to do, and nothing is lost
    assert (again["pages"], again["stopped_by"], requests(served)) == (done["pages"], "done", before)
    assert is_complete(served, tmp_path / "j")
    check_warcs(tmp_path / "j")
    assert ask("verify", "j")["problems"] == []


def test_a_signal_and_a_kill_lose_nothing(served: RunningWeb, tmp_path: Path, ask: Ask) -> None:
    process = begun(served, tmp_path)
    process.send_signal(signal.SIGINT)
    assert end(process)[0] == 0
    before = requests(served)
    process = start("resume", "j", "--json", folder=tmp_path)
    wait_for(lambda: requests(served) > before + 5)
    process.kill()
    end(process)
    assert ask("status", "j")["state"] == "killed"
    assert ask("verify", "j")["sound"]
    done = ask("resume", "j", *FAST)
    assert done["stopped_by"] == "done"
    assert done["replayed"] > 0
    assert is_complete(served, tmp_path / "j")


def test_what_is_added_is_fetched(served: RunningWeb, tmp_path: Path, ask: Ask) -> None:
    one, two, three = served.web.seeds(3)
    assert ask("crawl", one, "--job", "j", *options(served, "scope.level=page"), *FAST)["pages"] == 1
    assert ask("add", "j", two)["given"] == 1  # nobody runs
    (tmp_path / "more.txt").write_text(three)
    slowly = ("--set", "politeness.host_delay=3s")  # so that it still runs when more is added
    process = start("resume", "j", "--json", *slowly, folder=tmp_path)
    wait_for((tmp_path / "j" / "control.sock").exists)
    assert ask("add", "j", "--seeds", "more.txt")["given"] == 1
    code, output, errors = end(process)
    assert code == 0, errors
    assert json.loads(output)["pages"] == 3
    assert sorted(archived(tmp_path / "j", "pages")) == sorted((one, two, three))
    assert (tmp_path / "j" / "seeds.txt").read_text().split() == [one, two, three]


def test_a_folder_that_is_no_job_is_refused(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "file").touch()
    for name in (".", "none", "file"):
        assert "is not the folder of a crawl" in ask.refused("resume", name)
