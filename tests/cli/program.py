"""The program `barkspider`, run within the process of a test."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from barkspider.cli import main


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Its exit code with these arguments."""
    monkeypatch.setattr(sys, "argv", ["barkspider", *map(str, arguments)])
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        signal.signal(signal.SIGINT, on_interrupt)  # or nobody could interrupt the tests
    assert isinstance(end.value.code, int)
    return end.value.code


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that it printed, and nothing else."""
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert output.err.startswith("barkspider: ")
    return output.err
