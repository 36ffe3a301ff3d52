"""status, pause, stop and add, as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barkspider.cli import control
from barkspider.core.events import Counters, Seeds
from barkspider.core.load import replace
from barkspider.core.settings import Settings
from barkspider.engine import Job
from barkspider.engine.ledger import Ledger
from barkspider.engine.statistics import Tally
from barkspider.storage.env import Env
from tests.cli.program import run
from tests.engine.serving import serving

NOW = 1_800_000_000.0


def statistics(stopped_by: str = "") -> dict[str, Any]:
    counters = Counters(discovered=1_234, pages=1_000, queued=200)
    counters.failed["http_404"] = 34
    gauges = {"seen": 1_234, "largest": 7}
    return Tally().statistics(60.0, counters, gauges, stopped_by).as_dict()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job whose crawl has started."""
    settings = replace(Settings(seed=3), {"network.allow": ["127.0.0.0/8"]})
    made = Job.create(tmp_path / "job", settings, ["http://127.0.0.1:8000/"], Env())
    made.log(NOW, "started", agent="barkspider")
    made.close()
    return made.path


def log(job: Path, text: str) -> None:
    with (job / "log.jsonl").open("a") as file:
        file.write(text)


def log_end(job: Path) -> None:
    ended = {"time": NOW + 60, "event": "ended", **statistics("signal")}
    log(job, json.dumps(ended) + "\n" + json.dumps({"event": "other"}) + "\n" + '{"time": 18')


def test_the_status_of_a_crawl_that_runs(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(job, lambda command, details: {"state": "paused", **statistics()}):
        assert run(monkeypatch, "status", str(job)) == 0
        shown = capsys.readouterr().out
        assert run(monkeypatch, "status", str(job), "--json") == 0
        told = json.loads(capsys.readouterr().out)
    for part in ("paused", "1,000 in 60.0 s (17 a second)", "200 queued", "http_404 34"):
        assert part in shown
    assert "stopped by" not in shown
    assert (told["job"], told["state"], told["pages"]) == (str(job), "paused", 1_000)


def test_the_status_of_a_crawl_that_ended(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log_end(job)
    assert run(monkeypatch, "status", str(job)) == 0
    shown = capsys.readouterr().out
    for part in ("ended (2027-01-15 08:01:00 UTC)", "1,000 in 60.0 s", "stopped by", "signal"):
        assert part in shown
    assert run(monkeypatch, "status", str(job), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["state"], told["event"], told["pages"]) == ("ended", "ended", 1_000)


def test_the_status_of_a_crawl_that_was_killed_or_never_started(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "status", str(job)) == 0
    assert "killed (2027-01-15 08:00:00 UTC)" in capsys.readouterr().out
    (job / "log.jsonl").unlink()
    assert run(monkeypatch, "status", str(job), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"job": str(job), "state": "never started"}


def test_statistics_of_another_kind_are_one_clear_line(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for answer in ({"pages": 1, "state": "running"}, {}, {"state": "running", **statistics(), "failed": 3}):
        with serving(job, lambda command, details, answer=answer: answer):  # type: ignore[misc]
            assert run(monkeypatch, "status", str(job)) == 2
        assert "statistics that this barkspider cannot read" in capsys.readouterr().err


def test_pause_says_how_to_go_on(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    with serving(job, lambda command, details: asked.append(command) or {"state": "paused"}):
        assert run(monkeypatch, "pause", str(job)) == 0
        assert f"barkspider resume {job}" in capsys.readouterr().out
        assert run(monkeypatch, "pause", str(job), "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"job": str(job), "state": "paused"}
    assert asked == ["pause", "pause"]


def test_stop_waits_for_the_end_and_shows_it(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = 0

    def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            log_end(job)
            end()

    monkeypatch.setattr(control.time, "sleep", sleep)
    with serving(job, lambda command, details: {"state": "stopping"}) as end:
        assert run(monkeypatch, "stop", str(job), "--json") == 0
    assert looks == 3
    assert json.loads(capsys.readouterr().out)["stopped_by"] == "signal"


def test_stop_gives_up_waiting_after_its_timeout(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(job, lambda command, details: {"state": "stopping"}):
        assert run(monkeypatch, "stop", str(job), "--timeout", "0s") == 1
    assert "was told to stop and has not ended after 0s" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["pause", "stop"])
def test_nothing_to_pause_or_stop_is_one_line(
    command: str, job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, command, str(job)) == 1
    assert capsys.readouterr().err == (
        f"barkspider: no crawl is running in {job}; there is nothing to {command}\n"
    )


def test_add_gives_canonical_urls_in_portions(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    portions: list[list[str]] = []

    def answer(command: str, details: dict[str, Any]) -> dict[str, Any]:
        if command == "add":
            portions.append(details["urls"])
        return {}

    seeds = job.parent / "seeds.txt"
    seeds.write_text("\n".join(f"http://127.0.0.1:8000/{number}" for number in range(100)))
    monkeypatch.setattr(control, "_PORTION", 1000)
    with serving(job, answer):
        first = "HTTP://127.0.0.1:8000#top"
        assert run(monkeypatch, "add", str(job), first, "--seeds", str(seeds), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"job": str(job), "given": 101, "known": []}
    assert len(portions) > 2
    urls = ["http://127.0.0.1:8000/", *(f"http://127.0.0.1:8000/{number}" for number in range(100))]
    assert [url for portion in portions for url in portion] == urls


def test_what_add_cannot_use_is_refused_before_anything_is_sent(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    with serving(job, lambda command, details: asked.append(command) or {}):
        for urls, message in (
            (["nonsense"], "'nonsense' is not a URL to crawl"),
            ([], "nothing to crawl"),
            (["http://10.0.0.1/"], "10.0.0.1 is on a loopback or private network"),
        ):
            assert run(monkeypatch, "add", str(job), *urls) == 2
            assert message in capsys.readouterr().err
    assert asked == []


def test_add_to_a_job_in_which_nothing_runs_waits_for_the_next_run(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for url in ("http://127.0.0.1:8000/more", "http://127.0.0.1:8000/most"):
        assert run(monkeypatch, "add", str(job), url) == 0
    assert "1 URL given to the crawl" in capsys.readouterr().out
    outcomes = [outcome for harvest in Ledger(Env(), job).harvests() for outcome in harvest.outcomes]
    assert [out.batch.url.tolist() for out in outcomes if isinstance(out, Seeds)] == [
        [b"http://127.0.0.1:8000/", b"http://127.0.0.1:8000/more"],
        [b"http://127.0.0.1:8000/more"],
        [b"http://127.0.0.1:8000/most"],
    ]


@pytest.mark.parametrize("command", [["status"], ["pause"], ["stop"], ["add", "http://127.0.0.1/"]])
def test_a_folder_that_is_no_job_is_refused(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *urls = command
    for folder in (tmp_path, tmp_path / "none"):
        assert run(monkeypatch, name, str(folder), *urls) == 2
        assert capsys.readouterr().err == (
            f"barkspider: {folder} is not the folder of a crawl; name one that `barkspider crawl` made\n"
        )


@pytest.mark.parametrize("command", ["status", "pause", "stop", "add"])
def test_each_command_has_an_example(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, command, "--help") == 0
    assert f"Example: barkspider {command} jobs/mine" in capsys.readouterr().out


def test_who_only_asks_does_not_wait_for_kernels_to_load(job: Path) -> None:
    code = (
        "import sys; from barkspider.cli.app import app; app(['status', sys.argv[1]], standalone_mode=False); "
        "sys.exit(len({'numba', 'numpy', 'pyarrow', 'uvloop'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(job)], check=False).returncode == 0
