"""Crawls that are killed again and again over real sockets; `python -m benchmarks chaos` does it 200 times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from barkspider.engine.checkpoint import Checkpoint
from barkspider.engine.history import read_history
from barkspider.storage.env import Env
from tests.engine.killed import DEFAULTS, NONE, run

SMALL = {
    "kills": 4,
    "pages": 60,
    "host_delay": 0.05,
    "crawl_delay": 0.1,
    "slow_delay": 0.01,
    "retry_after": 0.15,
    "checkpoint": 0.2,
    "longest": 0.8,
}


@pytest.mark.parametrize("frontier", ["irlbot", "sydney", "sydney-disk", "site"])
def test_a_crawl_that_is_killed_loses_nothing_and_repeats_nothing(tmp_path: Path, frontier: str) -> None:
    """With busy and slow servers, and redirects that normalising would lose: some of these lead over another site and back, which
    nobody follows who goes site by site."""
    hazards = [each for each in DEFAULTS["hazards"] if each != "redirects" or frontier != "site"]
    found = run({**DEFAULTS, **SMALL, "frontier": frontier, "seed": 3, "hazards": hazards}, tmp_path)
    assert found["kills"] == SMALL["kills"]
    assert found["truth"] > 100
    assert {name: found[name] for name in NONE} == dict.fromkeys(NONE, 0), found
    assert found["problems"] == []
    assert found["output"] == ""
    history = read_history(Env(), tmp_path / "job")
    assert (np.diff(history.column("time")) >= 0).all()
    assert (np.diff(history.column("pages")) >= 0).all()
    assert history.last("run") > 1
    checkpoint = Checkpoint.read(Env(), tmp_path / "job")
    assert checkpoint is not None
    assert history.last("pages") == checkpoint.counters(Env(), tmp_path / "job").pages
