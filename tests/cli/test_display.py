"""What a terminal shows while something runs: calm, in 80 columns, and nothing where there is no terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from barkspider.cli.progress import working
from barkspider.cli.run import picture
from barkspider.core.events import Counters
from barkspider.engine.outlook import Outlook
from barkspider.engine.statistics import Statistics, Tally
from tests.cli.program import run


def moment() -> Statistics:
    gauges = {
        "seen": 123_456_789,
        "largest": 9,
        "primary": 1_234_567,
        "secondary": 98_765_432,
        "hosts": 54_321,
    }
    return Tally().statistics(86_400.0, Counters(pages=12_345_678, in_flight=999, discovered=1), gauges, "")


def drawn(rates: list[float], ahead: Outlook) -> list[str]:
    console = Console(file=io.StringIO(), width=80)
    console.print(picture(moment(), "barkspider: http://a.example/", 1204.0, "running", rates, ahead))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_live_display_fits_80_columns_and_says_when_it_ends() -> None:
    lines = drawn([float(number % 9) for number in range(60)], Outlook(0.41, "pages", 10_800.0))
    assert len(lines) == 6  # none is broken in two
    assert max(map(len, lines)) <= 80
    assert "▁" in lines[4]
    assert lines[5].strip() == "so far   41% of the limit of pages, 3 h left"


def test_what_is_long_takes_one_line_and_figures_stay_where_they_are() -> None:
    console = Console(file=io.StringIO(), width=80)
    now = replace(moment(), failed={f"some_reason_{number}": 1000 for number in range(20)})
    console.print(picture(now, "barkspider", 1204.0, "running"))
    console.print(picture(replace(now, pages=1, failed={}), "barkspider", 7.0, "running"))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 5 + 4
    assert lines[4].startswith("failed   some_reason_0 1,000")
    assert lines[4].rstrip().endswith("…")
    assert lines[1].index("rate") == lines[6].index("rate")
    assert lines[1].index("time") == lines[6].index("time")


def test_without_a_limit_or_a_rate_there_is_no_line_about_them() -> None:
    assert len(drawn([], Outlook())) == 4
    assert len(drawn([0.0, 0.0], Outlook())) == 4


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, terminal = io.StringIO(), Screen()
    monkeypatch.setattr(sys, "stderr", plain)
    with working("counting", lambda: 5, lambda: 10, after=0.0):
        pass
    assert plain.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    seen: list[int] = []

    def done() -> int:
        seen.append(1)
        return 5

    with working("counting", done, lambda: 10, after=0.0):
        while not seen:
            pass
    assert "counting" in terminal.getvalue()
    short = Screen()
    monkeypatch.setattr(sys, "stderr", short)
    with working("counting", done, after=100.0):
        pass
    assert short.getvalue() == ""


def test_help_is_in_groups_and_the_shell_can_complete(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "--help") == 0
    told = capsys.readouterr().out
    groups = ["Crawl", "A crawl that runs", "What was crawled", "To think first", "By themselves"]
    assert [told.index(f"─ {group} ") for group in groups] == sorted(
        told.index(f"─ {group} ") for group in groups
    )
    assert "--install-completion" in told


def test_the_shell_completes_commands() -> None:
    words = {"_BARKSPIDER_COMPLETE": "complete_bash", "COMP_WORDS": "barkspider res", "COMP_CWORD": "1"}
    program = Path(sys.executable).parent / "barkspider"
    told = subprocess.run([program], env=os.environ | words, capture_output=True, text=True, timeout=60)
    assert (told.stdout.split(), told.stderr, told.returncode) == (["resume", "restore", "resize"], "", 0)
