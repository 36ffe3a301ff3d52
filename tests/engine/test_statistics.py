"""What a job has counted goes on from run to run."""

from __future__ import annotations

import pytest

from barkspider.core.events import Counters
from barkspider.engine.phases import THREADS, Phases
from barkspider.engine.statistics import Tally


def test_the_cpu_time_of_earlier_runs_counts_for_a_job_as_its_pages_do() -> None:
    first, second = Tally(), Tally()
    first.pages = 7
    second.load(first.save() | {"cpu_seconds": 100.0})
    gauges = {"seen": 0, "largest": 0}
    assert second.statistics(1.0, Counters(), gauges, "").cpu_seconds == pytest.approx(100, abs=5)
    assert (second.pages, second.save()["cpu_seconds"]) == (7, pytest.approx(100, abs=5))


def test_phases_take_turns_and_add_up_to_what_the_thread_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    thread, process = iter((10.0, 10.5, 12.0, 12.25, 13.0)), iter((20.0, 24.0))
    monkeypatch.setattr("time.thread_time", lambda: next(thread))
    monkeypatch.setattr("time.process_time", lambda: next(process))
    phases = Phases()
    phases.end("read")
    phases.end("links")
    phases.end("read")
    found = {name: spent for name, spent in phases.seconds().items() if spent}
    assert found == {"read": 0.75, "links": 1.5, THREADS: 1.0}  # and 0.75 since then, in no phase yet
