"""`barkspider plan` as people and programs use it."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from barkspider.core.load import dump_settings, load_settings
from barkspider.core.settings import Settings
from barkspider.engine.statistics import Statistics
from tests.cli import program
from tests.engine.serving import serving
from tests.model.real_drum import counted


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    return program.run(monkeypatch, "plan", *arguments)


STATISTICS: dict[str, Any] = {
    "pages": 10_000,
    "bytes": 100_000_000,
    "links": 600_000,
    "unique_urls": 120_000,
    "pages_per_second": 100.0,
    "cpu_seconds": 20.0,
    "out_of_scope": {"scheme": 100_000},
    "gauges": {"hosts": 300, "domains": 2_000},  # hosts are those in RAM, a small part of a large crawl
}


def make_job(folder: Path, scope: str = "web", options: dict[str, str] | None = None, **more: Any) -> Path:
    """A job folder as a crawl leaves it."""
    (folder / "archive").mkdir(parents=True)
    (folder / "archive" / "pages-0.warc.gz").write_bytes(bytes(50_000))
    settings: Settings = load_settings(options=[f"scope.level={scope}"], overrides=options)
    (folder / "settings.toml").write_text(dump_settings(settings), "utf-8")
    events = [{"event": "started"}, {"event": "ended", **STATISTICS, **more}]
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (folder / "log.jsonl").write_text(lines + '{"event": "hal', "utf-8")
    return folder


def test_a_plan_for_people_and_for_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ("--pages", "8B", "--ram", "1GB", "--disk", "4.39TB", "--unique", "0.1111", "--rate", "3100")
    assert run(monkeypatch, *asked) == 0
    text = capsys.readouterr().out
    assert text.startswith("8 billion pages: 29.9 days at 3,100 pages/s\n")
    assert "Bottleneck: the rate asked for. To improve: ask for more" in text
    for name in ("α of DRUM", "D_opt", "URLseen", "queues of BEAST"):
        assert name in text
    assert run(monkeypatch, *asked, "--json", "--plot", tmp_path / "plan.svg") == 0
    found = json.loads(capsys.readouterr().out)
    assert {
        "alpha_drum",
        "alpha_mercator",
        "alpha_polybot",
        "disk_optimal_bytes",
        "buckets",
        "s_disk_pages_per_second",
        "beast_bytes_per_second",
        "naive_bytes_per_second",
        "beast_queues",
        "days",
        "bottleneck",
    } <= found.keys()
    assert int(found["alpha_mercator"]) == 93
    assert int(found["alpha_polybot"]) == 663
    assert found["alpha_drum_whole_disk"] == pytest.approx(2.35, rel=0.02)
    assert found["alpha_drum"] == pytest.approx(3.33, rel=0.02)
    assert found["beast_queues"] == 16
    assert found["parameters"]["ram"] == 1e9
    assert found["warnings"] == []
    assert "this crawl" in (tmp_path / "plan.svg").read_text("utf-8")


@pytest.mark.parametrize(("name", "magic"), [("plan.png", b"\x89PNG"), ("plan.PDF", b"%PDF")])
def test_pictures_of_other_kinds(
    name: str, magic: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run(monkeypatch, "--pages", "8e9", "--plot", tmp_path / name) == 0
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_warnings_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--pages", "8e9", "--ram", "50MB", "--machines", "3") == 0
    text = capsys.readouterr().out
    assert "Note: Theorem 2 needs R of" in text
    assert "each of 3 machines" in text
    assert "URLs to other machines" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "how many pages? give --pages"),
        (["--pages", "0"], "--pages is 0; give more than 0"),
        (["--pages", "-5"], "'-5' is not a number"),
        (["--pages", "1e9", "--ram", "8"], "Invalid value for '--ram': '8' is not a size"),
        (["--pages", "1e9", "--ram", "0GB"], "--ram is 0; give more than 0"),
        (["--pages", "1e9", "--disk-speed", "500MB"], "'500MB' is not a speed"),
        (["--pages", "1e9", "--unique", "11"], "--unique is 11; a share is at most 1"),
        (["--pages", "1e9", "--plot", "plan.gif"], "let it end in .svg, .png or .pdf"),
        (["--pages", "1e9", "--plot", "none/plan.svg"], "none is not a folder"),
        (["--from", "none"], "none is not the folder of a crawl"),
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
    assert message in program.complaint(capsys)


def test_the_statistics_of_a_crawl_have_what_a_plan_takes() -> None:
    assert {field.name for field in fields(Statistics)} >= STATISTICS.keys()


def test_a_plan_from_a_crawl_takes_what_it_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = make_job(tmp_path / "job")
    assert run(monkeypatch, "--from", job, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pages"] == 1e9
    given = found["parameters"]
    assert given["links_per_page"] == 50
    assert given["unique"] == pytest.approx(0.24)
    assert given["unique_per_page"] == 12
    assert given["page_size"] == 10_000
    assert given["cpu_per_page"] == 0.002
    assert given["compression"] == 2000
    assert given["known"] == 0
    assert 2_000 < given["domains"] < 33e6
    assert found["days"] == pytest.approx(1e9 / 100 / 86400)
    assert run(monkeypatch, "--from", job, "--rate", "7", "--pages", "10K") == 0
    text = capsys.readouterr().out
    assert "at 7 pages/s" in text
    assert "Measured on 10,000 pages" in text


def test_a_plan_from_a_crawl_that_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = make_job(tmp_path / "job")
    now = {"state": "running", **STATISTICS, "pages_per_second": 7.0}
    with serving(job, lambda command, details: now if command == "status" else {}):
        assert run(monkeypatch, "--from", job, "--json") == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["rate"] == 7


def test_a_crawl_of_chosen_sites_meets_no_further_domains(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "--from", make_job(tmp_path / "job", scope="site"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["domains"] == 2_000


def test_a_crawl_that_has_a_drum_of_keys_and_no_budgets_can_be_planned_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    counters = counted(front=0)
    drum = asdict(counters) | {"keys": counters.unique, "known_bytes": 8 * counters.unique + 400}
    job = make_job(tmp_path / "job", drum={"seen": drum})
    assert run(monkeypatch, "--from", job) == 0
    assert "Its DRUM seen moved" in capsys.readouterr().out


def test_the_bytes_of_the_crawls_drum_are_predicted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    counters = counted(front=200_000)
    drum = asdict(counters) | {"keys": counters.unique, "known_bytes": 8 * counters.unique + 400}
    beast = {"placed": 5_000, "failed": 9_000, "taken": 4_000, "rescanned": 6_000, "written": 14_000 * 74}
    beast |= {"read": 10_000 * 74, "queues": 4, "budget": 12.5}
    options = {"memory": "64MB", "disk": "26GB"}
    job = make_job(tmp_path / "job", options=options, drum={"seen": drum}, beast=beast)
    assert run(monkeypatch, "--from", job, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["url_bytes"] == 71
    assert found["parameters"]["links_per_page"] == 12
    assert found["parameters"]["sifted"] == counters.sifted / counters.rows
    moved, predicted = (
        found["measured"]["drums"]["seen"][f"{name}_bytes"] for name in ("counted", "predicted")
    )
    assert moved == counters.moved()
    assert predicted == pytest.approx(moved, rel=0.1)
    # R and D are those of the job: what its memory and disk leave for URLseen.
    assert (found["parameters"]["ram"], found["parameters"]["disk"]) == (15e6, 8e9)
    budgets = found["measured"]["budgets"]
    assert (budgets["domains"], budgets["budget"], budgets["queues"], budgets["predicted_queues"]) == (
        2000,
        12.5,
        4,
        1,
    )
    assert budgets["bytes_per_second"] == pytest.approx(24_000 * 74 / 100)  # seconds
    assert budgets["bytes_per_second"] < budgets["beast_bytes_per_second"]
    assert budgets["moved"]["predicted_bytes"] == pytest.approx(24_000 * 74)
    assert run(monkeypatch, "--from", job) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Its DRUM seen moved 21.78 MB; the model says " in text
    assert "j 4; (11) says 1. E[B_x] 12.5, V 2,000" in text


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"event": "started"}, "has not ended"),
        ({"event": "ended", **STATISTICS, "pages": 0}, "got no page"),
    ],
)
def test_a_crawl_without_figures_is_refused(
    event: dict[str, Any],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (tmp_path / "settings.toml").write_text("")
    (tmp_path / "log.jsonl").write_text(json.dumps(event) + "\n")
    assert run(monkeypatch, "--from", tmp_path) == 2
    assert message in capsys.readouterr().err


def test_help_has_an_example_and_the_papers_defaults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(monkeypatch, "--help") == 0
    text = capsys.readouterr().out
    assert "Example: barkspider plan --pages 8e9" in text
    for option, default in (
        ("--key-bytes", "8"),
        ("--domains", "33M"),
        ("--chunk", "32MB"),
        ("--disk-share", "0.15"),
    ):
        line = next(line for line in text.splitlines() if option in line)
        assert default in line
